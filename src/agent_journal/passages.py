"""An entry's body to the passages that are embedded, matched and quoted."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from agent_journal.model import Passage

PASSAGE_CHARS = 900
_MINIMUM_CHARS = PASSAGE_CHARS // 3
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"\n\s*")
_SENTENCE = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]»”\u2019]*+\s+|[。\uff01\uff1f\uff0e｡।؟]++[」』”]*+\s*"
)
_BLANK = re.compile(r"\s+")
_TEXT = re.compile(r"\S")


def split(body: str) -> list[Passage]:
    """Cut a body into passages of at most 900 characters, in order; together they hold its text.

    Only white space stands between them, and none starts or ends with any. A cut falls on the first
    heading after a third of the room, else on the strongest border there is in the rest of it:
    paragraph, line, sentence or blank; a code block that fits into a passage isn't cut. An empty
    body is one empty passage. Linear in the body.
    """
    passages: list[Passage] = []
    blocks = _blocks(body)
    start = _next_text(body, 0)
    while start < len(body):
        cut = _cut(body, start, blocks)
        text = body[start:cut].rstrip()
        passages.append(Passage(len(passages), start, start + len(text), text))
        start = _next_text(body, cut)
    return passages or [Passage(0, 0, 0, "")]


def embedding_text(title: str, passage_text: str) -> str:
    """Return what is embedded for a passage: the title, a line end, the passage."""
    return f"{title}\n{passage_text}"


def embedding_texts(title: str, passage_text: str, reach: Callable[[str], int]) -> list[str]:
    """Return what is embedded for a passage by a model that may not read it at once.

    A passage that is too long for it is cut into parts of about one length, on the strongest border
    there is near their ends; each comes under the title, or under as much of it as leaves room.

    Args:
        title: the entry's.
        passage_text: the passage.
        reach: how many leading characters of a text the model reads.
    """
    whole = embedding_text(title, passage_text)
    room = reach(whole)
    if room >= len(whole):
        return [whole]
    head = excerpt(title, 0, len(title), focus=0, width=max(room // 3, 1))[0]
    texts: list[str] = []
    start = _next_text(passage_text, 0)
    while start < len(passage_text):
        rest = embedding_text(head, passage_text[start:])
        limit = max(reach(rest) - len(head) - 1, 1)
        left = len(passage_text) - start
        if limit < left:
            parts = -(-left // limit)
            limit = min(limit, -(-left // parts) + limit // 8)
        end = _border(passage_text, start + limit // 2, start + limit)
        texts.append(embedding_text(head, passage_text[start:end].rstrip()))
        start = _next_text(passage_text, end)
    return texts or [head]


def excerpt(body: str, start: int, end: int, *, focus: int, width: int) -> tuple[str, int]:
    """Return a piece of ``body[start:end]`` around a position, and where in the body it starts.

    It has at most `width` characters, is cut on blanks where there are any nearby, and has no white
    space around it. Most of it follows the focus.

    Args:
        body: an entry's body.
        start: where the passage starts in it.
        end: where the passage ends.
        focus: the position, in the body, that must be seen.
        width: the most characters to return.
    """
    start, end = max(start, 0), min(end, len(body))
    focus = min(max(focus, start), end)
    first = max(start, min(focus - width // 4, end - width))
    last = min(end, first + width)
    if first > start and not body[first - 1].isspace():
        blank = _BLANK.search(body, first, min(focus, first + width // 5))
        first = blank.end() if blank else first
    if last < end and not body[last].isspace():
        tail = body[max(focus, last - width // 5) : last]
        kept = len(tail.rstrip()) if tail[-1:].isspace() else _last_blank(tail)
        last -= len(tail) - kept
    text = body[first:last]
    stripped = text.lstrip()
    return stripped.rstrip(), first + len(text) - len(stripped)


def _last_blank(text: str) -> int:
    """Where the last white space in a text starts; its length when there is none."""
    pieces = text.rsplit(maxsplit=1)
    return len(pieces[0]) if len(pieces) == 2 else len(text)  # noqa: PLR2004 - a split in two


def _next_text(body: str, position: int) -> int:
    found = _TEXT.search(body, position)
    return found.start() if found else len(body)


def _blocks(body: str) -> list[tuple[int, int]]:
    """Where code blocks that fit into a passage start and end, in order."""
    blocks: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(body):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and fence[0].strip() == fence[1]:
            if fence.end() - opened.start(1) <= PASSAGE_CHARS:
                blocks.append((opened.start(1), fence.end()))
            opened = None
    return blocks


def _block_around(position: int, blocks: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the block that a cut at this position would break."""
    at = bisect_left(blocks, (position, 0)) - 1
    return blocks[at] if at >= 0 and position < blocks[at][1] else None


def _cut(body: str, start: int, blocks: list[tuple[int, int]]) -> int:
    """Return where the passage that starts here ends."""
    limit = start + PASSAGE_CHARS
    for heading in _HEADING.finditer(body, start + _MINIMUM_CHARS, limit + 1):
        if not _block_around(heading.start(), blocks):
            return heading.start()
    if limit >= len(body):
        return len(body)
    broken = _block_around(limit, blocks)
    if broken and broken[0] > start:
        return broken[0]
    return _border(body, start + _MINIMUM_CHARS, limit, blocks)


def _border(body: str, minimum: int, limit: int, blocks: Sequence[tuple[int, int]] = ()) -> int:
    """Return the last of the strongest borders between two positions; the second without any."""
    if limit >= len(body):
        return len(body)
    for border in (_PARAGRAPH, _LINE, _SENTENCE, _BLANK):
        best = 0
        for match in border.finditer(body, minimum, limit + 1):
            at = min(match.end(), limit)
            if not _block_around(at, blocks):
                best = at
        if best:
            return best
    return limit
