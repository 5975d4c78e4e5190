"""What is special about a store of files: flushes, modes, links, and what else lies in a folder."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.drop import NOBODY, run_as_nobody

from agent_journal import entryfile
from agent_journal.engines import instants, placing
from agent_journal.engines.files import FileStore
from agent_journal.errors import (
    EntryNotFoundError,
    EntryTooLargeError,
    InvalidSidecarError,
    JournalUnavailableError,
    WriteFailedError,
)
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft, EntryId, to_milliseconds
from agent_journal.ports import Sidecar, Version

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)
DRAFT = Draft(title="t", body="b", created=NOON)
NOON_ID = EntryId("20260131-120000-007")
SIDECAR = Sidecar("some/model", (0.5, 1.0))
LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty journal folder."""
    made = tmp_path / "journal"
    made.mkdir()
    return made


class Clock:
    """The one clock of a scanner that runs only when told to; it starts at the real time."""

    def __init__(self) -> None:
        self.ns = time.time_ns()

    def pass_by(self, seconds: float) -> None:
        """Let some time pass."""
        self.ns += int(seconds * 1e9)

    def store(self, folder: Path) -> FileStore:
        """Return a store that lives by this clock."""
        return FileStore(folder, now_ns=lambda: self.ns, monotonic=lambda: self.ns / 1e9)


class Calls:
    """Counts and records calls of functions of `os`, and can make one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.made: list[str] = []
        for name in names:
            monkeypatch.setattr(os, name, self._recording(name, getattr(os, name)))

    def _recording(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:  # any os call
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any os call
            what = name
            if name == "fsync":
                what = "fsync folder" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "fsync file"
            self.made.append(what)
            return real(*args, **kwargs)

        return call


def fail(monkeypatch: pytest.MonkeyPatch, name: str, code: int, **when: bool) -> None:
    """Let a function of `os` fail, for folders only or for files only."""
    real: Callable[..., Any] = getattr(os, name)  # any os call

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any os call
        if "folders" in when and when["folders"] != stat.S_ISDIR(os.fstat(args[0]).st_mode):
            return real(*args, **kwargs)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, name, call)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that belongs to nobody, reachable without root's powers."""
    folder = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


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


