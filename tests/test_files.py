"""What a store of files reads, refuses, derives and sweeps."""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.drop import run_as_nobody
from tests.folders import DRAFT, LONG_AGO, NOON, NOON_ID, SIDECAR, Calls, fail, open_folder

from agent_journal import entryfile
from agent_journal.engines import placing
from agent_journal.engines.files import FileStore
from agent_journal.errors import (
    EntryNotFoundError,
    InvalidSidecarError,
)
from agent_journal.model import EntryId
from agent_journal.ports import Sidecar


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty journal folder."""
    made = tmp_path / "journal"
    made.mkdir()
    return made


class TestReading:
    """Reading takes what is there and changes nothing."""

    def test_no_more_than_the_limit_is_read(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file of any size costs the same memory, and says that it was cut."""
        real, sizes = os.read, []

        def read(descriptor: int, count: int) -> bytes:
            data = real(descriptor, count)
            sizes.append(len(data))
            return data

        monkeypatch.setattr(os, "read", read)
        with (folder / "big.md").open("wb") as file:
            file.write(b"start")
            file.truncate(3 * entryfile.READ_LIMIT_BYTES)
        entry = FileStore(folder).read(EntryId("big"))
        assert sum(sizes) == entryfile.READ_LIMIT_BYTES + 1
        assert len(entry.body) <= entryfile.READ_LIMIT_BYTES
        assert entry.problems

    def test_time_of_a_file_stands_in_for_its_date(self, folder: Path) -> None:
        """Without frontmatter and with a free name, the entry is as old as its file."""
        (folder / "note.md").write_text("x")
        os.utime(folder / "note.md", (NOON.timestamp(), NOON.timestamp()))
        assert FileStore(folder).read(EntryId("note")).created == NOON

    def test_reading_leaves_every_byte_and_time_alone(self, folder: Path) -> None:
        """Listing, reading and refused writes change no file."""
        files = {"a.md": b"\xff\r\n", "b c.md": b"---\nx: [", "a.embedding": b"[1]"}
        for name, data in files.items():
            (folder / name).write_bytes(data)
            os.utime(folder / name, LONG_AGO)
        store = FileStore(folder)
        for entry_id in store.listing().versions:
            store.read(entry_id)
            with suppress(InvalidSidecarError):
                store.read_sidecar(entry_id)
        assert not store.write_sidecar(EntryId("a"), SIDECAR)
        for name, data in files.items():
            assert (folder / name).read_bytes() == data
            assert (folder / name).stat().st_mtime == LONG_AGO[1]

    def test_socket_is_no_entry(self, folder: Path) -> None:
        """What can't even be opened is not found either."""
        import socket  # noqa: PLC0415

        here = Path.cwd()
        os.chdir(folder)  # a socket's path is short
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind("s.md")
        finally:
            os.chdir(here)
        with pytest.raises(EntryNotFoundError):
            FileStore(folder).read(EntryId("s"))

    def test_unreadable_file_is_told_from_a_missing_one(self) -> None:
        """Without permission the entry is there, and the error names its file."""
        with open_folder() as folder:
            for name in ("a.md", "a.embedding"):
                (folder / name).write_text("x")
                (folder / name).chmod(0)
            printed = run_as_nobody(
                """
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.errors import InvalidSidecarError, StorageError
store = FileStore(Path(sys.argv[1]))
with dropped():
    print(*store.listing().versions)
    for ask in store.read, store.read_sidecar:
        try:
            print(ask("a"))
        except StorageError as error:
            print(type(error).__name__, error.path, error)
""",
                folder,
            ).splitlines()
        assert printed[0] == "a"
        assert printed[1].startswith(f"StorageError {folder}/a.md entry")
        assert "permission denied" in printed[1]
        assert printed[2].startswith(f"InvalidSidecarError {folder}/a.embedding")


class TestPermissions:
    """What an unprivileged user may not do is said, and leaves nothing behind."""

    SCRIPT = """
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.errors import JournalError
from agent_journal.model import Draft
from agent_journal.ports import Sidecar
store = FileStore(Path(sys.argv[1]))
with dropped():
    for ask in (
        lambda: store.listing(), lambda: store.append(Draft(title="t")), lambda: store.read("a"),
        lambda: store.read("a b"), lambda: store.write_sidecar("a", Sidecar("m", (1.0,))),
        lambda: store.sweep(older_than_s=0),
    ):
        try:
            print(type(ask()).__name__)
        except JournalError as error:
            print(type(error).__name__, error)
"""

    @pytest.mark.parametrize("mode", [0o555, 0o000, 0o444, 0o111])
    def test_folder_without_permission(self, mode: int) -> None:
        """A folder that is read-only, closed, or half closed is no empty journal."""
        with open_folder() as folder:
            (folder / "a.md").write_text("x")
            (folder / ".agent-journal-1-2.tmp").write_text("x")
            folder.chmod(mode)
            listed, appended, read, read_other, wrote, swept = run_as_nobody(
                self.SCRIPT, folder
            ).splitlines()
            folder.chmod(0o700)
            assert sorted(file.name for file in folder.iterdir()) == [
                *(".agent-journal-1-2.tmp", "a.md")
            ]
        assert appended.startswith("WriteFailedError")
        assert "permission denied" in appended
        assert (wrote, swept) == ("bool", "list")
        if mode == 0o555:
            assert (listed, read) == ("Listing", "Entry")
            assert read_other.startswith("EntryNotFoundError")
        else:
            assert listed.startswith("JournalUnavailableError")
            assert "permission denied" in listed
            assert read.startswith("StorageError")
            assert read_other.startswith("JournalUnavailableError")

    def test_folder_that_cannot_be_made(self) -> None:
        """Nothing is made halfway up either."""
        with open_folder() as folder:
            folder.chmod(0o555)
            printed = run_as_nobody(self.SCRIPT, folder / "a" / "journal").splitlines()
            assert list(folder.iterdir()) == []
        assert printed[1].startswith("WriteFailedError")


