"""What the tables say of passages and entries, as columns in memory; grows as they do.

Keys are never used twice, so rows that were read stay true; those of entries that have left are
passed over, and thrown out when they are the greater part.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from agent_journal.engines.sqlite_facts import holders
from agent_journal.engines.sqlite_file import DamagedError
from agent_journal.engines.sqlite_tables import State, encode_term, require_columns, unpack
from agent_journal.engines.sqlite_vectors import among
from agent_journal.evidence import EvidenceArrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent_journal.engines.sqlite_vectors import Dense
    from agent_journal.evidence import Integers

_SPARE = 1000


@dataclass(frozen=True, slots=True)
class _Known:
    """All that was read until some moment; replaced by a longer one, never changed.

    Attributes:
        passages: rows of key, entry, start, stop and length, each a column, by key.
        entries: rows of key and creation, each a column, by key.
        titles: hash and length of each entry's title key, each a column.
        ids, title_keys: for each entry, its `EntryId` and text; as arrays, of which rows are taken
            in a tenth of the time.
    """

    passages: Integers
    entries: Integers
    titles: Integers
    ids: NDArray[np.object_]
    title_keys: NDArray[np.object_]


_NONE: NDArray[np.object_] = np.empty(0, np.object_)
_PAIRS: Integers = np.empty((2, 0), np.int64)
_NOTHING = _Known(np.empty((5, 0), np.int64), _PAIRS, _PAIRS, _NONE, _NONE)


class Columns:
    """The columns of one index file, for one process; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moment: tuple[object, int] | None = None
        self._known = _NOTHING

    def forget(self) -> None:
        """Release the memory."""
        with self._lock:
            self._moment, self._known = None, _NOTHING

    def evidence(
        self,
        connection: sqlite3.Connection,
        state: State,
        terms: Sequence[str],
        passing: Integers | None,
        phrases: Sequence[Sequence[str]],
        compare: Callable[[Integers, Integers], Dense],
    ) -> EvidenceArrays:
        """Return what is known about some terms and a vector.

        Args:
            connection: inside a transaction.
            state: as of this transaction.
            terms: distinct.
            passing: keys of the entries that pass the filters; None means all.
            phrases: rows of terms.
            compare: given the keys of entries that hold a term, and of all that are known, returns
                the nearest entries.
        """
        known = self._refreshed(connection, state)
        found = [_occurrences(connection, term) for term in terms]
        keys = _joined([keys for keys, _ in found])
        times = _joined([times for _, times in found])
        sizes = [len(keys) for keys, _ in found]
        numbers = np.repeat(np.arange(len(terms)), sizes)
        rows = _rows(known.passages[0], keys)
        owners = known.passages[1, rows]
        ends = np.cumsum([0, *sizes])
        frequencies = tuple(
            int(np.count_nonzero(np.diff(owners[start:end], prepend=-1)))
            for start, end in itertools.pairwise(ends)
        )
        if passing is not None:
            kept = among(owners, passing)
            rows, numbers, times, owners = rows[kept], numbers[kept], times[kept], owners[kept]
        in_a_row = np.array(sorted(holders(connection, phrases)), np.int64)
        phrased = owners[np.isin(known.passages[0, rows], in_a_row)] if len(in_a_row) else in_a_row
        dense = compare(owners, known.entries[0])
        near = dense.passages[dense.passages >= 0]
        passages, posting_passages, near = _union(
            known.passages.shape[1], rows, _rows(known.passages[0], near)
        )
        near_passages = np.full(len(dense.passages), -1)
        near_passages[dense.passages >= 0] = near
        _, passage_owners, starts, ends, lengths = known.passages[:, passages]
        entries, owner_rows, near_entries = _union(
            known.entries.shape[1],
            _rows(known.entries[0], passage_owners),
            _rows(known.entries[0], dense.entries),
        )
        return EvidenceArrays(
            entry_count=state.entries,
            mean_length=state.terms / state.passages if state.passages else 0.0,
            frequencies=frequencies,
            posting_passages=posting_passages,
            posting_terms=numbers,
            occurrences=times,
            owners=owner_rows,
            starts=starts,
            ends=ends,
            lengths=lengths,
            ids=known.ids[entries],
            created=known.entries[1, entries],
            title_keys=known.title_keys[entries],
            title_hashes=known.titles[0, entries],
            title_lengths=known.titles[1, entries],
            near_entries=near_entries,
            cosines=dense.cosines,
            near_passages=near_passages,
            compared=dense.compared,
            cosine_mean=dense.cosine_mean,
            cosine_deviation=dense.cosine_deviation,
            phrased=np.searchsorted(known.entries[0, entries], np.unique(phrased)),
        )

    def _refreshed(self, connection: sqlite3.Connection, state: State) -> _Known:
        """Return at least what there is at this transaction's moment."""
        with self._lock:
            moment = state.uid, state.generation
            if self._moment == moment:
                return self._known
            is_other = self._moment is None or self._moment[0] != state.uid
            if is_other or self._known.passages.shape[1] > 2 * state.passages + _SPARE:
                self._known = _NOTHING
            self._known = _grown(connection, self._known)
            self._moment = moment
            return self._known