class TestListing:
    """What counts as an entry, and how little is looked at to know."""

    def test_missing_folder_is_said_and_not_made(self, tmp_path: Path) -> None:
        """Before the first write there is nothing, and reading makes nothing."""
        store = FileStore(tmp_path / "journal")
        with pytest.raises(JournalUnavailableError, match="does not exist") as caught:
            store.listing()
        assert caught.value.missing
        for entry_id in ("20260131-120000-007", "a b"):
            with pytest.raises(EntryNotFoundError):
                store.read(EntryId(entry_id))
            assert store.read_sidecar(EntryId(entry_id)) is None
            assert not store.write_sidecar(EntryId(entry_id), SIDECAR)
        assert store.sweep(older_than_s=0) == []
        assert list(tmp_path.iterdir()) == []

    def test_file_in_place_of_the_folder_is_no_missing_folder(self, tmp_path: Path) -> None:
        """Nothing must be taken for an empty journal but an empty folder."""
        (tmp_path / "journal").write_text("x")
        store = FileStore(tmp_path / "journal")
        with pytest.raises(JournalUnavailableError, match="not a directory") as caught:
            store.listing()
        assert not caught.value.missing
        with pytest.raises(JournalUnavailableError):
            store.read(EntryId("a b"))

    def test_only_regular_markdown_files_are_entries(self, folder: Path) -> None:
        """Dot-files, folders and other names are passed over; what pretends is a problem."""
        for name in (
            "a.md",
            ".hidden.md",
            ".md",
            "b.MD",
            "c.txt",
            "d.md~",
            "e.md.tmp",
            "f.embedding",
        ):
            (folder / name).write_text("x")
        (folder / "sub").mkdir()
        (folder / "sub" / "inner.md").write_text("x")
        (folder / "folder.md").mkdir()
        (folder / "link.md").symlink_to("a.md")
        (folder / "broken.md").symlink_to("nowhere")
        (folder / "other-link").symlink_to("a.md")
        os.mkfifo(folder / "pipe.md")
        (folder / "a.embedding").symlink_to("f.embedding")
        (folder / "g.embedding").symlink_to("f.embedding")
        store = FileStore(folder)
        listing = store.listing()
        assert set(listing.versions) == {"a"}
        assert listing.versions[EntryId("a")].sidecar == ""
        assert [Path(problem.path).name for problem in listing.problems] == [
            *("a.embedding", "broken.md", "folder.md", "link.md", "pipe.md")
        ]
        assert all(Path(problem.path).parent == folder for problem in listing.problems)
        assert "symbolic link" in listing.problems[3].reason
        assert store.listing(thorough=True) is listing
        for name in ("folder", "link", "broken", "pipe"):
            assert not store.write_sidecar(EntryId(name), SIDECAR)
            with pytest.raises(EntryNotFoundError):
                store.read(EntryId(name))
        with pytest.raises(InvalidSidecarError):
            store.read_sidecar(EntryId("a"))

    def test_name_that_is_no_utf8_is_a_problem_that_can_be_printed(self, folder: Path) -> None:
        """Its path is shown with the bytes escaped, so that no message breaks on it."""
        (folder / "fine.md").write_text("x")
        raw = os.fsencode(folder) + b"/caf\xe9.md"
        try:
            Path(os.fsdecode(raw)).write_bytes(b"x")
        except OSError:  # pragma: no cover - macOS refuses such names
            pytest.skip("this file system takes UTF-8 only")
        listing = FileStore(folder).listing()
        assert set(listing.versions) == {"fine"}
        (problem,) = listing.problems
        assert problem.path == f"{folder}/caf\\xe9.md"
        assert "UTF-8" in problem.reason
        assert str(problem).encode()

    def test_settled_folder_is_not_read_again(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One look at the folder is enough while its old mtime vouches for the listing."""
        (folder / "a.md").write_text("x")
        os.utime(folder, LONG_AGO)
        clock = Clock()
        store = clock.store(folder)
        first = store.listing()
        calls = Calls(monkeypatch, "scandir", "open", "stat")
        clock.pass_by(1.9)
        assert store.listing() is first
        assert calls.made.count("scandir") == calls.made.count("open") == 0
        clock.pass_by(0.1)
        assert store.listing() is first
        assert calls.made.count("scandir") == 1

    @pytest.mark.parametrize("age_s", [1.9, -5.0])
    def test_young_or_future_folder_vouches_for_nothing(self, folder: Path, age_s: float) -> None:
        """What came in the same tick of the clock as the last change is still found."""
        (folder / "a.md").write_text("x")
        clock = Clock()
        tick = clock.ns - int(age_s * 1e9)
        os.utime(folder, ns=(tick, tick))
        store = clock.store(folder)
        store.listing()
        (folder / "b.md").write_text("x")
        os.utime(folder, ns=(tick, tick))
        assert set(store.listing().versions) == {"a", "b"}

    def test_only_what_is_new_is_looked_at(self, folder: Path) -> None:
        """Within 2 s of the last full look, an addition costs the names and one stat."""
        for name in "abc":
            (folder / f"{name}.md").write_text("x")
        clock = Clock()
        store = clock.store(folder)
        before = store.listing().versions
        (folder / "a.md").write_text("edited in place")
        (folder / "d.md").write_text("x")
        clock.pass_by(1.9)
        unseen = store.listing().versions
        assert set(unseen) == {"a", "b", "c", "d"}
        assert unseen[EntryId("a")] is before[EntryId("a")]
        clock.pass_by(0.1)
        seen = store.listing().versions
        assert seen[EntryId("a")] != before[EntryId("a")]
        assert seen[EntryId("b")] is before[EntryId("b")]

    def test_edit_in_place_is_seen_at_once_by_a_thorough_look(self, folder: Path) -> None:
        """Of an entry and of a sidecar alike."""
        for name in ("a.md", "a.embedding"):
            (folder / name).write_text("x")
        store = Clock().store(folder)
        before = store.listing().versions[EntryId("a")]
        (folder / "a.md").write_text("edited in place")
        entry_edited = store.listing(thorough=True).versions[EntryId("a")]
        (folder / "a.embedding").write_text("edited in place")
        both_edited = store.listing(thorough=True).versions[EntryId("a")]
        assert entry_edited == Version(entry_edited.entry, before.sidecar)
        assert entry_edited.entry != before.entry
        assert both_edited.sidecar != before.sidecar

    def test_same_time_hides_neither_size_nor_file(self, folder: Path) -> None:
        """A copy that keeps times is told by its size, or by being another file."""
        store = Clock().store(folder)
        versions = []
        for text in ("same", "size", "differs"):
            if text == "differs":
                (folder / "a.md").write_text(text)
                os.utime(folder / "a.md", LONG_AGO)
            else:
                (folder / "new").write_text(text)
                os.utime(folder / "new", LONG_AGO)
                (folder / "new").rename(folder / "a.md")
            versions.append(store.listing(thorough=True).versions[EntryId("a")])
        assert len(set(versions)) == 3

    def test_replaced_folder_is_noticed(self, tmp_path: Path, folder: Path) -> None:
        """Another folder in the same place, as after a move or a mount, is looked at anew."""
        (folder / "a.md").write_text("old")
        os.utime(folder, LONG_AGO)
        store = Clock().store(folder)
        old = store.listing()
        other = tmp_path / "other"
        other.mkdir()
        os.link(folder / "a.md", other / "a.md")
        (other / "b.md").write_text("new")
        os.utime(other, LONG_AGO)
        folder.rename(tmp_path / "moved")
        with pytest.raises(JournalUnavailableError) as caught:
            store.listing()
        assert caught.value.missing
        other.rename(folder)
        assert set(store.listing().versions) == {"a", "b"}
        folder.rename(tmp_path / "moved again")
        (tmp_path / "moved").rename(folder)
        assert store.listing() == old

    def test_folder_swapped_between_calls_is_noticed(self, tmp_path: Path, folder: Path) -> None:
        """The same without a call in between that fails."""
        (folder / "a.md").write_text("old")
        store = Clock().store(folder)
        before = store.listing().versions
        other = tmp_path / "other"
        other.mkdir()
        os.link(folder / "a.md", other / "a.md")
        (other / "a.md").write_text("edited in place")
        folder.rename(tmp_path / "moved")
        other.rename(folder)
        after = store.listing().versions
        assert after.keys() == before.keys()
        assert after != before

    def test_file_that_vanishes_while_listing_is_passed_over(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A removal between reading a name and looking at its file is a removal, not an error."""
        for name in "ab":
            (folder / f"{name}.md").write_text("x")
        real = os.scandir

        class Vanishing:
            """A folder's names, read before the files are gone."""

            def __init__(self, descriptor: int) -> None:
                with real(descriptor) as listed:
                    self.members = list(listed)
                (folder / "b.md").unlink()

            def __enter__(self) -> list[os.DirEntry[str]]:
                return self.members

            def __exit__(self, *_: object) -> None:
                """Nothing is held."""

        monkeypatch.setattr(os, "scandir", Vanishing)
        assert set(FileStore(folder).listing().versions) == {"a"}

    def test_failing_disk_is_no_empty_journal(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An error while listing is told, never taken for files that are gone."""
        (folder / "a.md").write_text("x")
        store = FileStore(folder)
        before = store.listing()
        with monkeypatch.context() as patch:
            fail(patch, "scandir", errno.EIO)
            with pytest.raises(JournalUnavailableError, match="input/output error"):
                store.listing(thorough=True)
        assert store.listing() == before


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


class TestInstants:
    """Ids are handed out once each, in any order of requests, in linear time."""

    @given(st.lists(st.integers(0, 30), max_size=200))
    def test_gives_the_first_free_one(self, asked: list[int]) -> None:
        """The answers are those of the simplest search."""
        given_out: set[int] = set()
        handing = instants.Instants()
        for instant in asked:
            free = instant
            while free in given_out:
                free += 1
            given_out.add(free)
            assert to_milliseconds(handing.take(instant)) == free

    def test_memory_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that runs for years doesn't remember every write."""
        monkeypatch.setattr(instants, "_REMEMBERED", 10)
        handing = instants.Instants()
        for instant in range(100):
            handing.take(instant * 1000)
        assert len(handing._following) <= 12


class FolderMachine(RuleBasedStateMachine):
    """A store, reopened now and then, and a person at work in its folder answer like a dict."""

    names = st.sampled_from(
        [EntryId(name) for name in (NOON_ID, "20260131-120000-008", "a b", "x.y", "é")]
    )
    texts = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)

    @initialize()
    def start(self) -> None:
        """An empty folder and a clock that stands."""
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "journal"
        self.folder.mkdir()
        self.clock = Clock()
        self.bodies: dict[EntryId, str] = {}
        self.sidecars: dict[EntryId, Sidecar] = {}
        self.edited = False
        self.ticks = 0
        self.reopen()

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)

    @rule()
    def reopen(self) -> None:
        """Forget everything but what is on the disk."""
        self.store = self.clock.store(self.folder)
        self.versions: dict[EntryId, Version] = {}
        self.changed: set[EntryId] = set()

    @rule(body=texts)
    def append(self, body: str) -> None:
        """Write an entry whose id may be taken."""
        entry = self.store.append(Draft(title="t", body=body, created=NOON))
        assert entry.id not in self.bodies
        self.bodies[entry.id] = body
        self.changed.add(entry.id)

    @rule(name=names, body=texts)
    def put(self, name: EntryId, body: str) -> None:
        """Add or replace a file by hand."""
        new = self.folder / "new"
        new.write_text(body)
        self._age(new)
        new.rename(self.folder / f"{name}.md")
        self.bodies[name] = body
        self.changed.add(name)

    @rule(name=names, body=texts, wait=st.booleans())
    def edit_in_place(self, name: EntryId, body: str, *, wait: bool) -> None:
        """Change a file where it is; that may go unseen for 2 s."""
        file = self.folder / f"{name}.md"
        if name in self.bodies:
            file.chmod(0o600)
            file.write_text(body)
            self._age(file)
            self.bodies[name] = body
            self.changed.add(name)
            self.edited = not wait
            self.clock.pass_by(2.0 if wait else 0.0)

    @rule(name=names)
    def remove(self, name: EntryId) -> None:
        """Delete an entry, its sidecar too."""
        if self.bodies.pop(name, None) is not None:
            (self.folder / f"{name}.md").unlink()
            self.changed.add(name)
            if self.sidecars.pop(name, None):
                (self.folder / f"{name}.embedding").unlink()

    @rule(name=names, number=st.integers(1, 9), replace=st.booleans())
    def write_sidecar(self, name: EntryId, number: int, *, replace: bool) -> None:
        """Write a sidecar where there is an entry."""
        sidecar = Sidecar("m", (float(number), 1.0))
        writes = name in self.bodies and (replace or name not in self.sidecars)
        assert self.store.write_sidecar(EntryId(name), sidecar, replace=replace) == writes
        if writes:
            self.sidecars[name] = sidecar
            self.changed.add(name)

    @rule(seconds=st.sampled_from([0.5, 2.0]))
    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.pass_by(seconds)

    @rule()
    def settle(self) -> None:
        """Make the folder look as if its last change was long ago, right before the next look."""
        if not self.changed:
            os.utime(self.folder, LONG_AGO)

    @invariant()
    def listing_and_reading_answer_like_the_model(self) -> None:
        """Ids and versions as they must be, contents as they were written."""
        listing = self.store.listing(thorough=self.edited)
        self.edited = False
        assert listing.problems == ()
        assert set(listing.versions) == set(self.bodies)
        for name, version in listing.versions.items():
            if name in self.versions and name not in self.changed:
                assert version == self.versions[name]
            assert bool(version.sidecar) == (name in self.sidecars)
            assert self.store.read(name).body == self.bodies[name]
            assert self.store.read_sidecar(name) == self.sidecars.get(name)
        for name in self.changed & self.versions.keys() & listing.versions.keys():
            assert listing.versions[name] != self.versions[name]
        self.versions = dict(listing.versions)
        self.changed = set()

    def _age(self, file: Path) -> None:
        """Give each content a time of its own, finer than the kernel's ticks."""
        self.ticks += 1
        os.utime(file, ns=(0, 1_700_000_000_000_000_000 + self.ticks))


FolderMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestFolderMachine = FolderMachine.TestCase
