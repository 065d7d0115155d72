"""What the estimators share: checked input, column names, prediction through the common fitted form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from metricsmith.errors import OptionError, nearest
from metricsmith.stats.regression.columns import ColumnTransform
from metricsmith.stats.regression.combination import LinearCombination

__all__ = ["CombinationRegressor", "Columns"]

FloatArray = NDArray[np.float64]
Columns = Sequence[int | str]


class CombinationRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
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
        check_is_fitted(self)
        checked = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return np.asarray(checked[:, list(self.combination_.indices)])

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, float, FloatArray]:
        """Checked scores with NaN where missing, the mean rating, and the ratings' deviations from it."""
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
        """The places of columns given by index or name, ascending, each once."""
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
        """The fitted form of the candidates at `places`; `transforms` are those of all candidates."""
        names = self._candidate_names()
        return LinearCombination(
            tuple(names[place] for place in places),
            tuple(int(place) for place in places),
            tuple(transforms[place] for place in places),
            tuple(np.asarray(weights, dtype=float).tolist()),
            float(intercept),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
