"""The index in one SQLite file: full-text postings, facts and vectors, shared by processes.

Keys of entries, passages and vectors are never used twice, and an entry whose text changes gets new
ones; so what a process has once read about a key holds for as long as the file does.
"""

from __future__ import annotations

import sqlite3
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from agent_journal.corrections import Corrections
from agent_journal.engines import sqlite_folder
from agent_journal.engines.sqlite_claims import Claims, embedder_key
from agent_journal.engines.sqlite_facts import Facts, holders, occurrences
from agent_journal.engines.sqlite_file import SharedFile
from agent_journal.engines.sqlite_filters import condition, passing
from agent_journal.engines.sqlite_soundness import require_sound
from agent_journal.engines.sqlite_tables import (
    LAYOUT,
    State,
    Writer,
    clear,
    forget_words,
    pack,
    read_corrections,
    read_state,
    require,
    unpack,
    write_state,
)
from agent_journal.errors import DimensionMismatchError, IndexUnavailableError
from agent_journal.evidence import Evidence, EvidenceArrays, Posting
from agent_journal.model import EntryId, Problem
from agent_journal.ports import (
    IndexedEntry,
    PassageVectors,
    QueryVector,
    Selection,
    Version,
)
from agent_journal.query import Filters

if TYPE_CHECKING:
    from agent_journal.engines.sqlite_columns import Columns
    from agent_journal.engines.sqlite_vectors import Dense, VectorCache
    from agent_journal.evidence import Integers

_T = TypeVar("_T")
_Moment: TypeAlias = tuple[bytes, int]
"""The file's identity and its generation."""
_Step: TypeAlias = tuple[_Moment, _Moment]
"""From which moment to which a transaction of ours has brought it."""


