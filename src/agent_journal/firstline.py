"""The first line of a body that says something, which stands for a title where there is none."""

from __future__ import annotations

import re

_BORDERS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # as `str.splitlines` knows them
_BORDER = re.compile(f"[{_BORDERS}]")
_SAYING = re.compile(r"[^\W_]")  # what `str.isalnum` takes


def first_line(body: str, limit: int) -> str:
    """Return the first line that holds a letter or a digit, without blanks and ``#`` before it.

    Args:
        body: may be of any size, and of nothing but signs.
        limit: at most so many characters of it.

    Returns:
        An empty string when there is no such line.
    """
    found = _SAYING.search(body)
    if not found:
        return ""
    start = max(body.rfind(border, 0, found.start()) for border in _BORDERS) + 1
    border = _BORDER.search(body, found.end())
    line = body[start : border.start() if border else len(body)]
    return line.strip().lstrip("#").strip()[:limit]
