"""Frontmatter as YAML: values to lines in one quoted form, and lines of any kind to nodes.

Writing quotes every string as JSON does, so that no reader takes it for a number, a date or a truth
value. Reading works on the parser's events with a stack of its own: nothing is constructed, merged,
repeated or recursed into, so that a hostile file costs no more than its length. What is no YAML is
read again one key at a time.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import yaml

from agent_journal.errors import InvalidFieldError
from agent_journal.model import ENTRY_LIMIT_BYTES, Value

DEPTH_LIMIT = 64
"""Lists and mappings inside one another; deeper ones are neither written nor understood."""

SIZE_LIMIT = ENTRY_LIMIT_BYTES
"""Characters of frontmatter that are looked at; an entry of ours never has more."""

Report = Callable[[str, int], None]
"""Called with what is wrong, and the line of the file."""

_FIRST_LINE = 2  # of frontmatter in its file, after the fence
_CHUNK_LIMIT = 256  # keys of broken frontmatter that are still tried as YAML, one by one
_KEY_LIMIT = 1000  # YAML ends an implicit key at 1,024 characters
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is nine times as fast

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS_YAML_RESOLVES = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_LITERALS: Mapping[str, Value] = {
    "true": True,
    "false": False,
    ".nan": math.nan,
    ".inf": math.inf,
    "-.inf": -math.inf,
}
_COLON = re.compile(r":(?=[ \t]|\Z)")


def line(key: str, value: Value) -> str:
    """Return a top key with its value, as one line (two when the key is very long).

    Raises:
        InvalidFieldError: the value is nested deeper than `DEPTH_LIMIT`, or holds a number of more
            digits than Python converts.
    """
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


@dataclass(slots=True)
class Node:
    """A piece of YAML.

    Attributes:
        line: where it starts in the file, from 1.
        start, end: where a list or mapping stands in `source`, the text it was read from.
        text: a scalar's; None for a list or a mapping. Without NUL and lone surrogates.
        is_plain: it is a scalar without quotes or tag.
        is_mapping: its members are keys and values in turn.
    """

    line: int
    text: str | None = None
    is_plain: bool = False
    is_mapping: bool = False
    members: list[Node] = field(default_factory=list)
    source: str = ""
    start: int = 0
    end: int = 0

    @property
    def is_null(self) -> bool:
        """Whether it stands for nothing."""
        return self.is_plain and self.text in _NULLS

    @property
    def written(self) -> str:
        """A scalar's text; a list or mapping as it is written, on one line."""
        return self.text if self.text is not None else _flat(self.source[self.start : self.end])

    def value(self) -> Value:
        """Return what a foreign key holds: JSON's literals typed, all else as text, dates too."""
        if self.text is not None:
            return _scalar(self.text) if self.is_plain else self.text
        if self.is_mapping:
            return {key.written: value.value() for key, value in _pairs(self)}
        return [member.value() for member in self.members]


class _Mark(Protocol):
    line: int
    index: int