class SqliteIndex:
    """An `Index` in a file that any number of threads and processes may use at once.

    Nothing is opened or made before the first use. A damaged file is removed and built anew, said
    once in the log; callers find the index empty. Every method may raise `IndexUnavailableError`:
    the disk is full, the folder can't be written, this SQLite lacks FTS5 or WAL, or another process
    holds the lock for too long.

    Args:
        path: the file; it and its folder are made when they are missing.
        connect: `sqlite3.connect`, or what stands in for it.
        timeout_s: the longest wait for another process's lock.
        clock: seconds since the epoch, for leases.
    """

    def __init__(
        self,
        path: Path,
        *,
        connect: Callable[..., sqlite3.Connection] = sqlite3.connect,
        timeout_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._claims = Claims(clock)
        self._file = SharedFile(path, LAYOUT, connect=connect, timeout_s=timeout_s)
        self._facts = Facts(b"")
        self._vectors: VectorCache | None = None
        self._columns: Columns | None = None
        self._listing: _Cached[dict[EntryId, Version]] = _Cached()
        self._tags: _Cached[dict[str, int]] = _Cached()
        self._corrections: _Cached[Corrections] = _Cached()
        self._backlogs: dict[str, _Cached[int]] = {}

    @property
    def location(self) -> str:
        """Where the index is, for messages."""
        return str(self._path)

    def generation(self) -> object:
        """Return a token that differs after any change by any process; compare it only."""
        return self._file.read(read_state)[:2]

    def origin(self) -> object:
        """Return a token that differs once it was cleared or replaced; compare it only."""
        return self._file.read(read_state).uid

    def listing(self) -> Mapping[EntryId, Version]:
        """Return the version under which each entry is indexed."""

        def work(connection: sqlite3.Connection) -> dict[EntryId, Version]:
            try:
                rows = connection.execute(
                    "SELECT CAST(id AS TEXT), CAST(version || '/' || sidecar_version AS TEXT)"
                    " FROM entries"
                ).fetchall()
                return {EntryId(entry_id): Version(version) for entry_id, version in rows}
            except sqlite3.OperationalError:  # SQLite's text can't be a lone surrogate
                blobs = connection.execute("SELECT id, version, sidecar_version FROM entries")
                rows = [tuple(map(unpack, row)) for row in blobs]
                return {EntryId(row[0]): Version.of(row[1], row[2]) for row in rows}

        return MappingProxyType(self._listing.get(self._file, work))

    def update(
        self, changed: Collection[IndexedEntry], removed: Collection[EntryId] = ()
    ) -> list[EntryId]:
        """Index entries and forget others; see `Index.update`."""

        def work(connection: sqlite3.Connection) -> tuple[list[EntryId], _Step]:
            before = read_state(connection)[:2]
            writer = Writer(connection)
            for entry_id in removed:
                writer.forget(entry_id)
            passed_over = [entry.id for entry in changed if not writer.put(entry)]
            writer.finish()
            return passed_over, (before, read_state(connection)[:2])

        self._claims.forget()
        if not changed and not removed:
            return []
        passed_over, step = self._file.write(work)
        left = set(passed_over)

        def updated(known: dict[EntryId, Version]) -> dict[EntryId, Version]:
            known = dict(known)
            for entry_id in removed:
                known.pop(entry_id, None)
            known.update((one.id, one.version) for one in changed if one.id not in left)
            return known

        self._listing.follow(step, updated)
        return passed_over

    def purge(self, ids: Collection[EntryId]) -> None:
        """Forget entries without a trace; see `Index.purge`."""

        def work(connection: sqlite3.Connection) -> None:
            writer = Writer(connection)
            for entry_id in ids:
                writer.forget(entry_id)
            writer.finish()
            forget_words(connection)

        if self._path.exists():
            try:
                self._file.write(work)
                self._file.compact()
            except IndexUnavailableError:
                self._file.discard()
        needles = [pack(entry_id) for entry_id in ids]
        folder, application = self._path.parent, LAYOUT.application
        sqlite_folder.remove_holding(folder, application, needles, keep=self._path)

    def verify(self) -> None:
        """Look for damage that no reading meets; see `Index.verify`."""
        if self._path.exists():
            self._file.write(require_sound)

    def clear(self) -> None:
        """Forget everything, vectors too."""
        self._file.write(clear)

    def select(self, filters: Filters, *, limit: int, offset: int) -> Selection:
        """Return a page of the entries that pass, newest first."""

        def work(connection: sqlite3.Connection) -> Selection:
            where, parameters = condition(connection, filters)
            (total,) = connection.execute(
                f"SELECT count(*) FROM entries WHERE {where}",  # noqa: S608 - constants
                parameters,
            ).fetchone()
            rows = connection.execute(
                f"SELECT id FROM entries WHERE {where}"  # noqa: S608 - constants
                " ORDER BY created DESC, id DESC LIMIT ? OFFSET ?",
                (*parameters, limit, offset),
            )
            return Selection(total, tuple(EntryId(unpack(row[0])) for row in rows))

        return self._file.read(work)

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence | EvidenceArrays:
        """Gather everything known about distinct query terms and a vector; see `Index.evidence`."""

        def work(connection: sqlite3.Connection) -> Evidence | EvidenceArrays:
            state = read_state(connection)
            chosen = passing(connection, filters)
            if vector is None:
                return self._evidence(connection, state, terms, chosen, phrases)
            _require_dimension(connection, vector)
            return self._evidence_with_vectors(connection, state, terms, chosen, phrases, vector)

        return self._file.read(work)

    def corrections(self) -> Corrections:
        """Return what indexed entries supersede and annotate; see `Index.corrections`."""
        return self._corrections.get(self._file, read_corrections)

    def tags(self) -> dict[str, int]:
        """Return each tag with the number of entries that carry it; see `Index.tags`."""

        def work(connection: sqlite3.Connection) -> dict[str, int]:
            shown: dict[bytes, bytes] = {}
            counts: dict[bytes, int] = {}
            rows = connection.execute(
                "SELECT folded, tag, firsts FROM tag_counts ORDER BY uses DESC, tag"
            ).fetchall()
            for row in rows:
                require(row, bytes, bytes, int)
            for folded, tag, firsts in rows:
                shown.setdefault(folded, tag)
                counts[folded] = counts.get(folded, 0) + firsts
            tags = {unpack(shown[folded]): count for folded, count in counts.items()}
            return dict(sorted(tags.items(), key=lambda item: (-item[1], item[0])))

        return dict(self._tags.get(self._file, work))

    def problems(self) -> list[Problem]:
        """Return the problems of all indexed entries, ordered by path and line."""

        def work(connection: sqlite3.Connection) -> list[Problem]:
            rows = connection.execute(
                "SELECT path, reason, line FROM problems ORDER BY path, coalesce(line, 0), reason"
            )
            return [Problem(unpack(path), unpack(reason), line) for path, reason, line in rows]

        return self._file.read(work)

    def count(self) -> int:
        """Return the number of indexed entries."""
        return self._file.read(read_state).entries

    def backlog(self, identity: str) -> int:
        """Return the number of entries that lack passage vectors of this embedder."""
        known = self._backlogs.setdefault(identity, _Cached())
        return known.get(self._file, lambda connection: _backlog(connection, identity))

    def claim(self, identity: str, *, limit: int, lease_s: float) -> list[EntryId]:
        """Take entries out of the backlog to work on, newest first; see `Index.claim`."""
        if not self._claims.is_under_way(identity) and not self.backlog(identity):
            return []
        return self._file.write(
            lambda connection: self._claims.take(connection, identity, limit, lease_s)
        )

    def release(self, identity: str, ids: Collection[EntryId]) -> None:
        """Give claimed entries back before their lease ends; see `Index.release`."""
        self._file.write(lambda connection: self._claims.release(connection, identity, ids))

    def add_vectors(self, identity: str, vectors: Sequence[PassageVectors]) -> None:
        """Keep the passage vectors of some entries; see `Index.add_vectors`."""

        def work(connection: sqlite3.Connection) -> _Step:
            state = read_state(connection)
            fitting = list(_fitting(connection, vectors))
            if not fitting:
                return state[:2], state[:2]
            embedder = embedder_key(connection, identity)
            length = len(fitting[0][2].matrix[0])
            connection.execute(
                "UPDATE embedders SET dimension = ? WHERE key = ? AND dimension IS NULL",
                (length, embedder),
            )
            dimension = _dimension(connection, identity)
            for key, first, given in fitting:
                actual = len(given.matrix[0])
                if actual != dimension:
                    raise DimensionMismatchError(dimension or actual, actual)
                connection.execute(
                    "INSERT OR REPLACE INTO vectors"
                    " (embedder, entry, first_passage, matrix, counts) VALUES (?, ?, ?, ?, ?)",
                    (
                        embedder,
                        key,
                        first,
                        given.matrix.astype("float32").tobytes(),
                        array("H", given.counts).tobytes(),
                    ),
                )
                connection.execute(
                    "DELETE FROM leases WHERE embedder = ? AND entry = ?", (embedder, key)
                )
            write_state(connection, state)
            return state[:2], read_state(connection)[:2]

        if vectors:
            self._listing.follow(self._file.write(work), lambda known: known)

    def close(self) -> None:
        """Release files and memory; idempotent."""
        self._file.close()
        self._facts = Facts(b"")
        if self._vectors is not None:
            self._vectors.forget()
        if self._columns is not None:
            self._columns.forget()
        self._listing.forget()
        self._tags.forget()
        self._corrections.forget()
        self._backlogs.clear()
        self._claims.forget()

    def _evidence(
        self,
        connection: sqlite3.Connection,
        state: State,
        terms: Sequence[str],
        passing: set[int] | None,
        phrases: Sequence[Sequence[str]],
    ) -> Evidence:
        facts = self._facts
        if facts.uid != state.uid:
            facts = self._facts = Facts(state.uid)
        counts = [occurrences(connection, term) for term in terms]
        known = facts.passages(connection, {key for count in counts for key in count})
        postings: list[Posting] = []
        frequencies: list[int] = []
        for number, count in enumerate(counts):
            holding = {known[passage][0] for passage in count}
            frequencies.append(len(holding))
            chosen: Mapping[int, int] = count
            if passing is not None:
                chosen = {key: n for key, n in count.items() if known[key][0] in passing}
            postings += zip(chosen, repeat(number), chosen.values(), strict=False)
        named = {passage for passage, _, _ in postings}
        in_a_row = holders(connection, phrases)
        return Evidence(
            entry_count=state.entries,
            mean_length=state.terms / state.passages if state.passages else 0.0,
            frequencies=tuple(frequencies),
            postings=postings,
            passages={key: known[key] for key in named},
            entries=facts.entries(connection, {known[passage][0] for passage in named}),
            phrased=frozenset(known[passage][0] for passage in named & in_a_row),
        )

    def _evidence_with_vectors(
        self,
        connection: sqlite3.Connection,
        state: State,
        terms: Sequence[str],
        passing: set[int] | None,
        phrases: Sequence[Sequence[str]],
        vector: QueryVector,
    ) -> EvidenceArrays:
        import numpy as np  # noqa: PLC0415 - slow, and there whenever a vector is

        from agent_journal.engines.sqlite_columns import Columns  # noqa: PLC0415 - imports numpy
        from agent_journal.engines.sqlite_vectors import VectorCache  # noqa: PLC0415 - goes with it

        columns = self._columns = self._columns or Columns()
        cache = self._vectors = self._vectors or VectorCache()
        chosen = None if passing is None else np.fromiter(passing, np.int64, len(passing))

        def compare(worded: Integers, known: Integers) -> Dense:
            return cache.compare(
                connection,
                vector,
                moment=(state.uid, state.generation, state.entries),
                known=known,
                passing=chosen,
                worded=worded,
            )

        return columns.evidence(connection, state, terms, chosen, phrases, compare)


def remove_unused(folder: Path, *, older_than_days: float, keep: Path) -> list[Path]:
    """Remove indexes that nobody has opened for some days, and return them.

    Args:
        folder: where indexes are; a missing one holds none, and strangers' databases stay.
        older_than_days: an index in use is touched once a day.
        keep: never removed.
    """
    return sqlite_folder.remove_unused(
        folder, LAYOUT.application, older_than_days=older_than_days, keep=keep
    )


class _Cached(Generic[_T]):
    """An answer that is kept until the index changes."""

    def __init__(self) -> None:
        self._known: tuple[_Moment, _T] | None = None

    def get(self, file: SharedFile, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what the work returns, or returned for this generation."""

        def look(connection: sqlite3.Connection) -> _T:
            generation = read_state(connection)[:2]
            known = self._known
            if known is None or known[0] != generation:
                known = self._known = generation, work(connection)
            return known[1]

        return file.read(look)

    def follow(self, step: _Step, change: Callable[[_T], _T]) -> None:
        """Go along with a change of our own, if the answer is known as it was before that."""
        known = self._known
        if known is not None and known[0] == step[0]:
            self._known = step[1], change(known[1])

    def forget(self) -> None:
        """Release the memory."""
        self._known = None


def _dimension(connection: sqlite3.Connection, identity: str) -> int | None:
    row = connection.execute(
        "SELECT dimension FROM embedders WHERE identity = ?", (pack(identity),)
    ).fetchone()
    return row[0] if row else None


def _require_dimension(connection: sqlite3.Connection, vector: QueryVector) -> None:
    actual = len(vector.vector)
    expected = _dimension(connection, vector.identity)
    if expected is not None and expected != actual:
        raise DimensionMismatchError(expected, actual)


def _backlog(connection: sqlite3.Connection, identity: str) -> int:
    (done,) = connection.execute(
        "SELECT count(*) FROM embedders JOIN vectors ON embedder = embedders.key"
        " WHERE identity = ?",
        (pack(identity),),
    ).fetchone()
    return read_state(connection).entries - int(done)


def _fitting(
    connection: sqlite3.Connection, vectors: Iterable[PassageVectors]
) -> Iterator[tuple[int, int, PassageVectors]]:
    """Yield (the entry's key, its first passage, vectors) for those that fit what is indexed."""
    for given in vectors:
        row = connection.execute(
            "SELECT key, first_passage, passages FROM entries WHERE id = ? AND version = ?",
            (pack(given.id), pack(given.version)),
        ).fetchone()
        if row and given.fits(row[2]):
            yield row[0], row[1], given
