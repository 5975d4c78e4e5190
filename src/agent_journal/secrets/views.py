"""Text as secrets are looked for in it: unwrapped, unescaped, and mapped back to the original."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_BREAK = r"(?P<line>\\?(?:\r\n?|\n)[ \t]*+(?![\r\n]))"
_UNSEEN = (
    "(?P<unseen>[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
    r"|\x1b\[[0-9;:]*+[A-Za-z]|\x1b[()][A-Za-z0-9])"
)
_ESCAPE = r"(?P<escape>%[0-9A-Fa-f]{2}|\\{1,4}(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt\"'/]))"
_WHOLE_LINES = re.compile(_UNSEEN)
_JOINED_LINES = re.compile(f"{_BREAK}|{_UNSEEN}")
_UNESCAPED_LINES = re.compile(f"{_UNSEEN}|{_ESCAPE}")
_UNESCAPED = re.compile(f"{_BREAK}|{_UNSEEN}|{_ESCAPE}")
_ESCAPES = re.compile(_ESCAPE)
_ESCAPE_BEFORE = re.compile(
    r"(?:%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[abefnrtv0]|\x1b\[[0-9;:]{0,9}m"
    r"|\x1b[()]\w)\Z"
)
_ESCAPE_LENGTH = 12
_NAMED = {"n": "\n", "r": "\n", "t": "\t"}


class Span(NamedTuple):
    """A part of a text that is secret: from `start` up to, but without, `end`."""

    start: int
    end: int
    kind: str


class View:
    """A text without line breaks and other things that split a secret, and the way back.

    Attributes:
        text: what is searched.
        source: what it was made from.
        breaks: where in `text` a line break was taken out, in order.
    """

    def __init__(self, source: str, folded: re.Pattern[str], *, joins: bool) -> None:
        pieces: list[str] = []
        self.source = source
        self.breaks: list[int] = []
        self._at = [0]  # where each stretch begins in `text` ...
        self._from = [0]  # ... and in the source ...
        self._width = [1]  # ... and how much source each of its characters takes
        length = end = 0
        for found in folded.finditer(source):
            start = found.start()
            pieces.append(source[end:start])
            length += start - end
            end = found.end()
            meant = _meant(found)
            if meant == "\n" and joins:
                self.breaks.append(length)
            elif meant:
                pieces.append(meant)
                self._stretch(length, start, end - start)
                length += 1
            self._stretch(length, end, 1)
        pieces.append(source[end:])
        self.text = "".join(pieces)

    def start_of(self, position: int) -> int:
        """Return where in the source a character of the view starts."""
        stretch = bisect_right(self._at, position) - 1
        return self._from[stretch] + position - self._at[stretch]

    def end_of(self, position: int) -> int:
        """Return where in the source the character before a position of the view ends."""
        stretch = bisect_right(self._at, position - 1) - 1
        return self._from[stretch] + position - 1 - self._at[stretch] + self._width[stretch]

    def next_break(self, position: int, end: int) -> int:
        """Return the first place from `position` on where a break was taken out, at most `end`."""
        number = bisect_left(self.breaks, position)
        return min(self.breaks[number], end) if number < len(self.breaks) else end

    def last_break(self, start: int, position: int) -> int:
        """Return the last place before `position` where a break was taken out, at least `start`."""
        number = bisect_left(self.breaks, position)
        return max(self.breaks[number - 1], start) if number else start

    def lines_between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return where the lines of a part of the view start and end, as the source has them."""
        text = self.text
        ends = self.breaks[bisect_left(self.breaks, start) : bisect_right(self.breaks, end)]
        at = text.find("\n", start, end)
        while at >= 0:
            ends.append(at)
            at = text.find("\n", at + 1, end)
        ends.sort()
        return list(zip([start, *ends], [*ends, end], strict=True))

    def _stretch(self, at: int, origin: int, width: int) -> None:
        self._at.append(at)
        self._from.append(origin)
        self._width.append(width)


def lines(source: str) -> Iterator[View]:
    r"""Yield a text without what can't be seen, and if it holds escapes, also with these undone.

    Both, since what looks like an escape may be none, as in the path ``C:\new``.
    """
    yield View(source, _WHOLE_LINES, joins=False)
    if _ESCAPES.search(source):
        yield View(source, _UNESCAPED_LINES, joins=False)


def joined(source: str) -> Iterator[View]:
    """Yield the same with line breaks taken out, too, but for those around empty lines."""
    yield View(source, _JOINED_LINES, joins=True)
    if _ESCAPES.search(source):
        yield View(source, _UNESCAPED, joins=True)


def follows_escape(source: str, position: int) -> bool:
    r"""Tell whether an escape ends at a position, such as ``\n`` in JSON or ``%3D`` in a URL."""
    return bool(_ESCAPE_BEFORE.search(source[max(position - _ESCAPE_LENGTH, 0) : position]))


def _meant(found: re.Match[str]) -> str:
    """Return the character that something stands for; a line's end for breaks, nothing if none."""
    if found.lastgroup == "line":
        return "\n"
    if found.lastgroup == "unseen":
        return ""
    escape = found[0].lstrip("\\")
    if escape[0] in "%ux" and len(escape) > 1:
        character = chr(int(escape[1:], 16))
        return "\n" if character == "\r" else character
    return _NAMED.get(escape, escape)
