"""What goes out of a journal and into one: the laws, and what an import tells."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drafts import DRAFTS, INSTANTS
from tests.drop import run_as_nobody
from tests.folders import fail, open_folder
from tests.secrets.caught import Draw

from agent_journal import entryfile
from agent_journal.engines.files import FileStore
from agent_journal.engines.memory import MemoryStore
from agent_journal.errors import JournalUnavailableError, WriteFailedError
from agent_journal.jsonline import Json, plain
from agent_journal.model import Draft, Entry, EntryId, Problem, Provenance, timestamp
from agent_journal.ports import Store
from agent_journal.query import Filters
from agent_journal.redaction import Redaction
from agent_journal.secrets.screening import screen
from agent_journal.transfer import intake
from agent_journal.transfer.batch import Batch, Found, extra_with, source_of
from agent_journal.transfer.intake import Intake, take_in
from agent_journal.transfer.jsonl import Export, read_lines
from agent_journal.transfer.known import Known

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
KEY = "gh" + "p_" + Draw(1)(36)
CROWDED = st.one_of(
    INSTANTS, st.integers(0, 3).map(lambda number: AT + timedelta(milliseconds=number))
)


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """Give an entry's file with a hole in it, or something else in its place."""
    raw = entryfile.render(AT, draw(DRAFTS))
    start = draw(st.integers(0, len(raw)))
    end = draw(st.integers(start, min(len(raw), start + 40)))
    return raw[:start] + draw(st.binary(max_size=6)) + raw[end:]


def exported(store: Store) -> bytes:
    """Return a whole journal as JSON Lines."""
    return "".join(Export(store, Filters())).encode()


def imported(store: Store, lines: bytes, *, dry_run: bool = False) -> Intake:
    """Import JSON Lines."""
    batch = Batch(read_lines(io.BytesIO(lines), "export.jsonl"))
    return take_in(store.append, batch, Known.of(store), dry_run=dry_run)


def entries(store: Store) -> list[Entry]:
    """Return all entries, ordered by id."""
    return [store.read(entry_id) for entry_id in sorted(store.listing().versions)]


def as_json_has_it(entry: Entry) -> Entry:
    """Return an entry with numbers that JSON lacks as texts."""
    return replace(entry, extra={key: plain(value) for key, value in entry.extra.items()})


def nowhere(entry: Entry) -> Entry:
    """Return what an entry says, but for its id and its instant."""
    return replace(as_json_has_it(entry), id=EntryId(""), created=AT)


def found(drafts: Iterable[Draft]) -> Batch:
    """Return drafts as if they had been found in files."""
    return Batch([Found(f"/from/{number}.md", draft=each) for number, each in enumerate(drafts)])


