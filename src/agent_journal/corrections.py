"""Corrections: which entries supersede and annotate which, and in which order hits stand then."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from agent_journal.model import EntryId


class Corrections(NamedTuple):
    """What entries say of earlier ones, the other way round.

    Attributes:
        superseding: for an entry's id, those that supersede it, newest first, ties by id, highest
            first; the entry need not exist, and entries may supersede one another in a circle.
        annotating: for an entry's id, those that annotate it, in that order.
    """

    superseding: Mapping[EntryId, tuple[EntryId, ...]] = MappingProxyType({})
    annotating: Mapping[EntryId, tuple[EntryId, ...]] = MappingProxyType({})

    def superseded_by(self, entry_id: EntryId) -> tuple[EntryId, ...]:
        """Return what supersedes an entry, directly or by way of others, the last word first.

        Each comes once, and none of a circle comes twice.
        """
        return tuple(self._successors_first(entry_id, set())[:-1])

    def annotated_by(self, entry_id: EntryId) -> tuple[EntryId, ...]:
        """Return what annotates an entry, newest first."""
        return self.annotating.get(entry_id, ())

    def arranged(self, hits: Collection[EntryId]) -> Iterator[EntryId]:
        """Yield hits in their order, but for those that supersede a hit, which come before it.

        No more is looked at than is needed for what is taken.

        Args:
            hits: their ids, best first, each once; often asked whether it holds one.
        """
        passed: set[EntryId] = set()
        for hit in hits:
            if hit not in passed:
                yield from (one for one in self._successors_first(hit, passed) if one in hits)

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
