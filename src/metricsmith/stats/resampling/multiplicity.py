"""Corrections of p-values for many tests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import OptionError

__all__ = ["benjamini_hochberg", "holm"]

FloatArray = NDArray[np.float64]


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