class TestReferences:
    """What entries supersede and annotate, on their way from one journal to another."""

    def lines(self) -> tuple[bytes, list[Entry]]:
        """Export an entry, its correction, and a note on something that isn't exported."""
        here = MemoryStore()
        first = here.append(Draft("first", created=AT))
        here.put("by hand", b"---\ntitle: by hand\ncreated: 2026-01-01\n---\n")
        second = here.append(Draft("second", created=AT, supersedes=[first.id, "by hand"]))
        third = here.append(Draft("third", created=AT, annotates=[second.id, "elsewhere"]))
        lines = exported(here).splitlines(keepends=True)
        lines.sort(key=lambda line: b"by hand" not in line[:20])
        return b"".join(lines), [first, second, third]

    def test_they_come_back_as_they_were(self) -> None:
        """Into an empty journal, but for an entry that has got an id now."""
        lines, written = self.lines()
        store = MemoryStore()
        assert imported(store, lines).refusals == []
        there = entries(store)
        assert [entry.id for entry in there[1:]] == [entry.id for entry in written]
        assert there[2].supersedes == (written[0].id, there[0].id)
        assert there[3].annotates == (written[1].id, "elsewhere")

    @pytest.mark.parametrize("dry_run", [False, True])
    def test_they_follow_what_has_moved(self, *, dry_run: bool) -> None:
        """An id that was taken moves on, and references with it; again, nothing is added."""
        lines, _ = self.lines()
        store = MemoryStore()
        store.append(Draft("in the way", created=AT))
        if dry_run:
            assert imported(store, lines, dry_run=True).added == 4
            assert len(entries(store)) == 1
        assert imported(store, lines).added == 4
        by_hand, _, first, second, third = entries(store)
        assert [first.title, second.title, third.title] == ["first", "second", "third"]
        assert second.supersedes == (first.id, by_hand.id)
        assert third.annotates == (second.id, "elsewhere")
        again = imported(store, lines)
        assert (again.added, again.known) == (0, 4)

    @pytest.mark.parametrize("stop", [1, 2, 3])
    def test_an_import_that_was_cut_short_goes_on(self, stop: int) -> None:
        """The second call knows which ids the first one gave."""
        lines, _ = self.lines()
        store = MemoryStore()
        store.append(Draft("in the way", created=AT))
        imported(store, b"".join(lines.splitlines(keepends=True)[:stop]))
        assert imported(store, lines).added == 4 - stop
        by_hand, _, first, second, third = entries(store)
        assert second.supersedes == (first.id, by_hand.id)
        assert third.annotates == (second.id, "elsewhere")

    def test_one_id_may_stand_alone(self) -> None:
        """Other programs need not make a list of it; null is none."""
        store = MemoryStore()
        line = {"created": timestamp(AT), "body": "b", "supersedes": "x", "annotates": None}
        imported(store, json.dumps(line).encode())
        (entry,) = entries(store)
        assert (entry.supersedes, entry.annotates) == (("x",), ())

    def test_what_is_known_is_found_under_a_name_of_its_own(self) -> None:
        """An entry whose id isn't that of its time is referred to by its id."""
        store = MemoryStore()
        store.put("20250101-000000-000", entryfile.render(AT, Draft("first")))
        line = {"id": "old", "created": timestamp(AT), "body": "", "title": "first"}
        next_line = {"created": timestamp(AT), "body": "", "title": "t", "supersedes": "old"}
        lines = "\n".join(map(json.dumps, (line, next_line))).encode()
        assert imported(store, lines).known == 1
        assert entries(store)[-1].supersedes == ("20250101-000000-000",)


class TestRoundTrip:
    """`export` and `import jsonl`."""

    @given(st.lists(st.tuples(DRAFTS, CROWDED), max_size=6))
    @settings(max_examples=60)
    def test_entries_come_back_equal(self, written: list[tuple[Draft, datetime]]) -> None:
        """With their ids, those that had moved on by a millisecond too; a second time adds none."""
        here, there = MemoryStore(), MemoryStore()
        for draft, created in written:
            here.append(replace(draft, created=created))
        lines = exported(here)
        taken = imported(there, lines)
        assert (taken.added, taken.refusals) == (len(written), [])
        assert entries(there) == [as_json_has_it(entry) for entry in entries(here)]
        for store in (here, there):
            again = imported(store, lines)
            assert (again.added, again.known) == (0, len(written))

    @given(st.lists(st.tuples(DRAFTS, CROWDED), max_size=4), st.lists(DRAFTS, max_size=4))
    @settings(max_examples=40)
    def test_entries_in_the_way_change_only_ids(
        self, written: list[tuple[Draft, datetime]], others: list[Draft]
    ) -> None:
        """Whatever the other journal holds: all is there once, as soon after as ids are free."""
        here, there = MemoryStore(), MemoryStore()
        for draft, created in written:
            here.append(replace(draft, created=created))
        for draft in others:
            there.append(replace(draft, created=AT))
        lines = exported(here)
        before = entries(there)
        imported(there, lines)
        after = entries(there)
        assert [entry for entry in after if entry in before] == before
        said = [nowhere(entry) for entry in after]
        assert all(nowhere(entry) in said for entry in entries(here))
        assert imported(there, lines).added == 0

    @given(st.dictionaries(st.text("abc", min_size=1, max_size=3), damaged_files(), max_size=4))
    @settings(max_examples=60)
    def test_foreign_files_come_over_or_are_named(self, files: dict[str, bytes]) -> None:
        """Under any name and damaged anyhow: bodies stay, and neither journal gets one twice."""
        here, there = MemoryStore(), MemoryStore()
        for name, raw in files.items():
            here.put(name, raw)
        lines = exported(here)
        taken = imported(there, lines)
        assert taken.read == len(entries(here)) == taken.added + taken.known + taken.refused
        bodies = {entry.body for entry in entries(there)}
        refused = {problem.line for problem in taken.refusals}
        for number, entry in enumerate(entries(here), 1):
            assert (entry.body in bodies) or number in refused
        for store in (here, there):
            assert imported(store, lines).added == 0

    def test_a_dry_run_counts_the_same_and_writes_nothing(self) -> None:
        """Also when drafts of one import are in each other's way, or the same."""
        here = MemoryStore()
        for number in (1, 2):
            here.append(Draft(f"T{number}", created=AT))
        lines = exported(here) * 2
        there = MemoryStore()
        there.append(Draft("in the way", created=AT))
        before = entries(there)
        tried = imported(there, lines, dry_run=True)
        assert entries(there) == before
        assert tried == imported(there, lines)
        assert (tried.read, tried.added, tried.known) == (4, 2, 2)


