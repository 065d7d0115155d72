"""The regressions that end in a `LinearCombination`: two-stage PLS (the paper's) and the prior ridge (ours)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from metricsmith.errors import OptionError, nearest
from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b
from metricsmith.stats.regression.combination import ColumnTransform, LinearCombination, NormalScore, ZScore

__all__ = ["Columns", "CombinationRegressor", "PriorRidge", "ScoreRegressor", "TwoStagePLS"]

Columns = Sequence[int | str]
_CANCELS = 1e-12  # sd below which the mean of the declared columns counts as constant


class ScoreRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: raw scores in, of which some may be missing."""

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class CombinationRegressor(ScoreRegressor):
    """Base of the regressions: a fit ends in a `LinearCombination`, and everything else follows from it.

    Attributes
    ----------
    combination_ : LinearCombination
        The fitted form, with the used columns only.
    n_missing_ : ndarray of int, shape (p,)
        Training rows on which each candidate had no finite score; those stand at the column's centre.
    """

    combination_: LinearCombination
    n_missing_: NDArray[np.int64]

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted ratings, shape (n,), unclipped.

        Parameters
        ----------
        X : array_like or DataFrame, shape (n, p)
            Raw scores of all candidates of the fit; NaN and infinite ones are missing.
        """
        scores = self._used(X)
        return self.combination_.predict(scores)

    def contributions(self, X: ArrayLike) -> FloatArray:
        """Rating points that each used column adds, shape (n, k), for raw scores of shape (n, p)."""
        scores = self._used(X)
        return self.combination_.contributions(scores)

    def _used(self, X: ArrayLike) -> FloatArray:
        return np.asarray(self._checked(X)[:, list(self.combination_.indices)])

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, float, FloatArray]:
        """Returns checked scores, NaN where missing, the mean rating, and the ratings' deviations from it."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, y_numeric=True)
        scores = np.where(np.isfinite(X), X, np.nan)
        self.n_missing_ = np.isnan(scores).sum(axis=0)
        ratings = np.asarray(y, dtype=float)
        if np.ptp(ratings) == 0:  # the mean of equal numbers may be off by a rounding error
            return scores, float(ratings[0]), np.zeros(len(ratings))
        mean = float(ratings.mean())
        return scores, mean, ratings - mean

    def _candidate_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{place}" for place in range(self.n_features_in_)] if names is None else list(names)

    def _places(self, parameter: str, columns: Columns | None) -> list[int]:
        """Returns the places of columns given by index or name, ascending, each once."""
        names = self._candidate_names()
        places = set()
        for column in columns if columns is not None else ():
            is_index = isinstance(column, int | np.integer) and not isinstance(column, bool)
            if isinstance(column, str) and column in names:
                places.add(names.index(column))
            elif is_index and 0 <= int(column) < len(names):
                places.add(int(column))
            else:
                raise OptionError(
                    f"{parameter} has {column!r}, which is not a candidate{nearest(str(column), names)}: "
                    f"names and indices from 0 to {len(names) - 1} are allowed; choose among {names!r:.200}"
                )
        return sorted(places)

    def _combine(
        self,
        places: Sequence[int],
        transforms: Sequence[ColumnTransform],
        weights: ArrayLike,
        intercept: float,
    ) -> LinearCombination:
        """Returns the fitted form of the candidates at `places`; `transforms` are those of all candidates."""
        names = self._candidate_names()
        return LinearCombination(
            tuple(names[place] for place in places),
            tuple(int(place) for place in places),
            tuple(transforms[place] for place in places),
            tuple(np.asarray(weights, dtype=float).tolist()),
            float(intercept),
        )


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
        self.combination_ = self._combine(selected, transforms, _one_component(Z[:, selected], deviations), mean)
        return self

    def _ranked(self, scores: FloatArray, Z: FloatArray, deviations: FloatArray) -> list[int]:
        """Returns candidates by falling absolute first-stage weight, those without weight left out."""
        shuffled = np.random.default_rng(self.random_state).permutation(Z.shape[1])
        if self.k is not None:
            tau = np.abs(batch_kendall_tau_b(scores.T[shuffled], deviations))
            shuffled = shuffled[np.argsort(-np.nan_to_num(tau), kind="stable")][: self.k]
        weights = np.abs(_one_component(Z[:, shuffled], deviations))
        order = np.argsort(-weights, kind="stable")
        return [int(place) for place in shuffled[order[weights[order] > 0]]]

    def _select(self, ranked: list[int], covariances: FloatArray) -> list[int]:
        """Returns the first n, without positive columns that point down; the sign of a weight is the covariance's."""
        positive = set(self._places("positive_columns", self.positive_columns))
        wrong = {place for place in ranked if place in positive and covariances[place] < 0}
        pool = [place for place in ranked if place not in wrong] if self.refill else ranked
        selected = [place for place in pool[: self.n] if place not in wrong]
        self.dropped_ = tuple(sorted(wrong & set(ranked[: self.n])))
        return selected


def _covariances(Z: FloatArray, deviations: FloatArray) -> FloatArray:
    """Returns ``Z' y`` without BLAS, so that equal columns get equal values and ties are ties."""
    return np.asarray((Z * deviations[:, None]).sum(axis=0))


def _one_component(Z: FloatArray, deviations: FloatArray) -> FloatArray:
    """Returns the coefficients ``w beta`` of one-component PLS: w = Z'y / |Z'y|, t = Zw, beta = t'y / t't."""
    w = _covariances(Z, deviations)
    length = float(np.linalg.norm(w))
    if length == 0:
        return np.zeros(Z.shape[1])
    w = w / length
    t = Z @ w
    return np.asarray(w * float(t @ deviations) / float(t @ t))


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
        True where the prediction is the plain mean of the declared columns.
    slope_from_prior_ : bool
        True where, in that case, the least-squares slope was not positive, so that `prior_strength` stands in
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
        declared = np.isin(varying, self._places("prior_columns", self.prior_columns))
        weights = self._weights(A, labels, declared)
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

    def _weights(self, A: FloatArray, labels: FloatArray, declared: NDArray[np.bool_]) -> FloatArray:
        """Returns weights in standard deviations of the rating per standard deviation of the column."""
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
    """Returns equal weights on the declared columns that make their mean one of sd 1; 0 if there is no such mean."""
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
