"""Pairwise accuracy with ties, at a given tie threshold or at the best one (acc-t), and its test.

All pairs of a segment are made once for each gold (`GoldPairs`). Gold decides which pairs are tied and which way the
others go; that is the same for all metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.matrices import FloatArray, Grouping, common_cells, grouped, paired_matrices
from metricsmith.stats.correlation import IntArray
from metricsmith.stats.resampling import PermutationTest
from metricsmith.stats.resampling.draws import check_draws
from metricsmith.stats.resampling.permutation import PermutationDraws

__all__ = [
    "GoldPairs",
    "MOST_PAIRS",
    "PairwiseAccuracy",
    "check_epsilon",
    "differences",
    "pairs_draws",
    "pairwise_accuracy",
    "perm_pairs",
]

MOST_PAIRS = 50_000_000  # of which a handful of arrays is held: a few GB
SLACK = 1e-12  # sums in different orders differ by less, accuracies of different thresholds by more
STRIDE = 64  # thresholds of which one is looked at before the others


class GoldPairs:
    """The pairs of cells within groups that are tied, or not, in gold: made once, for any number of metrics.

    Parameters
    ----------
    gold : ndarray, shape (groups, members)
        NaN is missing; metrics that are asked for later lack the same cells.
    decimals : int, optional
        Round differences of both sides to so many digits.

    Attributes
    ----------
    sizes : ndarray of int, shape (groups,)
        Pairs of present cells.
    used : int
        Groups that have any.
    weights : ndarray, shape (groups,), or None
        What a pair of each group counts where groups differ in size, ``1 / size``; None where they are alike.
    tied : int
        Pairs that are tied in gold.
    tied_groups, untied_groups : ndarray of int
        The group of each pair that is tied in gold, and of each that is not.
    cells : ndarray of int, shape (members, groups)
        The place of each cell in a flat matrix of shape (members, groups), gold descending along each column, NaN last.
    tied_places, untied_places : list of ndarray of int
        Where in each of `rows` the pairs are that are tied in gold, and those that are not.

    Raises
    ------
    DataError
        If there are more than `MOST_PAIRS`.
    """

    def __init__(self, gold: FloatArray, decimals: int | None = None) -> None:
        groups, members = gold.shape
        if groups * members * (members - 1) // 2 > MOST_PAIRS:
            raise DataError(
                f"{groups} groups of {members} cells have more than {MOST_PAIRS:,} pairs: group by item or by system, "
                "or take fewer segments"
            )
        present = np.count_nonzero(~np.isnan(gold), axis=1)
        self.decimals = decimals
        self.sizes: IntArray = present * (present - 1) // 2
        sizes = self.sizes[self.sizes > 0]
        self.used = sizes.size
        alike = bool((sizes == sizes[:1]).all())
        self.weights = None if alike else np.where(self.sizes > 0, 1 / np.maximum(self.sizes, 1), 0.0)
        # In this order no pair has gold the other way round.
        self.cells: IntArray = np.argsort(-gold.T, axis=0, kind="stable") * groups + np.arange(groups)
        self.tied_places: list[IntArray] = []
        self.untied_places: list[IntArray] = []
        for apart in self.rows(self.in_order(gold)):
            self.tied_places.append(np.flatnonzero(apart == 0))
            self.untied_places.append(np.flatnonzero(apart > 0))

    @property
    def tied(self) -> int:
        """The number of pairs that are tied in gold."""
        return sum(map(len, self.tied_places))

    @property
    def tied_groups(self) -> IntArray:
        """The group of each pair that is tied in gold."""
        return _joined(self.tied_places) % self.sizes.size

    @property
    def untied_groups(self) -> IntArray:
        """The group of each pair that is not tied in gold."""
        return _joined(self.untied_places) % self.sizes.size

    def distances(self, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Returns a metric's differences for pairs tied in gold, in size, and for the others, toward gold.

        The former are at least 0; the latter are above 0 where the metric has the gold order.
        """
        tied, untied = np.empty(self.tied), np.empty(sum(map(len, self.untied_places)))
        stops = [0, 0]
        for apart, *kinds in zip(self.rows(self.in_order(metric)), self.tied_places, self.untied_places, strict=True):
            for side, (found, places) in enumerate(zip((tied, untied), kinds, strict=True)):
                start, stops[side] = stops[side], stops[side] + places.size
                apart.take(places, out=found[start : stops[side]], mode="clip")
        return np.abs(tied, out=tied), untied

    def in_order(self, scores: FloatArray) -> FloatArray:
        """Returns scores of shape (groups, members) as columns whose gold descends, shape (members, groups)."""
        return np.take(np.ascontiguousarray(scores.T), self.cells)

    def rows(self, columns: FloatArray, others: FloatArray | None = None) -> Iterator[FloatArray]:
        """Yields each member's scores less those of all after it, flat: few enough to stay in the cache.

        With `others` of the same shape, those after it are taken from there.
        """
        others = columns if others is None else others
        for first in range(len(columns) - 1):
            apart = (columns[first] - others[first + 1 :]).ravel()
            yield apart if self.decimals is None else np.round(apart, self.decimals, out=apart)

    def accuracy(self, metric: FloatArray, epsilon: float) -> float:
        """Returns the mean over groups of the share of pairs that a metric orders or ties as gold, at the threshold."""
        tied, untied = self.distances(metric)
        return self.share(tied <= epsilon, untied > epsilon)

    def share(self, tied: NDArray[np.bool_], untied: NDArray[np.bool_]) -> float:
        """Returns the accuracy from the masks of pairs that are right."""
        if self.weights is None:
            right = np.count_nonzero(tied) + np.count_nonzero(untied)
            return float(right / int(self.sizes.max()) / self.used)
        counts = np.bincount(np.append(self.tied_groups[tied], self.untied_groups[untied]), minlength=self.sizes.size)
        return float(min(math.fsum((counts * self.weights).tolist()) / self.used, 1.0))

    def calibrated(self, metric: FloatArray) -> tuple[float, float]:
        """Returns the highest accuracy over all thresholds, and the smallest threshold that has it.

        As the threshold passes a pair's distance, a pair tied in gold becomes right and a concordant one wrong. Others
        stay wrong. So only 0 and the distances of gold ties can be the smallest of the best.
        """
        tied, untied = self.distances(metric)
        if self.weights is not None:
            epsilon = self._weighted_threshold(tied, untied, self.weights)
            return self.share(tied <= epsilon, untied > epsilon), epsilon
        tied.sort()
        untied.sort()
        lost = untied[np.searchsorted(untied, 0.0, side="right") :]
        epsilon = _threshold(tied, lost)
        right = np.searchsorted(tied, epsilon, side="right") + lost.size - np.searchsorted(lost, epsilon, side="right")
        return float(right / int(self.sizes.max()) / self.used), epsilon

    def _weighted_threshold(self, tied: FloatArray, untied: FloatArray, weights: FloatArray) -> float:
        orders = np.argsort(tied), np.argsort(untied)
        won, lost = tied[orders[0]], untied[orders[1]]
        gain = np.cumsum(weights[self.tied_groups[orders[0]]])
        loss = np.append(0.0, np.cumsum(np.where(lost > 0, weights[self.untied_groups[orders[1]]], 0.0)))
        gain -= loss[np.searchsorted(lost, won, side="right")]
        slack = SLACK * self.used
        zeros = np.searchsorted(won, 0.0, side="right")
        if not won.size or gain.max() <= (gain[zeros - 1] if zeros else 0.0) + slack:
            return 0.0
        return float(won[np.argmax(gain >= gain.max() - slack)])


