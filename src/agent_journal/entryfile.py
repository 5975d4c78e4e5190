"""Entries as Markdown files with YAML frontmatter: the one module that knows YAML.

What is written is narrow: every string double-quoted as in JSON, so that no YAML reader takes it
for a number, a date or a truth value. What is read is wide: whatever is wrong with a file becomes a
`Problem` of its entry, and all that can be understood is kept. ``docs/format.md`` is the same in
words that another program could follow.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import NoReturn, Protocol

import yaml

from agent_journal.errors import InvalidFieldError
from agent_journal.model import (
    ENTRY_LIMIT_BYTES,
    Draft,
    Entry,
    EntryId,
    Problem,
    Provenance,
    Value,
    from_milliseconds,
    normalise_body,
    normalise_tags,
    timestamp,
    to_utc,
)

READ_LIMIT_BYTES = 16 * 1024 * 1024
"""Of a larger file only so much is read; whoever opens it needs one byte more to notice."""

DEPTH_LIMIT = 64
"""Lists and mappings inside one another; deeper ones are neither written nor understood."""

PROBLEM_LIMIT = 20
"""Problems told of one file; the rest is summed up in one more."""

_FRONTMATTER_LIMIT = ENTRY_LIMIT_BYTES  # characters; larger ones are not given to the YAML parser
_CHUNK_LIMIT = 256  # lines of broken frontmatter that are tried one by one
_KEY_LIMIT = 1000  # YAML ends an implicit key at 1,024 characters
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is nine times as fast

_PROVENANCE_KEYS = {
    "project": "project",
    "model": "model",
    "provider": "provider",
    "agent": "agent",
    "session_id": "session",
}
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS_YAML_RESOLVES = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_LITERALS: Mapping[str, Value] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
    ".nan": math.nan,
    ".inf": math.inf,
    "-.inf": -math.inf,
}
_FENCE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_TOP_KEY = re.compile(r"(?![-#\s])([^:\n]*?|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?:[ \t]+(.*)|)")
_ID_INSTANT = re.compile(r"(\d{8}-\d{6}-\d{3})(?!\d)", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"[ \t]*(?:[Zz]|UTC|([+-])(\d\d?)(?::?(\d\d))?)?)?)?)?",
    re.ASCII,
)


def render(entry_id: EntryId, created: datetime, draft: Draft) -> bytes:  # noqa: ARG001 the name is the file's
    """Return the file of an entry: frontmatter, an empty line, the body, one line end; UTF-8.

    Args:
        entry_id: the entry's id; it stands in the file's name alone.
        created: aware; written in UTC with milliseconds.
        draft: everything else.

    Raises:
        InvalidFieldError: `Draft.extra` is nested deeper than `DEPTH_LIMIT`, or holds a number of
            more digits than Python converts.
    """
    values: dict[str, Value] = {"title": draft.title, "created": timestamp(created)}
    for key, name in _PROVENANCE_KEYS.items():
        values[key] = getattr(draft.provenance, name)
    values["tags"] = list(draft.tags)
    lines = [_pair(key, value) for key, value in values.items() if value]
    lines += [_pair(key, value) for key, value in draft.extra.items()]
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
    fields = _fields(block, findings)
    if fields is None:
        fields, body = {}, text
    title = " ".join(_text(fields, "title", findings).split())
    if block is not None and not title:
        node = fields.get("title")
        findings.add("the entry has no title", node.line if node else 1)
    return Entry(
        id=entry_id,
        title=title,
        body=normalise_body(body),
        created=_created(fields, entry_id, mtime, findings),
        tags=_tags(fields.get("tags"), findings),
        provenance=Provenance(
            **{name: _text(fields, key, findings) for key, name in _PROVENANCE_KEYS.items()}
        ),
        extra={key: _value(node) for key, node in fields.items() if key not in _OUR_KEYS},
        problems=findings.problems(),
    )


_OUR_KEYS = frozenset({"title", "created", "tags", *_PROVENANCE_KEYS})


# Writing


def _pair(key: str, value: Value) -> str:
    plain = _SIMPLE_KEY.fullmatch(key) and key.lower() not in _WORDS_YAML_RESOLVES
    return _join(key if plain else _quote(key), _flow(value, 0), "\n: ")


def _join(key: str, value: str, explicit: str) -> str:
    return f"{key}: {value}" if len(key) <= _KEY_LIMIT else f"? {key}{explicit}{value}"


def _flow(value: Value, depth: int) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan")
    if value is None or isinstance(value, bool | int | float):
        try:
            return json.dumps(value)
        except ValueError:
            raise InvalidFieldError("extra", "extra holds a number of too many digits") from None
    if depth == DEPTH_LIMIT:
        raise InvalidFieldError("extra", f"extra is nested deeper than {DEPTH_LIMIT} levels")
    if isinstance(value, Mapping):
        pairs = (_join(_quote(k), _flow(v, depth + 1), " : ") for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    return "[" + ", ".join(_flow(member, depth + 1) for member in value) + "]"


def _quote(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


# Reading: from bytes to the two parts of a file


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
    """Return the frontmatter's text, None when there is none, and what is the body then."""
    opening = _FENCE.match(text)
    if not opening:
        findings.add("there is no frontmatter; the whole file is the body", 1)
        return None, text
    closing = _FENCE.search(text, opening.end())
    if closing:
        return text[opening.end() : closing.start()], text[closing.end() :]
    findings.add("the frontmatter has no end (a line of ---); the whole file is the body", 1)
    return None, text


