"""What newer entries are worth when that is asked for: laws of the ranking, and the setting."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.shell import Shell
from tests.test_ranking import BASELINE, KEY, TERMS, evidences, simple

from agent_journal import ranking, shares
from agent_journal.assembly import open_journal
from agent_journal.config import load_settings
from agent_journal.engines.loading import NoEmbedder
from agent_journal.engines.memory import MemoryStore
from agent_journal.engines.memory_index import MemoryIndex
from agent_journal.errors import ConfigError
from agent_journal.evidence import Evidence, EvidenceArrays, Posting
from agent_journal.journal import Journal
from agent_journal.model import Draft
from agent_journal.query import Query
from agent_journal.ranking import EXACT_FLOOR, TITLE_FLOOR, Ranked, rank
from agent_journal.recency import BONUS_MAX, Recency, all_held, held

_DAY_MS = 86_400_000
NOW_MS = 20_000 * _DAY_MS


@st.composite
def ages(draw: st.DrawFn, evidence: Evidence) -> Evidence:
    """The same evidence of entries that are up to two years old, or of tomorrow."""
    days = st.integers(-1, 700) | st.sampled_from([0, 30])
    entries = {
        key: facts._replace(created=NOW_MS - draw(days) * _DAY_MS)
        for key, facts in evidence.entries.items()
    }
    return evidence._replace(entries=entries)


dated = st.one_of(evidences(), evidences(vectors=False)).flatmap(ages)
recencies = st.sampled_from([30.0, 365.0, 1e-300, 1e300]).map(
    lambda days: Recency(NOW_MS, days * _DAY_MS)
)


def hits_of(evidence: Evidence, recency: Recency | None = None) -> list[Ranked]:
    """Rank with this module's query, of which one term names something exactly."""
    return list(rank(evidence, TERMS, KEY, BASELINE, ["gamma"], recency))


def standing_of(hit: Ranked) -> int:
    """Return how much of what the query names a hit is or holds: an exact name, its title."""
    return hit.reasons.exact + 2 * hit.reasons.title


def is_dim(hit: Ranked) -> bool:
    """Tell whether a hit's words and meaning are such as chance brings."""
    cosine = -1.0 if hit.reasons.cosine is None else hit.reasons.cosine
    return hit.reasons.words < 0.4 and cosine < BASELINE.mean + 3.2 * BASELINE.deviation


def strength_of(score: float) -> float:
    """Return the strength that a score stands for, by itself."""
    return 10 * math.sqrt(score / (1 - score)) if score < 1 else math.inf


@given(dated)
def test_without_recency_an_age_settles_ties_alone(evidence: Evidence) -> None:
    """Off, which is the default: the very scores and reasons, whatever the ages are."""
    sealed = evidence._replace(
        entries={key: facts._replace(created=0) for key, facts in evidence.entries.items()},
    )
    assert {hit.id: hit for hit in hits_of(evidence)} == {hit.id: hit for hit in hits_of(sealed)}
    assert all(hit.reasons.recency == 0 for hit in hits_of(evidence))


@given(dated)
def test_recency_that_is_worth_nothing_changes_nothing(evidence: Evidence) -> None:
    """When a half-life is nothing beside every age, to the last bit."""
    nothing = Recency(NOW_MS + 3 * _DAY_MS, 1e-300)
    for one in (evidence, EvidenceArrays.of(evidence)):
        without = [*rank(one, TERMS, KEY, BASELINE, ["gamma"])]
        assert [*rank(one, TERMS, KEY, BASELINE, ["gamma"], nothing)] == without


@given(dated, recencies)
def test_recency_changes_scores_and_order_alone(evidence: Evidence, recency: Recency) -> None:
    """The same entries are found by the same evidence, and none scores less than without it."""
    before = {hit.id: hit for hit in hits_of(evidence)}
    after = hits_of(evidence, recency)
    created = {facts.id: facts.created for facts in evidence.entries.values()}
    assert len(after) == len(before)
    for hit in after:
        plain = before[hit.id]
        assert plain.score <= hit.score <= 1
        assert hit.reasons.recency == pytest.approx(recency.bonus(created[hit.id]), abs=1e-9)
        reasons = hit.reasons._replace(recency=0.0)
        assert hit._replace(score=plain.score, reasons=reasons) == plain
    keys = [(hit.score, created[hit.id], hit.id) for hit in after]
    assert keys == sorted(keys, reverse=True)


