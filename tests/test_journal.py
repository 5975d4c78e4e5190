"""The journal over every pair of real engines: write, find, read, stay in step, degrade."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.drop import NOBODY, run_as_nobody

from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader, NoEmbedder
from agent_journal.engines.memory import MemoryStore
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import (
    AmbiguousIdError,
    EmbedderUnavailableError,
    EntryNotFoundError,
    IndexUnavailableError,
    InvalidDateError,
    JournalUnavailableError,
    StorageError,
)
from agent_journal.evidence import Evidence
from agent_journal.journal import Journal
from agent_journal.model import Draft, Entry, EntryId, Problem, Provenance
from agent_journal.ports import Embedder, Index, QueryVector, Sidecar
from agent_journal.query import Filters, Query
from agent_journal.upkeep import Upkeep

if TYPE_CHECKING:
    from agent_journal.ports import Matrix

NOW = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


class _CountingStore(FileStore):
    """A real store that counts how many entries it was asked to read."""

    reads = 0

    def read(self, entry_id: EntryId) -> Entry:
        self.reads += 1
        return super().read(entry_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture(params=["sqlite", "memory"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    made = SqliteIndex(tmp_path / "index.sqlite3") if request.param == "sqlite" else MemoryIndex()
    yield made
    made.close()


@pytest.fixture
def journal(folder: Path, index: Index) -> Journal:
    return Journal(FileStore(folder), index, BackgroundLoader(HashingEmbedder), clock=lambda: NOW)


def _titles(journal: Journal, text: str = "", **filters: object) -> list[str]:
    page = journal.search(Query(text, **filters))  # type: ignore[arg-type] # any of Query's fields
    return [hit.entry.title for hit in page.hits]


def test_what_was_written_is_found_and_read(journal: Journal) -> None:
    """The main job: write, find by words, read the same back."""
    written = journal.write(Draft("Broken build", "A stale lock file in `.cache`.", ["build"]))
    journal.write(Draft("Lunch", "Pasta."))
    page = journal.search(Query("lock file"))
    assert [hit.entry for hit in page.hits][:1] == [written]
    assert journal.read(written.id) == written
    hit = page.hits[0]
    assert hit.snippet in written.body
    assert written.body[hit.offset :].startswith(hit.snippet)
    assert "lexical" in hit.found_by
    assert page.tags == {"build": 1}


def test_search_without_text_gives_the_newest_first(journal: Journal) -> None:
    """No text: everything, newest first, in pages that add up."""
    for day in (3, 1, 2):
        journal.write(Draft(f"day {day}", created=datetime(2026, 1, day, tzinfo=UTC)))
    assert _titles(journal) == ["day 3", "day 2", "day 1"]
    page = journal.search(Query(limit=2, offset=2))
    assert ([hit.entry.title for hit in page.hits], page.total) == (["day 1"], 3)
    assert page.hits[0].score is None
    past = journal.search(Query(offset=9))
    assert (past.hits, past.total) == ((), 3)


def test_filters_apply_before_ranking(journal: Journal) -> None:
    """One matching entry among many better ones is found, whichever the filter."""
    for number in range(60):
        journal.write(Draft(f"deploy failed {number}", "deploy failed", ["noise"]))
    lone = journal.write(
        Draft(
            "A note",
            "the deploy was slow",
            ["Ops", "slow"],
            Provenance("/srv/shop", "m1", "p1", "build", "s1"),
            created=datetime(2025, 1, 2, 3, tzinfo=UTC),
        )
    )
    filters: list[dict[str, object]] = [
        {"project": "shop"},
        {"project": "/SRV/shop"},
        {"tags": ["ops"]},
        {"tags": ["OPS", "slow"]},
        {"any_tags": ["nope", "slow"]},
        {"agent": "BUILD"},
        {"model": "m1"},
        {"provider": "p1"},
        {"session": "s1"},
        {"until": "2025-01-02"},
        {"since": "2025-01-02T03:00", "until": "2025-01-02T03:00Z"},
    ]
    for chosen in filters:
        page = journal.search(Query("deploy failed", **chosen))  # type: ignore[arg-type] # as above
        assert [hit.entry.id for hit in page.hits] == [lone.id], chosen
        assert page.total == 1, chosen
    assert journal.search(Query("deploy", project="hop")).total == 0
    assert journal.search(Query("deploy", tags=["ops", "noise"])).total == 0


def test_total_agrees_with_paging_to_the_end(journal: Journal) -> None:
    """Pages never overlap, never skip, and add up to the total."""
    for number in range(23):
        journal.write(Draft(f"cache {number}", "cache " * (number % 5)))
    seen: list[str] = []
    offset = 0
    while page := journal.search(Query("cache", limit=5, offset=offset)):
        if not page.hits:
            break
        seen += [hit.entry.id for hit in page.hits]
        offset += 5
    assert len(seen) == len(set(seen)) == page.total == 23


def test_ages_are_counted_from_the_clock(journal: Journal) -> None:
    """`7d` means since seven days before now."""
    journal.write(Draft("old", created=datetime(2026, 5, 3, 11, 59, tzinfo=UTC)))
    journal.write(Draft("new", created=datetime(2026, 5, 3, 12, 0, tzinfo=UTC)))
    assert _titles(journal, since="7d") == ["new"]
    assert _titles(journal, since="1w", until="2026-05-03") == ["new"]
    assert _titles(journal, until="168h") == ["new", "old"]


@pytest.mark.parametrize("value", ["yesterday", "7 parsecs", "2026-13-01", "d7", "99999999999w"])
def test_a_date_that_is_none_is_refused(journal: Journal, value: str) -> None:
    """A bad date is an error that names it, never 'no filter'."""
    with pytest.raises(InvalidDateError, match="since"):
        journal.search(Query(since=value))


def test_foreign_changes_are_seen_by_the_next_search(journal: Journal, folder: Path) -> None:
    """Files added, replaced, renamed and removed by others need no restart and no reindex."""
    journal.write(Draft("ours"))
    (folder / "theirs.md").write_text("---\ntitle: theirs\n---\nzebra\n", encoding="utf-8")
    assert _titles(journal, "zebra") == ["theirs"]
    (folder / "new.tmp").write_text("---\ntitle: theirs\n---\nquokka\n", encoding="utf-8")
    (folder / "new.tmp").rename(folder / "theirs.md")
    assert _titles(journal, "zebra") == []
    assert _titles(journal, "quokka") == ["theirs"]
    (folder / "theirs.md").rename(folder / "moved.md")
    assert [hit.entry.id for hit in journal.search(Query("quokka")).hits] == ["moved"]
    (folder / "moved.md").unlink()
    assert _titles(journal, "quokka") == []


def test_catching_up_twice_does_nothing_the_second_time(folder: Path, index: Index) -> None:
    """The second time no file is opened."""
    store = _CountingStore(folder)
    journal = Journal(store, index, NoEmbedder("none"))
    for number in range(5):
        journal.write(Draft(f"entry {number}"))
    assert journal.catch_up().added == 5
    reads = store.reads
    assert journal.catch_up(thorough=True) == journal.catch_up() == type(journal.catch_up())()
    assert store.reads == reads


def test_a_lost_index_is_made_again(journal: Journal, index: Index) -> None:
    """Everything in an index is derived."""
    journal.write(Draft("only one", "with words"))
    assert _titles(journal, "words") == ["only one"]
    index.clear()
    assert _titles(journal, "words") == ["only one"]


def test_vectors_find_what_words_do_not(journal: Journal) -> None:
    """Hybrid once the backlog is done: similar spelling is found without a common word."""
    entry = journal.write(Draft("Authentication", "tokenised authentications everywhere"))
    journal.write(Draft("Lunch", "pasta with tomatoes"))
    before = journal.search(Query("authenticaton tokenisedd authenticatons"), wait_s=10)
    assert before.backlog == 2
    assert journal.work_backlog(wait_s=10) == 2
    page = journal.search(Query("authenticaton tokenisedd authenticatons"))
    assert (page.mode, page.reason, page.backlog) == ("hybrid", "", 0)
    assert page.hits[0].entry.id == entry.id
    assert "dense" in page.hits[0].found_by
    assert journal.work_backlog() == 0


def test_workers_do_not_repeat_one_another(folder: Path, index: Index) -> None:
    """What one is embedding meanwhile, another leaves alone: each text is embedded once."""
    embedded: list[str] = []

    class Noting(HashingEmbedder):
        """Notes what it embeds, and once lets somebody else work in the middle of it."""

        meanwhile: Callable[[], object] | None = None

        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            embedded.extend(texts)
            work, self.meanwhile = self.meanwhile, None
            if work:
                work()
            return super().embed_passages(texts)

    first = Noting()
    store = FileStore(folder)
    journals = [
        Journal(store, index, BackgroundLoader(lambda: first)),
        Journal(store, index, BackgroundLoader(Noting)),
    ]
    for number in range(60):
        journals[0].write(Draft(f"entry {number}"))
    shares = []
    first.meanwhile = lambda: shares.append(journals[1].work_backlog(wait_s=10))
    shares.append(journals[0].work_backlog(wait_s=10))
    assert min(shares) > 0
    assert sum(shares) == 60
    assert len(embedded) == len(set(embedded)) == 120  # the titles too


def test_vectors_that_came_too_late_for_an_answer_count_as_missing(folder: Path) -> None:
    """What a background thread adds once entries are compared must not seem to have counted."""

    class Racing(MemoryIndex):
        racing = False

        def evidence(
            self,
            terms: Sequence[str],
            filters: Filters,
            vector: QueryVector | None = None,
            phrases: Sequence[Sequence[str]] = (),
        ) -> Evidence:
            found = super().evidence(terms, filters, vector, phrases)
            if self.racing:
                self.racing = False
                opened.work_backlog()
            return found

    index = Racing()
    opened = Journal(FileStore(folder), index, BackgroundLoader(HashingEmbedder))
    opened.write(Draft("Connection pools"))
    opened.work_backlog(wait_s=10)
    opened.write(Draft("Connexion pooling"))
    index.racing = True
    assert opened.search(Query("connection pools")).backlog == 1
    assert opened.search(Query("connection pools")).backlog == 0


def test_a_search_never_waits_for_the_backlog(journal: Journal) -> None:
    """Entries without vectors are found by their words, and counted."""
    journal.write(Draft("first", "zebra"))
    journal.work_backlog(wait_s=10)
    journal.write(Draft("second", "zebra"))
    page = journal.search(Query("zebra"))
    assert {hit.entry.title for hit in page.hits} == {"first", "second"}
    assert (page.mode, page.backlog) == ("hybrid", 1)
    assert journal.search(Query()).backlog == 1


def test_without_a_model_search_is_lexical_and_says_why(folder: Path, index: Index) -> None:
    """No silent fallback."""
    journal = Journal(FileStore(folder), index, NoEmbedder("the model is switched off"))
    journal.write(Draft("zebra"))
    page = journal.search(Query("zebra"))
    assert (page.mode, page.reason) == ("lexical", "the model is switched off")
    assert len(page.hits) == 1


def test_a_sidecar_is_written_once_and_the_original_is_left_alone(
    journal: Journal, folder: Path
) -> None:
    """Ours beside ours; a foreign or broken one keeps its bytes."""
    ours = journal.write(Draft("ours", "text"))
    theirs = journal.write(Draft("theirs", "text"))
    broken = journal.write(Draft("broken", "text"))
    original = (
        '{"v":2,"model":"Xenova/paraphrase-multilingual-MiniLM-L12-v2","dimension":384,"vector":'
    )
    original += f"[{','.join(['0.05'] * 384)}]}}"
    (folder / f"{theirs.id}.embedding").write_text(original, encoding="utf-8")
    (folder / f"{broken.id}.embedding").write_text("[0.1, 0.2]", encoding="utf-8")
    journal.work_backlog(wait_s=10)
    own = folder / f"{ours.id}.embedding"
    stat = own.stat()
    assert stat.st_mode & 0o777 == 0o600
    assert FileStore(folder).read_sidecar(ours.id) is not None
    assert (folder / f"{theirs.id}.embedding").read_text(encoding="utf-8") == original
    assert (folder / f"{broken.id}.embedding").read_text(encoding="utf-8") == "[0.1, 0.2]"
    journal.reindex()
    journal.work_backlog()
    assert own.stat().st_mtime_ns == stat.st_mtime_ns
    assert [p.path for p in journal.status().problems] == [str(folder / f"{broken.id}.embedding")]


def test_only_the_original_model_writes_sidecars_of_its_length(folder: Path, index: Index) -> None:
    """The original compares whatever has 384 dimensions, so nobody else may write that."""
    entry = FileStore(folder).append(Draft("a", "b"))
    sidecar = folder / f"{entry.id}.embedding"
    Journal(
        FileStore(folder), index, BackgroundLoader(lambda: HashingEmbedder(384, "other"))
    ).work_backlog(wait_s=10)
    assert not sidecar.exists()
    Journal(
        FileStore(folder), index, BackgroundLoader(lambda: HashingEmbedder(64, "first"))
    ).work_backlog(wait_s=10)
    assert '"first"' in sidecar.read_text(encoding="utf-8")
    Journal(
        FileStore(folder), index, BackgroundLoader(lambda: HashingEmbedder(64, "second"))
    ).work_backlog(wait_s=10)
    assert '"second"' in sidecar.read_text(encoding="utf-8")


def test_a_sidecar_follows_its_text(journal: Journal, folder: Path) -> None:
    """Whoever edits an entry by hand finds it by its new meaning, after a lost index too."""
    entry = journal.write(Draft("Zoo", "giraffes and elephants"))
    journal.work_backlog(wait_s=10)
    file, sidecar = folder / f"{entry.id}.md", folder / f"{entry.id}.embedding"
    before = sidecar.read_bytes()
    file.chmod(0o600)
    file.write_text('---\ntitle: "Pool"\n---\n\nconnections exhausted\n', encoding="utf-8")
    journal.catch_up(thorough=True)
    journal.work_backlog()
    assert sidecar.read_bytes() != before
    sidecar.write_text(
        json.dumps({"v": 2, "model": HashingEmbedder().name, "dimension": 1, "vector": [1.0]}),
        encoding="utf-8",
    )
    journal.reindex()
    journal.work_backlog()
    (vector,) = HashingEmbedder().embed_passages(["Pool\nconnections exhausted"])
    found = FileStore(folder).read_sidecar(entry.id)
    assert found is not None
    assert found.vector == pytest.approx(vector.tolist())


def test_a_sidecar_stands_in_until_the_passages_are_embedded(folder: Path, index: Index) -> None:
    """A vector that another machine left beside an entry is used by the next search."""
    embedder = HashingEmbedder()
    store = FileStore(folder)
    journal = Journal(store, index, BackgroundLoader(lambda: embedder))
    entry = journal.write(Draft("Authentication", "tokenised authentications"))
    journal.write(Draft("Lunch", "pasta"))
    vector = embedder.embed_passages(["Authentication\ntokenised authentications"])[0]
    store.write_sidecar(entry.id, Sidecar(embedder.name, tuple(vector.tolist())))
    page = journal.search(Query("authenticaton tokenisedd authenticatons"), wait_s=10)
    assert [hit.entry.id for hit in page.hits][:1] == [entry.id]
    assert page.backlog == 2


@pytest.mark.parametrize("text", ["zebra", ""])
def test_an_index_emptied_meanwhile_hides_nothing(folder: Path, index: Index, text: str) -> None:
    """While another process makes the index anew, a search catches up itself."""
    times = iter([index.clear, index.clear])

    class Loader:
        def get(self, _wait_s: float) -> Embedder:
            next(times, lambda: None)()
            raise EmbedderUnavailableError("still loading")

    journal = Journal(FileStore(folder), index, Loader())
    journal.write(Draft("zebra"))
    page = journal.search(Query(text))
    assert (page.total, len(page.hits), page.tags) == (1, 1, {})


def test_a_missing_folder_finds_nothing_says_so_and_is_not_made(
    journal: Journal, folder: Path
) -> None:
    """Reads never create the journal folder."""
    page = journal.search(Query("anything"))
    assert (page.hits, page.total) == ((), 0)
    assert str(folder) in page.notices[0]
    assert journal.tags() == {}
    assert str(folder) in journal.status().notices[0]
    with pytest.raises(JournalUnavailableError):
        journal.catch_up()
    assert not folder.exists()


def test_a_folder_that_is_suddenly_empty_keeps_its_index(
    journal: Journal, folder: Path, index: Index
) -> None:
    """A failed mount must not cost anything; only reindex forgets."""
    journal.write(Draft("zebra"))
    assert _titles(journal, "zebra") == ["zebra"]
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.mkdir()
    page = journal.search(Query("zebra"))
    assert page.hits == ()
    assert "empty" in page.notices[0]
    assert index.count() == 1
    assert ["empty" in problem.reason for problem in journal.check()] == [True]
    folder.rmdir()
    assert "no journal" in journal.search(Query("zebra")).notices[0]
    assert index.count() == 1
    aside.rename(folder)
    assert _titles(journal, "zebra") == ["zebra"]
    shutil.rmtree(folder)
    assert journal.reindex().removed == 1
    assert index.count() == 0


def test_an_unreadable_file_is_a_problem_and_stops_nothing(journal: Journal, folder: Path) -> None:
    """One bad file never takes others with it."""
    journal.write(Draft("good", "zebra"))
    (folder / "bad.md").write_text("---\ntitle: [zebra\n---\nbody\n", encoding="utf-8")
    (folder / "link.md").symlink_to(folder / "bad.md")
    assert "good" in _titles(journal, "zebra")
    found = journal.status().problems
    assert {Path(problem.path).name for problem in found} == {"bad.md", "link.md"}
    assert {Path(problem.path).name for problem in journal.check()} == {"bad.md", "link.md"}
    assert all(isinstance(problem, Problem) and problem.reason for problem in found)


def test_check_tells_of_broken_sidecars(journal: Journal, folder: Path) -> None:
    """A sidecar that is ignored is a problem with its path."""
    entry = journal.write(Draft("good"))
    sidecar = folder / f"{entry.id}.embedding"
    sidecar.write_text("[0.1, 0.2]", encoding="utf-8")
    (problem,) = journal.check()
    assert problem.path == str(sidecar)
    assert problem.reason.startswith("ignored: ")
    assert journal.status().problems == (problem,)


UNREADABLE = """
from pathlib import Path
from agent_journal.engines.files import FileStore
from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.journal import Journal
from agent_journal.query import Query
import _strptime, agent_journal.passages, agent_journal.words, yaml  # root's to read

