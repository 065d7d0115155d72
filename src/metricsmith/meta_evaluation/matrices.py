"""Score matrices of systems and segments, the groups of their cells, and measures as functions of two matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.stats.correlation import (
    FloatArray,
    GroupedCorrelation,
    batch_kendall_tau_b,
    batch_pearson,
    batch_spearman,
)

__all__ = [
    "CORRELATIONS",
    "FloatArray",
    "Grouping",
    "Measure",
    "NOTHING",
    "common_cells",
    "complete_segments",
    "grouped",
    "measure_value",
    "own_way",
    "paired_matrices",
    "segment_correlation",
    "system_means",
    "without_rounding",
]

Grouping = Literal["none", "item", "system"]
Cell = TypeVar("Cell", bound=np.generic)
NOTHING = 1e-12  # of a sum of squares: what is left of it by rounding alone
GROUPINGS = get_args(Grouping)
CORRELATIONS: Mapping[str, Callable[[ArrayLike, ArrayLike], FloatArray]] = {
    "kendall_tau_b": batch_kendall_tau_b,
    "pearson": batch_pearson,
    "spearman": batch_spearman,
}
Measure = Callable[[FloatArray, FloatArray], Any]
"""``measure(metric, gold)`` on two matrices (k, n): a float, or a result of this package with a `value`.

A measure may have methods that do its work faster; `own_way` asks for them, and each may return None where there is no
faster way. Matrices are those of a metric, or of a first and a second one, and of gold, NaN in all where in any.

- ``left_out(metric, gold, parts)``: the values without each part of the segments (`jackknife`).
- ``redrawn(metric, gold, parts, times)``: the values with each part taken so many times, for a measure that moves in
  steps, which leaving out one part mostly does not reach (`systems.redrawn_accuracies`).
- ``against(gold)``: a function of several metrics, which does once what gold decides (`measures`).
- ``exchanged(first, second, gold)``: a function of exchanged cells (`exchanged_accuracies`).
- ``approximated(first, second, gold)``: the same, near the measure's values; ``p_error`` is the distance from a level
  within which it decides nothing.
- ``pairs_exchanged(first, second, gold, resamples, seed)``: a test that exchanges decisions about pairs.
"""


def segment_correlation(
    metric: ArrayLike, gold: ArrayLike, *, correlation: str = "kendall_tau_b", by: Grouping = "none"
) -> GroupedCorrelation:
    """Correlation of segment scores, pooled or as the mean over groups.

    Parameters
    ----------
    metric, gold : array_like, shape (k, n)
        NaN is missing; a cell that is missing on either side is left out.
    correlation : str
        A key of `CORRELATIONS`.
    by : "none", "item" or "system"
        One correlation over all cells, the mean over segments of the correlation across systems, or the mean over
        systems of the correlation across segments. Every group counts once.

    Returns
    -------
    GroupedCorrelation
        In [-1, 1]. A group with fewer than two cells or a constant side has no correlation: it is dropped and
        counted, so that values of two metrics may rest on different segments. NaN if no group is left.

    Raises
    ------
    DataError
        If the matrices differ in shape or a score is infinite.
    OptionError
        If an option is unknown.

    Examples
    --------
    >>> segment_correlation([[1, 5, 2], [2, 6, 2]], [[1, 3, 0], [2, 1, 0]], by="item")
    GroupedCorrelation(value=0.0, groups_used=2, groups_dropped=1)
    """
    if correlation not in CORRELATIONS:
        raise OptionError(
            f"unknown correlation {correlation!r}{nearest(correlation, CORRELATIONS)}; known are "
            f"{', '.join(CORRELATIONS)}"
        )
    values = CORRELATIONS[correlation](*grouped(*paired_matrices(metric, gold), by))
    defined = values[~np.isnan(values)]
    mean = math.fsum(defined) / defined.size if defined.size else math.nan
    return GroupedCorrelation(mean, defined.size, values.size - defined.size)


def complete_segments(metric: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Returns both matrices without the segments for which any system lacks a score on either side, shape (k, m).

    System scores must rest on the same segments for all systems.

    Raises
    ------
    DataError
        As `segment_correlation`.
    """
    metric, gold = paired_matrices(metric, gold)
    whole = ~np.isnan(metric).any(axis=0)
    return metric[:, whole], gold[:, whole]


