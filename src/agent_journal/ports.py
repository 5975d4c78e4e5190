"""The doors between the journal and its engines: protocols whose docstrings are the contracts.

Every sentence here is tested by a suite in ``tests/contract/`` that each engine passes.
All engines may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias

from agent_journal.corrections import Corrections
from agent_journal.evidence import Evidence, EvidenceArrays
from agent_journal.model import Draft, Entry, EntryId, Problem, Provenance
from agent_journal.query import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_journal.redaction import Redacted, Redaction

    Vector: TypeAlias = NDArray[np.float32]
    Matrix: TypeAlias = NDArray[np.float32]

Progress = Callable[[int, int], None]
"""Called with (done, total) as a long piece of work goes on."""


class Version(str):
    """Changes whenever an entry's file or its sidecar does; opaque, compared for equality only.

    One text, ``entry/sidecar``, since thousands are made and compared before the first search.
    """

    __slots__ = ()

    @classmethod
    def of(cls, entry: str, sidecar: str = "") -> Self:
        """Return that of a file, which holds no slash, and of its sidecar, if it has one."""
        return cls(f"{entry}/{sidecar}")

    @property
    def entry(self) -> str:
        """The version of the entry's file."""
        return self.partition("/")[0]

    @property
    def sidecar(self) -> str:
        """The version of its sidecar, empty when there is none."""
        return self.partition("/")[2]


class Listing(NamedTuple):
    """What a store holds at one moment.

    Attributes:
        versions: every entry, by id.
        problems: what is in the folder but can't be an entry, such as a symlink named ``x.md``.
    """

    versions: Mapping[EntryId, Version]
    problems: tuple[Problem, ...] = ()


class Sidecar(NamedTuple):
    """A whole entry's vector as it lies beside the entry.

    Attributes:
        model: the model's name; vectors are compared only with vectors of the same model.
        vector: finite numbers, not all zero, as they were written (their length may not be 1).
    """

    model: str
    vector: tuple[float, ...]


