"""The index in plain dictionaries: the contract suite's oracle, and what serves without a disk.

Every question is answered by looking at every entry, so that the answer is easy to believe.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_journal.corrections import Corrections
from agent_journal.errors import DimensionMismatchError
from agent_journal.evidence import EntryFacts, Evidence, Nearest, PassageFacts
from agent_journal.model import EntryId, Problem, fold_case, to_milliseconds
from agent_journal.ports import (
    IndexedEntry,
    IndexedPassage,
    PassageVectors,
    QueryVector,
    Selection,
    Version,
)
from agent_journal.query import Filters

if TYPE_CHECKING:
    from agent_journal.ports import Matrix


@dataclass(slots=True, eq=False)
class _Kept:
    """An entry with what was derived from it.

    Attributes:
        passages: those of its text, whatever came with its sidecar since.
        counts: for each passage, how often each term occurs in it.
        vectors: for each embedder's identity, the matrix of its passages and title, and for each
            row but the title's the ordinal of its passage.
        leases: for each embedder's identity, from when until when somebody works on it.
    """

    entry: IndexedEntry
    created: int
    passages: tuple[IndexedPassage, ...]
    counts: list[Counter[str]]
    vectors: dict[str, tuple[Matrix, list[int]]] = field(default_factory=dict)
    leases: dict[str, tuple[float, float]] = field(default_factory=dict)


class MemoryIndex:
    """An `Index` that lives as long as this object does.

    Args:
        clock: seconds since the epoch, for leases.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._kept: dict[EntryId, _Kept] = {}
        self._dimensions: dict[str, int] = {}
        self._generation = 0
        self._origin = object()
        self._corrections: tuple[int, Corrections] = (0, Corrections())

    @property
    def location(self) -> str:
        """Where the index is, for messages."""
        return "memory"

    def generation(self) -> object:
        """Return a token that differs after any change; compare it only."""
        with self._lock:
            return self._generation

    def origin(self) -> object:
        """Return a token that differs once it was cleared; compare it only."""
        return self._origin

    def listing(self) -> Mapping[EntryId, Version]:
        """Return the version under which each entry is indexed."""
        with self._lock:
            return {entry_id: kept.entry.version for entry_id, kept in self._kept.items()}

    def update(
        self, changed: Collection[IndexedEntry], removed: Collection[EntryId] = ()
    ) -> list[EntryId]:
        """Index entries and forget others; see `Index.update`."""
        with self._lock:
            kept = dict(self._kept)
            for entry_id in removed:
                kept.pop(entry_id, None)
            passed_over = []
            for entry in changed:
                if (updated := _updated(kept.get(entry.id), entry)) is None:
                    passed_over.append(entry.id)
                else:
                    kept[entry.id] = updated
            if kept != self._kept:
                self._kept = kept
                self._generation += 1
            return passed_over

    def purge(self, ids: Collection[EntryId]) -> None:
        """Forget entries; memory keeps no trace that could be read; see `Index.purge`."""
        self.update((), ids)

    def verify(self) -> None:
        """Do nothing: memory that is damaged can't be told; see `Index.verify`."""

    def clear(self) -> None:
        """Forget everything, vectors too."""
        with self._lock:
            self._kept.clear()
            self._dimensions.clear()
            self._generation += 1
            self._origin = object()

    def select(self, filters: Filters, *, limit: int, offset: int) -> Selection:
        """Return a page of the entries that pass, newest first."""
        with self._lock:
            ids = [kept.entry.id for kept in self._newest_first() if _passes(kept, filters)]
        return Selection(len(ids), tuple(ids[offset : offset + limit]))

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence:
        """Gather everything known about distinct query terms and a vector; see `Index.evidence`."""
        with self._lock:
            if vector is not None:
                self._require_dimension(vector.identity, len(vector.vector))
            lengths = [len(one.terms) for kept in self._all() for one in kept.passages]
            passing = {key: kept for key, kept in enumerate(self._all()) if _passes(kept, filters)}
            places = {
                (key, ordinal): number
                for number, (key, ordinal) in enumerate(
                    (key, ordinal)
                    for key, kept in passing.items()
                    for ordinal in range(len(kept.counts))
                )
            }
            postings = [
                (passage, number, passing[key].counts[ordinal][term])
                for (key, ordinal), passage in places.items()
                for number, term in enumerate(terms)
                if passing[key].counts[ordinal][term]
            ]
            keys = {passage: key for (key, _), passage in places.items()}
            worded = {keys[passage] for passage, _, _ in postings}
            best = _best_cosines(passing, places, vector)
            nearest = {
                key: near
                for key, near in best.items()
                if key in worded or (vector is not None and near[0] >= vector.floor)
            }
            named = {passage for passage, _, _ in postings}
            named |= {passage for _, passage in nearest.values() if passage is not None}
            mean, deviation = _spread([cosine for cosine, _ in best.values()])
            return Evidence(
                entry_count=len(self._kept),
                mean_length=sum(lengths) / len(lengths) if lengths else 0.0,
                frequencies=tuple(
                    sum(any(count[term] for count in kept.counts) for kept in self._all())
                    for term in terms
                ),
                postings=postings,
                passages={
                    passage: PassageFacts(key, one.start, one.end, len(one.terms))
                    for (key, ordinal), passage in places.items()
                    if passage in named
                    for one in (passing[key].passages[ordinal],)
                },
                entries={
                    key: EntryFacts(kept.entry.id, kept.created, kept.entry.title_key)
                    for key, kept in passing.items()
                    if key in worded or key in nearest
                },
                nearest=nearest,
                compared=len(best),
                cosine_mean=mean,
                cosine_deviation=deviation,
                phrased=frozenset(
                    key
                    for key in worded
                    if any(
                        _holds(one.terms, phrase)
                        for one in passing[key].passages
                        for phrase in phrases
                    )
                ),
            )

    def corrections(self) -> Corrections:
        """Return what indexed entries supersede and annotate; see `Index.corrections`."""
        with self._lock:
            generation, found = self._corrections
            if generation != self._generation:
                superseding: dict[EntryId, tuple[EntryId, ...]] = {}
                annotating: dict[EntryId, tuple[EntryId, ...]] = {}
                for kept in self._newest_first():
                    entry = kept.entry
                    for target in entry.supersedes:
                        superseding[target] = (*superseding.get(target, ()), entry.id)
                    for target in entry.annotates:
                        annotating[target] = (*annotating.get(target, ()), entry.id)
                found = Corrections(superseding, annotating)
                self._corrections = self._generation, found
            return found

    def tags(self) -> dict[str, int]:
        """Return each tag with the number of entries that carry it; see `Index.tags`."""
        entries: Counter[str] = Counter()
        spellings: dict[str, Counter[str]] = {}
        with self._lock:
            for kept in self._all():
                entries.update({fold_case(tag) for tag in kept.entry.tags})
                for tag in set(kept.entry.tags):
                    spellings.setdefault(fold_case(tag), Counter())[tag] += 1
        shown = {
            min(spelling, key=lambda tag: (-spelling[tag], tag)): entries[folded]
            for folded, spelling in spellings.items()
        }
        return dict(sorted(shown.items(), key=lambda item: (-item[1], item[0])))

    def problems(self) -> list[Problem]:
        """Return the problems of all indexed entries, ordered by path and line."""
        with self._lock:
            found = [problem for kept in self._all() for problem in kept.entry.problems]
        return sorted(found, key=lambda one: (one.path, one.line or 0, one.reason))

    def count(self) -> int:
        """Return the number of indexed entries."""
        with self._lock:
            return len(self._kept)

    def backlog(self, identity: str) -> int:
        """Return the number of entries that lack passage vectors of this embedder."""
        with self._lock:
            return sum(identity not in kept.vectors for kept in self._all())

    def claim(self, identity: str, *, limit: int, lease_s: float) -> list[EntryId]:
        """Take entries out of the backlog to work on, newest first; see `Index.claim`."""
        with self._lock:
            now = self._clock()
            free = [
                kept
                for kept in self._newest_first()
                if identity not in kept.vectors and not _is_leased(kept, identity, now)
            ]
            taken = free[: max(limit, 0)]
            for kept in taken:
                kept.leases[identity] = (now, now + lease_s)
        return [kept.entry.id for kept in taken]

    def release(self, identity: str, ids: Collection[EntryId]) -> None:
        """Give claimed entries back before their lease ends; see `Index.release`."""
        with self._lock:
            for entry_id in ids:
                if entry_id in self._kept:
                    self._kept[entry_id].leases.pop(identity, None)

    def add_vectors(self, identity: str, vectors: Sequence[PassageVectors]) -> None:
        """Keep the passage vectors of some entries; see `Index.add_vectors`."""
        with self._lock:
            fitting = [
                (kept, given)
                for given in vectors
                if (kept := self._kept.get(given.id)) is not None
                and kept.entry.version.entry == given.version
                and given.fits(len(kept.passages))
            ]
            if not fitting:
                return
            dimension = self._dimensions.get(identity, len(fitting[0][1].matrix[0]))
            for _, given in fitting:
                if len(given.matrix[0]) != dimension:
                    raise DimensionMismatchError(dimension, len(given.matrix[0]))
            self._dimensions[identity] = dimension
            for kept, given in fitting:
                counts = given.counts or [1] * len(kept.passages)
                ordinals = [ordinal for ordinal, count in enumerate(counts) for _ in range(count)]
                kept.vectors[identity] = given.matrix.astype("float32", copy=True), ordinals
                kept.leases.pop(identity, None)
            self._generation += 1

    def close(self) -> None:
        """Release the memory; the index is empty then."""
        self.clear()

    def _all(self) -> Collection[_Kept]:
        return self._kept.values()

    def _newest_first(self) -> list[_Kept]:
        return sorted(self._all(), key=lambda kept: (kept.created, kept.entry.id), reverse=True)

    def _require_dimension(self, identity: str, actual: int) -> None:
        expected = self._dimensions.get(identity, actual)
        if expected != actual:
            raise DimensionMismatchError(expected, actual)


