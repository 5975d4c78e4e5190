"""Private keys in blocks: between their marks, or as far as they go when a mark is missing.

Marks alone are no key: code and documents name them, too. Lines between are one's only if all of
them are base64; and where they are not, what follows the first mark or leads up to the last is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_journal.secrets.likeness import is_encoded, is_spoken, is_varied
from agent_journal.secrets.views import Span, View

_NAME = r"[ +](?:[A-Z0-9]{1,12}[ +]){0,4}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----"
_BEGIN = re.compile(f"-----BEGIN{_NAME}")
_END = re.compile(f"-----END{_NAME}")
_BLOCK_LIMIT = 64 * 1024
_KEY_LEAST = 40
_LINE_LEAST = 20
_LED_LEAST = 40

_HEADERS = "Proc-Type|DEK-Info|Comment|Version|Hash|Charset|MessageID"
_GUTTER = r"(?:\\{1,4}[nr]|%0[AaDd]|[\s>#|*+\\\"',]){0,24}+"
_KEY_LINE = re.compile(
    rf"{_GUTTER}(?:(?:{_HEADERS}):[^\n\\]{{0,200}}+"
    r"|(?P<encoded>(?:[A-Za-z0-9+/]|%2[BbFf])++(?:=|%3[Dd]){0,2}))"
)
_LINE_END = re.compile(r"[\s\"',;)\\%]|\Z")
_PUTTY = re.compile(r"Private-Lines:[ \t]{0,3}\d{1,3}")

_APART = re.compile(  # what may stand between lines in place of an end
    r"\\{1,16}[nr]|%0[AaDd]|</?(?:br|p|div|span|code|pre)[ ]?/?>"
    r"|&(?:nbsp|quot|\#34|\#39|\#10|\#13|\#x[0Aa]*[ADad]);"
    r"|Proc-Type:\s{0,1}4,ENCRYPTED|DEK-Info:\s?[A-Z0-9-]{3,20}(?:,[0-9A-Fa-f]{16,32})?"
)
_LINE_HEADER = re.compile(rf"\W{{0,24}}(?:{_HEADERS}):")
_CHECKSUM = re.compile(r"\W{0,24}=[A-Za-z0-9+/]{4}\W{0,24}")
_GAP = re.compile(
    r"\W{0,24}(?:snip(?:ped)?|cut|truncated|omitted|redacted|etc)\W{0,24}", re.IGNORECASE
)
_RUN = re.compile(r"[A-Za-z0-9+/]++={0,2}")
_SIGNS = re.compile(r"[+/=]*")
_DIGITS = re.compile(r"\d+")


def key_blocks(view: View) -> Iterator[Span]:
    """Find private keys in blocks, whole ones and such as have no end."""
    text, end, close = view.text, 0, -1
    while (at := text.find("-----BEGIN", end)) >= 0:
        begin = _BEGIN.match(text, at)
        end = at + 1 if begin is None else begin.end()
        if begin is None:
            continue
        if close < end:
            close = found if (found := text.find("-----END", end)) >= 0 else len(text)
        ending = _END.match(text, close) if close - end <= _BLOCK_LIMIT else None
        other = text.find("-----BEGIN", end, close) if ending else -1
        if ending and other < 0:
            lines = view.lines_between(end, close)
            if _is_key([text[one:two] for one, two in lines]):
                end = ending.end()
                yield Span(view.start_of(at), view.end_of(end), "private-key")
                continue
            if start := _key_start(text, lines):
                yield Span(view.start_of(start), view.end_of(ending.end()), "private-key")
        source_end = _key_end(view.source, view.end_of(end))
        if source_end:
            yield Span(view.start_of(at), source_end, "private-key")


def putty_keys(source: str) -> Iterator[Span]:
    """Find the private lines of PuTTY's keys."""
    for found in _PUTTY.finditer(source):
        if end := _key_end(source, found.end()):
            yield Span(found.end(), end, "private-key")


