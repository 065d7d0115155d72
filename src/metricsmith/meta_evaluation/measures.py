"""The measures by name: functions of a metric's scores and gold scores whose values can be compared.

A measure of `MEASURES` shares work between many metrics, resamples or parts of the segments where it can: the methods
that `metricsmith.meta_evaluation.matrices.Measure` lists. The methods ``against`` take gold, a matrix of shape
(k, n), NaN where missing, and return a function of metrics that lack the same cells, shape (m, k, n), that returns
their values, shape (m,): those of the measure to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from metricsmith.errors import OptionError, nearest
from metricsmith.meta_evaluation.exchanged_accuracies import (
    exchanged_accuracies,
    exchanged_calibrated_accuracies,
    exchanged_soft_accuracies,
    exchanged_soft_accuracies_limit,
    exchanged_system_accuracies,
)
from metricsmith.meta_evaluation.exchanged_correlations import (
    exchanged_item_kendall,
    exchanged_item_pearson,
    exchanged_item_spearman,
    exchanged_pooled_kendall,
    exchanged_pooled_pearson,
    exchanged_pooled_spearman,
    exchanged_system_correlations,
)
from metricsmith.meta_evaluation.jackknife import (
    jackknifed_calibrated_accuracies,
    jackknifed_item_accuracies,
    jackknifed_item_correlations,
    jackknifed_pooled_kendall,
    jackknifed_pooled_pearson,
    jackknifed_pooled_spearman,
    jackknifed_soft_accuracies,
    jackknifed_system_correlations,
    jackknifed_values,
)
from metricsmith.meta_evaluation.matrices import (
    FloatArray,
    Grouping,
    Measure,
    grouped,
    segment_correlation,
    system_means,
)
from metricsmith.meta_evaluation.pairwise import GoldPairs, PairwiseAccuracy, pairs_draws, pairwise_accuracy
from metricsmith.meta_evaluation.systems import (
    SoftPairwiseAccuracy,
    SystemPairwiseAccuracy,
    Ties,
    random_signs,
    reached,
    redrawn_accuracies,
    soft_pairwise_accuracy,
    system_pairwise_accuracy,
)
from metricsmith.stats import correlation as correlations
from metricsmith.stats.correlation import GroupedCorrelation, IntArray
from metricsmith.stats.resampling.permutation import Exchange, PermutationDraws, Swapped

__all__ = [
    "Against",
    "MEASURES",
    "SegmentAccuracy",
    "SegmentCorrelation",
    "SoftSystemAccuracy",
    "SystemAccuracy",
    "SystemCorrelation",
    "item_kendall_against",
    "measure",
]

Against = Callable[[FloatArray], FloatArray]
AT_ONCE = 8  # metrics, whose product with the sign vectors then reads these once
Correlation = Literal["kendall_tau_b", "pearson", "spearman"]
POOLED = {
    "kendall_tau_b": jackknifed_pooled_kendall,
    "pearson": jackknifed_pooled_pearson,
    "spearman": jackknifed_pooled_spearman,
}
EXCHANGED: Mapping[tuple[str, str], Exchange] = {
    ("kendall_tau_b", "none"): exchanged_pooled_kendall,
    ("pearson", "none"): exchanged_pooled_pearson,
    ("spearman", "none"): exchanged_pooled_spearman,
    ("kendall_tau_b", "item"): exchanged_item_kendall,
    ("pearson", "item"): exchanged_item_pearson,
    ("spearman", "item"): exchanged_item_spearman,
}


def item_kendall_against(gold: FloatArray) -> Against:
    """Kendall's tau-b by item of many metrics: gold's signs are made once, a metric's are counted in small numbers."""
    small = np.int8 if len(gold) <= np.iinfo(np.int8).max else np.int32

    def signs(scores: FloatArray, row: int) -> FloatArray:
        below, above = scores[row] > scores[row + 1 :], scores[row] < scores[row + 1 :]
        return np.asarray(np.subtract(below, above, dtype=small))

    truth = [signs(gold, row) for row in range(len(gold) - 1)]
    wanted = sum((np.abs(order).sum(axis=0, dtype=np.int64) for order in truth), np.zeros(gold.shape[1], np.int64))

    def value(metric: FloatArray) -> float:
        surplus, untied = np.zeros((2, gold.shape[1]), dtype=np.int64)
        for row, order in enumerate(truth):
            own = signs(metric, row)
            surplus += (own * order).sum(axis=0, dtype=small)
            untied += np.abs(own).sum(axis=0, dtype=small)
        scale = np.sqrt(untied.astype(float) * wanted.astype(float))
        defined = scale > 0
        values = np.clip(surplus[defined] / scale[defined], -1.0, 1.0)
        return math.fsum(values) / values.size if values.size else math.nan

    return lambda metrics: np.array([value(metric) for metric in metrics])


