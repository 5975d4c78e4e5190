"""How much of a query an entry's words say: BM25 over the rarity of the whole query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_journal.evidence import Evidence, EvidenceArrays

if TYPE_CHECKING:
    from agent_journal.evidence import Floats, Integers

# BM25: how soon repetitions stop to count, and how much long passages are held back.
_K1 = 0.9
_B = 0.5
_ELSEWHERE = 0.2  # of what other passages of the entry say beyond its best one
_PHANTOMS = 10  # entries without any term, so that the first few of a journal still differ


def rarities(evidence: Evidence | EvidenceArrays, terms: Sequence[str]) -> list[float]:
    """Return how much each term of the query says: the rarer the more, never less than nothing."""
    count = evidence.entry_count + _PHANTOMS
    frequencies = evidence.frequencies[: len(terms)]
    return [math.log1p((count - held + 0.5) / (held + 0.5)) for held in frequencies]


def of_mappings(evidence: Evidence, rarities: Sequence[float]) -> dict[int, tuple[float, int]]:
    """Return the share of the query that each entry with a term covers, and its best passage.

    BM25 of that passage, and a little of the others', over the rarity of the whole query; above 1
    when terms are repeated.
    """
    passages = evidence.passages
    flat, slope = _K1 * (1 - _B), _K1 * _B / (evidence.mean_length or 1.0)
    tops = [rarity * (_K1 + 1) for rarity in rarities]
    weights: list[float] = []
    of_passage: dict[int, float] = {}
    for passage, term, occurrences in evidence.postings:
        damping = flat + slope * passages[passage][3]
        weight = tops[term] * occurrences / (occurrences + damping)
        weights.append(weight)
        if passage in of_passage:
            of_passage[passage] += weight
        else:
            of_passage[passage] = weight
    best: dict[int, tuple[float, int]] = {}
    several: set[int] = set()
    for passage, weight in of_passage.items():
        entry, start, _, _ = passages[passage]
        if entry not in best:
            best[entry] = (weight, passage)
            continue
        several.add(entry)
        rival, other = best[entry]
        if weight > rival or (weight == rival and start < passages[other][1]):
            best[entry] = (weight, passage)
    if several:
        for entry, anywhere in _anywhere(evidence, weights, several).items():
            weight, passage = best[entry]
            best[entry] = (weight + _ELSEWHERE * max(anywhere - weight, 0.0), passage)
    whole = sum(rarities) or 1.0
    return {entry: (said / whole, passage) for entry, (said, passage) in best.items()}


def _anywhere(evidence: Evidence, weights: Sequence[float], among: set[int]) -> dict[int, float]:
    """Return, for some entries, what their terms weigh, each where it weighs most."""
    passages = evidence.passages
    most: dict[tuple[int, int], float] = {}
    for (passage, term, _), weight in zip(evidence.postings, weights, strict=True):
        entry = passages[passage][0]
        if entry in among and weight > most.get((entry, term), 0.0):
            most[entry, term] = weight
    total: dict[int, float] = {}
    for (entry, _), weight in most.items():
        total[entry] = total.get(entry, 0.0) + weight
    return total


def of_arrays(evidence: EvidenceArrays, rarities: Sequence[float]) -> tuple[Floats, Integers]:
    """Return what `of_mappings` does for every entry: its share, 0 without a term, and -1 then."""
    import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

    shares = np.zeros(len(evidence.ids))
    passages = np.full(len(evidence.ids), -1)
    rows, terms, times = evidence.posting_passages, evidence.posting_terms, evidence.occurrences
    if not len(rows):
        return shares, passages
    flat, slope = _K1 * (1 - _B), _K1 * _B / (evidence.mean_length or 1.0)
    tops = np.array(rarities) * (_K1 + 1)
    weights = tops[terms] * times / (times + flat + slope * evidence.lengths[rows])
    said = np.bincount(rows, weights, minlength=len(evidence.owners))
    held = np.flatnonzero(np.bincount(rows, minlength=len(evidence.owners)))
    owners = evidence.owners[held]
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    entries, best = owners[firsts], np.maximum.reduceat(said[held], firsts)
    repeated = np.repeat(best, np.diff(firsts, append=len(held)))
    winners = held[said[held] == repeated][::-1]
    passages[evidence.owners[winners]] = winners  # of equal ones, the first is written last

    pairs = evidence.owners[rows] * len(rarities) + terms
    order = np.argsort(pairs, kind="stable")
    firsts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    most = np.maximum.reduceat(weights[order], firsts)
    anywhere = np.bincount(pairs[order][firsts] // len(rarities), most, minlength=len(shares))
    total = best + _ELSEWHERE * np.maximum(anywhere[entries] - best, 0.0)
    shares[entries] = total / (sum(rarities) or 1.0)
    return shares, passages
