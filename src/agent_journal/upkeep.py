"""Upkeep: brings an index in step with a store, the text at once and the vectors as a backlog."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent_journal import passages, words
from agent_journal.errors import (
    EntryNotFoundError,
    IndexUnavailableError,
    InvalidSidecarError,
    StorageError,
)
from agent_journal.model import Entry, EntryId, Problem
from agent_journal.ports import (
    Embedder,
    Index,
    IndexedEntry,
    IndexedPassage,
    Listing,
    PassageVectors,
    Progress,
    Sidecar,
    Store,
    Version,
)

if TYPE_CHECKING:
    from agent_journal.ports import Matrix

SEED_MODEL = "Xenova/paraphrase-multilingual-MiniLM-L12-v2"
"""The original tool's model: it alone may write sidecars of its length."""
SEED_DIMENSION = 384
"""The original compares whatever has this length, so that others would spoil its search."""

ANALYSIS_VERSION = 2
"""To be raised with every change of what `analyse` makes of an entry: indexes are named by it."""

_BATCH = 256  # entries indexed in one transaction, so that others wait at most about 0.1 s for it
_MORE_PASSES = 2  # over an index that turns out to be another one after the first
_CLAIM = 16  # entries taken from the backlog at once: the most that a crash or a race does twice
_LEASE_S = 600.0  # 16 entries of 1 MiB take minutes; only a crash leaves one, an end gives it back
_SAME_COSINE = 0.999  # the same text on another machine differs by rounding alone


_log = logging.getLogger("agent_journal")


class Changes(NamedTuple):
    """What catching up found: numbers of entries."""

    added: int = 0
    changed: int = 0
    removed: int = 0

    def and_then(self, more: Changes) -> Changes:
        """Return these and what was found afterwards, together."""
        return Changes(
            self.added + more.added, self.changed + more.changed, self.removed + more.removed
        )


