"""Whatever becomes of the index: nobody fails, no entry changes, every word is still found."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.proven import Trials
from tests.test_cli_process import Program
from tests.test_mcp import Server, text_of
from tests.test_sqlite import DAMAGES, change

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.journal import Journal
from agent_journal.model import Draft
from agent_journal.query import Query

ENTRIES = 12
BOUND_S = 60.0

Damage = Callable[[Path], object]


@dataclass
class Desk:
    """A journal with some entries, each with a word of its own.

    Attributes:
        folder: where the entries are.
        index: the index's file.
        ids: the id of the entry that holds a word.
        hashes: of the entries' files as they were written.
    """

    folder: Path
    index: Path
    ids: dict[str, str]
    hashes: dict[str, str]

    @contextmanager
    def opened(self, timeout_s: float = 10.0) -> Iterator[Journal]:
        """Open the journal as a new process would."""
        index = SqliteIndex(self.index, timeout_s=timeout_s)
        loader = BackgroundLoader(HashingEmbedder)
        with Journal(FileStore(self.folder), index, loader, fallback=MemoryIndex) as journal:
            yield journal

    def missing(self, journal: Journal) -> list[str]:
        """Search for every word, and return those whose entry isn't the first hit."""
        return [word for word, entry_id in self.ids.items() if first(journal, word) != entry_id]

    def report(self, trials: Trials, fault: str, tried: int = 1) -> None:
        """Compare every file with what was written, and count it."""
        now = hashes(self.folder)
        trials.report(
            f"index {fault}",
            tried=tried,
            acknowledged=len(self.ids),
            lost=len(self.hashes.keys() - now.keys()),
            altered=sum(now.get(name, was) != was for name, was in self.hashes.items()),
        )


def hashes(folder: Path) -> dict[str, str]:
    """Return what each entry's file holds."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.md")
    }


def first(journal: Journal, word: str) -> str:
    """Search for a word, and return the first hit's id."""
    hits = journal.search(Query(word), wait_s=BOUND_S).hits
    return hits[0].entry.id if hits else ""


def desk_in(home: Path) -> Desk:
    """Return a desk in a folder."""
    return Desk(home / "journal", home / "index" / "i.sqlite3", {}, {})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Write the entries, and find each by its word."""
    made = desk_in(tmp_path_factory.mktemp("written"))
    chance = random.Random(7)  # noqa: S311 - no secret
    with made.opened() as journal:
        for number in range(ENTRIES):
            filler = (f"filler{chance.randrange(200)}" for _ in range(60))
            word = f"needle{number}x"
            made.ids[word] = journal.write(Draft(f"T {number}", " ".join([word, *filler]))).id
        journal.work_backlog(wait_s=BOUND_S)
        assert made.missing(journal) == []
    made.hashes = hashes(made.folder)
    return made


@pytest.fixture
def desk(written: Desk, tmp_path: Path) -> Desk:
    """Give a copy of it, with an index that may be damaged."""
    made = desk_in(tmp_path)
    shutil.copytree(written.folder, made.folder)
    made.ids, made.hashes = dict(written.ids), dict(written.hashes)
    with made.opened() as journal:
        journal.work_backlog(wait_s=BOUND_S)
    return made


def make_strange(path: Path) -> None:
    """Let it be another program's database."""
    change(path, "PRAGMA application_id = 5", "PRAGMA user_version = 5", "CREATE TABLE x (y)")


def make_old(path: Path) -> None:
    """Let it be of an earlier layout, without what came later."""
    change(path, "PRAGMA user_version = 1", "DROP TABLE tag_counts", "DROP TABLE corrections")


def make_future(path: Path) -> None:
    """Let it be of a later layout, with what comes later."""
    change(path, "PRAGMA user_version = 4000", "ALTER TABLE entries ADD COLUMN more")


def change_a_column(path: Path) -> None:
    """Let the number of the layout be right, and the layout not."""
    change(path, "ALTER TABLE entries RENAME COLUMN title_key TO heading")