@given(evidences(vectors=False).flatmap(ages), recencies)
def test_recency_is_the_same_in_both_forms(evidence: Evidence, recency: Recency) -> None:
    """With numpy and without it: the same order and scores."""
    plainly, quickly = (
        list(rank(form, TERMS, KEY, None, ["gamma"], recency))
        for form in (evidence, EvidenceArrays.of(evidence))
    )
    assert [hit.id for hit in quickly] == [hit.id for hit in plainly]
    for one, other in zip(quickly, plainly, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert one.reasons.recency == pytest.approx(other.reasons.recency, abs=1e-9)


@given(dated, recencies, st.integers(0, 300), st.data())
def test_being_newer_never_loses(
    evidence: Evidence, recency: Recency, days: int, data: st.DataObject
) -> None:
    """Neither its score nor its place, had it been written later."""
    assume(evidence.entries)
    key = data.draw(st.sampled_from(sorted(evidence.entries)))
    facts = evidence.entries[key]
    newer = facts._replace(created=facts.created + days * _DAY_MS)
    later = evidence._replace(entries={**evidence.entries, key: newer})
    before, after = hits_of(evidence, recency), hits_of(later, recency)
    (was,), (now,) = (
        [(hit.score, at) for at, hit in enumerate(hits) if hit.id == facts.id]
        for hits in (before, after)
    )
    assert now[0] >= was[0]
    assert now[1] <= was[1]


@given(dated, recencies)
def test_recency_is_worth_half_a_strength_at_most(evidence: Evidence, recency: Recency) -> None:
    """No score rises by more, so that whatever is better by more than that stays before."""
    before = {hit.id: hit for hit in hits_of(evidence)}
    after = hits_of(evidence, recency)
    for at, hit in enumerate(after):
        plain = before[hit.id]
        assert strength_of(hit.score) <= strength_of(plain.score) + BONUS_MAX + 1e-6
        for behind in after[at + 1 :]:
            other = before[behind.id]
            assert strength_of(other.score) <= strength_of(plain.score) + BONUS_MAX + 1e-6


@given(dated, recencies)
def test_among_likes_more_than_half_a_strength_decides(
    evidence: Evidence, recency: Recency
) -> None:
    """Words and meaning that are stronger by more come first, where floors are no matter."""
    whole = sum(shares.rarities(evidence, TERMS))

    def strength(hit: Ranked) -> float:
        return ranking._WEIGHT * whole * hit.reasons.words**2 + hit.reasons.meaning

    after = hits_of(evidence, recency)
    for at, hit in enumerate(after):
        for behind in after[at + 1 :]:
            if (standing_of(hit), is_dim(hit)) == (standing_of(behind), is_dim(behind)):
                assert strength(behind) <= strength(hit) + BONUS_MAX + 1e-6


@given(dated, recencies)
def test_recency_never_lifts_over_a_name_or_a_title(evidence: Evidence, recency: Recency) -> None:
    """Nor over the floors that these have."""
    before = hits_of(evidence)
    after = hits_of(evidence, recency)
    places = {hit.id: at for at, hit in enumerate(after)}
    scores = {hit.id: hit.score for hit in after}
    for at, hit in enumerate(before):
        for floor in (EXACT_FLOOR, TITLE_FLOOR):
            assert (scores[hit.id] < floor) is (hit.score < floor)
        for behind in before[at + 1 :]:
            if standing_of(hit) > standing_of(behind):
                assert places[hit.id] < places[behind.id]


_scores = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), max_size=6)


@given(_scores, _scores, st.floats(0, 1))
def test_scores_are_held_alike_in_both_forms(
    scores: list[float], rivals: list[float], rise: float
) -> None:
    """By the very same numbers, and below the next rival."""
    risen = [score + rise for score in scores]
    columns = (np.array(column, np.float64) for column in (scores, risen, rivals))
    assert all_held(*columns).tolist() == [
        held(score, high, sorted(rivals)) for score, high in zip(scores, risen, strict=True)
    ]
    for score, high in zip(scores, risen, strict=True):
        result = held(score, high, sorted(rivals))
        assert score <= result <= high
        assert not any(score < rival <= result for rival in rivals)
        assert result == high or any(score <= rival <= high for rival in rivals)


def longer_and_longer(postings: list[Posting], titles: tuple[str, ...]) -> Iterator[Evidence]:
    """One or two entries, the last of which says less and less of the query, in three journals."""
    for count, length in itertools.product((10, 200, 2000), range(5, 1000)):
        evidence = simple(postings=postings, titles=titles, count=count)
        last = 2 * len(titles) - 2
        passages = {**evidence.passages, last: evidence.passages[last]._replace(length=length)}
        entries = {
            at: facts._replace(created=at * NOW_MS) for at, facts in evidence.entries.items()
        }
        yield evidence._replace(passages=passages, entries=entries)


