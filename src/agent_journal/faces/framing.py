"""How text from entries is shown: nothing in it can act on a terminal or pass for our own words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

_NEVER_SHOWN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and newline, DEL, C1: terminals obey them
    "\u202a-\u202e\u2066-\u2069"  # reorder what stands around them, so that it reads otherwise
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # letters that a model reads and nobody sees
    "\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters that look like nothing at all
    "\u2061-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb"  # signs for programs, not for readers
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\ud800-\udfff"  # no UTF-8 stream can carry them
)
_MARKS = "\u061c\u200e\u200f"  # settle the direction of what stands beside them, and no more
_JOINERS = "\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060\ufe00-\ufe0f"
_VARIANTS = "\U000e0100-\U000e01ef"
_BLANKS = "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_UNSEEN = _MARKS + _JOINERS + _VARIANTS
_FLAGS = "|".join(  # those of England, Scotland and Wales are spelled in such letters
    "".join(chr(0xE0000 + ord(letter)) for letter in f"gb{part}\x7f")
    for part in ("eng", "sct", "wls")
)
_NEEDED = "|".join(
    (
        # after what can be seen and isn't ASCII: one of them, or two as in a heart on fire
        f"(?<=[^\x00-\xa0{_BLANKS}{_NEVER_SHOWN}{_UNSEEN}])(?:[\ufe0e\ufe0f]\u200d|[{_JOINERS}])",
        "(?<=[0-9#*])[\ufe0e\ufe0f]",  # keycaps
        f"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af])[{_VARIANTS}]",  # of ideographs
        f"(?<![{_UNSEEN}])[{_MARKS}]",
        f"(?<=\U0001f3f4)(?:{_FLAGS})",
    )
)
_ASCII_CONTROLS = "".join(map(chr, (*range(9), *range(0x0B, 0x20), 0x7F)))
_PLAIN_BORDERS = str.maketrans("", "", "\t\n")
_REACH = 2
"""So many characters before one decide whether it is kept."""

_BORDERS = re.compile("[\t\n\u2028\u2029]")
_FENCES = "`~=-"  # several, lest a body made of one of them makes its own fence endless
_RULES = "-=~`"
_RULE_MINIMUM = 40
_FENCE_MINIMUM = 3


def escape_controls(text: str) -> str:
    r"""Return a text with what acts or hides in it spelled out, as ``\x1b`` or ``\u202e``.

    Control characters are, but for tab and newline, and what reorders text; and all that can't be
    seen, where no script and no emoji needs it: in runs, which can spell a text of their own, and
    after ASCII, where it only splits words. Nothing else is changed, backslashes neither.
    """
    if text.isascii() and text.translate(_PLAIN_BORDERS).isprintable():
        return text
    if text.isascii():  # what stands around them doesn't matter, and there may be millions of them
        for control in _ASCII_CONTROLS:
            text = text.replace(control, _spelled(ord(control)))
        return text
    return _hidden().sub(lambda found: found["needed"] or found[0].translate(_SPELLED), text)


@cache
def _hidden() -> re.Pattern[str]:
    """Match what is needed, else a run of what isn't: only a run's first sign can be needed."""
    return re.compile(
        f"(?=[{_NEVER_SHOWN}{_UNSEEN}])(?:(?P<needed>{_NEEDED})|[{_NEVER_SHOWN}]+|[{_UNSEEN}]+)"
    )


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
    return _border([text], _FENCES, _FENCE_MINIMUM)


def rule(texts: Iterable[str]) -> str:
    """Return a run of one character, at least 40, that stands nowhere within some texts.

    Put on lines of its own between them, it can't be imitated by any of them.
    """
    return _border(list(texts), _RULES, _RULE_MINIMUM)


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


def _border(texts: Collection[str], characters: str, minimum: int) -> str:
    longest = {
        character: max(
            (len(run) for text in texts for run in re.findall(f"{re.escape(character)}+", text)),
            default=0,
        )
        for character in characters
    }
    character = min(characters, key=lambda one: max(longest[one], minimum - 1))
    return character * max(minimum, longest[character] + 1)


def _fitting(pieces: Iterable[str], limit_bytes: int) -> str:
    fitting: list[str] = []
    for piece in pieces:
        before = "".join(fitting[-_REACH:])[-_REACH:]
        limit_bytes -= _shown_bytes(before + piece) - _shown_bytes(before)
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


class _Spellings(dict[int, str]):
    """How characters are spelled out, as `str.translate` looks it up; each is made once."""

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, _spelled(code))


_SPELLED = _Spellings()