def empty(path: Path) -> None:
    """Leave a file of no bytes."""
    os.truncate(path, 0)


def spoil_the_log(path: Path) -> None:
    """Put a log there that belongs to nothing."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).write_bytes(os.urandom(40_000))


def remove(path: Path) -> None:
    """Remove the file alone, and leave what SQLite keeps beside it."""
    path.unlink()


def remove_the_folder(path: Path) -> None:
    """Remove everything."""
    shutil.rmtree(path.parent)


KINDS: list[Damage] = [
    make_strange, make_old, make_future, change_a_column, empty, spoil_the_log, remove,
    remove_the_folder,
]  # fmt: skip


@pytest.mark.parametrize("damage", [*DAMAGES, *KINDS])
def test_a_journal_heals_its_index(
    desk: Desk, damage: Damage, trials: Trials, caplog: pytest.LogCaptureFixture
) -> None:
    """Every word is found in the same process, said at most once; the next one has no more to say.

    What is written after the damage is found as well.
    """
    damage(desk.index)
    with caplog.at_level(logging.WARNING, "agent_journal"), desk.opened() as journal:
        assert desk.missing(journal) == []
        desk.ids["afterwards"] = journal.write(Draft("T", "afterwards")).id
        assert first(journal, "afterwards") == desk.ids["afterwards"]
    assert len(caplog.records) <= 1
    caplog.clear()
    with caplog.at_level(logging.WARNING, "agent_journal"), desk.opened() as journal:
        assert desk.missing(journal) == []
        assert journal.search(Query("needle1x")).notices == ()
    assert caplog.records == []
    desk.report(trials, "damaged while closed")


@pytest.mark.parametrize("damage", [*DAMAGES[::2], *KINDS])
def test_an_open_journal_heals_its_index(desk: Desk, damage: Damage, trials: Trials) -> None:
    """The same when the file is damaged under a journal that goes on searching and writing."""
    with desk.opened() as journal, desk.opened() as other:
        assert desk.missing(journal) == desk.missing(other) == []
        damage(desk.index)
        desk.ids["afterwards"] = journal.write(Draft("T", "afterwards")).id
        for each in (journal, other):
            assert desk.missing(each) == []
            each.work_backlog(wait_s=BOUND_S)
            assert each.status().entries == len(desk.ids)
    desk.report(trials, "damaged while open")


def flip(content: bytes, chance: random.Random) -> bytes:
    """Return a file with some wrong bits, and perhaps without its end."""
    broken = bytearray(content)
    for _ in range(chance.choice([1, 3, 30])):
        place = chance.choice([chance.randrange(len(content)), chance.randrange(4096)])
        broken[place] ^= 1 << chance.randrange(8)
    if chance.random() < 0.25:
        del broken[chance.randrange(len(broken)) :]
    return bytes(broken)


@pytest.mark.parametrize(
    "rounds",
    [5, pytest.param(300, marks=[pytest.mark.prove, pytest.mark.timeout(3600)])],
)
def test_bits_may_flip_anywhere(desk: Desk, rounds: int, trials: Trials) -> None:
    """No caller fails, and after a check every word is found again, whatever was wrong."""
    whole = desk.index.read_bytes()
    chance = random.Random(rounds)  # noqa: S311 - no secret
    for _ in range(rounds):
        desk.index.write_bytes(flip(whole, chance))
        with desk.opened() as journal:
            desk.missing(journal)
            journal.tags()
            journal.status()
            journal.work_backlog(wait_s=BOUND_S)
            journal.check()
            assert desk.missing(journal) == []
    desk.report(trials, "with flipped bits or cut", rounds)


def test_an_index_may_vanish_at_any_moment_of_a_search(desk: Desk, trials: Trials) -> None:
    """While some search, the file or the whole folder goes again and again: every answer is right.

    A search in the very moment may find the next index half built by another; it never fails.
    """
    searchers = 2
    ready = threading.Barrier(searchers + 1)
    wrong: list[object] = []
    counts = [0] * searchers
    over = threading.Event()

    def search(number: int) -> None:
        with desk.opened() as journal:
            ready.wait(BOUND_S)
            while not over.is_set():
                try:
                    wrong.extend(desk.missing(journal))
                except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
                    wrong.append(error)
                counts[number] += len(desk.ids)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(searchers)]
    for thread in threads:
        thread.start()
    ready.wait(BOUND_S)
    vanished = 0
    while min(counts) < 10 * len(desk.ids) and not wrong:
        try:
            shutil.rmtree(desk.index.parent) if vanished % 2 else desk.index.unlink()
            vanished += 1
        except OSError:
            pass  # it isn't there again yet
    over.set()
    for thread in threads:
        thread.join(BOUND_S)
    assert wrong == []
    assert vanished
    desk.report(trials, "deleted while it is searched", vanished)


HOLDER = """
import fcntl, os, sqlite3, sys
path, how = sys.argv[1:]
if how == "flock":
    held = os.open(path + ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
else:
    held = sqlite3.connect(path, isolation_level=None)
    if how == "exclusive":
        held.execute("PRAGMA locking_mode = EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE" if how == "exclusive" else "BEGIN IMMEDIATE")
    held.execute("DELETE FROM problems")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def stuck_process(index: Path, how: str) -> Iterator[None]:
    """Have a process that holds the index's lock and was stopped in the midst of its work."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(index), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"held\n"
            process.send_signal(signal.SIGSTOP)
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("how", ["immediate", "exclusive", "flock"])
def test_a_stuck_process_holds_up_nobody(
    desk: Desk, how: str, trials: Trials, caplog: pytest.LogCaptureFixture
) -> None:
    """Entries are written and found at once or from memory, and that is said once.

    When the other is gone, the next journal finds all from the file, with nothing to say.
    """
    with stuck_process(desk.index, how):
        with caplog.at_level(logging.WARNING, "agent_journal"), desk.opened(0.2) as journal:
            desk.ids["meanwhile"] = journal.write(Draft("T", "meanwhile")).id
            assert desk.missing(journal) == []
            notices = journal.search(Query("meanwhile")).notices
            journal.work_backlog(wait_s=BOUND_S)
            assert journal.status().entries == len(desk.ids)
        assert ["searching from memory" in notice for notice in notices] == [True]
        assert len(caplog.records) == 1
    with desk.opened() as journal:
        assert desk.missing(journal) == []
        assert journal.search(Query("meanwhile")).notices == ()
    desk.report(trials, f"locked by a stuck process, {how}")


def test_another_versions_index_is_left_alone(desk: Desk, trials: Trials) -> None:
    """A file under another version's name beside ours is neither read nor changed."""
    others = [desk.index.with_name(name) for name in ("i-v4.1.sqlite3", "i-v99.7.sqlite3")]
    for other in others:
        other.write_bytes(desk.index.read_bytes())
        change(other, "PRAGMA user_version = 99", "DROP TABLE words")
    before = [other.read_bytes() for other in others]
    with desk.opened() as journal:
        assert desk.missing(journal) == []
        journal.reindex()
    assert [other.read_bytes() for other in others] == before
    desk.report(trials, "of another version beside ours", len(others))


def index_of(home: Path) -> Path:
    """Return the index file that the program made."""
    (found,) = (home / ".cache" / "agent-journal").glob("*.sqlite3")
    return found


@pytest.mark.parametrize("damage", [DAMAGES[0], make_future, remove])
def test_the_command_line_says_it_once(home: Path, damage: Damage, trials: Trials) -> None:
    """As a person meets it: the entry is found, one line on stderr, and the next call is quiet."""
    program = Program(home)
    assert program("write", "Title", "needle one").returncode == 0
    assert program("search", "needle").returncode == 0
    before = hashes(program.folder)
    damage(index_of(home))
    found, again = program("search", "needle"), program("search", "needle")
    assert (found.returncode, again.returncode) == (0, 0)
    assert b"needle one" in found.stdout
    assert again.stdout == found.stdout
    assert found.stderr.count(b"is damaged") == (damage is not remove)
    assert len(found.stderr.splitlines()) == (damage is not remove)
    assert again.stderr == b""
    now = hashes(program.folder)
    altered = sum(now.get(name) != was for name, was in before.items())
    trials.report("index damaged, by command line", tried=1, acknowledged=1, altered=altered)


@pytest.fixture
def served(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Turn a journal on, without a model, and give its folder."""
    config = home / ".config" / "opencode" / "agent-memory.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
    monkeypatch.setenv("AGENT_JOURNAL_MODEL", "none")
    return config.with_name("journal")


def test_a_server_heals_its_index(home: Path, served: Path, trials: Trials) -> None:
    """Damaged again and again between an agent's calls: every answer is right, each said once."""
    damages = [DAMAGES[0], DAMAGES[1], make_future, remove_the_folder, make_old]
    with Server() as server:
        server.initialize()
        for number, damage in enumerate(damages):
            saved = server.call("journal_write", {"title": "T", "body": f"needle{number}x"})
            assert "Saved." in text_of(saved)
            for one in range(number + 1):
                assert "1 entry matches" in text_of(
                    server.call("journal_search", {"text": f"needle{one}x"})
                )
            damage(index_of(home))
        answer = server.call("journal_search", {"text": "needle0x"})
        assert "1 entry matches" in text_of(answer)
        assert "Notice" not in text_of(answer)
        assert server.leave() == 0
        told = server.stderr.read().decode()
    assert 1 <= told.count("is damaged") <= len(damages)  # a log may still hold what was cut off
    assert "Traceback" not in told
    trials.report(
        "index damaged under a server",
        tried=len(damages),
        acknowledged=len(damages),
        lost=len(damages) - len(hashes(served)),
    )


@pytest.mark.prove
@pytest.mark.parametrize("how", ["immediate", "flock"])
def test_programs_go_on_beside_a_stuck_process(
    home: Path, served: Path, how: str, trials: Trials
) -> None:
    """With the time limits as they are: command line and server answer, and say why from memory."""
    program = Program(home)
    program.env["AGENT_JOURNAL_DIR"] = str(served)
    assert program("write", "Title", "needle0x").returncode == 0
    assert program("search", "needle0x").returncode == 0
    with stuck_process(index_of(home), how):
        assert program("write", "Title", "needle1x").returncode == 0
        found = program("search", "needle1x")
        assert b"needle1x" in found.stdout
        assert found.stderr.count(b"searching from memory") == 1
        with Server() as server:
            server.initialize()
            assert "Saved." in text_of(
                server.call("journal_write", {"title": "T", "body": "needle2x"})
            )
            for word in ("needle0x", "needle1x", "needle2x"):
                answer = text_of(server.call("journal_search", {"text": word}))
                assert "1 entry matches" in answer
                assert "searching from memory" in answer
            assert server.leave() == 0
            assert server.stderr.read().decode().count("searching from memory") == 1
    trials.report(
        f"index locked by a stuck process, {how}, by programs",
        tried=1,
        acknowledged=3,
        lost=3 - len(hashes(served)),
    )


def test_the_damages_damage(desk: Desk) -> None:
    """Each leaves another file than before, or none; else the tests above prove nothing."""
    whole = desk.index.read_bytes()
    for damage in (*DAMAGES, *KINDS):
        desk.index.parent.mkdir(exist_ok=True)
        desk.index.write_bytes(whole)
        damage(desk.index)
        beside = {path.name for path in desk.index.parent.glob("*-*")}
        left = desk.index.read_bytes() if desk.index.exists() else b""
        is_changed = left != whole or bool(beside)
        assert is_changed, damage.__name__
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(":memory:").execute("no statement")
