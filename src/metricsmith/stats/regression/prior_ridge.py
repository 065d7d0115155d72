"""Our regression: a heavily shrunk ridge on normal scores that keeps every column and tunes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import OptionError
from metricsmith.stats.regression.base import Columns, CombinationRegressor
from metricsmith.stats.regression.columns import NormalScore

__all__ = ["PriorRidge"]

FloatArray = NDArray[np.float64]

_CANCELS = 1e-12  # sd below which the mean of the declared columns counts as constant


class PriorRidge(CombinationRegressor):
    """Ridge regression whose penalty is a prior guess, optionally shrunk towards a plain mean.

    Columns are replaced by their normal scores (outliers and units do not matter) and the ratings are
    centred and divided by their training sd. With A the columns and y those ratings, the weights are
    ``w0 + argmin |y - A w0 - A v|^2 + p (1 - prior_r2) / prior_r2 |v|^2``. The p columns that vary have
    variance 1, so the penalty says: before any label is seen, the columns are expected to explain the
    share `prior_r2` of the ratings' variance. `w0` is 0, or gives each of the columns declared to measure
    the target the same positive weight. Predictions are mapped back to the rating scale; a fit to
    ``a y + b`` with a > 0 predicts ``a`` times the same plus ``b``.

    Where every column that varies is declared there is nothing to learn weights against: their plain mean
    is used, fitted in location and scale only.

    Parameters
    ----------
    prior_r2 : float
        In (0, 1); smaller shrinks more.
    prior_columns : sequence of int or str, optional
        Columns declared to measure the target, higher is better, by index or name.
    prior_strength : float
        Not negative: how many standard deviations the rating is expected to rise per standard deviation of
        the declared columns' mean.

    Attributes
    ----------
    combination_ : LinearCombination
        All columns that vary.
    plain_mean_ : bool
        Whether the prediction is the plain mean of the declared columns.
    slope_from_prior_ : bool
        Whether, in that case, the least-squares slope was not positive, so that `prior_strength` stands in
        and the declared direction is kept. The ratings then do not support the judges.
    penalty_ : float
        ``p (1 - prior_r2) / prior_r2``.
    columns_ : ndarray of float, shape (rows, k)
        The training scores of the columns that vary, transformed.
    n_missing_ : ndarray of int, shape (p,)
        Training rows on which each candidate had no finite score.

    Notes
    -----
    Constant ratings give the constant prediction; constant columns are left out and do not count in p.
    """

    plain_mean_: bool
    slope_from_prior_: bool
    penalty_: float
    columns_: FloatArray

    def __init__(
        self, prior_r2: float = 1 / 6, prior_columns: Columns | None = None, prior_strength: float = 0.25
    ) -> None:
        self.prior_r2 = prior_r2
        self.prior_columns = prior_columns
        self.prior_strength = prior_strength

    def fit(self, X: ArrayLike, y: ArrayLike) -> PriorRidge:
        """Fit on raw scores of shape (rows, p) and finite ratings of shape (rows,).

        Raises
        ------
        OptionError
            If `prior_r2` or `prior_strength` is out of range or `prior_columns` names no candidate.
        """
        self._check_options()
        scores, mean, deviations = self._training_data(X, y)
        sd = float(deviations.std())
        labels = deviations / (sd or 1.0)
        transforms, transformed = NormalScore.fit_columns(scores)
        varying = [place for place, transform in enumerate(transforms) if not transform.constant]
        self.columns_ = A = np.ascontiguousarray(transformed[:, varying])
        self.penalty_ = len(varying) * (1 - self.prior_r2) / self.prior_r2
        weights = self._weights(A, labels, self._declared(varying))
        self.combination_ = self._combine(varying, transforms, weights * sd, mean)
        return self

    def _check_options(self) -> None:
        if not 0 < self.prior_r2 < 1:
            raise OptionError(
                f"prior_r2={self.prior_r2:g} is not a share of variance: it must lie between 0 and 1; leave it at 1/6"
            )
        if not (math.isfinite(self.prior_strength) and self.prior_strength >= 0):
            raise OptionError(
                f"prior_strength={self.prior_strength:g} must be finite and not negative; leave it at .25, "
                "and columns that fall with the rating out of prior_columns"
            )

    def _declared(self, varying: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the varying columns are declared to measure the target."""
        return np.isin(varying, self._places("prior_columns", self.prior_columns))

    def _weights(self, A: FloatArray, labels: FloatArray, declared: NDArray[np.bool_]) -> FloatArray:
        """Weights in standard deviations of the rating per standard deviation of the column."""
        direction = _unit_mean(A, declared)
        self.plain_mean_ = bool(declared.size and declared.all())
        self.slope_from_prior_ = False
        if self.plain_mean_:
            slope = float((A @ direction) @ labels) / len(labels)
            self.slope_from_prior_ = slope <= 0 and bool(labels.any())
            return direction * (self.prior_strength if self.slope_from_prior_ else slope)
        prior = direction * self.prior_strength if labels.any() else direction * 0.0
        return prior + _ridge(A, labels - A @ prior, self.penalty_)


def _unit_mean(A: FloatArray, declared: NDArray[np.bool_]) -> FloatArray:
    """Equal weights on the declared columns that make their mean one of sd 1; 0 if there is no such mean."""
    direction = np.zeros(A.shape[1])
    if declared.any():
        sd = float(A[:, declared].mean(axis=1).std())
        if sd > _CANCELS:
            direction[declared] = 1 / (sd * np.count_nonzero(declared))
    return direction


def _ridge(A: FloatArray, labels: FloatArray, penalty: float) -> FloatArray:
    """``argmin |labels - A v|^2 + penalty |v|^2``, by whichever of the two forms is smaller."""
    n, p = A.shape
    if p <= n:
        return np.asarray(np.linalg.solve(A.T @ A + penalty * np.eye(p), A.T @ labels))
    return np.asarray(A.T @ np.linalg.solve(A @ A.T + penalty * np.eye(n), labels))
