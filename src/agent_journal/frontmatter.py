"""Frontmatter: values to lines in one quoted form, and lines of any kind to nodes.

Writing quotes every string as JSON does, so that no reader takes it for a number, a date or a truth
value; reading such lines needs no YAML. Everything else goes through `yamlsource`, and what is no
YAML is read again one key at a time.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from agent_journal.errors import InvalidFieldError
from agent_journal.model import ENTRY_LIMIT_BYTES, Value
from agent_journal.nodes import DEPTH_LIMIT, BrokenYamlError, Node, clean, flat, pairs

SIZE_LIMIT = ENTRY_LIMIT_BYTES
"""Characters of frontmatter that are looked at; an entry of ours never has more."""

Report = Callable[[str, int], None]
"""Called with what is wrong, and the line of the file."""

_FIRST_LINE = 2  # of frontmatter in its file, after the fence
_CHUNK_LIMIT = 256  # keys of broken frontmatter that are still tried as YAML, one by one
_KEY_LIMIT = 1000  # YAML ends an implicit key at 1,024 characters

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS_YAML_RESOLVES = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_STRING = r'"[^"\\\n]*(?:\\["\\/bfnrt][^"\\\n]*)*"'  # they differ over \u
_OWN_LINE = re.compile(
    rf"^((?!(?:{'|'.join(_WORDS_YAML_RESOLVES)}):)[a-z_]+): "
    rf"({_STRING}|\[(?:{_STRING}(?:, {_STRING})*)?\])\n",
    re.MULTILINE,
)
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


def read(block: str, report: Report) -> dict[str, Node] | None:
    """Return the top keys of some frontmatter in their order; None when it is none after all.

    Never raises. Of a key that stands there twice the first one counts.

    Args:
        block: what stands between the fences.
        report: told of everything that could not be taken as it stands.
    """
    if (written := _own(block)) is not None:
        return written
    try:
        if len(block) > SIZE_LIMIT:
            _break(f"only {SIZE_LIMIT:,} characters of frontmatter are read", _FIRST_LINE)
        root = _composed(block, _FIRST_LINE)
        if root is None or root.is_null:
            return {}
        if not root.is_mapping:
            _break("the frontmatter has no keys", root.line)
        return _top(root, report)
    except BrokenYamlError as error:
        fields, faults = _recover(block[:SIZE_LIMIT])
        for reason, number in faults or [(error.reason, error.line)]:
            report(reason, number)
        return fields or None


def _own(block: str) -> dict[str, Node] | None:
    """Read what `line` writes of strings and of lists of them; None when there is anything else.

    There JSON and YAML mean the same, and JSON takes a seventh of the time.
    """
    if len(block) > SIZE_LIMIT or not block.endswith("\n") or _UNSAFE.search(block):
        return None
    lines = _OWN_LINE.findall(block)
    if len(lines) != block.count("\n"):
        return None
    try:
        values = json.loads(f"[{','.join(written for _, written in lines)}]")
    except ValueError:  # a control character
        return None
    fields: dict[str, Node] = {}
    for number, ((key, written), value) in enumerate(zip(lines, values, strict=True), _FIRST_LINE):
        if isinstance(value, str):
            fields[key] = Node(number, value)
        else:
            members = [Node(number, member) for member in value]
            fields[key] = Node(number, members=members, source=written, end=len(written))
    return fields if len(fields) == len(lines) else None


def _composed(source: str, first_line: int) -> Node | None:
    from agent_journal import yamlsource  # noqa: PLC0415 - slow to import, needed by foreign files

    return yamlsource.compose(source, first_line)


def _break(reason: str, line: int) -> NoReturn:
    raise BrokenYamlError(reason, line)


def _top(root: Node, report: Report) -> dict[str, Node]:
    fields: dict[str, Node] = {}
    for key, value in pairs(root):
        if key.text is None:
            report("a key is no scalar; it is ignored with its value", key.line)
        elif key.text in fields:
            report(f"key {key.text[:80]!r} appears again; the first one counts", key.line)
        else:
            fields[key.text] = value
    return fields


def _recover(block: str) -> tuple[dict[str, Node], list[tuple[str, int]]]:
    """Take what can be taken from broken frontmatter, one key at a time; tell what was broken."""
    fields: dict[str, Node] = {}
    faults: list[tuple[str, int]] = []
    for count, (number, key, raw, chunk) in enumerate(_chunks(block)):
        taken = {_unquote(key): Node(number, _unquote(raw))}
        if count < _CHUNK_LIMIT:
            try:
                root = _composed(chunk, number)
                if root is not None and root.is_mapping:
                    taken = _top(root, lambda *fault: faults.append(fault))
            except BrokenYamlError as error:
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
        raw = flat(" ".join([lines[at][colon.end() :], *indented]))
        yield at + _FIRST_LINE, lines[at][: colon.start()], raw, chunk


def _unquote(raw: str) -> str:
    text = raw.strip()
    quote = text[:1]
    if quote == '"':
        try:
            return clean(str(json.loads(text)))  # as JSON, two surrogates are one character
        except ValueError:
            pass
    if quote in {'"', "'"}:
        text = text[1:].removesuffix(quote).replace("''", "'")
    return clean(text)