@dataclass(frozen=True, slots=True)
class SegmentAccuracy:
    """`pairwise_accuracy`; with ``epsilon=None`` acc-t."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    by: Grouping = "item"
    epsilon: float | None = None
    decimals: int | None = None

    def __call__(self, metric: FloatArray, gold: FloatArray) -> PairwiseAccuracy:
        """Returns the value for two matrices of shape (k, n)."""
        return pairwise_accuracy(metric, gold, by=self.by, epsilon=self.epsilon, decimals=self.decimals)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """Returns the values without each part of the segments."""
        if self.by != "item":
            return jackknifed_values(self, metric, gold, parts)
        if self.epsilon is None:
            return jackknifed_calibrated_accuracies(metric, gold, parts, self.decimals)
        return jackknifed_item_accuracies(metric, gold, parts, self.epsilon, self.decimals)

    def against(self, gold: FloatArray) -> Against:
        """Returns a function of several metrics, for which gold tells pairs apart once."""
        pairs = GoldPairs(grouped(gold, gold, self.by)[0], self.decimals)

        def value(metric: FloatArray) -> float:
            own = grouped(metric, metric, self.by)[0]
            return pairs.calibrated(own)[0] if self.epsilon is None else pairs.accuracy(own, self.epsilon)

        return lambda metrics: np.array([value(metric) if pairs.used else math.nan for metric in metrics])

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Returns a function of exchanged cells."""
        if self.epsilon is None:
            return exchanged_calibrated_accuracies(first, second, gold, self.by, self.decimals)
        return exchanged_accuracies(first, second, gold, self.by, self.epsilon, self.decimals)

    def pairs_exchanged(
        self, first: FloatArray, second: FloatArray, gold: FloatArray, resamples: int, seed: int
    ) -> PermutationDraws | None:
        """The draws of `perm_pairs` where a threshold is calibrated, as in WMT; None at a given one."""
        if self.epsilon is not None:
            return None
        return pairs_draws(first, second, gold, by=self.by, decimals=self.decimals, resamples=resamples, seed=seed)


@dataclass(frozen=True, slots=True)
class SegmentCorrelation:
    """`segment_correlation`."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    p_error: ClassVar[float] = 0.001
    correlation: Correlation = "kendall_tau_b"
    by: Grouping = "none"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> GroupedCorrelation:
        """Returns the value for two matrices of shape (k, n)."""
        return segment_correlation(metric, gold, correlation=self.correlation, by=self.by)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """Returns the values without each part of the segments."""
        if self.by == "item":
            return jackknifed_item_correlations(self.correlation, metric, gold, parts)
        if self.by == "none":
            return POOLED[self.correlation](metric, gold, parts)
        return jackknifed_values(self, metric, gold, parts)

    def against(self, gold: FloatArray) -> Against | None:
        """Returns a function of several metrics; None but for tau-b by item."""
        return item_kendall_against(gold) if (self.correlation, self.by) == ("kendall_tau_b", "item") else None

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped | None:
        """Returns a function of exchanged cells; None by system, and for tau-b over all cells where scores tie."""
        way = EXCHANGED.get((self.correlation, self.by))
        return way and way(first, second, gold)

    def approximated(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped | None:
        """Returns tau-b over all cells where scores tie, to about 1e-6: `exchanged_pooled_kendall`."""
        if (self.correlation, self.by) != ("kendall_tau_b", "none"):
            return None
        return exchanged_pooled_kendall(first, second, gold, approximately=True)


@dataclass(frozen=True, slots=True)
class SoftSystemAccuracy:
    """`soft_pairwise_accuracy` (SPA). With `p_error` None the limit of many sign vectors decides no test."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    whole_segments: ClassVar[bool] = True
    draws: int = 1000
    seed: int = 0
    ties: Ties = "half"
    p_error: float | None = 0.03

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SoftPairwiseAccuracy:
        """Returns the value for two matrices of shape (k, n)."""
        return soft_pairwise_accuracy(metric, gold, draws=self.draws, seed=self.seed, ties=self.ties)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """Returns the limit of many draws: `jackknifed_soft_accuracies`."""
        return jackknifed_soft_accuracies(metric, gold, parts, 0.5 if self.ties == "half" else 1.0)

    def against(self, gold: FloatArray) -> Against:
        """Returns a function of several metrics: gold's p-values once, one product with the signs for several."""
        whole = ~np.isnan(gold).any(axis=0)
        segments = int(np.count_nonzero(whole))
        if not segments or len(gold) < 2:
            return lambda metrics: np.full(len(metrics), math.nan)
        signs = random_signs(self.draws, segments, self.seed)
        truth = reached(gold[:, whole] @ signs, gold[:, whole], self.ties)[:, 0]

        def values(metrics: FloatArray) -> FloatArray:
            found = []
            for start in range(0, len(metrics), AT_ONCE):
                sides = metrics[start : start + AT_ONCE][:, :, whole]
                flipped = (sides.reshape(-1, segments) @ signs).reshape(*sides.shape[:2], self.draws)
                for sums, side in zip(flipped, sides, strict=True):
                    found.append(1 - float(np.abs(reached(sums, side, self.ties)[:, 0] - truth).mean()) / self.draws)
            return np.array(found)

        return values

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Returns a function of exchanged cells."""
        return exchanged_soft_accuracies(first, second, gold, self.draws, self.seed, self.ties)

    def approximated(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Returns the limit of many sign vectors."""
        return exchanged_soft_accuracies_limit(first, second, gold, 0.5 if self.ties == "half" else 1.0)


