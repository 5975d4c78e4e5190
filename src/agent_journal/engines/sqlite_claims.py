"""Who works on which entries without vectors: leases, and where the last claim ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from agent_journal.engines.sqlite_tables import pack, read_state, unpack
from agent_journal.model import EntryId

_Age: TypeAlias = tuple[int, bytes]
"""An entry's creation and id: what claims go by."""


class _Span(NamedTuple):
    """What was looked through of one file: whatever is in it has vectors or is leased.

    Other processes may free some of it sooner than it ends; then that has to wait so long.

    Attributes:
        since, until: seconds since the epoch; when the first of its leases ends.
    """

    uid: bytes
    since: float
    until: float
    newest: _Age
    oldest: _Age


class Claims:
    """Gives out the entries of one index file that lack vectors; see `Index.claim`.

    Entries that have vectors are not looked at again for each claim, or making the vectors of all
    would take time that grows with their square.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spans: dict[str, _Span] = {}

    def is_under_way(self, identity: str) -> bool:
        """Tell whether the last claim gave out something."""
        return identity in self._spans

    def take(
        self, connection: sqlite3.Connection, identity: str, limit: int, lease_s: float
    ) -> list[EntryId]:
        """Lease the newest entries that lack vectors and aren't leased to anybody.

        Args:
            connection: inside a transaction that writes.
            identity: the embedder's.
            limit: at most so many.
            lease_s: for how long.
        """
        now = self._clock()  # inside: leases given while this one waited are older
        embedder = embedder_key(connection, identity)
        uid = read_state(connection).uid
        span = self._spans.get(identity)
        rows: list[tuple[int, bytes, int]] = []

        def look(where: str, age: _Age | tuple[()]) -> None:
            # A lease from the future was given before the clock was set back: it does not count.
            rows.extend(
                connection.execute(
                    f"SELECT key, id, created FROM entries WHERE {where} NOT EXISTS"  # noqa: S608 - constants
                    " (SELECT 1 FROM vectors WHERE embedder = ? AND entry = entries.key)"
                    " AND NOT EXISTS (SELECT 1 FROM leases WHERE embedder = ?"
                    " AND entry = entries.key AND since <= ? AND until > ?)"
                    " ORDER BY created DESC, id DESC LIMIT ?",
                    (*age, embedder, embedder, now, now, max(limit - len(rows), 0)),
                )
            )

        if span and span.uid == uid and span.since <= now < span.until:
            look("(created, id) > (?, ?) AND", span.newest)
            look("(created, id) < (?, ?) AND", span.oldest)
        else:
            span = None
        if len(rows) < limit:  # so little is left that all may be looked through
            rows.clear()
            look("", ())
        if not rows:
            self._spans.pop(identity, None)
            return []
        ages = [(created, entry_id) for _, entry_id, created in rows]
        since, until = (
            (span.since, min(span.until, now + lease_s)) if span else (now, now + lease_s)
        )
        newest = max(ages[0], span.newest) if span else ages[0]
        self._spans[identity] = _Span(uid, since, until, newest, min(ages))
        connection.executemany(
            "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)",
            [(embedder, key, now, now + lease_s) for key, _, _ in rows],
        )
        return [EntryId(unpack(entry_id)) for _, entry_id, _ in rows]

    def release(
        self, connection: sqlite3.Connection, identity: str, ids: Collection[EntryId]
    ) -> None:
        """Give claimed entries back; see `Index.release`."""
        self._spans.pop(identity, None)
        connection.executemany(
            "DELETE FROM leases WHERE embedder = (SELECT key FROM embedders WHERE identity = ?)"
            " AND entry = (SELECT key FROM entries WHERE id = ?)",
            [(pack(identity), pack(entry_id)) for entry_id in ids],
        )

    def forget(self) -> None:
        """Look through everything at the next claim: entries have come, changed or gone."""
        self._spans.clear()


def embedder_key(connection: sqlite3.Connection, identity: str) -> int:
    """Return an embedder's key, a new one for an unknown embedder."""
    connection.execute("INSERT OR IGNORE INTO embedders (identity) VALUES (?)", (pack(identity),))
    row = connection.execute("SELECT key FROM embedders WHERE identity = ?", (pack(identity),))
    return int(row.fetchone()[0])
