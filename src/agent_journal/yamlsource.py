"""YAML to nodes: works on the parser's events, so that no text costs more than its length.

Nothing is constructed, merged, repeated or recursed into. PyYAML takes as long to import as a
hundred entries of ours to be read without it, so this is imported by the first text that needs it.
"""

from __future__ import annotations

from typing import Protocol

import yaml

from agent_journal.nodes import DEPTH_LIMIT, BrokenYamlError, Node, clean

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is nine times as fast


class _Mark(Protocol):
    line: int
    index: int


def compose(source: str, first_line: int) -> Node | None:
    """Return the only document in some YAML; `first_line` is where it stands in the file."""
    composer = _Composer(source, first_line)
    try:
        for event in yaml.parse(source, Loader=_LOADER):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        line, _ = _position(error.problem_mark or error.context_mark)
        last = source.rstrip("\n").count("\n")  # the end of the stream lies behind it
        reason = f"not valid YAML: {error.problem or error.context}"
        raise BrokenYamlError(reason, min(line, last) + first_line) from None
    except yaml.YAMLError as error:  # a character that YAML has no place for
        raise BrokenYamlError(f"not valid YAML: {_first_line(error)}", first_line) from None
    return composer.root


class _Composer:
    """Builds nodes from events with a stack of its own.

    Nothing is constructed, merged, repeated or recursed into, and of aliases only those of scalars
    are followed, so that a hostile file costs no more than its length.
    """

    def __init__(self, source: str, first_line: int) -> None:
        self.root: Node | None = None
        self._source = source
        self._first_line = first_line
        self._stack: list[Node] = []
        self._anchors: dict[str, Node] = {}

    def take(self, event: yaml.Event) -> None:
        """Add what an event says.

        Raises:
            BrokenYamlError: it says something that we don't accept.
        """
        line, index = _position(event.start_mark)
        line += self._first_line
        if isinstance(event, yaml.ScalarEvent):
            node = Node(line, clean(event.value), is_plain=event.implicit[0])
            if event.anchor:
                self._anchors[event.anchor] = node
            self._place(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self._open(Node(line, is_mapping=is_mapping, source=self._source, start=index))
        elif isinstance(event, yaml.CollectionEndEvent):
            _, self._stack.pop().end = _position(event.end_mark)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise BrokenYamlError(f"alias *{event.anchor} stands for no scalar", line)
            self._place(self._anchors[event.anchor])
        elif isinstance(event, yaml.DocumentStartEvent) and self.root:
            raise BrokenYamlError("frontmatter holds a second YAML document", line)

    def _open(self, node: Node) -> None:
        if len(self._stack) > DEPTH_LIMIT:
            raise BrokenYamlError(f"nested deeper than {DEPTH_LIMIT} levels", node.line)
        self._place(node)
        self._stack.append(node)

    def _place(self, node: Node) -> None:
        if self._stack:
            self._stack[-1].members.append(node)
        else:
            self.root = node


def _position(mark: _Mark | None) -> tuple[int, int]:
    """Return a mark's line and character, from 0; both parsers set every mark that we ask for."""
    return (mark.line, mark.index) if mark else (0, 0)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