folder = Path(sys.argv[1])
journal, fresh = (
    Journal(FileStore(folder), MemoryIndex(), NoEmbedder("none")) for _ in range(2)
)
with dropped():
    print(len(journal.search(Query("zebra")).hits), *journal.search(Query("zebra")).notices)
    for file in folder.iterdir():
        file.chmod(0)
    for hit in journal.search(Query("zebra")).hits:
        print(hit.entry.created.year, hit.entry.problems[0].reason)
    page = fresh.search(Query("zebra"))
    print(page.total, *page.notices)
"""


def test_what_cannot_be_opened_is_said_with_every_answer() -> None:
    """By a notice when it was never read, by a dated hit with its problem when it was."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "journal"
        folder.mkdir()
        for stem in ("20260102-030405-006", "other"):
            file = folder / f"{stem}.md"
            file.write_text("---\ntitle: zebra\n---\n", encoding="utf-8")
            os.utime(file, (0, 0))
        if os.geteuid() == 0:
            for place in (folder, *folder.iterdir()):
                os.chown(place, NOBODY, NOBODY)
        first, *hits, last = run_as_nobody(UNREADABLE, folder).splitlines()
    assert first == "2"
    assert sorted(hit[:4] for hit in hits) == ["1970", "2026"]
    assert all("permission denied" in hit for hit in hits)
    assert last.startswith("0 2 entries can't be read, ")


