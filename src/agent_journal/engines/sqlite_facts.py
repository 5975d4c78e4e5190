"""What the tables say of keys and terms, remembered for as long as the file is the same one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from agent_journal.engines.sqlite_file import DamagedError
from agent_journal.engines.sqlite_tables import encode_term, require, unpack
from agent_journal.model import EntryId
from agent_journal.ports import EntryFacts, PassageFacts

_CHUNK = 500
_IN_CHUNK = f"IN ({', '.join('?' * _CHUNK)})"


class Facts:
    """What was read about the keys of one file."""

    def __init__(self, uid: bytes) -> None:
        self.uid = uid
        self._passages: dict[int, PassageFacts] = {}
        self._entries: dict[int, EntryFacts] = {}

    def passages(
        self, connection: sqlite3.Connection, keys: AbstractSet[int]
    ) -> Mapping[int, PassageFacts]:
        """Return at least the facts of these passages."""
        known = self._passages
        query = f"SELECT key, entry, start, stop, length FROM passages WHERE key {_IN_CHUNK}"  # noqa: S608 - constants
        for row in _rows(connection, query, keys - known.keys()):
            require(row, int, int, int, int, int)
            known[row[0]] = PassageFacts(*row[1:])
        return MappingProxyType(known)

    def entries(
        self, connection: sqlite3.Connection, keys: AbstractSet[int]
    ) -> dict[int, EntryFacts]:
        """Return the facts of these entries."""
        known = self._entries
        query = f"SELECT key, id, created, title_key FROM entries WHERE key {_IN_CHUNK}"  # noqa: S608 - constants
        for row in _rows(connection, query, keys - known.keys()):
            require(row, int, bytes, int, bytes)
            known[row[0]] = EntryFacts(EntryId(unpack(row[1])), row[2], unpack(row[3]))
        return {key: known[key] for key in keys}


def _rows(
    connection: sqlite3.Connection, query: str, keys: AbstractSet[int]
) -> Iterator[tuple[Any, ...]]:
    """Yield one row for each key; the query takes `_CHUNK` of them at a time."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        found = connection.execute(query, chunk + [None] * (_CHUNK - len(chunk))).fetchall()
        if len(found) != len(chunk):
            raise DamagedError("what it refers to is missing")
        yield from found


def occurrences(connection: sqlite3.Connection, term: str) -> Counter[int]:
    """Return how often a term occurs in each passage that holds it."""
    # One text for all of them: 0.8 ms for 2,200 occurrences instead of 1.4 with a row for each.
    (found,) = connection.execute(
        "SELECT group_concat(doc) FROM postings WHERE term = ?", (encode_term(term),)
    ).fetchone()
    return Counter(map(int, found.split(","))) if found else Counter()