class Upkeep:
    """The one place that writes to an index; may be called from several threads.

    Attributes:
        listing: what the store held when the index was last in step with it; None before that.
        unreadable: files that could not even be opened then.
        origin: the index's, then; one of another origin may lack anything.
    """

    def __init__(self, store: Store, index: Index) -> None:
        self._store = store
        self._index = index
        self._lock = threading.RLock()
        self._generation: object = None
        self._vanished = 0
        self.origin: object = None
        self.listing: Listing | None = None
        self.unreadable: tuple[Problem, ...] = ()

    @property
    def expected(self) -> int:
        """How many entries an index in step holds at least."""
        if not self.listing:
            return 0
        return len(self.listing.versions) - len(self.unreadable) - self._vanished

    def catch_up(self, *, thorough: bool = False, progress: Progress | None = None) -> Changes:
        """Bring the index in step with the entries' text; see `Journal.catch_up`."""
        with self._lock:
            listing = self._store.listing(thorough=thorough)
            if listing is self.listing and self._index.generation() == self._generation:
                return Changes()
            found = self._compare(listing, progress)
            passes_left = _MORE_PASSES
            while (  # it was replaced or emptied meanwhile
                self._index.count() < self.expected or self._index.origin() != self.origin
            ):
                if not passes_left:
                    self._generation = None  # to be compared again at the next call
                    break
                found = found.and_then(self._compare(listing, progress))
                passes_left -= 1
            return found

    def work_backlog(
        self, embedder: Embedder, is_over: Callable[[], bool], progress: Progress | None = None
    ) -> int:
        """Embed entries until nothing is left or `is_over` says so; return how many were done."""
        done = 0
        total = self._index.backlog(embedder.identity)
        versions = self._store.listing().versions
        given: set[EntryId] = set()
        while not is_over():
            claimed = self._index.claim(embedder.identity, limit=_CLAIM, lease_s=_LEASE_S)
            if not claimed:
                break
            if not given.isdisjoint(claimed) or not versions.keys() >= set(claimed):
                # Changed, or written, since: listing the folder for every claim would take time
                # that grows with the square of its entries.
                versions = self._store.listing().versions
            given.update(claimed)
            is_cut_short = True
            try:
                for entries in self._grouped(claimed, versions, embedder):
                    done += self._embed(embedder, entries, is_over)
                    if progress:
                        progress(done, max(total, done))
                is_cut_short = is_over()
            finally:
                if is_cut_short:
                    self._index.release(embedder.identity, claimed)
        return done

    def sidecar_of(
        self, entry_id: EntryId, version: Version
    ) -> tuple[Sidecar | None, list[Problem]]:
        """Return an entry's sidecar if it is valid, and what is wrong with it if it isn't."""
        if not version.sidecar:
            return None, []
        try:
            return self._store.read_sidecar(entry_id), []
        except InvalidSidecarError as error:
            return None, [Problem(error.path, f"ignored: {error.reason}")]

    def _compare(self, listing: Listing, progress: Progress | None) -> Changes:
        """Index what the index lacks of a listing, and forget what it has beyond it."""
        generation, self.origin = self._index.generation(), self._index.origin()
        known = self._index.listing()
        gone = known.keys() - listing.versions.keys() if listing.versions else set()
        if gone:  # or written, and indexed by others, since the listing
            now = self._store.listing().versions
            gone = gone - now.keys() if now else set()
        if gone:
            self._index.update((), gone)
        stale = [
            entry_id
            for entry_id, version in listing.versions.items()
            if known.get(entry_id) != version
        ]
        unreadable: list[Problem] = []
        self._vanished = 0
        there = known
        for start in range(0, len(stale), _BATCH):
            if start and self._index.generation() != generation:  # others do the same work
                there = self._index.listing()
            batch = [
                entry_id
                for entry_id in stale[start : start + _BATCH]
                if there.get(entry_id) != listing.versions[entry_id]
            ]
            self._update(batch, listing.versions, there, unreadable)
            generation = self._index.generation()
            if progress:
                progress(min(start + _BATCH, len(stale)), len(stale))
        added = sum(entry_id not in known for entry_id in stale)
        self.unreadable = tuple(unreadable)
        self.listing, self._generation = listing, self._index.generation()
        return Changes(added, len(stale) - added, len(gone))

    def _update(
        self,
        batch: Sequence[EntryId],
        versions: Mapping[EntryId, Version],
        there: Mapping[EntryId, Version],
        unreadable: list[Problem],
    ) -> None:
        """Index some entries; of those whose text is there already, the sidecars alone."""
        same_text = {
            one for one in batch if one in there and there[one].entry == versions[one].entry
        }
        redacted: list[EntryId] = []
        with self._store.unredacted():
            analysed = list(self._analysed(batch, versions, same_text, unreadable, redacted))
            self._purge([one for one in redacted if one in there and one not in same_text])
            if wanting := self._index.update(analysed):
                self._index.update(list(self._analysed(wanting, versions, set(), unreadable, [])))

    def _purge(self, redacted: Sequence[EntryId]) -> None:
        """Leave no trace of texts that were redacted since they were indexed.

        Whoever redacted them has done so; but another process may have been at work on the old
        text, and on other machines nobody did.
        """
        if redacted:
            try:
                self._index.purge(redacted)
            except IndexUnavailableError as error:
                _log.warning("redacted text may be left in an index: %s", error)

    def _analysed(
        self,
        batch: Sequence[EntryId],
        versions: Mapping[EntryId, Version],
        same_text: Collection[EntryId],
        unreadable: list[Problem],
        redacted: list[EntryId],
    ) -> Iterator[IndexedEntry]:
        from agent_journal.removal import mark_of  # noqa: PLC0415 - nothing is new to most searches

        for entry_id in batch:
            try:
                entry = self._store.read(entry_id)
            except EntryNotFoundError:
                self._vanished += 1  # removed since the listing; the next one says so
                continue
            except StorageError as error:
                unreadable.append(Problem(error.path, str(error)))
                continue
            if mark_of(entry):
                redacted.append(entry_id)
            sidecar, problems = self.sidecar_of(entry_id, versions[entry_id])
            yield analyse(
                entry, versions[entry_id], sidecar, problems, with_text=entry_id not in same_text
            )

    def _grouped(
        self,
        claimed: Sequence[EntryId],
        versions: Mapping[EntryId, Version],
        embedder: Embedder,
    ) -> Iterator[list[_Work]]:
        """Yield entries in groups of about one call's texts, long ones alone and last.

        Whoever has only a second would otherwise never get past a long one.
        """
        group: list[_Work] = []
        long: list[_Work] = []
        for entry_id in claimed:
            version = versions.get(entry_id)
            try:
                entry = self._store.read(entry_id) if version else None
            except (EntryNotFoundError, StorageError):
                continue  # gone, or listed as a problem by now
            if not entry or not version:
                continue
            work = _Work.on(entry, version, embedder.reach)
            if len(work.texts) > embedder.batch:
                long.append(work)
                continue
            group.append(work)
            if sum(len(one.texts) for one in group) >= embedder.batch:
                yield group
                group = []
        if group:
            yield group
        for work in long:
            yield [work]

    def _embed(
        self, embedder: Embedder, group: Sequence[_Work], is_over: Callable[[], bool]
    ) -> int:
        import numpy as np  # noqa: PLC0415 - slow to import, needed only with a model

        texts = [text for work in group for text in work.texts]
        rows: list[Matrix] = []
        for start in range(0, len(texts), embedder.batch):
            if is_over():
                return 0
            rows.append(embedder.embed_passages(texts[start : start + embedder.batch]))
        matrix = np.concatenate(rows)
        position = 0
        vectors = []
        for work in group:
            own = matrix[position : position + len(work.texts)]
            position += len(work.texts)
            vectors.append(
                PassageVectors(work.entry.id, work.version.entry, own[list(work.rows)], work.counts)
            )
            self._put_sidecar(work, Sidecar(embedder.name, tuple(own[work.whole].tolist())))
        self._index.add_vectors(embedder.identity, vectors)
        return len(group)

    def _put_sidecar(self, work: _Work, sidecar: Sidecar) -> None:
        """Write a sidecar unless one of this model and text, or the original's, is there."""
        if len(sidecar.vector) == SEED_DIMENSION and sidecar.model != SEED_MODEL:
            return
        with self._store.unredacted():
            if not self._says_the_same(work.entry):
                return
            replace = False
            if work.version.sidecar:
                there, problems = self.sidecar_of(work.entry.id, work.version)
                if problems or (there and _is_same(there, sidecar)):
                    return
                replace = there is not None and len(there.vector) != SEED_DIMENSION
            self._store.write_sidecar(work.entry.id, sidecar, replace=replace)

    def _says_the_same(self, entry: Entry) -> bool:
        """Tell whether an entry is there as it was read before; it may be redacted since."""
        try:
            return self._store.read(entry.id) == entry
        except (EntryNotFoundError, StorageError):
            return False


