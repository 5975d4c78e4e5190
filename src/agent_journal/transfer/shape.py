"""What an entry says, as a JSON object."""

from __future__ import annotations

from dataclasses import fields

from agent_journal.jsonline import Json, plain
from agent_journal.model import Draft, Entry, Provenance

PROVENANCE = tuple(field.name for field in fields(Provenance))


REFERENCES = ("supersedes", "annotates")


def references_of(said: Draft | Entry) -> dict[str, Json]:
    """Return the ids of others that an entry or a draft is about; an import may change them."""
    return {name: list(getattr(said, name)) for name in REFERENCES}


def shape_of(said: Draft | Entry, title: str) -> dict[str, Json]:
    """Return all else that an entry or a draft says, but for its id and when it was created.

    Numbers that JSON lacks, such as NaN, are texts in it.

    Args:
        said: the entry or the draft.
        title: stands for its own, which an entry may lack.
    """
    return {
        "title": title,
        "tags": list(said.tags),
        **{name: getattr(said.provenance, name) for name in PROVENANCE},
        "extra": plain(dict(said.extra)),
        "body": said.body,
    }
