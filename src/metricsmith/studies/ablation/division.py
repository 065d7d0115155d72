"""The rows of a cell: a test set of whole groups, and nested learning rows among the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metricsmith.datasets.splits import content_order, holdout
from metricsmith.datasets.table import Table
from metricsmith.stats.correlation import IntArray

__all__ = ["learning_places", "test_places"]


def test_places(table: Table, *, fraction: float, seed: int) -> IntArray:
    """Draw the test rows of a seed: whole groups, the same for every setting and every number of learning rows.

    Parameters
    ----------
    table : Table
    fraction : float
        Share of the rated rows, above 0 and below 1.
    seed : int

    Returns
    -------
    int array
        Their places in the table, ascending. The draw depends on the contents of the rows, not on their order; of the
        ratings it only sees that they vary on both sides (`metricsmith.datasets.splits.holdout`).

    Raises
    ------
    DataError
        If the rated rows form fewer than two groups.
    OptionError
        If `fraction` is not between 0 and 1.
    """
    places = _rated(table)
    part = table.subset(places)
    split = holdout(part.groups, part.texts, fraction=fraction, seed=seed, ratings=part.ratings)
    return np.sort(places[split.test])


def learning_places(table: Table, test: Sequence[int] | IntArray, rows: int, seed: int) -> IntArray:
    """Draw learning rows among the rated rows outside the test set.

    Parameters
    ----------
    table : Table
    test : sequence of int
        Places of the test rows.
    rows : int
        The number of rows; 0 for all.
    seed : int
        Decides the order in which rows come.

    Returns
    -------
    int array
        Their places in the table, in that order: of one seed, fewer rows are a prefix of more. Fewer than `rows` where
        there are not so many.
    """
    left = _rated(table)
    order = np.random.default_rng(seed).permutation(left[~np.isin(left, test)])
    return order[: rows or None]


def _rated(table: Table) -> IntArray:
    """The places of the rated rows, in an order that follows from the contents of all rows."""
    order = content_order(table.rows, table.task.target)
    return order[~np.isnan(table.ratings[order])]
