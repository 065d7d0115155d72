"""Tests of one metric against another, and against one that knows nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError
from metricsmith.meta_evaluation.kept import Kept, key_of, taken
from metricsmith.meta_evaluation.matrices import (
    FloatArray,
    Grouping,
    Measure,
    common_cells,
    grouped,
    measure_value,
    own_way,
)
from metricsmith.stats.resampling import (
    Groups,
    PermutationTest,
    permutation_p_value,
)
from metricsmith.stats.resampling.draws import check_draws
from metricsmith.stats.resampling.intervals import percentile_interval
from metricsmith.stats.resampling.permutation import (
    PermutationDraws,
    Swapped,
    paired_permutation_draws,
    permuted_rows,
)
from metricsmith.version import __version__

__all__ = [
    "ChanceFloor",
    "PairTests",
    "Swap",
    "better_draws",
    "chance_floor",
    "chance_floors",
    "perm_both",
    "perm_both_draws",
]

Swap = Literal["pairs", "scores"]
"""The things that a test exchanges: decisions on pairs where thresholds are calibrated, else scores; or only scores."""


@dataclass(frozen=True, slots=True)
class ChanceFloor:
    """The values that a measure gives to a metric that knows nothing.

    Parameters
    ----------
    observed : float
        The measure of the metric itself.
    mean, low, high : float
        Mean of the permuted metric's values, and the range of their middle 95 %; NaN if none is defined.
    p_value : float
        One-sided: how often chance reaches `observed`, ``(b + 1) / (m + 1)``.
    draws, undefined : int
        Permutations that entered, and those for which the measure is NaN.
    """

    observed: float
    mean: float
    low: float
    high: float
    p_value: float
    draws: int
    undefined: int


def chance_floor(
    measure: Measure,
    metric: ArrayLike,
    gold: ArrayLike,
    *,
    by: Grouping = "none",
    permutations: int = 200,
    seed: int = 0,
) -> ChanceFloor:
    """Floor of a measure: its values for the metric's own scores laid at random beside the gold scores.

    The permuted metric keeps the distribution and the ties of the metric, which the floor depends on: acc-t of a
    constant is the share of gold ties, of a continuous metric more. On the same ratings it was .205 for a constant and
    about .40 for a continuous one.

    Parameters
    ----------
    measure : callable
        See `Measure`, for example ``lambda metric, gold: pairwise_accuracy(metric, gold, by="system")``.
    metric, gold : array_like, shape (k, n)
        NaN is missing; cells that are missing on either side take no part.
    by : "none", "item" or "system"
        Whether cells are exchanged singly, or whole segments (systems) change places and are shuffled inside, so
        that ties within them stay.
    permutations, seed : int

    Raises
    ------
    DataError
        If the matrices differ in shape or a score is infinite.
    OptionError
        If an option has no meaning.
    """
    return chance_floors(measure, [metric], gold, by=by, permutations=permutations, seed=seed)[0]


def chance_floors(
    measure: Measure,
    metrics: Sequence[ArrayLike],
    gold: ArrayLike,
    *,
    by: Grouping = "none",
    permutations: int = 200,
    seed: int = 0,
) -> list[ChanceFloor]:
    """`chance_floor` of several metrics, on the cells that all of them have: all are permuted alike.

    A permutation is so drawn once for all of them, and the part that gold decides is done once where the measure has
    a method `against` (see `Measure`).
    """
    check_draws(permutations)
    matrices, common = common_cells(metrics, gold)
    stack = np.array(matrices)
    grouped(common, common, by)  # refuses an unknown grouping
    value: Callable[[FloatArray], FloatArray] = own_way(measure, "against", common) or (
        lambda moved: np.array([measure_value(measure, metric, common) for metric in moved])
    )

    def turned(matrices: NDArray[Any]) -> NDArray[Any]:  # cells are permuted row by row
        return matrices.swapaxes(-1, -2) if by == "item" else matrices

    present = turned(~np.isnan(common))
    rows = np.nonzero(present)[0]
    codes = np.arange(rows.size) if by == "none" else np.unique(rows, return_inverse=True)[1]
    cells, observed = turned(stack)[:, present], value(stack)
    draws = []
    for order in itertools.chain.from_iterable(permuted_rows(codes, permutations, seed)):
        moved = np.full((len(stack), *present.shape), math.nan)
        moved[:, present] = cells[:, order]
        draws.append(value(turned(moved)))
    floors = []
    for own, found in zip(observed.tolist(), np.transpose(draws), strict=True):
        interval, test = percentile_interval(found, 0.95), permutation_p_value(own, found, "greater")
        defined = found[~np.isnan(found)]
        mean = float(defined.mean()) if defined.size else math.nan
        floors.append(ChanceFloor(own, mean, interval.low, interval.high, test.p_value, test.draws, test.undefined))
    return floors


def perm_both(
    measure: Measure,
    first: ArrayLike,
    second: ArrayLike,
    gold: ArrayLike,
    *,
    groups: Groups | None = None,
    resamples: int = 1000,
    seed: int = 0,
    standardize: bool = True,
    stop: tuple[float, float] | None = None,
    approximately: bool = False,
) -> PermutationTest:
    """PERM-BOTH: test whether the first metric agrees better with gold than the second.

    Both metrics are brought to mean 0 and standard deviation 1; each resample exchanges them in every cell with
    probability 1/2 and computes the measure of both anew, with a new threshold if it calibrates one.

    Parameters
    ----------
    measure : callable
        See `Measure`. Those of `MEASURES` share work between resamples, but for tau-b over all cells where scores tie;
        any other is called twice per resample.
    first, second, gold : array_like, shape (k, n)
        NaN is missing; only cells that all three have take part.
    groups : sequence of hashable, length n, optional
        Segments of one group (a document) are exchanged together, in all systems; None exchanges single cells, as
        the paper does.
    resamples, seed : int
    standardize : bool
        Turn it off for measures with a fixed threshold, or that round, which are meant on the metrics' own scale.
    stop : (float, float), optional
        As for `paired_permutation_test`: end early where the p-value is clear.
    approximately : bool
        Take SPA's limit of many sign vectors (p differs by .005 in the middle, .06 at most), and tau-b over all cells
        by its linear part (p differs by less than a draw). Other measures have no such way.

    Returns
    -------
    PermutationTest
        `observed` is the first's value less the second's; `p_value` is one-sided, ``(b + 1) / (m + 1)`` with b of m
        resamples at least as great.

    Raises
    ------
    DataError
        If the matrices differ in shape or a score is infinite.
    OptionError
        If `resamples` is below 1.

    References
    ----------
    Deutsch, Dror and Roth (2021), "A statistical analysis of summarization evaluation metrics using resampling
    methods". mt-metrics-eval gives b / m, with its metrics in the other order.
    """
    return perm_both_draws(
        measure, first, second, gold, groups=groups, resamples=resamples, seed=seed, standardize=standardize, stop=stop,
        approximately=approximately,
    ).test("greater")  # fmt: skip


def perm_both_draws(
    measure: Measure,
    first: ArrayLike,
    second: ArrayLike,
    gold: ArrayLike,
    *,
    groups: Groups | None = None,
    resamples: int = 1000,
    seed: int = 0,
    standardize: bool = True,
    stop: tuple[float, float] | None = None,
    approximately: bool = False,
) -> PermutationDraws:
    """Returns the draws of `perm_both`, whose parameters these are; fewer where it ends early."""
    (first, second), gold = common_cells([first, second], gold)
    present = ~np.isnan(gold)
    labels = None
    if groups is not None:
        if len(groups) != gold.shape[1]:
            raise DataError(f"{len(groups)} groups for {gold.shape[1]} segments: give one group label per segment")
        labels = [groups[segment] for segment in np.nonzero(present)[1].tolist()]

    def matrices(*cells: FloatArray) -> FloatArray:
        found = np.full((len(cells), *present.shape), math.nan)
        found[:, present] = cells
        return found

    def statistic(metric_cells: FloatArray, gold_cells: FloatArray) -> float:
        return measure_value(measure, *matrices(metric_cells, gold_cells))

    def exchange(*cells: FloatArray) -> Swapped | None:
        sides = matrices(*cells)
        found: Swapped | None = own_way(measure, "approximated", *sides) if approximately else None
        return own_way(measure, "exchanged", *sides) if found is None else found

    return paired_permutation_draws(
        statistic, first[present], second[present], gold[present], labels,
        permutations=resamples, seed=seed, standardize=standardize, alternative="greater",
        exchange=exchange, stop=stop,
    )  # fmt: skip


def better_draws(
    measure: Measure,
    first: FloatArray,
    second: FloatArray,
    gold: FloatArray,
    *,
    swap: Swap,
    resamples: int,
    seed: int,
    deciding: float | None = None,
) -> PermutationDraws:
    """The draws of a rank table's test: `perm_pairs` or `perm_both`.

    Parameters
    ----------
    measure, first, second, gold, resamples, seed
        As for `perm_both`.
    swap : "pairs" or "scores"
    deciding : float, optional
        A level, if all that matters is on which side of it the p-value is. Draws then end early, at .4 and 10 times the
        level (.02 and .5, as in mt-metrics-eval, at .05). An approximation counts unless its p-value is near the level.
    """
    by_pairs: PermutationDraws | None = None
    if swap == "pairs":
        by_pairs = own_way(measure, "pairs_exchanged", first, second, gold, resamples, seed)
    if by_pairs is not None:
        return by_pairs
    stop = None if deciding is None else (deciding / 2.5, 10 * deciding)  # .4 * .05 is above .02
    error: float | None = getattr(measure, "p_error", None)
    if deciding is not None and error is not None:
        near = perm_both_draws(
            measure, first, second, gold, resamples=resamples, seed=seed, stop=stop, approximately=True
        )
        if abs(near.test("greater").p_value - deciding) > error:
            return near
    return perm_both_draws(measure, first, second, gold, resamples=resamples, seed=seed, stop=stop)


class PairTests:
    """The tests of every two metrics of a task, each made when it is asked for, and made once.

    Parameters
    ----------
    measure : callable
        See `Measure`.
    metrics : mapping of str to ndarray, shape (k, n)
        With the same cells as gold.
    gold : ndarray, shape (k, n)
    swap, resamples, seed, deciding
        As for `better_draws`.
    kept : mutable mapping of str to ndarray, optional
        Draws that are there already, and where new ones go; see `metricsmith.meta_evaluation.kept`.
    """

    def __init__(
        self,
        measure: Measure,
        metrics: Mapping[str, FloatArray],
        gold: FloatArray,
        *,
        swap: Swap = "pairs",
        resamples: int = 1000,
        seed: int = 0,
        deciding: float | None = None,
        kept: Kept | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {"swap": swap, "resamples": resamples, "seed": seed, "deciding": deciding}
        self._measure, self._metrics, self._gold = measure, metrics, gold
        self._kept: Kept = {} if kept is None else kept
        self._task = key_of(__version__, measure, gold, *self._settings.values())
        self._keys = {name: key_of(scores) for name, scores in metrics.items()}

    def draws(self, first: str, second: str) -> PermutationDraws:
        """Returns the draws of the first metric's value less the second's, the first being the better one."""
        key = key_of("test", self._task, self._keys[first], self._keys[second])
        if key not in self._kept:
            pair = self._metrics[first], self._metrics[second]
            made = better_draws(self._measure, *pair, self._gold, **self._settings)
            self._kept[key] = np.append(made.observed, made.draws)
        found = taken(self._kept, key, 2, 1 + self._settings["resamples"])
        return PermutationDraws(float(found[0]), found[1:])