def test_check_removes_only_old_temporary_files(journal: Journal, folder: Path) -> None:
    """`fix` clears what crashed writers left more than a day ago, and nothing else."""
    entry = journal.write(Draft("good"))
    before = sorted(folder.iterdir())
    temporary = [folder / f".agent-journal-1-{name}.tmp" for name in ("young", "old")]
    for file, hours in zip(temporary, (23, 25), strict=True):
        file.write_text("half an entry", encoding="utf-8")
        os.utime(file, (time.time() - hours * 3600,) * 2)
    assert journal.check() == []
    assert sorted(folder.iterdir()) == sorted([*before, *temporary])
    assert journal.check(fix=True) == []
    assert sorted(folder.iterdir()) == sorted([*before, temporary[0]])
    assert journal.read(entry.id) == entry


def test_ids_resolve_by_unique_prefix(journal: Journal) -> None:
    """A whole id wins over a prefix; an ambiguous or unknown one names itself."""
    first = journal.write(Draft("a", created=datetime(2026, 1, 1, tzinfo=UTC)))
    second = journal.write(Draft("b", created=datetime(2026, 1, 1, tzinfo=UTC)))
    third = journal.write(Draft("c", created=datetime(2026, 2, 1, tzinfo=UTC)))
    assert journal.resolve(first.id) == first.id
    assert journal.resolve("202602") == third.id
    with pytest.raises(AmbiguousIdError, match="starts 2 ids") as ambiguous:
        journal.resolve("202601")
    assert set(ambiguous.value.matches) == {first.id, second.id}
    for nothing in ("2027", "", "../x"):
        with pytest.raises(EntryNotFoundError):
            journal.resolve(nothing)


