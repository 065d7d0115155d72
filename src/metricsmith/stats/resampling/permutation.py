"""Permutation tests that keep groups together, and corrections of p-values for many tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.resampling.draws import (
    FloatArray,
    Groups,
    IntArray,
    Statistic,
    check_draws,
    chunks,
    complete_rows,
    values_by_draw,
)

__all__ = [
    "Alternative",
    "Exchange",
    "MINIMUM_GROUPS",
    "PermutationDraws",
    "PermutationTest",
    "Swapped",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "holm",
    "paired_permutation_draws",
    "paired_permutation_test",
    "permutation_null",
    "permutation_p_value",
    "permutation_test",
    "permuted_rows",
    "standardized",
]

Alternative = Literal["two-sided", "greater"]
Swapped = Callable[[NDArray[np.bool_]], FloatArray]
Exchange = Callable[[FloatArray, FloatArray, FloatArray], Swapped | None]
MINIMUM_GROUPS = 5
"""With fewer groups no rank association *between* groups reaches p < .05: 4 groups have 24 orders, and the
perfect one is as extreme as its reverse, so p >= 2/24."""
BLOCK = 100  # draws after which a test may end
WIDER = 32  # a faster way takes so many times the draws at once, to share work between them


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """A permutation test.

    Parameters
    ----------
    observed : float
        The statistic of the data as they are.
    p_value : float
        In [1 / (draws + 1), 1], two-sided unless asked for otherwise; NaN if `observed` is NaN or no draw is
        defined.
    draws, undefined : int
        Permutations that entered, and those left out because the statistic was NaN.
    """

    observed: float
    p_value: float
    draws: int
    undefined: int


@dataclass(frozen=True, slots=True)
class PermutationDraws:
    """The statistic of the data as they are, and that of every draw: all that a permutation test rests on.

    Parameters
    ----------
    observed : float
    draws : ndarray, shape (m,)
        NaN where the statistic is undefined.
    """

    observed: float
    draws: FloatArray

    def test(self, alternative: Alternative = "two-sided") -> PermutationTest:
        """`permutation_p_value` of the draws."""
        return permutation_p_value(self.observed, self.draws, alternative)


def permutation_test(
    statistic: Statistic,
    prediction: ArrayLike,
    rating: ArrayLike,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    batched: bool = False,
    alternative: Alternative = "two-sided",
) -> PermutationTest:
    """Test whether a prediction is associated with ratings, respecting groups.

    Parameters as in `permutation_null` and `permutation_p_value`. With fewer than `MINIMUM_GROUPS` groups an
    association between groups cannot become significant, tested two-sided; one inside groups can.
    """
    draws = permutation_null(
        statistic, prediction, rating, groups, permutations=permutations, seed=seed, batched=batched
    )
    (x, y), _ = complete_rows([prediction, rating], groups)
    return permutation_p_value(float(statistic(x, y)), draws, alternative)


def permutation_null(
    statistic: Statistic,
    prediction: ArrayLike,
    rating: ArrayLike,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    batched: bool = False,
) -> FloatArray:
    """Draws of ``statistic(prediction, rating)`` under "the two are unrelated, both may have group levels".

    Each draw lays the ratings of a randomly chosen other group, in random order, beside the predictions
    of each group, so that both sides keep their group structure. For groups of equal size this exchanges
    blocks and permutes inside them, which is exact; for single rows it is the row permutation. Where the
    donor is too short its ratings are gone through again, where it is too long some are left out: not
    exact, but close (simulated type I error at the .05 level: .01 to .06, row permutation .35 to .69).

    Parameters
    ----------
    statistic : callable
        ``statistic(prediction, rating)``; rows come sorted by group, groups in the order of their first row.
    prediction, rating : array_like, shape (n,)
        Rows that are NaN on either side are left out first.
    groups : sequence of hashable, length n, optional
    permutations, seed, batched
        Number of draws, at least 1; seed of the draws; whether `statistic` works along the last axis.

    Returns
    -------
    ndarray, shape (permutations,)
        NaN where the statistic is undefined.

    Raises
    ------
    DataError
        If lengths differ or a group label is missing.
    OptionError
        If `permutations` is below 1.
    """
    check_draws(permutations)
    (x, y), codes = complete_rows([prediction, rating], groups)
    order = np.argsort(codes, kind="stable")
    x, y, codes = x[order], y[order], codes[order]
    draws = [values_by_draw(statistic, [x, y[rows]], batched) for rows in permuted_rows(codes, permutations, seed)]
    return np.concatenate(draws)


def permuted_rows(codes: IntArray, permutations: int, seed: int) -> Iterator[IntArray]:
    """Yields the draws of `permutation_null`, several at a time, for statistics that share them.

    Parameters
    ----------
    codes : int array, shape (n,)
        The group of each row, numbered from 0 and ascending.
    permutations, seed : int

    Yields
    ------
    int array, shape (draws, n)
        The row whose rating each row gets.
    """
    random = np.random.default_rng(seed)
    sizes: IntArray = np.bincount(codes).astype(np.int64)
    starts: IntArray = np.cumsum(sizes) - sizes
    places = np.arange(codes.size) - starts[codes]
    for draws in chunks(permutations, codes.size):
        shuffled = np.argsort(codes + random.random((draws, codes.size)), axis=-1)
        donors = np.argsort(random.random((draws, sizes.size)), axis=-1)[:, codes]
        yield np.take_along_axis(shuffled, starts[donors] + places % sizes[donors], axis=-1)


def permutation_p_value(observed: float, draws: ArrayLike, alternative: Alternative = "two-sided") -> PermutationTest:
    """P-value ``(b + 1) / (m + 1)``: b of m draws are at least as far from 0 as `observed`, or at least as great.

    Parameters
    ----------
    observed : float
    draws : array_like, shape (m,)
        Draws under the null; NaN ones are left out and counted.
    alternative : "two-sided" or "greater"
        Whether draws count by their size on either side of 0, or by being at least `observed`.

    References
    ----------
    Phipson and Smyth (2010), "Permutation p-values should never be zero".
    """
    draws = np.asarray(draws, dtype=float)
    defined = draws[~np.isnan(draws)]
    undefined = draws.size - defined.size
    if math.isnan(observed) or not defined.size:
        return PermutationTest(observed, math.nan, defined.size, undefined)
    # Equal arrangements may differ in the last bits: rounding must not make them less extreme.
    slack = 1e-12 * abs(observed) + 1e-13
    sizes, size = (np.abs(defined), abs(observed)) if alternative == "two-sided" else (defined, observed)
    extreme = int(np.count_nonzero(sizes >= size - slack))
    return PermutationTest(observed, (extreme + 1) / (defined.size + 1), defined.size, undefined)


def paired_permutation_test(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    rating: ArrayLike | None = None,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    batched: bool = False,
    standardize: bool = True,
    alternative: Alternative = "two-sided",
    exchange: Exchange | None = None,
    stop: tuple[float, float] | None = None,
) -> PermutationTest:
    """Test ``statistic(first, rating) - statistic(second, rating)`` by swapping whole groups.

    Under the null the two predictions are exchangeable: each draw swaps them in a random half of the
    groups. With fewer than six groups p cannot fall below .05.

    Parameters
    ----------
    statistic : callable
        ``statistic(prediction, rating)``; without ratings ``statistic(*columns)``.
    first, second : array_like, shape (n,) or (n, q)
        The predictions, or q numbers of each row that a statistic is made of, such as `CharacterF1.terms`. Rows that
        are NaN in anything are left out first.
    rating : array_like, shape (n,), optional
        Needed for predictions of one number a row.
    groups, permutations, seed, batched
        As in `permutation_null`.
    standardize : bool
        Bring both predictions to mean 0 and sd 1 first, as swapping needs a common scale. Correlations are
        unaffected; turn it off for statistics that depend on the scale.
    alternative : "two-sided" or "greater"
        ``greater`` asks whether the first is better, one-sided.
    exchange : callable, optional
        A faster way to the same draws: ``exchange(first, second, rating)`` of what takes part, shape (m,), is called
        once and returns a function of swaps, bool of shape (draws, m), that returns the differences, shape (draws,);
        or None, and `statistic` is called.
    stop : (float, float), optional
        After every `BLOCK` draws, end the test if the share of draws that reach `observed` is below the first or above
        the second number, as mt-metrics-eval does at (.02, .5); None makes all draws.

    References
    ----------
    Deutsch, Dror and Roth (2021), "A statistical analysis of summarization evaluation metrics using
    resampling methods": the test that permutes inputs.
    """
    return paired_permutation_draws(
        statistic, first, second, rating, groups, permutations=permutations, seed=seed, batched=batched,
        standardize=standardize, alternative=alternative, exchange=exchange, stop=stop,
    ).test(alternative)  # fmt: skip


def paired_permutation_draws(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    rating: ArrayLike | None = None,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    batched: bool = False,
    standardize: bool = True,
    alternative: Alternative = "two-sided",
    exchange: Exchange | None = None,
    stop: tuple[float, float] | None = None,
) -> PermutationDraws:
    """Returns the draws of `paired_permutation_test`, whose parameters these are; fewer where it ends early."""
    check_draws(permutations)
    sides = [list(np.atleast_2d(np.asarray(side, dtype=float).T)) for side in (first, second)]
    q, ratings = len(sides[0]), [] if rating is None else [rating]
    if len(sides[1]) != q:
        raise DataError(f"rows of {q} and of {len(sides[1])} numbers cannot be swapped: give as many of each")
    columns, codes = complete_rows([*sides[0], *sides[1], *ratings], groups)
    if standardize:
        columns[: 2 * q] = map(standardized, columns[: 2 * q])
    own, others, known = columns[:q], columns[q : 2 * q], columns[2 * q :]
    random = np.random.default_rng(seed)
    count = int(codes.max(initial=-1)) + 1
    exchanged = exchange(*own, *others, *known) if exchange is not None else None

    def differences(swap: NDArray[np.bool_]) -> FloatArray:
        if exchanged is not None:
            return exchanged(swap)
        fixed = [np.broadcast_to(column, swap.shape) for column in known]
        values = [
            values_by_draw(statistic, [*(np.where(swap, b, a) for a, b in zip(*pair, strict=True)), *fixed], batched)
            for pair in ((own, others), (others, own))
        ]
        return values[0] - values[1]

    if exchanged is not None:  # as the draws are computed, so that the same arrangement has the same number
        observed = float(exchanged(np.zeros((1, codes.size), dtype=bool))[0])
    else:
        observed = float(statistic(*own, *known)) - float(statistic(*others, *known))
    draws: list[FloatArray] = []
    for start in range(0, permutations, BLOCK):
        for picks in chunks(min(BLOCK, permutations - start), codes.size if exchanged is None else codes.size // WIDER):
            swap = random.random((picks, count)) < 0.5
            draws.append(differences(swap[:, codes] if count < codes.size else swap))
        test = permutation_p_value(observed, np.concatenate(draws), alternative)
        undefined = math.isnan(test.p_value)
        reached = math.nan if undefined else (round(test.p_value * (test.draws + 1)) - 1) / test.draws
        if stop is not None and (reached < stop[0] or reached > stop[1]):
            break
    return PermutationDraws(observed, np.concatenate(draws))


def standardized(values: FloatArray) -> FloatArray:
    """Mean 0 and sd 1; zeros for a constant."""
    if values.size == 0 or np.ptp(values) == 0:
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / values.std())


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values adjusted by Holm's step-down method (family-wise error), order kept.

    Parameters
    ----------
    p_values : array_like, shape (m,)
        In [0, 1]. NaN stays NaN and does not count as a test.

    Raises
    ------
    OptionError
        If a value lies outside [0, 1].

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    return _adjusted(p_values, lambda p: np.maximum.accumulate(p * np.arange(p.size, 0, -1)))


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """P-values adjusted by Benjamini and Hochberg's step-up method (false discovery rate), order kept.

    Parameters and errors as in `holm`.

    References
    ----------
    Benjamini and Hochberg (1995), "Controlling the false discovery rate".
    """
    return _adjusted(p_values, lambda p: np.minimum.accumulate((p * p.size / np.arange(1, p.size + 1))[::-1])[::-1])


def benjamini_yekutieli(p_values: ArrayLike) -> FloatArray:
    """P-values adjusted for the false discovery rate of tests that depend on each other in any way, order kept.

    They are `benjamini_hochberg`'s times ``1 + 1/2 + ... + 1/m``, at most 1. Parameters and errors as in `holm`.

    References
    ----------
    Benjamini and Yekutieli (2001), "The control of the false discovery rate in multiple testing under dependency".
    """
    adjusted = benjamini_hochberg(p_values)
    tests = np.count_nonzero(~np.isnan(adjusted))
    return np.asarray(np.minimum(adjusted * (1 / np.arange(1, tests + 1)).sum(), 1.0))


def _adjusted(p_values: ArrayLike, adjust: Callable[[FloatArray], FloatArray]) -> FloatArray:
    p = np.asarray(p_values, dtype=float).ravel()
    tested = ~np.isnan(p)
    wrong = p[tested & ~((p >= 0) & (p <= 1))]
    if wrong.size:
        raise OptionError(f"p-value {wrong[0]:g} is outside [0, 1]; pass p-values, not statistics")
    order = np.flatnonzero(tested)[np.argsort(p[tested], kind="stable")]
    result = np.full(p.shape, math.nan)
    result[order] = np.minimum(adjust(p[order]), 1.0)
    return result
