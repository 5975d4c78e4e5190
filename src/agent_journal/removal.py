"""Removal: the file that takes an entry's place when a person has text removed from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime

from agent_journal import entryfile, frontmatter
from agent_journal.errors import InvalidDraftError, RedactionRefusedError
from agent_journal.model import (
    FORBIDDEN,
    TITLE_LIMIT,
    Draft,
    Entry,
    EntryId,
    Provenance,
    Value,
    timestamp,
)
from agent_journal.naming import is_ours
from agent_journal.redaction import MARKER, Redaction

KEY = "redacted"
"""The key of frontmatter that tells when, why, and what hash the file had before: a list."""

_FRONTMATTER = re.compile(
    r"(?P<head>\ufeff?---[ \t]*(?P<end>\r\n|\r|\n)(?:.*?[\r\n])??)"
    r"(?P<fence>---[ \t]*(?=[\r\n]|\Z))",
    re.DOTALL,
)
_OLD_MARK = re.compile(rf"(?:^|(?<=\r)){KEY}: [^\r\n]*(?:\r\n|\r|\n)", re.MULTILINE)


def redact(
    entry: Entry,
    data: bytes,
    asked: Redaction | None,
    *,
    was: str,
    at: datetime,
    is_unfinished: bool = False,
) -> tuple[bytes, int]:
    """Return the file that takes an entry's place, and in how many places there was text.

    Of a file that others made all else stays as it is, unless the text stands in its frontmatter;
    then that is written anew from what can be read of it, and the body's other bytes stay, but
    where `is_body_kept` says otherwise. When everything was done before, the count is 0 and the
    file the same.

    Args:
        entry: as it is read now.
        data: its file, as far as it is read.
        asked: what to remove; None removes nothing.
        was: the hash of its file.
        at: now.
        is_unfinished: an earlier redaction of it isn't done; then a text may be gone already.

    Raises:
        RedactionRefusedError: there is nothing to remove, or what would be left can't be kept.
    """
    new, count = _redacted(entry, data, asked, was, at)
    is_marked = bool(mark_of(entry))
    if not count and asked and asked.text and not (is_marked and is_unfinished):
        message = f"text doesn't stand in entry {entry.id} as it was given; look at the entry"
        raise RedactionRefusedError("text", message)
    if not count and not is_marked:
        message = f"entry {entry.id} was never redacted; say why it is to be now, with a reason"
        raise RedactionRefusedError("reason", message)
    return new, count


def _redacted(
    entry: Entry, data: bytes, asked: Redaction | None, was: str, at: datetime
) -> tuple[bytes, int]:
    if asked is None:
        return data, 0
    mark = {"at": timestamp(at), "reason": asked.reason, "sha256": was}
    if not asked.text:
        if is_tombstone(entry):
            return data, 0
        body = f"{MARKER} {timestamp(at)}: {asked.reason}"
        draft = Draft(
            title=MARKER,
            body=body,
            extra={KEY: [*_marks(entry), mark]},
            supersedes=_plain(entry.supersedes),  # else what it has put aside would be back
            annotates=_plain(entry.annotates),
        )
        return entryfile.render(entry.created, draft), 1
    if len(data) > entryfile.READ_LIMIT_BYTES:
        limit = f"{entryfile.READ_LIMIT_BYTES:,} bytes"
        message = f"entry {entry.id} is larger than {limit}; redact all of it, without a text"
        raise RedactionRefusedError("text", message)
    remover = _Remover(asked.pattern)
    marks: list[Value] = [*remover.reasons(_marks(entry)), mark]
    try:
        draft, before = _without(entry, remover, marks)
        anew = entryfile.render(entry.created, draft)
    except InvalidDraftError as error:  # what was made by hand may hold anything
        message = f"entry {entry.id} can't be written anew ({error}); redact all of it"
        raise RedactionRefusedError("text", message) from error
    # In frontmatter that others made there may be more than can be read, such as comments.
    written = len(_found(asked.pattern, data)) - len(_found(asked.pattern, anew))
    if not remover.count and written <= 0:
        return data, 0
    patched = _patched(data, asked.pattern, frontmatter.line(KEY, marks))
    if _is_as_good(patched, anew) and not _found(asked.pattern, patched):
        return patched, remover.count
    return _with_bytes(data, anew, asked.pattern, before), remover.count or written


def _with_bytes(data: bytes, anew: bytes, pattern: re.Pattern[str], before: str) -> bytes:
    """Return a file that is written anew with the body's own bytes, if it says the same then."""
    for rest in _bodies(data, pattern):
        joined = _joined(data, anew, before, rest)
        if _is_as_good(joined, anew) and not _found(pattern, rest):
            return joined
    return anew


def is_body_kept(data: bytes, new: bytes, asked: Redaction) -> bool:
    """Tell whether a body has the bytes that it had but for a text; else its letters alone stayed.

    That can't be where the text is a sign that stands for bytes which are no text.
    """
    return any(new.endswith(body.lstrip(b"\r\n")) for body in _bodies(data, asked.pattern))


def holds(entry: Entry, asked: Redaction) -> bool:
    """Tell whether a text stands anywhere in an entry, in whatever letters."""
    remover = _Remover(re.compile(asked.pattern.pattern, re.IGNORECASE))
    origin = (getattr(entry.provenance, one.name) for one in fields(Provenance))
    references = (*entry.supersedes, *entry.annotates)
    for part in (entry.title, entry.body, *entry.tags, *origin, *references):
        remover.text(part.replace(MARKER, ""))
    others = {key: value for key, value in entry.extra.items() if key != KEY}
    reasons = [mark.get("reason", "") for mark in _marks(entry) if isinstance(mark, Mapping)]
    remover.mapping({**others, "": reasons})
    return bool(remover.count)