class _BreakingIndex(MemoryIndex):
    """An index that can't be used any more from some moment on: a failure nobody can cause."""

    broken = False
    before_failing: Callable[[], object] = staticmethod(lambda: None)

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence:
        if self.broken:
            self.broken = False
            self.before_failing()
            self.broken = True
            raise IndexUnavailableError(self.location, "locked")
        return super().evidence(terms, filters, vector, phrases)


def test_an_index_that_breaks_is_replaced_by_memory(folder: Path) -> None:
    """Search goes on and says how."""
    index = _BreakingIndex()
    journal = Journal(FileStore(folder), index, NoEmbedder("none"), fallback=MemoryIndex)
    journal.write(Draft("zebra"))
    index.broken = True
    page = journal.search(Query("zebra"))
    assert [hit.entry.title for hit in page.hits] == ["zebra"]
    assert "from memory" in page.notices[0]
    assert len(journal.search(Query("zebra")).notices) == 1
    lonely = Journal(FileStore(folder), index, NoEmbedder("none"))
    with pytest.raises(IndexUnavailableError):
        lonely.search(Query("zebra"))


def test_only_the_first_of_two_that_fail_at_once_replaces_the_index(folder: Path) -> None:
    """The second one finds the fallback in place and uses it."""
    index = _BreakingIndex()
    journal = Journal(FileStore(folder), index, NoEmbedder("none"), fallback=MemoryIndex)
    journal.write(Draft("zebra"))
    index.before_failing = lambda: journal.search(Query("zebra"))
    index.broken = True
    page = journal.search(Query("zebra"))
    assert (page.total, len(page.notices)) == (1, 1)