class TestFields:
    """What a line must have, and what becomes of the rest."""

    def line(self, **fields: Json) -> Intake:
        """Import one line into an empty journal."""
        given = {"created": "2026-01-02T03:04:05.678Z", "body": "B", **fields}
        said = {key: value for key, value in given.items() if value != "absent"}
        self.store = MemoryStore()
        return imported(self.store, json.dumps(said).encode())

    def entry(self, **fields: Json) -> Entry:
        """Import one line that must be accepted, and return its entry."""
        taken = self.line(**fields)
        assert (taken.added, taken.refusals) == (1, [])
        return entries(self.store)[0]

    def test_an_exported_line_reads_like_this(self) -> None:
        """All fields in one order, in plain ASCII."""
        store = MemoryStore()
        store.append(
            Draft(
                "è", "b\x7f", ["t"], Provenance("/p", "m", "v", "a", "s", "example.com/me/p"), AT,
                {"rating": 4.5, "not": [float("inf"), float("nan")]},
            )
        )  # fmt: skip
        assert exported(store).decode() == (
            '{"id": "20260102-030405-678", "created": "2026-01-02T03:04:05.678Z", '
            '"title": "\\u00e8", "tags": ["t"], "project": "/p", "model": "m", "provider": "v", '
            '"agent": "a", "session": "s", "repo": "example.com/me/p", '
            '"extra": {"rating": 4.5, "not": ["inf", "nan"]}, '
            '"supersedes": [], "annotates": [], "body": "b\\u007f"}\n'
        )

    def test_little_is_needed(self) -> None:
        """When it was, and a body; the first line stands in for a title."""
        entry = self.entry(body="# One\nTwo", tags=None)
        assert (entry.id, entry.title, entry.body) == ("20260102-030405-678", "One", "# One\nTwo")

    def test_a_zone_counts(self) -> None:
        """As everywhere; without one it is UTC."""
        assert self.entry(created="2026-01-02T03:04+02:00").id == "20260102-010400-000"
        assert self.entry(created=" 2026-01-02 ").id == "20260102-000000-000"

    def test_other_keys_become_frontmatter(self) -> None:
        """But not what `read --json` tells of a file."""
        entry = self.entry(mood="calm", extra={"a": 1, "mood": "wins"}, path="/x.md", problems=[])
        assert entry.extra == {"mood": "wins", "a": 1}

    def test_a_foreign_id_is_kept_as_source(self) -> None:
        """Unless the entry has a source of its own."""
        source = self.entry(id="my-note").extra["source"]
        assert isinstance(source, str)
        assert source.startswith("jsonl:my-note#")
        assert self.entry(id="20260102-030405-678").extra == {}
        assert self.entry(id="my-note", extra={"source": "a book"}).extra == {"source": "a book"}

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"body": "absent"}, 'body is missing; give a string, "" for none'),
            ({"created": "absent"}, "created is missing; give it as 2026-01-31T18:00Z"),
            (
                {"created": "soon"},
                "created is 'soon', which is no date; use 2026-01-31T18:00Z",
            ),
            ({"created": 5}, "created is int; give a string"),
            (
                {"created": "0001-01-01T00:00+14:00"},
                "created is 0001-01-01 00:00:00+14:00, which lies outside the years 1 to 9999",
            ),
            ({"body": []}, "body is list; give a string"),
            ({"title": 5}, "title is int; give a string"),
            ({"id": 5}, "id is int; give a string"),
            ({"agent": {}}, "agent is dict; give a string"),
            ({"tags": "a,b"}, "tags is str; give a list"),
            ({"supersedes": 5}, "supersedes is int; give a list"),
            ({"annotates": [5]}, "annotates is int; give a string"),
            ({"tags": [1]}, "tags is int; give a string"),
            ({"extra": []}, "extra is list; give an object"),
            (
                {"extra": {"title": "x"}},
                "extra has the key 'title'; use the draft's own field, or another key",
            ),
            ({"body": ""}, "title is empty; give the entry a title of 1 to 300 characters"),
            (
                {"title": "x" * 301},
                "title has 301 characters, the limit is 300; shorten it",
            ),
            (
                {"body": "\ud800"},
                "body holds U+D800 at position 0; remove NUL characters and lone surrogates",
            ),
        ],
    )  # fmt: skip
    def test_what_cannot_be_an_entry_is_named(self, fields: dict[str, Json], reason: str) -> None:
        """With the line and the way out; nothing is written."""
        taken = self.line(**fields)
        (problem,) = taken.refusals
        assert (problem.path, problem.line) == ("export.jsonl", 1)
        assert problem.reason.startswith(reason)
        assert (taken.read, taken.refused, taken.added) == (1, 1, 0)
        assert entries(self.store) == []


