"""The distribution of a number over rows: bars over ranges of equal width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from metricsmith.formats import count, excerpt, raw
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, frame, picture, ticks

__all__ = ["histogram"]

MOST = 30  # bars
LEFT, RIGHT, TOP, BOTTOM = 60.0, 350.0, 8.0, 150.0


def histogram(key: str, values: Sequence[float], name: str) -> Markup:
    """Draw how many rows have which value; empty if no value is a number.

    Each bar holds the values from its left edge up to the next bar's, the last one its right edge too; whole numbers
    in a narrow range get a bar each. ``data-low`` and ``data-high`` of a bar are the least and the greatest value in
    it, to ten digits.

    Parameters
    ----------
    key : str
        Unique on the page.
    values : sequence of float
        What is not finite is left out.
    name : str
        Of the axis below.
    """
    numbers = np.sort([value for value in values if math.isfinite(value)])
    if not numbers.size:
        return Markup("")
    edges = _edges(numbers)
    places = [0, *np.searchsorted(numbers, edges[1:-1]).tolist(), numbers.size]
    most = max(np.diff(places).tolist())
    across, up = LinearAxis(edges[0], edges[-1], LEFT, RIGHT), LinearAxis(0.0, 1.05 * most, BOTTOM, TOP)
    bars, words = [], []
    for place, (start, end) in enumerate(pairwise(places)):
        if end > start:
            low, high = (f"{number:.10g}" for number in (numbers[start], numbers[end - 1]))
            inside = raw(numbers[start]) if low == high else f"{raw(numbers[start])} to {raw(numbers[end - 1])}"
            words.append(f"{inside}: {count(end - start, 'row')}")
            left, right, top = across(edges[place]), across(edges[place + 1]), up(end - start)
            bars.append(
                element(
                    "rect", element("title", words[-1]), x=left + 0.75, width=max(right - left - 1.5, 0.5), y=top,
                    height=BOTTOM - top, class_="bar up", data_low=low, data_high=high,
                )
            )  # fmt: skip
    whole = [value for value in ticks(0.0, up.high, 3) if value.is_integer()]
    return picture(
        key, BOTTOM + 42, f"Distribution of {name}", "; ".join(words),
        frame(across, up, (ticks(across.low, across.high, 6), whole), (excerpt(name, 48), "rows"), *bars),
    )  # fmt: skip


def _edges(numbers: NDArray[np.float64]) -> list[float]:
    """The edges of the bars for sorted numbers."""
    low, high = float(numbers[0]), float(numbers[-1])
    about = min(MOST, 5 + math.isqrt(numbers.size))
    if high - low < MOST and (numbers == np.round(numbers)).all():
        return [low - 0.5 + place for place in range(round(high - low) + 2)]
    inside = ticks(low, high, about)
    if len(inside) < 2:  # all alike, or as near to it as numbers can be
        return [low - 0.5, high + 0.5]
    step = inside[1] - inside[0]
    before = [inside[0] - step] if low < inside[0] else []
    return [*before, *inside, *([inside[-1] + step] if high > inside[-1] else [])]
