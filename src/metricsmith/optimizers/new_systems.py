"""Agreement on outputs of unrated systems: each pair of rows is ranked by a fit without its systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError
from metricsmith.optimizers.fitting import FitOptions
from metricsmith.optimizers.passes import Pass, Trial, refit
from metricsmith.optimizers.splits import RatedRows
from metricsmith.report.induction.record import MINIMUM_SYSTEMS, NewSystems
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import Interval, jackknife_interval
from metricsmith.stats.resampling.two_way import PairTau, pair_tau, two_way_interval

__all__ = ["MOST_BLOCKS", "SystemsFold", "SystemsLeftOut", "leave_systems_out", "new_systems"]


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
    systems, groups, ratings, inside = _joined(folds)
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


def new_systems(trials: Sequence[Trial], options: FitOptions) -> NewSystems | None:
    """The figures for new systems and inside systems.

    Candidates and their values stay as they are; only the combination is fitted anew without some systems. Judges that
    were written or tuned on rated rows stay as they are: making them anew without some systems would multiply the
    requests by 41 to 92. The report counts such components, and to that extent the figure flatters.

    Parameters
    ----------
    trials : sequence of Trial
        One for a held-out side, one for each fold of a cross-validation.
    options : FitOptions

    Returns
    -------
    NewSystems or None
        None where no held-out row with a prediction names its system (the label ``system``).
    """
    sides = [_Side.of(trial) for trial in trials]
    names = sorted({name for side in sides for name in side.systems})
    if not names:
        return None
    groups = sorted({group for side in sides for group in side.rows.groups})
    folds = [side.held_out(names, groups, options) for side in sides]
    block = replace(
        _inside(folds, [side.predicted for side in sides]),
        judges=max(
            len(one.candidates.judged.intersection(one.fitted.small.names))
            for one in (trial.trained for trial in trials)
        ),
        unnamed=sum(len(trial.test) for trial in trials) - sum(len(side.rows) for side in sides),
    )
    reason = _against(folds, all(trial.known is None or len(trial.known) == trial.values.shape[1] for trial in trials))
    if reason:
        return replace(block, withheld=reason)
    try:
        found = leave_systems_out(folds, most=MOST_BLOCKS if len(folds) == 1 else MINIMUM_SYSTEMS)
    except DataError:
        return replace(block, withheld="without some of the systems all training ratings are alike")
    ends = found.interval
    if math.isnan(ends.low):
        return replace(block, withheld="tau-b is undefined without some of the systems or groups")
    return replace(block, kendall_tau_b=found.kendall_tau_b, ci_low=ends.low, ci_high=ends.high)


@dataclass(frozen=True)
class _Side:
    """A pass, and those of its test rows that have a system and a prediction."""

    trained: Pass
    rows: RatedRows
    values: FloatArray
    predicted: FloatArray

    @classmethod
    def of(cls, trial: Trial) -> _Side:
        rows, predicted = trial.test, trial.trained.predict(trial.values)
        kept = [place for place, row in enumerate(rows.rows) if row.get("system") and np.isfinite(predicted[place])]
        return cls(trial.trained, rows.take(kept), trial.values[kept], predicted[kept])

    @property
    def systems(self) -> list[str]:
        return [str(row["system"]) for row in self.rows.rows]

    def held_out(self, names: Sequence[str], groups: Sequence[str], options: FitOptions) -> SystemsFold:
        system, group = ({name: place for place, name in enumerate(given)} for given in (names, groups))

        def again(kept: NDArray[np.bool_]) -> FloatArray:
            fitted = refit(self.trained, np.flatnonzero(kept), options)
            return fitted.small.predict(self.values[:, fitted.positions])

        return SystemsFold(
            learned=np.array([system.get(str(row.get("system")), -1) for row in self.trained.train.rows]),
            ratings=self.rows.ratings,
            systems=np.array([system[name] for name in self.systems], dtype=np.int64),
            groups=np.array([group[name] for name in self.rows.groups], dtype=np.int64),
            refit=again,
        )


def _inside(folds: Sequence[SystemsFold], predicted: Sequence[FloatArray]) -> NewSystems:
    """Agreement inside systems, with the metric as it is.

    Levels of systems alone cannot give it.
    """
    systems, groups, ratings, fold = _joined(folds)
    found = pair_tau(np.concatenate(predicted), ratings, only=[systems, fold], groupings=[groups])
    ends = jackknife_interval(found.value, found.without[0], bounds=(-1.0, 1.0))
    return NewSystems(
        systems=np.unique(systems).size,
        rows=ratings.size,
        within_tau_b=found.value,
        within_low=ends.low,
        within_high=ends.high,
    )


def _against(folds: Sequence[SystemsFold], whole: bool) -> str:
    """The reason why there can be no figure for new systems; empty if there can."""
    systems, groups, _, _ = _joined(folds)
    number = np.unique(systems).size
    if number < MINIMUM_SYSTEMS:
        return f"{MINIMUM_SYSTEMS} systems among the held-out rows are the least, and there are {number}"
    met = np.unique(np.column_stack([groups, systems]), axis=0)
    shares = np.unique(met[:, 0], return_counts=True)[1] > 1
    if shares.mean() < 0.5:
        return f"only {shares.sum()} of {shares.size} held-out groups have rows of two systems or more"
    if not whole:
        return (
            "under cross-validation held-out rows are judged by what their fold kept, so that nothing can be refitted"
        )
    return ""


def _joined(folds: Sequence[SystemsFold]) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Systems, groups, ratings and the number of the fold, of all held-out rows."""
    systems, groups = (
        np.concatenate([getattr(fold, name) for fold in folds]).astype(np.int64) for name in ("systems", "groups")
    )
    ratings = np.concatenate([fold.ratings for fold in folds])
    return systems, groups, ratings, np.repeat(np.arange(len(folds)), [fold.ratings.size for fold in folds])
