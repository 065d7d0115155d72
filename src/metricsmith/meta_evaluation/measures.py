"""The measures by name: what is computed from a metric's scores and gold scores, as values that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from metricsmith import correlation as correlations
from metricsmith.correlation import GroupedCorrelation
from metricsmith.errors import OptionError, nearest
from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, segment_correlation, system_means
from metricsmith.meta_evaluation.pairwise import PairwiseAccuracy, pairwise_accuracy
from metricsmith.meta_evaluation.significance import Measure
from metricsmith.meta_evaluation.systems import (
    SoftPairwiseAccuracy,
    SystemPairwiseAccuracy,
    Ties,
    soft_pairwise_accuracy,
    system_pairwise_accuracy,
)

__all__ = [
    "MEASURES", "SegmentAccuracy", "SegmentCorrelation", "SoftSystemAccuracy", "SystemAccuracy", "SystemCorrelation",
    "measure",
]  # fmt: skip

Correlation = Literal["kendall_tau_b", "pearson", "spearman"]


@dataclass(frozen=True, slots=True)
class SegmentAccuracy:
    """`pairwise_accuracy`; with ``epsilon=None`` acc-t."""

    by: Grouping = "item"
    epsilon: float | None = None
    decimals: int | None = None

    def __call__(self, metric: FloatArray, gold: FloatArray) -> PairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return pairwise_accuracy(metric, gold, by=self.by, epsilon=self.epsilon, decimals=self.decimals)


@dataclass(frozen=True, slots=True)
class SegmentCorrelation:
    """`segment_correlation`."""

    correlation: Correlation = "kendall_tau_b"
    by: Grouping = "none"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> GroupedCorrelation:
        """Matrices of shape (k, n)."""
        return segment_correlation(metric, gold, correlation=self.correlation, by=self.by)


@dataclass(frozen=True, slots=True)
class SoftSystemAccuracy:
    """`soft_pairwise_accuracy` (SPA)."""

    draws: int = 1000
    seed: int = 0
    ties: Ties = "half"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SoftPairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return soft_pairwise_accuracy(metric, gold, draws=self.draws, seed=self.seed, ties=self.ties)


@dataclass(frozen=True, slots=True)
class SystemAccuracy:
    """`system_pairwise_accuracy`."""

    def __call__(self, metric: FloatArray, gold: FloatArray) -> SystemPairwiseAccuracy:
        """Matrices of shape (k, n)."""
        return system_pairwise_accuracy(metric, gold)


@dataclass(frozen=True, slots=True)
class SystemCorrelation:
    """Correlation of `system_means`."""

    correlation: Correlation = "pearson"

    def __call__(self, metric: FloatArray, gold: FloatArray) -> float:
        """Matrices of shape (k, n)."""
        return float(getattr(correlations, self.correlation)(*system_means(metric, gold)))


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
