"""The SQLite index: the same answers as the oracle, and whatever may befall its file."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent_journal.engines import sqlite_file
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex, remove_unused
from agent_journal.engines.sqlite_tables import encode_term, encode_terms
from agent_journal.errors import DimensionMismatchError, IndexUnavailableError, JournalError
from agent_journal.evidence import Evidence, EvidenceArrays
from agent_journal.model import EntryId, Problem, Provenance, to_milliseconds
from agent_journal.ports import (
    Index,
    IndexedEntry,
    IndexedPassage,
    PassageVectors,
    QueryVector,
    Sidecar,
    Version,
)
from agent_journal.query import Filters, Project

START = datetime(2026, 1, 1, tzinfo=UTC)
TERMS = ("a", "b", "c", "日本", "x.y", "ß")
IDS = tuple(EntryId(f"e{number}") for number in range(6))
IDENTITIES = ("one", "two")


def plain(number: int = 0, *terms: str, version: str = "1") -> IndexedEntry:
    """Return an entry of one passage."""
    return IndexedEntry(
        EntryId(f"e{number}"),
        Version.of(version),
        START + timedelta(hours=number),
        Provenance(project=f"/p{number % 3}"),
        ("tag",),
        f" title {number} ",
        (IndexedPassage(0, 0, 9, terms or ("word",)),),
        problems=(Problem(f"/{number}", "odd"),),
    )


def vectors(number: int, version: str = "1") -> PassageVectors:
    """Return the vectors of a plain entry."""
    return PassageVectors(EntryId(f"e{number}"), version, np.array([[1.0, 0.0]] * 2, np.float32))


QUERY = QueryVector("model", "one", np.array([1.0, 0.0], np.float32), 0.2)


# The same answers as the oracle

term_lists = st.lists(st.sampled_from(TERMS), max_size=6).map(tuple)
small_vectors = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(1, 3))
references = st.lists(st.sampled_from(IDS), max_size=2, unique=True).map(tuple)
entries = st.builds(
    lambda number, version, sidecar, hours, origin, tags, passages, problems, about: IndexedEntry(
        IDS[number],
        Version.of(version, "" if sidecar is None else repr(sidecar)),
        START + timedelta(hours=hours),
        Provenance(**origin),
        tags,
        f" {version} ",
        tuple(
            IndexedPassage(ordinal, ordinal, ordinal + 1, terms)
            for ordinal, terms in enumerate(passages)
        ),
        sidecar,
        problems,
        *about,
    ),
    st.integers(0, len(IDS) - 1),
    st.sampled_from("123"),
    st.none()
    | st.builds(
        lambda model, vector: Sidecar(model, tuple(map(float, vector))),
        st.sampled_from(["model", "other"]),
        small_vectors,
    ),
    st.integers(0, 3),
    st.fixed_dictionaries(
        {
            "project": st.sampled_from(["", "/x/App", "/x/app/b/", "App", "C:\\x\\app", "/"]),
            "repo": st.sampled_from(["", "", "h/App", "H/other", "f00d"]),
            "agent": st.sampled_from(["", "Build", "plan"]),
        }
    ),
    st.lists(st.sampled_from(["T", "t", "u", "Straße"]), max_size=3).map(tuple),
    st.lists(term_lists, min_size=1, max_size=3),
    st.lists(
        st.builds(Problem, st.sampled_from("pq"), st.sampled_from("rs"), st.none() | st.just(3)),
        max_size=2,
    ).map(tuple),
    st.tuples(references, references),
)
filters = st.builds(
    Filters,
    project=st.sampled_from(["", "", "app", "/x/app", "h/app", "f00d"])
    | st.builds(
        Project,
        st.sampled_from(["", "h/APP", "f00d"]),
        st.sampled_from([(), ("/x/app",), ("/X/app/", "app", "")]),
        st.sampled_from(["", "/x", "/"]),
    ),
    tags=st.sampled_from([(), (), ("t",), ("t", "u"), ("strasse",)]),
    any_tags=st.sampled_from([(), (), ("u",), ("none", "t")]),
    not_tags=st.sampled_from([(), (), ("u",), ("none", "t")]),
    agent=st.sampled_from(["", "", "build"]),
    since=st.none() | st.integers(0, 3).map(lambda h: to_milliseconds(START + timedelta(hours=h))),
    until=st.none() | st.integers(0, 3).map(lambda h: to_milliseconds(START + timedelta(hours=h))),
)
queries = st.none() | st.builds(
    lambda identity, vector, floor: QueryVector("model", identity, unit(vector), floor),
    st.sampled_from(IDENTITIES),
    small_vectors,
    st.sampled_from([-1.0, 0.137, 0.683, 1.1]),
)


def unit(*vector: tuple[int, ...]) -> Any:  # noqa: ANN401 - an array of one or two dimensions
    """Return vectors as float32 of length 1; a single one without its axis."""
    matrix = np.array(vector, np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix[0] if len(vector) == 1 else matrix


class Cosine(float):
    """A number that equals what other roundings of the same sum give; rounded, they may differ."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Tell whether the difference is one of rounding."""
        return isinstance(other, float) and abs(self - other) < 1e-5

    __hash__ = float.__hash__


