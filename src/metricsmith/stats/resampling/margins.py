"""Random tables of marks whose row and column sums are those of a given table: what two sets of margins explain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError
from metricsmith.stats.resampling.draws import IntArray, check_draws, chunks

__all__ = ["tables_of_equal_margins"]


def tables_of_equal_margins(
    marks: NDArray[np.bool_],
    present: NDArray[np.bool_],
    classes: IntArray,
    draws: int,
    *,
    rounds: int = 40,
    seed: int = 0,
) -> Iterator[NDArray[np.bool_]]:
    """Draws tables in which each column has as many marks, and each row as many within each class of columns.

    Two rows at a time trade the columns that only one of them has marked, at random within each class, until the marks
    are mixed. If the chance of a mark is ``1 / (1 + exp(-row - column))`` with a row's number free for each class, all
    such tables are equally likely given the margins (Rasch's model), so that a statistic of the given table can be
    held against its values in these.

    Parameters
    ----------
    marks, present : bool array, shape (r, n)
        The table, and the cells that it has; the others stay without a mark.
    classes : int array, shape (n,)
        The class of each column.
    draws : int
        Number of tables, at least 1.
    rounds : int
        How often each row trades with another for each draw; all draws start at the given table.
    seed : int

    Yields
    ------
    bool array, shape (draws, r, n)
        Some of the tables at a time.

    Raises
    ------
    DataError
        If a cell that is missing has a mark, or the shapes differ.
    OptionError
        If `draws` is below 1.

    References
    ----------
    Strona et al. (2014), "A fast and unbiased procedure to randomize ecological binary matrices with fixed row and
    column totals"; Ponocny (2001), "Nonparametric goodness-of-fit tests for the Rasch model".
    """
    check_draws(draws)
    if marks.ndim != 2 or marks.shape != present.shape or classes.shape != marks.shape[1:] or (marks & ~present).any():
        raise DataError(
            f"marks {marks.shape}, cells {present.shape} and classes {classes.shape} do not fit: give (rows, columns) "
            "twice and (columns,), with marks only where there are cells"
        )
    random = np.random.default_rng(seed)
    half = len(marks) // 2
    for count in chunks(draws, marks.size):
        tables = np.repeat(marks[None], count, axis=0)
        table = np.arange(count)[:, None]
        for _ in range(rounds):
            order = np.argsort(random.random((count, len(marks))), axis=1)
            one, other = order[:, :half], order[:, half : 2 * half]
            first, second = tables[table, one], tables[table, other]
            free = (first != second) & present[one] & present[other]
            place = np.where(free, classes, -1)
            to = np.argsort(place, axis=-1, kind="stable")
            source = np.argsort(place + random.random(place.shape), axis=-1)
            mixed = np.empty_like(first)
            np.put_along_axis(mixed, to, np.take_along_axis(first, source, axis=-1), axis=-1)
            tables[table, one] = np.where(free, mixed, first)
            tables[table, other] = np.where(free, ~mixed, second)
        yield tables
