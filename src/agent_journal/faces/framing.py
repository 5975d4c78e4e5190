"""How text from entries is shown: nothing in it can act on a terminal or pass for our own words."""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1: terminals obey them
    "\u202a-\u202e\u2066-\u2069"  # reorder what stands around them, so that it reads otherwise
    "\U000e0000-\U000e007f"  # invisible letters that a model reads and a person doesn't see
    "\ud800-\udfff"  # no UTF-8 stream can carry them
    "]"
)
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


def fence(text: str, character: str = "`") -> str:
    """Return a run of a character that is longer than any within a text, at least 3.

    Put on lines of its own above and below the text, it can't be closed or imitated from inside.
    """
    runs = re.findall(f"{re.escape(character)}+", text)
    return character * max(_FENCE_MINIMUM, 1 + max(map(len, runs), default=0))


def head(text: str, limit_bytes: int) -> str:
    """Return as much of a text's beginning as fits into some bytes of UTF-8, whole lines if it can.

    A first line that doesn't fit is cut between characters, so that with at least 4 bytes to fill
    something always comes of a text that isn't empty.

    Args:
        text: without lone surrogates, as `escape_controls` returns it.
        limit_bytes: the most that the result takes.
    """
    data = text.encode()
    if len(data) <= limit_bytes:
        return text
    fitting = data[:limit_bytes].decode(errors="ignore")
    whole_lines = fitting.rfind("\n") + 1
    return fitting[:whole_lines] if whole_lines else fitting


def _spelled(code: int) -> str:
    if code <= 0xFF:  # noqa: PLR2004 - what two hexadecimal digits hold
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - as above, four
