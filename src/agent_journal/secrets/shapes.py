"""Secrets that are known by how they are built: signed tokens, and passwords in URLs."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterator

from agent_journal.secrets.likeness import is_mask, says_of_a_password, stands_for_a_password
from agent_journal.secrets.views import Span, View
from agent_journal.secrets.wrapping import wrapped_end

_HEADER_LIMIT = 4096
_TRIES = 8
_TOKEN_LEAST = 20
_SAMPLE_PAYLOAD = "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l"  # John Doe of the tutorials
_HEADER_MARKS = ("eyJ", "eyA", "ewo", "ew0K")
"""How an object begins in base64: with its first name, a blank or a line's end."""

_OBJECT = re.compile(rb'\{\s{0,9}"')
_RSA = (342, 512, 683)
_LAST_LENGTHS = {  # of the signature by its algorithm, or of the check by the encryption
    "HS256": (43,), "HS384": (64,), "HS512": (86,), "ES256": (86,), "ES384": (128,),
    "ES512": (176,), "EdDSA": (86, 152), "RS256": _RSA, "RS384": _RSA, "RS512": _RSA,
    "PS256": _RSA, "PS384": _RSA, "PS512": _RSA, "A128GCM": (22,), "A192GCM": (22,),
    "A256GCM": (22,), "A128CBC-HS256": (22,), "A192CBC-HS384": (32,), "A256CBC-HS512": (43,),
}  # fmt: skip
_SEGMENT = re.compile(r"[A-Za-z0-9_-]*+")
_SEGMENT_START = re.compile(r"[A-Za-z0-9_-]")

_AUTHORITY = re.compile(r"[^\s/?#\"'<>`\\]{0,600}")
_TEMPLATE = re.compile(r"[\[{<]")
_HOST = re.compile(r"(?!sha\d+:|\d+(?:\.\d+){0,2}\Z)[\w.\-\[\]:,$%{}()]+")
_DOCUMENTATION = re.compile(r"(?i)(?:^|\.)example(?:\.com|\.net|\.org)?(?::\d+)?$")
_PASSWORD_LEAST = 4
_PORT = re.compile(r"\d{1,5}[)\]},;]")
_PARAMETER = re.compile(
    r"[?&;](?:password|passwd|pwd|passphrase)=([^\s\"'<>&;#`\\)\]]{1,300})", re.IGNORECASE
)
_QUERY_LIMIT = 2000
_BASIC = re.compile(r"\bBasic[ \t+]{1,4}([A-Za-z0-9+/]{8,512}={0,2})", re.IGNORECASE)


def signed_tokens(view: View) -> Iterator[Span]:
    """Find JSON web tokens: those whose header can be read."""
    for mark in _HEADER_MARKS:
        yield from _tokens_from(view, mark)


def _tokens_from(view: View, mark: str) -> Iterator[Span]:
    text, segment_end, tries, end = view.text, -1, 0, 0
    at = text.find(mark)
    while at >= 0:
        if at >= segment_end:
            segment_end, tries = _segment_end(text, at), 0
        far = segment_end - at > _HEADER_LIMIT
        if not far and tries < _TRIES and at >= end:
            tries += 1
            if token_end := _token_end(view, at, segment_end):
                end = token_end
                yield Span(view.start_of(at), view.end_of(end), "json-web-token")
        at = text.find(mark, max(at + 3, segment_end - _HEADER_LIMIT if far else 0, end))


def url_passwords(view: View) -> Iterator[Span]:
    """Find passwords before the host of a URL, and among its parameters."""
    text = view.text
    at = text.find("://")
    while at >= 0:
        start = at + 3
        authority = _AUTHORITY.match(text, start)
        part = authority[0] if authority else ""
        userinfo, _, host = part.rpartition("@")
        user, _, password = userinfo.partition(":")
        is_url = at > 0 and text[at - 1].isalnum() and not _TEMPLATE.search(user)
        is_real = _HOST.match(host) and not _DOCUMENTATION.search(host)
        if is_url and is_real and _is_password(password, user):
            first = start + len(user) + 1
            last = start + len(userinfo)
            yield Span(view.start_of(first), view.end_of(last), "url-password")
        at = text.find("://", start)
    for found in _PARAMETER.finditer(text):
        before = text[max(found.start() - _QUERY_LIMIT, 0) : found.start()]
        parts = before.rpartition("://")
        if parts[1] and not re.search(r"\s", parts[2]) and _is_parameter(found[1]):
            yield Span(view.start_of(found.start(1)), view.end_of(found.end(1)), "url-password")


def basic_credentials(view: View) -> Iterator[Span]:
    """Find names and passwords as HTTP sends them: ``Basic`` and base64."""
    for found in _BASIC.finditer(view.text):
        if _is_login(found[1]):
            yield Span(
                view.start_of(found.start(1)), view.end_of(found.end(1)), "basic-credentials"
            )


def _segment_end(text: str, start: int) -> int:
    found = _SEGMENT.match(text, start)
    return found.end() if found else start


def _token_end(view: View, start: int, header_end: int) -> int:
    """Return where a token ends whose header is given; 0 when it is none."""
    text, part = view.text, header_end + 1
    header = _read(text[start:header_end]) if text.startswith(".", header_end) else {}
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or text.startswith(_SAMPLE_PAYLOAD, part):
        return 0
    encryption = header.get("enc")
    end = _segment_end(text, part)
    line_end = view.next_break(part, end)
    if line_end < end and _read(text[part:line_end]):
        return line_end  # without a signature; what follows is a line of its own
    for number in range(3):  # an encrypted one has five parts, a signed one three
        is_whole = number and not encryption and view.next_break(part, end + 1) <= end
        if is_whole or text[end : end + 1] != "." or not _SEGMENT_START.match(text, end + 1):
            break
        part, end = end + 1, _segment_end(text, end + 1)
    lengths = _LAST_LENGTHS.get(str(encryption or algorithm), ())
    end = wrapped_end(view, start, part, _SEGMENT, [part + length for length in lengths])
    return end if end - header_end >= _TOKEN_LEAST else 0


def _read(segment: str) -> dict[str, object]:
    """Return what a part of a token says; empty when it says nothing that can be read."""
    try:
        decoded = binascii.a2b_base64(segment.translate(_STANDARD) + "=" * (-len(segment) % 4))
        read = json.loads(decoded) if _OBJECT.match(decoded) else None
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _is_password(password: str, user: str = "") -> bool:
    if len(password) < _PASSWORD_LEAST or is_mask(password) or _PORT.match(password):
        return False
    return not stands_for_a_password(password, user)


def _is_parameter(password: str) -> bool:
    return _is_password(password) and not says_of_a_password(password)


def _is_login(encoded: str) -> bool:
    try:
        text = binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return False
    user, colon, password = text.partition(":")
    return bool(colon and text.isprintable()) and _is_password(password, user)


_STANDARD = str.maketrans("-_", "+/")
