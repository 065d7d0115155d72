"""Gradient boosting over a set of metrics: the baseline of the paper that weighs nothing by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from metricsmith.errors import NeedsError, OptionError, nearest
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.regression.estimators import ScoreRegressor
from metricsmith.threads import one_thread

__all__ = ["BACKENDS", "MetaMetrics"]

BACKENDS = ("sklearn", "xgboost")


class MetaMetrics(ScoreRegressor):
    """Gradient-boosted trees from raw metric scores to ratings (the "MetaMetrics" baseline of AutoMetrics).

    Trees need no scaling; a missing score is sent to whichever side of a split fits the training ratings better.
    The paper names neither library settings nor a seed; these here are stated below. Nor does it say which metrics the
    baseline saw: `metricsmith.compare` gives it every bank metric that this machine can compute, those with weights
    where they are asked for (``AutoMetrics(bank_models="all")``), so that the list is ours. The estimator is fitted and
    applied, never saved: an induced metric is what is made to be kept.

    Parameters
    ----------
    backend : str
        ``sklearn`` (HistGradientBoostingRegressor) or ``xgboost`` (the paper's; extra ``xgboost``).
    max_iter : int
        Number of trees, at least 1. There is no early stopping: a few dozen rows spare none to stop by.
    learning_rate : float
        Share of each tree that is added, above 0.
    min_samples_leaf : int
        Fewest training rows in a leaf, at least 1. scikit-learn's 20 makes every prediction the mean below 40 rows;
        5 still averages the noise of several ratings. On SimpEval with 252 training rows 2, 5, 10 and 20 gave tau-b
        .23, .25, .26 and .24 (mean over ten splits); with 36 rows 20 gave nothing at all.
    random_state : int
        Passed on to the library. With these settings nothing is drawn at random.

    Attributes
    ----------
    model_ : estimator
        The library's own.
    known_ : ndarray of bool, shape (p,)
        Which columns had a finite training score; the others are left out.
    n_features_in_ : int

    Notes
    -----
    With fewer than ``2 * min_samples_leaf`` rows, or where no column varies, the prediction is the mean rating.
    Infinite scores count as missing. Fits take one thread: on so few rows several mostly wait for each other.

    References
    ----------
    AutoMetrics, section 4.2. Winata et al. (2025), "MetaMetrics".
    """

    def __init__(
        self,
        backend: str = "sklearn",
        max_iter: int = 100,
        learning_rate: float = 0.1,
        min_samples_leaf: int = 5,
        random_state: int = 0,
    ) -> None:
        self.backend = backend
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> MetaMetrics:
        """Fit on raw scores of shape (rows, p), NaN where missing, and finite ratings of shape (rows,).

        Raises
        ------
        OptionError
            If an option is out of range.
        NeedsError
            If the backend is not installed.
        """
        self._check_options()
        scores, ratings = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, y_numeric=True)
        self.known_ = np.isfinite(scores).any(axis=0)
        with one_thread():
            self.model_ = self._library_model().fit(self._prepared(scores), np.asarray(ratings, dtype=float))
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted ratings, shape (n,), for raw scores of shape (n, p)."""
        checked = self._prepared(self._checked(X))
        with one_thread():
            return np.asarray(self.model_.predict(checked), dtype=float)

    def _prepared(self, X: FloatArray) -> FloatArray:
        """NaN where a score is missing; 0 in columns unknown in training, which scikit-learn cannot bin."""
        return np.where(self.known_, np.where(np.isfinite(X), X, np.nan), 0.0)

    def _check_options(self) -> None:
        if self.backend not in BACKENDS:
            raise OptionError(
                f"backend={self.backend!r}{nearest(str(self.backend), BACKENDS)} must be one of {', '.join(BACKENDS)}"
            )
        for name in ("max_iter", "min_samples_leaf"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name}={getattr(self, name)} must be at least 1")
        if not self.learning_rate > 0:
            raise OptionError(f"learning_rate={self.learning_rate:g} must be above 0; 0.1 is usual")

    def _library_model(self) -> Any:
        if self.backend == "sklearn":
            from sklearn.ensemble import HistGradientBoostingRegressor

            return HistGradientBoostingRegressor(
                max_iter=self.max_iter, learning_rate=self.learning_rate, min_samples_leaf=self.min_samples_leaf,
                early_stopping=False, random_state=self.random_state,
            )  # fmt: skip
        try:
            from xgboost import XGBRegressor
        except ImportError as problem:
            raise NeedsError(
                "backend='xgboost' needs the package xgboost: pip install 'metricsmith[xgboost]', or take "
                "backend='sklearn'"
            ) from problem
        # For squared error every row has Hessian 1, so that min_child_weight counts rows.
        return XGBRegressor(
            n_estimators=self.max_iter, learning_rate=self.learning_rate, min_child_weight=self.min_samples_leaf,
            tree_method="hist", n_jobs=1, random_state=self.random_state,
        )  # fmt: skip
