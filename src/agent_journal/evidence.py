"""What an index knows about a query, for `ranking` to judge; the same on every engine.

It comes in two forms that say the same: mappings, which need nothing, and arrays, which take an
eighth of the time once numpy is there. It is there when vectors were compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from agent_journal.model import EntryId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

Posting: TypeAlias = tuple[int, int, int]
"""A term's occurrences in one passage: the passage's key, the term's place in the query, how many.

A plain tuple, since common words make thousands of them.
"""

Nearest: TypeAlias = tuple[float, int | None]
"""An entry's best cosine, in [-1, 1], and the key of the passage that has it.

The key is None when its title has it, or a sidecar stood in: then the whole entry is meant.
"""


class PassageFacts(NamedTuple):
    """A passage that some evidence speaks of.

    Attributes:
        entry: the key of its entry in `Evidence.entries`.
        start, end: where it stands in the entry's body, in characters.
        length: its number of lexical terms.
    """

    entry: int
    start: int
    end: int
    length: int


class EntryFacts(NamedTuple):
    """An entry that some evidence speaks of.

    Attributes:
        created: milliseconds since the epoch.
        title_key: as `IndexedEntry.title_key`.
    """

    id: EntryId
    created: int
    title_key: str


class Evidence(NamedTuple):
    """What an index knows about a query, for `ranking` to judge; the same on every engine.

    Keys of passages and entries are opaque integers, valid within this object. Only entries that
    pass the filters appear in it; the statistics are those of the whole journal.

    Attributes:
        entry_count: entries in the journal.
        mean_length: terms per passage, averaged over the journal; 0.0 when it has none.
        frequencies: for each query term, the number of entries that hold it.
        postings: every occurrence of a query term; see `Posting`.
        passages: facts of every passage named in `postings` or `nearest`.
        entries: facts of every entry named in `passages` or `nearest`.
        nearest: best cosine of every entry that has a posting, or a cosine of at least the floor,
            and has a vector of the query's embedder or a sidecar of its model.
        compared: filtered entries that had such a vector.
        cosine_mean, cosine_deviation: over the best cosines of those entries; 0.0 without any.
        phrased: keys of the entries in which a quoted phrase stands; all of them have postings.
    """

    entry_count: int
    mean_length: float
    frequencies: tuple[int, ...]
    postings: Sequence[Posting]
    passages: Mapping[int, PassageFacts]
    entries: Mapping[int, EntryFacts]
    nearest: Mapping[int, Nearest] = MappingProxyType({})
    compared: int = 0
    cosine_mean: float = 0.0
    cosine_deviation: float = 0.0
    phrased: frozenset[int] = frozenset()

    def plain(self) -> Evidence:
        """Return the same, as `EvidenceArrays.plain` does."""
        return self


class EvidenceArrays(NamedTuple):
    """`Evidence` in columns; a row stands for what the other form calls by a key.

    Attributes:
        entry_count, mean_length, frequencies: as `Evidence` has them.
        posting_passages, posting_terms, occurrences: for each posting, its passage's row, its
            term's place in the query, and how often the term occurs; no such pair comes twice.
        owners, starts, ends, lengths: for each passage, its entry's row and its `PassageFacts`;
            the passages of an entry stand together, in their order, entries by row.
        ids, created, title_keys: for each entry, its `EntryFacts`.
        title_hashes, title_lengths: `hash` and `len` of each title key, which tell in one step of
            nearly all titles that they have nothing to do with a query.
        near_entries, cosines, near_passages: for each nearest entry its row, its best cosine, and
            the row of the passage that has it; -1 when no passage has.
        compared, cosine_mean, cosine_deviation: as `Evidence` has them.
        phrased: the rows of the entries in which a quoted phrase stands.
    """

    entry_count: int
    mean_length: float
    frequencies: tuple[int, ...]
    posting_passages: Integers
    posting_terms: Integers
    occurrences: Integers
    owners: Integers
    starts: Integers
    ends: Integers
    lengths: Integers
    ids: Sequence[EntryId] | NDArray[np.object_]
    created: Integers
    title_keys: Sequence[str] | NDArray[np.object_]
    title_hashes: Integers
    title_lengths: Integers
    near_entries: Integers
    cosines: Floats
    near_passages: Integers
    compared: int
    cosine_mean: float
    cosine_deviation: float
    phrased: Integers

    @classmethod
    def of(cls, evidence: Evidence) -> EvidenceArrays:
        """Return the same evidence in columns."""
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        def column(values: Sequence[int]) -> Integers:
            return np.array(values, np.int64)

        entry_rows = {key: row for row, key in enumerate(evidence.entries)}
        placed = sorted(
            ((entry_rows[facts.entry], facts.start, key), facts)
            for key, facts in evidence.passages.items()
        )
        passage_rows: dict[int | None, int] = {
            key: row for row, ((*_, key), _) in enumerate(placed)
        }
        passage_rows[None] = -1
        facts = evidence.entries.values()
        nearest = evidence.nearest
        return cls(
            entry_count=evidence.entry_count,
            mean_length=evidence.mean_length,
            frequencies=evidence.frequencies,
            posting_passages=column([passage_rows[key] for key, _, _ in evidence.postings]),
            posting_terms=column([term for _, term, _ in evidence.postings]),
            occurrences=column([times for _, _, times in evidence.postings]),
            owners=column([row for (row, _, _), _ in placed]),
            starts=column([one.start for _, one in placed]),
            ends=column([one.end for _, one in placed]),
            lengths=column([one.length for _, one in placed]),
            ids=[one.id for one in facts],
            created=column([one.created for one in facts]),
            title_keys=[one.title_key for one in facts],
            title_hashes=column([hash(one.title_key) for one in facts]),
            title_lengths=column([len(one.title_key) for one in facts]),
            near_entries=column([entry_rows[key] for key in nearest]),
            cosines=np.array([cosine for cosine, _ in nearest.values()], np.float64),
            near_passages=column([passage_rows[passage] for _, passage in nearest.values()]),
            compared=evidence.compared,
            cosine_mean=evidence.cosine_mean,
            cosine_deviation=evidence.cosine_deviation,
            phrased=column([entry_rows[key] for key in sorted(evidence.phrased)]),
        )

    def plain(self) -> Evidence:
        """Return the same evidence in mappings, under the rows as keys."""
        postings = (self.posting_passages, self.posting_terms, self.occurrences)
        passages = (self.owners, self.starts, self.ends, self.lengths)
        nearest = (self.near_entries, self.cosines, self.near_passages)
        return Evidence(
            entry_count=self.entry_count,
            mean_length=self.mean_length,
            frequencies=self.frequencies,
            postings=list(zip(*(column.tolist() for column in postings), strict=True)),
            passages={
                row: PassageFacts(*facts)
                for row, facts in enumerate(
                    zip(*(column.tolist() for column in passages), strict=True)
                )
            },
            entries={
                row: EntryFacts(*facts)
                for row, facts in enumerate(
                    zip(self.ids, self.created.tolist(), self.title_keys, strict=True)
                )
            },
            nearest={
                row: (cosine, None if passage < 0 else passage)
                for row, cosine, passage in zip(
                    *(column.tolist() for column in nearest), strict=True
                )
            },
            compared=self.compared,
            cosine_mean=self.cosine_mean,
            cosine_deviation=self.cosine_deviation,
            phrased=frozenset(self.phrased.tolist()),
        )
