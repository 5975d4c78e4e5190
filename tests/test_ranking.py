"""Laws of the ranking, as properties of random evidence, and a few cases spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_journal import ranking
from agent_journal.evidence import (
    EntryFacts,
    Evidence,
    EvidenceArrays,
    Nearest,
    PassageFacts,
    Posting,
)
from agent_journal.model import EntryId, Reasons
from agent_journal.ports import Baseline
from agent_journal.ranking import Ranked, rank, titles_touch

BASELINE = Baseline(0.1, 0.1)
TERMS = ("alpha", "beta", "gamma")
KEY = " alpha beta gamma "


@st.composite
def evidences(draw: st.DrawFn, *, vectors: bool = True) -> Evidence:
    """Evidence of up to six entries with up to three passages each, as an index would give it."""
    entries: dict[int, EntryFacts] = {}
    passages: dict[int, PassageFacts] = {}
    postings: list[Posting] = []
    nearest: dict[int, Nearest] = {}
    for entry in range(draw(st.integers(1, 6))):
        keys = []
        for _ in range(draw(st.integers(1, 3))):
            key = len(passages)
            keys.append(key)
            length = draw(st.integers(3, 300))
            passages[key] = PassageFacts(entry, 900 * len(keys) - 900, 900 * len(keys), length)
            postings += [
                (key, term, draw(st.integers(1, 20)))
                for term in draw(st.sets(st.integers(0, len(TERMS) - 1)))
            ]
        if vectors and draw(st.booleans()):
            passage = draw(st.sampled_from([None, *keys]))
            nearest[entry] = (draw(st.floats(-1, 1, width=32)), passage)
        if entry in nearest or any(passage in keys for passage, _, _ in postings):
            title = draw(st.sampled_from(["", " other ", " beta ", " alpha beta gamma delta "]))
            entries[entry] = EntryFacts(EntryId(f"e{entry}"), draw(st.integers(0, 3)), title)
    used = {passage for passage, _, _ in postings}
    used |= {passage for _, passage in nearest.values() if passage is not None}
    worded = {passages[passage].entry for passage, _, _ in postings}
    holders = [{passages[key].entry for key, term, _ in postings if term == t} for t in range(3)]
    return Evidence(
        entry_count=draw(st.integers(6, 2000)),
        mean_length=draw(st.floats(3, 300)),
        frequencies=tuple(len(holding) for holding in holders),
        postings=postings,
        passages={key: facts for key, facts in passages.items() if key in used},
        entries=entries,
        nearest=nearest,
        compared=len(nearest),
        cosine_mean=draw(st.floats(-0.5, 0.5)) if nearest else 0.0,
        cosine_deviation=draw(st.floats(0, 0.3)) if nearest else 0.0,
        phrased=frozenset(
            draw(st.sets(st.sampled_from(sorted(worded))) if worded else st.just(set()))
        ),
    )


def judged(evidence: Evidence, key: str = KEY) -> list[Ranked]:
    """Rank with this module's query."""
    return list(rank(evidence, TERMS, key, BASELINE))


def score_of(evidence: Evidence, entry_id: str) -> float:
    """Return one entry's score."""
    return next(hit.score for hit in judged(evidence) if hit.id == entry_id)