def is_tombstone(entry: Entry) -> bool:
    """Tell whether all of an entry was redacted."""
    return entry.title == MARKER and entry.body.startswith(MARKER) and bool(mark_of(entry))


def mark_of(entry: Entry) -> str:
    """Return the hash that the file had before its last redaction; empty when there was none."""
    return _last(entry, "sha256")


def hashes_in(entry: Entry) -> list[str]:
    """Return the hashes that the file had before each of its redactions, the first one first."""
    said = (mark.get("sha256") for mark in _marks(entry) if isinstance(mark, Mapping))
    return [each for each in said if isinstance(each, str)]


def reason_in(entry: Entry) -> str:
    """Return why an entry was redacted last; empty when it wasn't."""
    return _last(entry, "reason")


def _plain(ids: Iterable[EntryId]) -> list[EntryId]:
    """Return the ids that are no more than instants: others may say something."""
    return [one for one in ids if is_ours(one)]


def _last(entry: Entry, key: str) -> str:
    last = _marks(entry)[-1:]
    value = last[0].get(key) if last and isinstance(last[0], Mapping) else ""
    return value if isinstance(value, str) else ""


def _marks(entry: Entry) -> list[Value]:
    marks = entry.extra.get(KEY)
    return list(marks) if isinstance(marks, list | tuple) else []


def _without(entry: Entry, remover: _Remover, marks: list[Value]) -> tuple[Draft, str]:
    """Return an entry without what is to be removed, and what stands before its body now."""
    before = ""
    body = remover.text(entry.body)
    title = remover.text(entry.title) if entry.title else replace(entry, body=body).heading
    if len(title) > TITLE_LIMIT:
        before = f"{title}\n\n"
        body, title = before + body, f"{title[: TITLE_LIMIT - 1]}\u2026"
    others = {key: value for key, value in entry.extra.items() if key != KEY}
    names = [one.name for one in fields(Provenance)]
    draft = Draft(
        title=title,
        body=body,
        tags=[remover.text(tag) for tag in entry.tags],
        provenance=Provenance(
            **{name: remover.text(getattr(entry.provenance, name)) for name in names}
        ),
        extra={**remover.mapping(others), KEY: marks},
        supersedes=[remover.text(one) for one in entry.supersedes],
        annotates=[remover.text(one) for one in entry.annotates],
    )
    return draft, before


def _is_as_good(patched: bytes, anew: bytes) -> bool:
    one, other = (
        entryfile.parse(each, entry_id=EntryId("x"), path="", mtime=0.0) for each in (patched, anew)
    )
    body = FORBIDDEN.sub("\ufffd", one.body)  # what stays may hold NUL
    return replace(one, body=body) == other


def _found(pattern: re.Pattern[str], data: bytes) -> list[str]:
    return pattern.findall(data.decode("utf-8", "surrogateescape"))


def _patched(data: bytes, pattern: re.Pattern[str], mark: str) -> bytes:
    """Return a file with the text removed from its body alone, and a mark in its frontmatter."""
    text = data.decode("utf-8", "surrogateescape")
    found = _FRONTMATTER.match(text)
    if not found:
        return data
    head = _OLD_MARK.sub("", found["head"]) + mark + found["end"]
    body = pattern.sub(MARKER, text[found.end() :])
    return f"{head}{found['fence']}{body}".encode("utf-8", "surrogateescape")


def _bodies(data: bytes, pattern: re.Pattern[str]) -> list[bytes]:
    """Return what may be a file's body without the text: all after the frontmatter, or all."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    found = _FRONTMATTER.match(text)
    rest = [text[found.end() :]] if found else []
    return [
        pattern.sub(MARKER, each).encode("utf-8", "surrogateescape")
        for each in (*rest, f"\n\n{text}")
    ]


def _joined(data: bytes, anew: bytes, before: str, body: bytes) -> bytes:
    """Return a file with frontmatter that is written anew, and a body as it is."""
    found = _FRONTMATTER.match(data.decode("utf-8", "surrogateescape"))
    written, fence, _ = anew.decode().partition("\n---\n")  # values never hold a line end
    end = found["end"] if found else "\n"
    top = written + fence.rstrip("\n")
    if before:
        top, body = f"{top}\n\n{before}", body.lstrip(b"\r\n")
    mark = "\ufeff" if data.startswith("\ufeff".encode()) else ""
    return f"{mark}{top}".replace("\n", end).encode() + body


class _Remover:
    """Puts the marker in the place of a text, and counts."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.count = 0

    def text(self, text: str) -> str:
        found, count = self._pattern.subn(MARKER, text)
        self.count += count
        return FORBIDDEN.sub("\ufffd", found)  # a body made by hand may hold NUL

    def reasons(self, marks: list[Value]) -> list[Value]:
        """Return marks whose reasons don't hold the text; they don't count as places."""
        count = self.count
        kept: list[Value] = [
            {**mark, "reason": self._value(mark.get("reason", ""))}
            if isinstance(mark, Mapping)
            else mark
            for mark in marks
        ]
        self.count = count
        return kept

    def mapping(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {self.text(key): self._value(value) for key, value in values.items()}

    def _value(self, value: Value) -> Value:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, list | tuple):
            return [self._value(member) for member in value]
        return value
