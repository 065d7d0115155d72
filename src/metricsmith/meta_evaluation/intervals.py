"""Intervals of measures over segments: how far another set of segments, or documents, might move them."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.grouping import FloatArray, paired_matrices
from metricsmith.meta_evaluation.jackknife import left_out
from metricsmith.meta_evaluation.significance import Measure, measured
from metricsmith.stats.resampling import MOST_REPLICATES, Groups, Interval, jackknife_interval
from metricsmith.stats.resampling.draws import aligned, check_draws, check_level
from metricsmith.stats.resampling.intervals import percentile_interval

__all__ = ["measure_interval"]

IntArray = NDArray[np.int64]


@runtime_checkable
class _Jackknifed(Protocol):
    """A measure that knows its values without parts of the segments (`metricsmith.meta_evaluation.jackknife`)."""

    def left_out(self, metric: FloatArray, gold: FloatArray, parts: IntArray) -> FloatArray: ...


@runtime_checkable
class _Redrawn(Protocol):
    """A step function, which leaving out one part mostly does not move: its values for groups drawn again."""

    def redrawn(self, metric: FloatArray, gold: FloatArray, parts: IntArray, times: IntArray) -> FloatArray: ...


def measure_interval(
    measure: Measure,
    metric: ArrayLike,
    gold: ArrayLike,
    groups: Groups | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Interval of a measure over segments, for the systems given.

    Each group of segments is left out in turn (all its systems), a threshold is calibrated anew, and Student's t is
    taken on Fisher's z scale between the bounds of the measure: `metricsmith.stats.resampling.jackknife_interval`. For
    `SoftSystemAccuracy` the spread is that of infinitely many draws. `SystemAccuracy` moves in steps: its interval is
    the percentile bootstrap over groups.

    Parameters
    ----------
    measure : callable
        See `metricsmith.meta_evaluation.Measure`. One of `MEASURES` shares the work of all groups; any other is called
        once per group, and should neither draw at random nor move in steps.
    metric, gold : array_like, shape (k, n)
        NaN is missing; segments without a cell, for measures of systems without any of the cells, are left out first.
    groups : sequence of hashable, length n, optional
        What segments were drawn together (documents); None takes each segment by itself. With more than a thousand
        groups, several are left out at a time.
    level : float
    bounds : (float, float), optional
        The least and largest value possible; None takes those of the measure, if it has `bounds`.
    resamples, seed : int
        For the bootstrap.

    Returns
    -------
    Interval
        NaN ends with fewer than three groups, or where the measure is undefined for all segments or without one of
        the groups (`undefined` counts these).

    Raises
    ------
    DataError
        If shapes or lengths differ, a score is infinite or a group label is missing.
    OptionError
        If `level`, `bounds` or `resamples` has no meaning.
    """
    check_level(level)
    check_draws(resamples)
    x, y = paired_matrices(metric, gold)
    if groups is not None and len(groups) != y.shape[1]:
        raise DataError(f"{len(groups)} groups for {y.shape[1]} segments: give one group label per segment")
    codes = aligned([np.zeros(y.shape[1])], groups)[1]
    present = ~np.isnan(y)
    used = present.all(axis=0) if getattr(measure, "whole_segments", False) else present.any(axis=0)
    x, y = x[:, used], y[:, used]
    parts = np.unique(codes[used], return_inverse=True)[1].astype(np.int64)
    count = int(parts.max(initial=-1)) + 1
    estimate = measured(measure, x, y) if count > 2 else math.nan
    if math.isnan(estimate):
        return Interval(math.nan, math.nan, level)
    if isinstance(measure, _Redrawn):
        times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
        return percentile_interval(measure.redrawn(x, y, parts, times), level)
    parts %= MOST_REPLICATES
    values = measure.left_out(x, y, parts) if isinstance(measure, _Jackknifed) else left_out(measure, x, y, parts)
    own: tuple[float, float] | None = getattr(measure, "bounds", None)
    return jackknife_interval(estimate, values, level=level, bounds=bounds or own)
