"""Pairwise accuracy with ties, at a given tie threshold or at the best one (acc-t)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, grouped, paired_matrices

__all__ = ["PairwiseAccuracy", "Pairs", "all_pairs", "differences", "pairwise_accuracy"]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

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
    pairs = all_pairs(x, y, decimals)
    used = pairs.sizes > 0
    groups = int(np.count_nonzero(used))
    if not groups:
        return PairwiseAccuracy(math.nan, math.nan, 0, len(x), 0, 0)
    if epsilon is None:
        epsilon = _best_epsilon(pairs)
    right = np.where(pairs.distance <= epsilon, pairs.tied, pairs.concordant)
    shares = np.count_nonzero(right, axis=0)[used] / pairs.sizes[used]
    value = math.fsum(shares.tolist()) / groups
    return PairwiseAccuracy(
        min(value, 1.0), float(epsilon), groups, len(x) - groups,
        int(pairs.sizes.sum()), int(np.count_nonzero(pairs.tied)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of cells of a group, one group in each column.

    Parameters
    ----------
    distance : ndarray, shape (pairs, groups)
        Size of the metric difference; NaN where a cell is missing.
    tied, concordant : ndarray of bool, shape (pairs, groups)
        Tied in gold; untied in gold and in the same order on both sides. False where a cell is missing.
    sizes : ndarray of int, shape (groups,)
        Pairs of present cells.
    """

    distance: FloatArray
    tied: BoolArray
    concordant: BoolArray
    sizes: IntArray


def all_pairs(x: FloatArray, y: FloatArray, decimals: int | None = None) -> Pairs:
    """The pairs of groups in rows, arrays of shape (groups, members), NaN on both sides where either is.

    Raises
    ------
    DataError
        If there are more than `MOST_PAIRS`.
    """
    groups, members = x.shape
    if groups * members * (members - 1) // 2 > MOST_PAIRS:
        raise DataError(
            f"{groups} groups of {members} cells have more than {MOST_PAIRS:,} pairs: group by item or by system, or "
            "take fewer segments"
        )
    apart, gold_apart = differences(x.T, decimals), differences(y.T, decimals)
    concordant = ((apart > 0) & (gold_apart > 0)) | ((apart < 0) & (gold_apart < 0))
    present = np.count_nonzero(~np.isnan(x), axis=1)
    return Pairs(np.abs(apart, out=apart), gold_apart == 0, concordant, present * (present - 1) // 2)


def differences(columns: FloatArray, decimals: int | None = None) -> FloatArray:
    """First less second of all pairs of rows, shape (members, groups) -> (pairs, groups); (0, 1), (0, 2), ..."""
    columns = np.ascontiguousarray(columns)
    members = len(columns)
    apart = np.empty((members * (members - 1) // 2, columns.shape[1]))
    start = 0
    for first in range(members - 1):
        stop = start + members - 1 - first
        np.subtract(columns[first], columns[first + 1 :], out=apart[start:stop])
        start = stop
    return apart if decimals is None else np.round(apart, decimals, out=apart)


def _best_epsilon(pairs: Pairs) -> float:
    """The smallest threshold of highest accuracy.

    As the threshold passes a pair's distance, a pair tied in gold becomes right and a concordant one wrong. Others
    stay wrong. So only 0 and the distances of gold ties can be the smallest of the best.
    """
    sides = pairs.distance[pairs.tied], pairs.distance[pairs.concordant]
    sizes = pairs.sizes[pairs.sizes > 0]
    if (sizes == sizes[0]).all():
        won, lost = (np.sort(side) for side in sides)
        gained: FloatArray | IntArray = np.arange(1, won.size + 1) - np.searchsorted(lost, won, side="right")
        slack = 0.0
    else:
        weights = np.broadcast_to(1 / np.maximum(pairs.sizes, 1), pairs.tied.shape)
        orders = [np.argsort(side) for side in sides]
        won, lost = (side[order] for side, order in zip(sides, orders, strict=True))
        right = np.cumsum(weights[pairs.tied][orders[0]])
        wrong = np.append(0.0, np.cumsum(weights[pairs.concordant][orders[1]]))
        gained = right - wrong[np.searchsorted(lost, won, side="right")]
        slack = SLACK * sizes.size
    zeros = np.searchsorted(won, 0.0, side="right")
    at_zero = gained[zeros - 1] if zeros else 0
    if not won.size or gained.max() <= at_zero + slack:
        return 0.0
    return float(won[np.argmax(gained >= gained.max() - slack)])
