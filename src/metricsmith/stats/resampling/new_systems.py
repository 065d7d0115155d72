"""Kendall's tau-b on rows of unrated systems: each pair of rows is ranked by a fit without its systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling.intervals import Interval
from metricsmith.stats.resampling.two_way import PairTau, pair_tau, two_way_interval

__all__ = ["MOST_BLOCKS", "SystemsFold", "SystemsLeftOut", "held_out_rows", "leave_systems_out"]


MOST_BLOCKS = 8  # systems beyond are left out of fits several at a time: 92 fits, with six 41


@dataclass(frozen=True)
class SystemsFold:
    """The rows that one fit is tested on, and a function that fits anew without some systems.

    Parameters
    ----------
    learned : int array, shape (n,)
        The system of each row that was fitted on, numbered from 0; -1 where it is unknown or not among the tested.
    ratings : float array, shape (t,)
        Of the rows to test on.
    systems, groups : int array, shape (t,)
        Their systems and groups, numbered from 0 over all fits.
    refit : callable
        ``refit(kept)`` fits on the rows of a mask of shape (n,) and predicts those to test on, shape (t,).
    """

    learned: IntArray
    ratings: FloatArray
    systems: IntArray
    groups: IntArray
    refit: Callable[[NDArray[np.bool_]], FloatArray]


@dataclass(frozen=True)
class SystemsLeftOut:
    """Kendall's tau-b on rows of new systems, and the same without each group, each system and each pair of both.

    `refitted` has for each block of systems the value without it, from fits that are without it too.
    """

    kendall_tau_b: float
    by_group: FloatArray
    by_system: FloatArray
    by_cell: FloatArray
    refitted: FloatArray

    @property
    def interval(self) -> Interval:
        """95 %, over groups and systems at once."""
        return two_way_interval(self.kendall_tau_b, self.by_group, self.by_system, self.by_cell, refitted=self.refitted)


def leave_systems_out(folds: Sequence[SystemsFold], *, most: int = MOST_BLOCKS) -> SystemsLeftOut:
    """The Kendall's tau-b to expect on rows of new systems and new groups.

    Two rows are ranked by the fit that has seen neither system: a fit that has seen them knows how their levels differ,
    which says nothing about other systems. Predictions of two fits are never ranked against each other.

    Parameters
    ----------
    folds : sequence of SystemsFold
        One for a held-out side; several for a cross-validation, where pairs count inside a fold.
    most : int
        The number of blocks in which systems are left out.
    """
    systems, groups, ratings, inside = held_out_rows(folds)
    sizes = np.bincount(systems)
    count = min(most, sizes.size)
    block_of = np.full(sizes.size + 1, -1)  # the last one: of no system
    block_of[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size) % count
    blocks = block_of[systems]
    members = [np.flatnonzero(blocks == block) for block in range(count)]
    predicted = {
        frozenset(left): np.concatenate([fold.refit(~np.isin(block_of[fold.learned], left)) for fold in folds])
        for size in (1, 2, 3)
        for left in combinations(range(count), size)
    }

    def tau(out: frozenset[int], groupings: Sequence[IntArray] = ()) -> PairTau:
        table = np.empty((count, ratings.size))  # of each row beside each block: the fit without either and `out`
        for own, rows in enumerate(members):
            for other in range(count):
                table[other, rows] = predicted[out | {own, other}][rows]
        kept = ~np.isin(blocks, list(out))
        return pair_tau(table[:, kept], ratings[kept], kinds=blocks[kept], only=[inside[kept]], groupings=groupings)

    cells = np.unique(groups * sizes.size + systems, return_inverse=True)[1]
    whole = tau(frozenset(), [groups, systems, cells])
    refitted = np.array([tau(frozenset({block})).value for block in range(count)])
    by_group, by_system, by_cell = whole.without
    return SystemsLeftOut(whole.value, by_group, by_system, by_cell, refitted)


def held_out_rows(folds: Sequence[SystemsFold]) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Systems, groups, ratings and the number of the fold, of all held-out rows."""
    systems, groups = (
        np.concatenate([getattr(fold, name) for fold in folds]).astype(np.int64) for name in ("systems", "groups")
    )
    ratings = np.concatenate([fold.ratings for fold in folds])
    return systems, groups, ratings, np.repeat(np.arange(len(folds)), [fold.ratings.size for fold in folds])
