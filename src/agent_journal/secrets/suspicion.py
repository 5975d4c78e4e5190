"""What may be a secret though no rule is sure: told to whoever writes, and never masked."""

from __future__ import annotations

import math
import re
from collections import Counter

from agent_journal.secrets.likeness import (
    is_made_up,
    is_mask,
    is_published,
    says_of_a_password,
    stands_for_a_password,
)

_NAMED = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|secret[_-]?key|credentials?)[\"']?[ \t]{0,3}(?:=>|:=|[:=])[ \t]{0,3}"
    r"(?:\"(?P<double>[^\s\"]{6,200})\"|'(?P<single>[^\s']{6,200})'|(?P<bare>[^\s\"',;)}\]`]{6,200}))",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"\bBearer[ \t]{1,3}(?P<bearer>[A-Za-z0-9._~+/-]{20,400})"
    r"|\s(?:-u|--user)[ =]\"?(?P<user>[A-Za-z0-9._@-]{1,60}):(?P<login>[^\s\"':]{6,100})"
    r"|\blogin[ \t]\S{1,60}[ \t]password[ \t](?P<netrc>\S{6,100})"
)
_RANDOM = re.compile(r"(?<![\w+/=.:-])[A-Za-z0-9+/_-]{32,128}={0,2}(?![\w+/=.-])")
_KNOWN = re.compile(r"sha\d{1,3}-|MI[A-Z]|AAAA|eyJ|LS0tLS1C|iVBOR|R0lGOD|/9j/|UklGR|PHN2Z|d09GM")
"""How hashes, certificates, public keys, JSON, images and fonts begin in base64."""

_LINE_LEAST = 60
_CODE = re.compile(r"[$(<{/.~]|https?:|[A-Za-z_][\w.]*[(\[]|[a-z]+\.[a-z_.]+\Z", re.IGNORECASE)
_HEX_OR_WORD = re.compile(r"[0-9a-fA-F-]+|[A-Z0-9_]+|[a-z0-9_-]+")
_PIECE = re.compile(r"[A-Za-z0-9+]+")
_PIECE_LEAST = 24
_WORD = re.compile(r"[A-Z]?[a-z]{2,}")
_WORDS_SHARE = 0.7
_DIGITS_LEAST = 3
_BITS_LEAST = 4.2


def suspect(text: str) -> dict[str, int]:
    """Return how many of each kind of thing in a text may be a secret."""
    counts: Counter[str] = Counter()
    for found in _NAMED.finditer(text):
        value = found["double"] or found["single"] or found["bare"]
        counts["named-secret"] += _is_value(value)
    for found in _SENT.finditer(text):
        value = found["bearer"] or found["login"] or found["netrc"]
        counts["sent-secret"] += _is_value(value, found["user"] or "")
    for found in _RANDOM.finditer(text):
        counts["random-text"] += not _is_line(text, found) and _is_random(found[0])
    return {kind: count for kind, count in counts.items() if count}


def _is_value(value: str, user: str = "") -> bool:
    if is_mask(value) or stands_for_a_password(value, user) or says_of_a_password(value):
        return False
    if _CODE.match(value):
        return False
    has_digit = any(character.isdigit() for character in value)
    return has_digit and any(map(str.isalpha, value)) and not is_made_up(value)


def _is_line(text: str, found: re.Match[str]) -> bool:
    """Tell whether a run is one of the lines into which large things are cut."""
    start, end = found.span()
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    return end - start >= _LINE_LEAST and before in ("", "\n") and after in ("", "\n")


def _is_random(run: str) -> bool:
    if _KNOWN.match(run) or is_published(run) or _HEX_OR_WORD.fullmatch(run) or is_made_up(run):
        return False
    if max(map(len, _PIECE.findall(run))) < _PIECE_LEAST:  # a path, or words
        return False
    words = "".join(_WORD.findall(run))
    if len(words) >= _WORDS_SHARE * len(run) or sum(map(str.isdigit, run)) < _DIGITS_LEAST:
        return False
    return _bits(run) >= _BITS_LEAST


def _bits(text: str) -> float:
    """Return a text's entropy in bits per character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