def told(found: Evidence | EvidenceArrays) -> tuple[object, ...]:
    """Return everything that evidence says, without its keys."""
    evidence = found.plain()

    def place(passage: int | None) -> tuple[object, ...]:
        if passage is None:
            return ()
        facts = evidence.passages[passage]
        return (*evidence.entries[facts.entry], *facts[1:])

    return (
        (evidence.entry_count, round(evidence.mean_length, 9), evidence.frequencies),
        sorted((place(key), term, times) for key, term, times in evidence.postings),
        sorted(place(passage) for passage in evidence.passages),
        sorted(evidence.entries.values()),
        sorted(
            (evidence.entries[key], Cosine(cosine), place(passage))
            for key, (cosine, passage) in evidence.nearest.items()
        ),
        evidence.compared,
        sorted(evidence.entries[key] for key in evidence.phrased),
        Cosine(evidence.cosine_mean),
        Cosine(evidence.cosine_deviation),
    )


class BothIndexes(RuleBasedStateMachine):
    """Whatever is done to both, the SQLite index answers like the oracle, reopened or not."""

    @initialize()
    def begin(self) -> None:
        """Open both."""
        self.now = 1_000.0
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "i.sqlite3"
        self.oracle: Index = MemoryIndex(lambda: self.now)
        self.index = SqliteIndex(self.path, clock=lambda: self.now)

    def teardown(self) -> None:
        """Close both."""
        if hasattr(self, "folder"):
            self.index.close()
            self.folder.cleanup()

    def both(self, act: Callable[[Index], object]) -> None:
        """Do something to both, and expect the same answer or the same error."""
        answers: list[object] = []
        for index in (self.oracle, self.index):
            try:
                answers.append(act(index))
            except DimensionMismatchError as error:
                answers.append((error.expected, error.actual))
        assert answers[0] == answers[1]

    @rule(changed=st.lists(entries, max_size=4), removed=st.lists(st.sampled_from(IDS), max_size=2))
    def update(self, changed: list[IndexedEntry], removed: list[EntryId]) -> None:
        """Index and forget."""
        self.both(lambda index: index.update(changed, removed))

    @rule(identity=st.sampled_from(IDENTITIES), data=st.data())
    def add_vectors(self, identity: str, data: st.DataObject) -> None:
        """Keep vectors, some of them unfitting."""
        known = self.oracle.listing()
        batch = [
            PassageVectors(
                entry_id,
                known[entry_id].entry if entry_id in known else "?",
                unit(*found, found[0])[:-1],
            )
            for entry_id in data.draw(st.lists(st.sampled_from(IDS), max_size=4))
            for found in (data.draw(st.lists(small_vectors, min_size=1, max_size=3)),)
        ]
        self.both(lambda index: index.add_vectors(identity, batch))

    @rule(identity=st.sampled_from(IDENTITIES), limit=st.integers(0, 3), wait=st.integers(0, 9))
    def claim(self, identity: str, limit: int, wait: int) -> None:
        """Claim work as time goes by."""
        self.now += wait
        self.both(lambda index: index.claim(identity, limit=limit, lease_s=7.0))

    @rule()
    def clear(self) -> None:
        """Forget all."""
        self.both(lambda index: index.clear())

    @rule()
    def reopen(self) -> None:
        """End the process, as it were."""
        self.index.close()
        self.index = SqliteIndex(self.path, clock=lambda: self.now)

    @rule(
        terms=st.lists(st.sampled_from(TERMS), unique=True, max_size=4),
        passing=st.just(Filters()) | filters,
        vector=queries,
    )
    def ask(self, terms: list[str], passing: Filters, vector: QueryVector | None) -> None:
        """Search and browse."""
        self.both(
            lambda index: told(
                index.evidence(terms, passing, vector, [terms[:2], terms[2:], terms[::-1]])
            )
        )
        for offset in (0, 2):
            self.both(methodcaller("select", passing, limit=3, offset=offset))

    @invariant()
    def agree(self) -> None:
        """Everything else is the same at all times."""
        if not hasattr(self, "index"):
            return
        self.both(lambda index: index.listing())
        self.both(lambda index: list(index.tags().items()))
        self.both(lambda index: index.corrections())
        self.both(lambda index: index.problems())
        self.both(lambda index: index.count())
        for identity in IDENTITIES:
            self.both(methodcaller("backlog", identity))


