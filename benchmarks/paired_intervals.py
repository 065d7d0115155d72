"""Intervals of the difference of two tau-b on the same rows, for benchmarks/coverage.py: the library's and its rivals.

Two predictions follow one rating, each with its own tau-b, and what they miss is correlated by a half: judges that are
compared mostly err together. Ratings are five levels or thumbs (70 % up).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rival_intervals import TAILS, FloatArray, IntArray, drawn, sums_by_group
from scipy.special import ndtri, stdtrit

TOGETHER = 0.5  # correlation of what the two predictions miss
LEVELS = ndtri([0.1, 0.25, 0.5, 0.8])
THUMBS = ndtri([0.3])
DIFFERENCE_METHODS = (
    "repeated_interval",
    "paired jackknife without Fisher's z",
    "percentile bootstrap, paired",
    "jackknife, unpaired",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """The cuts of the ratings, and the two true tau-b."""

    cuts: FloatArray
    taus: tuple[float, float]


PAIRS = {
    "levels: .3, .3": Pair(LEVELS, (0.3, 0.3)),
    "levels: .5, .2": Pair(LEVELS, (0.5, 0.2)),
    "thumbs: .3, .3": Pair(THUMBS, (0.3, 0.3)),
    "thumbs: .5, .2": Pair(THUMBS, (0.5, 0.2)),
}


def normals(correlations: tuple[float, float], count: int, random: np.random.Generator) -> FloatArray:
    """Two predictions and what the rating is cut from, shape (3, count)."""
    y, shared, *own = random.normal(size=(4, count))
    missed = [math.sqrt(TOGETHER) * shared + math.sqrt(1 - TOGETHER) * rest for rest in own]
    sides = [r * y + math.sqrt(1 - r * r) * rest for r, rest in zip(correlations, missed, strict=True)]
    return np.array([*sides, y])


def difference_intervals(
    first: FloatArray, second: FloatArray, rating: IntArray, codes: IntArray, random: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Intervals of tau-b of the first less that of the second, from sums over pairs of groups; rows sorted by group."""
    g = int(codes[-1]) + 1
    x, z, y = (np.sign(side[:, None] - side).astype(np.int8) for side in (first, second, rating))
    tables = [sums_by_group(signs, codes) for signs in (x * y, np.abs(x), z * y, np.abs(z), np.abs(y))]
    times = np.vstack([np.ones(g), drawn(g, random)])
    sides = [times @ table for table in tables]
    totals = [(times * side).sum(axis=1) for side in sides]
    left = [total[0] - 2 * side[0] + np.diag(table) for total, side, table in zip(totals, sides, tables, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = [totals[k] / np.sqrt(totals[k + 1] * totals[4]) for k in (0, 2)]
        parts = [left[k] / np.sqrt(left[k + 1] * left[4]) for k in (0, 2)]
    some, jackknife = draws[0] - draws[1], parts[0] - parts[1]
    gap, some = some[0], some[1:][np.isfinite(some[1:])]
    if not (math.isfinite(gap) and np.isfinite(jackknife).all()):
        return dict.fromkeys(DIFFERENCE_METHODS, (math.nan, math.nan))
    t = float(stdtrit(g - 1, TAILS[1]))
    half, apart = (t * math.sqrt((g - 1) * spread) for spread in (np.var(jackknife), sum(map(np.var, parts))))
    z_gap, z_half = (math.atanh(gap / 2), half / (2 * (1 - (gap / 2) ** 2))) if abs(gap) < 2 else (math.inf * gap, 0.0)
    low, high = np.quantile(some, TAILS)
    found = (
        (2 * math.tanh(z_gap - z_half), 2 * math.tanh(z_gap + z_half)),
        (gap - half, gap + half),
        (low, high),
        (gap - apart, gap + apart),
    )
    return dict(zip(DIFFERENCE_METHODS, found, strict=True))
