"""The vectors of an index as one matrix in memory, so that a query is one multiplication.

The matrix grows by what was added since the last query. What has left the index is passed over,
and thrown out when it is the greater part.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent_journal.engines.sqlite_file import DamagedError
from agent_journal.engines.sqlite_tables import pack, require_columns
from agent_journal.ports import QueryVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_journal.evidence import Floats, Integers
    from agent_journal.ports import Matrix, Vector

    _Number = TypeVar("_Number", np.float32, np.int32)

_FLOAT_BYTES = 4
_COUNT_BYTES = 2
_FETCH = 256
_NO_PASSAGE = -1
_FEW_LACKING = 500  # entries without vectors whose sidecars are read for each search
_ORDER = " ORDER BY key"
_FEW = 4  # rows of a slot that are compared column by column


class Dense(NamedTuple):
    """What vectors say of a query.

    Attributes:
        entries, cosines, passages: for each of the nearest entries its key, its best cosine, and
            the key of the passage that has it; -1 when its title has, or a sidecar stood in.
        compared, cosine_mean, cosine_deviation: as `Evidence` has them.
    """

    entries: Integers
    cosines: Floats
    passages: Integers
    compared: int
    cosine_mean: float
    cosine_deviation: float


class _Source(NamedTuple):
    """Where a matrix comes from: one embedder's passages, or one model's sidecars.

    Attributes:
        added: selects all beyond a key, in order.
        present: selects the keys.
        size: selects how many bytes all vectors have.
    """

    added: str
    present: str
    size: str
    parameters: tuple[object, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this source from others."""
        return (self.added, *self.parameters)

    def only(self, entries: Sequence[int]) -> _Source:
        """Return the part of it that is of some entries."""
        which = f" AND entry IN ({', '.join(map(str, entries))})"
        added, order = self.added.split(_ORDER)
        return self._replace(
            added=f"{added}{which}{_ORDER}{order}",
            present=self.present + which,
            size=self.size + which,
        )


