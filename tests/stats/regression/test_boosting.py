"""Gradient boosting over metric scores, on few rows."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from metricsmith.errors import NeedsError, OptionError
from metricsmith.stats.regression import MetaMetrics


def data(rows=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3))
    return X, np.where(X[:, 0] > 0, 4.0, 2.0) + 0.1 * random.normal(size=rows)


def test_it_is_the_librarys_model_with_the_stated_settings():
    X, y = data()
    own = HistGradientBoostingRegressor(
        max_iter=100, learning_rate=0.1, min_samples_leaf=5, early_stopping=False, random_state=3
    )
    np.testing.assert_array_equal(MetaMetrics(random_state=3).fit(X, y).predict(X), own.fit(X, y).predict(X))


@pytest.mark.parametrize("rows", [12, 30])
def test_it_learns_from_rows_too_few_for_the_librarys_own_leaves(rows):
    X, y = data(rows)
    assert np.ptp(MetaMetrics().fit(X, y).predict(X)) > 1
    assert np.ptp(MetaMetrics(min_samples_leaf=20).fit(X, y).predict(X)) == 0


def test_below_two_leaves_the_prediction_is_the_mean():
    X, y = data(9)
    np.testing.assert_allclose(MetaMetrics().fit(X, y).predict(X), y.mean())


def test_missing_infinite_and_constant_columns_are_borne():
    X, y = data()
    X[::4, 0], X[1::4, 1] = np.nan, np.inf
    X = np.column_stack([X, np.ones(len(X)), np.full(len(X), np.nan)])
    predicted = MetaMetrics().fit(X, y).predict(X)
    assert np.isfinite(predicted).all()
    hidden = np.where(np.isfinite(X), X, np.nan)
    model = MetaMetrics().fit(hidden, y)
    np.testing.assert_array_equal(model.predict(hidden), predicted)
    hidden[:, 4] = 5.0  # a column that no training row had says nothing later
    np.testing.assert_array_equal(model.predict(hidden), predicted)


def test_nothing_that_varies_gives_the_mean_and_constant_ratings_themselves():
    X, y = data()
    np.testing.assert_allclose(MetaMetrics().fit(np.ones_like(X), y).predict(X), y.mean())
    np.testing.assert_array_equal(MetaMetrics().fit(X, np.full(len(X), 3.0)).predict(X), 3.0)


def test_it_is_an_estimator_that_can_be_cloned():
    assert clone(MetaMetrics(max_iter=7, backend="xgboost")).get_params() == {
        "backend": "xgboost", "max_iter": 7, "learning_rate": 0.1, "min_samples_leaf": 5, "random_state": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"backend": "xgbost"}, "did you mean 'xgboost'"),
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0"),
        ({"learning_rate": 0.0}, "learning_rate=0 must be above 0"),
    ],
)
def test_options_are_checked(options, says):
    with pytest.raises(OptionError, match=says):
        MetaMetrics(**options).fit(*data())


def test_a_missing_xgboost_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(NeedsError, match=r"pip install 'metricsmith\[xgboost\]'"):
        MetaMetrics(backend="xgboost").fit(*data())


def test_the_settings_reach_xgboost_under_its_own_names(monkeypatch):
    given = {}

    class XGBRegressor:
        def __init__(self, **settings):
            given.update(settings)

        def fit(self, X, y):
            return self

    module = ModuleType("xgboost")
    module.XGBRegressor = XGBRegressor
    monkeypatch.setitem(sys.modules, "xgboost", module)
    MetaMetrics(backend="xgboost", max_iter=9, learning_rate=0.2, min_samples_leaf=4, random_state=5).fit(*data())
    assert given == {
        "n_estimators": 9, "learning_rate": 0.2, "min_child_weight": 4, "tree_method": "hist", "n_jobs": 1,
        "random_state": 5,
    }  # fmt: skip


@pytest.mark.extras
def test_xgboost_learns_the_same_step():
    pytest.importorskip("xgboost", reason="needs the extra xgboost")
    X, y = data(30)
    X[::4, 1] = np.nan
    assert np.ptp(MetaMetrics(backend="xgboost").fit(X, y).predict(X)) > 1
