"""The contract of `Index`: every sentence of it, for every engine."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_journal.corrections import Corrections
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.engines.sqlite import SqliteIndex
from agent_journal.errors import DimensionMismatchError
from agent_journal.evidence import Evidence
from agent_journal.model import EntryId, Problem, Provenance, to_milliseconds
from agent_journal.ports import (
    Index,
    IndexedEntry,
    IndexedPassage,
    PassageVectors,
    QueryVector,
    Selection,
    Sidecar,
    Version,
)
from agent_journal.query import Filters, Project, Query

if TYPE_CHECKING:
    from agent_journal.ports import Matrix

START = datetime(2026, 1, 1, tzinfo=UTC)
ODD_TERMS = (
    *(
        "ß",
        "i̇",
        "é",
        "e\u0301",
        "moment.js",
        "2026.4.10",
        "日本",
        "本語",
        "नमस्ते",
        "\u0645\u06cc\u200c\u062e\u0648",
    ),
    *("👩\u200d💻", "🫠", "🫨", "c++", "a'b", 'a"b', "a\\b", "''", '"', "*", "(", "near", "AND"),
    *("a b", "A", "a\nb", "\x00", "\x1f", "\u00a0", "\u2003", "\ue000", "\ue00041;", "\ud800", ""),
    *("x" * 9_000, "x" * 40_000, "x" * 40_001, "ᏸ", "ﬁ", "\u00b5", "\u03bc", "ꟲ", "\U0001e900"),
)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Return the time it shows."""
        return self.now


def entry(
    number: int = 0,
    *passages: Sequence[str],
    version: str = "1",
    entry_id: str = "",
    sidecar: Sidecar | None = None,
    sidecar_version: str = "",
    hours: float | None = None,
    **provenance: str,
) -> IndexedEntry:
    """Return an entry whose passages hold these terms."""
    return IndexedEntry(
        id=EntryId(entry_id or f"entry-{number}"),
        version=Version.of(version, sidecar_version),
        created=START + timedelta(hours=number if hours is None else hours),
        provenance=Provenance(**provenance),
        tags=(),
        title_key=f" title {number} ",
        passages=tuple(
            IndexedPassage(ordinal, 10 * ordinal, 10 * ordinal + 9, tuple(terms))
            for ordinal, terms in enumerate(passages or [("word",)])
        ),
        sidecar=sidecar,
    )


def tagged(number: int, *tags: str, version: str = "1") -> IndexedEntry:
    """Return an entry that carries these tags."""
    plain = entry(number, version=version)
    return IndexedEntry(
        plain.id, plain.version, plain.created, plain.provenance, tags, "", plain.passages
    )


def troubled(number: int, *problems: Problem, sidecar_version: str = "") -> IndexedEntry:
    """Return an entry that has these problems."""
    plain = entry(number, sidecar_version=sidecar_version)
    return IndexedEntry(
        plain.id,
        plain.version,
        plain.created,
        plain.provenance,
        (),
        "",
        plain.passages,
        problems=problems,
    )


