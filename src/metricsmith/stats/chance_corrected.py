"""Agreement on categories beyond chance: of two sides by their table, of many raters by their counts.

Every function broadcasts over leading axes, so that many judges or resamples cost one call. All are 1 for full
agreement and 0 for that which chance would give, and NaN where chance alone agrees fully (one category throughout).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray, quotient

__all__ = ["fleiss_kappa", "gwet_ac1", "krippendorff_alpha", "table_ac1", "table_kappa", "table_pi"]

Weights = Literal["none", "linear", "quadratic"]


def table_kappa(tables: ArrayLike, *, weights: Weights = "none") -> FloatArray:
    """Cohen's kappa of two sides.

    Parameters
    ----------
    tables : array_like, shape (..., K, K)
        Counts or shares of rows by the label of one side and of the other.
    weights : {"none", "linear", "quadratic"}
        How a disagreement grows with the distance between labels, in the order of the table.

    Returns
    -------
    array, shape (...)
        In [-1, 1].

    Raises
    ------
    DataError
        If a table is not square, or has fewer than two categories.

    References
    ----------
    Cohen (1960), "A coefficient of agreement for nominal scales"; Cohen (1968), "Weighted kappa".
    """
    table, total, rows, columns = _margins(tables)
    return _corrected(table, total, rows, columns, _distances(rows.shape[-1], weights))


def table_pi(tables: ArrayLike) -> FloatArray:
    """Scott's pi of two sides, whose chance is that of their common frequencies; parameters as in `table_kappa`.

    References
    ----------
    Scott (1955), "Reliability of content analysis: the case of nominal scale coding".
    """
    table, total, rows, columns = _margins(tables)
    common = (rows + columns) / 2
    return _corrected(table, total, common, common, _distances(rows.shape[-1], "none"))


def table_ac1(tables: ArrayLike) -> FloatArray:
    """Gwet's AC1 of two sides; parameters as in `table_kappa`, chance as in `gwet_ac1`."""
    table, total, rows, columns = _margins(tables)
    agreed = np.eye(rows.shape[-1]).ravel()
    return _ac1(quotient(table @ agreed, total), quotient(rows + columns, 2 * total[..., None]))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Fleiss' kappa of many raters, not the same ones for each item.

    Parameters
    ----------
    counts : array_like, shape (n, K)
        Raters of each item by category. Items with one rater count for the frequencies only.

    Returns
    -------
    float
        Below 1; NaN where no item has two raters.

    References
    ----------
    Fleiss (1971), "Measuring nominal scale agreement among many raters"; for unequal numbers of raters the mean over
    items, as in Gwet (2014), Handbook of Inter-Rater Reliability, chapter 2.
    """
    table = _counts(counts)
    agreed, common = _observed(table), _frequencies(table)
    chance = float((common**2).sum())
    return (agreed - chance) / (1 - chance) if chance < 1 else math.nan


def gwet_ac1(counts: ArrayLike) -> float:
    """Gwet's AC1 of many raters, for which rare categories lower chance agreement instead of raising it.

    Parameters and missing raters as in `fleiss_kappa`; chance is ``sum p (1 - p) / (K - 1)``, K the categories of the
    table, given or not.

    References
    ----------
    Gwet (2008), "Computing inter-rater reliability and its variance in the presence of high agreement".
    """
    table = _counts(counts)
    return float(_ac1(np.asarray(_observed(table)), _frequencies(table)))


def krippendorff_alpha(
    counts: ArrayLike,
    *,
    level: Literal["nominal", "ordinal", "interval"] = "nominal",
    values: ArrayLike | None = None,
) -> float:
    """Krippendorff's alpha of many raters, any of whom may lack any item.

    Parameters
    ----------
    counts : array_like, shape (n, K)
        Raters of each item by category. Items with fewer than two are left out.
    level : {"nominal", "ordinal", "interval"}
        The distance between categories: any two differ alike, by the ratings between them, or by their values.
    values : array_like, shape (K,), optional
        Of the categories, for ``"interval"``; by default 0 to K - 1.

    Returns
    -------
    float
        At most 1; NaN where no item has two raters, or only one category is given.

    References
    ----------
    Krippendorff (2019), Content Analysis, 4th edition, chapter 12.
    """
    table = _counts(counts)
    table = table[table.sum(axis=1) > 1]
    raters = table.sum(axis=1)
    coincidences = (table / (raters - 1)[:, None]).T @ table - np.diag((table / (raters - 1)[:, None]).sum(axis=0))
    totals = coincidences.sum(axis=0)
    n = totals.sum()
    if level == "nominal":
        distance = _distances(table.shape[1], "none")
    elif level == "ordinal":
        middle = np.cumsum(totals) - totals / 2
        distance = (middle[:, None] - middle) ** 2
    elif level == "interval":
        place = np.arange(table.shape[1], dtype=float) if values is None else np.asarray(values, dtype=float)
        if place.shape != table.shape[1:] or not np.isfinite(place).all():
            raise OptionError(f"values {place.tolist()} of {table.shape[1]} categories: give each a finite number")
        distance = (place[:, None] - place) ** 2
    else:
        raise OptionError(f"unknown level {level!r}: choose nominal, ordinal or interval")
    chance = float((np.outer(totals, totals) * distance).sum())
    return float(1 - (n - 1) * (coincidences * distance).sum() / chance) if chance > 0 else math.nan


def _margins(tables: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The tables as rows of K * K, their totals, and the sums of their rows and columns."""
    values = np.asarray(tables, dtype=float)
    if values.ndim < 2 or values.shape[-1] != values.shape[-2] or values.shape[-1] < 2:
        raise DataError(f"tables of shape {values.shape}: give two categories or more, the same in rows and columns")
    rows, columns = np.einsum("...ij->...i", values), np.einsum("...ij->...j", values)
    return values.reshape(*values.shape[:-2], -1), np.einsum("...ij->...", values), rows, columns