def differences(columns: FloatArray, decimals: int | None = None) -> FloatArray:
    """Returns first less second of all pairs of rows (0, 1), (0, 2), ..., (members, groups) -> (pairs, groups)."""
    columns = np.ascontiguousarray(columns)
    members = len(columns)
    apart = np.empty((members * (members - 1) // 2, columns.shape[1]))
    start = 0
    for first in range(members - 1):
        stop = start + members - 1 - first
        np.subtract(columns[first], columns[first + 1 :], out=apart[start:stop])
        start = stop
    return apart if decimals is None else np.round(apart, decimals, out=apart)


def _threshold(won: FloatArray, lost: FloatArray) -> float:
    """Returns the smallest of 0 and `won` with most of `won` and fewest of `lost` at or below it; both in order.

    Of every `STRIDE` thresholds the first is looked at; the others only where they could be better.
    """
    seen = np.arange(0, won.size, STRIDE)
    below = np.searchsorted(lost, won[seen], side="right")
    at_zero = int(np.searchsorted(won, 0.0, side="right"))
    least = max(int((seen + 1 - below).max(initial=0)), at_zero)
    promising = seen[np.minimum(seen + STRIDE, won.size) - below >= least]
    places = (promising[:, None] + np.arange(STRIDE)).ravel()
    places = places[places < won.size]
    gain = places + 1 - np.searchsorted(lost, won[places], side="right")
    if gain.max(initial=0) <= at_zero:
        return 0.0
    return float(won[places[np.argmax(gain)]])


def _joined(places: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *places])


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
        what knowing nothing gets. All pairs count for the threshold: a sample of a tenth, the public tool's default,
        moved acc-t by .02 between seeds.

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


def perm_pairs(
    first: ArrayLike,
    second: ArrayLike,
    gold: ArrayLike,
    *,
    by: Grouping = "item",
    epsilon: float | None = None,
    decimals: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PermutationTest:
    """Test whether the first metric has a higher `pairwise_accuracy` than the second, by exchanging decisions.

    The tie threshold of each metric is found once, on the scores as they are. Each resample then exchanges what the
    two metrics decide about a pair (better, worse, tied) with probability 1/2, pair by pair. Pairs on which both are
    right or both wrong move nothing, so that a resample takes one binomial number for all groups of one size.

    `perm_both` exchanges scores and finds thresholds anew. Decisions can be exchanged into accuracies that no exchange
    of scores has, and all pairs of a segment are taken for independent, although they share outputs: the null is
    narrower, and smaller differences are significant.

    Parameters
    ----------
    first, second, gold : array_like, shape (k, n)
        NaN is missing; only cells that all three have take part.
    by, epsilon, decimals
        As for `pairwise_accuracy`; ``epsilon=None`` calibrates each metric by itself.
    resamples, seed : int

    Returns
    -------
    PermutationTest
        `observed` is the first's accuracy less the second's; `p_value` is one-sided, ``(b + 1) / (m + 1)`` with b of m
        resamples at least as great; NaN if no group has two cells.

    Raises
    ------
    DataError
        If the matrices differ in shape, a score is infinite, or there are more than 50 million pairs.
    OptionError
        If `resamples` is below 1, or `epsilon` or `by` has no meaning.

    References
    ----------
    The ``pairs`` test of mt-metrics-eval, which WMT's metrics tasks of 2023 to 2025 use for acc-t; it gives b / m, with
    its metrics in the other order.
    """
    return pairs_draws(
        first, second, gold, by=by, epsilon=epsilon, decimals=decimals, resamples=resamples, seed=seed
    ).test("greater")


def pairs_draws(
    first: ArrayLike,
    second: ArrayLike,
    gold: ArrayLike,
    *,
    by: Grouping = "item",
    epsilon: float | None = None,
    decimals: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PermutationDraws:
    """Returns the draws of `perm_pairs`, whose parameters these are."""
    check_draws(resamples)
    check_epsilon(epsilon)
    (first, second), gold = common_cells([first, second], gold)
    pairs = GoldPairs(grouped(gold, gold, by)[0], decimals)
    if not pairs.used:
        return PermutationDraws(math.nan, np.full(resamples, math.nan))
    right = []
    for metric in grouped(first, second, by):
        threshold = pairs.calibrated(metric)[1] if epsilon is None else epsilon
        tied, untied = pairs.distances(metric)
        right.append((tied <= threshold, untied > threshold))
    ahead, behind = (_by_group(pairs, one, other) for one, other in (right, right[::-1]))
    sizes, size_of = np.unique(pairs.sizes, return_inverse=True)
    won, lost = (np.bincount(size_of, weights=counts, minlength=sizes.size) for counts in (ahead, behind))
    share = np.where(sizes > 0, 1 / np.maximum(sizes, 1), 0.0) / pairs.used
    moving = (won + lost).astype(np.int64)
    taken = np.random.default_rng(seed).binomial(moving, 0.5, size=(resamples, sizes.size))
    return PermutationDraws(float((won - lost) @ share), (2 * taken - moving) @ share)


def _by_group(
    pairs: GoldPairs, one: tuple[NDArray[np.bool_], NDArray[np.bool_]], other: tuple[NDArray[np.bool_], ...]
) -> NDArray[np.int64]:
    """Returns the number of pairs of each group on which the one metric is right and the other wrong."""
    groups = [pairs.tied_groups[one[0] & ~other[0]], pairs.untied_groups[one[1] & ~other[1]]]
    return np.bincount(np.concatenate(groups), minlength=pairs.sizes.size)
