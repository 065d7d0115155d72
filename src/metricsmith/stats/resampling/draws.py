"""The groundwork of intervals and tests: rows by group, and statistics of many draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray, IntArray

__all__ = [
    "FloatArray",
    "Groups",
    "IntArray",
    "Statistic",
    "aligned_rows",
    "bootstrap_weights",
    "check_draws",
    "check_level",
    "chunks",
    "complete_rows",
    "values_by_draw",
    "values_by_selection",
    "labelled_rows",
    "left_out_weights",
    "resampled_rows",
]

Groups = Sequence[Hashable] | NDArray[Any]
Statistic = Callable[..., Any]

_CHUNK = 1 << 16  # numbers per array at a time: large enough for numpy, small enough for the cache


def check_draws(draws: int) -> None:
    """Raise an `OptionError` unless `draws` is at least 1."""
    if draws < 1:
        raise OptionError(f"{draws} resamples: at least 1 is needed; 1000 is customary")


def check_level(level: float) -> None:
    """Raise an `OptionError` unless `level` lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise OptionError(f"level {level:g} is not a coverage: it must lie between 0 and 1, for example 0.95")


def aligned_rows(arrays: Sequence[ArrayLike], groups: Groups | None) -> tuple[list[NDArray[Any]], IntArray]:
    """Returns the arrays, and the group of each row as a number from 0.

    Raises
    ------
    DataError
        If an array is not 1-D, lengths differ or a group label is None or NaN.
    """
    columns = [np.asarray(array) for array in arrays]
    shapes = {column.shape for column in columns}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise DataError(f"arrays of shapes {sorted(shapes)} are not aligned: give 1-D arrays of one length")
    n = columns[0].size
    if groups is None:
        return columns, np.arange(n)
    if len(groups) != n:
        raise DataError(f"{len(groups)} groups for {n} rows: give one group label per row")
    codes: dict[Hashable, int] = {}
    for row, label in enumerate(groups):
        if label is None or label != label:
            raise DataError(
                f"row {row} has no group (its label is {label!r}): every row needs one; give a row that "
                "stands alone a label of its own"
            )
        codes.setdefault(label, len(codes))
    return columns, np.array([codes[label] for label in groups], dtype=np.int64)


def complete_rows(arrays: Sequence[ArrayLike], groups: Groups | None) -> tuple[list[FloatArray], IntArray]:
    """Returns `aligned_rows` floats without the rows in which anything is NaN; groups are numbered anew."""
    columns, codes = aligned_rows([np.asarray(array, dtype=float) for array in arrays], groups)
    present = ~np.isnan(columns).any(axis=0)
    return [column[present] for column in columns], np.unique(codes[present], return_inverse=True)[1]


def labelled_rows(
    prediction: ArrayLike, rating: ArrayLike, groups: Groups | None
) -> tuple[FloatArray, FloatArray, list[Any]]:
    """Returns predictions and ratings as floats, and the group label of each row, its number where there are no groups.

    Raises
    ------
    DataError
        If they are not 1-D or their lengths differ.
    """
    x, y = np.asarray(prediction, dtype=float), np.asarray(rating, dtype=float)
    labels = list(range(x.size)) if groups is None else list(groups)
    if x.ndim != 1 or x.shape != y.shape or len(labels) != x.size:
        raise DataError(
            f"predictions {x.shape}, ratings {y.shape} and {len(labels)} group labels are not aligned: "
            "give 1-D arrays of one length"
        )
    return x, y, labels


def resampled_rows(groups: Groups, draws: int, seed: int = 0) -> list[IntArray]:
    """Returns row indices of `draws` bootstrap samples of whole groups, for statistics that need a refit.

    Parameters
    ----------
    groups : sequence of hashable, length n
        n at least 1.
    draws, seed : int
        The number of samples, and the seed that decides them.

    Raises
    ------
    DataError
        If a group label is missing.
    OptionError
        If `draws` is below 1.
    """
    check_draws(draws)
    codes = aligned_rows([np.zeros(len(groups))], groups)[1]
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if codes.size else []
    picks = np.random.default_rng(seed).integers(len(members), size=(draws, len(members)))
    return [np.concatenate([members[group] for group in pick]) for pick in picks.tolist()]


def bootstrap_weights(groups: Groups, draws: int, seed: int = 0) -> FloatArray:
    """Returns how often each row stands in each of `draws` bootstrap samples of whole groups, shape (draws, n).

    For statistics of weighted rows; parameters and errors as in `resampled_rows`.
    """
    check_draws(draws)
    codes = aligned_rows([np.zeros(len(groups))], groups)[1]
    count = int(codes.max()) + 1
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), draws)
    return np.asarray(drawn[:, codes], dtype=float)


def left_out_weights(groups: Groups, most: int) -> FloatArray:
    """Returns rows of ones with 0 for the rows of one group each, shape (g, n), several groups at a time beyond `most`.

    Parameters
    ----------
    groups : sequence of hashable, length n
        n at least 1.
    most : int
        The most rows of the result.

    Raises
    ------
    DataError
        If a group label is missing.
    """
    codes = aligned_rows([np.zeros(len(groups))], groups)[1]
    count = min(int(codes.max()) + 1, most)
    return np.asarray(codes % count != np.arange(count)[:, None], dtype=float)


def chunks(draws: int, width: int) -> Iterator[int]:
    """Yields the sizes of batches that make up a number of draws, each bounded in memory."""
    step = max(1, _CHUNK // max(width, 1))
    for done in range(0, draws, step):
        yield min(step, draws - done)


def values_by_draw(statistic: Statistic, arrays: Sequence[NDArray[Any]], batched: bool) -> FloatArray:
    """Returns the statistic of each draw; arrays of shape (draws, n) or, the same in every draw, (n,)."""
    if batched:
        return np.asarray(statistic(*arrays), dtype=float)
    draws = max(len(array) for array in arrays if array.ndim == 2)
    rows = [[array if array.ndim == 1 else array[draw] for array in arrays] for draw in range(draws)]
    return np.array([statistic(*row) for row in rows], dtype=float)


def values_by_selection(
    statistic: Statistic, columns: Sequence[NDArray[Any]], rows: Sequence[IntArray], batched: bool
) -> FloatArray:
    """Returns the statistic of each selection of rows; batched, shorter selections are filled up with NaN."""
    if not batched:
        return np.array([statistic(*(column[picked] for column in columns)) for picked in rows], dtype=float)
    width = max(picked.size for picked in rows)
    filled = [np.full((len(rows), width), math.nan) for _ in columns]
    for draw, picked in enumerate(rows):
        for column, target in zip(columns, filled, strict=True):
            target[draw, : picked.size] = column[picked]
    return np.asarray(statistic(*filled), dtype=float)
