"""The tables of the index file, and how an entry is put into them and taken out.

Text is kept as UTF-8 blobs: file names and YAML may hold lone surrogates, which SQLite's text can't
carry, and blobs sort by code point as Python's strings do.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from agent_journal.corrections import Corrections
from agent_journal.engines.sqlite_file import DamagedError, Layout
from agent_journal.model import EntryId, fold_case, to_milliseconds
from agent_journal.ports import IndexedEntry, IndexedPassage, Sidecar, Version
from agent_journal.query import project_names

SCHEMA_VERSION = 5
_APPLICATION = 0x614A6E6C  # "aJnl"

_TABLES = (
    """CREATE TABLE state (
        uid BLOB NOT NULL, generation INTEGER NOT NULL, entries INTEGER NOT NULL,
        passages INTEGER NOT NULL, terms INTEGER NOT NULL,
        next_entry INTEGER NOT NULL, next_passage INTEGER NOT NULL)""",
    """CREATE TABLE entries (
        key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE,
        version BLOB NOT NULL, sidecar_version BLOB NOT NULL,
        first_passage INTEGER NOT NULL, passages INTEGER NOT NULL,
        created INTEGER NOT NULL, title_key BLOB NOT NULL,
        project BLOB NOT NULL, repo BLOB NOT NULL,
        project_name BLOB NOT NULL, repo_name BLOB NOT NULL, agent BLOB NOT NULL,
        model BLOB NOT NULL, provider BLOB NOT NULL, session BLOB NOT NULL)""",
    "CREATE INDEX entries_by_age ON entries (created, id)",
    """CREATE TABLE passages (
        key INTEGER PRIMARY KEY, entry INTEGER NOT NULL,
        start INTEGER NOT NULL, stop INTEGER NOT NULL, length INTEGER NOT NULL)""",
    # The terms are ready-made: blanks alone divide them. The ascii tokenizer takes whatever lies
    # beyond ASCII as it is, where unicode61 would go by the tables of Unicode 6.1.
    """CREATE VIRTUAL TABLE words USING fts5(
        terms, tokenize = "ascii tokenchars '!""#$%&''''()*+,-./:;<=>?@[\\]^_`{|}~'")""",
    "CREATE VIRTUAL TABLE postings USING fts5vocab(words, instance)",
    """CREATE TABLE tags (
        folded BLOB NOT NULL, tag BLOB NOT NULL, entry INTEGER NOT NULL,
        is_first INTEGER NOT NULL, PRIMARY KEY (folded, tag, entry)) WITHOUT ROWID""",
    "CREATE INDEX tags_by_entry ON tags (entry)",
    # What every search tells of the tags, counted as they come and go.
    """CREATE TABLE tag_counts (
        folded BLOB NOT NULL, tag BLOB NOT NULL, uses INTEGER NOT NULL, firsts INTEGER NOT NULL,
        PRIMARY KEY (folded, tag)) WITHOUT ROWID""",
    """CREATE TRIGGER tag_came AFTER INSERT ON tags BEGIN
        INSERT INTO tag_counts VALUES (new.folded, new.tag, 1, new.is_first)
        ON CONFLICT DO UPDATE SET uses = uses + 1, firsts = firsts + new.is_first; END""",
    """CREATE TRIGGER tag_went AFTER DELETE ON tags BEGIN
        UPDATE tag_counts SET uses = uses - 1, firsts = firsts - old.is_first
        WHERE folded = old.folded AND tag = old.tag;
        DELETE FROM tag_counts WHERE folded = old.folded AND tag = old.tag AND uses = 0; END""",
    # What an entry says of others, which need not be here: 1 supersedes, 0 annotates.
    """CREATE TABLE corrections (
        entry INTEGER NOT NULL, supersedes INTEGER NOT NULL, target BLOB NOT NULL,
        PRIMARY KEY (entry, supersedes, target)) WITHOUT ROWID""",
    """CREATE TABLE problems (
        entry INTEGER NOT NULL, path BLOB NOT NULL, line INTEGER, reason BLOB NOT NULL)""",
    "CREATE INDEX problems_by_entry ON problems (entry)",
    """CREATE TABLE embedders (
        key INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, dimension INTEGER)""",
    """CREATE TABLE vectors (
        key INTEGER PRIMARY KEY AUTOINCREMENT, embedder INTEGER NOT NULL, entry INTEGER NOT NULL,
        first_passage INTEGER NOT NULL, matrix BLOB NOT NULL, counts BLOB NOT NULL,
        UNIQUE (embedder, entry))""",
    "CREATE INDEX vectors_by_entry ON vectors (entry)",
    """CREATE TABLE sidecars (
        key INTEGER PRIMARY KEY AUTOINCREMENT, entry INTEGER NOT NULL UNIQUE,
        model BLOB NOT NULL, dimension INTEGER NOT NULL, vector BLOB NOT NULL)""",
    "CREATE INDEX sidecars_by_model ON sidecars (model, dimension)",
    """CREATE TABLE leases (
        embedder INTEGER NOT NULL, entry INTEGER NOT NULL, since REAL NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (embedder, entry)) WITHOUT ROWID""",
    "CREATE INDEX leases_by_entry ON leases (entry)",
)
_TOKEN_LIMIT = 8_000
"""FTS5 cuts tokens at 32,768 bytes; no character has more than four."""
_UNSAFE = re.compile("[\x00-\x20\x7fA-Z\ue000\ue001\ud800-\udfff]")


class State(NamedTuple):
    """The one row that every transaction starts with.

    Attributes:
        uid: made with the file, so that another file under the same name is noticed, and made anew
            when all is cleared.
        generation: grows with each change.
        passages, terms: how many all entries have together.
    """

    uid: bytes
    generation: int
    entries: int
    passages: int
    terms: int
    next_entry: int
    next_passage: int


def pack(text: str) -> bytes:
    """Return any string as a blob."""
    return text.encode("utf-8", "surrogatepass")


def unpack(blob: bytes) -> str:
    """Return the string of a blob.

    Raises:
        DamagedError: it is none.
    """
    try:
        return blob.decode("utf-8", "surrogatepass")
    except (AttributeError, UnicodeDecodeError) as error:
        raise DamagedError("a text can't be read") from error


def require(row: Sequence[object], *types: type) -> None:
    """Check what columns hold: SQLite believes the file, whatever it declares.

    Raises:
        DamagedError: a value is of another type.
    """
    if tuple(map(type, row)) != types:
        raise DamagedError("a number or a text is missing")


def require_columns(rows: Sequence[Sequence[object]], *types: type) -> None:
    """Check what `require` does of many rows, a column at a time: a tenth of the time.

    Raises:
        DamagedError: a value is of another type.
    """
    for column, expected in zip(zip(*rows, strict=True), types, strict=bool(rows)):
        if {*map(type, column)} != {expected}:
            raise DamagedError("a number or a text is missing")


def encode_terms(terms: Sequence[str]) -> str:
    """Return terms as one text that FTS5 takes apart into `encode_term` of each."""
    text = " ".join(terms)
    plain = (
        text.count(" ") == len(terms) - 1
        and len(text) <= _TOKEN_LIMIT
        and not _UNSAFE.search(text.replace(" ", ""))
        and "" not in terms
    )
    return text if plain else " ".join(map(encode_term, terms))


def encode_term(term: str) -> str:
    """Return a term in a form that FTS5 keeps as it is: no blanks, capitals or huge lengths."""
    if len(term) > _TOKEN_LIMIT:
        return "\ue001" + hashlib.sha256(pack(term)).hexdigest()
    if not term:
        return "\ue000"
    return _UNSAFE.sub(lambda found: f"\ue000{ord(found[0]):x};", term)


def read_state(connection: sqlite3.Connection) -> State:
    """Return the state as of this transaction."""
    row = connection.execute("SELECT * FROM state").fetchone()
    if row is None:
        raise DamagedError("its state is missing")
    require(row, bytes, *[int] * 6)
    return State(*row)


def write_state(connection: sqlite3.Connection, state: State) -> None:
    """Keep a state, one generation on."""
    connection.execute(
        "UPDATE state SET uid = ?, generation = ? + 1, entries = ?, passages = ?, terms = ?,"
        " next_entry = ?, next_passage = ?",
        state,
    )


def read_corrections(connection: sqlite3.Connection) -> Corrections:
    """Return what entries say of others, the other way round."""
    superseding: dict[EntryId, tuple[EntryId, ...]] = {}
    annotating: dict[EntryId, tuple[EntryId, ...]] = {}
    rows = connection.execute(
        "SELECT supersedes, target, id FROM corrections JOIN entries ON entry = key"
        " ORDER BY created DESC, id DESC"
    )
    for supersedes, target, source in rows:
        said = superseding if supersedes else annotating
        known = said.get(at := EntryId(unpack(target)), ())
        said[at] = (*known, EntryId(unpack(source)))
    return Corrections(superseding, annotating)


class Writer:
    """Puts entries into the tables and takes them out, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._before = self._state = read_state(connection)
        self._is_changed = False
        self._waiting: dict[str, list[tuple[object, ...]]] = {}

    def finish(self) -> None:
        """Keep what was put in, and the state, if anything changed."""
        self._flush()
        if self._is_changed:
            write_state(self._connection, self._state)

    def forget(self, entry_id: str) -> None:
        """Take an entry out; an unknown one is passed over."""
        row = self._connection.execute(
            "SELECT key, first_passage, passages FROM entries WHERE id = ?", (pack(entry_id),)
        ).fetchone()
        if row:
            self._take_out(*row)

    def put(self, entry: IndexedEntry) -> bool:
        """Put an entry in unless it is there already; False when its passages are wanting."""
        row = self._connection.execute(
            "SELECT version, sidecar_version, key, first_passage, passages FROM entries"
            " WHERE id = ?",
            (pack(entry.id),),
        ).fetchone()
        known = None if row is None else Version.of(unpack(row[0]), unpack(row[1]))
        if known == entry.version:
            return True
        if known is None or known.entry != entry.version.entry:
            if entry.passages is None:
                return False
            if row is not None:
                self._take_out(*row[2:])
            self._put_in(entry, entry.passages)
            return True
        key = row[2]
        self._flush()
        self._connection.execute(
            "UPDATE entries SET sidecar_version = ? WHERE key = ?",
            (pack(entry.version.sidecar), key),
        )
        for table in ("sidecars", "problems"):
            self._connection.execute(f"DELETE FROM {table} WHERE entry = ?", (key,))  # noqa: S608 - constants
        self._put_beside(key, entry)
        self._is_changed = True
        return True

    def _wait(self, table: str, *row: object) -> None:
        self._waiting.setdefault(table, []).append(row)

    def _flush(self) -> None:
        """Insert what waits; a statement for each table is quicker than several for each entry."""
        for table, rows in self._waiting.items():
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - constants
        self._waiting.clear()

    def _take_out(self, key: int, first: int, passages: int) -> None:
        self._flush()
        execute = self._connection.execute
        (terms,) = execute(
            "SELECT coalesce(sum(length), 0) FROM passages WHERE key >= ? AND key < ?",
            (first, first + passages),
        ).fetchone()
        for table, column in (("passages", "key"), ("words", "rowid")):
            execute(
                f"DELETE FROM {table} WHERE {column} >= ? AND {column} < ?",  # noqa: S608 - constants
                (first, first + passages),
            )
        for table in ("tags", "corrections", "problems", "vectors", "sidecars", "leases"):
            execute(f"DELETE FROM {table} WHERE entry = ?", (key,))  # noqa: S608 - constants
        execute("DELETE FROM entries WHERE key = ?", (key,))
        state = self._state
        self._state = state._replace(
            entries=state.entries - 1, passages=state.passages - passages, terms=state.terms - terms
        )
        self._is_changed = True

    def _put_in(self, entry: IndexedEntry, passages: Sequence[IndexedPassage]) -> None:
        state = self._state
        key, first = state.next_entry, state.next_passage
        origin = entry.provenance
        texts = (entry.title_key, *project_names(origin))
        folded = map(fold_case, (origin.agent, origin.model, origin.provider, origin.session))
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                *map(pack, (entry.id, entry.version.entry, entry.version.sidecar)),
                first,
                len(passages),
                to_milliseconds(entry.created),
                *map(pack, (*texts, *folded)),
            ),
        )
        for number, one in enumerate(passages, first):
            self._wait("passages", number, key, one.start, one.end, len(one.terms))
            self._wait("words (rowid, terms)", number, encode_terms(one.terms))
        for tag_folded, spellings in _by_folded(entry.tags).items():
            for position, tag in enumerate(spellings):
                self._wait("tags", pack(tag_folded), pack(tag), key, position == 0)
        for supersedes, targets in ((1, entry.supersedes), (0, entry.annotates)):
            for target in targets:
                self._wait("corrections", key, supersedes, pack(target))
        self._put_beside(key, entry)
        self._state = state._replace(
            entries=state.entries + 1,
            passages=state.passages + len(passages),
            terms=state.terms + sum(len(one.terms) for one in passages),
            next_entry=key + 1,
            next_passage=first + len(passages),
        )
        self._is_changed = True

    def _put_beside(self, key: int, entry: IndexedEntry) -> None:
        """Put in what may change without the entry's file."""
        for one in entry.problems:
            self._wait("problems", key, pack(one.path), one.line, pack(one.reason))
        if entry.sidecar is not None:
            self._connection.execute(
                "INSERT INTO sidecars (entry, model, dimension, vector) VALUES (?, ?, ?, ?)",
                (
                    key,
                    pack(entry.sidecar.model),
                    len(entry.sidecar.vector),
                    _unit_blob(entry.sidecar),
                ),
            )


