"""A small model that reproduces a full one on unlabelled rows, so that fewer columns must be paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.regression.combination import LinearCombination

__all__ = ["Projection", "project"]


_RIDGE = 0.01  # penalty per row, on columns of variance 1
_ROUNDING = 1e-9  # relative; gains and weights no further apart are equal
_PATH_END = 0.999  # the curve is not followed beyond this fidelity


class FittedRegression(Protocol):
    """Any fitted regression of this package."""

    combination_: LinearCombination


@dataclass(frozen=True, slots=True)
class Projection:
    """A small model beside the full one.

    Parameters
    ----------
    combination : LinearCombination
        The small model; its `indices` are those of the full model's candidates.
    fidelity : float
        Pearson correlation of the two models' predictions on the rows given; NaN if the full model's are
        constant there.
    curve : tuple of float
        ``curve[i]`` is the fidelity with i + 1 columns, as far as it was followed (.999, or beyond the
        chosen size).
    """

    combination: LinearCombination
    fidelity: float
    curve: tuple[float, ...]


def project(
    model: FittedRegression,
    X: ArrayLike,
    n: int | None = None,
    fidelity: float = 0.97,
    *,
    transformed: FloatArray | None = None,
) -> Projection:
    """Reproduce a fitted regression with few of its columns.

    Labels enter only through the full model. Columns are taken greedily, each time the one that lowers
    the ridge objective of "the small model's predictions equal the full model's" the most: largest
    ``(residual covariance)^2 / (residual variance + lam)`` with ``lam = .01 x rows``. The weights are the
    ridge regression, same `lam`, of the full predictions on the chosen columns.

    Parameters
    ----------
    model : fitted TwoStagePLS or PriorRidge
        Anything with a `combination_`.
    X : array_like, shape (rows, p)
        Raw scores of all candidates of the fit: training rows and any unlabelled ones, but no test rows.
        At least two.
    n : int, optional
        Take exactly n columns (all if there are fewer); `fidelity` then does not count.
    fidelity : float
        In (0, 1]: take the smallest number of columns that reaches it.
    transformed : float array, shape (rows, k), optional
        The model's k columns of `X`, transformed, where they are at hand (`PriorRidge.columns_` on training rows).

    Returns
    -------
    Projection
        Without columns and with NaN fidelity if the full model is constant on `X`.

    Raises
    ------
    OptionError
        If `n` is below 1 or `fidelity` is not in (0, 1].
    DataError
        If there are fewer than two rows or `X` has too few columns.
    """
    if n is not None and n < 1:
        raise OptionError(f"n={n} keeps no column: at least 1 is needed; leave n out to go by fidelity")
    if not 0 < fidelity <= 1:
        raise OptionError(
            f"fidelity={fidelity:g} is not a correlation to reach: it must lie in (0, 1]; leave it at .97"
        )
    full = model.combination_
    F, centres = _centred(full, X, transformed)
    target = F @ np.array(full.weights)
    if not len(full) or not np.ptp(target):
        centre = full.intercept + math.fsum(centres * full.weights)
        return Projection(LinearCombination((), (), (), (), centre), math.nan, ())
    path: list[int] = []
    curve: list[float] = []
    for column in _forward(F, target, full.indices):
        path.append(column)
        weights = _small_weights(F, target, path)
        curve.append(float(np.corrcoef(F[:, path] @ weights, target)[0, 1]))
        if _done(curve, n, fidelity):
            break
    reached = [size for size, value in enumerate(curve, start=1) if value >= fidelity]
    size = min(n, len(curve)) if n is not None else (reached[0] if reached else len(curve))
    return Projection(_small(full, F, centres, target, path[:size]), curve[size - 1], tuple(curve))


def _done(curve: list[float], n: int | None, fidelity: float) -> bool:
    followed = max(_PATH_END, fidelity if n is None else 0.0)
    return bool(curve) and len(curve) >= (n or 1) and curve[-1] >= followed


def _centred(full: LinearCombination, X: ArrayLike, transformed: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The full model's transformed columns minus their means, and those means."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or len(X) < 2 or X.shape[1] <= max(full.indices, default=-1):
        raise DataError(
            f"scores of shape {X.shape} do not fit: at least two rows and all candidates of the fit as "
            "columns are needed; pass the matrix that the model was fitted on, with unlabelled rows added"
        )
    if transformed is None:
        transformed = full.transform(X[:, list(full.indices)])
    centres = transformed.mean(axis=0)
    return transformed - centres, centres


def _forward(F: FloatArray, target: FloatArray, indices: Sequence[int]) -> Iterator[int]:
    """Yields all columns in greedy order; of equal ones the candidate that comes first.

    Sweeping a chosen column out of ``F'F + lam I`` leaves the residual variances plus `lam` on the diagonal, and out
    of ``F'target`` the residual covariances. Only the rows of chosen columns are ever made (a pivoted Cholesky
    factor), at O(rows + columns taken) for each candidate and step.
    """
    lam = _RIDGE * len(F)
    variance = np.einsum("ij,ij->j", F, F) + lam
    covariance = F.T @ target
    left = np.ptp(F, axis=0) > 0
    factor: list[FloatArray] = []
    while left.any():
        gain = np.where(left, covariance**2 / np.where(left, variance, 1.0), -1.0)
        twins = np.flatnonzero(gain >= gain.max() * (1 - _ROUNDING)).tolist()
        best = min(twins, key=lambda place: indices[place])  # the same on every machine
        yield best
        left[best] = False
        row = F.T @ F[:, best]
        row[best] += lam
        for earlier in factor:
            row -= earlier[best] * earlier
        row /= math.sqrt(row[best])
        factor.append(row)
        variance -= row**2
        covariance = covariance - row * covariance[best] / row[best]


def _small_weights(F: FloatArray, target: FloatArray, chosen: list[int]) -> FloatArray:
    """Ridge regression of the full predictions on the chosen columns."""
    G = F[:, chosen]
    return np.asarray(np.linalg.solve(G.T @ G + _RIDGE * len(F) * np.eye(len(chosen)), G.T @ target))


def _small(
    full: LinearCombination, F: FloatArray, centres: FloatArray, target: FloatArray, chosen: list[int]
) -> LinearCombination:
    """The small model by falling absolute weight, with the full model's mean prediction on the rows."""
    weights = _small_weights(F, target, chosen)
    intercept = full.intercept + math.fsum(centres * full.weights) - math.fsum(centres[chosen] * weights)
    order: list[int] = []
    left = list(range(len(chosen)))
    while left:
        largest = max(abs(weights[place]) for place in left) * (1 - _ROUNDING)
        order.append(
            min(
                (place for place in left if abs(weights[place]) >= largest),
                key=lambda place: full.indices[chosen[place]],
            )
        )
        left.remove(order[-1])
    places = [chosen[place] for place in order]
    return LinearCombination(
        tuple(full.names[place] for place in places),
        tuple(full.indices[place] for place in places),
        tuple(full.columns[place] for place in places),
        tuple(float(weights[place]) for place in order),
        intercept,
    )