BothIndexes.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestBothIndexes = BothIndexes.TestCase


@given(st.lists(st.text(max_size=6) | st.text("AaÀ \n\ue000\ue001;\ud8001", max_size=4)))
@settings(max_examples=40)
def test_every_term_comes_back_from_fts5(terms: list[str]) -> None:
    """FTS5 holds as many tokens as there are terms, and finds each by its own encoding alone."""
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteIndex(Path(folder) / "i.sqlite3")
        index.update([plain(1, *terms)])
        distinct = list(dict.fromkeys([*terms, "surely not there"]))
        counts = {
            term: times for _, term, times in index.evidence(distinct, Filters()).plain().postings
        }
        assert counts == {
            number: ([*terms] or ["word"]).count(term)
            for number, term in enumerate(distinct)
            if term in ([*terms] or ["word"])
        }
        index.close()


@given(st.lists(st.text("ab A\ue000;", max_size=4)))
def test_terms_are_encoded_one_by_one(terms: list[str]) -> None:
    """The quick way for plain terms gives what encoding each of them gives."""
    assert encode_terms(terms) == " ".join(map(encode_term, terms))


# The file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the index is to be."""
    return tmp_path / "cache" / "agent-journal" / "i.sqlite3"


@pytest.fixture
def index(path: Path) -> Iterator[SqliteIndex]:
    """An index of three entries with vectors."""
    index = SqliteIndex(path, timeout_s=5)
    fill(index)
    yield index
    index.close()


def fill(index: Index, count: int = 3) -> None:
    """Index some plain entries with vectors."""
    index.update([plain(number) for number in range(count)])
    index.add_vectors("one", [vectors(number) for number in range(count)])


def test_a_claim_does_not_look_at_what_is_done(path: Path) -> None:
    """Making all vectors takes time in step with the entries, not with their square."""
    steps = 0

    class Counting(sqlite3.Connection):
        def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - whatever it takes
            super().__init__(*args, **more)
            self.set_progress_handler(self.count, 10)

        def count(self) -> int:
            nonlocal steps
            steps += 1
            return 0

    index = SqliteIndex(
        path, connect=lambda *args, **more: sqlite3.connect(*args, factory=Counting, **more)
    )
    index.update([plain(number) for number in range(1000)])
    costs = []
    while claimed := index.claim("one", limit=50, lease_s=60):
        before = steps
        index.add_vectors("one", [vectors(int(entry_id[1:])) for entry_id in claimed])
        steps = 0
        costs.append(before)
    index.close()
    assert len(costs) == 20
    assert max(costs[2:-1]) < 2 * costs[1]