class _LosingIndex(MemoryIndex):
    """Somebody empties it each time between catching up and looking."""

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence:
        self.clear()
        return super().evidence(terms, filters, vector, phrases)


def test_an_index_that_is_emptied_again_and_again_ends_the_search(folder: Path) -> None:
    """It tries a bounded number of times and answers with what there is."""
    journal = Journal(FileStore(folder), _LosingIndex(), NoEmbedder("none"))
    journal.write(Draft("zebra"))
    page = journal.search(Query("zebra"))
    assert page.total == 0
    assert "search again" in page.notices[0]


class _RefillingIndex(MemoryIndex):
    """Somebody makes it anew, once, and has come as far as other entries when it is looked at."""

    refills = 1

    def evidence(
        self,
        terms: Sequence[str],
        filters: Filters,
        vector: QueryVector | None = None,
        phrases: Sequence[Sequence[str]] = (),
    ) -> Evidence:
        if self.refills:
            self.refills -= 1
            others = MemoryStore()
            for number in range(9):
                others.append(Draft(f"other {number}", created=datetime(2020, 1, 1, tzinfo=UTC)))
            self.clear()
            Upkeep(others, self).catch_up()
        return super().evidence(terms, filters, vector, phrases)


def test_an_index_that_others_fill_anew_hides_nothing(folder: Path) -> None:
    """As many entries as were there before may be other ones."""
    journal = Journal(FileStore(folder), _RefillingIndex(), NoEmbedder("none"))
    journal.write(Draft("zebra"))
    page = journal.search(Query("zebra"))
    assert (page.total, page.notices) == (1, ())


