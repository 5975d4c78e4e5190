"""The contract of `ports.Store`, sentence by sentence, for each engine."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from agent_journal import entryfile
from agent_journal.engines.files import FileStore
from agent_journal.engines.ledgers import Ledgers
from agent_journal.engines.memory import MemoryStore
from agent_journal.errors import (
    EntryNotFoundError,
    EntryTooLargeError,
    InvalidSidecarError,
    RedactionRefusedError,
    WriteFailedError,
)
from agent_journal.model import ENTRY_LIMIT_BYTES, Draft, EntryId, Provenance, to_milliseconds
from agent_journal.ports import Sidecar, Store
from agent_journal.redaction import Redaction

NOON = datetime(2026, 1, 31, 12, 0, 0, 7000, tzinfo=UTC)
NOON_ID = EntryId("20260131-120000-007")
SIDECAR = Sidecar("some/model", (0.5, -0.25, 1.0))


class Hands(Protocol):
    """What people and other programs do to the entries, behind the store's back."""

    def put(self, entry_id: str, data: bytes) -> None:
        """Add an entry or replace it."""

    def put_sidecar(self, entry_id: str, data: bytes | None) -> None:
        """Add a sidecar, replace it, or remove it."""

    def remove(self, entry_id: str) -> None:
        """Remove an entry and its sidecar."""


