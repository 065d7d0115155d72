"""The precision of the aggregate of a few runs: half the width of its bootstrap interval."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.stats.aggregation.runs import TWO_SIGMA, Aggregate, OutlierRule, as_rows, descending, rrwa
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.resampling import check_draws, check_level, resampled_rows

__all__ = ["half_width"]

AT_A_TIME = 1 << 20  # resampled numbers in memory


def half_width(
    scores: ArrayLike,
    aggregate: Aggregate = rrwa,
    *,
    outliers: OutlierRule | None = TWO_SIGMA,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> FloatArray | float:
    """Half the width of the percentile bootstrap interval of an aggregate over the runs of each row.

    Parameters
    ----------
    scores : array_like, shape (..., runs)
        Higher is better; NaN for a missing run.
    aggregate : callable
        A function of `AGGREGATES`, or another that takes scores of shape (n, runs) and ``outliers`` and does not
        depend on the order of the runs.
    outliers : OutlierRule or None
        Which runs the aggregate leaves out, of each resample anew.
    level : float
        Nominal coverage in (0, 1).
    draws, seed : int
        How many resamples, at least 1, and what decides them.

    Returns
    -------
    float array, shape (...), or float for one row
        In the units of the scores. NaN with fewer than two runs. 0 for equal runs, however few: the bootstrap
        knows only what it has seen. A function of the row's scores alone: neither their order nor other rows nor
        missing runs change a bit.

    Raises
    ------
    OptionError
        If an option is out of range.
    DataError
        As the aggregate.

    Notes
    -----
    Rows of equally many runs share the same resamples. Of fewer than about ten runs the interval is narrower
    than its level says, as every percentile bootstrap of so few; docs/aggregation.md measures what follows.

    Examples
    --------
    >>> half_width([-6, -6, -6, -6]), round(half_width([-6, -6, -11, -50]), 1)
    (0.0, 11.4)
    """
    check_level(level)
    check_draws(draws)
    runs, shape = as_rows(scores)
    widths = np.full(len(runs), np.nan)
    ordered = descending(runs) if runs.size else runs
    counts = (~np.isnan(ordered)).sum(axis=1)
    for count in np.unique(counts[counts > 1]).tolist():
        rows = counts == count
        distinct, places = np.unique(ordered[rows, :count], axis=0, return_inverse=True)
        picks, repeats = _resamples(count, draws, seed)
        step = max(1, AT_A_TIME // max(picks.size, draws))
        found = [
            _half_widths(distinct[start : start + step], aggregate, outliers, level, picks, repeats)
            for start in range(0, len(distinct), step)
        ]
        widths[rows] = np.concatenate(found)[places.ravel()]
    return widths.reshape(shape[:-1]) if len(shape) > 1 else float(widths[0])


def _half_widths(
    runs: FloatArray,
    aggregate: Aggregate,
    outliers: OutlierRule | None,
    level: float,
    picks: NDArray[np.intp],
    repeats: NDArray[np.intp],
) -> FloatArray:
    """Returns the half widths of distinct rows, shape (n, runs) -> (n,)."""
    values = np.asarray(aggregate(runs[:, picks].reshape(-1, picks.shape[1]), outliers=outliers), dtype=float)
    halves = values.reshape(len(runs), len(picks))[:, repeats] / 2  # of halves, since ends may be huge
    low, high = np.quantile(halves, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return np.asarray(high - low)


@lru_cache(maxsize=64)
def _resamples(runs: int, draws: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns the different resamples of so many runs, shape (d, runs), and that of each draw, shape (draws,)."""
    picks, repeats = np.unique(np.sort(resampled_rows(range(runs), draws, seed), axis=1), axis=0, return_inverse=True)
    return picks, repeats.ravel()
