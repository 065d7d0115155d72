"""The paper's regression: one-component partial least squares in two stages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.regression.base import Columns, CombinationRegressor
from metricsmith.stats.regression.columns import ZScore

__all__ = ["TwoStagePLS"]

FloatArray = NDArray[np.float64]


class TwoStagePLS(CombinationRegressor):
    """Select columns by the weights of a one-component PLS on all of them, then refit on those.

    All columns are z-scored. With one component the weight of a column is proportional to its correlation
    with the rating, so the first stage ranks by absolute correlation, and the second is a
    correlation-weighted sum of z-scores, scaled by least squares.

    Parameters
    ----------
    n : int
        Columns to keep, at least 1; all are kept if there are fewer.
    k : int, optional
        Look only at the k columns with the largest absolute tau-b on the training rows. Stands in for
        retrieval where there are no cards to search.
    positive_columns : sequence of int or str, optional
        Columns made to rise with the rating (generated judges), by index or name. One that is selected but
        has a negative weight is dropped before the refit.
    refill : bool
        Let the next best columns take the places of dropped ones, until none has to be dropped.
    random_state : int
        Seed of the order among columns whose weights are equal.

    Attributes
    ----------
    combination_ : LinearCombination
        Without columns, predicting the mean rating, if every selected column was dropped or nothing varies.
    dropped_ : tuple of int
        The columns of `positive_columns` that were dropped.
    n_missing_ : ndarray of int, shape (p,)
        Training rows on which each candidate had no finite score.

    References
    ----------
    AutoMetrics, section 3.1 (Regress). Wold, Sjostrom and Eriksson (2001), "PLS-regression".
    """

    dropped_: tuple[int, ...]

    def __init__(
        self,
        n: int = 5,
        k: int | None = None,
        positive_columns: Columns | None = None,
        refill: bool = False,
        random_state: int = 0,
    ) -> None:
        self.n = n
        self.k = k
        self.positive_columns = positive_columns
        self.refill = refill
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> TwoStagePLS:
        """Fit on raw scores of shape (rows, p) and finite ratings of shape (rows,).

        Raises
        ------
        OptionError
            If `n` or `k` is below 1 or `positive_columns` names no candidate.
        """
        for name, value in (("n", self.n), ("k", self.k)):
            if value is not None and value < 1:
                raise OptionError(f"{name}={value} keeps no column: at least 1 is needed; the paper takes n=5 and k=30")
        scores, mean, deviations = self._training_data(X, y)
        transforms = [ZScore.fit(column) for column in scores.T]
        Z = np.column_stack([z.apply(column) for z, column in zip(transforms, scores.T, strict=True)])
        selected = self._select(self._ranked(scores, Z, deviations), _covariances(Z, deviations))
        weights = _one_component(Z[:, selected], deviations)
        self.combination_ = self._combine(selected, transforms, weights, mean)
        return self

    def _ranked(self, scores: FloatArray, Z: FloatArray, deviations: FloatArray) -> list[int]:
        """Candidates by falling absolute first-stage weight, those without weight left out."""
        shuffled = np.random.default_rng(self.random_state).permutation(Z.shape[1])
        if self.k is not None:
            tau = np.abs(batch_kendall_tau_b(scores.T[shuffled], deviations))
            shuffled = shuffled[np.argsort(-np.nan_to_num(tau), kind="stable")][: self.k]
        weights = np.abs(_one_component(Z[:, shuffled], deviations))
        order = np.argsort(-weights, kind="stable")
        return [int(place) for place in shuffled[order[weights[order] > 0]]]

    def _select(self, ranked: list[int], covariances: FloatArray) -> list[int]:
        """The first n, without positive columns that point down; the sign of a weight is the covariance's."""
        positive = set(self._places("positive_columns", self.positive_columns))
        wrong = {place for place in ranked if place in positive and covariances[place] < 0}
        pool = [place for place in ranked if place not in wrong] if self.refill else ranked
        selected = [place for place in pool[: self.n] if place not in wrong]
        self.dropped_ = tuple(sorted(wrong & set(ranked[: self.n])))
        return selected


def _covariances(Z: FloatArray, deviations: FloatArray) -> FloatArray:
    """``Z' y`` without BLAS, so that equal columns get equal values and ties are ties."""
    return np.asarray((Z * deviations[:, None]).sum(axis=0))


def _one_component(Z: FloatArray, deviations: FloatArray) -> FloatArray:
    """Coefficients ``w beta`` of one-component PLS: w = Z'y / |Z'y|, t = Zw, beta = t'y / t't."""
    w = _covariances(Z, deviations)
    length = float(np.linalg.norm(w))
    if length == 0:
        return np.zeros(Z.shape[1])
    w = w / length
    t = Z @ w
    return np.asarray(w * float(t @ deviations) / float(t @ t))