@pytest.mark.parametrize(
    ("first", "second", "above", "gap"),
    [(1, 0, 0.5, 5e-3), (2, 0, 0.75, 5e-3), (2, 1, 0.75, 5e-3), (3, 2, 0.75, 5e-4)],
)
def test_what_is_named_keeps_its_place(first: int, second: int, above: float, gap: float) -> None:
    """However close behind a newer entry comes that names less; in both forms."""
    named = (first, second)
    titles = tuple(" beta " if one >= 2 else "" for one in named)
    phrased = frozenset(at for at, one in enumerate(named) if one % 2)

    def is_close(evidence: Evidence) -> bool:
        best, other = rank(evidence, TERMS, KEY, None)
        return best.id == "e0" and above < other.score and 0 < best.score - other.score < gap

    postings = [(0, 0, 20), *((2, term, 1) for term in range(3))]
    several = (each._replace(phrased=phrased) for each in longer_and_longer(postings, titles))
    evidence = next(filter(is_close, several))
    for form in (evidence, EvidenceArrays.of(evidence)):
        hits = rank(form, TERMS, KEY, None, (), Recency(NOW_MS, _DAY_MS))
        assert [(hit.id, standing_of(hit)) for hit in hits] == [("e0", first), ("e1", second)]
        assert hits[1].score == math.nextafter(hits[0].score, 0)


@pytest.mark.parametrize(("named", "floor"), [(0, EXACT_FLOOR), (0, TITLE_FLOOR), (1, TITLE_FLOOR)])
def test_newness_alone_reaches_no_floor(named: int, floor: float) -> None:
    """That of titles, and of exact names where there is none: the score ends just below."""

    def is_close(evidence: Evidence) -> bool:
        return floor - 5e-3 < rank(evidence, TERMS, KEY, None)[0].score < floor

    postings = [(0, term, 1) for term in range(3)]
    several = (
        each._replace(phrased=frozenset({0} if named else ()))
        for each in longer_and_longer(postings, ("",))
    )
    evidence = next(filter(is_close, several))
    for form in (evidence, EvidenceArrays.of(evidence)):
        (hit,) = rank(form, TERMS, KEY, None, (), Recency(0, _DAY_MS))
        assert hit.score == math.nextafter(floor, 0)


def test_of_two_alike_the_newer_scores_more() -> None:
    """A half-life old gets half of what a new one does; by words and by meaning."""
    month = 30 * _DAY_MS
    for evidence in (
        simple(postings=[(0, 0, 1), (2, 0, 1)], count=200),
        simple(nearest={0: (0.4, 0), 1: (0.4, 2)}, count=200),
    ):
        entries = {
            0: evidence.entries[0]._replace(created=NOW_MS),
            1: evidence.entries[1]._replace(created=NOW_MS - month),
        }
        first, second = hits_of(evidence._replace(entries=entries), Recency(NOW_MS, month))
        assert (first.id, first.reasons.recency) == ("e0", 0.5)
        assert (second.id, second.reasons.recency) == ("e1", 0.25)
        assert first.score > second.score


def test_a_little_more_in_common_gives_way_to_the_newer() -> None:
    """What is better by less than the bonus comes after; by more, it stays before."""
    near, far = 0.40, 0.46  # 0.6 deviations apart
    for cosine, expected in ((near + 0.03, ["e1", "e0"]), (far, ["e0", "e1"])):
        evidence = simple(nearest={0: (cosine, 0), 1: (near, 2)}, count=200)
        entries = {
            0: evidence.entries[0]._replace(created=0),
            1: evidence.entries[1]._replace(created=NOW_MS),
        }
        evidence = evidence._replace(
            entries=entries, compared=10**6, cosine_mean=0.1, cosine_deviation=0.1
        )
        assert [hit.id for hit in hits_of(evidence)] == ["e0", "e1"]
        hits = hits_of(evidence, Recency(NOW_MS, 30 * _DAY_MS))
        assert [hit.id for hit in hits] == expected