def system_means(metric: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """System scores: row means over the segments that are complete, two arrays of shape (k,).

    They are NaN if no segment is complete, and rounded to 12 digits of the largest score, so that equal means are
    equal. `metricsmith.stats.correlation` has the correlations of the two.

    Raises
    ------
    DataError
        As `segment_correlation`.
    """
    metric, gold = complete_segments(metric, gold)
    if not metric.shape[1]:
        return np.full(len(metric), math.nan), np.full(len(gold), math.nan)
    return without_rounding(metric.mean(axis=1), metric), without_rounding(gold.mean(axis=1), gold)


def without_rounding(means: FloatArray, scores: FloatArray) -> FloatArray:
    """Means of scores in steps of about 1e-12 of the largest score: those that differ by rounding alone are equal."""
    unit = 2.0 ** (math.frexp(float(np.abs(scores).max(initial=0.0)))[1] - 1)
    return np.asarray(np.round(means / unit, 12) * unit)


def paired_matrices(metric: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Returns both as new float matrices of one shape (k, n), NaN on both sides where either is.

    Raises
    ------
    DataError
        If the shapes differ or are not 2-D, or a score is infinite or no number.
    """
    try:
        metric, gold = np.array(metric, dtype=float), np.array(gold, dtype=float)
    except (TypeError, ValueError) as problem:
        raise DataError(f"scores must be numbers, NaN or None where there is none ({problem})") from problem
    if metric.ndim != 2 or metric.shape != gold.shape:
        raise DataError(
            f"metric scores of shape {metric.shape} do not match gold scores of shape {gold.shape}: give two "
            "matrices (systems, segments) with the same systems and segments in the same order"
        )
    if np.isinf(metric).any() or np.isinf(gold).any():
        raise DataError("a score is infinite; give NaN where there is no score")
    missing = np.isnan(metric) | np.isnan(gold)
    metric[missing] = gold[missing] = math.nan
    return metric, gold


def common_cells(metrics: Sequence[ArrayLike], gold: ArrayLike) -> tuple[list[FloatArray], FloatArray]:
    """Returns metrics and gold as `paired_matrices`, NaN in all of them where in any.

    Raises
    ------
    DataError
        As `paired_matrices`.
    """
    common = paired_matrices(gold, gold)[0]
    for metric in metrics:
        common = paired_matrices(metric, common)[1]
    return [paired_matrices(metric, common)[0] for metric in metrics], common


def grouped(metric: NDArray[Cell], gold: NDArray[Cell], by: Grouping) -> tuple[NDArray[Cell], NDArray[Cell]]:
    """Returns both matrices with a group in each row, shape (groups, members).

    Raises
    ------
    OptionError
        If the grouping is unknown.
    """
    if by not in GROUPINGS:
        raise OptionError(f"unknown grouping {by!r}{nearest(str(by), GROUPINGS)}; known are {', '.join(GROUPINGS)}")
    if by == "none":
        return metric.reshape(1, -1), gold.reshape(1, -1)
    return (metric, gold) if by == "system" else (metric.T, gold.T)


def measure_value(measure: Measure, metric: FloatArray, gold: FloatArray) -> float:
    """Returns a measure's number, be it given as such or as a result with a `value`."""
    result: Any = measure(metric, gold)
    return float(result.value if hasattr(result, "value") else result)


def own_way(measure: Measure, name: str, *arguments: Any) -> Any:
    """Returns what the measure's own method of this name returns (see `Measure`); None if it has no such method."""
    method = getattr(measure, name, None)
    return None if method is None else method(*arguments)
