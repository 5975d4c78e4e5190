"""A redaction, from the entry's file to the last byte of an index; whatever comes in between."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.drop import run_as_nobody
from tests.folders import fail, open_folder
from tests.ledgered import ledger_files, lines
from tests.proven import Trials
from tests.redacted import HOME_OF_SECRETS, Home, mentions

from agent_journal import removal
from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader
from agent_journal.engines.locking import await_lock, has_writer, shared
from agent_journal.engines.placing import TEMPORARY_PREFIX, Staging, opened
from agent_journal.errors import (
    EntryNotFoundError,
    IndexUnavailableError,
    RedactionRefusedError,
    StorageError,
)
from agent_journal.journal import Journal
from agent_journal.ledger import hash_of
from agent_journal.model import Draft, EntryId, Provenance
from agent_journal.passages import embedding_text
from agent_journal.query import Query
from agent_journal.redaction import MARKER, Redaction

if TYPE_CHECKING:
    from agent_journal.ports import Matrix

ROOT = Path(__file__).parents[1]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Home]:
    """A journal that was searched by words and by meaning, one of its entries secret."""
    made = Home(tmp_path / "home")
    made.fill()
    yield made
    made.close()


def unusable(*_: object) -> NoReturn:
    """Stand for a call of an index that can't be used."""
    raise IndexUnavailableError("index", "read-only")


