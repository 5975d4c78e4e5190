"""The ledgers of a folder: who adds to which, when, and what happens when that can't be done."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import DRAFT, NOON_ID, Calls, fail, open_folder
from tests.ledgered import doubts, ledger_files, ledgered, lines, machine

from agent_journal.engines import auditing, placing
from agent_journal.engines import ledgers as ledgers_module
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import FOLDER, Ledgers
from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.errors import (
    EntryNotFoundError,
    JournalUnavailableError,
    LedgerUnavailableError,
)
from agent_journal.journal import Journal
from agent_journal.model import Draft, EntryId
from agent_journal.ports import Listing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal folder that isn't there yet."""
    return tmp_path / "journal"


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Where this machine remembers its ledger."""
    return tmp_path / "state" / "ledgers" / "here"


@pytest.fixture
def store(folder: Path, memory: Path) -> FileStore:
    """A store with ledgers."""
    return machine(folder, memory)


class TestWriting:
    """Each entry gets its line, once it is durable itself."""

    def test_a_write_is_a_line(self, store: FileStore, folder: Path, memory: Path) -> None:
        """With the hash of the very bytes of the file; the next process goes on with the chain."""
        ids = [store.append(DRAFT).id for _ in range(2)]
        ids.append(machine(folder, memory).append(DRAFT).id)
        (path,) = ledger_files(folder)
        assert [line.statement.id for line in lines(path) if line.statement] == ids
        for line in lines(path):
            assert line.statement is not None
            data = (folder / f"{line.statement.id}.md").read_bytes()
            assert line.statement.sha256 == hashlib.sha256(data).hexdigest()
        assert store.audit() == []

    def test_the_entry_is_durable_before_its_line_and_the_line_before_the_answer(
        self, store: FileStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first one's folders are flushed too; later ones cost one more write and flush."""
        store.append(DRAFT)
        calls = Calls(monkeypatch, "write", "fsync", "link", "unlink", "rename", "mkdir", "pwrite")
        store.append(DRAFT)
        entry = ["write", "fsync file", "link", "unlink", "fsync folder"]
        assert calls.made == [*entry, "pwrite", "write", "fsync file", "pwrite"]

    def test_a_new_ledger_is_durable_with_its_folder(
        self, folder: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its name within its folder, and that folder's within the journal."""
        machine(folder, memory).append(DRAFT)
        shutil.rmtree(folder / FOLDER)
        calls = Calls(monkeypatch, "mkdir", "write", "fsync")
        machine(folder, memory).append(DRAFT)
        entry = ["write", "fsync file", "fsync folder"]
        made = ["mkdir", "fsync folder", "write", "fsync file", "fsync folder"]
        assert calls.made == [*entry, *made]

    @pytest.mark.parametrize("umask", [0, 0o777])
    def test_ledgers_are_private(self, folder: Path, tmp_path: Path, umask: int) -> None:
        """Whatever the umask is; a folder for the machine's memory is there already."""
        for made in (folder, tmp_path / "state"):
            made.mkdir(mode=0o700)
        previous = os.umask(umask)
        try:
            machine(folder, tmp_path / "state" / "here").append(DRAFT)
        finally:
            os.umask(previous)
        (path,) = ledger_files(folder)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "state" / "here").stat().st_mode) == 0o600

    def test_only_the_end_of_a_ledger_is_read(
        self, store: FileStore, folder: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However long it is, a write costs the same."""
        for number in range(60):
            store.append(Draft(f"title {number}"))
        (path,) = ledger_files(folder)
        assert path.stat().st_size > 3 * 4096
        real, sizes = os.pread, []

        def pread(descriptor: int, count: int, offset: int) -> bytes:
            data = real(descriptor, count, offset)
            sizes.append(len(data))
            return data

        monkeypatch.setattr(os, "pread", pread)
        machine(folder, memory).append(DRAFT)
        assert sum(sizes) < 4096 + 512
        monkeypatch.undo()
        assert len(lines(path)) == 61

    def test_a_long_last_line_is_found(self, folder: Path, memory: Path) -> None:
        """Names of 250 bytes and a long reason make a line longer than a page."""
        store = machine(folder, memory)
        folder.mkdir()
        name = "\U0001f600" * 62
        (folder / f"{name}.md").write_text("x")
        assert store.adopt() == [name]
        (path,) = ledger_files(folder)
        path.write_bytes(b"\n" * 10_000 + path.read_bytes())
        store.append(DRAFT)
        assert ledgered(folder) == [name, NOON_ID]

    @pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES])
    def test_a_file_system_without_modes_is_good_enough(
        self, store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """FAT refuses to change them."""
        folder.mkdir()
        for name in ("chmod", "fchmod"):
            fail(monkeypatch, name, code)
        previous = os.umask(0o077)
        try:
            assert store.append(DRAFT).problems == ()
        finally:
            os.umask(previous)
        assert ledgered(folder) == [NOON_ID]

    def test_a_folder_that_another_makes_first_is_used(
        self, store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two machines that write for the first time at once; only the moment is made up."""
        folder.mkdir()
        real = os.mkdir

        def mkdir(name: str, *args: int, **given: int) -> None:
            if name == FOLDER:
                real(name, *args, **given)
            real(name, *args, **given)

        monkeypatch.setattr(os, "mkdir", mkdir)
        assert store.append(DRAFT).problems == ()
        assert ledgered(folder) == [NOON_ID]

    def test_threads_share_one_chain(self, folder: Path, memory: Path) -> None:
        """Whichever comes first."""
        store = machine(folder, memory, wait_s=30)
        with ThreadPoolExecutor(8) as pool:
            ids = [entry.id for entry in pool.map(store.append, [DRAFT] * 40)]
        assert sorted(ledgered(folder)) == sorted(ids)
        assert store.audit() == []

    def test_a_store_without_ledgers_keeps_none(self, folder: Path) -> None:
        """Nor does it find anything to say."""
        store = FileStore(folder)
        assert store.append(DRAFT).problems == ()
        assert not (folder / FOLDER).exists()
        assert store.audit() == []
        assert store.adopt() == []


class TestWhoseLedger:
    """A machine goes on with its ledger only if that ends as it remembers."""

    def test_each_machine_has_its_own(self, store: FileStore, folder: Path, tmp_path: Path) -> None:
        """So that merged folders never conflict; each vouches for its own entries."""
        other = machine(folder, tmp_path / "elsewhere")
        ids = [each.append(DRAFT).id for each in (store, other, store)]
        first, second = ledger_files(folder)
        assert {len(lines(first)), len(lines(second))} == {1, 2}
        assert sorted(ledgered(folder)) == ids
        assert store.audit() == other.audit() == []

    def test_a_copied_home_begins_a_ledger_of_its_own(
        self, store: FileStore, folder: Path, memory: Path, tmp_path: Path
    ) -> None:
        """The copy's ledger got longer elsewhere, and both folders can be merged."""
        store.append(DRAFT)
        shutil.copy(memory, tmp_path / "copy")
        store.append(DRAFT)
        machine(folder, tmp_path / "copy").append(DRAFT)
        store.append(DRAFT)
        assert sorted(len(lines(path)) for path in ledger_files(folder)) == [1, 3]
        assert store.audit() == []

    @pytest.mark.parametrize("damage", [bytes(195), b"[]\n", b'{"machine": "x"'])
    def test_a_damaged_memory_is_told_and_mended_by_the_next_write(
        self, store: FileStore, memory: Path, damage: bytes
    ) -> None:
        """Without it nobody would notice that a ledger has lost its end."""
        store.append(DRAFT)
        memory.write_bytes(damage)
        (problem,) = store.audit()
        assert (problem.path, "is damaged" in problem.reason) == (str(memory), True)
        store.append(DRAFT)
        assert store.audit() == []

    @pytest.mark.parametrize("loss", ["line", "all lines", "file", "folder"])
    def test_a_ledger_that_lost_its_end_is_not_gone_on_with(
        self, store: FileStore, folder: Path, loss: str
    ) -> None:
        """It is told before the next write and after it, until a person goes on without."""
        ids = [store.append(DRAFT).id for _ in range(3)]
        (path,) = ledger_files(folder)
        kept = path.read_bytes().splitlines(keepends=True)[:2] if loss == "line" else []
        path.write_bytes(b"".join(kept))
        if loss == "file":
            path.unlink()
        if loss == "folder":
            shutil.rmtree(path.parent)
        lost = ids[len(kept) :]
        truncated = ("truncated", path.name)
        if loss in ("file", "folder"):
            assert doubts(store) == [truncated, ("unledgered", folder.name)]
        else:
            assert doubts(store) == [truncated, *(("unledgered", f"{one}.md") for one in lost)]
        ids.append(store.append(DRAFT).id)
        assert doubts(store) == [truncated, *(("unledgered", f"{one}.md") for one in lost)]
        assert store.adopt() == lost
        assert store.audit() == []
        assert sorted(ledgered(folder)) == ids
        assert len(ledger_files(folder)) == 1 + (loss in ("line", "all lines"))

    def test_a_restored_ledger_is_whole_again(self, store: FileStore, folder: Path) -> None:
        """Putting it back from a backup is the other way out."""
        store.append(DRAFT)
        (path,) = ledger_files(folder)
        saved = path.read_bytes()
        path.write_bytes(b"")
        assert doubts(store)[0] == ("truncated", path.name)
        path.write_bytes(saved)
        assert store.audit() == []
        store.append(DRAFT)
        assert len(lines(path)) == 2

    @pytest.mark.parametrize("junk", [b"", b"junk", b"{}\n" * 100, b"\0" * 300, b'{"machine":1}\n'])
    def test_a_machine_that_forgot_begins_anew(
        self, store: FileStore, folder: Path, memory: Path, junk: bytes
    ) -> None:
        """A damaged memory costs a new ledger and nothing else."""
        store.append(DRAFT)
        memory.write_bytes(junk)
        store.append(DRAFT)
        store.append(DRAFT)
        assert sorted(len(lines(path)) for path in ledger_files(folder)) == [1, 2]
        assert store.audit() == []

    def test_a_memory_that_is_gone_is_made_again(
        self, store: FileStore, folder: Path, memory: Path
    ) -> None:
        """With its folders."""
        store.append(DRAFT)
        shutil.rmtree(memory.parent.parent)
        store.append(DRAFT)
        assert len(ledger_files(folder)) == 2
        assert store.audit() == []

    def test_a_moved_folder_takes_its_ledgers_along(
        self, store: FileStore, folder: Path, memory: Path, tmp_path: Path
    ) -> None:
        """The machine remembers a ledger by the folder's place, so it begins another one there."""
        store.append(DRAFT)
        moved = folder.rename(tmp_path / "moved")
        there = machine(moved, memory.with_name("there"))
        there.append(DRAFT)
        assert there.audit() == []
        assert len(ledger_files(moved)) == 2

    def test_half_a_line_is_left_alone_and_never_glued_to(
        self, store: FileStore, folder: Path, memory: Path
    ) -> None:
        """A crash in the middle of an append; what it wrote stays, the chain goes on after it."""
        store.append(DRAFT)
        (path,) = ledger_files(folder)
        before = path.read_bytes()
        store.append(DRAFT)
        added = path.read_bytes()[len(before) :]
        half = json.loads(memory.read_bytes())
        first = hashlib.sha256(before.rstrip(b"\n")).hexdigest()
        for cut in (1, 100, len(added) - 2, len(added) - 1):
            path.write_bytes(before + added[:cut])
            memory.write_bytes(json.dumps(half | {"known": [first, half["known"][1]]}).encode())
            torn = [("unledgered", "20260131-120000-008.md")] * (cut < len(added) - 1)
            assert doubts(store) == torn
            store.append(DRAFT)
            assert path.read_bytes().startswith(before + added[:cut] + b"\n")
            assert len(lines(path)) == 3 - len(torn)
            assert doubts(store) == torn
            for entry_id in set(store.listing().versions) - {NOON_ID, "20260131-120000-008"}:
                (folder / f"{entry_id}.md").unlink()


class TestUnledgered:
    """An entry that is safe is acknowledged, and whoever wrote it is told what is missing."""

    def check_told(self, store: FileStore, caplog: pytest.LogCaptureFixture, reason: str) -> None:
        """Two writes: both acknowledged, both entries say it, the log says it once."""
        with caplog.at_level(logging.WARNING, "agent_journal"):
            entries = [store.append(DRAFT) for _ in range(2)]
        for entry in entries:
            (problem,) = entry.problems
            assert problem.kind == "unledgered"
            assert reason in problem.reason
            assert f"entry {entry.id} is saved" in problem.reason
            assert store.read(entry.id) == entry
        (record,) = caplog.records
        assert record.getMessage() == entries[0].problems[0].reason

    def test_a_lock_that_others_hold_is_not_awaited_for_ever(
        self, store: FileStore, folder: Path, memory: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """When it is free again everything goes on, and a person may enter what is missing."""
        first = store.append(DRAFT).id
        with memory.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.check_told(store, caplog, "another process keeps it locked")
        store.append(DRAFT)
        missing = ["20260131-120000-008", "20260131-120000-009"]
        assert doubts(store) == [("unledgered", f"{one}.md") for one in missing]
        assert store.adopt() == missing
        assert store.audit() == []
        assert ledgered(folder) == [first, "20260131-120000-010", *missing]

    def test_writers_wait_two_seconds(self) -> None:
        """Long enough for many others, short enough for an agent that waits for its answer."""
        assert ledgers_module.WAIT_S == 2.0

    @pytest.mark.parametrize("what", ["file", "link", "pipe as ledger", "link as ledger"])
    def test_what_is_in_the_way_stays(
        self,
        store: FileStore,
        folder: Path,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        what: str,
    ) -> None:
        """No link is followed, no pipe waited for; check tells of it too."""
        store.append(DRAFT)
        (path,) = ledger_files(folder)
        target = tmp_path / "target"
        target.mkdir()
        if what.endswith("as ledger"):
            path.unlink()
            if what == "pipe as ledger":
                os.mkfifo(path)
            else:
                path.symlink_to(target / "x.jsonl")
        else:
            shutil.rmtree(folder / FOLDER)
            if what == "file":
                (folder / FOLDER).write_text("precious")
            else:
                (folder / FOLDER).symlink_to(target)
        self.check_told(store, caplog, "")
        assert list(target.iterdir()) == []
        assert any("it can't be read" in problem.reason for problem in store.audit())

    def test_a_ledger_that_cannot_be_read_is_left_alone(
        self,
        store: FileStore,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """No other is begun for a bad sector, of which only the failure is made up."""
        first = store.append(DRAFT).id
        real = os.pread

        def pread(descriptor: int, count: int, offset: int) -> bytes:
            if count > 300:  # what is remembered is shorter
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(descriptor, count, offset)

        for _ in range(2):
            store.append(DRAFT)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pread", pread)
            self.check_told(store, caplog, "input/output error")
        assert len(ledger_files(folder)) == 1
        assert ledgered(folder)[0] == first
        assert store.append(DRAFT).problems == ()

    @pytest.mark.parametrize("name", ["pwrite", "mkdir"])
    def test_a_failing_disk_costs_the_line_alone(
        self,
        store: FileStore,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        name: str,
    ) -> None:
        """Only the failure is made up."""
        folder.mkdir()
        with monkeypatch.context() as patch:
            fail(patch, name, errno.ENOSPC)
            self.check_told(store, caplog, "no space left on device")
        assert doubts(store) == [("unledgered", folder.name)]
        store.append(DRAFT)
        assert len(store.adopt()) == 2
        assert store.audit() == []

    def test_without_a_home_there_is_no_ledger(
        self, folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A machine that can't remember its ledger has none."""
        store = FileStore(folder, ledgers=lambda: Ledgers(folder, None))
        self.check_told(store, caplog, "no home directory is known")
        assert doubts(store) == [("unledgered", folder.name)]
        with pytest.raises(LedgerUnavailableError, match="no home directory"):
            store.adopt()

    SCRIPT = """
import logging
from pathlib import Path
import agent_journal.engines.auditing
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.errors import JournalError
from agent_journal.model import Draft
logging.disable()
folder = Path(sys.argv[1])
store = FileStore(folder, ledgers=lambda: Ledgers(folder, Path(sys.argv[2])))
with dropped():
    entry = store.append(Draft("t"))
    print(*(problem.reason for problem in entry.problems))
    print(*(problem.kind for problem in store.audit()))
    try:
        print(len(store.adopt()))
    except JournalError as error:
        print(type(error).__name__, error)
"""

    @pytest.mark.parametrize("what", ["ledgers", "ledger", "memory", "memory's folder"])
    def test_permissions_cost_the_line_alone(self, what: str) -> None:
        """As an unprivileged user: what may not be written is said, the entry is there."""
        with open_folder() as home:
            folder, state = home / "journal", home / "state"
            run_as_nobody(self.SCRIPT, folder, state / "here")
            (ledger,) = ledger_files(folder)
            closed = {
                "ledgers": folder / FOLDER,
                "ledger": ledger,
                "memory": state / "here",
                "memory's folder": state,
            }[what]
            if what == "ledgers":
                (state / "here").unlink()  # so that a new ledger has to be made
            closed.chmod(0o500 if closed.is_dir() else 0o400)
            if what == "memory's folder":
                (state / "here").unlink()
            said, kinds, adopted = run_as_nobody(self.SCRIPT, folder, state / "here").splitlines()
            assert "permission denied" in said
            assert kinds == "unledgered"
            assert adopted.startswith("LedgerUnavailableError")
            assert "permission denied" in adopted
            closed.chmod(0o700)
            assert run_as_nobody(self.SCRIPT, folder, state / "here").splitlines()[2] == "1"

    def test_ledgers_that_may_not_be_read_are_told(self) -> None:
        """An audit that sees nothing doesn't pass for one that finds nothing."""
        with open_folder() as home:
            folder, memory = home / "journal", home / "state" / "here"
            run_as_nobody(self.SCRIPT, folder, memory)
            for closed in (ledger_files(folder)[0], folder / FOLDER, memory):
                mode = closed.stat().st_mode
                closed.chmod(0)
                told = run_as_nobody(self.SCRIPT.replace(".kind", ".reason"), folder, memory)
                assert "it can't be read: permission denied" in told
                closed.chmod(mode)


class TestAuditing:
    """Every file and every ledger is read, while others go on writing."""

    def test_progress_is_told_of_both_readings(self, store: FileStore) -> None:
        """A check reads entries for what is wrong with them, and once more for the ledger."""
        store.append(DRAFT)
        store.append(DRAFT)
        told: list[tuple[int, int]] = []
        with Journal(store, MemoryIndex(), NoEmbedder("none")) as journal:
            journal.check(progress=lambda done, total: told.append((done, total)))
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_it_ends_though_others_never_do(
        self, store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After some looks what is doubted is told, even if the ledger still grows."""
        store.append(DRAFT)
        (folder / "by hand.md").write_text("x")
        monkeypatch.setattr(auditing, "_LOOKS", 3)
        real = store.listing

        def listing(*, thorough: bool = False) -> Listing:
            found = real(thorough=thorough)
            store.append(DRAFT)
            return found

        monkeypatch.setattr(store, "listing", listing)
        assert doubts(store) == [("unledgered", "by hand.md")]
        assert len(real().versions) == 6

    def test_a_file_that_goes_meanwhile_is_no_doubt_of_its_content(
        self, store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is missing then, or it never had a line."""
        store.append(DRAFT)
        (folder / "by hand.md").write_text("x")
        real = placing.hash_file

        def hash_file(at: int, name: str) -> str:
            for path in folder.glob("*.md"):
                path.unlink()
            return real(at, name)

        monkeypatch.setattr("agent_journal.engines.auditing.hash_file", hash_file)
        assert doubts(store) == [("missing", f"{NOON_ID}.md")]

    def test_a_file_that_cannot_be_read_is_told_by_a_check_alone(
        self, store: FileStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is known of it that could be compared; only the failure is made up."""
        store.append(DRAFT)

        def hash_file(*_: object) -> str:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("agent_journal.engines.auditing.hash_file", hash_file)
        assert store.audit() == []

    def test_a_link_in_the_place_of_an_entry_is_none(self, store: FileStore, folder: Path) -> None:
        """It isn't followed, whatever it leads to; the entry is missing."""
        store.append(DRAFT)
        path = folder / f"{NOON_ID}.md"
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
        assert doubts(store) == [("missing", path.name)]


class TestAdopting:
    """What a person says is said in the ledger, and marked as said by a person."""

    def test_files_without_a_line_are_adopted_only_when_told_to(
        self, store: FileStore, folder: Path
    ) -> None:
        """Writing and checking leave them as they are."""
        store.append(DRAFT)
        (folder / "by hand.md").write_text("x")
        for _ in range(2):
            assert doubts(store) == [("unledgered", "by hand.md")]
            store.append(DRAFT)
        assert store.adopt() == ["by hand"]
        assert store.audit() == []
        (path,) = ledger_files(folder)
        said = lines(path)[-1].statement
        assert said is not None
        assert (said.act, said.at[:2]) == ("adopt", "20")
        assert store.adopt() == []
        assert len(lines(path)) == 4

    def test_a_journal_of_others_is_told_as_a_whole(self, store: FileStore, folder: Path) -> None:
        """Hundreds of entries without a ledger are one thing to say, and one act to change."""
        with pytest.raises(JournalUnavailableError):
            store.audit()
        with pytest.raises(JournalUnavailableError):
            store.adopt()
        folder.mkdir()
        assert store.audit() == []
        for name in "abc":
            (folder / f"{name}.md").write_text(name)
        (problem,) = store.audit()
        assert (problem.path, problem.kind) == (str(folder), "unledgered")
        assert "3 entries" in problem.reason
        assert store.adopt() == ["a", "b", "c"]
        assert store.audit() == []

    def test_a_change_is_accepted_only_by_name(self, store: FileStore, folder: Path) -> None:
        """So is a deletion; without names neither is."""
        one, two, three = (store.append(DRAFT).id for _ in range(3))
        for name in (one, three):
            (folder / f"{name}.md").chmod(0o600)
        (folder / f"{one}.md").write_text("edited")
        (folder / f"{two}.md").unlink()
        (folder / f"{three}.md").write_text("edited too")
        expected = [("altered", f"{one}.md"), ("missing", f"{two}.md"), ("altered", f"{three}.md")]
        assert doubts(store) == expected
        assert store.adopt() == []
        assert doubts(store) == expected
        assert store.adopt([one, two]) == [one, two]
        assert doubts(store) == expected[2:]
        assert store.adopt([one]) == []
        with pytest.raises(EntryNotFoundError):
            store.adopt([three, EntryId("unknown")])
        assert doubts(store) == expected[2:]
        assert store.adopt([three]) == [three]
        assert store.audit() == []

    def test_progress_is_told(self, store: FileStore) -> None:
        """Of each file that is read."""
        for _ in range(3):
            store.append(DRAFT)
        told: list[tuple[int, int]] = []
        store.audit(progress=lambda done, total: told.append((done, total)))
        assert told == [(1, 3), (2, 3), (3, 3)]

    def test_many_files_are_adopted(
        self, store: FileStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A few flushes for all of them, and the lock is given back in between."""
        folder.mkdir()
        for number in range(1_100):
            (folder / f"{number:04}.md").write_text("x")
        calls = Calls(monkeypatch, "fsync")
        assert len(store.adopt()) == 1_100
        assert calls.made.count("fsync file") == 3
        monkeypatch.undo()
        assert store.audit() == []
        store.append(DRAFT)
        (path,) = ledger_files(folder)
        assert len(lines(path)) == 1_101


class TestStrangers:
    """What others put beside ledgers is told or passed over, and never followed."""

    def test_files_that_are_no_ledgers_are_told(self, store: FileStore, folder: Path) -> None:
        """A sync's conflict copy is one; what is named otherwise is nobody's business."""
        store.append(DRAFT)
        (path,) = ledger_files(folder)
        copy = path.with_name(f"{path.stem} (conflicted copy).jsonl")
        link, pipe, made, renamed = (path.with_name(f"{each * 32}.jsonl") for each in "abcd")
        shutil.copy(path, copy)
        shutil.copy(path, renamed)
        (path.parent / "notes.txt").write_text("x")
        link.symlink_to(path)
        os.mkfifo(pipe)
        made.mkdir()
        found = {Path(one.path): (one.kind, one.line) for one in store.audit()}
        assert found == {
            copy: ("foreign", None),
            renamed: ("foreign", 1),
            **dict.fromkeys((link, pipe, made), ("", None)),
        }

    def test_a_merged_ledger_vouches_for_its_entries(
        self, store: FileStore, folder: Path, tmp_path: Path
    ) -> None:
        """Two machines wrote apart; their folders are put together as a sync does it."""
        store.append(DRAFT)
        there = tmp_path / "there"
        other = machine(there, tmp_path / "there-state")
        taken = other.append(DRAFT).id
        free = other.append(DRAFT).id
        for path in there.rglob("*"):
            target = folder / path.relative_to(there)
            if path.is_file() and not target.exists():
                shutil.copy(path, target)
        assert doubts(store) == []  # the same draft: the very bytes that the other wrote
        (folder / f"{free}.md").unlink()
        assert doubts(store) == [("missing", f"{free}.md")]
        assert taken == NOON_ID

    def test_entries_of_one_name_that_differ_are_told(
        self, store: FileStore, folder: Path, tmp_path: Path
    ) -> None:
        """One of two was lost in the merge."""
        store.append(DRAFT)
        there = tmp_path / "there"
        other = machine(there, tmp_path / "there-state")
        other.append(Draft("another", created=DRAFT.created))
        shutil.copy(ledger_files(there)[0], folder / FOLDER)
        (problem,) = store.audit()
        assert problem.kind == "missing"
        assert "another machine" in problem.reason
        shutil.copy(there / f"{NOON_ID}.md", folder / "saved.md")
        assert doubts(store) == [("unledgered", "saved.md")]
