"""Pieces of frontmatter as they were read, by whichever reader."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent_journal.model import Value

DEPTH_LIMIT = 64
"""Lists and mappings inside one another; deeper ones are neither written nor understood."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_LITERALS: Mapping[str, Value] = {
    "true": True,
    "false": False,
    ".nan": math.nan,
    ".inf": math.inf,
    "-.inf": -math.inf,
}


@dataclass(slots=True)
class Node:
    """A piece of YAML.

    Attributes:
        line: where it starts in the file, from 1.
        start, end: where a list or mapping stands in `source`, the text it was read from.
        text: a scalar's; None for a list or a mapping. Without NUL and lone surrogates.
        is_plain: it is a scalar without quotes or tag.
        is_mapping: its members are keys and values in turn.
    """

    line: int
    text: str | None = None
    is_plain: bool = False
    is_mapping: bool = False
    members: list[Node] = field(default_factory=list)
    source: str = ""
    start: int = 0
    end: int = 0

    @property
    def is_null(self) -> bool:
        """Whether it stands for nothing."""
        return self.is_plain and self.text in _NULLS

    @property
    def written(self) -> str:
        """A scalar's text; a list or mapping as it is written, on one line."""
        return self.text if self.text is not None else flat(self.source[self.start : self.end])

    def value(self) -> Value:
        """Return what a foreign key holds: JSON's literals typed, all else as text, dates too."""
        if self.text is not None:
            return _scalar(self.text) if self.is_plain else self.text
        if self.is_mapping:
            return {key.written: value.value() for key, value in pairs(self)}
        return [member.value() for member in self.members]


class BrokenYamlError(Exception):
    """This text is no YAML that we understand."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def pairs(mapping: Node) -> Iterator[tuple[Node, Node]]:
    """Yield a mapping's keys, each with its value."""
    return zip(mapping.members[::2], mapping.members[1::2], strict=True)


def flat(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def clean(text: str) -> str:
    """Join surrogate pairs; make lone ones and NUL the replacement character."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def _scalar(text: str) -> Value:
    if text in _NULLS:
        return None
    if text in _LITERALS:
        return _LITERALS[text]
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    try:
        return float(text) if number[1] or number[2] else int(text)
    except ValueError:  # more digits than Python converts
        return text
