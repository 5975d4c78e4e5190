"""Corrections: what supersedes a hit comes before it, and reading shows both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_journal.corrections import Corrections
from agent_journal.engines.files import FileStore
from agent_journal.engines.hashing import HashingEmbedder
from agent_journal.engines.loading import BackgroundLoader, NoEmbedder
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import JournalUnavailableError, ReferenceNotFoundError
from agent_journal.journal import Journal
from agent_journal.model import Draft, Entry, EntryId, Relations
from agent_journal.query import Query
from agent_journal.ranking import Ranking

A, B, C, D = map(EntryId, "ABCD")
IDS = [EntryId(letter) for letter in "ABCDEFGH"]
GRAPHS = st.dictionaries(
    st.sampled_from(IDS), st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(tuple)
)


def arranged(corrections: Corrections, order: Sequence[EntryId]) -> list[EntryId]:
    """Return hits as they are arranged."""
    return list(corrections.arranged(dict.fromkeys(order)))


class TestArranged:
    """The order of hits."""

    @given(GRAPHS, st.lists(st.sampled_from(IDS), unique=True))
    def test_every_hit_is_there_once(
        self, graph: dict[EntryId, tuple[EntryId, ...]], order: list[EntryId]
    ) -> None:
        """Whatever supersedes what, in circles too, the hits are the same."""
        assert sorted(arranged(Corrections(graph), order)) == sorted(order)

    @given(
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True),
        st.lists(st.sampled_from(IDS), unique=True),
    )
    def test_no_hit_comes_before_what_supersedes_it(
        self, pairs: list[tuple[int, int]], order: list[EntryId]
    ) -> None:
        """Directly or by way of others, as long as there is no circle."""
        graph: dict[EntryId, tuple[EntryId, ...]] = {}
        for one, other in pairs:
            if one < other:
                graph[IDS[one]] = (*graph.get(IDS[one], ()), IDS[other])
        corrections = Corrections(graph)
        found = arranged(corrections, order)
        for place, entry_id in enumerate(found):
            assert not set(corrections.superseded_by(entry_id)) & set(found[place:])

    @given(GRAPHS, st.lists(st.sampled_from(IDS), unique=True))
    def test_nothing_else_is_moved(
        self, graph: dict[EntryId, tuple[EntryId, ...]], order: list[EntryId]
    ) -> None:
        """Hits that neither supersede a hit nor are superseded keep their order."""
        targets = set(graph)
        sources = {one for sources in graph.values() for one in sources}
        free = [one for one in order if one not in targets | sources]
        assert [one for one in arranged(Corrections(graph), order) if one in free] == free

    @pytest.mark.parametrize(
        ("graph", "order", "expected"),
        [
            ({A: (B,)}, [D, A, C, B], [D, B, A, C]),
            ({A: (B,)}, [B, C, A], [B, C, A]),
            ({A: (B,), B: (C,)}, [A, D, B, C], [C, B, A, D]),
            ({A: (B,), B: (C,)}, [A, D, C], [C, A, D]),
            ({A: (C, B)}, [D, A, B, C], [D, C, B, A]),
            ({A: (B,), B: (A,)}, [D, A, C, B], [D, B, A, C]),
            ({A: (B,)}, [A, C], [A, C]),
        ],
    )
    def test_what_supersedes_comes_right_before(
        self,
        graph: dict[EntryId, tuple[EntryId, ...]],
        order: list[EntryId],
        expected: list[EntryId],
    ) -> None:
        """Unless it ranks higher anyway; by way of what is no hit, too."""
        assert arranged(Corrections(graph), order) == expected

    def test_no_more_is_looked_at_than_is_needed(self) -> None:
        """A first page of a hundred thousand hits costs as much as one of a hundred."""
        looked: list[str] = []

        class Hits(dict[EntryId, None]):
            def __iter__(self) -> Iterator[EntryId]:
                for one in super().__iter__():
                    looked.append(one)
                    yield one

        graph = {EntryId("1"): (EntryId("4"),), EntryId("9"): (EntryId("99"),)}
        page = Corrections(graph).arranged(Hits.fromkeys(EntryId(str(n)) for n in range(100)))
        assert [next(page) for _ in range(3)] == ["0", "4", "1"]
        assert looked == ["0", "1"]

    def test_a_long_chain_ends(self) -> None:
        """As long as no recursion could be."""
        ids = [EntryId(str(number)) for number in range(20_000)]
        corrections = Corrections({one: (other,) for one, other in pairwise(ids)})
        assert corrections.superseded_by(ids[0]) == tuple(ids[:0:-1])
        assert arranged(corrections, ids) == ids[::-1]


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """An empty journal over files and either index."""
    index = SqliteIndex(tmp_path / "i.sqlite3") if request.param == "sqlite" else MemoryIndex()
    loader = BackgroundLoader(HashingEmbedder)
    with Journal(FileStore(tmp_path / "journal"), index, loader) as opened:
        yield opened


def found(journal: Journal, text: str, **more: int | str) -> list[str]:
    """Return the titles of what a query finds."""
    page = journal.search(Query(text, **more), wait_s=9)  # type: ignore[arg-type] # as Query has them
    return [hit.entry.title for hit in page.hits]


def corrected(journal: Journal) -> tuple[Entry, Entry, Entry]:
    """Write an entry, its correction, and the correction of that, which ranks last."""
    first = journal.write(Draft("redis pins", "redis redis"))
    second = journal.write(Draft("later", "redis and the licence", supersedes=first.id))
    third = journal.write(
        Draft("latest", "redis " + "many other words " * 30, ["x"], supersedes=[second.id])
    )
    return first, second, third


class TestSearch:
    """A superseded hit is marked, and what supersedes it comes first."""

    @pytest.mark.parametrize("embedded", [False, True])
    def test_the_last_word_comes_first(self, journal: Journal, *, embedded: bool) -> None:
        """Though it ranks last; each is marked with all that supersedes it."""
        first, second, third = corrected(journal)
        other = journal.write(Draft("redis", "redis"))
        if embedded:
            journal.work_backlog(wait_s=9)
        page = journal.search(Query("redis"), wait_s=9)
        by = {hit.entry.id: hit.superseded_by for hit in page.hits}
        order = [hit.entry for hit in page.hits]
        at = order.index(third)
        assert order[at : at + 3] == [third, second, first]
        assert by == {
            first.id: (third.id, second.id),
            second.id: (third.id,),
            third.id: (),
            other.id: (),
        }
        scores = {hit.entry.id: hit.score for hit in page.hits}
        assert (scores[third.id] or 0) < (scores[first.id] or 0)

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_pages_add_up(self, journal: Journal, limit: int) -> None:
        """Every hit is on one page, and the total is the same on each."""
        corrected(journal)
        for number in range(4):
            journal.write(Draft(f"redis {number}", "redis"))
        whole = found(journal, "redis")
        assert len(whole) == 7
        pages = [found(journal, "redis", limit=limit, offset=at) for at in range(0, 8, limit)]
        assert [title for page in pages for title in page] == whole
        assert journal.search(Query("redis", limit=limit, offset=3)).total == 7

    @pytest.mark.parametrize("embedded", [False, True])
    def test_nothing_is_said_of_hits_on_other_pages(
        self, journal: Journal, monkeypatch: pytest.MonkeyPatch, *, embedded: bool
    ) -> None:
        """Though what supersedes the first comes last: a page costs a page, however many hits."""
        first = journal.write(Draft("redis", "redis"))
        for number in range(30):
            journal.write(Draft(f"entry {number}", "redis " * 3 + "words " * number))
        last = journal.write(Draft("last", "redis " + "words " * 200, supersedes=first.id))
        if embedded:
            journal.work_backlog(wait_s=9)
        said = []
        real = Ranking.__getitem__

        def watched(ranking: Ranking, where: int) -> object:
            said.append(where)
            return real(ranking, where)

        monkeypatch.setattr(Ranking, "__getitem__", watched)
        page = journal.search(Query("redis", limit=2), wait_s=9)
        assert [hit.entry.id for hit in page.hits] == [last.id, first.id]
        assert page.total == 32
        assert said == [31, 0]

    def test_what_is_no_hit_is_only_named(self, journal: Journal) -> None:
        """A filter keeps its promise, and so does the total."""
        first, second, third = corrected(journal)
        page = journal.search(Query("pins"), wait_s=9)
        assert [hit.entry for hit in page.hits if "lexical" in hit.found_by] == [first]
        assert page.hits[0].superseded_by == (third.id, second.id)
        page = journal.search(Query("redis", until=first.created))
        assert [hit.entry for hit in page.hits] == [first]
        assert page.total == 1
        assert page.hits[0].superseded_by == (third.id, second.id)

    def test_the_newest_first_are_marked_in_their_order(self, journal: Journal) -> None:
        """Dates alone decide it there."""
        first, second, third = corrected(journal)
        late = datetime(2100, 1, 1, tzinfo=UTC)
        old = journal.write(Draft("dated ahead", created=late))
        new = journal.write(Draft("of now", supersedes=old.id))
        page = journal.search(Query())
        assert [(hit.entry.id, hit.superseded_by) for hit in page.hits] == [
            (old.id, (new.id,)),
            (new.id, ()),
            (third.id, ()),
            (second.id, (third.id,)),
            (first.id, (third.id, second.id)),
        ]

    def test_circles_made_by_hand_end(self, journal: Journal, tmp_path: Path) -> None:
        """Each is marked with the other, and both are found."""
        (tmp_path / "journal").mkdir()
        for one, other in (("a", "b"), ("b", "a"), ("c", "c"), ("d", "never there")):
            text = f"---\ntitle: redis {one}\nsupersedes: {other}\n---\nredis"
            (tmp_path / "journal" / f"{one}.md").write_text(text, encoding="utf-8")
        page = journal.search(Query("redis"))
        by = {hit.entry.id: hit.superseded_by for hit in page.hits}
        assert by == {"a": ("b",), "b": ("a",), "c": (), "d": ()}
        (problem,) = journal.read("c").problems
        assert problem.reason == "supersedes names the entry itself; that is passed over"
        assert journal.read("d").problems == ()

    def test_what_is_gone_supersedes_nothing(self, journal: Journal, tmp_path: Path) -> None:
        """An entry whose correction was removed stands as before."""
        first, second, third = corrected(journal)
        assert journal.relations(second).superseded_by == (third.id,)
        (tmp_path / "journal" / f"{third.id}.md").unlink()
        assert journal.relations(first).superseded_by == (second.id,)
        assert journal.relations(second).superseded_by == ()


class TestRelations:
    """What an entry says of others, and they of it."""

    def test_both_directions_are_told(self, journal: Journal) -> None:
        """As soon as the other one is written."""
        first, second, third = corrected(journal)
        notes = [journal.write(Draft(f"note {n}", annotates=[second.id])) for n in range(2)]
        assert journal.relations(first) == Relations(superseded_by=(third.id, second.id))
        assert journal.relations(second) == Relations(
            supersedes=(first.id,),
            superseded_by=(third.id,),
            annotated_by=(notes[1].id, notes[0].id),
        )
        assert journal.relations(notes[0]) == Relations(annotates=(second.id,))

    def test_they_are_told_without_reading_all(self, tmp_path: Path) -> None:
        """Once entries are indexed, no file is read for them."""

        class Counting(FileStore):
            reads = 0

            def read(self, entry_id: EntryId) -> Entry:
                self.reads += 1
                return super().read(entry_id)

        store = Counting(tmp_path / "journal")
        loader = NoEmbedder("not asked for")
        with Journal(store, SqliteIndex(tmp_path / "i.sqlite3"), loader) as journal:
            first, second, third = corrected(journal)
            journal.catch_up()
        store.reads = 0
        with Journal(store, SqliteIndex(tmp_path / "i.sqlite3"), loader) as journal:
            assert journal.relations(first).superseded_by == (third.id, second.id)
        assert store.reads == 0

    def test_without_a_folder_the_entry_alone_tells(self, journal: Journal, tmp_path: Path) -> None:
        """A folder that was unmounted is no error."""
        first, second, _ = corrected(journal)
        (tmp_path / "journal").rename(tmp_path / "away")
        assert journal.relations(first) == Relations()
        assert journal.relations(second) == Relations(supersedes=(first.id,))


class TestWrite:
    """A draft can be about what is there, and about nothing else."""

    @pytest.mark.parametrize("field", ["supersedes", "annotates"])
    @pytest.mark.parametrize("reference", ["20260101-000000-000", "../x", "x" * 5000, "2026"])
    def test_what_is_not_there_is_refused(
        self, journal: Journal, tmp_path: Path, field: str, reference: str
    ) -> None:
        """Before anything is written, in one sentence, in an unborn journal too."""
        with pytest.raises(ReferenceNotFoundError) as caught:
            journal.write(Draft("t", **{field: reference}))  # type: ignore[arg-type] # by its name
        assert not (tmp_path / "journal").exists()
        there = journal.write(Draft("here"))
        with pytest.raises(ReferenceNotFoundError) as caught:
            journal.write(Draft("t", **{field: [there.id, reference]}))  # type: ignore[arg-type] # as above
        assert str(caught.value) == (
            f"{field} names {reference[:80]!r}, which is no entry; nothing was written; "
            "search for it to get its id"
        )
        assert (caught.value.field, caught.value.reference) == (field, reference)
        assert journal.search(Query()).total == 1

    def test_entries_made_by_hand_may_be_superseded(self, journal: Journal, tmp_path: Path) -> None:
        """By whatever name they have."""
        (tmp_path / "journal").mkdir()
        (tmp_path / "journal" / "my notes, old.md").write_text("redis", encoding="utf-8")
        entry = journal.write(Draft("redis", supersedes="my notes, old"))
        assert journal.read(entry.id).supersedes == ("my notes, old",)
        assert found(journal, "redis") == ["redis", ""]

    def test_an_unreadable_folder_is_told(self, journal: Journal, tmp_path: Path) -> None:
        """Whether an entry is there can't be told then."""
        (tmp_path / "journal").touch()
        with pytest.raises(JournalUnavailableError):
            journal.write(Draft("t", supersedes="x"))

    def test_an_import_may_dangle(self, journal: Journal) -> None:
        """Of a part of a journal some references lead nowhere."""
        entry = journal.write(Draft("t", supersedes="elsewhere"), may_dangle=True)
        assert journal.read(entry.id).supersedes == ("elsewhere",)
