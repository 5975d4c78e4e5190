"""How an entry gets into its folder: flushes, modes, links, and what happens when they fail."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.folders import DRAFT, NOON, NOON_ID, SIDECAR, Calls, fail

from agent_journal.engines import placing
from agent_journal.engines.files import FileStore
from agent_journal.errors import (
    EntryTooLargeError,
    WriteFailedError,
)
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty journal folder."""
    made = tmp_path / "journal"
    made.mkdir()
    return made


class TestAppend:
    """Nothing is acknowledged that isn't on the disk, nothing half is ever seen."""

    def test_first_write_makes_a_private_folder(self, tmp_path: Path) -> None:
        """The folder and what is missing above it are for the user's eyes, entries read-only."""
        folder = tmp_path / "a" / "b" / "journal"
        previous = os.umask(0)
        try:
            FileStore(folder).append(DRAFT)
        finally:
            os.umask(previous)
        for made in (folder, folder.parent, folder.parent.parent):
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
        (file,) = folder.iterdir()
        assert file.name == f"{NOON_ID}.md"
        assert stat.S_IMODE(file.stat().st_mode) == 0o400
        assert file.stat().st_nlink == 1

    def test_existing_folder_keeps_its_mode(self, folder: Path) -> None:
        """What the user chose for the folder is left alone."""
        folder.chmod(0o755)
        FileStore(folder).append(DRAFT)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755

    def test_mode_does_not_depend_on_the_umask(self, folder: Path) -> None:
        """A umask that takes everything would leave entries that their owner can't read."""
        previous = os.umask(0o777)
        try:
            FileStore(folder).append(DRAFT)
            FileStore(folder).write_sidecar(NOON_ID, SIDECAR)
        finally:
            os.umask(previous)
        modes = {file.suffix: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
        assert modes == {".md": 0o400, ".embedding": 0o600}

    def test_file_system_without_modes_is_good_enough(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """FAT refuses fchmod; entries are stored there all the same."""
        fail(monkeypatch, "fchmod", errno.EPERM)
        previous = os.umask(0o777)
        try:
            FileStore(folder).append(DRAFT)
        finally:
            os.umask(previous)
        assert [file.name for file in folder.iterdir()] == [f"{NOON_ID}.md"]

    def test_data_is_flushed_before_the_name_and_the_name_before_the_answer(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The order of flushes is what makes an acknowledged entry survive a power cut."""
        calls = Calls(monkeypatch, "write", "fsync", "link", "unlink", "rename")
        FileStore(folder).append(DRAFT)
        assert calls.made == ["write", "fsync file", "link", "unlink", "fsync folder"]

    def test_new_folders_are_flushed_into_their_parents(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A new folder's own name is durable before the first entry in it is acknowledged."""
        flushed = []
        monkeypatch.setattr(
            placing, "flush_folder", lambda folder: flushed.append(os.fstat(folder).st_ino)
        )
        monkeypatch.setattr("agent_journal.engines.files.flush_folder", placing.flush_folder)
        folder = tmp_path / "a" / "journal"
        FileStore(folder).append(DRAFT)
        assert flushed == [made.stat().st_ino for made in (tmp_path, tmp_path / "a", folder)]

    def test_drive_caches_are_flushed_where_that_is_a_call_of_its_own(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F_FULLFSYNC (macOS) is used instead of fsync, and fsync where a share hasn't got it."""
        answers = {1: 0, 2: errno.ENOTSUP, 3: errno.EIO}
        asked = []

        def fake(descriptor: int, command: int) -> int:
            asked.append(command)
            if code := answers[command]:
                raise OSError(code, os.strerror(code))
            return descriptor

        monkeypatch.setattr(fcntl, "fcntl", fake)
        calls = Calls(monkeypatch, "fsync")
        monkeypatch.setattr(placing, "_FULL_FLUSH", 1)
        FileStore(folder).append(DRAFT)
        assert (asked, calls.made) == ([1, 1], [])
        monkeypatch.setattr(placing, "_FULL_FLUSH", 2)
        FileStore(folder).append(DRAFT)
        assert (asked, calls.made) == ([1, 1, 2, 2], ["fsync file", "fsync folder"])
        monkeypatch.setattr(placing, "_FULL_FLUSH", 3)
        with pytest.raises(WriteFailedError, match="input/output error"):
            FileStore(folder).append(DRAFT)
        assert len(list(folder.iterdir())) == 2

    def test_folder_that_cannot_be_flushed_is_taken_as_it_is(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Some file systems know no flush of folders (EINVAL); a failing one is an error."""
        fail(monkeypatch, "fsync", errno.EINVAL, folders=True)
        FileStore(folder).append(DRAFT)
        assert len(list(folder.iterdir())) == 1

    @pytest.mark.parametrize(
        ("name", "code", "when", "reason"),
        [
            ("write", errno.ENOSPC, {}, "no space left on device"),
            ("write", errno.EDQUOT, {}, "disk quota exceeded"),
            ("fsync", errno.EIO, {"folders": False}, "input/output error"),
            ("fsync", errno.EIO, {"folders": True}, "input/output error"),
            ("link", errno.EROFS, {}, "read-only file system"),
        ],
    )
    def test_failure_leaves_nothing(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        code: int,
        when: dict[str, bool],
        reason: str,
    ) -> None:
        """Whatever step fails, the error says why and the folder is as it was."""
        fail(monkeypatch, name, code, **when)
        with pytest.raises(WriteFailedError) as caught:
            FileStore(folder).append(DRAFT)
        assert caught.value.reason == reason
        assert caught.value.path == str(folder)
        assert "nothing was saved" in str(caught.value)
        assert list(folder.iterdir()) == []

    def test_failure_to_tidy_up_hides_no_error(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When removing fails as well, the first failure is the one that is told."""
        fail(monkeypatch, "fsync", errno.EIO, folders=True)
        fail(monkeypatch, "unlink", errno.EROFS)
        with pytest.raises(WriteFailedError, match="input/output error"):
            FileStore(folder).append(DRAFT)

    @pytest.mark.parametrize("name", ["open", "fstat", "stat", "write", "fsync", "link", "unlink"])
    @pytest.mark.parametrize("after", [False, True])
    def test_interruption_leaves_no_half_entry(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, after: bool
    ) -> None:
        """Ctrl-C at any call: what is listed is whole, and the next write works."""
        real: Callable[..., Any] = getattr(os, name)  # any os call
        for nth in range(1, 5):
            left = [nth]

            def interrupted(
                *args: Any,  # noqa: ANN401 - any os call
                left: list[int] = left,
                **kwargs: Any,  # noqa: ANN401 - any os call
            ) -> Any:  # noqa: ANN401 - any os call
                left[0] -= 1
                result = real(*args, **kwargs) if after or left[0] else None
                if not left[0]:
                    raise KeyboardInterrupt
                return result

            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                patch.setattr(os, name, interrupted)
                FileStore(folder).append(DRAFT)
            for file in folder.glob("*.md"):
                assert file.read_bytes().endswith(b"\nb\n")
        FileStore(folder).append(DRAFT)

    def test_too_large_a_draft_touches_no_disk(self, tmp_path: Path) -> None:
        """Not even the folder is made."""
        with pytest.raises(EntryTooLargeError):
            FileStore(tmp_path / "journal").append(Draft(title="t", body="x" * ENTRY_LIMIT_BYTES))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("what", ["file", "file above", "broken link"])
    def test_folder_that_can_be_none_is_refused(self, tmp_path: Path, what: str) -> None:
        """A file where the folder should be is an error that says so, and stays."""
        place = tmp_path / "x"
        if what == "broken link":
            place.symlink_to("nowhere")
        else:
            place.write_text("precious")
        with pytest.raises(WriteFailedError, match=r"not a directory|no such file"):
            FileStore(place / "j" if what == "file above" else place).append(DRAFT)
        assert [file.name for file in tmp_path.iterdir()] == ["x"]

    def test_folder_may_be_a_link(self, tmp_path: Path, folder: Path) -> None:
        """Dotfile managers link folders; the entry is written where the link leads."""
        link = tmp_path / "link"
        link.symlink_to(folder)
        store = FileStore(link)
        assert store.read(store.append(DRAFT).id).title == "t"
        assert (folder / f"{NOON_ID}.md").exists()
        assert store.location == str(link)

    def test_many_drafts_of_one_instant_are_linear(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each costs one link and one look at its name, the last as the first."""
        calls = Calls(monkeypatch, "link", "stat")
        store = FileStore(folder)
        for _ in range(200):
            store.append(DRAFT)
        assert calls.made.count("link") == 200
        assert len(list(folder.iterdir())) == 200
        looks = calls.made.count("stat")
        again = FileStore(folder)
        again.append(DRAFT)
        assert calls.made.count("link") == 201
        again.append(DRAFT)
        assert calls.made.count("stat") - looks <= 200 + 10

    def test_name_taken_at_the_last_moment_moves_on(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that loses the race to a name leaves the winner alone and takes the next."""
        real = os.link

        def link(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - any arguments
            (folder / f"{NOON_ID}.md").write_text("winner")
            monkeypatch.setattr(os, "link", real)
            real(*args, **kwargs)

        monkeypatch.setattr(os, "link", link)
        entry = FileStore(folder).append(DRAFT)
        assert entry.created == NOON + timedelta(milliseconds=1)
        assert (folder / f"{NOON_ID}.md").read_text() == "winner"
        assert FileStore(folder).read(entry.id) == entry
        assert len(list(folder.iterdir())) == 2

    def test_folder_removed_during_the_write_is_an_error(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody is told that an entry is safe which went with its folder."""
        monkeypatch.setattr(placing, "flush", lambda _: shutil.rmtree(folder))
        with pytest.raises(WriteFailedError, match="no such file or directory"):
            FileStore(folder).append(DRAFT)
        assert not folder.exists()

    def test_folder_moved_during_the_write_takes_the_entry_along(
        self, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The entry is whole where the folder is now, and nothing is made in its old place."""
        moved = tmp_path / "moved"
        monkeypatch.setattr(os, "fsync", lambda _: folder.exists() and folder.rename(moved))
        entry = FileStore(folder).append(DRAFT)
        assert [path.name for path in tmp_path.iterdir()] == ["moved"]
        assert [path.name for path in moved.iterdir()] == [f"{NOON_ID}.md"]
        assert FileStore(moved).read(entry.id) == entry


class TestWithoutHardLinks:
    """Where a file system has no hard links, an exclusive rename does the same, or nothing does."""

    @pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES])
    def test_exclusive_rename_takes_their_place(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """Entries and sidecars appear, move on and never replace, as with links."""
        fail(monkeypatch, "link", code)
        (folder / f"{NOON_ID}.md").write_text("by hand")
        monkeypatch.setattr("agent_journal.engines.files.exists", lambda *_: False)
        store = FileStore(folder)
        ids = [store.append(DRAFT).id for _ in range(2)]
        assert ids == ["20260131-120000-008", "20260131-120000-009"]
        assert (folder / f"{NOON_ID}.md").read_text() == "by hand"
        monkeypatch.undo()
        fail(monkeypatch, "link", code)
        assert store.write_sidecar(ids[0], SIDECAR)
        assert store.read_sidecar(ids[0]) == SIDECAR
        assert len(list(folder.iterdir())) == 4

    @pytest.mark.parametrize("code", [0, errno.EINVAL, errno.ENOSYS])
    def test_refuses_where_there_is_no_safe_way(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """No C function, an old kernel, a file system that won't: nothing unsafe is tried."""

        def refuse(*_: object) -> int:
            ctypes.set_errno(code)
            return -1

        class Library:
            """A C library that is too old, or whose kernel is."""

            def __init__(self, *_: object, **__: object) -> None:
                if code:
                    self.renameat2 = refuse

        fail(monkeypatch, "link", errno.EPERM)
        monkeypatch.setattr(ctypes, "CDLL", Library)
        with pytest.raises(WriteFailedError, match="neither hard links nor an exclusive rename"):
            FileStore(folder).append(DRAFT)
        assert list(folder.iterdir()) == []
