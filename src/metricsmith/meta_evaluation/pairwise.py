"""Pairwise accuracy with ties, at a given tie threshold or at the best one (acc-t)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, grouped, paired_matrices

__all__ = ["PairwiseAccuracy", "pairwise_accuracy"]

MOST_PAIRS = 50_000_000  # of which a handful of arrays is held: a few GB
SLACK = 1e-12  # sums in different orders differ by less, accuracies of different thresholds by more


@dataclass(frozen=True, slots=True)
class PairwiseAccuracy:
    """The share of pairs that a metric orders, or ties, as the gold scores do.

    Parameters
    ----------
    value : float
        In [0, 1]; mean over groups. NaN if no group has two cells.
    epsilon : float
        Metric differences up to this one are ties; NaN where `value` is.
    groups_used, groups_dropped : int
        Groups that enter the mean, and groups with fewer than two cells.
    pairs, gold_ties : int
        Pairs in all groups used, and those tied in the gold scores.
    """

    value: float
    epsilon: float
    groups_used: int
    groups_dropped: int
    pairs: int
    gold_ties: int


def pairwise_accuracy(
    metric: ArrayLike,
    gold: ArrayLike,
    *,
    by: Grouping = "item",
    epsilon: float | None = None,
    decimals: int | None = None,
) -> PairwiseAccuracy:
    """Share of pairs with the same order or tied on both sides, ``(C + T) / all pairs``.

    With ``epsilon=None`` this is acc-t: one threshold for all groups, chosen among 0 and every observed metric
    difference so that the mean accuracy is highest, the smallest of several. It is chosen on the pairs that it is
    judged by; to measure it on others, pass the ``epsilon`` found elsewhere. `metricsmith.agreement` has the
    accuracy over pairs with different ratings only, in which ties count half.

    Parameters
    ----------
    metric, gold : array_like, shape (k, n)
        NaN is missing; a cell that is missing on either side is left out.
    by : "item", "system" or "none"
        Pairs of systems within a segment, pairs of segments within a system, or all pairs of cells; each group
        counts once.
    epsilon : float, optional
        0 takes the metric's own ties; None calibrates.
    decimals : int, optional
        Round differences of both sides to so many digits first. None compares floats as they are, like the public
        tool, by which sums of tenths that should be equal may not be; 6 is free of such noise.

    Returns
    -------
    PairwiseAccuracy
        1 for the gold scores themselves; a constant metric gets the share of gold ties. See `chance_floor` for
        what knowing nothing gets.

    Raises
    ------
    DataError
        If the matrices differ in shape, a score is infinite, or there are more than 50 million pairs.
    OptionError
        If `epsilon` or `by` has no meaning.

    References
    ----------
    Deutsch, Foster and Freitag (2023), "Ties matter: Meta-evaluating modern metrics with pairwise accuracy and tie
    calibration". Exact floats give the numbers of mt-metrics-eval with a sample rate of 1.

    Examples
    --------
    >>> pairwise_accuracy([[1.0], [1.2], [3.0]], [[0], [0], [5]]).epsilon
    0.19999999999999996
    """
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon >= 0):
        raise OptionError(f"epsilon={epsilon!r} must be finite and at least 0, or None to calibrate it")
    x, y = grouped(*paired_matrices(metric, gold), by)
    apart, order, weights, groups = _pairs(x, y, decimals)
    if not apart.size:
        return PairwiseAccuracy(math.nan, math.nan, 0, len(x), 0, 0)
    if epsilon is None:
        epsilon = _best_epsilon(apart, order, weights)
    distance = np.abs(apart)
    right = np.where(distance <= epsilon, order == 0, np.sign(apart) == order)
    ties = int(np.count_nonzero(order == 0))
    value = math.fsum(weights[right]) / groups
    return PairwiseAccuracy(min(value, 1.0), float(epsilon), groups, len(x) - groups, apart.size, ties)


def _pairs(
    x: FloatArray, y: FloatArray, decimals: int | None
) -> tuple[FloatArray, NDArray[np.float64], FloatArray, int]:
    """Metric differences, gold order (-1, 0, 1) and weights of all pairs of present cells; how many groups have any.

    The weights of one group add up to 1.
    """
    members = x.shape[1]
    if len(x) * members * (members - 1) // 2 > MOST_PAIRS:
        raise DataError(
            f"{len(x)} groups of {members} cells have more than {MOST_PAIRS:,} pairs: group by item or by system, or "
            "take fewer segments"
        )
    upper, lower = np.triu_indices(members, 1)
    apart, gold_apart = x[:, upper] - x[:, lower], y[:, upper] - y[:, lower]
    if decimals is not None:
        apart, gold_apart = np.round(apart, decimals), np.round(gold_apart, decimals)
    present = ~np.isnan(apart)
    sizes = present.sum(axis=1, keepdims=True)
    weights = np.broadcast_to(1 / np.maximum(sizes, 1), present.shape)
    return apart[present], np.sign(gold_apart[present]), weights[present], int(np.count_nonzero(sizes))


def _best_epsilon(apart: FloatArray, order: NDArray[np.float64], weights: FloatArray) -> float:
    """The smallest threshold of highest accuracy.

    As the threshold passes a pair's distance, a pair tied in gold becomes right and a concordant one wrong.
    """
    gains = np.where(order == 0, weights, np.where(np.sign(apart) == order, -weights, 0.0))
    distance, places = np.unique(np.append(np.abs(apart), 0.0), return_inverse=True)
    accuracy = np.cumsum(np.bincount(places[:-1], gains, minlength=distance.size))
    return float(distance[np.argmax(accuracy >= accuracy.max() - SLACK * max(1.0, float(weights.sum())))])
