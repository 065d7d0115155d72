"""Pairs of cells by what gold says of them, and the tie threshold that is best for them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.grouping import FloatArray

__all__ = ["MOST_PAIRS", "GoldPairs", "differences"]

IntArray = NDArray[np.int64]

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
        """As said above."""
        return sum(map(len, self.tied_places))

    @property
    def tied_groups(self) -> IntArray:
        """As said above."""
        return _joined(self.tied_places) % self.sizes.size

    @property
    def untied_groups(self) -> IntArray:
        """As said above."""
        return _joined(self.untied_places) % self.sizes.size

    def distances(self, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of a metric of the same shape: differences of pairs tied in gold, in size, and of others, toward gold.

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
        """Scores of shape (groups, members) as columns whose gold descends, shape (members, groups)."""
        return np.take(np.ascontiguousarray(scores.T), self.cells)

    def rows(self, columns: FloatArray, others: FloatArray | None = None) -> Iterator[FloatArray]:
        """For each member but the last, its scores less those of all after it, flat: few enough to stay in the cache.

        With `others` of the same shape, those after it are taken from there.
        """
        others = columns if others is None else others
        for first in range(len(columns) - 1):
            apart = (columns[first] - others[first + 1 :]).ravel()
            yield apart if self.decimals is None else np.round(apart, self.decimals, out=apart)

    def accuracy(self, metric: FloatArray, epsilon: float) -> float:
        """Mean over groups of the share of pairs that a metric ties, at this threshold, or orders as gold does."""
        tied, untied = self.distances(metric)
        return self.share(tied <= epsilon, untied > epsilon)

    def share(self, tied: NDArray[np.bool_], untied: NDArray[np.bool_]) -> float:
        """The same from which pairs are right."""
        if self.weights is None:
            right = np.count_nonzero(tied) + np.count_nonzero(untied)
            return float(right / int(self.sizes.max()) / self.used)
        counts = np.bincount(np.append(self.tied_groups[tied], self.untied_groups[untied]), minlength=self.sizes.size)
        return float(min(math.fsum((counts * self.weights).tolist()) / self.used, 1.0))

    def calibrated(self, metric: FloatArray) -> tuple[float, float]:
        """The highest accuracy over all thresholds, and the smallest threshold that has it.

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


def _threshold(won: FloatArray, lost: FloatArray) -> float:
    """The smallest of 0 and `won` that has most of `won` and fewest of `lost` at or below it; both in order.

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