@dataclass(frozen=True, slots=True)
class SystemAccuracy:
    """`system_pairwise_accuracy`; with `sizes` that of several language pairs whose systems stand one below the other.

    Concordant pairs of systems are added up over language pairs, as are all pairs.
    """

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    whole_segments: ClassVar[bool] = True
    sizes: tuple[int, ...] = ()

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SystemPairwiseAccuracy:
        """Returns the value for two matrices of shape (k, n)."""
        return system_pairwise_accuracy(metric, gold, sizes=self.sizes)

    def redrawn(self, metric: FloatArray, gold: FloatArray, parts: IntArray, times: IntArray) -> FloatArray:
        """Returns the values with each part taken so many times: `systems.redrawn_accuracies`."""
        return redrawn_accuracies(metric, gold, parts, times, self.sizes)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Returns a function of exchanged cells."""
        return exchanged_system_accuracies(first, second, gold, self.sizes)


@dataclass(frozen=True, slots=True)
class SystemCorrelation:
    """Correlation of `system_means`; NaN with two systems: any scores of two correlate 1 or -1."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    whole_segments: ClassVar[bool] = True
    correlation: Correlation = "pearson"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> float:
        """Returns the value for two matrices of shape (k, n)."""
        if len(metric) == 2:
            return math.nan
        return float(getattr(correlations, self.correlation)(*system_means(metric, gold)))

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """Returns the values without each part of the segments."""
        return jackknifed_system_correlations(self.correlation, metric, gold, parts)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Returns a function of exchanged cells."""
        return exchanged_system_correlations(self.correlation, first, second, gold)


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "spa": SoftSystemAccuracy(),
        "acc-t": SegmentAccuracy(),
        "system-accuracy": SystemAccuracy(),
        "system-pearson": SystemCorrelation("pearson"),
        "acc": SegmentAccuracy(epsilon=0.0),
        "tau-b": SegmentCorrelation("kendall_tau_b"),
        "tau-b-item": SegmentCorrelation("kendall_tau_b", "item"),
        "pearson": SegmentCorrelation("pearson"),
        "pearson-item": SegmentCorrelation("pearson", "item"),
        "spearman": SegmentCorrelation("spearman"),
        "spearman-item": SegmentCorrelation("spearman", "item"),
    }
)
"""System level first; ``spa`` and ``acc-t`` are the two tasks of WMT24 in each language pair."""


def measure(name: str) -> Measure:
    """Returns one of `MEASURES` by its name.

    Raises
    ------
    OptionError
        If there is none of this name; it names the nearest.
    """
    if name not in MEASURES:
        raise OptionError(f"unknown measure {name!r}{nearest(name, MEASURES)}; known are {', '.join(MEASURES)}")
    return MEASURES[name]
