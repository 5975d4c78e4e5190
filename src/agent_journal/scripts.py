"""What the world's scripts ask of a search: which characters make words, and which differ in vain.

The patterns for scripts beyond Latin take 15 ms to compile, so that happens when one is first seen.
"""

# ruff: noqa: RUF001 - look-alike letters are the matter here
from __future__ import annotations

import re
import unicodedata
from functools import cache

# Han, kana and bopomofo; Thai; Lao; Myanmar; Khmer: written without blanks between words.
_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSPACED = (
    f"{_HAN}\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u3100-\u312f\u31f0-\u31ff"
    f"\uff66-\uff9f{_SOUTH_EAST}"
)
# Scripts whose words are glued to names in other ones: "moment.js를", "הAPI".
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"
_SEMITIC = (
    "\u05d0-\u05f2\u0620-\u064a\u0660-\u06ff\u0750-\u077f\u08a0-\u08c9\ufb1d-\ufdfb\ufe70-\ufefc"
)
# Marks that belong to a word although they are no letters (``\w`` lacks them).
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7"
    "\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70-\u0a75\u0a81-\u0a83\u0abc-\u0acd\u0ae2\u0ae3"
    "\u0b01-\u0b03\u0b3c-\u0b57\u0b62\u0b63\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c62"
    "\u0c63\u0c81-\u0c83\u0cbc-\u0cd6\u0ce2\u0ce3\u0d00-\u0d03\u0d3b-\u0d57\u0d62\u0d63"
    "\u0d82\u0d83\u0dca-\u0ddf\u0df2\u0df3\u0f71-\u0f84\u0f8d-\u0fbc\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20f0\ufe20-\ufe2f\u00ad\u200c\u200d"
)
_PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
_JOINERS = r".\-/\\:@'’"
# What may follow the name of a language: C++, C#.
_SIGNS = r"(?:\+\+(?!\w)|(?<=\b[A-Za-z])\#(?!\w))?"
_PLAIN_CHUNK = re.compile(rf"\w++(?:[{_JOINERS}]++\w++)*+{_SIGNS}")
# Everything outside these blocks is plain: one word character like another, and no marks.
_NOT_PLAIN = re.compile("[^\0-\u00ac\u00ae-\u02ff\u2000-\u200b\u200e-\u20cf\u2100-\u25ff]")
# Optional marks: Latin, Greek and Cyrillic diacritics, Hebrew points, Arabic vowel signs.
_OPTIONAL = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u00ad\u200c\u200d]+"
)
_SPELLINGS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i"}
    | {"\u0649": "\u064a", "\u0629": "\u0647", "\u06cc": "\u064a", "\u06a9": "\u0643", "’": "'"}
)
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")


def fold(text: str) -> str:
    """Return text without the differences that a search overlooks.

    Those are compatibility forms, case, the diacritics of Latin, Greek and Cyrillic, Hebrew points,
    Arabic vowel signs, and the script of digits. Marks that carry meaning stay.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _OPTIONAL.sub("", unicodedata.normalize("NFD", folded)).translate(_SPELLINGS)
    folded = unicodedata.normalize("NFC", folded)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0], digit[0])), folded)


def chunks_in(text: str) -> re.Pattern[str]:
    """Return the pattern that finds a text's chunks.

    A chunk is a run of characters of one kind: of a script without word borders; of Hangul; a word
    or an identifier with all its parts, such as a path; a picture. Names end where a word begins
    that is glued to them, as Korean particles and Semitic articles are.
    """
    return _chunk() if _NOT_PLAIN.search(text) else _PLAIN_CHUNK


def is_unspaced(chunk: str) -> bool:
    """Tell whether a chunk is of a script without word borders: Han, kana, Thai, Lao, ..."""
    return not chunk.isascii() and _unspaced().match(chunk) is not None


def han_characters(run: str) -> list[str]:
    """Return the Han characters of a run, each of which may be a word of its own."""
    return _han().findall(run)


@cache
def _chunk() -> re.Pattern[str]:
    semitic = rf"[{_SEMITIC}{_MARKS}]"
    letter = rf"(?:[^\W{_UNSPACED}{_HANGUL}{_SEMITIC}]|[{_MARKS}])"
    semitic_word, word = (rf"{one}++(?:[{_JOINERS}]++{one}++)*+" for one in (semitic, letter))
    return re.compile(
        rf"[{_UNSPACED}]++|[{_HANGUL}]++|(?=[{_SEMITIC}]){semitic_word}|{word}{_SIGNS}|[{_PICTURES}]"
    )


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


@cache
def _han() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}]")