class Store(Protocol):
    """The entries themselves, each written once."""

    @property
    def location(self) -> str:
        """Where the entries are, for messages."""
        ...

    def listing(self, *, thorough: bool = False) -> Listing:
        """Return what is stored now.

        Entries and sidecars added, removed, replaced or renamed since the last call are always
        seen; an edit in place is seen at the latest by a thorough call, or by one that comes 2 s
        after it, or fifty times as long as a look at every file takes. A file removed
        and made anew under its name between two calls counts as edited in place. When nothing
        changed, the very same object may come back. Nothing is created.

        Args:
            thorough: look at every file, trusting no earlier listing.

        Raises:
            JournalUnavailableError: the place is missing or can't be read.
        """
        ...

    def read(self, entry_id: EntryId) -> Entry:
        """Return an entry, however badly its file is formed; `Entry.problems` says what is wrong.

        Raises:
            EntryNotFoundError: there is no such entry (any string is safe to ask for).
            StorageError: its file is there and can't be read.
        """
        ...

    def append(self, draft: Draft) -> Entry:
        """Store a new entry and return it with its id; it is durable when this returns.

        The id is that of `Draft.created`, or of now; a taken one moves on by a millisecond until it
        is free, and `Entry.created` with it. Nothing that exists is ever replaced, whichever
        processes and threads append at once. Many drafts of one instant take linear time.

        Then it gets a line in the ledger, if the store keeps one. When that can't be added within
        2 s, the entry is stored all the same, and a problem of kind ``unledgered`` comes with it.

        Raises:
            EntryTooLargeError: the entry would be larger than `ENTRY_LIMIT_BYTES`.
            WriteFailedError: it could not be made durable; nothing is left of it.
        """
        ...

    def audit(self, *, progress: Progress | None = None) -> list[Problem]:
        """Hold every file against the ledgers, and ledgers against themselves.

        What is being written meanwhile is no problem. A store without a ledger finds nothing.

        Args:
            progress: told of (done, total) entries.

        Returns:
            Problems with a kind: those of the ledgers, then those of entries, by id.

        Raises:
            JournalUnavailableError: the place is missing or can't be read.
        """
        ...

    def adopt(
        self, ids: Collection[EntryId] = (), *, progress: Progress | None = None
    ) -> list[EntryId]:
        """Enter in the ledger that entries belong here as they are now, as a person has decided.

        Args:
            ids: altered, restored or missing entries, too; without any, all that have no line, and
                lost ends of ledgers are no longer told.
            progress: told of (done, total) entries.

        Returns:
            The entries that got a line; a redaction that isn't finished can't be accepted.

        Raises:
            EntryNotFoundError: an id is neither here nor in a ledger; nothing was entered.
            JournalUnavailableError: the place is missing or can't be read.
            LedgerUnavailableError: lines could not be added, or not all of them.
        """
        ...

    def redact(
        self, entry_id: EntryId, asked: Redaction | None, purge: Callable[[], None]
    ) -> Redacted:
        """Remove text from an entry for good, and what lies beside it; durable on return.

        Afterwards `purge` is called, and at last the ledger gets a line. After a crash or an error
        the same call again does what is left; when nothing is left it changes nothing, but calls
        `purge`. Only a text is refused then, as one that doesn't stand in the entry.

        Args:
            entry_id: the entry.
            asked: what to remove; None when only traces are left to remove.
            purge: has everything forgotten that was made of the entry's text.

        Raises:
            EntryNotFoundError: there is no such entry.
            RedactionRefusedError: there is nothing to remove, or what is left can't be kept.
            StorageError: it was not done, or not all of it.
        """
        ...

    def unredacted(self) -> AbstractContextManager[object]:
        """Let redactions wait as long as the block runs.

        What is read in it and put away in it, such as in an index, is put away before a redaction
        has its traces removed. Several may do so at once. A redaction that has begun is waited for;
        where that can't be told, or takes too long, the block goes on all the same.
        """
        ...

    def read_sidecar(self, entry_id: EntryId) -> Sidecar | None:
        """Return an entry's sidecar, or None when there is none.

        Raises:
            InvalidSidecarError: there is one that can't be trusted, such as a legacy array.
        """
        ...

    def write_sidecar(self, entry_id: EntryId, sidecar: Sidecar, *, replace: bool = False) -> bool:
        """Put a sidecar beside an entry, atomically; readers see all of it or none.

        Args:
            entry_id: an entry that is stored; for any other nothing is written.
            sidecar: the vector and its model's name.
            replace: take the place of one that is there; otherwise what is there stays.

        Returns:
            Whether it was written. A failure is logged and never raised: vectors can be made again.
        """
        ...

    def sweep(self, *, older_than_s: float) -> list[str]:
        """Remove temporary files left by crashed writers, and return their paths.

        Args:
            older_than_s: leave younger ones alone, since a writer may be at work on them.
        """
        ...


class IndexedPassage(NamedTuple):
    """A passage as an index keeps it.

    Attributes:
        ordinal: counted from 0 within the entry.
        start, end: where it stands in the entry's body, in characters.
        terms: its lexical terms in order, with repetitions, the title's among them.
    """

    ordinal: int
    start: int
    end: int
    terms: tuple[str, ...]


class IndexedEntry(NamedTuple):
    """An entry as an index keeps it: everything a search needs but the text.

    Attributes:
        title_key: the title as `words.title_key` gives it; empty when it can match no query.
        passages: at least one, in order; None when only the sidecar is new and those that are
            indexed under the same version of the entry's file shall stay.
        sidecar: its valid sidecar, if any: stands in for passage vectors that aren't there yet.
        problems: what could not be read of its file or its sidecar.
        supersedes, annotates: as the entry has them, each id once.
    """

    id: EntryId
    version: Version
    created: datetime
    provenance: Provenance
    tags: tuple[str, ...]
    title_key: str
    passages: tuple[IndexedPassage, ...] | None
    sidecar: Sidecar | None = None
    problems: tuple[Problem, ...] = ()
    supersedes: tuple[EntryId, ...] = ()
    annotates: tuple[EntryId, ...] = ()


