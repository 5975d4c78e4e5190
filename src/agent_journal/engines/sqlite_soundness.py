"""Damage that no reading meets: what the tables hold, looked through and compared.

A wrong bit in a term hides an entry from one word, and SQLite alone never notices.
"""

from __future__ import annotations

import sqlite3

from agent_journal.engines.sqlite_file import DamagedError

# Each finds what can't be. Facts that nothing else repeats (dates, projects, vectors) may be wrong.
_CONTRADICTIONS = (
    (
        "SELECT 1 FROM state WHERE entries <> (SELECT count(*) FROM entries)"
        " OR passages <> (SELECT count(*) FROM passages)"
        " OR passages <> (SELECT count(*) FROM words_docsize)"
        " OR terms <> (SELECT coalesce(sum(length), 0) FROM passages)"
    ),
    "SELECT 1 FROM passages LEFT JOIN words_docsize ON id = key WHERE id IS NULL",
    (
        "SELECT 1 FROM passages LEFT JOIN entries ON entry = entries.key WHERE entries.key IS NULL"
        " OR passages.key < first_passage OR passages.key >= first_passage + entries.passages"
    ),
    (
        "SELECT 1 FROM entries WHERE passages <>"
        " (SELECT count(*) FROM passages AS one WHERE one.key >= entries.first_passage"
        " AND one.key < entries.first_passage + entries.passages)"
    ),
    (
        "SELECT folded, tag, count(*), sum(is_first) FROM tags GROUP BY folded, tag"
        " EXCEPT SELECT folded, tag, uses, firsts FROM tag_counts"
    ),
)


def require_sound(connection: sqlite3.Connection) -> None:
    """Look through everything; for a transaction that may write.

    It takes about as long as reading all entries.

    Raises:
        DamagedError: something can't be true.
        sqlite3.DatabaseError: SQLite says so itself.
    """
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise DamagedError("its pages contradict each other")
    connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    if any(connection.execute(query).fetchone() for query in _CONTRADICTIONS):
        raise DamagedError("its tables contradict each other")
