"""How text from entries is shown: nothing in it can act on a terminal or pass for our own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1: terminals obey them
    "\u202a-\u202e\u2066-\u2069"  # reorder what stands around them, so that it reads otherwise
    "\U000e0000-\U000e007f"  # invisible letters that a model reads and a person doesn't see
    "\ud800-\udfff"  # no UTF-8 stream can carry them
    "]"
)
_BORDERS = re.compile("[\t\n\u2028\u2029]")
_FENCES = "`~=-"  # several, lest a body made of one of them makes its own fence endless
_FENCE_MINIMUM = 3


def escape_controls(text: str) -> str:
    r"""Return a text with control characters spelled out, as ``\x1b`` or ``\u202e``.

    Tab and newline stay. So do marks that ordinary text in some script or emoji needs, such as
    joiners and left-to-right marks; nothing else is changed, backslashes neither.
    """
    return _CONTROLS.sub(lambda found: _spelled(ord(found[0])), text)


def one_line(text: str, limit: int | None = None) -> str:
    """Return a text as one line: white-space runs made one blank, control characters spelled out.

    Args:
        text: any text, such as a title from a foreign file.
        limit: at most so many characters, at least 3; what is longer ends in ``...``.
    """
    line = escape_controls(" ".join(text.split()))
    return line if limit is None or len(line) <= limit else line[: limit - 3].rstrip() + "..."


def exact_line(text: str) -> str:
    r"""Return a text as one line that keeps every blank of any kind, so that it can be copied.

    Only control characters and line borders are spelled out, as ``\x0a`` or ``\u2028``.
    """
    return _BORDERS.sub(lambda found: _spelled(ord(found[0])), escape_controls(text))


def is_plain(text: str) -> bool:
    """Tell whether a text is shown as it is on one line: without tab, newline and controls."""
    return escape_controls(text) == text and "\n" not in text and "\t" not in text


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the word for so many."""
    return f"{number:,} {one if number == 1 else many}"


def fence(text: str) -> str:
    """Return a run of one character, at least 3, that stands nowhere within a text.

    Put on lines of its own above and below the text, it can't be closed or imitated from inside.
    """
    longest = {
        character: max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)
        for character in _FENCES
    }
    character = min(_FENCES, key=lambda one: max(longest[one], _FENCE_MINIMUM - 1))
    return character * max(_FENCE_MINIMUM, longest[character] + 1)


def head(text: str, limit_bytes: int) -> str:
    """Return a text's beginning that takes at most some bytes of UTF-8 once its controls are shown.

    It ends on a line border; only a first line that is too long by itself is cut, between two
    characters. With at least 10 bytes to fill something always comes of a text that isn't empty.

    Args:
        text: any text, as it is stored.
        limit_bytes: the most that `escape_controls` of the result takes.
    """
    candidate = text[: max(limit_bytes, 0)]
    if len(candidate) == len(text) and _shown_bytes(text) <= limit_bytes:
        return text
    whole_lines = [line + "\n" for line in candidate.split("\n")[:-1]]
    return _fitting(whole_lines, limit_bytes) or _fitting(candidate, limit_bytes)


def _fitting(pieces: Iterable[str], limit_bytes: int) -> str:
    fitting = []
    for piece in pieces:
        limit_bytes -= _shown_bytes(piece)
        if limit_bytes < 0:
            break
        fitting.append(piece)
    return "".join(fitting)


def _shown_bytes(text: str) -> int:
    return len(escape_controls(text).encode())


def _spelled(code: int) -> str:
    if code <= 0xFF:  # noqa: PLR2004 - what two hexadecimal digits hold
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - as above, four
