"""Pairwise accuracy with ties, at a given tie threshold or at the best one (acc-t)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from metricsmith.errors import OptionError
from metricsmith.meta_evaluation.grouping import Grouping, grouped, paired_matrices
from metricsmith.meta_evaluation.pairs import GoldPairs

__all__ = ["PairwiseAccuracy", "check_epsilon", "pairwise_accuracy"]


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
    judged by; to measure it on others, pass the ``epsilon`` found elsewhere. `metricsmith.stats.agreement` has the
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
    check_epsilon(epsilon)
    x, y = grouped(*paired_matrices(metric, gold), by)
    pairs = GoldPairs(y, decimals)
    if not pairs.used:
        return PairwiseAccuracy(math.nan, math.nan, 0, len(x), 0, 0)
    value, epsilon = pairs.calibrated(x) if epsilon is None else (pairs.accuracy(x, epsilon), float(epsilon))
    return PairwiseAccuracy(value, epsilon, pairs.used, len(x) - pairs.used, int(pairs.sizes.sum()), pairs.tied)


def check_epsilon(epsilon: float | None) -> None:
    """Raise an `OptionError` unless a tie threshold is a number from 0, or None."""
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon >= 0):
        raise OptionError(f"epsilon={epsilon!r} must be finite and at least 0, or None to calibrate it")