def _is_key(lines: list[str]) -> bool:
    """Tell whether lines are all a key's: base64, with what may stand before, between and after.

    The last may be of any length, and short ones between long ones are no plain words. Something
    else may lead all of them, such as a time or a number.
    """
    lines = [piece for line in lines for piece in _APART.sub("\n", line).split("\n")]
    leads: set[str] = {""}
    body: list[str] = []
    is_word = False
    for line in lines:
        if _is_between(line) or _shape(line) in leads:
            continue
        runs = [run for run in _RUN.finditer(line) if not _SIGNS.fullmatch(run[0])]
        if is_word or not runs:
            return False
        lead = line[: runs[-1].start()]
        if all(len(run[0]) >= _LINE_LEAST for run in runs[:-1]) and _is_bare(line):
            is_word = not is_varied(runs[-1][0])
            body += [run[0] for run in runs]
        elif _shape(lead) in leads:
            body.append(runs[-1][0])
        elif len(runs[-1][0]) >= _LED_LEAST and is_encoded(runs[-1][0]):
            leads.add(_shape(lead))
            body.append(runs[-1][0])
        else:
            return False
    encoded = "".join(body)
    long = sum(len(piece) for piece in body if len(piece) >= _LINE_LEAST)
    return len(encoded) >= _KEY_LEAST and is_encoded(encoded) and 2 * long >= len(encoded)


def _is_between(line: str) -> bool:
    """Tell whether a line is none of the key's own, but may stand among them."""
    return bool(_LINE_HEADER.match(line) or _CHECKSUM.fullmatch(line) or _GAP.fullmatch(line))


def _is_bare(line: str) -> bool:
    """Tell whether nothing but punctuation stands in a line beside base64."""
    return not any(sign.isalnum() or sign == "_" for sign in _RUN.sub("", line))


def _shape(lead: str) -> str:
    """Return what leads a line, whatever the numbers in it are; empty when it is no word."""
    shape = "".join(_DIGITS.sub("0", lead).split())
    return shape if any(map(str.isalnum, shape)) else ""


def _key_start(text: str, lines: list[tuple[int, int]]) -> int:
    """Return where the lines of a key start that lead up to its end; 0 when there are none."""
    first, body = 0, ""
    for start, end in reversed(lines):
        line = text[start:end]
        if not _shape(line) or _is_between(line):
            continue
        runs = [run for run in _RUN.finditer(line) if not _SIGNS.fullmatch(run[0])]
        if len(runs) != 1 or not _is_bare(line) or (body and len(runs[0][0]) < _LINE_LEAST):
            break
        if len(runs[0][0]) >= _LINE_LEAST and not is_varied(runs[0][0]):
            break
        first, body = start + runs[0].start(), runs[0][0] + body
    return first if len(body) >= _KEY_LEAST and is_encoded(body) else 0


def _key_end(source: str, start: int) -> int:
    """Return where the lines of a key end that has no end mark; 0 when there are none."""
    end, size = start, 0
    body: list[str] = []
    while line := _KEY_LINE.match(source, end):
        encoded = line["encoded"]
        if encoded is not None and len(encoded) < _LINE_LEAST:
            if size >= _KEY_LEAST and _is_rest(encoded, source, line.end()):
                end = line.end()
            break
        if encoded is not None:
            if not (is_varied(encoded) or encoded.endswith("=")):
                break
            body.append(encoded)
            size += len(encoded)
        end = line.end()
    return end if size >= _KEY_LEAST and is_encoded("".join(body)) else 0


def _is_rest(encoded: str, source: str, end: int) -> bool:
    """Tell whether a short line is a key's last one, and no word after it."""
    if end == len(source):
        return is_varied(encoded) or encoded.endswith("=")
    return _LINE_END.match(source, end) is not None and (
        encoded.endswith("=") or not is_spoken(encoded)
    )