def _grown(connection: sqlite3.Connection, known: _Known) -> _Known:
    last = int(known.passages[0, -1]) if known.passages.shape[1] else 0
    passages = connection.execute(
        "SELECT key, entry, start, stop, length FROM passages WHERE key > ? ORDER BY key", (last,)
    ).fetchall()
    last = int(known.entries[0, -1]) if known.entries.shape[1] else 0
    entries = connection.execute(
        "SELECT key, created, id, title_key FROM entries WHERE key > ? ORDER BY key", (last,)
    ).fetchall()
    require_columns(passages, int, int, int, int, int)
    require_columns(entries, int, int, bytes, bytes)
    title_keys = [unpack(row[3]) for row in entries]
    return _Known(
        _appended(known.passages, passages),
        _appended(known.entries, [row[:2] for row in entries]),
        _appended(known.titles, [(hash(key), len(key)) for key in title_keys]),
        _with_texts(known.ids, [unpack(row[2]) for row in entries]),
        _with_texts(known.title_keys, title_keys),
    )


def _with_texts(known: NDArray[np.object_], given: Sequence[str]) -> NDArray[np.object_]:
    texts = np.empty(len(given), np.object_)
    texts[:] = given
    return np.concatenate([known, texts])


def _appended(columns: Integers, rows: Sequence[tuple[int, ...]]) -> Integers:
    if not rows:
        return columns
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64)
    return np.ascontiguousarray(np.concatenate([columns, flat.reshape(len(rows), -1).T], axis=1))


def _rows(known: Integers, keys: Integers) -> Integers:
    """Return where keys stand among all those that are known, which are in order."""
    if not len(keys):
        return keys
    is_whole = len(known) and known[-1] - known[0] == len(known) - 1  # none has left: no search
    rows = keys - known[0] if is_whole else np.searchsorted(known, keys)
    if rows.min() < 0 or rows.max() >= len(known) or (known[rows] != keys).any():
        raise DamagedError("what it refers to is missing")
    return rows


def _union(count: int, some: Integers, others: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the distinct ones of some rows of `count`, in order, and where each stands in them.

    Marks are an eighth of what sorting takes.
    """
    marks = np.zeros(count, np.bool_)
    marks[some] = True
    marks[others] = True
    places = np.cumsum(marks) - 1
    return np.flatnonzero(marks), places[some], places[others]


def _joined(columns: Sequence[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *columns])


def _occurrences(connection: sqlite3.Connection, term: str) -> tuple[Integers, Integers]:
    """Return the keys of the passages that hold a term, in order, and how often each does."""
    (found,) = connection.execute(
        "SELECT group_concat(doc) FROM postings WHERE term = ?", (encode_term(term),)
    ).fetchone()
    # One text for all of them: a third of what a row for each takes.
    keys = np.sort(np.fromstring(found or "", np.int64, sep=","))
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.diff(firsts, append=len(keys))