def _is_same(one: Sidecar, other: Sidecar) -> bool:
    """Tell whether two vectors are one model's of one text: an entry edited by hand has another."""
    import numpy as np  # noqa: PLC0415 - as above

    if one.model != other.model or len(one.vector) != len(other.vector):
        return False
    a, b = np.array(one.vector), np.array(other.vector)
    return bool(a @ b > _SAME_COSINE * np.linalg.norm(a) * np.linalg.norm(b))


class _Work(NamedTuple):
    """An entry to embed.

    Attributes:
        texts: all that is to be embedded of it, each once.
        rows: which of them are its passages', in order, and last its title's.
        counts: how many of the rows each passage has; empty when each has one.
        whole: which of them is the whole entry's.
    """

    entry: Entry
    version: Version
    texts: tuple[str, ...]
    rows: tuple[int, ...]
    counts: tuple[int, ...]
    whole: int

    @classmethod
    def on(cls, entry: Entry, version: Version, reach: Callable[[str], int]) -> _Work:
        cut = [
            passages.embedding_texts(entry.title, part.text, reach)
            for part in passages.split(entry.body)
        ]
        parts = [text for texts in cut for text in texts]
        counts = tuple(map(len, cut)) if len(parts) > len(cut) else ()
        whole = passages.embedding_text(entry.title, entry.body)
        title = entry.title or parts[0]  # a file without one is looked for by how it starts
        places = {text: at for at, text in enumerate(dict.fromkeys((*parts, title, whole)))}
        rows = tuple(places[text] for text in (*parts, title))
        return cls(entry, version, tuple(places), rows, counts, places[whole])


def analyse(
    entry: Entry,
    version: Version,
    sidecar: Sidecar | None,
    problems: Sequence[Problem] = (),
    *,
    with_text: bool = True,
) -> IndexedEntry:
    """Return an entry as an index keeps it.

    Args:
        entry: what to analyse.
        version: under which it is listed.
        sidecar: its valid one, if any.
        problems: what is wrong with its sidecar.
        with_text: make its passages too.
    """
    return IndexedEntry(
        id=entry.id,
        version=version,
        created=entry.created,
        provenance=entry.provenance,
        tags=entry.tags,
        title_key=words.title_key(entry.title),
        passages=_indexed_passages(entry) if with_text else None,
        sidecar=sidecar,
        problems=(*entry.problems, *problems),
        supersedes=entry.supersedes,
        annotates=entry.annotates,
    )


def _indexed_passages(entry: Entry) -> tuple[IndexedPassage, ...]:
    """Cut an entry into passages; title and tags count as part of each."""
    about = (*words.terms(entry.title), *words.terms("\n".join(entry.tags)))
    return tuple(
        IndexedPassage(part.ordinal, part.start, part.end, (*about, *words.terms(part.text)))
        for part in passages.split(entry.body)
    )