class VectorCache:
    """Matrices of an index file, for one process; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uid: object = None
        self._matrices: dict[tuple[object, ...], _Growing] = {}

    def forget(self) -> None:
        """Release the memory."""
        with self._lock:
            self._matrices.clear()

    def compare(
        self,
        connection: sqlite3.Connection,
        vector: QueryVector,
        *,
        moment: tuple[object, int, int],
        known: Integers,
        passing: Integers | None,
        worded: Integers,
    ) -> Dense:
        """Return the nearest entries as `Evidence` wants them.

        Args:
            connection: inside a transaction.
            vector: what to compare with; its length is right.
            moment: the file's identity, the generation, and the number of entries.
            known: keys of all entries, and perhaps of some that have left.
            passing: keys of the entries to compare; None means all.
            worded: keys of the entries whose cosine is wanted whatever it is.
        """
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        uid, generation, entries = moment
        length = len(vector.vector)
        with self._lock:
            if uid != self._uid:
                self._matrices.clear()
                self._uid = uid
            own = self._view(connection, _passages(vector.identity), length, generation)
            views = [own]
            having = own.entries[own.alive]
            lacking = entries - len(having)
            source = _sidecars(vector.model, length)
            if lacking > _FEW_LACKING:
                spare = self._view(connection, source, length, generation)
                views.append(spare.without(among(spare.entries, having)))
            else:
                self._matrices.pop(source.key, None)
            if 0 < lacking <= _FEW_LACKING:
                few = known[~among(known, having)]
                views.append(_Growing.of(length, connection, source.only(few.tolist())).view())
        found = [view.compare(vector, passing, worded) for view in views]
        near, cosines, passages, best = (
            np.concatenate(parts) for parts in zip(*found, strict=True)
        )
        mean, deviation = (float(best.mean()), float(best.std())) if len(best) else (0.0, 0.0)
        return Dense(near, cosines, passages, len(best), mean, deviation)

    def _view(
        self, connection: sqlite3.Connection, source: _Source, length: int, generation: int
    ) -> _View:
        growing = self._matrices.get(source.key)
        if growing is None:
            growing = self._matrices[source.key] = _Growing(length)
        if growing.generation != generation:
            growing.refresh(connection, source)
            if growing.is_mostly_dead():
                growing = self._matrices[source.key] = _Growing.of(length, connection, source)
            growing.generation = generation
        return growing.view()


def _passages(identity: str) -> _Source:
    embedder = "(SELECT key FROM embedders WHERE identity = ?)"
    # The + keeps SQLite from going by its index on embedders, and then sorting half a gigabyte.
    return _Source(
        added="SELECT key, entry, first_passage, matrix, counts FROM vectors "  # noqa: S608 - constants
        f"WHERE +embedder = {embedder} AND key > ?{_ORDER}",
        present=f"SELECT key FROM vectors WHERE embedder = {embedder}",  # noqa: S608 - constants
        size=f"SELECT sum(length(matrix)) FROM vectors WHERE +embedder = {embedder}",  # noqa: S608 - as above
        parameters=(pack(identity),),
    )


def _sidecars(model: str, dimension: int) -> _Source:
    # Nearly all are of one model: + keeps SQLite from going by it, and not by entry or key.
    return _Source(
        added=f"SELECT key, entry, {_NO_PASSAGE}, vector, x'' FROM sidecars "  # noqa: S608 - constants
        f"WHERE +model = ? AND +dimension = ? AND key > ?{_ORDER}",
        present="SELECT key FROM sidecars WHERE +model = ? AND +dimension = ?",
        size="SELECT sum(length(vector)) FROM sidecars WHERE +model = ? AND +dimension = ?",
        parameters=(pack(model), dimension),
    )


class _View(NamedTuple):
    """A matrix as it was at one moment; a slot is the rows of an entry, or its sidecar's.

    Attributes:
        ordinals: for each row, which of its entry's passages it is of, or -1.
        entries, first_passages: for each slot.
        spans: the rows of each slot.
        alive: for each slot, whether it counts.
    """

    matrix: Matrix
    ordinals: NDArray[np.int32]
    entries: Integers
    first_passages: Integers
    spans: _Spans
    alive: NDArray[np.bool_]

    def without(self, slots: NDArray[np.bool_]) -> _View:
        """Return the view with fewer slots alive."""
        return self._replace(alive=self.alive & ~slots)

    def compare(
        self,
        vector: QueryVector,
        chosen: Integers | None,
        wanted: Integers,
    ) -> tuple[Integers, Floats, Integers, Floats]:
        """Return the nearest entries as `Dense` has them, and all best cosines."""
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        selected = self.alive if chosen is None else self.alive & among(self.entries, chosen)
        if not selected.any():
            nothing = np.empty(0, np.int64)
            return nothing, np.empty(0, np.float64), nothing, np.empty(0, np.float64)
        cosines: Vector = np.clip(self.matrix @ vector.vector, -1.0, 1.0)
        greatest = self.spans.greatest(cosines)
        best = greatest.astype(np.float64)
        near = selected & ((best >= vector.floor) | among(self.entries, wanted))
        slots = np.flatnonzero(near)
        passages = np.full(len(slots), _NO_PASSAGE)
        if self.first_passages[0] != _NO_PASSAGE:
            ordinals = self.ordinals[self.spans.places(cosines, greatest, slots)]
            of_passages = ordinals != _NO_PASSAGE
            passages[of_passages] = (self.first_passages[slots] + ordinals)[of_passages]
        return self.entries[slots], best[slots], passages, best[selected]


def among(entries: Integers, chosen: Integers) -> NDArray[np.bool_]:
    """Tell for each entry's key whether it was chosen; ten times as quick as sorting them."""
    import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

    marks = np.zeros(max(entries.max(initial=0), chosen.max(initial=0)) + 1, np.bool_)
    marks[chosen] = True
    return marks[entries]


class _Spans:
    """The rows of each slot, which stand together: where the greatest of some numbers are.

    `maximum.reduceat` takes 50 ns a slot. Most have two or three rows, for which whole columns are
    compared at once in a fifth of that.

    Args:
        firsts: the first row of each slot, in order.
        count: of all rows.
    """

    def __init__(self, firsts: Integers, count: int) -> None:
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        self._firsts = firsts
        self._lengths = lengths = np.diff(firsts, append=count)
        self._columns = [
            (slots, firsts[slots] + nth)
            for nth in range(1, _FEW)
            for slots in (np.flatnonzero(lengths > nth),)
        ]
        self._long = np.flatnonzero(lengths > _FEW)
        own = lengths[self._long]
        self._starts = np.cumsum(own) - own
        within = np.arange(own.sum()) - np.repeat(self._starts, own)
        self._rows = np.repeat(firsts[self._long], own) + within

    def greatest(self, numbers: Vector) -> Vector:
        """Return each slot's greatest of some numbers, one for each row."""
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        best = numbers[self._firsts]
        for slots, rows in self._columns:
            best[slots] = np.maximum(best[slots], numbers[rows])
        if len(self._long):
            best[self._long] = np.maximum.reduceat(numbers[self._rows], self._starts)
        return best

    def places(self, numbers: Vector, best: Vector, slots: Integers) -> Integers:
        """Return, for some slots, the first row that has the greatest number of its slot."""
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        rows = self._firsts[slots]
        missing, nth = np.flatnonzero(numbers[rows] != best[slots]), 0
        while len(missing):
            nth += 1
            missing = missing[self._lengths[slots[missing]] > nth]  # damaged numbers equal nothing
            rows[missing] += 1
            missing = missing[numbers[rows[missing]] != best[slots[missing]]]
        return rows