class Selection(NamedTuple):
    """One page of the entries that pass a filter.

    Attributes:
        total: how many pass.
        ids: those of the page, newest first, ties by id, highest first.
    """

    total: int
    ids: tuple[EntryId, ...]


class QueryVector(NamedTuple):
    """A query's vector with what an engine needs to compare it.

    Attributes:
        model: the embedder's name: sidecars of that model stand in for missing passage vectors.
        identity: the embedder's identity: only passage vectors made by it are compared.
        vector: float32, shape (dimension,), L2-normalised.
        floor: the least cosine that makes an entry a hit by itself.
    """

    model: str
    identity: str
    vector: Vector
    floor: float


class PassageVectors(NamedTuple):
    """The vectors of one entry's passages and title.

    Attributes:
        version: that of the entry's file when they were made.
        matrix: float32, shape (rows, dimension), rows L2-normalised: the passages' in their order,
            and last the title's.
        counts: for each passage, how many of the rows are its own, which is more than one where an
            embedder can't read it at once; empty when each has one.
    """

    id: EntryId
    version: str
    matrix: Matrix
    counts: Sequence[int] = ()

    def fits(self, passages: int) -> bool:
        """Tell whether these can be the vectors of an entry with so many passages."""
        if not self.counts:
            return len(self.matrix) == passages + 1
        return (
            len(self.counts) == passages
            and min(self.counts) > 0
            and len(self.matrix) == sum(self.counts) + 1
        )


