"""What an index is told to forget is in none of its files any more, byte by byte."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.drop import run_as_nobody
from tests.folders import open_folder

from agent_journal.engines import sqlite_file
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import IndexUnavailableError
from agent_journal.model import EntryId, Problem, Provenance
from agent_journal.ports import IndexedEntry, IndexedPassage, PassageVectors, Sidecar, Version
from agent_journal.query import Filters

SECRET = EntryId("20260131-120000-007")
WORDS = ("zyxword", "zyxtitle", "zyxtag", "zyxproject", "zyxproblem")
FIRST = np.array([[0.6, 0.8]] * 2, np.float32)
TRACES = [word.encode() for word in WORDS] + [np.float32(0.6).tobytes() + np.float32(0.8).tobytes()]


def indexed(entry_id: str, *terms: str, version: str = "1") -> IndexedEntry:
    """Return an entry with something in every table."""
    is_secret = any(term.startswith("zyx") for term in terms)
    hidden = "zyx" if is_secret else "plain"
    return IndexedEntry(
        EntryId(entry_id),
        Version.of(version, "s"),
        datetime(2026, 1, 31, tzinfo=UTC),
        Provenance(project=f"/src/{hidden}project"),
        (f"{hidden}tag",),
        f" {hidden}title ",
        tuple(IndexedPassage(n, 10 * n, 10 * n + 9, terms) for n in range(1)),
        sidecar=Sidecar("m", (0.6, 0.8) if is_secret else (1.0, 0.0)),
        problems=(Problem("x.md", f"created is '{hidden}problem'"),),
    )


def fill(index: SqliteIndex) -> None:
    """Put many entries into an index, one of them secret, in several transactions."""
    for start in range(0, 300, 100):
        index.update([indexed(f"e{n}", "word", f"w{n}") for n in range(start, start + 100)])
        if start == 100:
            index.update([indexed(SECRET, "word", "zyxword")])
            index.add_vectors("one", [PassageVectors(SECRET, "1", FIRST)])


def traces(folder: Path) -> set[str]:
    """Return the files in which something of the secret stands."""
    return {
        path.name
        for path in folder.iterdir()
        if path.is_file() and any(trace in path.read_bytes() for trace in TRACES)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the index is."""
    return tmp_path / "cache" / "0123-v1.1.sqlite3"


@pytest.fixture
def index(path: Path) -> Iterator[SqliteIndex]:
    """An index of many entries, one of them secret."""
    with closing(SqliteIndex(path, timeout_s=0.2)) as opened:
        fill(opened)
        yield opened


def test_a_purged_entry_leaves_no_byte(index: SqliteIndex, path: Path) -> None:
    """Not in the database, not in its log; before, each trace is there, and in the log, too."""
    log = path.with_name(path.name + "-wal").read_bytes()
    assert all(trace in log for trace in TRACES)
    index.purge([SECRET])
    assert traces(path.parent) == set()
    assert index.count() == 300
    evidence = index.evidence(["word", "zyxword"], Filters())
    assert evidence.frequencies == (300, 0)


def test_an_entry_that_was_replaced_leaves_no_byte(index: SqliteIndex, path: Path) -> None:
    """Whatever version of it is indexed now: the words of former ones go, too."""
    index.update([indexed(SECRET, "word", "harmless", version="2")])
    assert traces(path.parent)
    index.purge([SECRET])
    assert traces(path.parent) == set()
    index.update([indexed(SECRET, "word", "harmless", version="2")])
    assert traces(path.parent) == set()
    assert index.count() == 301


def test_an_entry_that_was_forgotten_leaves_no_byte(index: SqliteIndex, path: Path) -> None:
    """Nor does one that was removed before."""
    index.update([], [SECRET])
    assert traces(path.parent)
    index.purge([SECRET])
    assert traces(path.parent) == set()


def test_others_go_on_with_the_index(index: SqliteIndex, path: Path) -> None:
    """Connections of other processes stay good, and see what is left."""
    with closing(SqliteIndex(path)) as other:
        assert other.count() == 301
        index.purge([SECRET])
        assert other.count() == 300
        other.update([indexed("new", "word")])
        assert index.count() == 301
        assert traces(path.parent) == set()


def test_an_index_that_others_keep_busy_is_removed(index: SqliteIndex, path: Path) -> None:
    """A reader that never ends keeps the log alive; then the file goes, and is built anew."""
    stuck = sqlite3.connect(path, isolation_level=None)
    stuck.execute("BEGIN")
    stuck.execute("SELECT count(*) FROM entries").fetchone()
    index.purge([SECRET])
    assert traces(path.parent) == set()
    assert index.count() == 0
    stuck.close()