class FolderHands:
    """Hands on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, entry_id: str, data: bytes) -> None:
        """Write a new file and rename it to its place, as careful editors do."""
        self._replace(f"{entry_id}.md", data)

    def put_sidecar(self, entry_id: str, data: bytes | None) -> None:
        """The same for a sidecar."""
        if data is None:
            (self._folder / f"{entry_id}.embedding").unlink()
        else:
            self._replace(f"{entry_id}.embedding", data)

    def remove(self, entry_id: str) -> None:
        """Unlink both files."""
        (self._folder / f"{entry_id}.md").unlink()
        (self._folder / f"{entry_id}.embedding").unlink(missing_ok=True)

    def _replace(self, name: str, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"{name}~"
        new.write_bytes(data)
        new.rename(self._folder / name)


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        """Return nanoseconds since the epoch."""
        return to_milliseconds(self.now) * 1_000_000 + 123_456


class StoreContract:
    """Every test for every store; a subclass makes the store and the hands."""

    @abstractmethod
    def make(self, folder: Path, clock: Callable[[], int]) -> tuple[Store, Hands]:
        """Return an empty store with a clock, and the hands that get at its entries."""

    @pytest.fixture
    def clock(self) -> Clock:
        """A clock that shows noon."""
        return Clock()

    @pytest.fixture(autouse=True)
    def set_up(self, tmp_path: Path, clock: Clock) -> None:
        """Make a store that holds one entry, since a folder must be there to be listed."""
        self.store, self.hands = self.make(tmp_path / "journal", clock)
        self.hands.put("first", b"---\ntitle: First\n---\n\nbody\n")

    def ids(self) -> set[EntryId]:
        """Return what is listed but for the entry that was there from the start."""
        return set(self.store.listing().versions) - {EntryId("first")}

    def test_append_returns_what_read_returns(self) -> None:
        """An entry is what its file says, all of the draft in it."""
        draft = Draft(
            title="Why the build broke",
            body="The cache\n\n---\nwas stale.",
            tags=["build", "Ümlaut"],
            provenance=Provenance("/src/app", "m", "p", "a", "s", "example.com/me/app"),
            created=NOON - timedelta(days=400),
            extra={"mood": "calm", "weights": [1, 2.5, None, {"deep": True}]},
        )
        entry = self.store.append(draft)
        assert self.store.read(entry.id) == entry
        assert entry.problems == ()
        assert (entry.title, entry.body, entry.tags) == (draft.title, draft.body, draft.tags)
        assert (entry.provenance, entry.extra) == (draft.provenance, draft.extra)
        assert entry.created == draft.created

    def test_id_is_the_instant_of_creation(self) -> None:
        """The id is that of now, or of the draft's own date, to the millisecond."""
        assert self.store.append(Draft(title="now")).id == NOON_ID
        old = datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        entry = self.store.append(Draft(title="old", created=old))
        assert entry.id == "19991231-235959-999"
        assert entry.created == old.replace(microsecond=999_000)

    def test_taken_id_moves_on_with_its_date(self) -> None:
        """Drafts of one instant get ids one millisecond apart, and say so in `created`."""
        entries = [self.store.append(Draft(title=str(n))) for n in range(30)]
        assert [entry.created for entry in entries] == [
            NOON + timedelta(milliseconds=n) for n in range(30)
        ]
        assert self.ids() == {f"20260131-120000-{n:03}" for n in range(7, 37)}
        assert [self.store.read(entry.id).title for entry in entries] == [str(n) for n in range(30)]

    def test_append_never_replaces_what_others_stored(self) -> None:
        """A file that took the id in the meantime stays as it is."""
        self.hands.put(NOON_ID, b"made by hand")
        self.hands.put("20260131-120000-009", b"another")
        ids = [self.store.append(Draft(title=str(n))).id for n in range(2)]
        assert ids == ["20260131-120000-008", "20260131-120000-010"]
        assert self.store.read(NOON_ID).body == "made by hand"
        assert self.store.read(EntryId("20260131-120000-009")).body == "another"

    def test_clock_set_back_is_harmless(self, clock: Clock) -> None:
        """Ids of the past are taken again only where they are free."""
        first = [self.store.append(Draft(title="a")).id for _ in range(3)]
        clock.now = NOON - timedelta(milliseconds=1)
        second = [self.store.append(Draft(title="b")).id for _ in range(3)]
        assert second == ["20260131-120000-006", "20260131-120000-010", "20260131-120000-011"]
        assert all(self.store.read(entry_id).title == "a" for entry_id in first)

    def test_too_large_a_draft_is_refused_whole(self) -> None:
        """One byte over the limit stores nothing and uses up no id; the limit itself is fine."""
        frame = len(entryfile.render(NOON, Draft(title="t", body="x"))) - 1
        largest = ENTRY_LIMIT_BYTES - frame
        with pytest.raises(EntryTooLargeError) as caught:
            self.store.append(Draft(title="t", body="é" * (largest // 2) + "xx", created=NOON))
        assert caught.value.limit_bytes == ENTRY_LIMIT_BYTES
        assert caught.value.size_bytes > ENTRY_LIMIT_BYTES
        assert self.ids() == set()
        entry = self.store.append(Draft(title="t", body="x" * largest, created=NOON))
        assert entry.id == NOON_ID
        assert len(self.store.read(entry.id).body) == largest

    def test_no_id_is_left_at_the_end_of_the_calendar(self) -> None:
        """The last millisecond of the year 9999 can be given once."""
        last = datetime.max.replace(tzinfo=UTC)
        assert self.store.append(Draft(title="t", created=last)).id == "99991231-235959-999"
        with pytest.raises(WriteFailedError, match="end of the calendar"):
            self.store.append(Draft(title="t", created=last))
        assert self.ids() == {"99991231-235959-999"}

    def test_listing_holds_every_entry(self) -> None:
        """Ours and others', whatever their names, each with a version and no sidecar yet."""
        names = {"20260131-120000-007", "a note", "ünï.dots.v2", "x" * 200, "日本"}
        for name in names - {NOON_ID}:
            self.hands.put(name, b"text")
        self.store.append(Draft(title="t"))
        listing = self.store.listing()
        assert set(listing.versions) == names | {"first"}
        assert all(version.entry for version in listing.versions.values())
        assert all(version.sidecar == "" for version in listing.versions.values())
        assert listing.problems == ()

    def test_unchanged_listing_is_equal(self) -> None:
        """Nothing changes a version but a change; looking thoroughly is none."""
        self.store.append(Draft(title="t"))
        before = self.store.listing()
        self.store.read(EntryId("first"))
        assert self.store.listing() is before
        assert self.store.listing(thorough=True) == before

    def test_changes_by_others_are_listed(self) -> None:
        """What was added, replaced or removed since the last listing is seen by the next."""
        before = self.store.listing().versions
        self.hands.put("second", b"2")
        added = self.store.listing().versions
        assert set(added) == {"first", "second"}
        assert added[EntryId("first")] == before[EntryId("first")]
        self.hands.put("second", b"two")
        replaced = self.store.listing().versions
        assert replaced[EntryId("second")] != added[EntryId("second")]
        self.hands.remove("second")
        assert self.store.listing().versions == before

    def test_sidecars_are_part_of_the_version(self) -> None:
        """A sidecar that comes, changes or goes changes that half of the version alone."""
        first = EntryId("first")
        versions = [self.store.listing().versions[first]]
        for data in (b"[1]", b"[1, 2]", None):
            self.hands.put_sidecar("first", data)
            versions.append(self.store.listing().versions[first])
        assert len({version.entry for version in versions}) == 1
        assert versions[3] == versions[0]
        assert len({version.sidecar for version in versions}) == 3

    def test_entry_of_any_bytes_can_be_read(self) -> None:
        """However badly a file is formed, its entry comes, with what is wrong."""
        self.hands.put("bad", b"---\ntitle: [unclosed\n---\n\nbody \xff here\n")
        entry = self.store.read(EntryId("bad"))
        assert "here" in entry.body
        assert entry.problems

    @pytest.mark.parametrize(
        "entry_id",
        [
            *("", ".", "..", "../first", "./first", "/etc/passwd", "first.md", "FIRST/", "~"),
            *("first\0", "\0", "fir\nst", "\udcff", "a\\b", "..%2ffirst", "no-such"),
            *("x" * 10_000, "é" * 10_000),
        ],
        ids=ascii,
    )
    def test_any_string_is_safe_to_ask_for(self, entry_id: str) -> None:
        """What names no entry is not found, and neither has a sidecar nor gets one."""
        with pytest.raises(EntryNotFoundError):
            self.store.read(EntryId(entry_id))
        assert self.store.read_sidecar(EntryId(entry_id)) is None
        before = self.store.listing()
        assert not self.store.write_sidecar(EntryId(entry_id), SIDECAR, replace=True)
        assert self.store.listing() is before

    def test_removed_entry_is_not_found(self) -> None:
        """An entry that is gone is gone from reading too."""
        self.store.listing()
        self.hands.put("a b", b"x")
        assert self.store.read(EntryId("a b")).body == "x"
        self.hands.remove("a b")
        self.hands.remove("first")
        for name in ("a b", "first"):
            with pytest.raises(EntryNotFoundError):
                self.store.read(EntryId(name))

    def test_sidecar_comes_back_as_it_was_written(self) -> None:
        """A sidecar is stored once, and replaced only when that is asked for."""
        first = EntryId("first")
        assert self.store.read_sidecar(first) is None
        assert self.store.write_sidecar(first, SIDECAR)
        assert self.store.read_sidecar(first) == SIDECAR
        other = Sidecar("other/model", (1.0,))
        assert not self.store.write_sidecar(first, other)
        assert self.store.read_sidecar(first) == SIDECAR
        assert self.store.write_sidecar(first, other, replace=True)
        assert self.store.read_sidecar(first) == other

    def test_sidecar_for_a_name_with_blanks_and_dots(self) -> None:
        """Foreign entries have sidecars as well."""
        self.hands.put("a b.c", b"x")
        assert self.store.write_sidecar(EntryId("a b.c"), SIDECAR)
        assert self.store.read_sidecar(EntryId("a b.c")) == SIDECAR
        assert self.store.listing().versions[EntryId("a b.c")].sidecar

    @pytest.mark.parametrize("data", [b"[0.1, 0.2]", b"", b"{}", b"\xff", b" " * (5 * 1024 * 1024)])
    def test_sidecar_that_cannot_be_trusted_is_refused(self, data: bytes) -> None:
        """A legacy array or garbage is told apart from no sidecar."""
        self.hands.put_sidecar("first", data)
        with pytest.raises(InvalidSidecarError) as caught:
            self.store.read_sidecar(EntryId("first"))
        assert caught.value.path.endswith("first.embedding")

    def test_threads_append_list_and_read_at_once(self) -> None:
        """200 concurrent appends of one instant give 200 entries, each readable at once."""
        stop = threading.Event()

        def look() -> int:
            most = 0
            while not stop.is_set():
                seen = self.store.listing().versions
                assert len(seen) >= most
                most = len(seen)
                self.store.read(max(seen))
            return most

        with ThreadPoolExecutor(22) as pool:
            watchers = [pool.submit(look) for _ in range(2)]
            try:
                titles = [f"entry {n}" for n in range(200)]
                entries = list(pool.map(lambda title: self.store.append(Draft(title)), titles))
            finally:
                stop.set()
            assert all(watcher.result() <= 201 for watcher in watchers)
        assert [self.store.read(entry.id).title for entry in entries] == titles
        assert self.ids() == {entry.id for entry in entries}
        assert len(self.ids()) == 200

    def test_a_redacted_entry_is_what_is_read_from_then_on(self) -> None:
        """All of it or a part; the sidecar is gone, the version another, other entries the same."""
        entry = self.store.append(Draft("Title", "one two", tags=["one"]))
        self.store.write_sidecar(entry.id, SIDECAR)
        before = self.store.listing().versions
        purged: list[str] = []

        def purge() -> None:
            purged.append(self.store.read(entry.id).body)

        done = self.store.redact(entry.id, Redaction("why", "one"), purge)
        assert (done.id, done.count, purged) == (entry.id, 2, ["[redacted] two"])
        assert self.store.read(entry.id).tags == ("[redacted]",)
        assert self.store.read_sidecar(entry.id) is None
        after = self.store.listing().versions
        assert after[entry.id].entry != before[entry.id].entry
        assert after[entry.id].sidecar == ""
        assert after[EntryId("first")] == before[EntryId("first")]
        assert self.store.redact(entry.id, Redaction("why"), purge).count == 1
        assert self.store.read(entry.id).title == "[redacted]"
        assert self.ids() == {entry.id}

    def test_a_redaction_waits_for_what_is_at_work_on_texts(self) -> None:
        """Whatever several have read and put away is purged after that, never before."""
        entry = self.store.append(Draft("Title", "one"))
        put_away: list[str] = []
        purged: list[str] = []
        redacting = threading.Thread(
            target=self.store.redact,
            args=(entry.id, Redaction("why"), lambda: purged.extend(put_away)),
        )
        with self.store.unredacted(), self.store.unredacted():
            body = self.store.read(entry.id).body
            redacting.start()
            redacting.join(0.1)
            assert redacting.is_alive()
            assert self.store.read(entry.id).body == body
            put_away.append(body)
        redacting.join(30)
        assert purged == ["one"]
        with self.store.unredacted():
            assert self.store.read(entry.id).title == "[redacted]"

    def test_a_finished_redaction_changes_nothing_but_purges(self) -> None:
        """So that the same call again is always safe, and does what was left undone."""
        entry = self.store.append(Draft("Title"))
        self.store.redact(entry.id, Redaction("why"), lambda: None)
        before = self.store.listing(thorough=True)
        purged: list[bool] = []
        for asked in (Redaction("why"), None):
            done = self.store.redact(entry.id, asked, lambda: purged.append(True))
            assert (done.count, done.was) == (0, "")
        assert purged == [True] * 2
        with pytest.raises(RedactionRefusedError, match="doesn't stand in entry"):
            self.store.redact(entry.id, Redaction("why", "Title"), lambda: purged.append(True))
        assert purged == [True] * 2
        assert self.store.listing(thorough=True) == before

    def test_what_cannot_be_redacted_is_refused(self) -> None:
        """An entry that isn't there, a text that isn't in it, one that was never redacted."""
        purged: list[bool] = []
        for entry_id in ("no-such", "../first", ""):
            with pytest.raises(EntryNotFoundError):
                self.store.redact(EntryId(entry_id), Redaction("why"), lambda: purged.append(True))
        for asked in (Redaction("why", "nowhere"), None):
            with pytest.raises(RedactionRefusedError):
                self.store.redact(EntryId("first"), asked, lambda: purged.append(True))
        assert self.store.read(EntryId("first")).body == "body"
        assert purged == []

    def test_what_was_appended_stands_up_to_an_audit(self) -> None:
        """There is nothing to adopt in it, and only known entries may be."""
        self.hands.remove("first")
        entry = self.store.append(Draft("t"))
        assert entry.problems == ()
        assert self.store.audit() == []
        assert self.store.adopt() == []
        assert self.store.adopt([entry.id]) == []
        with pytest.raises(EntryNotFoundError):
            self.store.adopt([EntryId("no-such")])

    def test_nothing_is_left_to_sweep(self) -> None:
        """Writers that finish leave no temporary file, nor do those that are refused."""
        self.store.append(Draft(title="t"))
        self.store.write_sidecar(NOON_ID, SIDECAR)
        self.store.write_sidecar(NOON_ID, SIDECAR)
        assert self.store.sweep(older_than_s=-(10.0**9)) == []

    def test_location_is_said(self) -> None:
        """Messages can name the place."""
        assert self.store.location


class TestFileStore(StoreContract):
    """Files in a folder."""

    def make(self, folder: Path, clock: Callable[[], int]) -> tuple[Store, Hands]:
        """A folder of its own, with ledgers."""
        ledgers = Ledgers(folder, folder.with_name("memory"))
        return FileStore(folder, ledgers=lambda: ledgers, now_ns=clock), FolderHands(folder)


class TestFileStoreWithoutLedgers(StoreContract):
    """The same where no ledger is kept."""

    def make(self, folder: Path, clock: Callable[[], int]) -> tuple[Store, Hands]:
        """A folder of its own."""
        return FileStore(folder, now_ns=clock), FolderHands(folder)


class TestMemoryStore(StoreContract):
    """Dictionaries."""

    def make(self, folder: Path, clock: Callable[[], int]) -> tuple[Store, Hands]:  # noqa: ARG002
        """No folder at all."""
        store = MemoryStore(now_ns=clock)
        return store, store
