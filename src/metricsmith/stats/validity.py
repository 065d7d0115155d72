"""Construct validity: a metric should fall when quality falls, and hold still when it does not.

A perturbed output is compared with its own original, row by row: `original[i]` and `changed[i]` are one metric's
numbers for the same row, higher is better. Pairs in which either number is missing (NaN) are left out and
counted, never read as 0. Source: AutoMetrics (2025), section 3.2.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.resampling import (
    Groups,
    Interval,
    PermutationTest,
    aligned_rows,
    complete_rows,
    group_mean_interval,
    paired_permutation_test,
    share_interval,
)

__all__ = [
    "NULLS", "PairedMean", "Lean", "Null", "Sensitivity", "compare_sensitivity", "compare_stability", "never_moves",
    "null_scores", "position_lean", "score_change", "sensitivity", "sensitivity_magnitude", "score_stability",
    "to_unit",
]  # fmt: skip

Null = Literal["random", "constant", "length"]
NULLS: tuple[Null, ...] = ("random", "constant", "length")
ROUNDING = 1e-9  # of the range: numbers that are closer are equal but for rounding
PRECISION = 1e-12  # of the largest: a range as small is rounding itself
TRUNCATION = 3.0  # standard deviations at which the paper's random scores are cut


@dataclass(frozen=True, slots=True)
class PairedMean:
    """A mean over pairs.

    Parameters
    ----------
    value : float
        NaN if there are no pairs.
    interval : Interval
        By group.
    n, groups, missing : int
        Pairs with both numbers, their groups, and pairs without.
    """

    value: float
    interval: Interval
    n: int
    groups: int
    missing: int


@dataclass(frozen=True, slots=True)
class Sensitivity(PairedMean):
    """The share of pairs in which the worse output scored strictly lower.

    Parameters
    ----------
    tied, risen : float
        The other shares; the three add up to 1.
    balance : Interval
        Of the share that fell less the share that rose, in [-1, 1]: above 0 where more fell than rose.
    """

    tied: float
    risen: float
    balance: Interval


@dataclass(frozen=True, slots=True)
class Lean(PairedMean):
    """The lean of a pairwise judge to the first place; `consistent` is the share of pairs judged alike both ways."""

    consistent: float


def sensitivity(
    original: ArrayLike, worse: ArrayLike, groups: Groups | None = None, *, level: float = 0.95
) -> Sensitivity:
    """Returns the share of worse outputs that score strictly lower than their originals.

    A tie is no drop: it counts as not lower, as in the paper, and the share of ties is given beside. Numbers that
    differ by less than 1e-9 of the range of all are tied. Counted half, ties would give a constant .5, which looks like
    chance.

    Parameters
    ----------
    original, worse : array_like, shape (n,)
        On any one scale, higher is better; infinite numbers are allowed, NaN is missing.
    groups : sequence of hashable, length n, optional
        Pairs of one source; several perturbations of one row belong to one group too.
    level : float

    Returns
    -------
    Sensitivity
        1 if every worse output scores lower; about .5 for a metric without ties that knows nothing; 0 for one that
        never moves. NaN without pairs.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.
    """
    (a, b), codes = complete_rows([original, worse], groups)
    moved = _moved(a, b)
    hits = np.where(moved < 0, 1.0, 0.0)
    return Sensitivity(
        _mean(hits), share_interval(hits, codes, level=level), hits.size, int(codes.max(initial=-1)) + 1,
        np.size(original) - hits.size,
        tied=_mean(moved == 0), risen=_mean(moved > 0),
        balance=group_mean_interval(-moved, codes, level=level, bounds=(-1.0, 1.0)),
    )  # fmt: skip


def sensitivity_magnitude(
    original: ArrayLike, worse: ArrayLike, groups: Groups | None = None, *, level: float = 0.95
) -> PairedMean:
    """Returns the mean signed drop ``original - worse``, for numbers in [0, 1].

    Parameters, errors and missing values as for `sensitivity`; the numbers are `to_unit`'s, or scores.

    Returns
    -------
    PairedMean
        In [-1, 1]; below 0 if worse outputs score higher.
    """
    return _mean_of(lambda a, b: a - b, (original, worse), groups, level, (-1.0, 1.0))


def score_stability(
    original: ArrayLike, same: ArrayLike, groups: Groups | None = None, *, level: float = 0.95
) -> PairedMean:
    """Returns ``1 - mean |original - same|`` for outputs of the same quality, for numbers in [0, 1].

    Parameters, errors and missing values as for `sensitivity_magnitude`. It says nothing of a metric that
    `never_moves`: such a one has 1 for free.

    Returns
    -------
    PairedMean
        In [0, 1]; 1 if nothing changed.
    """
    return _mean_of(lambda a, b: 1 - np.abs(a - b), (original, same), groups, level, (0.0, 1.0))


def score_change(
    original: ArrayLike, changed: ArrayLike, groups: Groups | None = None, *, level: float = 0.95
) -> PairedMean:
    """Returns the mean signed change ``changed - original``, the gain of an attack; as `sensitivity_magnitude`."""
    return _mean_of(lambda a, b: b - a, (original, changed), groups, level, (-1.0, 1.0))


def position_lean(
    forward: ArrayLike, backward: ArrayLike, groups: Groups | None = None, *, level: float = 0.95
) -> Lean:
    """Returns the lean of a pairwise judge towards the place in which an output stands.

    Parameters
    ----------
    forward, backward : array_like, shape (n,)
        The judge's preference for the same one of two outputs, in [0, 1] (1 it, 0 the other, .5 neither), when it is
        shown first and when it is shown second; NaN is missing.
    groups, level
        As for `sensitivity`.

    Returns
    -------
    Lean
        The mean of ``(forward - backward) / 2``, in [-.5, .5]: above 0 the first place wins, at .5 always.
    """
    mean = _mean_of(lambda a, b: (a - b) / 2, (forward, backward), groups, level, (-0.5, 0.5))
    alike = np.abs(np.subtract(*complete_rows([forward, backward], groups)[0])) <= ROUNDING
    return Lean(mean.value, mean.interval, mean.n, mean.groups, mean.missing, consistent=_mean(alike))


def to_unit(*numbers: ArrayLike, low: float | None = None, high: float | None = None) -> list[FloatArray]:
    """Maps a metric's numbers to [0, 1]: from its scale where `low` and `high` are given, else from their own range.

    Parameters
    ----------
    *numbers : array_like
        Originals and perturbed outputs of one metric, which share one map; NaN stay NaN.
    low, high : float, optional
        Ends of the scale; numbers beyond are cut. Without them the smallest and largest of all numbers given.

    Returns
    -------
    list of ndarray
        Where the numbers have no range (all equal) they become NaN: there is no unit to measure changes in.

    Raises
    ------
    OptionError
        If only one end is given, or the ends are not in order.
    """
    if (low is None) != (high is None) or (low is not None and high is not None and not low < high):
        raise OptionError(f"a scale from {low} to {high} has no length: give low below high, or neither")
    arrays = [np.asarray(part, dtype=float) for part in numbers]
    if low is None or high is None:
        known = np.concatenate([part[np.isfinite(part)] for part in arrays]) if arrays else np.empty(0)
        if _level(known):
            return [np.full(part.shape, np.nan) for part in arrays]
        low, high = float(known.min()), float(known.max())
    return [np.clip((part - low) / (high - low), 0.0, 1.0) for part in arrays]


def never_moves(original: ArrayLike, *changed: ArrayLike) -> bool:
    """Returns True if a metric gives all outputs, original or changed, the same number; False if it gives none."""
    known = np.concatenate([np.asarray(part, dtype=float).ravel() for part in (original, *changed)])
    known = known[~np.isnan(known)]
    return bool(known.size) and _level(known)


def null_scores(kind: Null, texts: Sequence[str], *, seed: int = 0) -> FloatArray:
    """Returns the scores of a metric that knows nothing, for comparison.

    Parameters
    ----------
    kind : str
        ``random``: standard normal, cut at 3 standard deviations and mapped to [0, 1], as in the paper;
        ``constant``: .5; ``length``: number of characters.
    texts : sequence of str, length n
    seed : int
        Of the random scores.

    Raises
    ------
    OptionError
        For another kind.
    """
    if kind == "random":
        drawn = np.random.default_rng(seed).standard_normal(len(texts))
        return np.asarray((np.clip(drawn, -TRUNCATION, TRUNCATION) + TRUNCATION) / (2 * TRUNCATION))
    if kind == "constant":
        return np.full(len(texts), 0.5)
    if kind == "length":
        return np.array([len(text) for text in texts], dtype=float)
    raise OptionError(f"unknown null metric {kind!r}: give one of {', '.join(NULLS)}")


def compare_sensitivity(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> PermutationTest:
    """Tests the difference of two metrics in sensitivity, on the pairs that have all four numbers.

    Parameters
    ----------
    first, second : (original, worse), each array_like of shape (n,)
        Of the two metrics, each on its own scale.
    groups : sequence of hashable, length n, optional
    permutations, seed : int

    Returns
    -------
    PermutationTest
        ``observed`` is the sensitivity of the first less that of the second; the two are swapped in whole groups
        (`paired_permutation_test`).
    """
    sides = []
    for original, worse in (_arrays(first), _arrays(second)):
        sides.append(np.where(np.isnan(original) | np.isnan(worse), np.nan, _moved(original, worse) < 0))
    return _swapped(sides, groups, permutations, seed)


def compare_stability(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> PermutationTest:
    """Tests the difference in stability as `compare_sensitivity`: (original, same) of either metric, in [0, 1]."""
    pairs = [_arrays(first), _arrays(second)]
    _check_unit([side for pair in pairs for side in pair], "metrics'")
    return _swapped([1 - np.abs(a - b) for a, b in pairs], groups, permutations, seed)


def _swapped(sides: Sequence[FloatArray], groups: Groups | None, permutations: int, seed: int) -> PermutationTest:
    """Returns the test of two means over rows by swapping whole groups."""
    if not complete_rows(sides, groups)[0][0].size:
        return PermutationTest(math.nan, math.nan, 0, 0)
    return paired_permutation_test(
        lambda values, _: np.mean(values, axis=-1), sides[0], sides[1], np.zeros(len(sides[0])), groups,
        permutations=permutations, seed=seed, batched=True, standardize=False,
    )  # fmt: skip


def _arrays(pair: tuple[ArrayLike, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    a, b = aligned_rows([np.asarray(side, dtype=float) for side in pair], None)[0]
    return a, b


def _moved(original: FloatArray, changed: FloatArray) -> NDArray[np.int64]:
    """Returns -1 where the number fell, 1 where it rose, 0 where the two are equal but for rounding."""
    known = np.concatenate([original, changed])
    known = known[np.isfinite(known)]
    width = float(np.ptp(known)) if known.size else 0.0
    with np.errstate(invalid="ignore"):  # of two equal infinities
        step = np.where(original == changed, 0.0, changed - original)
    if known.size and _level(known):
        width = math.inf  # any difference among finite numbers is rounding
    least = ROUNDING * width if math.isfinite(width) else sys.float_info.max
    return np.where(np.abs(step) <= least, 0, np.where(step > 0, 1, -1)).astype(np.int64)


def _level(known: FloatArray) -> bool:
    """Returns True if numbers, of which none is NaN, are all the same but for rounding."""
    if not known.size or not np.isfinite(known).all():
        return not known.size or bool((known == known[0]).all())
    return bool(np.ptp(known) <= PRECISION * np.abs(known).max())


def _check_unit(arrays: Sequence[FloatArray], whose: str) -> None:
    """Raises a `DataError` for a number outside [0, 1]; NaN is allowed."""
    stray = [float(number) for array in arrays for number in array if number < 0 or number > 1]
    if stray:
        raise DataError(f"{stray[0]:g} is not in [0, 1]: map the {whose} numbers with to_unit first")


def _mean_of(
    difference: Callable[[FloatArray, FloatArray], FloatArray],
    pair: tuple[ArrayLike, ArrayLike],
    groups: Groups | None,
    level: float,
    bounds: tuple[float, float],
) -> PairedMean:
    """Returns the mean of ``difference(original, changed)`` over the pairs with both numbers, which lie in [0, 1]."""
    (a, b), codes = complete_rows(pair, groups)
    _check_unit([a, b], "metric's")
    values = difference(a, b)
    interval = group_mean_interval(values, codes, level=level, bounds=bounds)
    return PairedMean(
        _mean(values), interval, values.size, int(codes.max(initial=-1)) + 1, np.size(pair[0]) - values.size
    )


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else math.nan
