"""Entries as JSON Lines: one object a line, out of a journal and into one.

What is written has every field of an entry and comes back as the same entry. What is read may come
from other programs: only ``created`` and ``body`` must be there, and keys that are no field of an
entry become frontmatter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from agent_journal.engines.placing import reason_of
from agent_journal.engines.scanning import printable
from agent_journal.errors import (
    EntryNotFoundError,
    ImportUnavailableError,
    InvalidDraftError,
    InvalidFieldError,
    StorageError,
)
from agent_journal.jsonline import encode
from agent_journal.model import (
    Draft,
    Entry,
    EntryId,
    Problem,
    Provenance,
    entry_id_of,
    normalise_body,
    timestamp,
    to_milliseconds,
    to_utc,
)
from agent_journal.ports import Progress, Store
from agent_journal.query import Filters
from agent_journal.transfer.batch import SOURCE_KEY, Batch, Found, source_of
from agent_journal.transfer.shape import PROVENANCE, REFERENCES, references_of, shape_of

KIND = "jsonl"
"""The kind of source that says which id an entry had where it was exported."""

LINE_LIMIT_BYTES = 8 * 1024 * 1024
"""A longer line is passed over: no entry within the limit needs as much, even if all is escaped."""

_CHUNK_BYTES = 1024 * 1024
_OWN = frozenset({"id", "created", "title", "tags", "extra", "body", *PROVENANCE, *REFERENCES})
_ABOUT = frozenset(  # what `read --json` tells of a file, and no entry says
    {"path", "problems", "superseded_by", "annotated_by"}
)
_KEYS = _OWN | _ABOUT
_NAMES: Mapping[type, str] = {str: "a string", list: "a list", dict: "an object"}
_T = TypeVar("_T")


class Export:
    """The entries of a journal that pass some filters, as lines, oldest first by id.

    One entry is held at a time. Iterate over it once; the attributes are complete afterwards.

    Args:
        store: the journal's entries.
        filters: what they must pass.
        progress: told of (done, total) entries.

    Attributes:
        count: entries exported.
        damaged: those of them that could not be read as they stand; see ``Entry.problems``.
        unreadable: entries that could not be read at all.

    Raises:
        JournalUnavailableError: the folder is missing or can't be read.
    """

    def __init__(self, store: Store, filters: Filters, progress: Progress | None = None) -> None:
        self.count = 0
        self.damaged = 0
        self.unreadable: list[Problem] = []
        self._store = store
        self._filters = filters
        self._progress = progress

    def __iter__(self) -> Iterator[str]:
        """Yield each entry's line, its end included."""
        ids = sorted(self._store.listing(thorough=True).versions)
        for done, entry_id in enumerate(ids, 1):
            try:
                entry = self._store.read(entry_id)
            except EntryNotFoundError:
                continue  # removed since
            except StorageError as error:
                self.unreadable.append(Problem(error.path, str(error)))
                continue
            created = to_milliseconds(entry.created)
            if self._filters.accepts(created, entry.provenance, entry.tags):
                self.count += 1
                self.damaged += bool(entry.problems)
                yield line_of(entry)
            if self._progress:
                self._progress(done, len(ids))


def line_of(entry: Entry) -> str:
    """Return an entry as one line, its end included."""
    head = {"id": str(entry.id), "created": timestamp(entry.created)}
    shape = shape_of(entry, entry.title)
    body = shape.pop("body")  # the longest comes last
    return encode({**head, **shape, **references_of(entry), "body": body}) + "\n"


@contextmanager
def opened(path: Path) -> Iterator[Batch]:
    """Give the entries of a file, which is read as they are taken.

    Raises:
        ImportUnavailableError: it can't be read.
    """
    name = printable(path)
    with ExitStack() as closing:
        try:
            stream = closing.enter_context(path.open("rb"))
            total = _count_lines(stream) if stream.seekable() else 0
        except OSError as error:
            raise ImportUnavailableError(name, reason_of(error)) from error
        yield Batch(read_lines(stream, name), total)


