"""What is found elsewhere, on its way into a journal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from agent_journal.model import FRONTMATTER_KEYS, Draft, Problem, Provenance, Value

SOURCE_KEY = "source"
"""The frontmatter key that says what an entry was imported from."""

UNKNOWN = Provenance()
"""Where a thing comes from of which nothing is known."""

_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was found elsewhere.

    Attributes:
        path: the file, absolute, or what the stream is called.
        line: where in it; None when it is the whole file.
        draft: the entry that it becomes; None when it holds nothing, or can't become one.
        problems: why it can't; with a draft, what of it could not be read as it stands.
        id: under which others of the same batch refer to it; empty if they don't.
    """

    path: str
    line: int | None = None
    draft: Draft | None = None
    problems: tuple[Problem, ...] = ()
    id: str = ""

    @classmethod
    def refused(cls, path: str, reason: str, line: int | None = None) -> Found:
        """Return a thing that can't become an entry."""
        return cls(path, line, problems=(Problem(path, reason, line),))


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that is found in one place.

    Attributes:
        found: in the order in which it is to be written; read as it is taken, and only once.
        total: how many there are; 0 when that isn't known beforehand.
    """

    found: Iterable[Found]
    total: int = 0


def source_of(kind: str, name: str, content: bytes) -> str:
    """Return what a thing is known by: the same thing with another content is another one.

    Args:
        kind: the format, such as ``memory-block``.
        name: what the thing is called within its format, wherever it happens to lie.
        content: all of it.
    """
    return f"{kind}:{name}#{hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]}"


def origin_of(given: Provenance, said: Provenance) -> Provenance:
    """Return where a thing comes from: what its place says, else what it says itself."""
    names = (field.name for field in fields(Provenance))
    return Provenance(**{name: getattr(given, name) or getattr(said, name) for name in names})


def extra_with(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> dict[str, Value]:
    """Join the keys that an import adds and those of what is imported; none of theirs is lost.

    A key of theirs that is called as one of ours, or as one of an entry's own, gets ``original_``
    before its name.
    """
    renamed: dict[str, Value] = {}
    for key, value in theirs.items():
        free = key
        while free in ours or free in renamed or free in FRONTMATTER_KEYS:
            free = f"original_{free}"
        renamed[free] = value
    return {**ours, **renamed}