def test_an_index_that_others_write_to_is_removed(index: SqliteIndex, path: Path) -> None:
    """A writer that never ends is no reason to keep a secret."""
    stuck = sqlite3.connect(path, isolation_level=None)
    stuck.execute("BEGIN IMMEDIATE")
    index.purge([SECRET])
    assert traces(path.parent) == set()
    stuck.close()
    assert index.count() == 0


def test_a_file_that_cannot_be_made_anew_is_removed(
    index: SqliteIndex,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As on a full disk, of which only the message is made up."""

    class Full(sqlite3.Connection):
        def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
            if statement == "VACUUM":
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(statement, *parameters)  # type: ignore[arg-type] # as it came

    index.close()
    monkeypatch.setattr(
        index._file,
        "_connect",
        lambda *args, **given: sqlite3.connect(*args, factory=Full, **given),
    )
    with caplog.at_level(logging.WARNING, "agent_journal"):
        index.purge([SECRET])
    assert "database or disk is full" in caplog.text
    assert traces(path.parent) == set()


def test_other_indexes_that_know_the_entry_are_removed(index: SqliteIndex, path: Path) -> None:
    """Of another version, of the folder's former place, damaged, or left behind by halves."""
    folder = path.parent
    index.count()
    older, moved, half, broken = (
        folder / f"{name}.sqlite3" for name in ("0123-v0.9", "4567-v1.1", "89ab-v1.1", "cdef-v1.1")
    )
    with closing(SqliteIndex(moved)) as other:
        fill(other)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, older)
    (folder / f"{half.name}-wal").write_bytes(b"junk zyxword " + SECRET.encode())
    data = path.read_bytes()
    broken.write_bytes(data[:5000] + b"\0" * 100 + data[5100:])
    for spared in ("unrelated", "empty"):
        with closing(SqliteIndex(folder / f"{spared}.sqlite3")) as other:
            other.update([indexed("e1", "word")] if spared == "unrelated" else [])
            other.count()
    (folder / "stranger.sqlite3").write_bytes(b"zyxword of somebody else " + SECRET.encode())
    (folder / "empty.sqlite3-wal").touch()
    os.mkfifo(folder / "pipe.sqlite3")
    assert len(traces(folder)) >= 5
    index.purge([SECRET])
    assert traces(folder) == {"stranger.sqlite3"}
    assert {each.name for each in folder.glob("*.sqlite3")} == {
        *("unrelated.sqlite3", "empty.sqlite3", "stranger.sqlite3", "pipe.sqlite3", path.name)
    }


def test_nothing_is_made_where_there_is_no_index(path: Path) -> None:
    """A journal that was never searched has none, and gets none."""
    SqliteIndex(path).purge([SECRET])
    assert not path.parent.exists()


def test_an_index_that_cannot_be_removed_is_told(index: SqliteIndex, path: Path) -> None:
    """Another's that is in use, for one."""
    with closing(SqliteIndex(path.with_name("other.sqlite3"))) as other:
        fill(other)
    sqlite_folder = "agent_journal.engines.sqlite_folder._REMOVAL_WAIT_S"
    with (
        pytest.MonkeyPatch.context() as patch,
        sqlite_file.lock_file(path.with_name("other.sqlite3"), 0),
    ):
        patch.setattr(sqlite_folder, 0.0)
        with pytest.raises(IndexUnavailableError, match="keeps it locked"):
            index.purge([SECRET])
    index.purge([SECRET])
    assert traces(path.parent) == set()


def test_a_folder_that_may_not_be_written_is_told() -> None:
    """As an unprivileged user: whoever can't be sure says so."""
    script = """
from pathlib import Path
import sqlite3, time, datetime
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import JournalError
from agent_journal.model import EntryId
index = SqliteIndex(Path(sys.argv[1]) / "i.sqlite3", timeout_s=0.1)
with dropped():
    try:
        print(index.count())
        index.purge([EntryId("x")])
        print("purged")
    except JournalError as error:
        print(type(error).__name__)
"""
    with open_folder() as folder:
        assert run_as_nobody(script, folder).split() == ["0", "purged"]
        for path in folder.iterdir():
            path.chmod(0o400)
        folder.chmod(0o500)
        assert run_as_nobody(script, folder).split() == ["IndexUnavailableError"]


def test_searches_go_on_meanwhile(index: SqliteIndex, path: Path) -> None:
    """Other threads get their answers, of before or after, or of an index that is built anew."""
    stop = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        with closing(SqliteIndex(path)) as other:
            while not stop.is_set():
                seen.add(other.count())

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            index.purge([SECRET])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert seen <= {301, 300, 0}
    assert traces(path.parent) == set()
