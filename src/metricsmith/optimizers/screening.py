"""The candidates that rise with the training ratings beyond chance, among many that were made for the purpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b
from metricsmith.stats.resampling import MINIMUM_GROUPS, holm, permutation_test

__all__ = ["LEVEL", "beyond_chance", "could_pass"]

LEVEL = 0.05  # the chance that any column passes where none has to do with the ratings
DRAWS = 1000


def beyond_chance(
    columns: Sequence[FloatArray], ratings: FloatArray, groups: Sequence[str], *, seed: int = 0
) -> NDArray[np.bool_]:
    """True for columns whose tau-b with the ratings is larger than with those of exchanged groups.

    Tests are corrected by Holm's method, so that all columns together have a chance of `LEVEL` to let one through that
    has nothing to do with the ratings. With fewer than four groups nothing between groups passes.

    Parameters
    ----------
    columns : sequence of m float arrays, shape (n,)
        NaN where there is no number.
    ratings : float array, shape (n,)
        Higher is better.
    groups : sequence of str, length n
    seed : int
        Of the draws.

    Returns
    -------
    bool array, shape (m,)
    """
    return np.asarray(holm([_p_value(one, ratings, groups, len(columns), seed) for one in columns]) <= LEVEL)


def could_pass(tests: int, ratings: FloatArray, groups: Sequence[str], *, seed: int = 0) -> bool:
    """True if the ratings themselves would pass as one of so many columns; else there are too few for any column."""
    return bool(_p_value(ratings, ratings, groups, tests, seed) * tests <= LEVEL)


def _p_value(column: FloatArray, ratings: FloatArray, groups: Sequence[str], tests: int, seed: int) -> float:
    if len(ratings) < MINIMUM_GROUPS:  # whose few orders cannot be beyond chance
        return 1.0
    draws = max(DRAWS, int(2 * tests / LEVEL))  # enough that the smallest p-value survives the correction
    return permutation_test(
        batch_kendall_tau_b, column, ratings, groups, permutations=draws, seed=seed, batched=True, alternative="greater"
    ).p_value