class TestSidecars:
    """Sidecars are derived: private, atomic, and never worth an error."""

    def test_sidecar_is_private_and_made_in_one_piece(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It appears by a link, or by a rename over the old one; never by writing into a file."""
        store = FileStore(folder)
        store.append(DRAFT)
        calls = Calls(monkeypatch, "write", "link", "rename", "fsync")
        assert store.write_sidecar(NOON_ID, SIDECAR)
        assert store.write_sidecar(NOON_ID, SIDECAR, replace=True)
        assert not store.write_sidecar(NOON_ID, SIDECAR)
        assert calls.made == ["write", "link", "write", "rename"]
        assert stat.S_IMODE((folder / f"{NOON_ID}.embedding").stat().st_mode) == 0o600
        assert len(list(folder.iterdir())) == 2

    def test_sidecar_that_came_first_stays(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of two writers at once the later one yields, without a warning."""
        store = FileStore(folder)
        store.append(DRAFT)
        store.write_sidecar(NOON_ID, SIDECAR)
        real = placing.exists
        monkeypatch.setattr(
            "agent_journal.engines.files.exists",
            lambda at, name: name.endswith(".md") and real(at, name),
        )
        assert not store.write_sidecar(NOON_ID, Sidecar("other", (1.0,)))
        assert store.read_sidecar(NOON_ID) == SIDECAR
        assert len(list(folder.iterdir())) == 2

    def test_failure_is_logged_without_text(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A full disk costs the sidecar and nothing else."""
        store = FileStore(folder)
        store.append(DRAFT)
        fail(monkeypatch, "write", errno.ENOSPC)
        with caplog.at_level(logging.WARNING, "agent_journal"):
            assert not store.write_sidecar(NOON_ID, SIDECAR)
        assert [record.getMessage() for record in caplog.records] == [
            f"sidecar {folder}/{NOON_ID}.embedding was not written: no space left on device"
        ]
        assert len(list(folder.iterdir())) == 1

    def test_link_in_place_of_a_sidecar_is_never_followed(
        self, tmp_path: Path, folder: Path
    ) -> None:
        """Neither reading nor replacing reaches what it points to."""
        store = FileStore(folder)
        store.append(DRAFT)
        target = tmp_path / "target"
        target.write_text("precious")
        (folder / f"{NOON_ID}.embedding").symlink_to(target)
        with pytest.raises(InvalidSidecarError):
            store.read_sidecar(NOON_ID)
        assert not store.write_sidecar(NOON_ID, SIDECAR)
        assert store.write_sidecar(NOON_ID, SIDECAR, replace=True)
        assert target.read_text() == "precious"
        assert store.read_sidecar(NOON_ID) == SIDECAR


class TestSweep:
    """Only what a crashed writer of ours left behind is removed, and only when it is old."""

    def test_old_temporary_files_go_and_all_else_stays(self, folder: Path) -> None:
        """Age is counted from the last write, by the clock of the store."""
        store = FileStore(folder)
        store.append(DRAFT)
        for name in (".agent-journal-1-a.tmp", ".agent-journal-2-b.tmp", ".other.tmp", "x.tmp"):
            (folder / name).write_text("x")
            os.utime(folder / name, LONG_AGO)
        (folder / ".agent-journal-dir").mkdir()
        now = time.time()
        os.utime(folder / ".agent-journal-2-b.tmp", (now - 3500, now - 3500))
        removed = store.sweep(older_than_s=3600)
        assert removed == [f"{folder}/.agent-journal-1-a.tmp"]
        assert sorted(file.name for file in folder.iterdir()) == sorted(
            [".agent-journal-2-b.tmp", ".agent-journal-dir", ".other.tmp", f"{NOON_ID}.md", "x.tmp"]
        )
        assert store.sweep(older_than_s=3400) == [f"{folder}/.agent-journal-2-b.tmp"]

    def test_what_no_writer_leaves_stays_and_stops_no_sweep(self, folder: Path) -> None:
        """A folder or a link that is named as temporary files are is somebody else's."""
        for name in ("0", "z"):
            (folder / f".agent-journal-{name}-dir.tmp").mkdir()
            (folder / f".agent-journal-{name}-link.tmp").symlink_to("nowhere")
        old = folder / ".agent-journal-1-2.tmp"
        old.write_text("x")
        for file in folder.iterdir():
            os.utime(file, LONG_AGO, follow_symlinks=False)
        assert FileStore(folder).sweep(older_than_s=86_400) == [str(old)]
        assert len(list(folder.iterdir())) == 4

    def test_leftover_link_to_an_entry_is_swept_and_the_entry_stays(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that died between placing and tidying up left two names of one file."""
        with monkeypatch.context() as patch:
            fail(patch, "unlink", errno.EIO)
            entry = FileStore(folder).append(DRAFT)
        store = FileStore(folder)
        version = store.listing().versions
        assert len(store.sweep(older_than_s=-60)) == 1
        assert store.read(entry.id) == entry
        assert store.listing(thorough=True).versions == version

    def test_file_that_vanishes_meanwhile_is_passed_over(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two sweeps at once are no error."""
        monkeypatch.setattr(
            "agent_journal.engines.files.names", lambda _: [".agent-journal-1-a.tmp"]
        )
        assert FileStore(folder).sweep(older_than_s=0) == []