def test_the_index_is_private(index: SqliteIndex, path: Path) -> None:
    """Every file is 0600 in a folder of 0700, whatever the umask."""
    assert index.location == str(path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = list(path.parent.iterdir())
    assert {file.suffix for file in files} >= {".sqlite3", ".sqlite3-wal", ".lock"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_the_index_survives_its_process(index: SqliteIndex, path: Path) -> None:
    """A second index on the same file knows what the first one was told."""
    other = SqliteIndex(path)
    assert other.generation() == index.generation()
    assert told(other.evidence(["word"], Filters(), QUERY)) == told(
        index.evidence(["word"], Filters(), QUERY)
    )
    other.update([plain(9)])
    assert index.count() == 4
    assert other.generation() == index.generation()
    other.close()


def test_a_closed_index_opens_again_when_it_is_asked(index: SqliteIndex) -> None:
    """Closing releases the files; a late caller is served all the same."""
    index.close()
    assert index.count() == 3


def test_a_connection_at_work_is_closed_when_it_ends(index: SqliteIndex, path: Path) -> None:
    """Closing while a thread reads lets it finish, and leaves no file open."""
    inside, closed = threading.Event(), threading.Event()

    def linger(_: object) -> None:
        inside.set()
        assert closed.wait(10)

    thread = threading.Thread(target=lambda: index._file.read(linger))
    thread.start()
    assert inside.wait(10)
    index.close()
    closed.set()
    thread.join(10)
    assert not path.with_name(path.name + "-wal").exists(), "SQLite removes it with the last one"


def test_words_alone_need_no_numpy(path: Path) -> None:
    """A process that searches by words does not pay for numpy."""
    program = (
        "import sys; from pathlib import Path\n"
        "from agent_journal.engines.sqlite import SqliteIndex\n"
        "from agent_journal.query import Filters\n"
        "index = SqliteIndex(Path(sys.argv[1])); index.evidence(['word'], Filters())\n"
        "print(index.count(), 'numpy' in sys.modules)"
    )
    index = SqliteIndex(path)
    fill(index)
    index.close()
    result = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert result.stdout == "3 False\n"


def change(path: Path, *statements: str) -> None:
    """Change the file behind the index's back."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def damage_by_truncating(path: Path) -> None:
    """Cut the file in its middle."""
    os.truncate(path, path.stat().st_size // 2)


def damage_by_overwriting(path: Path) -> None:
    """Put something else there."""
    path.write_bytes(b"not a database at all " * 400)


def damage_the_schema(path: Path) -> None:
    """Take a table away."""
    change(path, "DROP TABLE passages")


def damage_a_table_kind(path: Path) -> None:
    """Let a table ask for a module that nobody has."""
    change(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'USING fts5', 'USING fts9')",
    )


def damage_a_message(path: Path) -> None:
    """Let SQLite speak of the damage in bytes that are no text."""
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE state", b"CREATE TABL\xff state"))


def damage_the_version(path: Path) -> None:
    """Pretend that another program's version made it."""
    change(path, "PRAGMA user_version = 999")


def damage_the_state(path: Path) -> None:
    """Empty the table that every transaction starts with."""
    change(path, "DELETE FROM state")


def damage_a_number(path: Path) -> None:
    """Make a number that is none."""
    change(path, "UPDATE passages SET length = 'many' WHERE key = 1")


def damage_the_text(path: Path) -> None:
    """Make an id that is no text."""
    change(path, "UPDATE entries SET id = x'ff00' WHERE key = 1")


def damage_the_references(path: Path) -> None:
    """Take facts away that postings refer to."""
    change(path, "DELETE FROM passages WHERE key = 1")


def damage_the_vectors(path: Path) -> None:
    """Cut a vector."""
    change(path, "UPDATE vectors SET matrix = x'00' WHERE entry = 1")


def damage_the_counts(path: Path) -> None:
    """Let a passage have more vectors than there are."""
    change(path, "UPDATE vectors SET counts = x'0700' WHERE entry = 1")


def damage_the_length_of_counts(path: Path) -> None:
    """Cut a number in two."""
    change(path, "UPDATE vectors SET counts = x'010001' WHERE entry = 1")


DAMAGES = [
    damage_by_truncating,
    damage_by_overwriting,
    damage_the_schema,
    damage_a_table_kind,
    damage_a_message,
    damage_the_version,
    damage_the_state,
    damage_a_number,
    damage_the_text,
    damage_the_references,
    damage_the_vectors,
    damage_the_counts,
    damage_the_length_of_counts,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced_by_an_empty_one(
    path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is wrong with it: no error, one warning, and an index that can be filled again."""
    index = SqliteIndex(path)
    fill(index)
    index.close()
    damage(path)
    with caplog.at_level(logging.WARNING, "agent_journal"):
        index = SqliteIndex(path)
        index.listing()
        index.evidence(["word"], Filters(), QUERY)
        index.listing()
    assert index.count() == 0
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    fill(index)
    assert index.evidence(["word"], Filters(), QUERY).compared == 3
    index.close()


@pytest.mark.parametrize("damage", [damage_the_schema, damage_the_state, damage_the_references])
def test_damage_is_noticed_while_the_file_is_open(
    index: SqliteIndex, path: Path, damage: Callable[[Path], None]
) -> None:
    """Every connection to the damaged file goes to its successor."""
    other = SqliteIndex(path)
    assert other.count() == 3
    damage(path)
    assert index.evidence(["word"], Filters()).entry_count == 0
    assert other.count() == 0
    fill(other)
    assert index.count() == 3
    assert len(index.evidence(["word"], Filters(), QUERY).plain().nearest) == 3
    other.close()


def test_bytes_may_be_wrong_anywhere(path: Path) -> None:
    """However bytes are flipped or cut, nothing but a `JournalError` is ever raised."""
    index = SqliteIndex(path)
    for start in range(0, 400, 40):
        fill(index, start + 40)
    index.close()
    whole = path.read_bytes()
    chance = random.Random(20260101)  # noqa: S311 - no secret
    healed = 0
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            place = chance.choice([chance.randrange(len(whole)), chance.randrange(4096)])
            broken[place] ^= 1 << chance.randrange(8)
        if chance.random() < 0.2:
            del broken[chance.randrange(len(whole)) :]
        path.write_bytes(broken)
        index = SqliteIndex(path)
        try:
            exercise(index)
        except JournalError as error:
            pytest.fail(f"it did not heal: {error}")
        healed += path.read_bytes()[:100] != bytes(broken[:100])
        index.close()
    assert healed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE words_content SET c0 = replace(c0, 'word', 'wood') WHERE id = 1",
        "UPDATE words_data SET block = CAST(replace(block, 'ord', 'oad') AS BLOB) WHERE id > 10",
        "UPDATE passages SET entry = 1 WHERE key = 3",
        "UPDATE passages SET length = 7 WHERE key = 1",
        "UPDATE entries SET first_passage = 1 WHERE key = 2",
        "UPDATE entries SET passages = 0 WHERE key = 2",
        "UPDATE state SET entries = 9",
        "UPDATE tag_counts SET uses = 9",
        "DELETE FROM words_docsize WHERE id = 1",
    ],
)
def test_damage_that_hides_is_found_when_looked_for(
    path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What no search would notice makes the file new when it is verified, said once."""
    index = SqliteIndex(path)
    fill(index)
    index.close()
    change(path, statement)
    with caplog.at_level(logging.WARNING, "agent_journal"):
        index = SqliteIndex(path)
        index.verify()
        index.verify()
    assert index.count() == 0
    assert len(caplog.records) == 1
    index.close()


def test_nothing_is_made_to_be_verified(path: Path) -> None:
    """A journal that was never searched has no index, and gets none."""
    SqliteIndex(path).verify()
    assert not path.exists()


def exercise(index: Index) -> None:
    """Call everything once."""
    index.listing()
    index.evidence(["word"], Filters(), QUERY)
    index.tags()
    index.problems()
    index.select(Filters(tags=("tag",)), limit=50, offset=0)
    index.update([plain(1, "new", version="2"), plain(500)], [EntryId("e2")])
    index.claim("one", limit=3, lease_s=9)
    index.add_vectors("one", [vectors(500), vectors(1, "2")])
    index.evidence(["word", "new"], Filters(project="p1"), QUERY)
    index.clear()
    assert index.count() == 0


def test_a_removed_file_is_made_again(index: SqliteIndex, path: Path) -> None:
    """An index that is deleted while it is open is empty at the next call, and works."""
    for file in path.parent.iterdir():
        file.unlink()
    assert index.listing() == {}
    fill(index)
    assert index.count() == 3
    path.unlink()
    fill(index)
    other = SqliteIndex(path)
    assert other.count() == 3
    other.close()
    assert index.evidence(["word"], Filters(), QUERY).compared == 3


def test_a_file_removed_while_it_is_opened_is_made_again(path: Path) -> None:
    """Whoever deletes it picks any moment; nothing but that moment is made up."""
    moments = [path]

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - handed on
        connection: sqlite3.Connection = sqlite3.connect(*args, **options)
        for file in moments:
            file.unlink()
        moments.clear()
        return connection

    index = SqliteIndex(path, connect=connect)
    fill(index)
    assert index.count() == 3
    index.close()
    assert path.exists()


def test_a_removed_folder_is_made_again(index: SqliteIndex, path: Path) -> None:
    """The same holds for the whole folder."""
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    fill(index)
    assert index.count() == 3


def test_a_log_left_without_its_database_is_not_read(path: Path) -> None:
    """A write-ahead log of a removed database does not spoil the new one."""
    index = SqliteIndex(path)
    fill(index)
    log = path.with_name(path.name + "-wal")
    left = log.read_bytes()
    index.close()
    path.unlink()
    log.write_bytes(left)
    index = SqliteIndex(path)
    assert index.count() == 0
    index.close()


def test_what_was_known_of_a_file_is_not_believed_of_the_next(
    index: SqliteIndex, path: Path
) -> None:
    """Facts and vectors of equal keys in another file are read anew."""
    index.evidence(["word"], Filters(), QUERY)
    path.unlink()
    index.update([plain(7, "word", "word")])
    index.add_vectors("one", [vectors(7)])
    evidence = index.evidence(["word"], Filters(), QUERY).plain()
    assert [facts.id for facts in evidence.entries.values()] == ["e7"]
    assert [facts.length for facts in evidence.passages.values()] == [2]
    assert evidence.compared == 1


# Where no index can be


class Lacking(sqlite3.Connection):
    """A connection to an SQLite that lacks something."""

    lacks = ""

    def execute(self, sql: str, /, *parameters: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as given
        """Run a statement, unless it needs what is lacking."""
        if self.lacks == "wal" and "journal_mode" in sql:
            sql = "PRAGMA journal_mode = DELETE"
        elif self.lacks == "fts5" and ("fts5" in sql or "postings" in sql):
            return super().execute("CREATE VIRTUAL TABLE lacking USING nosuchfts5()")
        return super().execute(sql, *parameters)


class LackingWal(Lacking):
    """An SQLite on a disk that can't share memory."""

    lacks = "wal"


class LackingFts5(Lacking):
    """An SQLite without full-text search."""

    lacks = "fts5"


@pytest.mark.parametrize("factory", [LackingWal, LackingFts5])
@pytest.mark.parametrize("exists", [True, False])
def test_an_sqlite_that_lacks_something_is_refused(
    path: Path, factory: type[Lacking], *, exists: bool
) -> None:
    """Without WAL or FTS5 the index is unavailable at once, and a file of others stays."""
    if exists:
        before = SqliteIndex(path)
        fill(before)
        before.close()

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - handed on
        return sqlite3.connect(*args, factory=factory, **options)

    with pytest.raises(IndexUnavailableError) as refused:
        SqliteIndex(path, connect=connect).count()
    assert refused.value.path == str(path)
    after = SqliteIndex(path)
    assert after.count() == 3 * exists
    after.close()


def test_a_file_that_cannot_be_removed_is_told(
    index: SqliteIndex, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage in a folder that became read-only makes the index unavailable."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("made up: root may remove everything")

    damage_the_state(path)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(IndexUnavailableError, match="made up"):
        index.count()
    monkeypatch.undo()
    assert index.count() == 0


def test_a_place_where_every_new_file_is_damaged_is_told(path: Path) -> None:
    """When the new file is no better than the old one, the index is unavailable."""

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, /, *parameters: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as given
            if "user_version" in sql:
                raise sqlite_file.DamagedError("every time")
            return super().execute(sql, *parameters)

    with pytest.raises(IndexUnavailableError, match="every time"):
        SqliteIndex(
            path, connect=lambda *args, **more: sqlite3.connect(*args, factory=Failing, **more)
        ).count()


def as_nobody(act: Callable[[], None]) -> str:
    """Return the error that an act meets when an unprivileged user does it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setuid(65534)
        try:
            act()
        except JournalError as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(writing, f"unexpected {error!r}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, encoding="utf-8") as answer:
        return answer.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_place_that_cannot_be_written_is_refused() -> None:
    """A folder of somebody else, a file of somebody else, a file in the way: unavailable."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        assert as_nobody(lambda: fill(SqliteIndex(folder / "i.sqlite3"))).startswith(
            "IndexUnavailableError: "
        )
        assert as_nobody(lambda: fill(SqliteIndex(folder / "new" / "i.sqlite3"))).startswith(
            "IndexUnavailableError: "
        )
        index = SqliteIndex(folder / "i.sqlite3")
        index.count()
        index.close()
        assert as_nobody(lambda: fill(SqliteIndex(folder / "i.sqlite3"))).startswith(
            "IndexUnavailableError: "
        )
        folder.chmod(0o777)
        (folder / "i.sqlite3.lock").chmod(0o666)
        assert as_nobody(lambda: fill(SqliteIndex(folder / "i.sqlite3"))).startswith(
            "IndexUnavailableError: "
        )


def test_a_file_in_the_folders_place_is_told(tmp_path: Path) -> None:
    """A folder that can't be made makes the index unavailable, when opening and later."""
    (tmp_path / "file").touch()
    with pytest.raises(IndexUnavailableError):
        SqliteIndex(tmp_path / "file" / "i.sqlite3").count()
    (tmp_path / "folder.sqlite3").mkdir()
    with pytest.raises(IndexUnavailableError):
        SqliteIndex(tmp_path / "folder.sqlite3").count()


def test_a_folder_that_became_a_file_is_told(index: SqliteIndex, path: Path) -> None:
    """The index becomes unavailable, and available again."""
    moved = path.parent.rename(path.parent.with_name("moved"))
    path.parent.touch()
    with pytest.raises(IndexUnavailableError):
        index.count()
    path.parent.unlink()
    moved.rename(path.parent)
    assert index.count() == 3


def test_a_full_disk_is_told(index: SqliteIndex) -> None:
    """An update that finds no room fails as a whole, and the index stays usable."""

    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    index._file.read(limit)
    with pytest.raises(IndexUnavailableError, match="full"):
        index.update([plain(number, *map(str, range(500))) for number in range(9, 99)])
    assert index.count() == 3


def test_a_lock_that_is_never_released_is_told(path: Path) -> None:
    """A stuck writer makes writing unavailable after the time limit; reading goes on."""
    index = SqliteIndex(path, timeout_s=0.1)
    fill(index)
    stuck = sqlite3.connect(path, isolation_level=None)
    stuck.execute("BEGIN IMMEDIATE")
    with pytest.raises(IndexUnavailableError, match="locked"):
        index.update([plain(9)])
    assert index.count() == 3
    stuck.execute("ROLLBACK")
    index.update([plain(9)])
    assert index.count() == 4
    stuck.close()
    with sqlite_file.lock_file(path, 0), pytest.raises(IndexUnavailableError):
        SqliteIndex(path, timeout_s=0.05).count()
    index.close()


def test_a_snapshot_that_is_too_old_is_taken_anew(index: SqliteIndex) -> None:
    """SQLite refuses to write after an old read; the work is done again from its beginning."""
    attempts: list[int] = []

    def work(connection: sqlite3.Connection) -> None:
        attempts.append(connection.execute("SELECT entries FROM state").fetchone()[0])
        if len(attempts) == 1:
            index.update([plain(9)])
        connection.execute("UPDATE state SET generation = generation + 1")

    index._file.read(work)
    assert attempts == [3, 4]


def test_damage_that_comes_back_is_told(index: SqliteIndex) -> None:
    """What is damaged again and again, however often it is replaced, ends in an error."""

    def work(_: sqlite3.Connection) -> None:
        raise sqlite_file.DamagedError("always")

    with pytest.raises(IndexUnavailableError, match="always"):
        index._file.read(work)
    assert index.count() == 0


def test_misuse_is_not_taken_for_damage(index: SqliteIndex) -> None:
    """An error of ours in calling SQLite is raised as it is and costs nothing."""
    with pytest.raises(sqlite3.ProgrammingError):
        index._file.read(lambda connection: connection.execute("SELECT ?", ()))
    assert index.count() == 3


def test_a_child_process_uses_connections_of_its_own(index: SqliteIndex) -> None:
    """After a fork both parent and child go on, and each sees what the other did."""
    index.count()
    child = os.fork()
    if not child:
        status = 1
        try:
            index.update([plain(9)])
            status = 0 if index.count() == 4 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert index.count() == 4
    index.update([plain(10)])
    assert index.evidence(["word"], Filters(), QUERY).entry_count == 5


def test_connections_of_the_parent_are_left_alone(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was open before a fork is neither used nor closed after it; the fork is made up."""
    parents = index._file._idle[0].connection
    monkeypatch.setattr(index._file, "_pid", -1)
    assert index.count() == 3
    index.close()
    assert parents.execute("SELECT entries FROM state").fetchone() == (3,)
    parents.close()


def test_two_that_find_the_same_damage_replace_the_file_once(
    index: SqliteIndex, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever comes second to the lock leaves the new file alone."""
    other = SqliteIndex(path)
    first: list[int] = []

    def work(connection: sqlite3.Connection) -> int:
        if not first:
            first.append(1)
            with caplog.at_level(logging.WARNING, "agent_journal"):
                damage_the_state(path)
                fill(other, 2)
            raise sqlite_file.DamagedError("seen before the other one healed it")
        return int(connection.execute("SELECT entries FROM state").fetchone()[0])

    assert index._file.read(work) == 2
    assert len(caplog.records) == 1
    other.close()


def test_a_file_replaced_while_waiting_for_its_lock_is_left_alone(
    index: SqliteIndex, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Damage is looked at again once the lock is held."""
    held = index._file._take()
    path.unlink()
    fill(index, 2)
    with caplog.at_level(logging.WARNING, "agent_journal"):
        index._file._replace(held, sqlite_file.DamagedError("of the file before"))
    held.connection.close()
    assert caplog.records == []
    assert index.count() == 2


def test_a_file_that_is_replaced_without_end_is_told(index: SqliteIndex, path: Path) -> None:
    """The number of attempts is bounded."""
    attempts: list[int] = []

    def work(_: sqlite3.Connection) -> None:
        attempts.append(1)
        path.unlink()
        raise sqlite_file.DamagedError("gone again")

    with pytest.raises(IndexUnavailableError, match="gone again"):
        index._file.read(work)
    assert 1 < len(attempts) < 20


# Expiry


def test_only_unused_indexes_are_removed(tmp_path: Path) -> None:
    """Indexes untouched for the time given go with all their files; others and strangers stay."""
    names = ("old", "used", "kept")
    for name in names:
        one = SqliteIndex(tmp_path / f"{name}.sqlite3")
        fill(one)
        one.close()
    (tmp_path / "old.sqlite3-wal").touch()
    (tmp_path / "notes.txt").touch()
    sqlite3.connect(tmp_path / "photos.sqlite3").close()
    with sqlite3.connect(tmp_path / "music.sqlite3") as connection:
        connection.execute("CREATE TABLE songs (title)")
    connection.close()
    os.mkfifo(tmp_path / "pipe.sqlite3")
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    with contextlib.closing(SqliteIndex(tmp_path / "used.sqlite3")) as used:
        used.count()
    old, kept = tmp_path / "old.sqlite3", tmp_path / "kept.sqlite3"
    with sqlite_file.lock_file(old, 0):
        assert remove_unused(tmp_path, older_than_days=30, keep=kept) == []
    assert remove_unused(tmp_path, older_than_days=30, keep=kept) == [old]
    assert {file.name.split(".")[0] for file in tmp_path.iterdir()} == {
        *("used", "kept", "notes", "photos", "music", "pipe")
    }
    assert remove_unused(tmp_path / "none", older_than_days=30, keep=kept) == []


def test_an_index_used_while_its_lock_is_taken_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its age is looked at again under the lock; only the moment of its use is made up."""
    path = tmp_path / "old.sqlite3"
    with contextlib.closing(SqliteIndex(path)) as used:
        used.count()
    os.utime(path, (1, 1))
    monkeypatch.setattr(fcntl, "flock", lambda *_: os.utime(path))
    assert remove_unused(tmp_path, older_than_days=30, keep=tmp_path / "other") == []
    assert path.exists()


def test_an_index_in_long_use_is_touched_every_day(
    index: SqliteIndex, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that runs for months keeps its index; the clock alone is made up."""
    os.utime(path, (1, 1))
    index.count()
    assert path.stat().st_mtime == 1
    later = path.parent.stat().st_mtime + 100_000
    monkeypatch.setattr("time.time", lambda: later)
    index.count()
    assert path.stat().st_mtime > 1


def test_a_lock_file_that_was_removed_is_locked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever locks a lock file that was removed meanwhile does not believe to hold the lock.

    Only the moment is made up: between opening and locking somebody expires the index.
    """
    path, name = tmp_path / "i.sqlite3", tmp_path / "i.sqlite3.lock"
    locked: list[bool] = []
    really_lock = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        really_lock(descriptor, operation)
        if not locked:
            name.unlink()
        locked.append(name.exists())

    monkeypatch.setattr(fcntl, "flock", flock)
    with sqlite_file.lock_file(path, 0):
        assert locked == [False, True]
        assert name.exists()