# --- the setting ----------------------------------------------------------------------------------


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a command line with an empty home, an unborn journal, and no model."""
    return Shell(home, monkeypatch)


NOW = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
TEXT = (
    "The nightly export fails with a full queue whenever the warehouse sends its stock before "
    "midnight, since both hold the same lock on the table of orders until they have finished."
)


def journal_of_two(recency: float | None) -> Journal:
    """Two entries, the longer of which is of now and the shorter of two months before."""
    journal = Journal(
        MemoryStore(), MemoryIndex(), NoEmbedder("none"), recency=recency, clock=lambda: NOW
    )
    journal.write(Draft("First", TEXT, created=NOW - timedelta(days=60)))
    journal.write(Draft("Second", f"{TEXT} Twice.", created=NOW))
    return journal


def test_a_journal_prefers_what_is_new_by_its_own_clock() -> None:
    """Half a strength at the present instant, a quarter of that after two half-lives."""
    query = Query("why does the nightly export fail")
    with journal_of_two(None) as plain, journal_of_two(30) as leaning:
        before, after = plain.search(query).hits, leaning.search(query).hits
        newest = leaning.search(Query("")).hits
    assert [hit.entry.title for hit in before] == ["First", "Second"]
    assert [hit.entry.title for hit in after] == ["Second", "First"]
    recencies = [hit.reasons.recency for hit in after if hit.reasons]
    assert recencies == [0.5, pytest.approx(0.125)]
    assert [hit.reasons for hit in newest] == [None, None]


class TestConfiguration:
    """`journal.recency`, and its variable."""

    def test_the_environment_wins_over_the_file(self, home: Path) -> None:
        """It is off unless something is said; a whole number will do, and so will a fraction."""
        path = home / "c.json"
        environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(path)}
        assert load_settings(environ).recency is None
        path.write_text('{"journal": {"enabled": true}}', encoding="utf-8")
        assert load_settings(environ).recency is None
        for text, days in (("30", 30), ("0.5", 0.5), ("1e3", 1000)):
            path.write_text(f'{{"journal": {{"recency": {text}}}}}', encoding="utf-8")
            settings = load_settings(environ)
            assert (settings.recency, settings.error) == (days, None)
        for value, days in (("90", 90), ("7.5", 7.5), ("", 1000)):
            settings = load_settings({**environ, "AGENT_JOURNAL_RECENCY": value})
            assert settings.recency == days

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ("0", "is 0; it must be a number of days above 0, such as 90"),
            ("-3.5", "is -3.5; it must be a number of days above 0, such as 90"),
            ("1e999", "is inf; it must be a number of days above 0, such as 90"),
            ("true", "is true or false; it must be a number"),
            ('"30"', "is a string; it must be a number"),
            ("null", "is null; it must be a number"),
            ("[30]", "is a list; it must be a number"),
        ],
    )
    def test_what_is_no_number_of_days_is_named(self, home: Path, value: str, told: str) -> None:
        """With path, key and line; then nothing in the file counts."""
        path = home / "c.json"
        path.write_text(
            f'{{"journal": {{"enabled": true,\n"recency": {value}}}}}', encoding="utf-8"
        )
        settings = load_settings({"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(path)})
        assert str(settings.error) == f"{path}:2: journal.recency: {told}"
        assert (settings.recency, settings.enabled) == (None, False)

    @pytest.mark.parametrize(
        "value", ["0", "off", "-1", "1_0", "nan", "inf", "30 days", "٣", "9" * 400]
    )
    def test_a_wrong_variable_is_named(self, home: Path, value: str) -> None:
        """What can't be used is refused at once."""
        with pytest.raises(ConfigError, match=r"^AGENT_JOURNAL_RECENCY: is .+; it must be a num"):
            load_settings({"HOME": str(home), "AGENT_JOURNAL_RECENCY": value})

    def test_it_reaches_the_journal(self, home: Path, tmp_path: Path) -> None:
        """As the library opens it."""
        (home / "c.json").write_text('{"journal": {"recency": 30}}', encoding="utf-8")
        environ = {"HOME": str(home), "AGENT_JOURNAL_CONFIG": str(home / "c.json")}
        settings = load_settings(environ, journal=str(tmp_path / "j"), model="none")
        with open_journal(settings) as journal:
            journal.write(Draft("Export", "The queue is full."))
            (hit,) = journal.search(Query("queue")).hits
        assert hit.reasons
        assert hit.reasons.recency == pytest.approx(0.5, abs=1e-3)


class TestCommandLine:
    """`search --explain` and `search --json`."""

    def test_says_what_newness_is_worth(self, shell: Shell) -> None:
        """When it is on and worth something; the order is by it."""
        shell.write("First", TEXT, "--created", "2020-01-31")
        shell.write("Second", f"{TEXT} Twice.")
        asked = ("search", "why does the export fail", "--explain")
        lines = shell(*asked).out
        assert "recency" not in lines
        assert lines.index("First") < lines.index("Second")
        lines = shell(*asked, env={"AGENT_JOURNAL_RECENCY": "30"}).out
        assert lines.index("Second") < lines.index("First")
        found = [line.strip() for line in lines.splitlines() if "of the words" in line]
        assert re.fullmatch(r"\d+% of the words, recency \+0\.50", found[0])
        assert re.fullmatch(r"\d+% of the words", found[1])
        told = shell(*asked, "--json", env={"AGENT_JOURNAL_RECENCY": "30"}).out
        recencies = [hit["reasons"]["recency"] for hit in json.loads(told)["hits"]]
        assert recencies == [0.5, 0.0]
        told = shell(*asked, "--json").out
        assert [hit["reasons"]["recency"] for hit in json.loads(told)["hits"]] == [0.0, 0.0]

    def test_a_wrong_variable_is_a_usage_error(self, shell: Shell) -> None:
        """One line that names it."""
        outcome = shell("search", "queue", env={"AGENT_JOURNAL_RECENCY": "soon"})
        assert outcome.code != 0
        assert "AGENT_JOURNAL_RECENCY: is 'soon'" in outcome.err
