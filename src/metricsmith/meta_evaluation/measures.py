"""The measures by name: what is computed from a metric's scores and gold scores, as values that can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError, nearest
from metricsmith.meta_evaluation import (
    against,
    exchange,
    exchanged_correlations,
    exchanged_systems,
    jackknife,
    rank_jackknife,
)
from metricsmith.meta_evaluation.against import Against
from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, segment_correlation, system_means
from metricsmith.meta_evaluation.pair_swaps import perm_pairs
from metricsmith.meta_evaluation.pairwise import PairwiseAccuracy, pairwise_accuracy
from metricsmith.meta_evaluation.significance import Measure
from metricsmith.meta_evaluation.systems import (
    SoftPairwiseAccuracy,
    SystemPairwiseAccuracy,
    Ties,
    redrawn_accuracies,
    soft_pairwise_accuracy,
    system_pairwise_accuracy,
)
from metricsmith.stats import correlation as correlations
from metricsmith.stats.correlation import GroupedCorrelation
from metricsmith.stats.resampling import PermutationTest
from metricsmith.stats.resampling.permutation import Exchange, Swapped

__all__ = [
    "MEASURES", "SegmentAccuracy", "SegmentCorrelation", "SoftSystemAccuracy", "SystemAccuracy", "SystemCorrelation",
    "measure",
]  # fmt: skip

IntArray = NDArray[np.int64]
Correlation = Literal["kendall_tau_b", "pearson", "spearman"]

POOLED = {
    "kendall_tau_b": rank_jackknife.pooled_kendall,
    "pearson": jackknife.pooled_pearson,
    "spearman": rank_jackknife.pooled_spearman,
}
EXCHANGED: Mapping[tuple[str, str], Exchange] = {
    ("kendall_tau_b", "none"): exchanged_correlations.pooled_kendall,
    ("pearson", "none"): exchange.pooled_pearson,
    ("spearman", "none"): exchanged_correlations.pooled_spearman,
    ("kendall_tau_b", "item"): exchanged_correlations.item_kendall,
    ("pearson", "item"): exchanged_correlations.item_pearson,
    ("spearman", "item"): exchanged_correlations.item_spearman,
}


@dataclass(frozen=True, slots=True)
class SegmentAccuracy:
    """`pairwise_accuracy`; with ``epsilon=None`` acc-t."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    by: Grouping = "item"
    epsilon: float | None = None
    decimals: int | None = None

    def __call__(self, metric: FloatArray, gold: FloatArray) -> PairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return pairwise_accuracy(metric, gold, by=self.by, epsilon=self.epsilon, decimals=self.decimals)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """As `jackknife.left_out`."""
        if self.by != "item":
            return jackknife.left_out(self, metric, gold, parts)
        if self.epsilon is None:
            return jackknife.calibrated_accuracies(metric, gold, parts, self.decimals)
        return jackknife.item_accuracies(metric, gold, parts, self.epsilon, self.decimals)

    def against(self, gold: FloatArray) -> Against:
        """Answers as the functions of `against`."""
        return against.accuracies(gold, self.by, self.epsilon, self.decimals)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Answers as the functions of `exchange`."""
        if self.epsilon is None:
            return exchange.calibrated_accuracies(first, second, gold, self.by, self.decimals)
        return exchange.accuracies(first, second, gold, self.by, self.epsilon, self.decimals)

    def pairs_exchanged(
        self, first: FloatArray, second: FloatArray, gold: FloatArray, resamples: int, seed: int
    ) -> PermutationTest | None:
        """`perm_pairs` where a threshold is calibrated, as in WMT; None at a given one."""
        if self.epsilon is not None:
            return None
        return perm_pairs(first, second, gold, by=self.by, decimals=self.decimals, resamples=resamples, seed=seed)


@dataclass(frozen=True, slots=True)
class SegmentCorrelation:
    """`segment_correlation`."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    p_error: ClassVar[float] = 0.001
    correlation: Correlation = "kendall_tau_b"
    by: Grouping = "none"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> GroupedCorrelation:
        """Matrices of shape (k, n)."""
        return segment_correlation(metric, gold, correlation=self.correlation, by=self.by)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """As `jackknife.left_out`."""
        if self.by == "item":
            return jackknife.item_correlations(self.correlation, metric, gold, parts)
        if self.by == "none":
            return POOLED[self.correlation](metric, gold, parts)
        return jackknife.left_out(self, metric, gold, parts)

    def against(self, gold: FloatArray) -> Against | None:
        """Answers as the functions of `against`; None but for tau-b by item."""
        return against.item_kendall(gold) if (self.correlation, self.by) == ("kendall_tau_b", "item") else None

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped | None:
        """Answers as the functions of `exchange`; None by system, and for tau-b over all cells where scores tie."""
        way = EXCHANGED.get((self.correlation, self.by))
        return way and way(first, second, gold)

    def approximated(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped | None:
        """Tau-b over all cells where scores tie, to about 1e-6: `exchanged_correlations.pooled_kendall`."""
        if (self.correlation, self.by) != ("kendall_tau_b", "none"):
            return None
        return exchanged_correlations.pooled_kendall(first, second, gold, approximately=True)


@dataclass(frozen=True, slots=True)
class SoftSystemAccuracy:
    """`soft_pairwise_accuracy` (SPA)."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    whole_segments: ClassVar[bool] = True
    p_error: ClassVar[float] = 0.03
    draws: int = 1000
    seed: int = 0
    ties: Ties = "half"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SoftPairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return soft_pairwise_accuracy(metric, gold, draws=self.draws, seed=self.seed, ties=self.ties)

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """The limit of many draws: `jackknife.soft_accuracies`."""
        return jackknife.soft_accuracies(metric, gold, parts, 0.5 if self.ties == "half" else 1.0)

    def against(self, gold: FloatArray) -> Against:
        """Answers as the functions of `against`."""
        return against.soft_accuracies(gold, self.draws, self.seed, self.ties)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Answers as the functions of `exchange`."""
        return exchanged_systems.soft_accuracies(first, second, gold, self.draws, self.seed, self.ties)

    def approximated(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """The limit of many sign vectors."""
        return exchanged_systems.soft_accuracies_limit(first, second, gold, 0.5 if self.ties == "half" else 1.0)


@dataclass(frozen=True, slots=True)
class SystemAccuracy:
    """`system_pairwise_accuracy`."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    whole_segments: ClassVar[bool] = True

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SystemPairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return system_pairwise_accuracy(metric, gold)

    def redrawn(self, metric: FloatArray, gold: FloatArray, parts: IntArray, times: IntArray) -> FloatArray:
        """Values with each part taken so many times: `systems.redrawn_accuracies`."""
        return redrawn_accuracies(metric, gold, parts, times)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Answers as the functions of `exchange`."""
        return exchanged_systems.system_accuracies(first, second, gold)


@dataclass(frozen=True, slots=True)
class SystemCorrelation:
    """Correlation of `system_means`; NaN with two systems, which correlate 1 or -1 whatever their scores."""

    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    whole_segments: ClassVar[bool] = True
    correlation: Correlation = "pearson"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> float:
        """Matrices of shape (k, n)."""
        if len(metric) == 2:
            return math.nan
        return float(getattr(correlations, self.correlation)(*system_means(metric, gold)))

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray:
        """As `jackknife.left_out`."""
        return jackknife.system_correlations(self.correlation, metric, gold, parts)

    def exchanged(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
        """Answers as the functions of `exchange`."""
        return exchanged_systems.system_correlations(self.correlation, first, second, gold)


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
    """One of `MEASURES`.

    Raises
    ------
    OptionError
        If there is none of this name; it names the nearest.
    """
    if name not in MEASURES:
        raise OptionError(f"unknown measure {name!r}{nearest(name, MEASURES)}; known are {', '.join(MEASURES)}")
    return MEASURES[name]
