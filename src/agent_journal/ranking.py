"""Lexical and dense evidence to one score in [0, 1], the same on every engine.

How the numbers below were found, and what they reach, stands in ``docs/search.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

from agent_journal import shares
from agent_journal.evidence import Evidence, EvidenceArrays
from agent_journal.model import EntryId, FoundBy, Reasons
from agent_journal.ports import Baseline
from agent_journal.recency import Recency, all_held, held

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_journal.evidence import Floats, Integers

TITLE_FLOOR = 0.75
_TITLE_SPREAD = 0.05  # keeps the order among entries that a floor lifts
EXACT_FLOOR = 0.5
_EXACT_SPREAD = 0.2
# What newness lifts nothing over: where nothing is named, an exact name is, the title is, or both.
_FLOORS = ((EXACT_FLOOR, TITLE_FLOOR), (TITLE_FLOOR,), (), ())
_WEIGHT = 1.42  # of words, against deviations of the cosine
_PRIOR = 10  # entries for which the embedder's baseline stands
_HALF = 10.0  # the strength whose score is one half
_MEANING_MAX = 9.9  # below `_HALF`: meaning alone never reaches `EXACT_FLOOR`
# What both a chance overlap and a cosine among strangers stay below, four times of five.
_WEAK_CEILING = 0.49  # a long query's chance overlap comes after what it names exactly, too
_WEAK_SPREAD = 0.0099
_WEAK_SHARE = 0.4
_WEAK_DEVIATIONS = 3.2
_NO_BASELINE = Baseline(0.0, 1.0)
_SPANNED_WORDS = 32  # of a query; all that stands in a row in a longer one would be too much


class Ranked(NamedTuple):
    """An entry that answers a query.

    Attributes:
        score: in [0, 1]; more evidence never lowers it.
        found_by: the kinds of evidence it has, at least one.
        start: where in the body the passage starts, in characters, that explains the hit best.
        end: where that passage ends; 0, as `start`, when no passage does but the whole entry.
        reasons: what the score is made of.
    """

    id: EntryId
    score: float
    found_by: tuple[FoundBy, ...]
    start: int
    end: int
    reasons: Reasons


class Ranking(Sequence[Ranked]):
    """Hits, best first. What is said of a hit is made when it is looked at: most never are."""

    def __init__(
        self,
        order: Sequence[int] | Integers,
        ids: Callable[[], list[EntryId]],
        say: Callable[[int], Ranked],
    ) -> None:
        self._order = order
        self._ids = ids
        self._say = say

    def __len__(self) -> int:
        """How many hits there are."""
        return len(self._order)

    @overload
    def __getitem__(self, where: int) -> Ranked: ...

    @overload
    def __getitem__(self, where: slice) -> list[Ranked]: ...

    def __getitem__(self, where: int | slice) -> Ranked | list[Ranked]:
        """Return the hit at a place, or those of a page."""
        if isinstance(where, slice):
            return [self._say(int(one)) for one in self._order[where]]
        return self._say(int(self._order[where]))

    def places(self) -> dict[EntryId, int]:
        """Return at which place each entry stands, in this order; cheap, beside looking at all."""
        return {entry_id: place for place, entry_id in enumerate(self._ids())}


def rank(
    evidence: Evidence | EvidenceArrays,
    terms: Sequence[str],
    query_key: str,
    baseline: Baseline | None,
    exact: Collection[str] = (),
    recency: Recency | None = None,
) -> Ranking:
    """Judge all that an index knows about a query, best first; each entry comes once.

    Entries of the same score come newest first, then by id, highest first. An entry without a
    vector is judged as if its cosine were the ordinary one. Where vectors were compared this works
    on arrays; without any, numpy is not needed and not imported.

    Args:
        evidence: what the index found; each of its entries is a hit.
        terms: the query's terms, as `Evidence.frequencies` counts them.
        query_key: the query as `words.title_key` gives it.
        baseline: the embedder's, when a vector was compared; otherwise None.
        exact: those of the terms that name one thing exactly. An entry that holds one, or a phrase
            that is quoted, never comes after one that is only near in meaning.
        recency: what an entry's age is worth. Then a newer one scores a little more, but none gets
            past an exact name or a title that it doesn't share, and no floor that it didn't reach.
    """
    rarities = shares.rarities(evidence, terms)
    numbers = [number for number, term in enumerate(terms) if term in exact]
    if isinstance(evidence, EvidenceArrays):
        return _rank_by_all(evidence, rarities, query_key, baseline, numbers, recency)
    if evidence.compared:
        arrays = EvidenceArrays.of(evidence)
        return _rank_by_all(arrays, rarities, query_key, baseline, numbers, recency)
    return _rank_by_words(evidence, rarities, query_key, numbers, recency)


def _rank_by_words(
    evidence: Evidence,
    rarities: Sequence[float],
    query_key: str,
    exact: Sequence[int],
    recency: Recency | None,
) -> Ranking:
    covered = shares.of_mappings(evidence, rarities)
    entries, passages, scale = evidence.entries, evidence.passages, _WEIGHT * sum(rarities)
    lifted = set(evidence.phrased)
    if exact:
        lifted |= {passages[passage][0] for passage, term, _ in evidence.postings if term in exact}
    touching = {key for key, (_, _, title) in entries.items() if titles_touch(query_key, title)}

    def score_of(key: int, bonus: float = 0.0) -> float:
        share = covered[key][0] if key in covered else 0.0
        strength = scale * share**2 + bonus
        squared = strength * strength
        score = squared / (squared + _HALF * _HALF)
        if share < _WEAK_SHARE:
            score = min(score, _WEAK_CEILING + _WEAK_SPREAD * score)
        if key in lifted:
            score = max(score, EXACT_FLOOR + _EXACT_SPREAD * score)
        if key in touching:
            score = max(score, TITLE_FLOOR + _TITLE_SPREAD * score)
        return score

    scores = {key: score_of(key) for key in entries}
    if recency is not None:
        standings = {key: (key in lifted) + 2 * (key in touching) for key in entries}
        rivals = [
            sorted([*floors, *(scores[key] for key in entries if standings[key] > standing)])
            for standing, floors in enumerate(_FLOORS)
        ]
        for key, score in scores.items():
            risen = score_of(key, recency.bonus(entries[key].created))
            scores[key] = held(score, risen, rivals[standings[key]])
    judged = sorted(
        ((scores[key], created, entry_id, key) for key, (entry_id, created, _) in entries.items()),
        reverse=True,
    )

    def say(place: int) -> Ranked:
        score, created, entry_id, key = judged[place]
        share, passage = covered.get(key, (0.0, None))
        reasons = Reasons(
            words=share,
            title=key in touching,
            exact=key in lifted,
            recency=recency.bonus(created) if recency else 0.0,
        )
        found_by = _found_by(title=reasons.title, words=passage is not None, meaning=False)
        _, start, end, _ = (0, 0, 0, 0) if passage is None else passages[passage]
        return Ranked(entry_id, score, found_by, start, end, _judged(reasons))

    return Ranking(range(len(judged)), lambda: [entry_id for _, _, entry_id, _ in judged], say)


def _rank_by_all(
    evidence: EvidenceArrays,
    rarities: Sequence[float],
    query_key: str,
    baseline: Baseline | None,
    exact: Sequence[int],
    recency: Recency | None,
) -> Ranking:
    import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

    ids, created, near = evidence.ids, evidence.created, evidence.near_entries
    covered, worded = shares.of_arrays(evidence, rarities)
    words = _WEIGHT * sum(rarities) * covered**2
    mean, deviation = _ordinary_cosine(evidence, baseline)
    cosines = np.full(len(ids), np.nan)
    cosines[near] = evidence.cosines
    meanings = np.clip(np.nan_to_num((cosines - mean) / deviation), 0.0, _MEANING_MAX)
    nearest = np.full(len(ids), -1)
    nearest[near] = evidence.near_passages
    is_weak = (covered < _WEAK_SHARE) & ~(cosines >= _remarkable_cosine(baseline))
    lifted = np.zeros(len(ids), np.bool_)
    lifted[evidence.phrased] = True
    for number in exact:
        holding = evidence.posting_passages[evidence.posting_terms == number]
        lifted[evidence.owners[holding]] = True
    touching = np.zeros(len(ids), np.bool_)
    touching[_touched(query_key, evidence)] = True

    def scores_of(strengths: Floats) -> Floats:
        squared = strengths**2
        scores: Floats = squared / (squared + _HALF * _HALF)
        ceilings = _WEAK_CEILING + _WEAK_SPREAD * scores
        scores = np.where(is_weak, np.minimum(scores, ceilings), scores)
        for chosen, floor, spread in (
            (lifted, EXACT_FLOOR, _EXACT_SPREAD),
            (touching, TITLE_FLOOR, _TITLE_SPREAD),
        ):
            scores = np.where(chosen, np.maximum(scores, floor + spread * scores), scores)
        return scores

    scores = scores_of(words + meanings)
    bonuses = np.zeros(len(ids)) if recency is None else recency.bonuses(created)
    if recency is not None:
        risen = scores_of(words + meanings + bonuses)
        standings = lifted + 2 * touching
        plain = scores.copy()
        for standing, floors in enumerate(_FLOORS):
            among = standings == standing
            rivals = np.append(plain[standings > standing], floors)
            scores[among] = all_held(plain[among], risen[among], rivals)
    order = _best_first(scores, created, ids)

    def say(row: int) -> Ranked:
        passage = int(worded[row])
        reasons = Reasons(
            words=float(covered[row]),
            cosine=None if np.isnan(cosines[row]) else float(cosines[row]),
            meaning=float(meanings[row]),
            title=bool(touching[row]),
            exact=bool(lifted[row]),
            recency=float(bonuses[row]),
        )
        found_by = _found_by(title=reasons.title, words=passage >= 0, meaning=reasons.meaning > 0)
        if nearest[row] >= 0 and (meanings[row] > words[row] or passage < 0):
            passage = int(nearest[row])
        start, end = (
            (0, 0) if passage < 0 else (int(evidence.starts[passage]), int(evidence.ends[passage]))
        )
        return Ranked(
            ids[row], float(scores[row]), found_by, start, end, _judged(reasons, baseline)
        )

    return Ranking(order, lambda: [ids[row] for row in order.tolist()], say)


def _best_first(
    scores: Floats, created: Integers, ids: Sequence[EntryId] | NDArray[np.object_]
) -> Integers:
    """Return the rows by score, then newest first, then by id, highest first.

    Few are tied, and sorting all by all three would take ten times as long.
    """
    import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

    order: Integers = np.argsort(scores)[::-1]
    is_new = np.diff(scores[order], prepend=np.nan) != 0
    tied = np.flatnonzero(~is_new | ~np.append(is_new[1:], np.True_))
    if not len(tied):
        return order
    groups, rows = np.cumsum(is_new)[tied], order[tied]
    by_age = np.lexsort((-created[rows], groups))
    groups, rows = groups[by_age], rows[by_age]
    if ((np.diff(groups) == 0) & (np.diff(created[rows]) == 0)).any():
        by_id = sorted(rows.tolist(), key=lambda row: ids[row], reverse=True)
        rows = np.array(sorted(by_id, key=lambda row: (-scores[row], -created[row])), np.int64)
    order[tied] = rows
    return order


def _touched(query_key: str, evidence: EvidenceArrays) -> list[int]:
    """Return the rows of the titles that `titles_touch` a query, without asking it of each."""
    import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

    words, keys = query_key.split(), evidence.title_keys
    if not words:
        return []
    longer = np.flatnonzero(evidence.title_lengths >= len(query_key))
    if len(words) > _SPANNED_WORDS:
        shorter = np.flatnonzero(evidence.title_lengths <= len(query_key))
        held = [row for row in shorter.tolist() if keys[row] in query_key]
    else:
        ends = range(1, len(words) + 1)
        spans = {f" {' '.join(words[at:end])} " for end in ends for at in range(end)}
        hashes = np.array([*map(hash, spans)], np.int64)
        held = np.flatnonzero(np.isin(evidence.title_hashes, hashes)).tolist()
    holding: list[int] = []
    if query_key in "\n".join(np.asarray(keys, np.object_)[longer].tolist()):  # it hardly ever is
        holding = [row for row in longer.tolist() if query_key in keys[row]]
    return [row for row in {*held, *holding} if titles_touch(query_key, keys[row])]


def _judged(reasons: Reasons, baseline: Baseline | None = None) -> Reasons:
    """Say whether so much is found by chance, too."""
    is_weak = (
        not (reasons.title or reasons.exact)
        and reasons.words < _WEAK_SHARE
        and (reasons.cosine is None or reasons.cosine < _remarkable_cosine(baseline))
    )
    return reasons._replace(is_weak=is_weak)


def _remarkable_cosine(baseline: Baseline | None) -> float:
    """Return from which cosine on an entry is more than a stranger."""
    prior = baseline or _NO_BASELINE
    return prior.mean + _WEAK_DEVIATIONS * prior.deviation


def titles_touch(query_key: str, title_key: str) -> bool:
    """Tell whether one of two keys of `words.title_key` holds the other, on whole words.

    A single character beyond ASCII must be all of both: in a script without word borders it is no
    word.
    """
    if query_key in title_key:
        word = query_key.strip()
    elif title_key in query_key:
        word = title_key.strip()
    else:
        return False
    if not word:  # an empty key stands in every other one
        return False
    return len(word) > 1 or word.isascii() or query_key == title_key


def _found_by(*, title: bool, words: bool, meaning: bool) -> tuple[FoundBy, ...]:
    """Name the kinds of evidence; a hit without any other was near enough, if only just."""
    found: list[FoundBy] = ["title"] if title else []
    if words:
        found.append("lexical")
    if meaning or not found:
        found.append("dense")
    return tuple(found)


def _ordinary_cosine(evidence: EvidenceArrays, baseline: Baseline | None) -> tuple[float, float]:
    """Return mean and deviation to expect, leaning on the embedder's where few were compared."""
    prior = baseline or _NO_BASELINE
    compared = evidence.compared
    total = compared + _PRIOR
    mean = (compared * evidence.cosine_mean + _PRIOR * prior.mean) / total
    squared = compared * evidence.cosine_deviation**2 + _PRIOR * prior.deviation**2
    return mean, math.sqrt(squared / total) or 1.0
