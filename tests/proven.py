"""What proofs by trial have tried, and the table of it that ends a run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import pytest


@dataclass(frozen=True, slots=True)
class Trial:
    """A fault, and what came of it.

    Attributes:
        fault: what was done to the journal.
        tried: how many times.
        acknowledged: entries of which a caller was told that they are stored.
        lost: acknowledged entries that are not there, or not whole; must be 0.
        altered: files of entries that changed though no one asked for it; must be 0.
    """

    fault: str
    tried: int
    acknowledged: int
    lost: int = 0
    altered: int = 0


@dataclass
class Trials:
    """The trials of a run, in the order in which they were first reported."""

    _sums: dict[str, Trial] = field(default_factory=dict)

    def report(
        self, fault: str, *, tried: int, acknowledged: int, lost: int = 0, altered: int = 0
    ) -> None:
        """Add to a fault's sums, and fail unless nothing was lost or altered.

        Call it before the test's own assertions about what was lost, so that the table shows it.
        """
        before = self._sums.get(fault, Trial(fault, 0, 0))
        self._sums[fault] = Trial(
            fault,
            before.tried + tried,
            before.acknowledged + acknowledged,
            before.lost + lost,
            before.altered + altered,
        )
        assert (lost, altered) == (0, 0), f"{fault}: {lost} lost, {altered} altered"

    def table(self) -> list[str]:
        """Return the lines of a Markdown table; none when nothing was tried."""
        if not self._sums:
            return []
        names = [field.name for field in fields(Trial)]
        rows = [
            [f"{getattr(one, n):,}" if n != "fault" else one.fault for n in names]
            for one in self._sums.values()
        ]
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [
            _row(names, widths),
            _row(["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])], widths),
        ]
        return lines + [_row(row, widths) for row in rows]


KEY = pytest.StashKey[Trials]()


def _row(cells: list[str], widths: list[int]) -> str:
    first, *others = (
        cell.ljust(w) if i == 0 else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join([first, *others])} |"
