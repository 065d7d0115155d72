"""Several runs of one judge into one number.

All functions take the runs along the last axis, NaN for a missing run, and expect scores of which higher is
better, such as negated MQM. For a number of which lower is better, turn the sign before and after:
``-rrwa(-errors)``.

Source: GEMBA-MQM V2, section 4 and appendix A.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.stats.correlation import FloatArray

__all__ = [
    "AGGREGATES",
    "RUN_AGGREGATES",
    "TWO_SIGMA",
    "Aggregate",
    "OutlierRule",
    "aggregate_name",
    "as_rows",
    "descending",
    "drop_outliers",
    "geometric",
    "maximum",
    "mean",
    "median",
    "rrwa",
]

Sided = Literal["both", "low", "high"]
Aggregate = Callable[..., Any]  # (scores of shape (..., runs), outliers=OutlierRule or None) -> shape (...)

SIDES = ("both", "low", "high")
SLACK = 1e-9  # a run on the bound itself stays, also when rounding puts it a hair beyond
EQUAL = 1e-12  # runs that differ by less than this share of their size differ by rounding alone


@dataclass(frozen=True, slots=True)
class OutlierRule:
    """The rule for runs that are too far from the others: ``|score - mean| > k * sd``, strictly, in one pass.

    Mean and standard deviation are those of all runs that have a score; they are not computed again once a
    run is dropped.

    Parameters
    ----------
    k : float
        How many standard deviations; finite and at least 1, so that some run always stays.
    sided : "both", "low" or "high"
        On which side of the mean a run can be an outlier. ``low`` keeps a lone clean run among worse ones,
        which the paper's two-sided rule drops.
    ddof : 0 or 1
        0 for the standard deviation of the runs themselves, 1 for that of the population they are drawn
        from. The paper does not say which; its example comes out the same with both.

    Raises
    ------
    OptionError
        If a value is not allowed.

    Notes
    -----
    No score can be further from the mean than ``sqrt(runs - 1)`` standard deviations (``ddof=0``), so that
    ``k=2`` drops nothing out of five runs or fewer. Table 1 of the paper excludes an iterated rule, which would drop
    -50 after -55.
    """

    k: float = 2.0
    sided: Sided = "both"
    ddof: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.k, int | float) and isfinite(self.k) and self.k >= 1):
            raise OptionError(f"k={self.k!r} must be finite and at least 1; to keep every run, use outliers=None")
        if self.sided not in SIDES:
            raise OptionError(
                f"unknown sided={self.sided!r}{nearest(str(self.sided), SIDES)}; allowed are {', '.join(SIDES)}"
            )
        if self.ddof not in (0, 1):
            raise OptionError(f"ddof={self.ddof!r} must be 0 or 1")


TWO_SIGMA = OutlierRule()


def drop_outliers(scores: ArrayLike, k: float = 2.0, sided: Sided = "both", ddof: int = 0) -> FloatArray:
    """Returns the scores with NaN in place of outliers.

    Parameters
    ----------
    scores : array_like, shape (..., runs)
        Any finite numbers; NaN for a missing run.
    k, sided, ddof
        As in `OutlierRule`.

    Returns
    -------
    float array, shape (..., runs)
        A new array. Runs stay in their places. Equal runs (rounding aside), a single run and the only run
        that is not missing all stay, with either `ddof`.

    Raises
    ------
    OptionError
        If an option is not allowed.
    DataError
        If there is no axis of runs, or a score is infinite or no number.

    Examples
    --------
    >>> drop_outliers([-1, -1, -1, -1, -1, -100])
    array([-1., -1., -1., -1., -1., nan])
    """
    rule = OutlierRule(k, sided, ddof)
    runs, shape = as_rows(scores)
    if runs.size:
        runs[_far(runs, descending(runs), rule)] = np.nan
    return runs.reshape(shape)


def rrwa(scores: ArrayLike, *, outliers: OutlierRule | None = TWO_SIGMA) -> FloatArray | float:
    """Reciprocal-rank weighted average: the r-th highest of the kept runs weighs 1/r.

    With nine runs the highest carries 35 % of the weight and the highest three 65 %, so that a judge that
    sees errors which are not there is corrected by its more careful runs.

    Parameters
    ----------
    scores : array_like, shape (..., runs)
        Higher is better; NaN for a missing run. See the module's head for numbers of which lower is better.
    outliers : OutlierRule or None
        The runs to leave out beforehand; None keeps all.

    Returns
    -------
    float array, shape (...), or float for one row
        Between the lowest and the highest kept run. Equal runs and a single run give that very number; no run
        at all gives NaN. The order of the runs does not matter to the last bit.

    Raises
    ------
    DataError
        If there is no axis of runs, or a score is infinite or no number.
    OptionError
        If `outliers` is no rule.

    Notes
    -----
    Source: GEMBA-MQM V2, appendix A.2. Table 1 of the paper:

    >>> round(rrwa([-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]), 3)
    -8.496
    """
    return _combined(scores, outliers, lambda runs: _average(runs, 1.0 / np.arange(1, runs.shape[1] + 1)))


def mean(scores: ArrayLike, *, outliers: OutlierRule | None = TWO_SIGMA) -> FloatArray | float:
    """Arithmetic mean of the kept runs.

    Parameters, result and errors are those of `rrwa`.

    Notes
    -----
    Table 1 of GEMBA-MQM V2 gives -12.55 after the outlier is left out, cut off after two digits. For the mean
    of all ten runs it gives -16.85, which does not follow from its own row: those add up to -168.

    >>> runs = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]
    >>> round(mean(runs), 3), round(mean(runs, outliers=None), 3)
    (-12.556, -16.8)
    """
    return _combined(scores, outliers, lambda runs: _average(runs, np.ones(runs.shape)))


def median(scores: ArrayLike, *, outliers: OutlierRule | None = TWO_SIGMA) -> FloatArray | float:
    """The middle of the kept runs; of an even number, half-way between the two in the middle.

    Parameters, result and errors are those of `rrwa`. The paper has no median; it resists a single odd run even
    without an outlier rule, which needs six runs before it can drop one.
    """

    def middle(ordered: FloatArray) -> FloatArray:
        count = (~np.isnan(ordered)).sum(axis=1, keepdims=True)
        upper = np.take_along_axis(ordered, (count - 1) // 2, axis=1)[:, 0]
        lower = np.take_along_axis(ordered, count // 2, axis=1)[:, 0]
        return np.asarray(upper / 2 + lower / 2)

    return _combined(scores, outliers, middle)


def maximum(scores: ArrayLike, *, outliers: OutlierRule | None = TWO_SIGMA) -> FloatArray | float:
    """The highest of the kept runs: of negated MQM, the one that sees the fewest errors.

    Parameters, result and errors are those of `rrwa`. Table 1 of GEMBA-MQM V2 has -6.
    """
    return _combined(scores, outliers, lambda runs: runs[:, 0])


def geometric(scores: ArrayLike, *, outliers: OutlierRule | None = TWO_SIGMA) -> FloatArray | float:
    """Geometric mean of the kept runs: ``-exp(mean(log |score|))`` of negated scores.

    Parameters
    ----------
    scores : array_like, shape (..., runs)
        Each row on one side of zero, negated scores such as MQM or positive ones; NaN for a missing run.
    outliers : OutlierRule or None
        The runs to leave out beforehand; None keeps all.

    Returns
    -------
    float array, shape (...), or float for one row
        With the sign of the runs. 0 as soon as one kept run is 0, so that one clean run outweighs all others.
        Otherwise as `rrwa`.

    Raises
    ------
    DataError
        As `rrwa`, and if a row has kept runs on both sides of zero.

    Notes
    -----
    0 is the limit of the mean and not a floor of our choosing. In resampled judgements 39 to 55 % of rows had a 0,
    which is one more reason for `rrwa`. Source: GEMBA-MQM V2, appendix A.2. Table 1 of the paper:

    >>> round(geometric([-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]), 3)
    -9.294
    """
    return _combined(scores, outliers, _geometric_mean)


AGGREGATES: Mapping[str, Aggregate] = {
    function.__name__: function for function in (rrwa, mean, median, maximum, geometric)
}
"""The aggregations by name; a new one is a function above and a place in this line."""


RUN_AGGREGATES: Mapping[str, Aggregate] = {"rrwa": rrwa, "mean": mean, "max": maximum, "geo": geometric}
"""The rows of GEMBA-MQM V2, Table 1, by their names there; each leaves outlying runs out."""


def aggregate_name(aggregate: Aggregate | str) -> str:
    """Returns the name under which an aggregate is saved.

    Parameters
    ----------
    aggregate : callable or str
        One of the functions in `AGGREGATES`, or its name.

    Raises
    ------
    OptionError
        If it is none of them.
    """
    shown = aggregate if isinstance(aggregate, str) else getattr(aggregate, "__name__", repr(aggregate))
    if shown in AGGREGATES and aggregate in (shown, AGGREGATES[shown]):
        return shown
    raise OptionError(
        f"unknown aggregate {shown!r}{nearest(shown, AGGREGATES)}; known are {', '.join(AGGREGATES)}; for another "
        "one, score with runs=... and combine ScoreTable.values yourself"
    )


def _combined(
    scores: ArrayLike, outliers: OutlierRule | None, combine: Callable[[FloatArray], FloatArray]
) -> FloatArray | float:
    """Combines the kept runs of each row; `combine` gets them highest first, NaN after them, at least one a row."""
    if outliers is not None and not isinstance(outliers, OutlierRule):
        raise OptionError(f"outliers={outliers!r} must be an OutlierRule, say OutlierRule(k=2.0), or None")
    runs, shape = as_rows(scores)
    values = np.full(len(runs), np.nan)
    if runs.size:
        ordered = descending(runs)
        if outliers is not None:
            ordered = descending(np.where(_far(ordered, ordered, outliers), np.nan, ordered))
        kept = ordered[~np.isnan(ordered[:, 0])]
        # Rounding may carry a combination a hair beyond the runs that it combines.
        values[~np.isnan(ordered[:, 0])] = np.clip(combine(kept), np.nanmin(kept, axis=1), kept[:, 0])
    return values.reshape(shape[:-1]) if len(shape) > 1 else float(values[0])


def _average(ordered: FloatArray, weights: FloatArray) -> FloatArray:
    """Returns the weighted average of the runs of each row; NaN stand after them."""
    kept = ~np.isnan(ordered)
    top = ordered[:, :1]
    # Measured from the first run, equal runs give exact zeros; halves keep huge differences finite.
    below = np.where(kept, ordered / 2 - top / 2, 0.0)
    weights = np.where(kept, weights, 0.0)
    weights /= _total(weights)[:, None]
    return np.asarray(2 * (top[:, 0] / 2 + _total(weights * below)))


def _geometric_mean(ordered: FloatArray) -> FloatArray:
    sides = np.sign(ordered)
    mixed = (np.nanmax(sides, axis=1) > 0) & (np.nanmin(sides, axis=1) < 0)
    if mixed.any():
        row = ordered[np.argmax(mixed)]
        raise DataError(
            f"runs {np.nanmin(row):g} and {row[0]:g} of one row lie on both sides of zero, which have no geometric "
            "mean: give negated scores, or take another aggregate"
        )
    zero = (sides == 0).any(axis=1)
    logarithms = np.log(np.where(zero[:, None], 1.0, np.abs(ordered)))
    return np.where(zero, 0.0, sides[:, 0] * np.exp(_average(logarithms, np.ones(ordered.shape))))


def _far(runs: FloatArray, ordered: FloatArray, rule: OutlierRule) -> NDArray[np.bool_]:
    """Returns the mask of outliers among `runs`, shape (n, runs); `ordered` holds the same runs, highest first."""
    present = ~np.isnan(ordered)
    count = present.sum(axis=1)
    top = ordered[:, 0]
    bottom = np.min(ordered, axis=1, initial=np.inf, where=present)
    bottom[count == 0] = np.nan
    spread = top / 2 - bottom / 2
    spread[~(spread > EQUAL * np.maximum(np.abs(top), np.abs(bottom)))] = np.inf
    # Depth below the highest run as a share of the spread, 0 to 1: sums and squares neither overflow nor vanish.
    depth = np.where(present, (top[:, None] / 2 - ordered / 2) / spread[:, None], 0.0)
    centre = _total(depth) / np.maximum(count, 1)
    variance = _total(np.where(present, (depth - centre[:, None]) ** 2, 0.0)) / np.maximum(count - rule.ddof, 1)
    limit = (rule.k * (1 + SLACK) * np.sqrt(variance))[:, None]
    lower = (top[:, None] / 2 - runs / 2) / spread[:, None] - centre[:, None]
    if rule.sided == "low":
        return np.asarray(lower > limit)
    return np.asarray((-lower if rule.sided == "high" else np.abs(lower)) > limit)


def as_rows(scores: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
    """Returns a copy of the scores as a matrix (n, runs), and their shape."""
    try:
        runs = np.array(scores, dtype=float)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"scores must be numbers, as many in every row, with NaN for a missing run ({problem})"
        ) from problem
    if runs.ndim == 0:
        raise DataError(f"{scores!r} is a single number: give the scores of all runs, shape (runs,) or (n, runs)")
    if np.isinf(runs).any():
        raise DataError("a score is infinite, which no average can take; give NaN for a run without a score")
    shape = runs.shape
    return runs.reshape(-1, shape[-1]) if shape[-1] else runs.reshape(int(np.prod(shape[:-1])), 0), shape


def descending(runs: FloatArray) -> FloatArray:
    """Returns each row sorted, highest first, missing runs last."""
    return np.asarray(-np.sort(-runs, axis=1))


def _total(matrix: FloatArray) -> FloatArray:
    """Returns row sums added from left to right, so that zeros at the end and other rows change no bit."""
    return np.asarray(np.cumsum(matrix, axis=1)[:, -1])