def _updated(old: _Kept | None, entry: IndexedEntry) -> _Kept | None:
    """Return what is kept of an entry now; None when its passages are wanting."""
    if old is None or old.entry.version.entry != entry.version.entry:
        if entry.passages is None:
            return None
        counts = [Counter(passage.terms) for passage in entry.passages]
        return _Kept(entry, to_milliseconds(entry.created), entry.passages, counts)
    if old.entry.version == entry.version:
        return old
    beside = old.entry._replace(
        version=entry.version, sidecar=entry.sidecar, problems=entry.problems
    )
    return replace(old, entry=beside)


def _holds(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    wanted, width = tuple(phrase), len(phrase)
    return bool(wanted) and any(
        tuple(terms[at : at + width]) == wanted for at in range(len(terms) - width + 1)
    )


def _passes(kept: _Kept, filters: Filters) -> bool:
    return filters.accepts(kept.created, kept.entry.provenance, kept.entry.tags)


def _is_leased(kept: _Kept, identity: str, now: float) -> bool:
    # A lease from the future was given before the clock was set back: it counts for nothing.
    start, end = kept.leases.get(identity, (now, now))
    return start <= now < end


def _best_cosines(
    passing: Mapping[int, _Kept],
    places: Mapping[tuple[int, int], int],
    vector: QueryVector | None,
) -> dict[int, Nearest]:
    """Return the best cosine of each entry that has a vector to compare."""
    if vector is None:
        return {}
    import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

    found: dict[int, Nearest] = {}
    for key, kept in passing.items():
        if vector.identity in kept.vectors:
            matrix, ordinals = kept.vectors[vector.identity]
            cosines = np.clip(matrix @ vector.vector, -1.0, 1.0)
            best = int(cosines.argmax())
            place = places[key, ordinals[best]] if best < len(ordinals) else None  # the title's
            found[key] = (float(cosines[best]), place)
        elif (sidecar := kept.entry.sidecar) is not None and sidecar.model == vector.model:
            whole = np.asarray(sidecar.vector, dtype=np.float64)
            if whole.shape == vector.vector.shape:
                whole /= np.abs(whole).max()  # so that no square of a huge number overflows
                cosine = float(whole @ vector.vector / np.linalg.norm(whole))
                found[key] = (min(max(cosine, -1.0), 1.0), None)
    return found


def _spread(cosines: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation; zeros without any number."""
    if not cosines:
        return 0.0, 0.0
    mean = sum(cosines) / len(cosines)
    variance = sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines)
    return mean, float(variance**0.5)