class TestLines:
    """What is no entry at all."""

    GOOD = b'{"created": "2026-01-01", "title": "T", "body": ""}'

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"[1, 2]", "the line is no JSON object"),
            (b"{", "the line is no JSON: Expecting property name enclosed in double quotes"),
            (b'{"body": "\xff"}', "byte 0xff is not UTF-8"),
            (b"[" * 100_000, "the line can't be read: maximum recursion depth exceeded"),
            (b'{"extra": ' + b"1" * 5000 + b"}", "the line can't be read: Exceeds the limit"),
            (b"x" * (8 * 1024 * 1024 + 1), "the line is longer than 8,388,608 bytes, as no entry"),
        ],
    )
    def test_a_bad_line_is_named_and_the_rest_goes_on(self, line: bytes, reason: str) -> None:
        """Its number is counted with the empty ones, as editors do."""
        store = MemoryStore()
        taken = imported(store, b"\xef\xbb\xbf\r\n\n" + line + b"\n" + self.GOOD)
        (problem,) = taken.refusals
        assert (problem.path, problem.line) == ("export.jsonl", 3)
        assert problem.reason.startswith(reason)
        assert [entry.title for entry in entries(store)] == ["T"]

    def test_a_long_line_may_be_the_last(self) -> None:
        """Also without an end."""
        taken = imported(MemoryStore(), b"x" * (8 * 1024 * 1024 + 5))
        assert (taken.read, taken.refused) == (1, 1)

    def test_the_byte_order_mark_of_windows_does_no_harm(self) -> None:
        """It stands before the first line."""
        store = MemoryStore()
        assert imported(store, b"\xef\xbb\xbf" + self.GOOD + b"\r\n").added == 1

    def test_a_deep_value_is_refused_as_by_a_write(self) -> None:
        """Also by a dry run, which writes nothing that could fail."""
        deep = b'{"created": "2026-01-01", "body": "b", "deep": ' + b"[" * 70 + b"]" * 70 + b"}"
        for dry_run in (True, False):
            taken = imported(MemoryStore(), deep, dry_run=dry_run)
            assert [problem.reason for problem in taken.refusals] == [
                "extra is nested deeper than 64 levels"
            ]