class TestWhole:
    """All of an entry is removed."""

    def test_no_word_is_left_in_any_file(self, site: Home) -> None:
        """Entry, sidecar, index, its log, leftovers of crashes, other indexes, state and log."""
        assert len(mentions(site.root)) >= 5, mentions(site.root)
        done = site.journal.redact(site.secret, reason="names a customer")
        assert mentions(site.root) == []
        assert (done.id, done.count, done.notices) == (site.secret, 1, ())
        assert site.problems() == []
        assert not (site.folder / f"{site.secret}.embedding").exists()
        entry = site.journal.read(site.secret)
        assert (entry.title, entry.created) == (MARKER, site.created)
        assert "names a customer" in entry.body
        page = site.journal.search(Query("zyxquokka"), wait_s=10)
        assert site.secret not in {hit.entry.id for hit in page.hits if "lexical" in hit.found_by}
        site.journal.work_backlog(wait_s=10)
        assert mentions(site.root) == []

    def test_the_ledger_tells_of_it(self, site: Home) -> None:
        """When, why, and the hash of what it was, as the file does."""
        was = hash_of((site.folder / f"{site.secret}.md").read_bytes())
        done = site.journal.redact(site.secret, reason="names a customer")
        assert done.was == was
        (path,) = ledger_files(site.folder)
        said = lines(path)[-1].statement
        assert said is not None
        (mark,) = json.loads(json.dumps(site.journal.read(site.secret).extra["redacted"]))
        assert (said.act, said.id, said.was) == ("redact", site.secret, was)
        assert (said.reason, said.at, said.was) == (mark["reason"], mark["at"], mark["sha256"])
        assert said.sha256 == hash_of((site.folder / f"{site.secret}.md").read_bytes())

    def test_it_may_be_repeated(self, site: Home) -> None:
        """Nothing changes any more, with a reason or without one."""
        site.journal.redact(site.secret, reason="why")
        before = site.content()
        for reason in ("another", ""):
            done = site.journal.redact(site.secret, reason=reason)
            assert (done.count, done.was) == (0, "")
            assert site.content() == before

    def test_other_entries_are_left_alone(self, site: Home) -> None:
        """Byte for byte, with their sidecars and their vectors."""
        others = {
            path: path.read_bytes()
            for path in site.folder.glob("2*")
            if not path.name.startswith(site.secret)
        }
        site.journal.redact(site.secret, reason="why")
        assert {path: path.read_bytes() for path in others} == others
        page = site.journal.search(Query("zebra"), wait_s=10)
        assert (page.hits[0].entry.title, page.backlog) == ("A zebra", 1)

    def test_what_is_not_there_is_told(self, site: Home) -> None:
        """An id is never a path."""
        for entry_id in ("unknown", "../journal/x", "", "a\0b", ".", "x" * 300):
            with pytest.raises(EntryNotFoundError):
                site.journal.redact(entry_id, reason="why")
        with pytest.raises(EntryNotFoundError):
            FileStore(site.root / "none").redact(EntryId("x"), None, lambda: None)
        with pytest.raises(RedactionRefusedError, match="never redacted"):
            site.journal.redact(site.secret)
        with pytest.raises(RedactionRefusedError, match="reason is empty"):
            site.journal.redact(site.secret, text="zyxquokka")

    def test_an_entry_of_others_is_redacted_too(self, site: Home) -> None:
        """It gets its first line by that, and needs no adoption any more."""
        (site.folder / "by hand.md").write_text("# zyxby hand\n")
        assert [one.kind for one in site.problems() if one.kind] == ["unledgered"]
        site.journal.redact("by hand", reason="why")
        site.journal.redact(site.secret, reason="why")
        assert site.problems() == []
        assert mentions(site.root) == []

    def test_the_file_is_replaced_by_a_rename_alone(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is ever opened for writing, and whoever reads the old file goes on reading it."""
        path = site.folder / f"{site.secret}.md"
        real, writable = os.open, []

        def watched(name: str, flags: int, *args: int, **given: int) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR) and str(name).endswith(".md"):
                writable.append(name)
            return real(name, flags, *args, **given)

        with path.open("rb") as file:
            before = file.read(10)
            monkeypatch.setattr(os, "open", watched)
            site.journal.redact(site.secret, reason="why")
            assert before + file.read() != path.read_bytes()
            assert b"zyxquokka" in before + os.pread(file.fileno(), 10_000, 10)
        assert writable == []
        assert path.stat().st_mode & 0o777 == 0o400
        assert path.stat().st_nlink == 1

    def test_other_names_of_the_file_are_told(self, site: Home) -> None:
        """They keep the text, since a hard link may lead out of the journal; nothing else does."""
        path = site.folder / f"{site.secret}.md"
        outside, copy = site.root.parent / "outside.md", site.folder / "copy.md"
        for link in (outside, copy):
            link.hardlink_to(path)
        before, inode = outside.read_bytes(), outside.stat().st_ino
        done = site.journal.redact(site.secret, reason="why")
        kept = "2 other names of its file (hard links) keep the text: copy.md, and 1 outside of"
        assert done.notices == (f"{kept} the journal; to find it: find / -inum {inode}",)
        assert outside.read_bytes() == copy.read_bytes() == before
        assert mentions(site.root) == ["journal/copy.md"]
        done = site.journal.redact("copy", reason="why", text="zyxtitle")
        assert "1 other name of its file (hard link) keeps the text: 1 outside" in done.notices[0]
        assert outside.read_bytes() == before
        (site.folder / "third.md").hardlink_to(copy)
        done = site.journal.redact("copy", reason="why")
        assert done.notices == ("1 other name of its file (hard link) keeps the text: third.md",)


class TestText:
    """Only a text is removed."""

    def test_the_rest_stays_and_is_found(self, site: Home) -> None:
        """In title, tags and body; no word of it is left anywhere."""
        for text in ("zyxquokka", "zyxtitle", "ZYXtag", "/src/zyxproject", "zyxvalue", "zyxlast"):
            done = site.journal.redact(site.secret, reason="why", text=text)
            assert done.count >= 1
        assert mentions(site.root) == []
        entry = site.journal.read(site.secret)
        assert entry.title == f"The {MARKER} of Ada"
        assert entry.tags == ("kept", MARKER)
        assert entry.body == f"Her {MARKER} lives\nin Turin, {MARKER}."
        (hit,) = site.journal.search(Query("Turin"), wait_s=0).hits
        assert hit.entry == entry
        assert site.problems() == []

    def test_a_text_that_is_not_there_changes_nothing(self, site: Home) -> None:
        """Not a byte of any file."""
        before = site.content()
        with pytest.raises(RedactionRefusedError, match="doesn't stand in entry"):
            site.journal.redact(site.secret, reason="why", text="zyxnowhere")
        assert site.content() == before

    def test_a_text_that_is_not_there_any_more_is_told(self, site: Home) -> None:
        """Whoever has misspelled it must not believe that it is removed now."""
        site.journal.redact(site.secret, reason="why", text="zyxquokka")
        before = site.content()
        for text in ("zyxquokka", "zyxttile"):
            with pytest.raises(RedactionRefusedError, match="doesn't stand in entry"):
                site.journal.redact(site.secret, reason="why", text=text)
        assert site.content() == before
        assert site.journal.redact(site.secret).notices == ()

    def test_a_text_that_is_gone_finishes_what_was_begun(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same call again does the rest; once that is done, it is refused."""
        with monkeypatch.context() as patch:
            patch.setattr(type(site.index), "purge", unusable)
            with pytest.raises(IndexUnavailableError):
                site.journal.redact(site.secret, reason="why", text="zyxquokka")
        assert [problem.kind for problem in site.problems()] == ["unfinished"]
        (told,) = site.journal.redact(site.secret, reason="why", text="zyxquokka").notices
        assert told.startswith("the text doesn't stand in the entry now")
        assert site.problems() == []
        with pytest.raises(RedactionRefusedError):
            site.journal.redact(site.secret, reason="why", text="zyxquokka")

    def test_a_body_that_had_to_be_written_anew_is_told(self, site: Home) -> None:
        """Else all of its other bytes are what they were."""
        file = site.folder / "other.md"
        file.write_bytes(b"---\ntitle: my quetzal\n---\n\nquetzal \xff\r\n")
        assert site.journal.redact("other", reason="why", text="quetzal").notices == ()
        assert file.read_bytes().endswith(b"\n\n[redacted] \xff\r\n")
        (told,) = site.journal.redact("other", reason="why", text="\ufffd").notices
        assert told.startswith("the body is written anew from what could be read of it")

    def test_a_text_in_the_name_is_told(self, site: Home) -> None:
        """Ids are never changed; whoever named the file may."""
        (site.folder / "zyxname.md").write_text("zyxname is a name\n")
        done = site.journal.redact("zyxname", reason="why", text="zyxname")
        assert done.notices == ("the text stands in the entry's id too, and stays there",)

    def test_entries_that_still_hold_it_are_told(self, site: Home) -> None:
        """Others, and this one in other letters; each has to be redacted by itself."""
        held = [
            site.journal.write(draft).id
            for draft in (
                Draft("said ZYXQUOKKA", "body"),
                Draft("a", "b", extra={"note": {"deep": ["see\n zyxquokka"]}}),
                Draft("a", "b", tags=["Zyxquokka"]),
                Draft("a", "b", provenance=Provenance(project="/src/zyxquokka")),
            )
        ]
        site.journal.redact(held[0], reason="of red", text="said")
        done = site.journal.redact(site.secret, reason="why", text="zyxquokka")
        told = "in these or other letters the text still stands in 4 entries: " + ", ".join(held)
        assert done.notices == (f"{told}; redact them too",)
        for entry_id in held[1:]:
            site.journal.redact(entry_id, reason="why")
        told = f"in these or other letters the text still stands in 1 entry: {held[0]}"
        last = site.journal.write(Draft("a", "zyxquokka")).id
        again = site.journal.redact(last, reason="why", text="zyxquokka")
        assert again.notices == (f"{told}; redact it too",)
        assert site.journal.redact(held[0], reason="why", text="ZYXQUOKKA").notices == ()

    def test_only_some_of_many_that_hold_it_are_named(self, site: Home) -> None:
        """The others are counted; what is unreadable or gone is passed over."""
        held = [site.journal.write(Draft("a", f"Zyxquokka {n}")).id for n in range(13)]
        (site.folder / f"{held[0]}.md").unlink()
        (site.folder / f"{held[0]}.md").mkdir()
        (told,) = site.journal.redact(site.secret, reason="why", text="zyxquokka").notices
        assert f"in 12 entries: {', '.join(held[1:11])} and 2 more; redact them too" in told

    def test_two_at_once_undo_nothing(self, site: Home) -> None:
        """Each waits for the other, and finds what it has left."""
        texts = ["zyxquokka", "zyxtitle", "ZYXtag", "/src/zyxproject", "zyxvalue", "zyxlast"]
        journals = [site.open() for _ in texts]
        threads = [
            threading.Thread(
                target=journal.redact, args=(site.secret,), kwargs={"reason": "why", "text": text}
            )
            for journal, text in zip(journals, texts, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for journal in journals:
            journal.close()
        assert mentions(site.root) == []
        assert site.problems() == []


class TestFailures:
    """What could not be done is told, shows in a check, and is done by the same call again."""

    def test_a_ledger_that_is_locked_is_told(self, site: Home) -> None:
        """All is removed; the line follows once it can."""
        with site.memory.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = site.journal.redact(site.secret, reason="why")
        assert mentions(site.root) == []
        assert "another process keeps it locked" in done.notices[0]
        (problem,) = site.problems()
        assert problem.kind == "unfinished"
        assert problem.reason.endswith(f"run again: agent-journal redact {site.secret}")
        assert site.store.adopt([site.secret]) == []
        assert site.journal.redact(site.secret).notices == ()
        assert site.problems() == []
        said = lines(ledger_files(site.folder)[0])[-1].statement
        assert said is not None
        assert said.reason == "why"

    def test_an_index_that_cannot_be_purged_is_told(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It never falls back to an index in memory and believes all to be done."""
        with monkeypatch.context() as patch:
            patch.setattr(type(site.index), "purge", unusable)
            with pytest.raises(IndexUnavailableError):
                site.journal.redact(site.secret, reason="why")
        assert [problem.kind for problem in site.problems()] == ["unfinished"]
        site.journal.redact(site.secret)
        assert mentions(site.root) == []
        assert site.problems() == []

    def test_an_index_that_is_out_of_use_is_purged_all_the_same(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A journal that has fallen back to memory still cleans what is on the disk."""
        with monkeypatch.context() as patch:
            patch.setattr(type(site.index), "generation", unusable)
            assert site.journal.search(Query("zebra"), wait_s=0).notices
        site.journal.redact(site.secret, reason="why")
        assert mentions(site.root) == []

    def test_another_redaction_is_waited_for_only_so_long(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that is stuck is told, and nothing is changed."""
        monkeypatch.setattr("agent_journal.engines.redacting._WAIT_S", 0.05)
        before = site.content()
        with opened(site.folder) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(StorageError, match="another redaction is at work"):
                site.journal.redact(site.secret, reason="why")
        assert site.content() == before

    @pytest.mark.parametrize("name", ["rename", "unlink"])
    def test_a_failing_disk_is_told_and_finished_later(
        self, site: Home, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """Of which only the failure is made up."""
        before = site.content()
        with monkeypatch.context() as patch:
            fail(patch, name, errno.EIO)
            with pytest.raises(StorageError, match="then run the same again"):
                site.journal.redact(site.secret, reason="why")
        expected = [] if name == "rename" else ["unfinished"]
        assert [problem.kind for problem in site.problems()] == expected
        assert (site.content() == before) == (name == "rename")
        site.journal.redact(site.secret, reason="why")
        assert mentions(site.root) == []
        assert site.problems() == []

    def test_a_file_system_without_locks_will_do(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only the ledger's line needs one, and says so."""

        def flock(*_: int) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        site.journal.search(Query("zebra"), wait_s=0)
        with monkeypatch.context() as patch:
            patch.setattr("agent_journal.engines.locking.fcntl.flock", flock)
            patch.setattr(type(site.index), "purge", lambda *_: None)
            done = site.journal.redact(site.secret, reason="why")
        assert "no locks available" in done.notices[0]
        site.journal.redact(site.secret)
        assert mentions(site.root) == []

    def test_what_is_no_file_hinders_nothing(self, site: Home) -> None:
        """A folder or a link that is called as a sidecar or a leftover holds no text of ours."""
        outside = site.root.parent / "outside"
        outside.write_text("others'", encoding="utf-8")
        sidecar = site.folder / f"{site.secret}.embedding"
        sidecar.unlink()
        (sidecar / "inner").mkdir(parents=True)
        names = [
            site.folder / f"{TEMPORARY_PREFIX}{kind}.tmp" for kind in ("folder", "pipe", "link")
        ]
        names[0].mkdir()
        os.mkfifo(names[1])
        names[2].symlink_to(outside)
        site.journal.redact(site.secret, reason="why")
        assert mentions(site.root) == []
        assert [problem.kind for problem in site.problems() if problem.kind] == []
        assert site.leftovers() == sorted(names)
        assert (sidecar / "inner").exists()
        assert outside.read_text(encoding="utf-8") == "others'"

    def test_a_writer_at_work_is_not_disturbed(self, site: Home) -> None:
        """Its unfinished file stays; what a crashed one left behind goes."""
        with opened(site.folder) as folder, Staging(folder, 0o400) as staging:
            staging.fill(b"being written", durable=False)
            (live,) = [path for path in site.leftovers() if has_writer(folder, path.name)]
            site.journal.redact(site.secret, reason="why")
            assert site.leftovers() == [live]
            staging.place("20260101-000000-000.md")
        assert site.leftovers() == []

    def test_a_writer_that_has_just_begun_is_not_disturbed(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between making a file and locking it nobody can tell it from a leftover."""
        unlocked = site.folder / f"{TEMPORARY_PREFIX}9-z.tmp"
        real = os.rename

        def rename(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
            real(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            unlocked.write_bytes(b"being written")

        monkeypatch.setattr(os, "rename", rename)
        site.journal.redact(site.secret, reason="why")
        assert site.leftovers() == [unlocked]
        assert mentions(site.root) == []

    SCRIPT = """
import logging
from pathlib import Path
from tests.redacted import Home
from agent_journal.errors import JournalError
from agent_journal.query import Query
import agent_journal.engines.auditing, agent_journal.engines.redacting
import agent_journal.engines.sqlite, agent_journal.engines.sqlite_columns
logging.disable()
home = Home(Path(sys.argv[1]))
with dropped():
    if not home.folder.exists():
        home.fill()
    for path in sys.argv[3:]:
        Path(path).chmod(0o500)
    try:
        done = home.journal.redact(sys.argv[2], reason="why")
        print("done", *done.notices)
    except JournalError as error:
        print(type(error).__name__, error)
    for path in sys.argv[3:]:
        Path(path).chmod(0o700)
    print(*(problem.kind for problem in home.problems()))
    home.close()
"""

    def test_what_may_not_be_written_is_told(self) -> None:
        """As an unprivileged user: the folder, the index's folder, the ledgers' folder."""
        with open_folder() as outer:
            root = outer / "home"
            told = run_as_nobody(self.SCRIPT, root, "unknown").splitlines()
            assert told[0].startswith("EntryNotFoundError")
            before = mentions(root)
            told = run_as_nobody(self.SCRIPT, root, HOME_OF_SECRETS, root / "journal").splitlines()
            assert told[0].startswith("StorageError")
            assert "permission denied" in told[0]
            assert told[1:] == [""]
            assert mentions(root) == before
            told = run_as_nobody(self.SCRIPT, root, HOME_OF_SECRETS, root / "cache").splitlines()
            assert told[0].startswith("IndexUnavailableError")
            assert told[1:] == ["unfinished"]
            told = run_as_nobody(self.SCRIPT, root, HOME_OF_SECRETS, root / "state").splitlines()
            assert told == ["done", ""]
            assert mentions(root) == []


class TestElsewhere:
    """Other processes and machines forget what was redacted as soon as they see it."""

    def test_a_tombstone_from_elsewhere_purges_the_index_here(self, site: Home) -> None:
        """It came by a sync: the words go with the next search, the ledger vouches for it."""
        other = Home(site.root.parent / "other")
        shutil.copytree(site.folder, other.folder)
        other.journal.redact(site.secret, reason="why")
        other.close()
        for path in other.folder.rglob("*"):
            if path.is_file():
                target = site.folder / path.relative_to(other.folder)
                target.unlink(missing_ok=True)
                shutil.copy(path, target)
        (site.folder / f"{site.secret}.embedding").unlink()
        for path in site.leftovers():
            path.unlink()
        assert mentions(site.root)
        site.journal.search(Query("zebra"), wait_s=0)
        assert mentions(site.root) == []
        assert site.problems() == []

    def test_a_process_that_indexes_the_old_text_is_waited_for(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it writes to the index is there before all is purged, however late it is."""
        late = site.open()
        store = late._store
        real = store.read
        redacting = threading.Thread(
            target=lambda: site.journal.redact(site.secret, reason="why"), daemon=True
        )
        asked = threading.Event()

        def waits(descriptor: int, deadline: float) -> None:
            asked.set()
            await_lock(descriptor, deadline)

        monkeypatch.setattr("agent_journal.engines.redacting.await_lock", waits)

        def read(entry_id: EntryId) -> object:
            entry = real(entry_id)
            if entry_id == site.secret and not redacting.ident:
                redacting.start()
                assert asked.wait(30)
            return entry

        site.touch()
        monkeypatch.setattr(store, "read", read)
        late.catch_up()
        redacting.join(30)
        assert not redacting.is_alive()
        assert mentions(site.root) == []
        late.search(Query("zebra"), wait_s=0)
        assert mentions(site.root) == []
        late.close()

    def test_nothing_waits_for_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        """Nor for a redaction that is stuck; what comes of it is told by whoever works there."""
        with shared(tmp_path / "missing", wait_s=30):
            pass
        with opened(tmp_path) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with shared(tmp_path, wait_s=0.01):
                pass

    def test_a_child_does_not_hold_on(self, tmp_path: Path) -> None:
        """A process that was forked in between would otherwise keep redactions waiting."""
        reading, writing = os.pipe()
        with shared(tmp_path, wait_s=30):
            child = os.fork()
            if not child:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
        with opened(tmp_path) as held:
            await_lock(held, 0.0)
        os.close(writing)
        os.waitpid(child, 0)
        os.close(reading)

    def test_without_locks_it_is_cleaned_up_after(
        self, site: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It had read the entry before, and writes to the index after the redaction."""
        late = site.open()
        store = late._store
        real = store.read

        def read(entry_id: EntryId) -> object:
            entry = real(entry_id)
            if entry_id == site.secret:
                monkeypatch.undo()
                site.journal.redact(site.secret, reason="why")
                assert mentions(site.root) == []
            return entry

        site.touch()
        monkeypatch.setattr(store, "read", read)
        monkeypatch.setattr(store, "unredacted", nullcontext)
        late.catch_up()
        assert mentions(site.root)  # here it is back, for as long as nobody searches
        late.search(Query("zebra"), wait_s=0)
        assert mentions(site.root) == []
        late.close()

    @pytest.mark.parametrize("was_embedded", [False, True])
    def test_a_vector_of_the_old_text_is_not_put_beside_the_new_one(
        self, site: Home, *, was_embedded: bool
    ) -> None:
        """A process may be at work on it for minutes, and ends after the redaction."""
        sidecar = site.folder / f"{site.secret}.embedding"
        if not was_embedded:
            sidecar.unlink()
        path = site.folder / f"{site.secret}.md"
        site.journal.reindex()

        class Slow(HashingEmbedder):
            def embed_passages(self, texts: Sequence[str]) -> Matrix:
                vectors = super().embed_passages(texts)
                if any("zyxquokka" in text for text in texts):
                    site.journal.redact(site.secret, reason="why")
                return vectors

        late = Journal(site.store, site.index, BackgroundLoader(Slow))
        late.work_backlog(wait_s=30)
        assert b"zyx" not in path.read_bytes()
        assert not sidecar.exists()
        late.work_backlog(wait_s=30)
        (expected,) = HashingEmbedder().embed_passages(
            [embedding_text(MARKER, site.journal.read(site.secret).body)]
        )
        assert json.loads(sidecar.read_text())["vector"] == pytest.approx(expected.tolist())

    def test_a_search_goes_on_where_nothing_can_be_purged(
        self, site: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whoever reads the log learns of it; the entry itself is found as it is now."""
        path = site.folder / f"{site.secret}.md"
        tombstone = removal.redact(
            site.store.read(site.secret),
            path.read_bytes(),
            Redaction("why", "zyxquokka"),
            was="0" * 64,
            at=site.created,
        )[0]

        path.unlink()
        path.write_bytes(tombstone)
        monkeypatch.setattr(type(site.index), "purge", unusable)
        with caplog.at_level(logging.WARNING, "agent_journal"):
            (hit,) = site.journal.search(Query("Turin"), wait_s=0).hits
        assert MARKER in hit.entry.body
        assert "redacted text may be left in an index" in caplog.text

    def test_an_old_copy_that_comes_back_is_told_and_redacted_again(self, site: Home) -> None:
        """As from a machine that was asleep."""
        path = site.folder / f"{site.secret}.md"
        old = path.read_bytes()
        site.journal.redact(site.secret, reason="why")
        path.unlink()
        path.write_bytes(old)
        (problem,) = site.problems()
        assert problem.kind == "restored"
        site.journal.redact(site.secret, reason="why")
        assert site.problems() == []
        assert mentions(site.root) == []

    def test_it_may_be_said_again_under_a_new_id(self, site: Home) -> None:
        """A redaction forbids no text; an import of it, for one, is an entry of its own."""
        site.journal.redact(site.secret, reason="why")
        entry = site.journal.write(Draft("zyxquokka"))
        (hit,) = site.journal.search(Query("zyxquokka"), wait_s=0).hits
        assert hit.entry == entry


def test_a_store_without_ledgers_redacts_too(tmp_path: Path) -> None:
    """It has no line to add."""
    store = FileStore(tmp_path)
    entry = store.append(Draft("zyxtitle"))
    assert store.redact(entry.id, Redaction("why"), lambda: None).count == 1
    assert mentions(tmp_path) == []


def check_kills(trials: Trials, tmp_path: Path, first: int, step: int) -> None:
    """Kill redactions at every so-manieth step, and finish each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.redacted", str(tmp_path), str(first), str(step)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    trials.report(
        "redactions killed at a step",
        tried=said["killed"],
        acknowledged=said["acknowledged"],
        lost=said["lost"],
        altered=said["altered"],
    )
    assert said["steps"] > 40
    assert said["killed"] == len(range(first, said["steps"], step))
    assert said["unfinished"] > said["killed"] // 4
    assert said["untouched"] > 0


def test_death_at_any_step_is_told_and_finished_by_a_second_run(
    trials: Trials, tmp_path: Path
) -> None:
    """Every third step here; before, in and after each call to the system and to SQLite."""
    check_kills(trials, tmp_path, 0, 3)


@pytest.mark.prove
@pytest.mark.parametrize("first", range(8))
def test_death_at_every_step_is_finished_by_a_second_run(
    trials: Trials, tmp_path: Path, first: int
) -> None:
    """The same at every single step."""
    check_kills(trials, tmp_path, first, 8)
