"""Entries as files: Markdown with frontmatter, one entry each.

What is written is narrow, what is read is wide: whatever is wrong with a file becomes a `Problem`
of its entry, and all that can be understood is kept. ``docs/format.md`` says the same in words that
another program could follow; `frontmatter` is where YAML is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

from agent_journal import frontmatter
from agent_journal.errors import InvalidFieldError
from agent_journal.model import (
    FRONTMATTER_KEYS,
    Draft,
    Entry,
    EntryId,
    Problem,
    Provenance,
    Value,
    from_milliseconds,
    instant_of,
    normalise_body,
    normalise_references,
    normalise_tags,
    timestamp,
    to_utc,
)
from agent_journal.nodes import Node

READ_LIMIT_BYTES = 16 * 1024 * 1024
"""Of a larger file only so much is read; whoever opens it needs one byte more to notice."""

PROBLEM_LIMIT = 20
"""Problems told of one file; the rest is summed up in one more."""

NO_FRONTMATTER = "there is no frontmatter; the whole file is the body"
NO_TITLE = "the entry has no title"
"""What is a problem of an entry, and none of a file that only becomes one."""

_PROVENANCE_KEYS = {
    "project": "project",
    "repo": "repo",
    "model": "model",
    "provider": "provider",
    "agent": "agent",
    "session_id": "session",
}
_FENCE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_INSTANT = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"[ \t]*(?:[Zz]|UTC|([+-])(\d\d?)(?::?(\d\d))?)?)?)?)?",
    re.ASCII,
)


def render(created: datetime, draft: Draft) -> bytes:
    """Return the file of an entry: frontmatter, an empty line, the body, one line end; UTF-8.

    The entry's id stands in the file's name alone.

    Args:
        created: aware; written in UTC with milliseconds.
        draft: everything else.

    Raises:
        InvalidFieldError: `Draft.extra` holds what frontmatter can't; see `frontmatter.line`.
    """
    values: dict[str, Value] = {"title": draft.title, "created": timestamp(created)}
    for key, name in _PROVENANCE_KEYS.items():
        values[key] = getattr(draft.provenance, name)
    values["tags"] = list(draft.tags)
    values["supersedes"] = list(draft.supersedes)
    values["annotates"] = list(draft.annotates)
    lines = [frontmatter.line(key, value) for key, value in values.items() if value]
    lines += [frontmatter.line(key, value) for key, value in draft.extra.items()]
    body = f"\n{draft.body}\n" if draft.body else ""
    return "".join(["---\n", *(f"{line}\n" for line in lines), "---\n", body]).encode()


def parse(data: bytes, *, entry_id: EntryId, path: str, mtime: float) -> Entry:
    """Return the entry that a file holds; never raises, whatever the bytes are.

    Args:
        data: the file's content, or its first `READ_LIMIT_BYTES` + 1 bytes.
        entry_id: the stem of the file's name.
        path: where the file is, for problems.
        mtime: seconds since the epoch; stands in when neither frontmatter nor id give an instant.

    Returns:
        The entry, with a problem for each thing that could not be read as it stands. Its strings
        hold no lone surrogates, and NUL only in the body.
    """
    findings = _Findings(path)
    text = _decode(data, findings)
    block, body = _split(text, findings)
    fields = {} if block is None else frontmatter.read(block, findings.add)
    if fields is None:  # two rules across a text, and nothing like frontmatter between them
        fields, block, body = {}, None, text
    title = " ".join(_text(fields, "title", findings).split())
    if block is not None and not title:
        node = fields.get("title")
        findings.add(NO_TITLE, node.line if node else 1)
    return Entry(
        id=entry_id,
        title=title,
        body=normalise_body(body),
        created=_created(fields, entry_id, mtime, findings),
        tags=_tags(fields.get("tags"), findings),
        provenance=Provenance(
            **{name: _text(fields, key, findings) for key, name in _PROVENANCE_KEYS.items()}
        ),
        extra={key: node.value() for key, node in fields.items() if key not in FRONTMATTER_KEYS},
        supersedes=_references(fields, "supersedes", entry_id, findings),
        annotates=_references(fields, "annotates", entry_id, findings),
        problems=findings.problems(),
    )


class _Findings:
    """Problems of one file as they are found, in bounded number."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: dict[Problem, None] = {}
        self._more = 0

    def add(self, reason: str, line: int | None = None) -> None:
        if len(self._found) < PROBLEM_LIMIT:
            self._found[Problem(self._path, reason, line)] = None
        else:
            self._more += 1

    def problems(self) -> tuple[Problem, ...]:
        more = [Problem(self._path, f"{self._more} more problems")] if self._more else []
        return (*sorted(self._found, key=lambda problem: problem.line or 0), *more)