def rows(*vectors: Sequence[float]) -> Matrix:
    """Return a matrix whose rows have length 1."""
    matrix: Matrix = np.array(vectors, np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def made(number: int, *vectors: Sequence[float], version: str = "1") -> PassageVectors:
    """Return the vectors of an entry's passages, with the last one's as its title's."""
    return PassageVectors(EntryId(f"entry-{number}"), version, rows(*vectors, vectors[-1]))


def looking(
    *vector: float, floor: float = 0.5, identity: str = "id", model: str = "model"
) -> QueryVector:
    """Return a query's vector."""
    return QueryVector(model, identity, rows(vector)[0], floor)


def asked(
    index: Index,
    terms: Sequence[str],
    filters: Filters,
    vector: QueryVector | None = None,
    phrases: Sequence[Sequence[str]] = (),
) -> Evidence:
    """Return an index's evidence in its plain form."""
    return index.evidence(terms, filters, vector, phrases).plain()


def nearest(evidence: Evidence) -> dict[str, tuple[float, int | None]]:
    """Return the nearest entries as id -> (cosine, start of its passage), rounded."""
    return {
        evidence.entries[key].id: (
            round(cosine, 4),
            None if passage is None else evidence.passages[passage].start,
        )
        for key, (cosine, passage) in evidence.nearest.items()
    }


def found(evidence: Evidence, term: int = 0) -> dict[tuple[str, int], int]:
    """Return a term's postings as (id, start of the passage) -> occurrences."""
    counts: dict[tuple[str, int], int] = {}
    for passage, number, occurrences in evidence.postings:
        if number == term:
            facts = evidence.passages[passage]
            place = (evidence.entries[facts.entry].id, facts.start)
            assert place not in counts, "a term has one posting a passage"
            counts[place] = occurrences
    return counts


class IndexContract(ABC):
    """What every index promises."""

    @abstractmethod
    def make(self, folder: Path, clock: Clock) -> Index:
        """Return an empty index."""

    @pytest.fixture
    def clock(self) -> Clock:
        """The clock that the index looks at."""
        return Clock()

    @pytest.fixture
    def index(self, tmp_path: Path, clock: Clock) -> Iterator[Index]:
        """An empty index."""
        index = self.make(tmp_path, clock)
        yield index
        index.close()

    def test_an_empty_index_knows_nothing(self, index: Index) -> None:
        """A fresh index answers every question with nothing."""
        assert index.listing() == {}
        assert index.count() == 0
        assert index.tags() == {}
        assert index.problems() == []
        assert index.backlog("id") == 0
        assert index.claim("id", limit=5, lease_s=1) == []
        assert index.select(Filters(), limit=5, offset=0) == Selection(0, ())
        assert asked(index, ["a"], Filters(), looking(1, 0)) == Evidence(0, 0.0, (0,), [], {}, {})

    def test_location_tells_where_it_is(self, index: Index) -> None:
        """The location is text for messages."""
        assert index.location

    # update, listing, count, clear

    def test_listing_gives_each_version(self, index: Index) -> None:
        """An indexed entry is listed under its version, until it is removed."""
        index.update([entry(1, version="a", sidecar_version="s"), entry(2, version="b")])
        assert index.listing() == {"entry-1": Version.of("a", "s"), "entry-2": Version.of("b")}
        assert index.count() == 2
        index.update([entry(2, version="c")], [EntryId("entry-1"), EntryId("unknown")])
        assert index.listing() == {"entry-2": Version.of("c")}
        assert index.count() == 1

    def test_update_replaces_what_was_known(self, index: Index) -> None:
        """The terms, tags, dates and facts of an older version are gone."""
        index.update([entry(1, ["old"], ["old"], project="/was")])
        index.update([entry(1, ["new"], version="2", hours=7, project="/is")])
        evidence = asked(index, ["old", "new"], Filters())
        assert (evidence.frequencies, found(evidence, 1)) == ((0, 1), {("entry-1", 0): 1})
        assert evidence.mean_length == 1.0
        assert [facts.created for facts in evidence.entries.values()] == [
            to_milliseconds(START + timedelta(hours=7))
        ]
        assert index.select(Filters(project="/was"), limit=9, offset=0).total == 0
        assert index.select(Filters(project="/is"), limit=9, offset=0).total == 1

    def test_the_same_version_is_left_as_it_is(self, index: Index) -> None:
        """An entry under the very same version changes nothing."""
        index.update([entry(1, ["first"])])
        before = index.generation()
        index.update([entry(1, ["second"])])
        assert index.generation() == before
        assert asked(index, ["first", "second"], Filters()).frequencies == (1, 0)

    def test_an_entry_removed_and_given_is_indexed_anew(self, index: Index) -> None:
        """Removals come first, so that an id in both is indexed as given."""
        index.update([entry(1, ["first"])])
        index.update([entry(1, ["second"])], [EntryId("entry-1")])
        assert asked(index, ["first", "second"], Filters()).frequencies == (0, 1)

    def test_update_is_all_or_nothing(self, index: Index) -> None:
        """An update that fails in its middle leaves the index as it was."""
        index.update([entry(1, version="1")])
        before = index.generation()
        broken = entry(3)._replace(created="never")  # type: ignore[arg-type] # the fault
        with pytest.raises((TypeError, AttributeError)):
            index.update([entry(2), broken], [EntryId("entry-1")])
        assert index.listing() == {"entry-1": Version.of("1")}
        assert index.generation() == before

    def test_clear_forgets_everything(self, index: Index) -> None:
        """After clear the index is as empty as a fresh one, dimensions included."""
        index.update([entry(1), tagged(2, "tag"), troubled(3, Problem("p", "r"))])
        index.add_vectors("id", [made(1, (1, 0))])
        index.claim("id", limit=9, lease_s=99)
        index.clear()
        self.test_an_empty_index_knows_nothing(index)
        index.update([entry(1)])
        assert index.backlog("id") == 1
        index.add_vectors("id", [made(1, (1, 0, 0))])
        assert index.backlog("id") == 0
        assert asked(index, ["word"], Filters()).frequencies == (1,)

    def test_verify_leaves_a_sound_index_alone(self, index: Index) -> None:
        """Whatever was put in, changed and taken out: nothing is found or made different."""
        index.verify()
        index.update([tagged(number, "tag", "other") for number in range(4)])
        index.update([entry(1, ("word", "more", "more"))], [EntryId("entry-2")])
        index.add_vectors("id", [made(1, (1, 0))])
        before = index.generation(), index.listing(), index.tags(), index.backlog("id")
        index.verify()
        assert before == (index.generation(), index.listing(), index.tags(), index.backlog("id"))
        index.clear()
        index.verify()
        assert index.count() == 0

    def test_purge_forgets_entries_alone(self, index: Index) -> None:
        """Those that are named, as if they had never been; they may come again."""
        index.update([entry(number, ("word", f"w{number}")) for number in range(3)])
        index.purge([EntryId("entry-1"), EntryId("unknown")])
        assert set(index.listing()) == {"entry-0", "entry-2"}
        assert index.count() == 2
        evidence = index.evidence(["word", "w1"], Filters())
        assert isinstance(evidence, Evidence)
        assert evidence.frequencies == (2, 0)
        index.purge([])
        index.update([entry(1, ("word",))])
        assert index.count() == 3

    def test_any_strings_are_kept(self, index: Index) -> None:
        """Ids, tags, paths and versions may be any strings, lone surrogates and NUL too."""
        odd = "a b\x00\udcff\U0001f600'\"\n"
        given = IndexedEntry(
            EntryId(odd),
            Version.of(odd, odd),
            START,
            Provenance(project=odd, agent=odd),
            (odd,),
            odd,
            (IndexedPassage(0, 0, 1, (odd,)),),
            Sidecar(odd, (1.0, 0.0)),
            (Problem(odd, odd),),
            (EntryId(odd),),
        )
        index.update([given])
        assert index.listing() == {odd: Version.of(odd, odd)}
        assert index.tags() == {odd: 1}
        assert index.problems() == [Problem(odd, odd)]
        assert index.corrections().superseding == {odd: (odd,)}
        evidence = asked(
            index,
            [odd],
            Filters(project=odd.strip(), tags=(odd.strip(),)),
            looking(1, 0, model=odd),
        )
        assert nearest(evidence) == {odd: (1.0, None)}
        assert [facts.title_key for facts in evidence.entries.values()] == [odd]
        assert index.claim(odd, limit=1, lease_s=1) == [odd]
        index.update([], [EntryId(odd)])
        assert index.count() == 0

    # corrections

    def test_corrections_are_told_the_other_way_round(self, index: Index) -> None:
        """Newest first, ties by id, highest first; targets need not be there; circles may be."""
        one, two, three, gone = (EntryId(f"entry-{number}") for number in (1, 2, 3, 9))
        assert index.corrections() == Corrections()
        index.update(
            [
                entry(1)._replace(supersedes=(gone, two), annotates=(three,)),
                entry(2)._replace(supersedes=(one, gone)),
                entry(3, hours=2)._replace(annotates=(one, gone), supersedes=(gone,)),
            ]
        )
        expected = Corrections(
            {gone: (three, two, one), two: (one,), one: (two,)},
            {three: (one,), one: (three,), gone: (three,)},
        )
        assert index.corrections() == expected
        assert index.corrections() is index.corrections()
        index.update([entry(2, sidecar_version="s")._replace(passages=None)])
        assert index.corrections() == expected

    def test_corrections_go_with_their_entries(self, index: Index) -> None:
        """What an older version of an entry said, or one that is gone, counts no more."""
        one, two = EntryId("entry-1"), EntryId("entry-2")
        index.update([entry(1)._replace(supersedes=(two,)), entry(2)._replace(annotates=(one,))])
        index.update([entry(1, version="2")])
        assert index.corrections() == Corrections({}, {one: (two,)})
        index.update([], [one])
        assert index.corrections() == Corrections({}, {one: (two,)})
        index.update([], [two])
        assert index.corrections() == Corrections()
        index.update([entry(2)._replace(supersedes=(one,))])
        index.clear()
        assert index.corrections() == Corrections()

    # generation

    def test_generation_differs_after_any_change(self, index: Index) -> None:
        """Updates, removals, vectors and clearing each give a new generation; questions do not."""
        seen = [index.generation()]
        changes: tuple[Callable[[], object], ...] = (
            lambda: index.update([entry(1)]),
            lambda: index.update([entry(1, version="2")]),
            lambda: index.update([entry(1, version="2", sidecar_version="s")]),
            lambda: index.add_vectors("id", [made(1, (1, 0), version="2")]),
            lambda: index.update([], [EntryId("entry-1")]),
            index.clear,
        )
        for change in changes:
            change()
            assert index.generation() == index.generation()
            assert index.generation() not in seen
            seen.append(index.generation())
        asked(index, ["a"], Filters())
        index.listing()
        index.update([], [EntryId("unknown")])
        index.add_vectors("id", [made(1, (1, 0))])
        index.update([])
        index.add_vectors("id", [])
        assert index.generation() == seen[-1]

    def test_origin_differs_after_clearing_alone(self, index: Index) -> None:
        """Whatever else is done, what was put in stays until it is named."""
        seen = index.origin()
        index.update([entry(1), entry(2)])
        index.update([entry(1, version="2")], [EntryId("entry-2")])
        index.add_vectors("id", [made(1, (1, 0), version="2")])
        index.purge([EntryId("entry-1")])
        assert index.origin() == seen
        index.clear()
        assert index.origin() != seen

    # select and filters

    def test_select_gives_the_newest_first(self, index: Index) -> None:
        """Entries come newest first, those of one instant by id, highest first."""
        index.update(
            [entry(1, entry_id=name, hours=hours) for name, hours in [("b", 1), ("é", 2), ("a", 1)]]
            + [entry(1, entry_id="old", hours=-1e6)]
        )
        ids = tuple(map(EntryId, ("é", "b", "a", "old")))
        assert index.select(Filters(), limit=9, offset=0) == Selection(4, ids)
        assert index.select(Filters(), limit=2, offset=1) == Selection(4, ids[1:3])
        assert index.select(Filters(), limit=2, offset=9) == Selection(4, ())

    @pytest.mark.parametrize(
        ("filters", "passing"),
        [
            (Filters(), {0, 1, 2, 3, 4, 5}),
            (Filters(project="/home/me/app"), {0, 2}),
            (Filters(project="app"), {0, 1, 2, 3}),
            (Filters(project="me/app"), set()),
            (Filters(project="c:\\users\\me\\app"), {1}),
            (Filters(project="ap"), set()),
            (Filters(project="straße"), set()),
            (Filters(project="strasse"), {4}),
            (Filters(tags=("x",)), {0, 1, 2}),
            (Filters(tags=("x", "y")), {1, 2}),
            (Filters(tags=("y", "x", "z")), {2}),
            (Filters(tags=("x", "none")), set()),
            (Filters(any_tags=("z", "none")), {2, 3}),
            (Filters(any_tags=("none",)), set()),
            (Filters(tags=("x",), any_tags=("z", "y")), {1, 2}),
            (Filters(not_tags=("z", "none")), {0, 1, 4, 5}),
            (Filters(tags=("x",), not_tags=("z",)), {0, 1}),
            (Filters(agent="build", model="m", provider="p", session="s"), {5}),
            (Filters(agent="build", model="other"), set()),
            (Filters(since=to_milliseconds(START + timedelta(hours=4))), {4, 5}),
            (Filters(until=to_milliseconds(START + timedelta(hours=1))), {0, 1}),
            (Filters(since=0, until=0), set()),
            (Filters(project="app", tags=("x",), until=to_milliseconds(START)), {0}),
        ],
    )
    def test_filters_mean_what_accepts_means(
        self, index: Index, filters: Filters, passing: set[int]
    ) -> None:
        """Exactly the entries that `Filters.accepts` takes are selected and bear evidence."""
        origins = (
            Provenance(project="/home/me/App"),
            Provenance(project="C:\\Users\\me\\app"),
            Provenance(project="/home/me/app/"),
            Provenance(project=" APP "),
            Provenance(project="/x/Straße"),
            Provenance(agent="Build", model="M", provider="P", session="S"),
        )
        tags = (("X",), ("x", "Y"), ("Z", "x", "X", "y"), ("z",), (), ())
        entries = [
            IndexedEntry(
                one.id, one.version, one.created, origin, carried, one.title_key, one.passages
            )
            for number, (origin, carried) in enumerate(zip(origins, tags, strict=True))
            for one in (entry(number),)
        ]
        assert {
            number
            for number, one in enumerate(entries)
            if filters.accepts(to_milliseconds(one.created), one.provenance, one.tags)
        } == passing
        index.update(entries)
        index.add_vectors("id", [made(number, (1, 0)) for number in range(6)])
        selection = index.select(filters, limit=9, offset=0)
        ids = {f"entry-{number}" for number in passing}
        assert (selection.total, set(selection.ids)) == (len(ids), ids)
        evidence = asked(index, ["word"], filters, looking(1, 0))
        assert {facts.id for facts in evidence.entries.values()} == ids
        assert evidence.compared == len(ids)
        assert (evidence.entry_count, evidence.frequencies) == (6, (6,))

    @pytest.mark.parametrize(
        ("project", "passing"),
        [
            ("shop", {0, 1, 2, 3, 4, 6}),
            ("github.com/acme/shop", {0, 1, 2}),
            ("acme/shop", set()),
            ("/srv/shop", {0, 3, 4, 6}),
            ("op", set()),
            ("f00d", {4}),
            ("other", {6}),
            (Project(), set()),
            (Project(repo="GitHub.com/Acme/Shop"), {0, 1, 2}),
            (Project(repo="f00d"), {4}),
            (Project(folders=("/SRV/Shop/",)), {3, 4}),
            (Project(folders=("/srv/shop",), repo="h/acme"), {3, 4}),
            (Project(tree="/srv/shop"), {3, 4, 5}),
            (Project(tree="/srv/shop", repo="github.com/acme/shop"), {0, 1, 2, 3, 4, 5}),
            (Project(tree="/srv", folders=("/x/é",)), {3, 5, 7, 8}),
            (Project(tree="/"), {3, 5, 7, 8, 9}),
            (Project(folders=("", "c:\\app")), {10}),
        ],
    )
    def test_projects_mean_what_accepts_means(
        self, index: Index, project: str | Project, passing: set[int]
    ) -> None:
        """A repository is found in each of its folders, and a folder by its whole name alone."""
        origins = (
            Provenance(project="/srv/shop", repo="github.com/acme/shop"),
            Provenance(project="/home/me/renamed", repo="github.com/Acme/Shop"),
            Provenance(repo=" GitHub.com/acme/shop "),
            Provenance(project="/srv/shop"),
            Provenance(project="/srv/shop/", repo="f00d"),
            Provenance(project="/srv/Shop/cart"),
            Provenance(project="/srv/shop", repo="github.com/acme/other"),
            Provenance(project="/srv/shop-2"),
            Provenance(project="/X/É"),
            Provenance(project="/"),
            Provenance(project="C:\\App\\"),
            Provenance(),
        )
        entries = [
            entry(number)._replace(provenance=origin) for number, origin in enumerate(origins)
        ]
        filters = Filters.of(Query(project=project), START)
        assert {
            number for number, origin in enumerate(origins) if filters.accepts(0, origin, ())
        } == passing
        index.update(entries)
        ids = {f"entry-{number}" for number in passing}
        assert set(index.select(filters, limit=99, offset=0).ids) == ids
        evidence = asked(index, ["word"], filters)
        assert {facts.id for facts in evidence.entries.values()} == ids

    def test_no_number_of_tags_is_too_large(self, index: Index) -> None:
        """A query may name more tags than SQLite has variables."""
        index.update([tagged(1, "tag-7")])
        many = tuple(f"tag-{number}" for number in range(40_000))
        assert index.select(Filters(any_tags=many), limit=9, offset=0).total == 1
        assert index.select(Filters(tags=many), limit=9, offset=0).total == 0

    # evidence of words

    def test_postings_count_every_occurrence(self, index: Index) -> None:
        """Each passage that holds a term says how often, where it stands and how long it is."""
        index.update([entry(1, ["a", "b", "a"], ["b"], ["a"]), entry(2, ["c", "a"])])
        evidence = asked(index, ["a", "b", "none"], Filters())
        assert found(evidence, 0) == {("entry-1", 0): 2, ("entry-1", 20): 1, ("entry-2", 0): 1}
        assert found(evidence, 1) == {("entry-1", 0): 1, ("entry-1", 10): 1}
        assert found(evidence, 2) == {}
        assert evidence.frequencies == (2, 1, 0)
        assert evidence.entry_count == 2
        assert math.isclose(evidence.mean_length, 7 / 4)
        assert sorted(facts[1:] for facts in evidence.passages.values()) == [
            *[(0, 9, 2), (0, 9, 3), (10, 19, 1), (20, 29, 1)]
        ]
        assert {facts.id: facts[1:] for facts in evidence.entries.values()} == {
            f"entry-{number}": (
                to_milliseconds(START + timedelta(hours=number)),
                f" title {number} ",
            )
            for number in (1, 2)
        }

    def test_only_what_passes_appears_but_all_is_counted(self, index: Index) -> None:
        """Filters narrow postings and entries; statistics stay those of the whole journal."""
        index.update([entry(1, ["a"], agent="x"), entry(2, ["a", "a", "b"]), entry(3, ["c"])])
        evidence = asked(index, ["a", "b"], Filters(agent="x"))
        assert found(evidence) == {("entry-1", 0): 1}
        assert [facts.id for facts in evidence.entries.values()] == ["entry-1"]
        assert len(evidence.passages) == 1
        assert (evidence.entry_count, evidence.frequencies) == (3, (2, 1))
        assert math.isclose(evidence.mean_length, 5 / 3)

    @pytest.mark.parametrize("term", ODD_TERMS, ids=lambda term: f"{term[:12]!a} {len(term)}")
    def test_terms_match_exactly(self, index: Index, term: str) -> None:
        """A term is found as itself, however odd it is, and by no other term."""
        index.update([entry(1, [term, "b", term]), entry(2, ["b"]), entry(3, ODD_TERMS)])
        evidence = asked(index, [term], Filters())
        assert found(evidence) == {("entry-1", 0): 2, ("entry-3", 0): 1}
        assert sorted(facts.length for facts in evidence.passages.values()) == [3, len(ODD_TERMS)]

    def test_many_passages_and_terms_are_fine(self, index: Index) -> None:
        """An entry of a thousand passages is indexed, found at its end, and replaced."""
        passages = [[f"t{number}", "common"] for number in range(1_200)]
        index.update([entry(1, *passages)])
        evidence = asked(index, [f"t{number}" for number in range(1_190, 1_200)], Filters())
        assert len(evidence.postings) == 10
        assert len(found(asked(index, ["common"], Filters()))) == 1_200
        index.update([entry(1, ["common"], version="2")])
        assert len(found(asked(index, ["common"], Filters()))) == 1

    def test_evidence_may_be_asked_without_terms(self, index: Index) -> None:
        """Neither terms nor a vector: statistics alone."""
        index.update([entry(1)])
        assert asked(index, [], Filters()) == Evidence(1, 1.0, (), [], {}, {})

    # evidence of vectors

    def test_the_best_passage_speaks_for_an_entry(self, index: Index) -> None:
        """An entry is as near as its nearest passage, and that one is named."""
        index.update([entry(1, ["a"], ["a"], ["a"]), entry(2, ["b"])])
        index.add_vectors("id", [made(1, (0, 1), (1, 0), (1, 1)), made(2, (-1, 1))])
        evidence = asked(index, [], Filters(), looking(1, 0))
        assert nearest(evidence) == {"entry-1": (1.0, 10)}
        assert evidence.compared == 2
        assert math.isclose(evidence.cosine_mean, (1 - 0.5**0.5) / 2, abs_tol=1e-6)
        assert math.isclose(evidence.cosine_deviation, (1 + 0.5**0.5) / 2, abs_tol=1e-6)
        assert {facts.id for facts in evidence.entries.values()} == {"entry-1"}
        assert len(evidence.passages) == 1

    def test_the_first_of_equal_passages_is_named(self, index: Index) -> None:
        """Of passages that are equally near, the first one counts."""
        index.update([entry(1, ["a"], ["b"], ["c"])])
        index.add_vectors("id", [made(1, (0, 1), (1, 0), (1, 0))])
        assert nearest(asked(index, [], Filters(), looking(1, 0))) == {"entry-1": (1.0, 10)}

    def test_an_entry_found_by_words_tells_its_cosine_too(self, index: Index) -> None:
        """Below the floor an entry is named when it has a posting, and only then."""
        index.update([entry(1, ["a"]), entry(2, ["b"]), entry(3, ["a"])])
        index.add_vectors("id", [made(1, (-1, 0)), made(2, (-1, 0))])
        evidence = asked(index, ["a"], Filters(), looking(1, 0))
        assert nearest(evidence) == {"entry-1": (-1.0, 0)}
        assert len(evidence.postings) == 2
        assert evidence.compared == 2

    def test_the_floor_itself_is_enough(self, index: Index) -> None:
        """A cosine equal to the floor makes an entry a hit."""
        index.update([entry(1)])
        index.add_vectors("id", [made(1, (1, 0))])
        assert nearest(asked(index, [], Filters(), looking(1, 0, floor=1.0)))

    def test_vectors_of_other_embedders_are_not_compared(self, index: Index) -> None:
        """Several embedders' vectors live side by side, of different lengths too."""
        index.update([entry(1), entry(2)])
        index.add_vectors("id", [made(1, (1, 0))])
        index.add_vectors("other", [made(1, (0, 1, 0)), made(2, (1, 0, 0))])
        assert nearest(asked(index, [], Filters(), looking(1, 0))) == {"entry-1": (1.0, 0)}
        evidence = asked(index, [], Filters(), looking(1, 0, 0, identity="other"))
        assert nearest(evidence) == {"entry-2": (1.0, 0)}
        assert index.backlog("id") == 1
        assert index.backlog("other") == 0

    @pytest.mark.parametrize("vector", [None, looking(1, 0)])
    def test_phrases_are_terms_in_a_row(self, index: Index, vector: QueryVector | None) -> None:
        """Within one passage and in order, with nothing between; odd terms are no syntax."""
        odd = 'q"uote'
        index.update(
            [
                entry(1, ["a", "b", "c"]),
                entry(2, ["b", "a"]),
                entry(3, ["a"], ["b"]),
                entry(4, ["a", "x", "b"]),
                entry(5, [odd, "*", "a"], agent="other"),
            ]
        )
        index.add_vectors("id", [made(number, (1, 0)) for number in (1, 2, 4, 5)])

        def phrased(*phrases: Sequence[str], terms: Sequence[str] = ("a", "b")) -> set[str]:
            evidence = asked(index, terms, Filters(), vector, phrases)
            return {evidence.entries[key].id for key in evidence.phrased}

        assert phrased() == phrased([]) == set()
        assert phrased(["a", "b"]) == {"entry-1"}
        assert phrased(["b", "a"], ["x"]) == {"entry-2", "entry-4"}
        assert phrased([odd, "*"]) == {"entry-5"}
        assert phrased(["missing"], [odd, "a"]) == set()
        assert phrased([odd, "*"], terms=["b"]) == set()
        others = asked(index, ["a"], Filters(agent="nobody"), vector, [["a"]])
        assert others.phrased == frozenset()

    def test_a_title_can_be_nearest(self, index: Index) -> None:
        """Its vector counts as a passage's does, and names none; a passage as near goes first."""
        index.update([entry(1, ["a"], ["b"]), entry(2)])
        titled = PassageVectors(EntryId("entry-1"), "1", rows((0, 1), (1, 1), (1, 0)))
        index.add_vectors("id", [titled, made(2, (1, 0))])
        evidence = asked(index, [], Filters(), looking(1, 0))
        assert nearest(evidence) == {"entry-1": (1.0, None), "entry-2": (1.0, 0)}
        assert evidence.compared == 2

    def test_a_passage_may_have_several_vectors(self, index: Index) -> None:
        """Each is compared, and the passage named for the nearest of them; the title names none."""
        index.update([entry(1, ["a"], ["b"], ["c"]), entry(2), entry(3, ["a"], ["b"])])
        parts = rows((0, 1), (0, 1), (1, 1), (1, 0), (0, 1), (-1, 1))
        several = PassageVectors(EntryId("entry-1"), "1", parts, (1, 3, 1))
        titled = PassageVectors(
            EntryId("entry-3"), "1", rows((0, 1), (0, 1), (0, 1), (1, 0)), (2, 1)
        )
        index.add_vectors("id", [several, made(2, (1, 0)), titled])
        evidence = asked(index, [], Filters(), looking(1, 0))
        found = {"entry-1": (1.0, 10), "entry-2": (1.0, 0), "entry-3": (1.0, None)}
        assert nearest(evidence) == found
        assert (evidence.compared, index.backlog("id")) == (3, 0)
        index.update([], [EntryId("entry-2")])
        del found["entry-2"]
        assert nearest(asked(index, [], Filters(), looking(1, 0))) == found

    def test_a_sidecar_stands_in_for_missing_vectors(self, index: Index) -> None:
        """It is normalised, means the whole entry, and gives way to passage vectors."""
        index.update([entry(1, ["a"], ["b"], sidecar=Sidecar("model", (3.0, 4.0)))])
        evidence = asked(index, [], Filters(), looking(1, 0))
        assert nearest(evidence) == {"entry-1": (0.6, None)}
        assert (evidence.passages, evidence.compared) == ({}, 1)
        assert index.backlog("id") == 1
        index.add_vectors("id", [made(1, (0, 1), (0, 1))])
        evidence = asked(index, [], Filters(), looking(1, 0))
        assert (nearest(evidence), evidence.compared) == ({}, 1)

    def test_sidecars_and_vectors_are_compared_together(self, index: Index) -> None:
        """Statistics are over both; each entry counts once."""
        index.update([entry(1), entry(2, sidecar=Sidecar("model", (0.0, 2.0))), entry(3)])
        index.add_vectors("id", [made(1, (1, 0))])
        evidence = asked(index, [], Filters(), looking(1, 0, floor=-1))
        assert nearest(evidence) == {"entry-1": (1.0, 0), "entry-2": (0.0, None)}
        assert (evidence.compared, evidence.cosine_mean, evidence.cosine_deviation) == (2, 0.5, 0.5)

    def test_sidecars_of_another_model_or_length_are_not_compared(self, index: Index) -> None:
        """Only a sidecar of the query's model and length counts."""
        index.update(
            [
                entry(1, sidecar=Sidecar("other", (1.0, 0.0))),
                entry(2, sidecar=Sidecar("model", (1.0, 0.0, 0.0))),
            ]
        )
        assert asked(index, [], Filters(), looking(1, 0)).compared == 0

    @pytest.mark.parametrize("size", [1e308, 1e-320, -1e200])
    def test_sidecars_of_any_size_are_normalised(self, index: Index, size: float) -> None:
        """Numbers whose squares overflow or vanish still give a direction."""
        index.update([entry(1, sidecar=Sidecar("model", (size, size)))])
        evidence = asked(index, [], Filters(), looking(1, 1, floor=-1))
        cosine, passage = nearest(evidence)["entry-1"]
        assert (cosine, passage) == (math.copysign(1.0, size), None)

    def test_vectors_stay_when_only_the_sidecar_changed(self, index: Index) -> None:
        """A new sidecar version takes over sidecar and problems; vectors and text stay."""
        index.update([entry(1, ["a"]), troubled(2, Problem("was", "r"))])
        index.add_vectors("id", [made(1, (1, 0))])
        sidecar = Sidecar("model", (0.0, 1.0))
        index.update(
            [
                entry(1, ["a"], sidecar_version="s", sidecar=sidecar),
                troubled(2, Problem("is", "r"), sidecar_version="s"),
            ]
        )
        assert index.listing()[EntryId("entry-1")] == Version.of("1", "s")
        assert index.problems() == [Problem("is", "r")]
        assert index.backlog("id") == 1
        evidence = asked(index, ["a"], Filters(), looking(1, 0))
        assert nearest(evidence) == {"entry-1": (1.0, 0)}
        other = asked(index, [], Filters(), looking(0, 1, identity="none"))
        assert nearest(other) == {"entry-1": (1.0, None)}
        index.update([entry(1, ["a"], sidecar_version="t")])
        assert asked(index, [], Filters(), looking(0, 1, identity="none")).compared == 0

    def test_a_sidecar_can_come_without_the_text(self, index: Index) -> None:
        """What is indexed of an unchanged text stays; sidecar, version and problems are new."""
        index.update([entry(1, ["a"])])
        index.add_vectors("id", [made(1, (1, 0))])
        sidecar = Sidecar("model", (0.0, 1.0))
        beside = entry(1, sidecar_version="s", sidecar=sidecar)._replace(
            passages=None,
            problems=(Problem("p", "r"),),
        )
        assert index.update([beside]) == []
        assert index.listing()[EntryId("entry-1")] == Version.of("1", "s")
        assert index.problems() == [Problem("p", "r")]
        assert nearest(asked(index, ["a"], Filters(), looking(1, 0))) == {"entry-1": (1.0, 0)}
        assert asked(index, [], Filters(), looking(0, 1, identity="none")).compared == 1
        assert index.update([beside]) == []

    def test_a_sidecar_without_its_text_is_asked_for_whole(self, index: Index) -> None:
        """An entry that is unknown, or known by another text, is named and left as it is."""
        index.update([entry(1, ["a"])])
        before = index.generation()
        beside = [
            entry(number, version="2", sidecar_version="s")._replace(passages=None)
            for number in (1, 2)
        ]
        assert index.update(beside) == ["entry-1", "entry-2"]
        assert index.generation() == before
        assert index.listing() == {EntryId("entry-1"): Version.of("1")}

    def test_vectors_go_with_the_text_they_were_made_from(self, index: Index) -> None:
        """A new version of the file joins the backlog again."""
        index.update([entry(1), entry(2)])
        index.add_vectors("id", [made(1, (1, 0)), made(2, (1, 0))])
        assert asked(index, [], Filters(), looking(1, 0)).compared == 2
        index.update([entry(1, version="2")], [EntryId("entry-2")])
        assert index.backlog("id") == 1
        assert asked(index, [], Filters(), looking(1, 0)).compared == 0

    def test_vectors_come_and_go_between_questions(self, index: Index) -> None:
        """Whatever was asked before, the answer is that of the vectors there are now."""
        index.update([entry(number) for number in range(8)])
        for number in range(8):
            index.add_vectors("id", [made(number, (1, number))])
            assert asked(index, [], Filters(), looking(1, 0)).compared == number + 1
        for number in range(7):
            index.update([], [EntryId(f"entry-{number}")])
            assert asked(index, [], Filters(), looking(1, 0)).compared == 7 - number
        index.add_vectors("id", [made(7, (1, 0))])
        assert nearest(asked(index, [], Filters(), looking(1, 0))) == {"entry-7": (1.0, 0)}

    def test_unfitting_vectors_are_passed_over(self, index: Index) -> None:
        """Vectors of another version, of unknown entries or of another number are not kept."""
        index.update([entry(1, ["a"], ["b"]), entry(2)])
        index.add_vectors(
            "id",
            [
                made(1, (1, 0), (1, 0), version="0"),
                made(1, (1, 0)),
                made(7, (1, 0)),
                made(2, (1, 0)),
                *(
                    PassageVectors(EntryId("entry-1"), "1", rows(*[(1, 0)] * 4), counts)
                    for counts in ((2,), (1, 1), (2, 2), (3, 0), (1, 1, 1))
                ),
            ],
        )
        assert index.backlog("id") == 1
        assert asked(index, [], Filters(), looking(1, 0)).compared == 1

    def test_another_length_is_refused(self, index: Index) -> None:
        """Neither vectors nor queries of another length than before are taken; nothing changes."""
        index.update([entry(1), entry(2), entry(3)])
        index.add_vectors("id", [made(1, (1, 0))])
        before = index.generation()
        with pytest.raises(DimensionMismatchError) as refused:
            index.add_vectors("id", [made(2, (1, 0)), made(3, (1, 0, 0))])
        assert (refused.value.expected, refused.value.actual) == (2, 3)
        with pytest.raises(DimensionMismatchError) as refused:
            asked(index, [], Filters(), looking(1, 0, 0))
        assert (refused.value.expected, refused.value.actual) == (2, 3)
        assert (index.backlog("id"), index.generation()) == (2, before)
        with pytest.raises(DimensionMismatchError):
            index.add_vectors("new", [made(2, (1, 0)), made(3, (1, 0, 0))])
        index.add_vectors("new", [made(3, (1, 0, 0))])
        assert index.backlog("new") == 2

    # backlog and claims

    def test_a_claim_excludes_others_until_it_is_done(self, index: Index) -> None:
        """Entries are given to one worker, newest first, until their vectors are there."""
        index.update([entry(number) for number in range(4)])
        assert index.claim("id", limit=2, lease_s=60) == ["entry-3", "entry-2"]
        index.add_vectors("id", [made(3, (1, 0))])
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1", "entry-0"]
        assert index.claim("id", limit=9, lease_s=60) == []
        assert index.claim("other", limit=1, lease_s=60) == ["entry-3"]
        assert index.claim("other", limit=0, lease_s=60) == []
        assert index.backlog("id") == 3

    def test_a_claim_is_given_back(self, index: Index) -> None:
        """What is released may be claimed at once, by anybody; other leases stay."""
        index.update([entry(number) for number in range(3)])
        assert len(index.claim("id", limit=9, lease_s=60)) == 3
        index.claim("other", limit=9, lease_s=60)
        index.release("id", [EntryId("entry-1"), EntryId("unknown")])
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1"]
        index.release("unknown", [EntryId("entry-0")])
        index.release("id", [])
        assert index.claim("id", limit=9, lease_s=60) == []
        assert index.claim("other", limit=9, lease_s=60) == []

    def test_a_lease_ends(self, index: Index, clock: Clock) -> None:
        """What a worker does not finish is given to somebody else afterwards."""
        index.update([entry(1)])
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1"]
        clock.now += 59.0
        assert index.claim("id", limit=9, lease_s=60) == []
        clock.now += 1.0
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1"]

    def test_a_clock_set_back_blocks_nothing(self, index: Index, clock: Clock) -> None:
        """A lease from the future counts for nothing."""
        index.update([entry(1)])
        index.claim("id", limit=9, lease_s=60)
        clock.now -= 1_000.0
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1"]

    def test_a_changed_entry_may_be_claimed_at_once(self, index: Index) -> None:
        """The lease of the old text does not keep the new text back."""
        index.update([entry(1)])
        index.claim("id", limit=9, lease_s=60)
        index.update([entry(1, version="2")])
        assert index.claim("id", limit=9, lease_s=60) == ["entry-1"]

    def test_claims_go_on_where_the_last_one_ended(self, index: Index, clock: Clock) -> None:
        """What was written meanwhile comes first; what a worker gave up comes round again."""
        index.update([entry(number) for number in range(8)])
        assert index.claim("id", limit=2, lease_s=60) == ["entry-7", "entry-6"]
        index.add_vectors("id", [made(7, (1, 0))])
        index.update([entry(9)])
        assert index.claim("id", limit=2, lease_s=60) == ["entry-9", "entry-5"]
        clock.now += 30.0
        assert index.claim("id", limit=2, lease_s=60) == ["entry-4", "entry-3"]
        clock.now += 30.0
        assert index.claim("id", limit=9, lease_s=60) == [f"entry-{n}" for n in (9, 6, 5, 2, 1, 0)]
        clock.now += 30.0
        assert index.claim("id", limit=9, lease_s=60) == ["entry-4", "entry-3"]

    # tags and problems

    def test_tags_are_counted_whatever_their_case(self, index: Index) -> None:
        """Spellings that differ in case count as one, under the one most entries use."""
        index.update(
            [
                *[tagged(1, "Zeta", "one"), tagged(2, "zeta"), tagged(3, "zeta", "ZETA", "Zeta")],
                *[tagged(4, "Ab", "B"), tagged(5, "ab", "a"), tagged(6, "Straße")],
            ]
        )
        assert list(index.tags().items()) == [
            *[("Zeta", 3), ("Ab", 2), ("B", 1), ("Straße", 1), ("a", 1), ("one", 1)]
        ]
        index.update([tagged(1, version="2")], [EntryId("entry-4")])
        assert list(index.tags().items()) == [*[("zeta", 2), ("Straße", 1), ("a", 1), ("ab", 1)]]

    def test_problems_are_ordered_by_path_and_line(self, index: Index) -> None:
        """All entries' problems are told, until the entry is whole or gone."""
        first, second = Problem("/a", "r", 2), Problem("/a", "r", 10)
        whole, other = Problem("/a", "r"), Problem("/b", "a", 1)
        index.update([troubled(1, other, second), troubled(2, first, whole)])
        assert index.problems() == [whole, first, second, other]
        index.update([entry(1, version="2")], [EntryId("entry-2")])
        assert index.problems() == []

    # threads, close

    def test_threads_may_call_at_once(self, index: Index) -> None:
        """Writers and readers in several threads all succeed, and each answer is of one moment."""
        index.update([entry(0, ["even", "odd"])])
        failures: list[BaseException] = []
        start = threading.Barrier(6)

        def write(worker: int) -> None:
            for number in range(15):
                one = 100 * worker + number
                index.update([entry(one, ["even"], ["odd"])])
                index.add_vectors("id", [made(one, (1, 0), (1, 0))])
                if number % 3 == 0:
                    index.update([], [EntryId(f"entry-{one}")])

        def read(_: int) -> None:
            for _ in range(40):
                evidence = asked(index, ["even", "odd"], Filters(), looking(1, 0))
                assert evidence.frequencies == (evidence.entry_count,) * 2
                assert len(evidence.entries) == evidence.entry_count
                assert len(evidence.nearest) == evidence.compared
                index.listing()
                index.tags()

        def run(worker: int) -> None:
            start.wait(10)
            try:
                (write if worker % 2 else read)(worker)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the test tells it
                failures.append(error)

        threads = [threading.Thread(target=run, args=(worker,)) for worker in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert index.count() == 1 + 3 * 10

    def test_close_may_be_repeated(self, index: Index) -> None:
        """Closing twice is no error."""
        index.update([entry(1)])
        index.close()
        index.close()


class TestMemoryIndex(IndexContract):
    """The oracle."""

    def make(self, folder: Path, clock: Clock) -> Index:
        """Return an index in memory."""
        del folder
        return MemoryIndex(clock)


class TestSqliteIndex(IndexContract):
    """The index on disk."""

    def make(self, folder: Path, clock: Clock) -> Index:
        """Return an index in a file of its own."""
        return SqliteIndex(folder / "index" / "journal.sqlite3", clock=clock)
