"""What counts as an entry in a folder, and how little is looked at to know."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests.folders import LONG_AGO, SIDECAR, Calls, Clock, fail

from agent_journal.engines.files import FileStore
from agent_journal.engines.scanning import RECHECK_S
from agent_journal.errors import (
    EntryNotFoundError,
    InvalidSidecarError,
    JournalUnavailableError,
)
from agent_journal.model import EntryId
from agent_journal.ports import Version


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty journal folder."""
    made = tmp_path / "journal"
    made.mkdir()
    return made


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

    def test_a_sidecar_has_one_version_in_all_processes(self, folder: Path) -> None:
        """However often each has looked; or the index would be told of changes that are none."""
        clock = Clock()
        (folder / "a.md").touch()
        (folder / "a.embedding").touch()
        store = clock.store(folder)
        first = store.listing()
        clock.pass_by(RECHECK_S)
        assert store.listing() == first == clock.store(folder).listing(thorough=True)
        (folder / "b.embedding").write_text("another")
        (folder / "b.embedding").rename(folder / "a.embedding")
        assert store.listing() != first
        assert store.listing() == clock.store(folder).listing()

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

    def test_a_look_that_takes_long_is_taken_more_seldom(self, folder: Path) -> None:
        """Looking at every file takes a fiftieth of the time at most, however many there are."""
        (folder / "a.md").write_text("x")
        clock = Clock()
        look_s = 0.2
        times = iter([clock.ns / 1e9, clock.ns / 1e9 + look_s])
        store = FileStore(
            folder, now_ns=lambda: clock.ns, monotonic=lambda: next(times, clock.ns / 1e9)
        )
        before = store.listing()
        (folder / "a.md").write_text("edited in place")
        clock.pass_by(50 * look_s - 0.1)
        assert store.listing() == before
        clock.pass_by(0.2)
        assert store.listing() != before

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
        assert entry_edited == Version.of(entry_edited.entry, before.sidecar)
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