def _decode(data: bytes, findings: _Findings) -> str:
    if len(data) > READ_LIMIT_BYTES:
        findings.add(f"the file is larger than {READ_LIMIT_BYTES:,} bytes; the rest is not read")
        end = READ_LIMIT_BYTES
        while end > READ_LIMIT_BYTES - 4 and data[end] & 0xC0 == 0x80:  # noqa: PLR2004 within a character
            end -= 1
        data = data[:end]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n?|\n", data[: error.start])) + 1
        findings.add(f"byte 0x{data[error.start]:02x} is not UTF-8; shown as U+FFFD", line)
        text = data.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _split(text: str, findings: _Findings) -> tuple[str | None, str]:
    """Return the text of the frontmatter, None when there is none, and that of the body."""
    opening = _FENCE.match(text)
    if not opening:
        findings.add(NO_FRONTMATTER, 1)
        return None, text
    closing = _FENCE.search(text, opening.end())
    if closing:
        return text[opening.end() : closing.start()], text[closing.end() :]
    findings.add("the frontmatter has no end (a line of ---); the whole file is the body", 1)
    return text[opening.end() :].partition("\n\n")[0], text


def _text(fields: Mapping[str, Node], key: str, findings: _Findings) -> str:
    node = fields.get(key)
    if node is None or node.is_null:
        return ""
    if node.text is not None:
        return node.text
    findings.add(f"{key} is no text; taken as it stands", node.line)
    return node.written


def _tags(node: Node | None, findings: _Findings) -> tuple[str, ...]:
    if node is None or node.is_null:
        return ()
    if node.text is not None:
        parts = node.text.strip().removeprefix("[").removesuffix("]").split(",")
        return normalise_tags(part.strip("'\" ") for part in parts)
    if node.is_mapping:
        findings.add("tags is no list; none are taken", node.line)
        return ()
    return normalise_tags(_written(node, "a tag", findings))


def _written(node: Node, what: str, findings: _Findings) -> list[str]:
    """Return the members of a list as they are written."""
    members = [member for member in node.members if not member.is_null]
    for member in members:
        if member.text is None:
            findings.add(f"{what} is no text; taken as it stands", member.line)
    return [member.written for member in members]


def _references(
    fields: Mapping[str, Node], key: str, entry_id: EntryId, findings: _Findings
) -> tuple[EntryId, ...]:
    """Return the ids of other entries that stand under a key; they need not exist."""
    node = fields.get(key)
    if node is None or node.is_null:
        return ()
    if node.is_mapping:
        findings.add(f"{key} is no list; none are taken", node.line)
        return ()
    given = [node.text] if node.text is not None else _written(node, "an id", findings)
    found = normalise_references(key, given)
    if entry_id not in found:
        return found
    findings.add(f"{key} names the entry itself; that is passed over", node.line)
    return tuple(one for one in found if one != entry_id)


def _created(
    fields: Mapping[str, Node], entry_id: str, mtime: float, findings: _Findings
) -> datetime:
    written = _text(fields, "created", findings).strip()
    if written:
        instant = _instant(written)
        if instant is not None:
            return instant
        findings.add(f"created is {written[:40]!r}, which is no date", fields["created"].line)
    if named := instant_of(entry_id):
        return named
    try:
        return from_milliseconds(math.floor(mtime * 1000))
    except (ValueError, OverflowError):
        return from_milliseconds(0)


def _instant(written: str) -> datetime | None:
    try:
        return to_utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError, InvalidFieldError):
        pass
    found = _INSTANT.fullmatch(written)
    if not found:
        return None
    *numbers, fraction, sign, hours, minutes = found.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset) if sign else UTC
        micro = int((fraction or "0")[:6].ljust(6, "0"))
        return to_utc(
            datetime(year, month or 1, day or 1, hour, minute, second, micro, tzinfo=zone)
        )
    except (ValueError, OverflowError, InvalidFieldError):
        return None
