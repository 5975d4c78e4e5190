"""Lexical and dense evidence to one score in [0, 1], the same on every engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent_journal.model import EntryId, FoundBy
from agent_journal.ports import Baseline, Evidence, Nearest, PassageFacts

TITLE_FLOOR = 0.75
_K1 = 1.2
_B = 0.5
_ELSEWHERE = 0.25
_DENSE_WEIGHT = 4.0
_PRIOR_ENTRIES = 10.0
_HALF_SCORE = 10.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry that answers a query.

    Attributes:
        score: in [0, 1]; more evidence never lowers it.
        found_by: the kinds of evidence it has.
        start, end: the passage that explains the hit best, in characters of the body; both 0 when
            no passage does and the whole entry is meant.
    """

    id: EntryId
    score: float
    found_by: tuple[FoundBy, ...]
    start: int
    end: int


def rank(
    evidence: Evidence,
    terms: Sequence[str],
    query_key: str,
    baseline: Baseline | None,  # noqa: ARG001
) -> list[Ranked]:
    """Judge everything an index knows about a query, best first; each entry comes once.

    Entries of the same score come newest first, then by id, highest first.

    Args:
        evidence: what the index found; each of its entries is a hit.
        terms: the query's terms, as the evidence counts them.
        query_key: the query as `words.title_key` gives it.
        baseline: the embedder's, when a vector was compared; None when there was none.
    """
    lexical = _lexical(evidence)
    mean, deviation = _expected(evidence, baseline)
    ranked = []
    for key, facts in evidence.entries.items():
        words, passage = lexical.get(key, (0.0, None))
        nearest = evidence.nearest.get(key)
        dense = (nearest.cosine - mean) / deviation if nearest else 0.0
        by_title = titles_touch(query_key, facts.title_key)
        strength = words + _DENSE_WEIGHT * dense
        score = _squash(strength)
        if by_title:
            score = TITLE_FLOOR + (1 - TITLE_FLOOR) * score
        found_by: list[FoundBy] = []
        if by_title:
            found_by.append("title")
        if passage is not None:
            found_by.append("lexical")
        if nearest and (passage is None or dense > 0):
            found_by.append("dense")
        start, end = _best_passage(evidence, passage, words, nearest, dense)
        ranked.append((score, facts.created, Ranked(facts.id, score, tuple(found_by), start, end)))
    ranked.sort(key=lambda one: (one[0], one[1], one[2].id), reverse=True)
    return [one[2] for one in ranked]


def titles_touch(query_key: str, title_key: str) -> bool:
    """Tell whether one of two keys of `words.title_key` holds the other, on whole words.

    A single character beyond ASCII must be equal: in scripts without word borders it says nothing.
    """
    if not query_key or not title_key:
        return False
    if query_key == title_key:
        return True
    shorter, longer = sorted((query_key, title_key), key=len)
    inner = shorter.strip()
    return shorter in longer and (len(inner) > 1 or inner.isascii())


def _lexical(evidence: Evidence) -> dict[int, tuple[float, int]]:
    """For each entry with a posting: its lexical evidence and its best passage."""
    count = evidence.entry_count
    weights = [math.log1p((count - found + 0.5) / (found + 0.5)) for found in evidence.frequencies]
    mean_length = evidence.mean_length or 1.0
    passages = evidence.passages
    by_passage: dict[int, float] = {}
    by_entry: dict[int, dict[int, float]] = {}
    for passage, term, occurrences in evidence.postings:
        entry, _, _, length = passages[passage]
        damping = _K1 * (1 - _B + _B * length / mean_length)
        weight = weights[term] * occurrences * (_K1 + 1) / (occurrences + damping)
        by_passage[passage] = by_passage.get(passage, 0.0) + weight
        best = by_entry.setdefault(entry, {})
        if weight > best.get(term, 0.0):
            best[term] = weight
    best_passage: dict[int, tuple[float, int]] = {}
    for passage, weight in by_passage.items():
        entry = passages[passage].entry
        known = best_passage.get(entry)
        if known is None or (weight, -passages[passage].start) > (
            known[0],
            -passages[known[1]].start,
        ):
            best_passage[entry] = (weight, passage)
    return {
        entry: (weight + _ELSEWHERE * max(sum(by_entry[entry].values()) - weight, 0.0), passage)
        for entry, (weight, passage) in best_passage.items()
    }


def _expected(evidence: Evidence, baseline: Baseline | None) -> tuple[float, float]:
    """Mean and deviation of cosines, leaning on the embedder's where few were compared."""
    prior = baseline or Baseline(0.0, 1.0)
    total = evidence.compared + _PRIOR_ENTRIES
    mean = (evidence.compared * evidence.cosine_mean + _PRIOR_ENTRIES * prior.mean) / total
    variance = (
        evidence.compared * evidence.cosine_deviation**2 + _PRIOR_ENTRIES * prior.deviation**2
    ) / total
    return mean, math.sqrt(variance) or 1.0


def _squash(strength: float) -> float:
    """Map all numbers to (0, 1), rising; 0 becomes one half... see docs/search.md."""
    return 0.5 + math.atan(strength / _HALF_SCORE) / math.pi


def _best_passage(
    evidence: Evidence, lexical: int | None, words: float, nearest: Nearest | None, dense: float
) -> tuple[int, int]:
    dense_wins = nearest is not None and (lexical is None or _DENSE_WEIGHT * dense > words)
    key = nearest.passage if dense_wins and nearest else lexical
    if key is None:
        key = lexical
    if key is None:
        return 0, 0
    facts: PassageFacts = evidence.passages[key]
    return facts.start, facts.end
