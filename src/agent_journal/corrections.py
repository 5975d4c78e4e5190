"""Corrections: which entries supersede and annotate which, and in which order hits stand then."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from agent_journal.model import EntryId


class _Found(Protocol):
    @property
    def id(self) -> EntryId: ...


_T = TypeVar("_T", bound=_Found)


@dataclass(frozen=True, slots=True)
class Corrections:
    """What entries say of earlier ones, the other way round.

    Attributes:
        superseding: for an entry's id, those that supersede it, newest first, ties by id, highest
            first; the entry need not exist, and entries may supersede one another in a circle.
        annotating: for an entry's id, those that annotate it, in that order.
    """

    superseding: Mapping[EntryId, tuple[EntryId, ...]] = field(default_factory=dict)
    annotating: Mapping[EntryId, tuple[EntryId, ...]] = field(default_factory=dict)

    def superseded_by(self, entry_id: EntryId) -> tuple[EntryId, ...]:
        """Return what supersedes an entry, directly or by way of others, the last word first.

        Each comes once, and none of a circle comes twice.
        """
        return tuple(self._successors_first(entry_id, set())[:-1])

    def annotated_by(self, entry_id: EntryId) -> tuple[EntryId, ...]:
        """Return what annotates an entry, newest first."""
        return self.annotating.get(entry_id, ())

    def arranged(self, ranked: Iterable[_T], hits: Collection[EntryId]) -> Iterator[_T]:
        """Yield hits in their order, but for those that supersede a hit, which come before it.

        No more of `ranked` is looked at than is needed for what is taken.

        Args:
            ranked: hits, best first, each once.
            hits: the ids of all of them.
        """
        coming = iter(ranked)
        ahead: deque[_T] = deque()  # looked at, and not yet their turn
        known: dict[EntryId, _T] = {}
        passed: set[EntryId] = set()

        def look_on() -> bool:
            for found in coming:
                known[found.id] = found
                ahead.append(found)
                return True
            return False

        while ahead or look_on():
            turn = ahead.popleft()
            if turn.id in passed:
                continue
            for entry_id in self._successors_first(turn.id, passed):
                if entry_id in hits:
                    while entry_id not in known and look_on():
                        pass
                    yield known[entry_id]

    def _successors_first(self, entry_id: EntryId, passed: set[EntryId]) -> list[EntryId]:
        """Return an entry after all that supersedes it, without what was passed, which grows."""
        passed.add(entry_id)
        path = [(entry_id, iter(self.superseding.get(entry_id, ())))]
        order: list[EntryId] = []
        while path:
            at, successors = path[-1]
            for one in successors:
                if one not in passed:
                    passed.add(one)
                    path.append((one, iter(self.superseding.get(one, ()))))
                    break
            else:
                order.append(at)
                path.pop()
        return order
