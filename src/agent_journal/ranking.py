"""Lexical and dense evidence to one score in [0, 1], the same on every engine.

How the numbers below were found, and what they reach, stands in ``docs/search.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent_journal.model import EntryId, FoundBy
from agent_journal.ports import Baseline, Evidence, Nearest

TITLE_FLOOR = 0.75
_TITLE_SPREAD = 0.05  # keeps the order among entries that the floor lifts
# BM25: how soon repetitions stop to count, and how much long passages are held back.
_K1 = 0.9
_B = 0.5
_ELSEWHERE = 0.2  # of what other passages of the entry say beyond its best one
_PHANTOMS = 10  # entries without any term, so that the first few of a journal still differ
_LEXICAL_WEIGHT = 4.4
_LEXICAL_POWER = 1.5  # above 1: a hit that covers much of the query beats several chance overlaps
_PRIOR = 10  # entries for which the embedder's baseline stands
_FOUND_BY: dict[tuple[bool, bool], tuple[FoundBy, ...]] = {
    (False, False): (),
    (False, True): ("dense",),
    (True, False): ("lexical",),
    (True, True): ("lexical", "dense"),
}
_HALF = 10.0  # the strength whose score is one half


class Ranked(NamedTuple):
    """An entry that answers a query.

    Attributes:
        score: in [0, 1]; more evidence never lowers it.
        found_by: the kinds of evidence it has, at least one.
        start: where in the body the passage starts, in characters, that explains the hit best.
        end: where that passage ends; 0, as `start`, when no passage does but the whole entry.
    """

    id: EntryId
    score: float
    found_by: tuple[FoundBy, ...]
    start: int
    end: int


def rank(
    evidence: Evidence, terms: Sequence[str], query_key: str, baseline: Baseline | None
) -> list[Ranked]:
    """Judge all that an index knows about a query, best first; each entry comes once.

    Entries of the same score come newest first, then by id, highest first. An entry without a
    vector is judged as if its cosine were the ordinary one.

    Args:
        evidence: what the index found; each of its entries is a hit.
        terms: the query's terms, as `Evidence.frequencies` counts them.
        query_key: the query as `words.title_key` gives it.
        baseline: the embedder's, when a vector was compared; otherwise None.
    """
    lexical = _lexical(evidence, _rarities(evidence, terms))
    mean, deviation = _ordinary_cosine(evidence, baseline)
    ranked: list[tuple[float, int, EntryId, Ranked]] = []
    for key, (entry_id, created, title_key) in evidence.entries.items():
        words, passage = lexical.get(key, (0.0, None))
        nearest = evidence.nearest.get(key)
        meaning = max((nearest.cosine - mean) / deviation, 0.0) if nearest else 0.0
        score = _squash(words + meaning)
        found_by = _FOUND_BY[passage is not None, meaning > 0 or passage is None]
        if query_key and title_key and titles_touch(query_key, title_key):
            score = max(score, TITLE_FLOOR + _TITLE_SPREAD * score)
            found_by = ("title", *_FOUND_BY[passage is not None, meaning > 0])
        start, end = _span(evidence, passage, nearest if meaning > words else None)
        hit = Ranked(entry_id, score, found_by, start, end)
        ranked.append((score, created, entry_id, hit))
    ranked.sort(reverse=True)
    return [hit for _, _, _, hit in ranked]


def titles_touch(query_key: str, title_key: str) -> bool:
    """Tell whether one of two keys of `words.title_key` holds the other, on whole words.

    A single character beyond ASCII must be all of both: in a script without word borders it is no
    word.
    """
    if not query_key or not title_key:
        return False
    if query_key == title_key:
        return True
    if query_key in title_key:
        word = query_key.strip()
    elif title_key in query_key:
        word = title_key.strip()
    else:
        return False
    return len(word) > 1 or word.isascii()


def _rarities(evidence: Evidence, terms: Sequence[str]) -> list[float]:
    """How much each term of the query says: the rarer the more, never less than nothing."""
    count = evidence.entry_count + _PHANTOMS
    frequencies = evidence.frequencies[: len(terms)]
    return [math.log1p((count - held + 0.5) / (held + 0.5)) for held in frequencies]


def _lexical(evidence: Evidence, rarities: Sequence[float]) -> dict[int, tuple[float, int]]:
    """Return the lexical strength and the best passage of each entry that holds a term.

    The strength grows with the share of the query that the entry covers and with what that share
    says: BM25 of the best passage, and a little of the others', over the most one could expect.
    """
    passages = evidence.passages
    flat, slope = _K1 * (1 - _B), _K1 * _B / (evidence.mean_length or 1.0)
    tops = [rarity * (_K1 + 1) for rarity in rarities]
    dampings = {key: flat + slope * facts[3] for key, facts in passages.items()}
    of_passage = dict.fromkeys(passages, 0.0)
    for passage, term, occurrences in evidence.postings:
        of_passage[passage] += tops[term] * occurrences / (occurrences + dampings[passage])
    best: dict[int, tuple[float, int]] = {}
    several: set[int] = set()
    for passage, weight in of_passage.items():
        if not weight:  # only its vector speaks of it
            continue
        entry, start, _, _ = passages[passage]
        rival = best.get(entry)
        if rival is None:
            best[entry] = (weight, passage)
            continue
        several.add(entry)
        if (weight, -start) > (rival[0], -passages[rival[1]].start):
            best[entry] = (weight, passage)
    anywhere = _anywhere(evidence, tops, dampings, several) if several else {}
    factor = _LEXICAL_WEIGHT / (sum(rarities) or 1.0)
    strengths: dict[int, tuple[float, int]] = {}
    for entry, (weight, passage) in best.items():
        said = weight
        if entry in several:
            said += _ELSEWHERE * max(anywhere[entry] - weight, 0.0)
        strengths[entry] = (factor * said**_LEXICAL_POWER, passage)
    return strengths


def _anywhere(
    evidence: Evidence, tops: Sequence[float], dampings: Mapping[int, float], among: set[int]
) -> dict[int, float]:
    """Return, for some entries, what their terms weigh, each where it weighs most."""
    owners = {key: facts[0] for key, facts in evidence.passages.items() if facts[0] in among}
    most: dict[tuple[int, int], float] = {}
    for passage, term, occurrences in evidence.postings:
        entry = owners.get(passage)
        if entry is not None:
            weight = tops[term] * occurrences / (occurrences + dampings[passage])
            if weight > most.get((entry, term), 0.0):
                most[entry, term] = weight
    total: dict[int, float] = {}
    for (entry, _), weight in most.items():
        total[entry] = total.get(entry, 0.0) + weight
    return total


def _ordinary_cosine(evidence: Evidence, baseline: Baseline | None) -> tuple[float, float]:
    """Return mean and deviation to expect, leaning on the embedder's where few were compared."""
    prior = baseline or Baseline(0.0, 1.0)
    compared = evidence.compared
    total = compared + _PRIOR
    mean = (compared * evidence.cosine_mean + _PRIOR * prior.mean) / total
    squared = compared * evidence.cosine_deviation**2 + _PRIOR * prior.deviation**2
    return mean, math.sqrt(squared / total) or 1.0


def _squash(strength: float) -> float:
    """Map strengths from 0 up to scores from 0 to 1, rising."""
    return strength * strength / (strength * strength + _HALF * _HALF)


def _span(evidence: Evidence, lexical: int | None, dense: Nearest | None) -> tuple[int, int]:
    """Return where the passage is that counts: the dense one when given and known."""
    passage = lexical if dense is None or dense.passage is None else dense.passage
    if passage is None:
        return 0, 0
    facts = evidence.passages[passage]
    return facts.start, facts.end
