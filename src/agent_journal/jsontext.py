"""JSON text as people write it: where each value stands, and edits that leave all else as it is.

Comments and trailing commas, as hosts allow them in their configuration, are bridged by `strict`:
the same text without them and as long, so that what stands where is the same in both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

Where = tuple[str | int, ...]
"""A place in a document: keys and list indexes, from the outermost in."""

_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{},:]|[^][{},:"\s]+')
_COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[]}])', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")
_VISIBLE = re.compile(r"[^\r\n]")
_MARGIN = re.compile(r"(?:\r?\n)?[ \t]*\Z")


class Place(NamedTuple):
    """Where a key, or a member of a list, stands.

    Attributes:
        where: its path in the document.
        line: counted from one.
        position: the offset of the key, or of the list's member.
    """

    where: Where
    line: int
    position: int


def strict(text: str) -> str:
    """Return a text of the same length with blanks for comments, trailing commas and a mark."""
    text = f" {text[1:]}" if text.startswith("\ufeff") else text
    return _TRAILING_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def places(text: str, *, depth: int) -> Iterator[Place]:
    """Yield where each key and each list member of a valid JSON text stands, in its order.

    What lies deeper than `depth` is passed over.
    """
    trail: list[str | int | None] = []  # per open bracket: the key or the index within it
    line, position, previous = 1, 0, ""
    for match in _MARK.finditer(text):
        mark = match[0]
        line += text.count("\n", position, match.start())
        position = match.start()
        if mark in "]}":
            trail.pop()
        elif mark == ",":
            top = trail[-1]
            trail[-1] = top + 1 if isinstance(top, int) else None
        elif mark != ":":
            is_key = bool(trail) and trail[-1] is None
            if is_key:
                trail[-1] = json.loads(mark)
            if 0 < len(trail) <= depth and (is_key or previous in "[,"):
                where = tuple(part for part in trail if part is not None)
                yield Place(where, line, position)
            if mark in "[{":
                trail.append(0 if mark == "[" else None)
        previous = mark


def with_value(text: str, where: tuple[str, ...], value: str) -> str:
    """Return a text in which a member has a value; all else stays, byte for byte.

    Args:
        text: an object, strict or with comments; what stands on the way to the member is an object
            too, or absent, and is then made.
        where: the member's keys, at least one.
        value: what it is to be, as JSON.
    """
    plain = strict(text)
    starts = {place.where: place.position for place in places(plain, depth=len(where))}
    if where in starts:
        start, end = _value(plain, starts[where])
        return text[:start] + value + text[end:]
    depth = max(depth for depth in range(len(where)) if depth == 0 or where[:depth] in starts)
    member = value
    for key in reversed(where[depth + 1 :]):
        member = f"{{{json.dumps(key)}: {member}}}"
    member = f"{json.dumps(where[depth])}: {member}"
    around = _value(plain, starts[where[:depth]])[0] if depth else plain.index("{")
    return _with_member(text, plain, around + 1, member)


def without(text: str, where: Where) -> str:
    """Return a text without a member of a list; all else stays, comments beside it too.

    A line on which nothing is left goes as well.

    Args:
        text: strict, or with comments.
        where: the member; it is there.
    """
    plain = strict(text)
    starts = {place.where: place.position for place in places(plain, depth=len(where))}
    start = starts[where]
    end = json.JSONDecoder().raw_decode(plain, start)[1]
    uncommented = _COMMENT.sub(_blank, text)  # here trailing commas are still to be seen
    ahead = uncommented[:start].rstrip()
    comma = len(uncommented) - len(uncommented[end:].lstrip())
    if uncommented[comma] != "," and ahead.endswith(","):
        comma = len(ahead) - 1
        if not text[comma + 1 : start].strip():
            return text[:comma] + text[end:]
    cuts = {(start, end)}
    if uncommented[comma] == ",":
        cuts.add((comma, comma + 1))
    for cut in sorted(cuts, reverse=True):
        text = _cut(text, *cut)
    return text


def _value(plain: str, position: int) -> tuple[int, int]:
    """Return where the value of the key at a position begins and ends."""
    decoder = json.JSONDecoder()
    colon = _COLON.match(plain, decoder.raw_decode(plain, position)[1])
    start = colon.end() if colon else position
    return start, decoder.raw_decode(plain, start)[1]


def _with_member(text: str, plain: str, inside: int, member: str) -> str:
    """Put a member first into an object, laid out as its first one is."""
    first = inside + len(plain[inside:]) - len(plain[inside:].lstrip())
    if plain[first] == "}":
        return text[:inside] + member + text[inside:]
    margin = _MARGIN.search(text[inside:first])
    return text[:first] + f"{member}," + ((margin and margin[0]) or " ") + text[first:]


def _cut(text: str, start: int, end: int) -> str:
    before, after = text[:start], text[end:]
    line = before.rpartition("\n")[2]
    rest = after.partition("\n")[0]
    if not line.strip() and not rest.strip() and "\n" in before and "\n" in after:
        return before[: len(before) - len(line)] + after[len(rest) + 1 :]
    # Blanks on both sides of what is gone were its own.
    return before + (after.lstrip(" \t") if not before[-1:].strip(" \t[") else after)


def _blank(match: re.Match[str]) -> str:
    return match[1] if match[1] is not None else _VISIBLE.sub(" ", match[0])
