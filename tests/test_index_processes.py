"""The SQLite index among processes: all of them at once, killed, and cold."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.model import EntryId, Provenance
from agent_journal.ports import (
    IndexedEntry,
    IndexedPassage,
    PassageVectors,
    QueryVector,
    Version,
)
from agent_journal.query import Filters

PROCESSES = 8
WAIT_S = 90
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["numpy", "pytest", "agent_journal.engines.sqlite"])

Work = Callable[[SqliteIndex, int], object]


def entry(number: int, version: str = "1") -> IndexedEntry:
    """Return an entry of two passages that both hold three words."""
    return IndexedEntry(
        EntryId(f"e{number}"),
        Version.of(version),
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        Provenance(),
        ("tag",),
        "",
        tuple(IndexedPassage(ordinal, 0, 9, ("left", "right", f"w{number}")) for ordinal in (0, 1)),
    )


def vectors(entry_id: str, version: str = "1") -> PassageVectors:
    """Return vectors for an entry's passages."""
    return PassageVectors(EntryId(entry_id), version, np.eye(3, 2, dtype=np.float32))


QUERY = QueryVector("model", "id", np.array([1.0, 0.0], np.float32), 0.5)


def look(index: SqliteIndex) -> int:
    """Search, check that the answer is of one moment, and return the number of entries."""
    evidence = index.evidence(["left", "right"], Filters(), QUERY).plain()
    assert evidence.frequencies == (evidence.entry_count,) * 2
    assert len(evidence.postings) == 4 * evidence.entry_count
    assert evidence.compared == len(evidence.nearest) <= evidence.entry_count
    return evidence.entry_count


def open_and_fill(index: SqliteIndex, worker: int) -> None:
    """Index some entries at once."""
    index.update([entry(number) for number in range(worker * 10, worker * 10 + 10)])
    look(index)


def use(index: SqliteIndex, worker: int) -> None:
    """Do everything that callers do, again and again, but for clearing."""
    chance = random.Random(worker)  # noqa: S311 - no secret
    for turn in range(12):
        numbers = [chance.randrange(60) for _ in range(5)]
        index.update([entry(one, f"{worker}.{turn}") for one in numbers], [EntryId("e59")])
        for entry_id in index.claim("id", limit=4, lease_s=0.01):
            known = index.listing().get(entry_id, Version.of("none"))
            index.add_vectors("id", [vectors(entry_id, known.entry)])
        look(index)
        index.select(Filters(tags=("tag",)), limit=9, offset=0)
    index.update([entry(1_000 + worker)])


def use_and_rebuild(index: SqliteIndex, worker: int) -> None:
    """Some clear the index or remove its file while the others use it."""
    for turn in range(8):
        index.update([entry(number, f"{worker}.{turn}") for number in range(20)])
        look(index)
        if worker == 0:
            index.clear()
        elif worker == 1 and turn % 2:
            Path(index.location).unlink(missing_ok=True)
        look(index)


def claim_all(index: SqliteIndex, worker: int) -> list[str]:
    """Claim until nothing is left."""
    del worker
    claimed: list[str] = []
    while batch := index.claim("id", limit=7, lease_s=600):
        claimed += batch
    return claimed


def run(path: Path, work: Work, worker: int, start: Barrier, answers: Queue[object]) -> None:
    """Be one of the processes."""
    logging.disable()
    start.wait(WAIT_S)
    try:
        index = SqliteIndex(path)
        answer = work(index, worker)
        index.close()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the test tells it
        answer = f"{type(error).__name__}: {error}"
    answers.put(answer)


def all_at_once(path: Path, work: Work) -> list[object]:
    """Return what the work gives in each of several processes that begin together."""
    start = _context.Barrier(PROCESSES)
    answers: Queue[object] = _context.Queue()
    processes = [
        _context.Process(target=run, args=(path, work, worker, start, answers))
        for worker in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    given = [answers.get(timeout=WAIT_S) for _ in processes]
    for process in processes:
        process.join(WAIT_S)
    return given


def check(path: Path) -> None:
    """Expect SQLite and FTS5 to find nothing wrong."""
    index = SqliteIndex(path)
    assert index._file.read(
        lambda connection: connection.execute("PRAGMA integrity_check").fetchall()
    ) == [("ok",)]
    index._file.write(
        lambda connection: connection.execute(
            "INSERT INTO words (words) VALUES ('integrity-check')"
        )
    )
    index.close()


def test_many_processes_open_a_cold_index_at_once(tmp_path: Path) -> None:
    """Nobody meets an error, and everything that each of them indexed is there."""
    path = tmp_path / "new" / "i.sqlite3"
    assert all_at_once(path, open_and_fill) == [None] * PROCESSES
    index = SqliteIndex(path)
    assert look(index) == 10 * PROCESSES
    index.close()
    check(path)


def test_many_processes_use_one_index_at_once(tmp_path: Path) -> None:
    """Updates, claims, vectors and searches of all succeed, and nothing is lost."""
    path = tmp_path / "i.sqlite3"
    assert all_at_once(path, use) == [None] * PROCESSES
    index = SqliteIndex(path)
    assert {f"e{1_000 + worker}" for worker in range(PROCESSES)} <= set(index.listing())
    assert look(index) == index.count()
    index.close()
    check(path)


def test_rebuilding_disturbs_nobody(tmp_path: Path) -> None:
    """While one clears the index and one removes its file, the others go on without an error."""
    path = tmp_path / "i.sqlite3"
    assert all_at_once(path, use_and_rebuild) == [None] * PROCESSES
    index = SqliteIndex(path)
    index.update([entry(number, "end") for number in range(20)])
    assert look(index) == 20
    index.close()
    check(path)


def test_processes_share_the_backlog(tmp_path: Path) -> None:
    """Every entry is given to exactly one process."""
    path = tmp_path / "i.sqlite3"
    index = SqliteIndex(path)
    index.update([entry(number) for number in range(300)])
    shares = all_at_once(path, claim_all)
    assert all(isinstance(share, list) for share in shares), shares
    claimed = [entry_id for share in shares if isinstance(share, list) for entry_id in share]
    assert len(claimed) == 300
    assert set(claimed) == set(index.listing())
    index.close()


ENDLESS_WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_index_processes as here
index = here.SqliteIndex(Path(sys.argv[1]))
print("ready", flush=True)
turn = 0
while True:
    turn += 1
    index.update([here.entry(number, f"{turn}") for number in range(40)])
    index.add_vectors("id", [here.vectors(f"e{number}", f"{turn}") for number in range(40)])
    print(turn, flush=True)
"""


@pytest.mark.parametrize("turns", [1, 2, 3, 5])
def test_a_killed_writer_leaves_a_whole_index(tmp_path: Path, turns: int) -> None:
    """After kill -9 in the midst of writing the last update is there wholly or not at all."""
    path = tmp_path / "i.sqlite3"
    writer = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_WRITER, path, Path(__file__).parent],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(turns + 1)]
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.stdout.read().split("\n")
    writer.stdout.close()
    writer.wait(WAIT_S)
    last = int([*told, *(line for line in rest[:-1] if line)][-1])
    index = SqliteIndex(path)
    versions = {version.entry for version in index.listing().values()}
    assert index.count() == look(index) == 40
    assert versions in ({str(last)}, {str(last + 1)})
    index.update([entry(99)])
    assert index.count() == 41
    index.close()
    check(path)
