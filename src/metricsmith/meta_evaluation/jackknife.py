"""Measures without one part of the segments at a time: what the intervals of `measure_interval` rest on.

Matrices are of shape (k, n), NaN on both sides where either is; `parts` numbers the part of each segment from 0 to
r - 1, none of them empty. All functions return the values without each part, shape (r,), NaN where undefined, but
share the work that the parts have in common.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.grouping import CORRELATIONS, FloatArray, without_rounding
from metricsmith.meta_evaluation.pairs import GoldPairs, differences
from metricsmith.meta_evaluation.significance import Measure, measured

__all__ = [
    "calibrated_accuracies", "item_accuracies", "item_correlations", "left_out", "pooled_pearson", "soft_accuracies",
    "system_correlations",
]  # fmt: skip

IntArray = NDArray[np.int64]
NOTHING = 1e-12  # of a sum of squares: what is left of it by rounding alone


def left_out(measure: Measure, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Any measure, computed anew for each part."""
    kept = (parts != part for part in range(parts.max(initial=-1) + 1))
    return np.array([measured(measure, metric[:, rows], gold[:, rows]) for rows in kept])


def item_accuracies(
    metric: FloatArray, gold: FloatArray, parts: IntArray, epsilon: float, decimals: int | None
) -> FloatArray:
    """`pairwise_accuracy` by item at a given threshold."""
    pairs = GoldPairs(gold.T, decimals)
    tied, untied = pairs.distances(metric.T)
    right = [pairs.tied_groups[tied <= epsilon], pairs.untied_groups[untied > epsilon]]
    counts = np.bincount(np.concatenate(right), minlength=pairs.sizes.size)
    return _means(np.where(pairs.sizes > 0, counts / np.maximum(pairs.sizes, 1), math.nan), parts)


def item_correlations(correlation: str, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """`segment_correlation` by item."""
    return _means(CORRELATIONS[correlation](metric.T, gold.T), parts)


def calibrated_accuracies(metric: FloatArray, gold: FloatArray, parts: IntArray, decimals: int | None) -> FloatArray:
    """acc-t by item, calibrated without each part.

    Over ascending thresholds the accuracy of all segments is a curve. What a part adds to it is a curve of few steps:
    between two of them the best threshold without the part is that of the whole.
    """
    pairs = GoldPairs(gold.T, decimals)
    weights = np.where(pairs.sizes > 0, 1 / np.maximum(pairs.sizes, 1), 0.0)
    tied, untied = pairs.distances(metric.T)
    concordant = untied > 0
    won, won_by = _sorted(tied, pairs.tied_groups)
    lost, lost_by = _sorted(untied[concordant], pairs.untied_groups[concordant])
    wrong = np.append(0.0, np.cumsum(weights[lost_by]))
    curve = np.cumsum(weights[won_by]) - wrong[np.searchsorted(lost, won, side="right")]
    curve = np.append(0.0, curve)  # before any gold tie is found; thresholds are those of `won`
    segments = np.concatenate([won_by, lost_by])
    places = np.concatenate([np.arange(won.size), np.searchsorted(won, lost)]) + 1
    steps = np.concatenate([weights[won_by], -weights[lost_by]])
    order = np.lexsort((places, parts[segments]))
    places, steps = places[order], steps[order]
    stops = np.cumsum(np.bincount(parts[segments], minlength=parts.max(initial=-1) + 1)).tolist()
    best = []
    for start, stop in zip([0, *stops], stops, strict=False):
        inside = places[start:stop] <= won.size  # a concordant pair beyond all gold ties moves no candidate
        own, moved = places[start:stop][inside], np.cumsum(steps[start:stop][inside])
        last = np.flatnonzero(np.diff(own, append=won.size + 1))
        highest = np.maximum.reduceat(curve, np.append(0, own[last]))
        best.append((highest - np.append(0.0, moved[last])).max())
    used = _without((pairs.sizes > 0).astype(float), parts)
    base = weights * np.bincount(lost_by, minlength=weights.size)
    return _ratio(_without(base, parts) + np.array(best), used)


def pooled_pearson(metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """Pearson's correlation over all cells."""
    present = ~np.isnan(metric)
    if not present.any():
        return np.full(parts.max(initial=-1) + 1, math.nan)
    x, y = (np.where(present, side - side[present].mean(), 0.0) for side in (metric, gold))
    counts = _without(present.sum(axis=0).astype(float), parts)
    terms = np.array([x, y, x * x, y * y, x * y]).sum(axis=1)
    sum_x, sum_y, *squares = _without(terms, parts)
    xx, yy, xy = (
        square - one * other / np.maximum(counts, 1)
        for square, one, other in zip(squares, (sum_x, sum_y, sum_x), (sum_x, sum_y, sum_y), strict=True)
    )
    vary = (xx > NOTHING * terms[2].sum()) & (yy > NOTHING * terms[3].sum())
    return np.clip(_ratio(np.where(vary, xy, math.nan), np.sqrt(np.where(vary, xx, 1) * np.where(vary, yy, 1))), -1, 1)


def system_correlations(correlation: str, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
    """A correlation of system means; complete segments only."""
    sizes = _without(np.ones(parts.size), parts)
    sizes[sizes == 0] = math.nan
    means = [without_rounding(_without(side, parts) / sizes, side).T for side in (metric, gold)]
    return CORRELATIONS[correlation](*means)


def soft_accuracies(metric: FloatArray, gold: FloatArray, parts: IntArray, undecided: float) -> FloatArray:
    """Soft pairwise accuracy of infinitely many draws; complete segments only.

    The sum of differences with random signs has mean 0 and as variance their sum of squares, and is close to normal.
    A finite number of draws moves p in steps, which leaving out one segment of many mostly does not reach; the
    jackknife would magnify that noise by the number of segments.
    """
    from scipy.special import ndtr

    p_values = []
    for side in (metric, gold):
        apart = differences(side)
        total, squares = _without(apart, parts), _without(apart**2, parts)
        vary = squares > NOTHING * (apart**2).sum(axis=1, keepdims=True)
        p_values.append(np.where(vary, ndtr(-total / np.sqrt(np.where(vary, squares, 1.0))), undecided))
    return np.asarray(1 - np.abs(p_values[0] - p_values[1]).mean(axis=0))


def _sorted(distances: FloatArray, segments: IntArray) -> tuple[FloatArray, IntArray]:
    order = np.argsort(distances)
    return distances[order], segments[order]


def _means(values: FloatArray, parts: IntArray) -> FloatArray:
    """The mean of the defined ones of values by segment, shape (n,), without each part."""
    defined = ~np.isnan(values)
    return _ratio(_without(np.where(defined, values, 0.0), parts), _without(defined.astype(float), parts))


def _part_sums(values: FloatArray | IntArray, parts: IntArray) -> FloatArray:
    """Sums along the last axis by part, shape (..., n) -> (..., r)."""
    order = np.argsort(parts, kind="stable")
    starts = np.flatnonzero(np.diff(parts[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[..., order], starts, axis=-1))


def _without(values: FloatArray | IntArray, parts: IntArray) -> FloatArray:
    """Sums along the last axis without each part, shape (..., n) -> (..., r)."""
    sums = _part_sums(values, parts)
    return np.asarray(sums.sum(axis=-1, keepdims=True) - sums)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    defined = denominator > 0
    return np.asarray(np.where(defined, numerator / np.where(defined, denominator, 1.0), math.nan))
