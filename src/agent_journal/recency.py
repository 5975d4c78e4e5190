"""How little newer entries are preferred, for those who ask for it; see ``docs/search.md``."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from agent_journal.model import to_milliseconds

if TYPE_CHECKING:
    from agent_journal.evidence import Floats, Integers

BONUS_MAX = 0.5
"""What an entry of this moment gets, in strength: half a deviation of the cosine."""

_DAY_MS = 86_400_000


class Recency(NamedTuple):
    """What an entry's age is worth at one moment: half as much after each half-life.

    Attributes:
        now_ms: the moment, in milliseconds since the epoch.
        half_life_ms: above 0.
    """

    now_ms: int
    half_life_ms: float

    @classmethod
    def at(cls, now: datetime, half_life_days: float) -> Recency:
        """Return what ages are worth at an instant."""
        return cls(to_milliseconds(now), half_life_days * _DAY_MS)

    def bonus(self, created: int) -> float:
        """Return what is added to the strength of an entry; one of the future counts as new."""
        age = max(self.now_ms - created, 0)
        return float(BONUS_MAX * 2.0 ** -(age / self.half_life_ms))

    def bonuses(self, created: Integers) -> Floats:
        """Return what `bonus` does, of each."""
        import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

        ages = np.maximum(self.now_ms - created, 0)
        with np.errstate(over="ignore"):  # an age of infinitely many half-lives is worth nothing
            bonuses: Floats = BONUS_MAX * np.exp2(-(ages / self.half_life_ms))
        return bonuses


def days_called(text: str) -> float:
    """Return the half-life that a text names, in days.

    Raises:
        ValueError: it names none.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"is {text[:80]!r}; it must be a number of days above 0, such as 90")
    return require_days(float(text))


def require_days(days: float) -> float:
    """Return a half-life that can be used, in days.

    Raises:
        ValueError: it can't.
    """
    if not 0 < days < math.inf:
        raise ValueError(f"is {days:g}; it must be a number of days above 0, such as 90")
    return days


def held(score: float, risen: float, rivals: Sequence[float]) -> float:
    """Return what a score rises to without passing a rival that it didn't pass before.

    Args:
        score: in [0, 1].
        risen: what it would be without rivals.
        rivals: scores, lowest first.
    """
    at = bisect_left(rivals, score)
    limit = math.nextafter(rivals[at], 0.0) if at < len(rivals) else risen
    return max(score, min(risen, limit))


def all_held(scores: Floats, risen: Floats, rivals: Floats) -> Floats:
    """Return what `held` does, of each; the rivals may come in any order."""
    import numpy as np  # noqa: PLC0415 - slow, and there whenever vectors are

    ordered = np.sort(rivals)
    limits = np.append(np.nextafter(ordered, 0.0), np.inf)[np.searchsorted(ordered, scores)]
    highest: Floats = np.maximum(scores, np.minimum(risen, limits))
    return highest
