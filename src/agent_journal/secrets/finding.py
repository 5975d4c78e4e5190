"""Where the secrets of a text are, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent_journal.secrets.blocks import key_blocks, putty_keys
from agent_journal.secrets.likeness import is_made_up, is_published
from agent_journal.secrets.rules import (
    PATTERNS,
    RULES,
    Rule,
    forms,
    is_credible,
)
from agent_journal.secrets.shapes import (
    basic_credentials,
    signed_tokens,
    url_passwords,
)
from agent_journal.secrets.views import Span, View, follows_escape, joined, lines
from agent_journal.secrets.wrapping import wrapped_end

_ROUNDS = 8  # what is masked may leave something that is a token by itself, now that it ends there
_WITHIN_BLOB = re.compile(r"[A-Za-z0-9_+/-]{65}")


def mask(text: str) -> tuple[str, dict[str, int]]:
    """Return a text with its secrets masked as ``[masked:kind]``, and how many of each kind.

    Every other character stays as it is, and masking the result changes nothing.
    """
    counts: dict[str, int] = {}
    for _ in range(_ROUNDS):
        found = find(text)
        if not found:
            break
        pieces, end = [], 0
        for span in found:
            pieces += [text[end : span.start], f"[masked:{span.kind}]"]
            end = span.end
            counts[span.kind] = counts.get(span.kind, 0) + 1
        text = "".join([*pieces, text[end:]])
    return text, counts


def find(text: str) -> list[Span]:
    """Return the secrets of a text in their order; none touches another."""
    found: list[Span] = [*putty_keys(text)]
    for view in lines(text):
        found += _patterned(view)
        found += url_passwords(view)
        found += basic_credentials(view)
    for view in joined(text):
        found += _issued(view)
        found += key_blocks(view)
        found += signed_tokens(view)
    return _united(span for span in found if not is_published(text[span.start : span.end]))


def _issued(view: View) -> Iterator[Span]:
    """Find what has the form of some issuer's tokens."""
    text = view.text
    for rule in RULES:
        for prefix in rule.prefixes:
            at = text.find(prefix)
            while at >= 0:
                start, end = _extent(rule, prefix, view, at)
                if end:
                    yield Span(view.start_of(start), view.end_of(end), rule.kind)
                at = text.find(prefix, end or at + 1)


def _extent(rule: Rule, prefix: str, view: View, at: int) -> tuple[int, int]:
    """Return where a token starts and ends whose prefix is at a place; (0, 0) when it is none."""
    lead, shape, tail = forms(rule)
    led = lead.match(view.text, at + len(prefix))
    body = shape.match(view.text, led.end()) if led else None
    if led is None or body is None or not _may_start(rule, prefix, view, at):
        return 0, 0
    start, end = (led.end() if rule.lead else at), body.end()
    if not is_credible(rule, prefix, body[0]):
        return 0, 0
    if tail:
        whole = [led.end() + length for length in rule.whole]
        longest = wrapped_end(view, start, end, tail, whole)
        end += len(view.text[end:longest].rstrip(".,"))  # which end a sentence
    elif _goes_on(view, end):
        return 0, 0
    return start, end


def _may_start(rule: Rule, prefix: str, view: View, at: int) -> bool:
    """Tell whether a token may start here: at a word's start, or within one if it is glued."""
    source, start = view.source, view.start_of(at)
    before = source[start - 1 : start]
    is_name = before == "_" and prefix.endswith("_") and not rule.glued  # as in my_secret_name
    if not (is_name or _is_word(before)) or follows_escape(source, start):
        return True
    return rule.glued and not _WITHIN_BLOB.match(source, max(start - 65, 0), start)


def _goes_on(view: View, end: int) -> bool:
    """Tell whether more of the same word follows, so that a length is not the one it must have."""
    position = view.end_of(end)
    after = view.source[position : position + 1]
    return after == "_" or _is_word(after)


def _is_word(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _patterned(view: View) -> Iterator[Span]:
    """Find tokens that have their mark within."""
    for pattern in PATTERNS:
        if pattern.mark not in view.text:
            continue
        for found in re.finditer(pattern.form, view.text, re.ASCII):
            if is_made_up(found[0]) or (pattern.holds and not pattern.holds(found[0])):
                continue
            yield Span(view.start_of(found.start()), view.end_of(found.end()), pattern.kind)


def _united(found: Iterable[Span]) -> list[Span]:
    """Join what overlaps, under the kind that starts first and is the longest."""
    united: list[Span] = []
    for span in sorted(found, key=lambda one: (one.start, -one.end)):
        if united and span.start < united[-1].end:
            last = united[-1]
            united[-1] = last._replace(end=max(last.end, span.end))
        else:
            united.append(span)
    return united