class _VanishingStore(FileStore):
    """Whatever is to be read has just been removed."""

    vanishing = False

    def read(self, entry_id: EntryId) -> Entry:
        if self.vanishing:
            (Path(self.location) / f"{entry_id}.md").unlink()
        return super().read(entry_id)


@pytest.mark.parametrize("text", ["zebra", ""])
def test_a_hit_that_is_removed_before_it_is_read_is_left_out(folder: Path, text: str) -> None:
    """A page holds what can be shown."""
    store = _VanishingStore(folder)
    journal = Journal(store, MemoryIndex(), NoEmbedder("none"))
    journal.write(Draft("zebra"))
    journal.catch_up()
    store.vanishing = True
    assert journal.search(Query(text)).hits == ()
    assert journal.search(Query(text)).total == 0


class _ForbiddenStore(FileStore):
    """May not read its entries; root can't be kept from them, so the refusal is made up."""

    def read(self, entry_id: EntryId) -> Entry:
        raise StorageError(f"{entry_id}.md", "permission denied")


def test_check_names_what_it_may_not_read_and_tells_how_far_it_is(folder: Path) -> None:
    """One entry that can't be opened is one problem."""
    FileStore(folder).append(Draft("one"))
    journal = Journal(_ForbiddenStore(folder), MemoryIndex(), NoEmbedder("none"))
    told: list[tuple[int, int]] = []
    found = journal.check(progress=lambda at, total: told.append((at, total)))
    assert [problem.reason for problem in found] == ["permission denied"]
    assert told == [(1, 2)]  # it is read once more if there are ledgers


