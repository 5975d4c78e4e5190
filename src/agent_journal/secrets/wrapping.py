"""How far a token goes that may be wrapped: over a line's end only if it is evident.

A line right after a token is mostly something else: a word, an identifier, a name with a number.
It is a part of the token if the token has a known length and only so comes to it; or if the lines
are as long as one another; or if it looks drawn at random and the line before is as wide as texts
are wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agent_journal.secrets.likeness import is_drawn, is_spoken, is_varied
from agent_journal.secrets.views import View

_WIDTH_LEAST = 40
_WIDTHS = frozenset(
    (40, 48, 50, 60, 64, 70, 72, 74, 75, 76, 77, 78, 79, 80, 90, 96, 98, 99, 100, 110, 118, 119,
     120, 128, 132, 140, 160)
)  # fmt: skip
_LONG = 24
"""A line of so many characters that look drawn goes on a token whatever the width is."""

_LOOKED_AHEAD = 4
_NAMED = re.compile(r"[a-z]{2,9}[_-]")
_HEX = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")


def wrapped_end(
    view: View, start: int, end: int, run: re.Pattern[str], whole: Collection[int] = ()
) -> int:
    """Return where a token ends that goes on to `end` at least, further as far as it is wrapped.

    Args:
        view: where it stands.
        start: where it starts.
        end: what surely belongs to it ends here.
        run: matches any number of its characters.
        whole: where it ends if it has one of the lengths that its kind has.
    """
    text = view.text
    while True:
        stop = view.next_break(end, len(text))
        if (found := run.match(text, end, stop)) is not None:
            end = found.end()
        if end < stop or stop == len(text) or end in whole:
            return end
        line_end = view.next_break(stop + 1, len(text))
        more = run.match(text, stop, line_end)
        piece = more[0] if more else ""
        if not piece or not _ends_line(text, stop + len(piece), line_end):
            return end
        if stop + len(piece.rstrip(".,")) not in whole and not _goes_on(view, start, stop, piece):
            return end
        end = stop + len(piece)


def _goes_on(view: View, start: int, stop: int, piece: str) -> bool:
    """Tell whether the line after a break is evidently more of the token that starts before it."""
    width = _width(view, stop)
    if width < _WIDTH_LEAST or len(piece) > width or _HEX.fullmatch(piece):
        return False
    first = view.next_break(start, stop)
    if first < stop:
        second = view.next_break(first + 1, stop)
        if stop - view.last_break(start, stop) < second - first:
            return False  # it ended in a line shorter than the one before
        if second < stop or second - first == _width(view, first):
            return is_varied(piece) if len(piece) == width else not is_spoken(piece)
    if len(piece) == width:
        return is_varied(piece) and not is_spoken(piece)
    return (len(piece) >= _LONG or width in _WIDTHS) and (
        is_drawn(piece) and not _NAMED.match(piece)
    )


def _width(view: View, stop: int) -> int:
    """Return how wide the line is that ends at a break, but for its indent."""
    begin = view.last_break(0, stop)
    return stop - max(begin, view.text.rfind("\n", begin, stop) + 1)


def _ends_line(text: str, position: int, line_end: int) -> bool:
    """Tell whether a line ends here but for some punctuation, as far as a few characters tell."""
    rest = text[position : min(line_end, position + _LOOKED_AHEAD)].partition("\n")[0]
    return not any(character.isalnum() or character == " " for character in rest)