class Index(Protocol):
    """Everything derived from the entries; may be lost at any time without losing anything.

    Several processes may use one index at once. A damaged or foreign index is rebuilt or replaced
    by the engine itself; callers then find it empty.
    """

    @property
    def location(self) -> str:
        """Where the index is, for messages."""
        ...

    def generation(self) -> object:
        """Return a token that differs after any change by any process; compare it only."""
        ...

    def origin(self) -> object:
        """Return a token that differs once the index was cleared or replaced; compare it only.

        As long as it is the same, what was put in is there unless it was removed or updated by id.
        """
        ...

    def listing(self) -> Mapping[EntryId, Version]:
        """Return the version under which each entry is indexed."""
        ...

    def update(
        self, changed: Collection[IndexedEntry], removed: Collection[EntryId] = ()
    ) -> list[EntryId]:
        """Index entries and forget others, all or nothing.

        An entry that is already indexed under the very same version is left as it is. When only the
        sidecar's version differs, its passages' vectors stay; otherwise they go with the old text.
        Ids in `removed` that aren't indexed are passed over.

        Returns:
            The entries that came without passages though none are indexed under that version of
            their file: another process was quicker. They were passed over and must come whole.
        """
        ...

    def purge(self, ids: Collection[EntryId]) -> None:
        """Forget entries so that no byte of what was known of their text is left.

        Nor is it in other indexes that are kept in the same place: those that know one of the
        entries are removed. Ids that aren't indexed are passed over.

        Raises:
            IndexUnavailableError: it could not be done everywhere.
        """
        ...

    def verify(self) -> None:
        """Look for damage that no reading meets, and replace what is damaged; nothing else changes.

        It takes about as long as reading all entries. Facts that are kept once can't be compared
        with anything: dates, projects and vectors may still be wrong.
        """
        ...

    def clear(self) -> None:
        """Forget everything, vectors too."""
        ...

    def select(self, filters: Filters, *, limit: int, offset: int) -> Selection:
        """Return a page of the entries that pass, newest first."""
        ...

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence | EvidenceArrays:
        """Gather everything known about distinct query terms and a vector, in one consistent view.

        Args:
            terms: what to look for.
            filters: what entries must satisfy to appear.
            vector: the query's, when there is an embedder.
            phrases: rows of terms; an entry that has one of them in a passage, without a term in
                between, is in `Evidence.phrased` if it holds a query term at all; an empty one
                stands nowhere.

        Raises:
            DimensionMismatchError: the vector's length isn't that of its embedder's vectors.
        """
        ...

    def corrections(self) -> Corrections:
        """Return what indexed entries supersede and annotate, be that indexed or not.

        It takes no time that grows with the journal unless something has changed since.
        """
        ...

    def tags(self) -> dict[str, int]:
        """Return each tag with the number of entries that carry it, most used first, ties by name.

        Tags that differ only in case count as one, under the spelling most entries use (ties: the
        one that sorts first).
        """
        ...

    def problems(self) -> list[Problem]:
        """Return the problems of all indexed entries, ordered by path and line."""
        ...

    def count(self) -> int:
        """Return the number of indexed entries."""
        ...

    def backlog(self, identity: str) -> int:
        """Return the number of entries that lack passage vectors of this embedder."""
        ...

    def claim(self, identity: str, *, limit: int, lease_s: float) -> list[EntryId]:
        """Take entries out of the backlog to work on, newest first.

        Nobody else is given them until the lease ends or their vectors are there, so that processes
        share the work. At most `limit`; empty when nothing is left to claim.
        """
        ...

    def release(self, identity: str, ids: Collection[EntryId]) -> None:
        """Give claimed entries back before their lease ends, so that anybody may claim them.

        Ids that aren't claimed or aren't indexed are passed over.
        """
        ...

    def add_vectors(self, identity: str, vectors: Sequence[PassageVectors]) -> None:
        """Keep the passage vectors of some entries, durable with the index.

        Vectors made from another version than the indexed one, of unknown entries, or with another
        number of rows than `PassageVectors` asks for are passed over.

        Raises:
            DimensionMismatchError: the embedder's vectors had another length until now.
        """
        ...

    def close(self) -> None:
        """Release files and memory; idempotent."""
        ...


class Baseline(NamedTuple):
    """How an embedder's cosines lie between texts that have nothing to do with one another."""

    mean: float
    deviation: float


class Embedder(Protocol):
    """Turns text into vectors, deterministically."""

    @property
    def name(self) -> str:
        """The model's public name, as sidecars carry it."""
        ...

    @property
    def identity(self) -> str:
        """A hash of whatever decides its vectors: weights, pooling, prefixes, how input is cut."""
        ...

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        ...

    @property
    def baseline(self) -> Baseline:
        """Cosines of unrelated texts, measured once for the model."""
        ...

    @property
    def floor(self) -> float:
        """The least cosine that makes an entry a hit by itself, measured once for the model."""
        ...

    @property
    def batch(self) -> int:
        """How many passages to give it at once, so that a call takes about 0.2 s."""
        ...

    def reach(self, text: str) -> int:
        """Return how many leading characters of a passage one vector can stand for.

        That is all of a short one, and at least one of any that isn't empty; the rest of it needs a
        vector of its own.
        """
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return vectors of passages: float32, shape (len(texts), dimension), rows L2-normalised.

        A row depends on its own text alone, within 1e-3 per component. Any text is accepted, the
        empty one too; what is too long for the model is cut, so that no text takes over a second.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Return a query's vector: float32, shape (dimension,), L2-normalised."""
        ...


class EmbedderLoader(Protocol):
    """Hands out the embedder once it is loaded; loading goes on in the background."""

    def get(self, wait_s: float) -> Embedder:
        """Return the embedder, waiting at most so long for it; the first call starts loading.

        After a failure it is tried again, at the earliest 30 s later.

        Raises:
            EmbedderUnavailableError: it is still loading, can't be loaded, or there is none.
        """
        ...