def test_reindex_keeps_the_index_of_a_folder_that_cannot_be_read(folder: Path) -> None:
    """A missing folder is empty; one that is no folder is an error, and nothing is forgotten."""
    index = MemoryIndex()
    journal = Journal(FileStore(folder), index, NoEmbedder("none"))
    journal.write(Draft("one"))
    journal.catch_up()
    folder.rename(folder.with_name("aside"))
    folder.write_text("a file", encoding="utf-8")
    with pytest.raises(JournalUnavailableError, match="not a directory"):
        journal.reindex()
    assert index.count() == 1


def test_vectors_of_another_length_are_not_compared(folder: Path, index: Index) -> None:
    """A model that changed under its name: words alone, and the reason."""
    old, new = HashingEmbedder(32), HashingEmbedder(64)
    new.identity = old.identity
    with_old = Journal(FileStore(folder), index, BackgroundLoader(lambda: old))
    with_old.write(Draft("zebra"))
    with_old.work_backlog(wait_s=10)
    page = Journal(FileStore(folder), index, BackgroundLoader(lambda: new)).search(
        Query("zebra"), wait_s=10
    )
    assert (page.total, page.mode) == (1, "lexical")
    assert "dimensions" in page.reason


class _SlowEmbedder(HashingEmbedder):
    """Sets an event as soon as it has been asked for vectors once."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self._stop.set()
        return super().embed_passages(texts)


def test_the_backlog_stops_when_told_and_goes_on_later(folder: Path, index: Index) -> None:
    """A stop is heard between calls of the model; nothing done is lost."""
    stop = threading.Event()
    journal = Journal(FileStore(folder), index, BackgroundLoader(lambda: _SlowEmbedder(stop)))
    for number in range(40):
        journal.write(Draft(f"entry {number}", "body"))
    told: list[tuple[int, int]] = []
    done = journal.work_backlog(
        wait_s=10, stop=stop, progress=lambda at, total: told.append((at, total))
    )
    assert 0 < done < 40
    assert told[-1] == (done, 40)
    assert journal.work_backlog(limit_s=0) == 0
    again = Journal(FileStore(folder), index, BackgroundLoader(HashingEmbedder))
    assert again.work_backlog(wait_s=10) == 40 - done, "claims were not given back"
    assert journal.status(wait_s=10).backlog == 0


def test_threads_share_one_journal(journal: Journal) -> None:
    """Writes and searches from many threads at once all succeed."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            entry = journal.write(Draft(f"thread {number}", f"word{number}"))
            assert entry.id in [hit.entry.id for hit in journal.search(Query(f"word{number}")).hits]
        except BaseException as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert journal.search(Query()).total == 16


def test_nothing_but_a_write_changes_a_file(journal: Journal, folder: Path) -> None:
    """Every command over golden files leaves their bytes and times as they are."""
    folder.mkdir()
    golden = Path(__file__).parent / "golden" / "entries"
    for file in sorted(golden.glob("*.md")):
        shutil.copy2(file, folder / file.name)
    assert len(list(folder.iterdir())) > 10
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}
    journal.search(Query("entry"), wait_s=10)
    journal.work_backlog(wait_s=10)
    journal.check(fix=True)
    journal.reindex()
    journal.status()
    for entry_id in before:
        journal.read(entry_id.removesuffix(".md"))
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.glob("*.md")}
    assert after == before
    assert journal.search(Query(limit=50)).total == len(before)
