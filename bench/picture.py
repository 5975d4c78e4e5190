"""Draws how search times grow with a journal, on two logarithmic scales."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _TOP = 700, 400, 70, 40
_INNER_WIDTH, _INNER_HEIGHT = 380, 290
_LOWEST_MS, _HIGHEST_MS = 0.1, 1000.0
_LINES = (
    ("hybrid_p95_ms", "warm search, p95", "#c0392b", "6 4"),
    ("hybrid_p50_ms", "warm search, p50", "#c0392b", ""),
    ("filtered_p50_ms", "in one of 20 projects, p50", "#2471a3", ""),
    ("newest_p50_ms", "the newest with a tag, p50", "#1e8449", ""),
    ("matrix_ms", "numpy reading the vectors", "#7f8c8d", "2 3"),
)


def draw(found: Mapping[int, Mapping[str, Any]]) -> str:
    """Return a picture as SVG.

    Args:
        found: what `inside.warm` measured, by the number of entries.
    """
    sizes = sorted(found)
    least, most = math.log10(sizes[0]), math.log10(max(sizes[-1], sizes[0] * 10))

    def across(size: float) -> float:
        return _LEFT + (math.log10(size) - least) / (most - least) * _INNER_WIDTH

    def down(ms: float) -> float:
        low, high = math.log10(_LOWEST_MS), math.log10(_HIGHEST_MS)
        share = (math.log10(min(max(ms, _LOWEST_MS), _HIGHEST_MS)) - low) / (high - low)
        return _TOP + (1 - share) * _INNER_HEIGHT

    bottom, right = _TOP + _INNER_HEIGHT, _LEFT + _INNER_WIDTH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">Milliseconds of a search, by entries</text>',
    ]
    for exponent in range(-1, 4):
        y = down(10**exponent)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.0f}" x2="{right}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{10**exponent:g}</text>'
        )
    for size in sizes:
        x = across(size)
        parts.append(f'<line x1="{x:.0f}" y1="{_TOP}" x2="{x:.0f}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{bottom + 20}" text-anchor="middle">{size:,}</text>')
    for number, (name, label, colour, dashes) in enumerate(_LINES):
        points = " ".join(f"{across(n):.1f},{down(found[n][name]):.1f}" for n in sizes)
        style = f'stroke="{colour}" stroke-dasharray="{dashes}" stroke-width="2" fill="none"'
        parts.append(f'<polyline points="{points}" {style}/>')
        for size in sizes:
            value = found[size][name]
            parts.append(
                f'<circle cx="{across(size):.1f}" cy="{down(value):.1f}" r="3" fill="{colour}"/>'
            )
        y = _TOP + 20 + 22 * number
        parts.append(f'<line x1="{right + 15}" y1="{y}" x2="{right + 35}" y2="{y}" {style}/>')
        parts.append(f'<text x="{right + 40}" y="{y + 4}">{label}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)