# Reading: from frontmatter to nodes


@dataclass(slots=True)
class _Node:
    """A piece of YAML: text of a scalar, or members of a list or of a mapping (keys and values)."""

    line: int
    start: int
    text: str | None = None
    is_plain: bool = False
    is_mapping: bool = False
    members: list[_Node] = field(default_factory=list)
    source: str = ""

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in {"", "~", "null", "Null", "NULL"}


class _Mark(Protocol):
    line: int
    index: int


class _BrokenYamlError(Exception):
    """This text is no YAML that we understand."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def _fields(block: str | None, findings: _Findings) -> dict[str, _Node] | None:
    """Return the top keys of some frontmatter; None when it is no frontmatter after all."""
    if block is None:
        return {}
    try:
        if len(block) > _FRONTMATTER_LIMIT:
            _break(f"frontmatter is over {_FRONTMATTER_LIMIT:,} characters", 2)
        root = _compose(block, 2)
        if root is None or root.is_null:
            return {}
        if not root.is_mapping:
            _break("frontmatter is no list of keys and values", root.line)
        return _top(root, findings)
    except _BrokenYamlError as error:
        fields = _recover(block, findings)
        findings.add(error.reason, error.line)
        return fields or None


def _break(reason: str, line: int) -> NoReturn:
    raise _BrokenYamlError(reason, line)


def _compose(source: str, first_line: int) -> _Node | None:
    """Return the only document in some YAML; `first_line` is where it stands in the file."""
    composer = _Composer(source, first_line)
    try:
        for event in yaml.parse(source, Loader=_LOADER):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        line, _ = _position(error.problem_mark or error.context_mark)
        reason = f"not valid YAML: {error.problem or error.context}"
        raise _BrokenYamlError(reason, line + first_line) from None
    except yaml.YAMLError as error:  # a character that YAML has no place for
        raise _BrokenYamlError(f"not valid YAML: {_first_line(error)}", first_line) from None
    return composer.root


class _Composer:
    """Builds nodes from events with a stack of its own.

    Nothing is constructed, merged, repeated or recursed into, and of aliases only those of scalars
    are followed, so that a hostile file costs no more than its length.
    """

    def __init__(self, source: str, first_line: int) -> None:
        self.root: _Node | None = None
        self._source = source
        self._first_line = first_line
        self._stack: list[_Node] = []
        self._anchors: dict[str, _Node] = {}

    def take(self, event: yaml.Event) -> None:
        """Add what an event says.

        Raises:
            _BrokenYamlError: it says something that we don't accept.
        """
        line, index = _position(event.start_mark)
        line += self._first_line
        if isinstance(event, yaml.ScalarEvent):
            node = _Node(line, index, _clean(event.value), is_plain=event.implicit[0])
            if event.anchor:
                self._anchors[event.anchor] = node
            self._place(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(_Node(line, index, is_mapping=isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            node = self._stack.pop()
            node.source = self._source[node.start : _position(event.end_mark)[1]]
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _BrokenYamlError(f"alias *{event.anchor} stands for no scalar", line)
            self._place(self._anchors[event.anchor])
        elif isinstance(event, yaml.DocumentStartEvent) and self.root:
            raise _BrokenYamlError("frontmatter holds a second YAML document", line)

    def _open(self, node: _Node) -> None:
        if len(self._stack) > DEPTH_LIMIT:
            raise _BrokenYamlError(f"nested deeper than {DEPTH_LIMIT} levels", node.line)
        self._place(node)
        self._stack.append(node)

    def _place(self, node: _Node) -> None:
        if self._stack:
            self._stack[-1].members.append(node)
        else:
            self.root = node


def _position(mark: _Mark | None) -> tuple[int, int]:
    """Return a mark's line and character, from 0; both parsers set every mark that we ask for."""
    return (mark.line, mark.index) if mark else (0, 0)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _clean(text: str) -> str:
    """Join surrogate pairs; make lone ones and NUL the replacement character."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def _top(root: _Node, findings: _Findings) -> dict[str, _Node]:
    fields: dict[str, _Node] = {}
    for key, value in _pairs(root):
        if key.text is None:
            findings.add("a key is no scalar; it is ignored with its value", key.line)
        elif key.text in fields:
            findings.add(f"key {key.text[:80]!r} appears again; the first one counts", key.line)
        else:
            fields[key.text] = value
    return fields


def _pairs(mapping: _Node) -> Iterator[tuple[_Node, _Node]]:
    return zip(mapping.members[::2], mapping.members[1::2], strict=True)


def _recover(block: str, findings: _Findings) -> dict[str, _Node]:
    """Take what can be taken from broken frontmatter, one top key at a time."""
    fields: dict[str, _Node] = {}
    for count, (number, chunk) in enumerate(_chunks(block)):
        first, _, rest = chunk.partition("\n")
        found = _TOP_KEY.fullmatch(first)
        if not found:
            continue
        taken: dict[str, _Node] | None = None
        if count < _CHUNK_LIMIT and len(chunk) <= _FRONTMATTER_LIMIT:
            try:
                root = _compose(chunk, number)
                taken = _top(root, findings) if root is not None and root.is_mapping else None
            except _BrokenYamlError as error:
                findings.add(f"{error.reason}; taken as plain text", error.line)
        if taken is None:
            raw = " ".join([found[2] or "", *rest.split("\n")]).strip()
            taken = {_unquote(found[1]): _Node(number, 0, _unquote(raw))}
        for key, node in taken.items():
            fields.setdefault(key, node)
    return fields


def _chunks(block: str) -> Iterator[tuple[int, str]]:
    """Yield each unindented key with the lines that belong to it, and its line in the file."""
    number, lines = 2, list[str]()
    for count, line in enumerate(block.split("\n"), start=2):
        if lines and _TOP_KEY.fullmatch(line):
            yield number, "\n".join(lines)
            number, lines = count, []
        lines.append(line)
    yield number, "\n".join(lines)


def _unquote(raw: str) -> str:
    text = raw.strip()
    if text[:1] == '"':
        try:
            return _clean(str(json.loads(text)))
        except ValueError:
            pass
    return _clean(text[1:].removesuffix(text[0]) if text[:1] in {'"', "'"} else text)


# Reading: from nodes to values


def _text(fields: Mapping[str, _Node], key: str, findings: _Findings) -> str:
    node = fields.get(key)
    if node is None or node.is_null:
        return ""
    if node.text is not None:
        return node.text
    findings.add(f"{key} is no text; taken as it stands", node.line)
    return _clean(" ".join(node.source.split()))


def _tags(node: _Node | None, findings: _Findings) -> tuple[str, ...]:
    if node is None or node.is_null:
        return ()
    if node.text is not None:
        parts = node.text.strip().removeprefix("[").removesuffix("]").split(",")
        return normalise_tags(part.strip().removeprefix("#").strip("'\" ") for part in parts)
    if node.is_mapping:
        findings.add("tags is no list; none are taken", node.line)
        return ()
    members = {str(n): member for n, member in enumerate(node.members) if not member.is_null}
    for member in members.values():
        if member.text is None:
            findings.add("a tag is no text; taken as it stands", member.line)
    return normalise_tags(
        " ".join(member.source.split()) if member.text is None else member.text
        for member in members.values()
    )


def _value(node: _Node) -> Value:
    if node.text is not None:
        return _scalar(node.text) if node.is_plain else node.text
    if node.is_mapping:
        return {key.text or key.source: _value(value) for key, value in _pairs(node)}
    return [_value(member) for member in node.members]


def _scalar(text: str) -> Value:
    if text in _LITERALS:
        return _LITERALS[text]
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    try:
        return float(text) if number[1] or number[2] else int(text)
    except ValueError:  # more digits than Python converts
        return text


def _created(
    fields: Mapping[str, _Node], entry_id: str, mtime: float, findings: _Findings
) -> datetime:
    written = _text(fields, "created", findings).strip()
    if written:
        instant = _instant(written)
        if instant is not None:
            return instant
        findings.add(f"created is {written[:40]!r}, which is no date", fields["created"].line)
    if named := _ID_INSTANT.match(entry_id):
        try:
            return datetime.strptime(f"{named[1]}000+0000", "%Y%m%d-%H%M%S-%f%z")
        except ValueError:
            pass
    try:
        return from_milliseconds(math.floor(mtime * 1000))
    except (ValueError, OverflowError):
        return from_milliseconds(0)


def _instant(written: str) -> datetime | None:
    try:
        return to_utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
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
    except (ValueError, OverflowError):
        return None