class _BrokenYamlError(Exception):
    """This text is no YAML that we understand."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def read(block: str, report: Report) -> dict[str, Node] | None:
    """Return the top keys of some frontmatter in their order; None when it is none after all.

    Never raises. Of a key that stands there twice the first one counts.

    Args:
        block: what stands between the fences.
        report: told of everything that could not be taken as it stands.
    """
    try:
        if len(block) > SIZE_LIMIT:
            _break(f"only {SIZE_LIMIT:,} characters of frontmatter are read", _FIRST_LINE)
        root = _compose(block, _FIRST_LINE)
        if root is None or root.is_null:
            return {}
        if not root.is_mapping:
            _break("the frontmatter has no keys", root.line)
        return _top(root, report)
    except _BrokenYamlError as error:
        fields, faults = _recover(block[:SIZE_LIMIT])
        for reason, number in faults or [(error.reason, error.line)]:
            report(reason, number)
        return fields or None


def _break(reason: str, line: int) -> NoReturn:
    raise _BrokenYamlError(reason, line)


def _compose(source: str, first_line: int) -> Node | None:
    """Return the only document in some YAML; `first_line` is where it stands in the file."""
    composer = _Composer(source, first_line)
    try:
        for event in yaml.parse(source, Loader=_LOADER):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        line, _ = _position(error.problem_mark or error.context_mark)
        last = source.rstrip("\n").count("\n")  # the end of the stream lies behind it
        reason = f"not valid YAML: {error.problem or error.context}"
        raise _BrokenYamlError(reason, min(line, last) + first_line) from None
    except yaml.YAMLError as error:  # a character that YAML has no place for
        raise _BrokenYamlError(f"not valid YAML: {_first_line(error)}", first_line) from None
    return composer.root


class _Composer:
    """Builds nodes from events with a stack of its own.

    Nothing is constructed, merged, repeated or recursed into, and of aliases only those of scalars
    are followed, so that a hostile file costs no more than its length.
    """

    def __init__(self, source: str, first_line: int) -> None:
        self.root: Node | None = None
        self._source = source
        self._first_line = first_line
        self._stack: list[Node] = []
        self._anchors: dict[str, Node] = {}

    def take(self, event: yaml.Event) -> None:
        """Add what an event says.

        Raises:
            _BrokenYamlError: it says something that we don't accept.
        """
        line, index = _position(event.start_mark)
        line += self._first_line
        if isinstance(event, yaml.ScalarEvent):
            node = Node(line, _clean(event.value), is_plain=event.implicit[0])
            if event.anchor:
                self._anchors[event.anchor] = node
            self._place(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self._open(Node(line, is_mapping=is_mapping, source=self._source, start=index))
        elif isinstance(event, yaml.CollectionEndEvent):
            _, self._stack.pop().end = _position(event.end_mark)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _BrokenYamlError(f"alias *{event.anchor} stands for no scalar", line)
            self._place(self._anchors[event.anchor])
        elif isinstance(event, yaml.DocumentStartEvent) and self.root:
            raise _BrokenYamlError("frontmatter holds a second YAML document", line)

    def _open(self, node: Node) -> None:
        if len(self._stack) > DEPTH_LIMIT:
            raise _BrokenYamlError(f"nested deeper than {DEPTH_LIMIT} levels", node.line)
        self._place(node)
        self._stack.append(node)

    def _place(self, node: Node) -> None:
        if self._stack:
            self._stack[-1].members.append(node)
        else:
            self.root = node


def _position(mark: _Mark | None) -> tuple[int, int]:
    """Return a mark's line and character, from 0; both parsers set every mark that we ask for."""
    return (mark.line, mark.index) if mark else (0, 0)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _clean(text: str) -> str:
    """Join surrogate pairs; make lone ones and NUL the replacement character."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def _top(root: Node, report: Report) -> dict[str, Node]:
    fields: dict[str, Node] = {}
    for key, value in _pairs(root):
        if key.text is None:
            report("a key is no scalar; it is ignored with its value", key.line)
        elif key.text in fields:
            report(f"key {key.text[:80]!r} appears again; the first one counts", key.line)
        else:
            fields[key.text] = value
    return fields


def _pairs(mapping: Node) -> Iterator[tuple[Node, Node]]:
    return zip(mapping.members[::2], mapping.members[1::2], strict=True)


def _recover(block: str) -> tuple[dict[str, Node], list[tuple[str, int]]]:
    """Take what can be taken from broken frontmatter, one key at a time; tell what was broken."""
    fields: dict[str, Node] = {}
    faults: list[tuple[str, int]] = []
    for count, (number, key, raw, chunk) in enumerate(_chunks(block)):
        taken = {_unquote(key): Node(number, _unquote(raw))}
        if count < _CHUNK_LIMIT:
            try:
                root = _compose(chunk, number)
                if root is not None and root.is_mapping:
                    taken = _top(root, lambda *fault: faults.append(fault))
            except _BrokenYamlError as error:
                faults.append((f"{error.reason}; {key[:40]} is taken as plain text", error.line))
        for name, node in taken.items():
            fields.setdefault(name, node)
    return fields, faults


def _chunks(block: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield each unindented key: its line in the file, itself, its value, and all of its lines."""
    lines = block.split("\n")
    starts = [
        (at, colon)
        for at, text in enumerate(lines)
        if text[:1] not in {"", " ", "\t", "-", "#"} and (colon := _COLON.search(text))
    ]
    ends = [*(at for at, _ in starts[1:]), len(lines)]
    for (at, colon), end in zip(starts, ends, strict=False):  # without a start, an end is left
        chunk = "\n".join(lines[at:end])
        indented = itertools.takewhile(lambda text: text[:1] in {" ", "\t"}, lines[at + 1 : end])
        raw = _flat(" ".join([lines[at][colon.end() :], *indented]))
        yield at + _FIRST_LINE, lines[at][: colon.start()], raw, chunk


def _unquote(raw: str) -> str:
    text = raw.strip()
    quote = text[:1]
    if quote == '"':
        try:
            return _clean(str(json.loads(text)))  # as JSON, two surrogates are one character
        except ValueError:
            pass
    if quote in {'"', "'"}:
        text = text[1:].removesuffix(quote).replace("''", "'")
    return _clean(text)


def _scalar(text: str) -> Value:
    if text in _NULLS:
        return None
    if text in _LITERALS:
        return _LITERALS[text]
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    try:
        return float(text) if number[1] or number[2] else int(text)
    except ValueError:  # more digits than Python converts
        return text