class _Growing:
    """A matrix with room at its end, and what is known of each slot."""

    def __init__(self, dimension: int) -> None:
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        self.generation = -1
        self._dimension = dimension
        self._matrix: Matrix = np.empty((0, dimension), np.float32)
        self._ordinals: NDArray[np.int32] = np.empty(0, np.int32)
        self._rows = 0
        self._slots: Integers = np.empty((4, 0), np.int64)
        self._alive: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._spans: _Spans | None = None

    @classmethod
    def of(cls, dimension: int, connection: sqlite3.Connection, source: _Source) -> _Growing:
        """Return a matrix of all that a source has."""
        growing = cls(dimension)
        growing.refresh(connection, source)
        return growing

    def refresh(self, connection: sqlite3.Connection, source: _Source) -> None:
        """Append what was added, and note what is still present."""
        import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

        last = int(self._slots[0, -1]) if self._slots.shape[1] else 0
        if not self._rows:
            (size,) = connection.execute(source.size, source.parameters).fetchone()
            self._make_room(int(size or 0) // (self._dimension * _FLOAT_BYTES))
        cursor = connection.execute(source.added, (*source.parameters, last))
        added: list[tuple[int, int, int, int]] = []
        while rows := cursor.fetchmany(_FETCH):
            added += self._append(rows)
        if added:
            new = np.array(added, np.int64).T
            self._slots = np.ascontiguousarray(np.concatenate([self._slots, new], axis=1))
            self._spans = None
        present = [key for (key,) in connection.execute(source.present, source.parameters)]
        self._alive = np.isin(self._slots[0], np.array(present, np.int64))

    def is_mostly_dead(self) -> bool:
        """Tell whether most of the matrix is of entries that have left."""
        return 2 * int(self._alive.sum()) < len(self._alive)

    def view(self) -> _View:
        """Return the matrix as it is now; growing later leaves the view as it is."""
        _, entries, first_rows, first_passages = self._slots
        if self._spans is None:
            self._spans = _Spans(first_rows, self._rows)
        matrix, ordinals = self._matrix[: self._rows], self._ordinals[: self._rows]
        return _View(matrix, ordinals, entries, first_passages, self._spans, self._alive)

    def _append(self, rows: list[tuple[Any, ...]]) -> list[tuple[int, int, int, int]]:
        """Copy the rows' blobs to the end; return (key, entry, first row, first passage) each."""
        width = self._dimension * _FLOAT_BYTES
        require_columns(rows, int, int, int, bytes, bytes)
        lengths = [len(row[3]) // width for row in rows]
        if not all(lengths) or any(len(row[3]) % width for row in rows):
            raise DamagedError("a vector has a wrong length")
        end = self._rows + sum(lengths)
        if end > len(self._matrix):
            self._make_room(max(end, 2 * len(self._matrix)))
        self._ordinals[self._rows : end] = _ordinals(lengths, [row[4] for row in rows])
        target = self._matrix.data.cast("B")
        slots: list[tuple[int, int, int, int]] = []
        for (key, entry, first_passage, blob, _), length in zip(rows, lengths, strict=True):
            start = self._rows * width
            target[start : start + len(blob)] = blob
            slots.append((key, entry, self._rows, first_passage))
            self._rows += length
        return slots

    def _make_room(self, rows: int) -> None:
        self._matrix = _grown(self._matrix, (rows, self._dimension), self._rows)
        self._ordinals = _grown(self._ordinals, (rows,), self._rows)


def _grown(old: NDArray[_Number], shape: tuple[int, ...], kept: int) -> NDArray[_Number]:
    """Return a larger array with the first rows of another."""
    import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

    grown = np.empty(shape, old.dtype)
    grown[:kept] = old[:kept]
    return grown


def _ordinals(lengths: list[int], counts: list[bytes]) -> NDArray[np.int32]:
    """Return for each row of some slots which passage it is of; the last of a slot is of none.

    Args:
        lengths: how many rows each slot has.
        counts: how many of them each passage has, as bytes; empty when it is one.

    Raises:
        DamagedError: the two don't fit.
    """
    import numpy as np  # noqa: PLC0415 - slow, and needed for vectors only

    ends = np.cumsum(lengths)
    ordinals = np.arange(ends[-1], dtype=np.int32)
    ordinals -= np.repeat(ends - lengths, lengths).astype(np.int32)
    for end, length, packed in zip(ends, lengths, counts, strict=True):
        if packed:
            own = array("H", packed) if len(packed) % _COUNT_BYTES == 0 else array("H")
            if sum(own) != length - 1:
                raise DamagedError("a passage's vectors are missing")
            ordinals[end - length : end - 1] = np.repeat(np.arange(len(own)), own)
    ordinals[ends - 1] = _NO_PASSAGE
    return ordinals