class TestIntake:
    """What an import tells."""

    def test_what_is_too_large_is_named_and_the_rest_goes_on(self) -> None:
        """The same in a dry run."""
        drafts = [Draft("large", "x" * 1024 * 1024, created=AT), Draft("small", created=AT)]
        for dry_run in (True, False):
            store = MemoryStore()
            taken = take_in(store.append, found(drafts), Known.of(store), dry_run=dry_run)
            assert (taken.added, taken.refused) == (1, 1)
            (problem,) = taken.refusals
            assert problem.path == "/from/0.md"
            assert problem.reason.startswith("entry is 1,048,6")
            assert [entry.title for entry in entries(store)] == ["small"] * (not dry_run)

    def test_a_source_with_another_content_is_added_and_told(self) -> None:
        """The first entry stays as it is."""
        store = MemoryStore()
        one, two = (
            Draft(
                "T",
                body.decode(),
                created=AT,
                extra={"source": source_of("memory-block", "a", body)},
            )
            for body in (b"one", b"two")
        )
        assert take_in(store.append, found([one]), Known.of(store)).renewed == 0
        taken = take_in(store.append, found([two, one]), Known.of(store))
        assert (taken.added, taken.renewed, taken.known) == (1, 1, 1)
        assert [entry.body for entry in entries(store)] == ["one", "two"]

    def test_problems_are_kept_in_bounded_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All are counted."""
        monkeypatch.setattr(intake, "PROBLEM_LIMIT", 3)
        problem = Problem("/x.md", "it is odd", 1)
        drafts = [Draft("odd", str(number), created=AT) for number in range(5)]
        odd = [Found("/x.md", draft=draft, problems=(problem, problem)) for draft in drafts]
        store = MemoryStore()
        taken = take_in(
            store.append, Batch([*odd, *[Found.refused("/y.md", "no")] * 5]), Known.of(store)
        )
        assert (taken.added, len(taken.notes)) == (5, 3)
        assert (taken.refused, len(taken.refusals)) == (5, 3)

    def test_progress_is_told_where_the_end_is_known(self) -> None:
        """Of what is there, and of what is taken in."""
        store = MemoryStore()
        drafts = [Draft("T", str(number), created=AT) for number in range(2)]
        told: list[tuple[int, int]] = []
        batch = Batch(found(drafts).found, total=2)
        take_in(store.append, batch, Known.of(store), progress=lambda *done: told.append(done))
        Known.of(store, progress=lambda *done: told.append(done))
        take_in(
            store.append, found(drafts), Known.of(store), progress=lambda *done: told.append(done)
        )
        list(Export(store, Filters(), progress=lambda *done: told.append(done)))
        assert told == [(1, 2), (2, 2)] * 3

    def test_a_full_disk_ends_it_and_says_how_far_it_came(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was added is there, and a second call adds the rest."""
        store = FileStore(tmp_path / "journal")
        drafts = [Draft("T", str(number), created=AT) for number in range(3)]

        known = Known.of(store)
        with monkeypatch.context() as patched:

            def filled_up() -> Iterator[Found]:
                yield from list(found(drafts).found)[:2]
                fail(patched, "fsync", errno.ENOSPC)
                yield from list(found(drafts).found)[2:]

            with pytest.raises(WriteFailedError) as caught:
                take_in(store.append, Batch(filled_up()), known)
        assert caught.value.__notes__ == ["2 were imported before; the same call imports the rest"]
        taken = take_in(store.append, found(drafts), Known.of(store))
        assert (taken.known, taken.added) == (2, 1)


class TestRedacted:
    """What was redacted doesn't come back by an import of what it was made from, or went to."""

    drafts = (
        Draft("Ada", "lives in Turin", created=AT),
        Draft("Other", "text", created=AT + timedelta(seconds=1)),
    )

    @pytest.mark.parametrize("text", ["", "Turin"])
    def test_an_export_of_before_does_not_bring_it_back(self, text: str) -> None:
        """All of it or a part; it counts as redacted, and others refer to what is left of it."""
        store = MemoryStore()
        for draft in self.drafts:
            store.append(draft)
        store.put("by hand", b"---\ntitle: x\ncreated: 2020-01-01\n---\nin Turin too\n")
        store.append(Draft("Next", created=AT, supersedes=["by hand"]))
        before = exported(store)
        for entry_id in ("20260102-030405-678", "by hand"):
            store.redact(EntryId(entry_id), Redaction("why", text), lambda: None)
        left = entries(store)
        for dry_run in (True, False):
            done = imported(store, before, dry_run=dry_run)
            assert (done.read, done.added, done.known, done.redacted) == (4, 0, 2, 2)
        assert entries(store) == left
        assert imported(store, exported(store)).known == 4

    def test_what_it_was_made_from_does_not_bring_it_back(self) -> None:
        """Known by the hash of its file, with secrets masked or not; a changed one is another."""
        store = MemoryStore()
        draft = Draft(
            "T", f"token {KEY}", created=AT, extra={"source": "memory-block:a#" + "0" * 16}
        )
        taken = take_in(lambda one: store.append(screen(one, "mask")[0]), found([draft]), Known())
        assert taken.added == 1
        store.redact(EntryId("20260102-030405-678"), Redaction("first", "token"), lambda: None)
        store.redact(EntryId("20260102-030405-678"), Redaction("why"), lambda: None)
        again = take_in(store.append, found([draft]), Known.of(store))
        assert (again.added, again.redacted) == (0, 1)
        other = replace(draft, body="another", extra={"source": "memory-block:a#" + "1" * 16})
        again = take_in(store.append, found([other, self.drafts[1]]), Known.of(store))
        assert (again.added, again.redacted) == (2, 0)

    def test_only_marks_count(self) -> None:
        """Anything may stand under the key, and another entry of that id is another entry."""
        store = MemoryStore()
        store.put(
            "x", b'---\ntitle: t\ncreated: 2020-01-01\nredacted: [7, {"sha256": 7}, {}]\n---\n'
        )
        store.append(self.drafts[0])
        store.redact(EntryId("20260102-030405-678"), Redaction("why"), lambda: None)
        line = {"id": "20260102-030405-678", "created": "2020-01-02T00:00:00Z", "body": "b"}
        done = imported(store, json.dumps(line).encode())
        assert (done.added, done.redacted) == (1, 0)


