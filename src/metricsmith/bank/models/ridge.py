"""Ridge regression on frozen vectors: the mean over a text's tokens, and a penalty chosen on groups left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from metricsmith.bank.base import FloatArray
from metricsmith.bank.models.engine.encoder import embedded
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import RatedTexts, TrainingOption, Weights
from metricsmith.errors import StateError
from metricsmith.stats.correlation import IntArray

__all__ = ["NEEDS", "PENALTIES", "SETTINGS", "SUMMARY", "left_out_errors", "mean_vectors", "predict", "train"]

SETTINGS: Mapping[str, TrainingOption] = {}
NEEDS: tuple[str, ...] = ()
SUMMARY = (
    "a ridge regression on the mean of the last layer's vectors over a text's tokens, each dimension at variance 1; "
    "of 15 penalties the one with the smallest squared error on groups left out"
)
PENALTIES = np.logspace(-3, 4, 15)
"""Penalties that are tried, as multiples of the count of dimensions that vary."""
ROUNDING = 1e-6  # of a dimension's largest number: what varies by less is rounding of the network's float32


def train(
    rows: RatedTexts, model: ModelSpec, _settings: Mapping[str, float], _seed: int, validation: RatedTexts | None
) -> Weights:
    """Learn a coefficient for each dimension, and an intercept; nothing is drawn, so that no seed plays a part.

    The penalty has the smallest squared error on `validation` or, without one, on the training rows, each predicted by
    the regression without its group. Equal errors go to the larger penalty.
    """
    vectors = mean_vectors(model, rows.texts)
    centre, spread = vectors.mean(axis=0), vectors.std(axis=0)
    varies = spread > ROUNDING * np.abs(vectors).max(axis=0, initial=1e-300)
    scale = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
    X, mean = (vectors - centre) * scale, rows.numbers.mean()
    penalties = PENALTIES[::-1] * max(1, int(varies.sum()))
    values, basis = np.linalg.eigh(X @ X.T)
    values = np.maximum(values, 0.0)
    rotated = basis.T @ (rows.numbers - mean)
    if validation is None:
        codes = np.unique(np.array(rows.groups), return_inverse=True)[1]
        errors = [left_out_errors(values, basis, rows.numbers, codes, one) for one in penalties.tolist()]
    else:
        there = (mean_vectors(model, validation.texts) - centre) * scale @ X.T @ basis
        errors = [
            float(np.square(mean + there @ (rotated / (values + one)) - validation.numbers).sum())
            for one in penalties.tolist()
        ]
    penalty = penalties[int(np.argmin(errors))]
    coefficients = X.T @ (basis @ (rotated / (values + penalty))) * scale
    return {"coefficients": coefficients, "intercept": np.array([mean - centre @ coefficients])}


def left_out_errors(
    values: FloatArray, basis: FloatArray, numbers: FloatArray, codes: IntArray, penalty: float
) -> float:
    """The sum of squared errors of n rows, each group predicted by the ridge regression on all other rows.

    In closed form, without a refit: for a group g with the block ``H_gg`` of the matrix that maps numbers to fitted
    ones, the errors are ``(I - H_gg)^-1`` times the residuals of the fit on all rows. The intercept is not penalised;
    centres and scales of the dimensions stay those of all rows.

    Parameters
    ----------
    values, basis : array, shape (n,), (n, n)
        Eigenvalues and eigenvectors of ``X X'``, X being centred.
    numbers : array, shape (n,)
    codes : array of int, shape (n,)
        The group of each row.
    penalty : float
        Above 0.
    """
    n = len(numbers)
    fitted = (basis * (values / (values + penalty))) @ basis.T + 1 / n
    residuals = numbers - fitted @ numbers
    total = 0.0
    for group in range(int(codes.max()) + 1):
        own = np.flatnonzero(codes == group)
        total += float(np.square(np.linalg.solve(np.eye(len(own)) - fitted[np.ix_(own, own)], residuals[own])).sum())
    return total


def predict(texts: Sequence[str], model: ModelSpec, weights: Weights, _settings: Mapping[str, float]) -> FloatArray:
    """The numbers of n texts, shape (n,)."""
    vectors = mean_vectors(model, texts)
    shapes, fitting = {name: array.shape for name, array in weights.items()}, vectors.shape[1:]
    if shapes != {"coefficients": fitting, "intercept": (1,)}:
        raise StateError(
            f"learned weights of the shapes {shapes!s:.200} do not fit a ridge on the {fitting[0]} numbers of "
            f"{model.name}: the file of weights belongs to another method or encoder"
        )
    return np.asarray((vectors * weights["coefficients"]).sum(axis=1) + weights["intercept"][0])


def mean_vectors(model: ModelSpec, texts: Sequence[str]) -> FloatArray:
    """The mean vector of the tokens of n texts, the marks at both ends included, shape (n, d)."""
    return np.array([one.vectors.mean(axis=0, dtype=np.float64) for one in embedded(model, texts)])