def _corrected(
    table: FloatArray, total: FloatArray, rows: FloatArray, columns: FloatArray, distances: FloatArray
) -> FloatArray:
    """``1 - observed / expected`` disagreement; NaN where chance disagrees nowhere."""
    observed = quotient(table @ distances.ravel(), total)
    expected = quotient(((rows @ distances) * columns) @ np.ones(len(distances)), total**2)
    return 1 - quotient(observed, np.where(expected > 1e-15, expected, 0.0))


def _distances(size: int, weights: Weights) -> FloatArray:
    steps = np.abs(np.arange(size, dtype=float)[:, None] - np.arange(size))
    if weights not in ("none", "linear", "quadratic"):
        raise OptionError(f"unknown weights {weights!r}: choose none, linear or quadratic")
    return {"none": (steps > 0).astype(float), "linear": steps, "quadratic": steps**2}[weights]


def _ac1(agreed: FloatArray, common: FloatArray) -> FloatArray:
    chance = (common * (1 - common)) @ np.ones(common.shape[-1]) / (common.shape[-1] - 1)
    return np.asarray((agreed - chance) / (1 - chance))


def _counts(counts: ArrayLike) -> FloatArray:
    table = np.asarray(counts, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2 or not (np.isfinite(table) & (table >= 0)).all():
        raise DataError(
            f"counts of shape {table.shape}: give items in rows and at least two categories in columns, numbers from 0"
        )
    return table


def _observed(table: FloatArray) -> float:
    """The mean over items of the share of pairs of raters that agree; NaN where no item has a pair."""
    raters = table.sum(axis=1)
    several = raters > 1
    pairs = raters[several] * (raters[several] - 1)
    agreed = (table[several] * (table[several] - 1)).sum(axis=1) / pairs
    return float(agreed.mean()) if agreed.size else math.nan


def _frequencies(table: FloatArray) -> FloatArray:
    """The mean over items of the share of raters in each category."""
    rated = table[table.sum(axis=1) > 0]
    return np.asarray((rated / rated.sum(axis=1, keepdims=True)).mean(axis=0)) if len(rated) else rated.sum(axis=0)
