"""What tells a secret from what stands for one: placeholders, samples, words, patterns."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

_STAND_INS = re.compile(  # short words in one case only: in both they come by chance
    r"(?i:example|sample|dummy|placeholder|redacted|masked|censored|hidden|removed|insert|replace|"
    r"changeme|change_me|not_?a?_?real)|your|Your|YOUR|xxxx|XXXX|\*\*\*|\.\.\."
)
_LOOKED_AT = 512
_PUBLISHED = frozenset(
    {
        "2cafc0970149a84f",  # Stripe's test keys
        "f2d6ca16515033e5",
        "0011cc25eb432071",  # the storage emulator's
        "8d4ef6536dc8895f",  # the web token of RFC 7519
        "cf4d418ed3de92d7",  # Aladdin's, of RFC 7617
        "ca7459e2b26776de",  # the client's of RFC 6749
    }
)
_PERIODS = range(1, 11)
_KINDS_OF_CHARACTER = 7
_STEPS = 0.4
_BASE64_LEAST = 12
_WORDS = re.compile(r"[A-Z]?[a-z]{2,}")
_WORDS_SHARE = 0.7
_DRAWN_LEAST = 8
_SPOKEN = re.compile(r"[A-Z]?[a-z]{2,}|[0-9]{3,}")
_MUTE = re.compile(r"^[^aeiouyAEIOUY0-9]+$|[^aeiouyAEIOUY0-9]{4}|^[A-Za-z]{2}$")
_SPOKEN_SHARE = 0.5
_CHANGE = re.compile(r"(?<=[a-z])[^a-z]|(?<=[A-Z])[^A-Za-z]|(?<=[^A-Za-z])[A-Za-z]")
_CHANGES_SHARE = 0.25
_MASK = re.compile(r"\[masked:[a-z0-9-]+\]")
_STANDS_FOR_A_PASSWORD = re.compile(
    r"""
      \$(?:(?-i:[A-Z_][A-Z0-9_]*|[a-z_]+)|\d|[a-z_]*(?:pass|pw|secret|token|key|cred)[a-z_]*
        |[a-z_]\w*(?:->.*|\[.*\]|\.[a-z_]\w*))               # a variable
    | .*(?:\$\{[^{}]*\}|\$\([^()]*\)|%\([^()]*\)[a-z]|\{\{.*\}\}|\{[a-z_][\w.\[\]()!:]*\}).*
    | %(?:[sdv@]|(?-i:[A-Z_][A-Z0-9_]*)%)                       # templates
    | \{[^{}]*\} | \[[^\[\]]*\] | <[^<>]*> | \([^()]*\) | [\[<(](?:masked:)?[a-z_. -]*
    | ([x.*#%\u2022\u2026_-])\1* | .*\*{3}.*                  # xxxx, ****, ....
    | (?:my|the|db|your|some|user|app|admin|root|test)?[-_.]?
      (?:p|pw|pwd|pass|passwd|passwort|password|passphrase|secret|token|key|apikey|creds?
        |credentials|string|value)\d?
    | (?:your|my|insert|enter|replace|change|example|sample|dummy|placeholder|redacted|some)
      (?:[-_. ()!]{0,3}(?:your|my|the|new|own|real|actual|strong|secure|super|secret|db|database
        |user|admin|root|access|personal|api|auth|app|git|github|bot|me|this|it|here|in|with|to|password
        |passwd|passphrase|pass|pwd|pw|token|key|value|string|credentials?|creds|pat|now)){0,6}\d{0,3}
    | foo|bar|baz|qux|x{2,}|none|null|undefined|true|false|user|username|login|name|host|port
    | repo|repository|ref|sha|path
    | .*(?:example|redacted|placeholder|changeme|change_me|change-me|\.\.\.|\u2026).*
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_STATES = re.compile(
    r"required|optional|hidden|visible|shown?|hide|reset|forgot(?:ten)?|change[ds]?|updated?|new|old"
    r"|(?:in)?valid|wrong|(?:in)?correct|missing|empty|blank|expired|(?:un)?set|yes|no|on|off|prompt"
    r"|ask|text|plain(?:text)?|hashed|encrypted|md5|sha\d{1,3}|bcrypt|argon2(?:id?)?|scrypt|disabled"
    r"|enabled|default|success|fail(?:ed|ure)?|error",
    re.IGNORECASE,
)
_QUOTED = re.compile("%([0-9A-Fa-f]{2})")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:/[\w.@+-]*)+")


def is_published(text: str) -> bool:
    """Tell whether a text is a credential that its issuer's own documentation shows to everybody.

    Their hashes are kept, lest we publish them once more.
    """
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16] in _PUBLISHED


def is_mask(text: str) -> bool:
    """Tell whether a text is a mask of ours."""
    return _MASK.fullmatch(text) is not None


def is_made_up(body: str) -> bool:
    """Tell whether the variable part of a token was written by hand: to stand for one, or in words.

    Issuers draw theirs at random, so that few different characters, repetition, alphabetical order
    and plain lower-case words don't come by chance.
    """
    body = body[:_LOOKED_AT]
    if _STAND_INS.search(body) or len(set(body)) < min(_KINDS_OF_CHARACTER, len(body)):
        return True
    if not any(character.isdigit() or character.isupper() for character in body):
        return True
    if any(len(body) > 2 * period and body[:-period] == body[period:] for period in _PERIODS):
        return True
    steps = sum(ord(b) - ord(a) == 1 for a, b in pairwise(body))
    return steps >= _STEPS * len(body)


def is_varied(piece: str) -> bool:
    """Tell whether a line can be the rest of a wrapped token rather than a word of its own."""
    if any(character.isdigit() for character in piece):
        return True
    return re.search("[a-z][A-Z]|[A-Z]{2}[a-z]", piece) is not None


def is_encoded(text: str) -> bool:
    """Tell whether letters and digits are something in base64, and not words, a path or a number.

    Both cases are in any 40 characters of it, and hardly ever do they read as words.
    """
    text = text[:_LOOKED_AT]
    if text.upper() == text or text.lower() == text or len(set(text)) < _BASE64_LEAST:
        return False
    return sum(map(len, _WORDS.findall(text))) < _WORDS_SHARE * len(text)


def is_drawn(piece: str) -> bool:
    """Tell whether a line of its own was drawn at random, as far as a few characters tell.

    It is not when it is a word, several with a number, a number, or an identifier in hexadecimal.
    Nine of ten that are drawn are told so from 16 characters on, three of four that have eight.
    """
    changes = len(_CHANGE.findall(piece))
    return not is_spoken(piece, _SPOKEN_SHARE) and changes >= _CHANGES_SHARE * len(piece)


def is_spoken(piece: str, share: float = 0.6) -> bool:
    """Tell whether a line of its own has a share of words and numbers, or is too short to tell."""
    if len(piece) < _DRAWN_LEAST or piece.upper() == piece or piece.lower() == piece:
        return True
    spoken = sum(len(word) for word in _SPOKEN.findall(piece) if not _MUTE.search(word))
    return spoken >= share * len(piece)


def stands_for_a_password(text: str, user: str = "") -> bool:
    """Tell whether what stands for a password in a URL or after its name is no password.

    So it is with templates, masks, the word itself, and defaults that repeat the user's name.
    """
    spelled = _unquoted(text)
    return text == user or any(
        _STANDS_FOR_A_PASSWORD.fullmatch(each) is not None for each in {text, spelled}
    )


def says_of_a_password(text: str) -> bool:
    """Tell whether a parameter that is named for a password holds a path or how it is with one."""
    text = _unquoted(text)
    if _PATH.fullmatch(text):
        return not any(map(is_drawn, text.split("/")))
    return _STATES.fullmatch(text) is not None


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda found: chr(int(found[1], 16)), text)