def simple(
    *,
    postings: list[Posting] | None = None,
    nearest: dict[int, Nearest] | None = None,
    titles: tuple[str, ...] = ("", ""),
    count: int = 10,
) -> Evidence:
    """Two entries, created at 1 and 2, each with two passages of ten terms."""
    return Evidence(
        entry_count=count,
        mean_length=10.0,
        frequencies=(1, 1, 1),
        postings=postings or [],
        passages={
            key: PassageFacts(key // 2, key % 2 * 100, key % 2 * 100 + 90, 10)
            for key in range(2 * len(titles))
        },
        entries={
            at: EntryFacts(EntryId(f"e{at}"), at + 1, title) for at, title in enumerate(titles)
        },
        nearest=nearest or {},
        compared=len(nearest or {}),
        cosine_mean=0.1,
        cosine_deviation=0.1,
    )


@given(evidences())
def test_places_are_the_order_of_hits(evidence: Evidence) -> None:
    """By words alone and with vectors, among tied scores too."""
    for given_ in (evidence, evidence._replace(nearest={}, compared=0)):
        ranked = rank(given_, TERMS, KEY, BASELINE)
        assert list(ranked.places().items()) == [(hit.id, at) for at, hit in enumerate(ranked)]


@given(evidences())
def test_every_entry_comes_once_with_a_score_between_0_and_1_best_first(evidence: Evidence) -> None:
    """Ranking neither loses nor doubles an entry, and orders by score, then newest, then id."""
    hits = judged(evidence)
    assert sorted(hit.id for hit in hits) == sorted(facts.id for facts in evidence.entries.values())
    assert all(0 <= hit.score <= 1 for hit in hits)
    created = {facts.id: facts.created for facts in evidence.entries.values()}
    keys = [(hit.score, created[hit.id], hit.id) for hit in hits]
    assert keys == sorted(keys, reverse=True)


@given(evidences(vectors=False))
def test_arrays_and_mappings_rank_alike(evidence: Evidence) -> None:
    """With numpy and without it: the same order, scores, reasons and passages."""
    plainly, quickly = (
        list(rank(form, TERMS, KEY, None, ["beta"]))
        for form in (evidence, EvidenceArrays.of(evidence))
    )

    assert [hit[:1] + hit[2:5] for hit in quickly] == [hit[:1] + hit[2:5] for hit in plainly]
    assert [hit.score for hit in quickly] == pytest.approx([hit.score for hit in plainly])
    for one, other in zip(quickly, plainly, strict=True):
        assert one.reasons[1:] == other.reasons[1:]
        assert one.reasons.words == pytest.approx(other.reasons.words)


@given(evidences())
def test_evidence_says_the_same_in_both_forms(evidence: Evidence) -> None:
    """Keys become rows and nothing else changes, there and back."""

    def told(one: Evidence) -> object:
        def place(passage: int | None) -> tuple[object, ...]:
            if passage is None:
                return ()
            facts = one.passages[passage]
            return (one.entries[facts.entry], *facts[1:])

        return (
            sorted((place(passage), term, times) for passage, term, times in one.postings),
            sorted(place(passage) for passage in one.passages),
            sorted(one.entries.values()),
            sorted(
                (one.entries[key], cosine, place(passage))
                for key, (cosine, passage) in one.nearest.items()
            ),
            (one.entry_count, one.mean_length, one.frequencies),
            (one.compared, one.cosine_mean, one.cosine_deviation),
            sorted(one.entries[key] for key in one.phrased),
        )

    assert told(EvidenceArrays.of(evidence).plain()) == told(evidence.plain())


@given(evidences(), st.randoms())
def test_the_order_in_which_evidence_comes_does_not_matter(
    evidence: Evidence,
    random: st.randoms,  # type: ignore[valid-type]  # hypothesis' own name
) -> None:
    """Two engines that list the same facts in another order give the same answer."""
    postings = list(evidence.postings)
    random.shuffle(postings)  # type: ignore[attr-defined]  # it is a random.Random
    entries = dict(reversed(list(evidence.entries.items())))
    other = evidence._replace(postings=postings, entries=entries)
    for one, two in zip(judged(evidence), judged(other), strict=True):
        assert (one.id, one.found_by) == (two.id, two.found_by)
        assert one.score == pytest.approx(two.score)


@given(evidences(), st.data())
def test_another_occurrence_never_lowers_an_entry(evidence: Evidence, data: st.DataObject) -> None:
    """Lexical evidence is monotone: more of a term, and its score is at least what it was."""
    if not evidence.postings:
        return
    at = data.draw(st.integers(0, len(evidence.postings) - 1))
    more = list(evidence.postings)
    passage, term, occurrences = more[at]
    more[at] = (passage, term, occurrences + data.draw(st.integers(1, 9)))
    entry = evidence.entries[evidence.passages[passage].entry].id
    after = evidence._replace(postings=more)
    assert score_of(after, entry) >= score_of(evidence, entry) - 1e-12


@given(evidences(), st.data())
def test_one_more_matching_term_never_lowers_an_entry(
    evidence: Evidence, data: st.DataObject
) -> None:
    """Lexical evidence is monotone: a term found in one more passage helps or does nothing."""
    if not evidence.passages:
        return
    passage = data.draw(st.sampled_from(sorted(evidence.passages)))
    term = data.draw(st.integers(0, 2))
    if any((key, number) == (passage, term) for key, number, _ in evidence.postings):
        return
    after = evidence._replace(postings=[*evidence.postings, (passage, term, 1)])
    entry = evidence.entries[evidence.passages[passage].entry].id
    assert score_of(after, entry) >= score_of(evidence, entry) - 1e-12


@given(evidences(), st.data(), st.floats(0, 1))
def test_a_higher_cosine_never_lowers_an_entry(
    evidence: Evidence, data: st.DataObject, rise: float
) -> None:
    """Dense evidence is monotone, and a cosine where there was none is no loss either."""
    if not evidence.entries:
        return
    entry = data.draw(st.sampled_from(sorted(evidence.entries)))
    before = evidence.nearest.get(entry, (-1.0, None))
    raised = (min(before[0] + rise, 1.0), before[1])
    after = evidence._replace(nearest={**evidence.nearest, entry: raised})
    name = evidence.entries[entry].id
    assert score_of(after, name) >= score_of(evidence, name)


@given(evidences(), st.integers(0, 5))
def test_an_entry_without_a_vector_changes_nothing_for_others(
    evidence: Evidence, occurrences: int
) -> None:
    """Adding an entry that only words speak of leaves the scores of all others alone."""
    postings = list(evidence.postings)
    passages = {**evidence.passages, 99: PassageFacts(99, 0, 10, 5)}
    postings += [(99, 0, occurrences)] if occurrences else []
    entries = {**evidence.entries, 99: EntryFacts(EntryId("new"), 9, "")}
    after = evidence._replace(postings=postings, passages=passages, entries=entries)
    others = [hit for hit in judged(after) if hit.id != "new"]
    assert others == judged(evidence)


@given(evidences())
def test_a_touching_title_is_worth_three_quarters(evidence: Evidence) -> None:
    """Whatever else is known, an entry whose title touches the query scores at least 0.75."""
    touching = {
        facts.id for facts in evidence.entries.values() if titles_touch(KEY, facts.title_key)
    }
    for hit in judged(evidence):
        assert ("title" in hit.found_by) == (hit.id in touching)
        if hit.id in touching:
            assert hit.score >= 0.75


@given(evidences(vectors=False))
def test_without_vectors_no_baseline_is_needed(evidence: Evidence) -> None:
    """Lexical search gives the same answer with and without an embedder's baseline."""
    assert [*rank(evidence, TERMS, "", None)] == [*rank(evidence, TERMS, "", BASELINE)]
    assert all(hit.found_by == ("lexical",) for hit in rank(evidence, TERMS, "", None))


@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_a_journal_of_a_few_entries_ranks_sensibly(count: int) -> None:
    """Covering more of the query wins, and even a term that every entry holds counts."""
    one_term, all_terms = [(0, 0, 1)], [(2, term, 1) for term in range(3)]
    evidence = simple(postings=[*one_term, *all_terms], count=count)
    common = evidence._replace(frequencies=(count, count, count))
    for known in (evidence, common):
        first, second = judged(known)
        assert first.id == "e1"
        assert first.score > second.score > 0


def test_equal_evidence_comes_newest_first_then_highest_id() -> None:
    """Ties are settled by the entries' age, then by their ids."""
    evidence = simple(postings=[(0, 0, 1), (2, 0, 1)])
    assert [hit.id for hit in judged(evidence)] == ["e1", "e0"]
    same_age = {at: facts._replace(created=1) for at, facts in evidence.entries.items()}
    evidence = evidence._replace(entries=dict(reversed(list(same_age.items()))))
    assert [hit.id for hit in judged(evidence)] == ["e1", "e0"]


def test_the_passage_that_says_most_is_shown() -> None:
    """The best lexical passage, the earlier of equals, or the nearest one when meaning decides."""
    words = simple(postings=[(1, 0, 1), (0, 0, 1)], titles=("",))
    assert [(hit.start, hit.end) for hit in judged(words)] == [(0, 90)]
    more = simple(postings=[(0, 0, 1), (1, 0, 1), (1, 1, 1)], titles=("",))
    assert [(hit.start, hit.end) for hit in judged(more)] == [(100, 190)]
    near = simple(postings=[(0, 0, 1)], nearest={0: (0.9, 1)}, titles=("",))
    (hit,) = judged(near)
    assert (hit.start, hit.end) == (100, 190)
    assert hit.found_by == ("lexical", "dense")


def test_a_sidecar_shows_the_entry_unless_words_know_a_passage() -> None:
    """A vector of the whole entry names no passage, so the head stands for it."""
    alone = simple(nearest={0: (0.9, None)}, titles=("",))
    assert [(hit.start, hit.end, hit.found_by) for hit in judged(alone)] == [(0, 0, ("dense",))]
    both = simple(postings=[(1, 0, 1)], nearest={0: (0.9, None)}, titles=("",))
    assert [(hit.start, hit.end) for hit in judged(both)] == [(100, 190)]


def test_an_ordinary_cosine_is_no_reason_for_a_hit() -> None:
    """Words found an entry whose cosine is at most the ordinary one: meaning isn't named."""
    evidence = simple(postings=[(0, 0, 1)], nearest={0: (0.1, 0)}, titles=("",))
    assert judged(evidence)[0].found_by == ("lexical",)


def test_covering_the_query_beats_chance_overlap_and_vague_similarity() -> None:
    """An exact match of everything asked for beats one of its words and a middling cosine."""
    postings = [(0, term, 1) for term in range(3)] + [(2, 0, 5)]
    evidence = simple(postings=postings, nearest={0: (0.1, 0), 1: (0.35, 2)}, count=200)
    assert [hit.id for hit in judged(evidence)] == ["e0", "e1"]


@given(evidences())
def test_what_is_named_exactly_never_comes_after_mere_likeness(evidence: Evidence) -> None:
    """An identifier, or a phrase in quotes, is what the query asks for; a cosine is a guess."""
    hits = list(rank(evidence, TERMS, KEY, BASELINE, ["gamma"]))
    exact = {
        evidence.entries[evidence.passages[passage].entry].id
        for passage, term, _ in evidence.postings
        if TERMS[term] == "gamma"
    } | {evidence.entries[key].id for key in evidence.phrased}
    assert {hit.id for hit in hits if hit.reasons.exact} == exact
    lowest = min((hit.score for hit in hits if hit.reasons.exact), default=1.0)
    assert all(hit.score < lowest for hit in hits if hit.found_by == ("dense",))


@given(evidences())
def test_a_weak_hit_never_comes_before_what_is_named(evidence: Evidence) -> None:
    """By the query's identifier, its quotes or its title; in both forms, with vectors or without.

    In a large journal a long query's few common words weigh more than the floor of an exact name.
    """
    for count, base in ((10**9, BASELINE), (10, None)):
        large = evidence._replace(entry_count=count)
        for form in (large, EvidenceArrays.of(large)):
            hits = list(rank(form, TERMS, KEY, base, ["gamma"]))
            weak = [at for at, hit in enumerate(hits) if hit.reasons.is_weak]
            named = [at for at, hit in enumerate(hits) if hit.reasons.exact or hit.reasons.title]
            assert not weak or not named or max(named) < min(weak)


def test_a_long_query_in_common_words_gives_way_to_its_identifier() -> None:
    """Words that fill a third of a query of twenty weigh more than half; the name still wins."""
    terms = [f"w{number}" for number in range(40)]
    chance = [(0, number, 1) for number in range(14)]
    evidence = simple(postings=[*chance, (2, 39, 1)], count=1_000_000)._replace(
        frequencies=(1,) * 40
    )
    for form in (evidence, EvidenceArrays.of(evidence)):
        first, second = rank(form, terms, "", None, ["w39"])
        assert (first.id, first.reasons.exact) == ("e1", True)
        assert (second.id, second.reasons.is_weak) == ("e0", True)
        assert first.score > 0.5 > second.score > 0.4


@given(evidences(), st.data())
def test_a_quote_or_a_title_never_lowers_an_entry(evidence: Evidence, data: st.DataObject) -> None:
    """These kinds of evidence are monotone, too, whatever else speaks for the entry."""
    if not evidence.entries:
        return
    key = data.draw(st.sampled_from(sorted(evidence.entries)))
    name = evidence.entries[key].id
    before = score_of(evidence, name)
    titled = {**evidence.entries, key: evidence.entries[key]._replace(title_key=KEY)}
    assert score_of(evidence._replace(entries=titled), name) >= before
    quoted = evidence._replace(phrased=evidence.phrased | {key})
    assert score_of(quoted, name) >= before


@given(evidences(), st.floats(0.01, 1), st.floats(-0.2, 0.2))
def test_how_a_model_spreads_its_cosines_does_not_matter(
    evidence: Evidence, scale: float, shift: float
) -> None:
    """Squeezed near 1, as e5's, or spread around 0: by its own baseline the ranking is the same."""
    squeezed = evidence._replace(
        nearest={
            key: (scale * cosine + shift, passage)
            for key, (cosine, passage) in evidence.nearest.items()
        },
        cosine_mean=scale * evidence.cosine_mean + shift,
        cosine_deviation=scale * evidence.cosine_deviation,
    )
    baseline = Baseline(scale * BASELINE.mean + shift, scale * BASELINE.deviation)
    before = {hit.id: hit.score for hit in judged(evidence)}
    after = {hit.id: hit.score for hit in rank(squeezed, TERMS, KEY, baseline)}
    edge = BASELINE.mean + 3.2 * BASELINE.deviation  # where rounding decides what is weak
    assume(all(abs(cosine - edge) > 1e-6 for cosine, _ in evidence.nearest.values()))
    assert after == pytest.approx(before, abs=1e-6)


@given(evidences())
def test_a_hit_is_weak_when_nothing_of_it_stands_out(evidence: Evidence) -> None:
    """Neither a title, nor an exact name, nor much of the query, nor a cosine far above chance."""
    for hit in rank(evidence, TERMS, KEY, BASELINE, ["gamma"]):
        reasons = hit.reasons
        stands_out = reasons.title or reasons.exact or reasons.words >= 0.4
        if reasons.cosine is not None:
            stands_out = stands_out or reasons.cosine >= BASELINE.mean + 3.2 * BASELINE.deviation
        assert reasons.is_weak is not stands_out


def test_reasons_say_what_a_score_is_made_of() -> None:
    """The share of the words, the cosine, and how far it stands above the ordinary one."""
    evidence = simple(postings=[(0, 0, 1)], nearest={0: (0.5, 0), 1: (0.05, 2)}, count=200)
    first, second = judged(evidence)
    assert first.reasons.cosine == 0.5
    assert first.reasons.meaning == pytest.approx(4.0)
    assert 0.2 < first.reasons.words < 0.5
    assert second.reasons == Reasons(cosine=0.05, is_weak=True)


def test_a_cosine_that_stands_out_beats_chance_overlap() -> None:
    """One word of three in common gives way to an entry that plainly means the same."""
    evidence = simple(postings=[(0, 0, 1)], nearest={0: (0.1, 0), 1: (0.7, 2)}, count=200)
    assert [hit.id for hit in judged(evidence)] == ["e1", "e0"]


def test_an_unused_deviation_does_no_harm() -> None:
    """Without a baseline or a deviation, cosines are taken as they are."""
    evidence = simple(nearest={0: (0.9, 0)}, titles=("",))._replace(
        mean_length=0.0, cosine_deviation=0.0
    )
    assert 0 < rank(evidence, TERMS, "", Baseline(0.0, 0.0))[0].score < 1


@pytest.mark.parametrize(
    ("query", "title", "touching"),
    [
        (" flaky tests ", " flaky tests ", True),
        (" flaky tests ", " why flaky tests are flaky ", True),
        (" why are flaky tests so slow ", " flaky tests ", True),
        (" cat ", " concatenate ", False),
        (" c ", " the c api ", True),
        ("", " anything ", False),
        (" anything ", "", False),
        (" 学 ", " 机 器 学 习 ", False),
        (" 学 ", " 学 ", True),
        (" 学 习 ", " 机 器 学 习 ", True),
        (" tests flaky ", " flaky tests ", False),
    ],
)
def test_titles_touch_on_whole_words(query: str, title: str, touching: bool) -> None:  # noqa: FBT001 - a table
    """Equal, containing and contained, by whole words; either way round."""
    assert titles_touch(query, title) is touching
    assert titles_touch(title, query) is touching


def test_postings_are_looked_at_twice_at_most() -> None:
    """Five thousand postings are judged in two passes at most, so that the cost is theirs alone."""

    class Counting(list[Posting]):
        looks = 0

        def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204 - as list's own
            type(self).looks += 1
            return super().__iter__()

    postings = Counting((key % 2500, key % 3, 1) for key in range(5000))
    evidence = Evidence(
        entry_count=2000,
        mean_length=100.0,
        frequencies=(1500, 1500, 1500),
        postings=postings,
        passages={key: PassageFacts(key % 2000, 0, 90, 100) for key in range(2500)},
        entries={key: EntryFacts(EntryId(str(key)), key, "") for key in range(2000)},
    )
    assert len(judged(evidence)) == 2000
    assert Counting.looks <= 2


_KEY_WORDS = st.lists(st.sampled_from(["a", "b", "cd", "日", "本", "x1"]), max_size=5)
_KEYS = st.builds(lambda words: f" {' '.join(words)} " if words else "", _KEY_WORDS)


@given(
    query=_KEYS
    | st.builds(lambda keys: " ".join(keys).replace("  ", " "), st.lists(_KEYS, min_size=20)),
    keys=st.lists(_KEYS, max_size=12),
)
def test_touched_titles_are_those_that_touch(query: str, keys: list[str]) -> None:
    """However many words a query has, the quick way finds what asking of each title would."""
    expected = {row for row, key in enumerate(keys) if ranking.titles_touch(query, key)}
    entries = {at: EntryFacts(EntryId(f"e{at}"), 0, key) for at, key in enumerate(keys)}
    evidence = EvidenceArrays.of(Evidence(len(keys), 0.0, (), [], {}, entries))
    assert set(ranking._touched(query, evidence)) == expected


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2), st.text("ab", max_size=2)),
        max_size=12,
    )
)
def test_the_best_come_first_then_the_newest_then_by_id(rows: list[tuple[float, int, str]]) -> None:
    """As a plain sort has it, whatever is tied."""
    scores, created, ids = zip(*rows, strict=True) if rows else ((), (), ())
    order = ranking._best_first(
        np.array(scores, np.float64), np.array(created, np.int64), [EntryId(one) for one in ids]
    )
    assert [rows[row] for row in order.tolist()] == sorted(rows, reverse=True)