class TestKnown:
    """What is there already."""

    def test_a_missing_folder_holds_nothing_and_stays_missing(self, tmp_path: Path) -> None:
        """To an import; an export would pass for a backup."""
        store = FileStore(tmp_path / "journal")
        assert not Known.of(store).holds(Draft("T", created=AT))
        with pytest.raises(JournalUnavailableError):
            exported(store)
        assert not (tmp_path / "journal").exists()

    def test_a_folder_that_cannot_be_read_is_an_error(self, tmp_path: Path) -> None:
        """Else everything would be imported once more."""
        (tmp_path / "journal").write_text("a file", "ascii")
        store = FileStore(tmp_path / "journal")
        with pytest.raises(JournalUnavailableError):
            Known.of(store)
        with pytest.raises(JournalUnavailableError):
            exported(store)

    def test_entries_that_cannot_be_read_are_named(self) -> None:
        """And the others count, to import and to export alike."""
        with open_folder() as folder:
            told = run_as_nobody(
                """
import _strptime, encodings.ascii
from datetime import UTC, datetime
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.model import Draft
from agent_journal.query import Filters
from agent_journal.redaction import Redaction
from agent_journal.secrets.screening import screen
from agent_journal.transfer.jsonl import Export
from agent_journal.transfer.known import Known
folder = Path(sys.argv[1])
store = FileStore(folder)
with dropped():
    for title in ("one", "two"):
        store.append(Draft(title, created=datetime(2026, 1, 2, tzinfo=UTC)))
    (folder / "20260102-000000-000.md").chmod(0)
    print(*Known.of(store).unreadable)
    export = Export(store, Filters())
    lines = list(export)
    print(export.count, len(lines), *export.unreadable)
""",
                folder,
            )
            path = folder / "20260102-000000-000.md"
            assert told.splitlines() == [
                f"{path}:1: entry {path} can't be read: permission denied",
                f"1 1 {path}:1: entry {path} can't be read: permission denied",
            ]

    def test_an_entry_that_goes_meanwhile_is_passed_over(self) -> None:
        """It was listed, and is gone when its turn comes."""
        store = MemoryStore()
        for number in range(3):
            store.append(Draft(f"T{number}", created=AT))
        ids = sorted(store.listing().versions)

        def remove(done: int, _total: int) -> None:
            if done == 1:
                store.remove(ids[1])

        draft = Draft("T1", created=AT + timedelta(milliseconds=1))
        assert Known.of(store).holds(draft)
        assert not Known.of(store, progress=remove).holds(draft)
        ids = ids[1:]
        assert len(list(Export(store, Filters(), progress=remove))) == 1

    def test_an_id_is_taken_by_a_name_alone(self) -> None:
        """A file that others called as an entry, created whenever, moves drafts on, too."""
        store = MemoryStore()
        store.put("20260102-030405-678", b'---\ntitle: "x"\ncreated: "2020-01-01"\n---\n')
        store.put("20260102-030405-679-copy", b'---\ntitle: "x"\n---\n')
        draft = Draft("T", created=AT)
        for added in (1, 0):
            assert take_in(store.append, found([draft]), Known.of(store)).added == added
        assert store.read(EntryId("20260102-030405-679")).title == "T"

    def test_a_source_of_anybody_else_is_no_identity(self) -> None:
        """Two entries from one book are two entries; a draft without an instant is always new."""
        store = MemoryStore()
        drafts = [Draft(title, created=AT, extra={"source": "a book#1"}) for title in ("a", "b")]
        assert take_in(store.append, found(drafts), Known.of(store)).added == 2
        assert take_in(store.append, found([Draft("a"), Draft("a")]), Known.of(store)).added == 2


def test_no_key_of_theirs_is_lost() -> None:
    """One that is called as ours is called otherwise, as often as it takes."""
    theirs = {"source": 1, "original_source": 2, "title": 3, "mood": 4}
    assert extra_with({"source": 0}, theirs) == {
        "source": 0,
        "original_source": 1,
        "original_original_source": 2,
        "original_title": 3,
        "mood": 4,
    }