def read_lines(stream: BinaryIO, name: str) -> Iterator[Found]:
    """Yield what each line of a stream becomes; empty lines are none.

    Args:
        stream: the lines; only one is held at a time.
        name: what the stream is called in problems.

    Raises:
        ImportUnavailableError: the stream can't be read on.
    """

    def following(limit: int) -> bytes:
        try:
            return stream.readline(limit)
        except OSError as error:
            raise ImportUnavailableError(name, reason_of(error)) from error

    number = 0
    while line := following(LINE_LIMIT_BYTES + 1):
        number += 1
        if len(line) > LINE_LIMIT_BYTES:
            while line and not line.endswith(b"\n"):
                line = following(LINE_LIMIT_BYTES)
            reason = f"the line is longer than {LINE_LIMIT_BYTES:,} bytes, as no entry may be"
            yield Found.refused(name, reason, number)
        elif line.strip(b" \t\r\n\xef\xbb\xbf"):
            yield _found(line, name, number)


def _count_lines(stream: BinaryIO) -> int:
    count = sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(_CHUNK_BYTES), b""))
    stream.seek(0)
    return count


def _found(line: bytes, name: str, number: int) -> Found:
    try:
        said = json.loads(line.decode("utf-8-sig"))
        if not isinstance(said, dict):
            return Found.refused(name, "the line is no JSON object", number)
        draft = _draft(said)
        return Found(name, number, draft, id=_taken(said, "id", str) if said.get("id") else "")
    except InvalidDraftError as error:
        reason = str(error)
    except UnicodeDecodeError as error:
        reason = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
    except json.JSONDecodeError as error:
        reason = f"the line is no JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:  # a number of too many digits, too many brackets
        reason = f"the line can't be read: {error}"
    return Found.refused(name, reason, number)


def _draft(said: Mapping[str, Any]) -> Draft:  # Any: whatever JSON holds
    """Return the draft of a line.

    Raises:
        InvalidDraftError: a field is missing or can't be what it is.
    """
    given = {key: value for key, value in said.items() if value is not None}
    if "body" not in given:
        raise InvalidFieldError("body", 'body is missing; give a string, "" for none')
    further = {key: given[key] for key in given if key not in _KEYS}
    entry = Entry(
        id=EntryId(_taken(given, "id", str)),
        title=_taken(given, "title", str),
        body=normalise_body(_taken(given, "body", str)),
        created=_created(given),
    )
    draft = Draft(
        title=entry.heading,
        body=entry.body,
        tags=_taken(given, "tags", list),
        provenance=Provenance(**{name: _taken(given, name, str) for name in PROVENANCE}),
        created=entry.created,
        extra={**further, **_taken(given, "extra", dict)},
        **{name: _references(given, name) for name in REFERENCES},
    )
    if not entry.id or entry.id == entry_id_of(entry.created) or SOURCE_KEY in draft.extra:
        return draft
    content = encode(shape_of(draft, draft.title)).encode()
    source = source_of(KIND, entry.id, content)
    return replace(draft, extra={SOURCE_KEY: source, **draft.extra})


def _taken(given: Mapping[str, Any], key: str, kind: type[_T]) -> _T:  # Any: as above
    """Return a field that is of some type, or that type's empty value when there is none."""
    value = given.get(key, kind())
    if not isinstance(value, kind):
        raise InvalidFieldError(key, f"{key} is {type(value).__name__}; give {_NAMES[kind]}")
    return value


def _references(given: Mapping[str, Any], key: str) -> list[str]:  # Any: as above
    """Return ids of other entries: one text, or a list."""
    return [given[key]] if isinstance(given.get(key), str) else _taken(given, key, list)


def _created(given: Mapping[str, Any]) -> datetime:  # Any: as above
    written = _taken(given, "created", str)
    if not written:
        raise InvalidFieldError("created", "created is missing; give it as 2026-01-31T18:00Z")
    try:
        return to_utc(datetime.fromisoformat(written.strip()))
    except ValueError:
        message = f"created is {written[:80]!r}, which is no date; use 2026-01-31T18:00Z"
        raise InvalidFieldError("created", message) from None
