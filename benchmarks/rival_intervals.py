"""The intervals that benchmarks/coverage.py holds the library's against: simpler ones, and those by resampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Ends = tuple[FloatArray, FloatArray]

DRAWS = 500  # resamples of a bootstrap
Z = float(ndtri(0.975))
TAILS = (0.025, 0.975)


def wilson(share: FloatArray, trials: FloatArray) -> Ends:
    """Wilson's ends of shares, shape (r,), on so many trials."""
    centre = (share + Z**2 / (2 * trials)) / (1 + Z**2 / trials)
    half = Z / (1 + Z**2 / trials) * np.sqrt(share * (1 - share) / trials + (Z / (2 * trials)) ** 2)
    return centre - half - 1e-12, centre + half + 1e-12


def students(sums: FloatArray, sizes: IntArray) -> Ends:
    """Student's t ends of means over groups, from their sums and sizes, shape (r, g)."""
    g, n = sums.shape[1], sizes.sum(axis=1)
    mean = sums.sum(axis=1) / n
    half = stdtrit(g - 1.0, TAILS[1]) * error_of_sums(sums - mean[:, None] * sizes, g) / n
    return mean - half, mean + half


def error_of_sums(residuals: FloatArray, g: int) -> FloatArray:
    """The standard error of a total, from what groups depart by, shape (r, g)."""
    return np.asarray(np.sqrt(g / (g - 1) * (residuals**2).sum(axis=1)))


def bootstraps(sums: FloatArray, sizes: IntArray, random: np.random.Generator) -> dict[str, Ends]:
    """Percentile, BCa and Studentised group bootstrap of means, from sums and sizes by group of shape (r, g)."""
    parts = [_bootstraps(sums[k : k + 100], sizes[k : k + 100], random) for k in range(0, len(sums), 100)]
    return {
        name: (np.concatenate([part[name][0] for part in parts]), np.concatenate([part[name][1] for part in parts]))
        for name in parts[0]
    }


def _bootstraps(sums: FloatArray, sizes: IntArray, random: np.random.Generator) -> dict[str, Ends]:
    r, g = sums.shape
    n = sizes.sum(axis=1)
    mean = sums.sum(axis=1) / n
    error = error_of_sums(sums - mean[:, None] * sizes, g) / n
    times = drawn(g, random)
    rows = times @ sizes.T
    draws = times @ sums.T / rows
    squares = times @ (sums**2).T - 2 * draws * (times @ (sums * sizes).T) + draws**2 * (times @ (sizes**2).T)
    errors = np.sqrt(np.maximum(squares, 0) * g / (g - 1)) / rows
    away = np.where(np.abs(draws - mean) < 1e-12, 0.0, draws - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = np.where(away == 0, 0.0, away / np.where(errors < 1e-12, 0.0, errors))
    low, high = np.quantile(studentised, TAILS, axis=0, method="nearest")
    jackknife = (sums.sum(axis=1)[:, None] - sums) / (n[:, None] - sizes)
    levels = [bca_levels(away[:, k], jackknife[k]) for k in range(r)]
    bca = np.array([np.quantile(draws[:, k], level) for k, level in enumerate(levels)])
    lower, upper = np.quantile(draws, TAILS, axis=0)
    with np.errstate(invalid="ignore"):
        student = np.nan_to_num(mean - high * error, nan=0), np.nan_to_num(mean - low * error, nan=0)
    return {
        "Studentised bootstrap": student,
        "BCa bootstrap": (bca[:, 0], bca[:, 1]),
        "percentile bootstrap": (lower, upper),
    }


def drawn(g: int, random: np.random.Generator) -> FloatArray:
    """The number of times each group is drawn, shape (DRAWS, g)."""
    return random.multinomial(g, np.full(g, 1 / g), size=DRAWS).astype(float)


def sums_by_group(signs: NDArray[np.int8], codes: IntArray) -> FloatArray:
    """Sums of a table of pairs of rows over pairs of groups, shape (g, g); rows are sorted by group."""
    starts = np.searchsorted(codes, np.arange(int(codes[-1]) + 1))
    return np.add.reduceat(np.add.reduceat(signs, starts, 0, dtype=float), starts, 1, dtype=float)


def bca_levels(away: FloatArray, jackknife: FloatArray) -> FloatArray:
    """The quantiles that BCa takes, from draws less the estimate; Efron (1987)."""
    below = np.mean(away < 0) + np.mean(away == 0) / 2
    bias = ndtri(np.clip(below, 1 / (2 * away.size), 1 - 1 / (2 * away.size)))
    apart = jackknife.mean() - jackknife
    spread = (apart**2).sum() ** 1.5
    skewness = (apart**3).sum() / (6 * spread) if spread > 0 else 0.0
    shifted = bias + ndtri(TAILS)
    return np.asarray(ndtr(bias + shifted / (1 - skewness * shifted)))