def forget_words(connection: sqlite3.Connection) -> None:
    """Have FTS5 drop the words of entries that were taken out; until then it only marks them."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def clear(connection: sqlite3.Connection) -> None:
    """Empty every table; keys go on from where they were."""
    for table in ("entries", "passages", "tags", "problems", "embedders", "vectors", "sidecars"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
    for table in ("corrections", "leases", "words"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - as above
    state = read_state(connection)._replace(uid=os.urandom(16), entries=0, passages=0, terms=0)
    write_state(connection, state)


def _by_folded(tags: Sequence[str]) -> dict[str, set[str]]:
    """Return the spellings of each tag; a file made by hand may hold several of one."""
    spellings: dict[str, set[str]] = {}
    for tag in tags:
        spellings.setdefault(fold_case(tag), set()).add(tag)
    return spellings


def _unit_blob(sidecar: Sidecar) -> bytes:
    """Return a sidecar's vector as float32 of length 1; without numpy, which is slow to import."""
    largest = max(map(abs, sidecar.vector))
    scaled = [number / largest for number in sidecar.vector]  # no square can overflow now
    length = sum(number * number for number in scaled) ** 0.5
    return array("f", [number / length for number in scaled]).tobytes()


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO state VALUES (?, 0, 0, 0, 0, 1, 1)", (os.urandom(16),))


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT doc FROM postings WHERE term = ''").fetchone()  # is FTS5 here?
    # Tags wanted by a query: a table, since there is no limit to their number.
    connection.execute(
        "CREATE TEMP TABLE wanted_tags (kind TEXT NOT NULL, folded BLOB NOT NULL,"
        " PRIMARY KEY (kind, folded)) WITHOUT ROWID"
    )


LAYOUT = Layout(_APPLICATION, SCHEMA_VERSION, _create, _prepare)
"""What `SharedFile` is to expect."""
