"""The prior ridge: its definition, the shrinkage target, the plain mean, outliers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.regression import NormalScore, PriorRidge


def example(rows=40, p=60, seed=0):
    random = np.random.default_rng(seed)
    quality = random.normal(size=rows)
    X = quality[:, None] * random.uniform(0, 0.6, p) + random.normal(size=(rows, p))
    return X, 3 + 0.5 * quality + 0.3 * random.normal(size=rows)


def normal_scores(X, new=None):
    new = X if new is None else new
    return np.column_stack([NormalScore.fit(a).apply(b) for a, b in zip(X.T, new.T, strict=True)])


@pytest.mark.parametrize("p", [10, 60])
@pytest.mark.parametrize("prior_r2", [1 / 6, 0.5])
def test_equals_scikit_learn_ridge_on_normal_scores(p, prior_r2):
    from sklearn.linear_model import Ridge

    X, y = example(p=p)
    new = example(p=p, seed=1)[0]
    theirs = Ridge(alpha=p * (1 - prior_r2) / prior_r2).fit(normal_scores(X), y)
    model = PriorRidge(prior_r2=prior_r2).fit(X, y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(normal_scores(X, new)), atol=1e-10)
    assert model.penalty_ == pytest.approx(p * (1 - prior_r2) / prior_r2)
    assert not model.plain_mean_


def test_declared_columns_are_the_point_to_shrink_towards():
    """w = w0 + ridge fitted to y - A w0, in units of the rating's sd."""
    from sklearn.linear_model import Ridge

    X, y = example()
    own, c = [3, 4, 10], 0.25
    A, labels = normal_scores(X), (y - y.mean()) / y.std()
    w0 = np.zeros(60)
    w0[own] = c / A[:, own].mean(axis=1).std() / 3
    weights = w0 + Ridge(alpha=5 * 60, fit_intercept=False).fit(A, labels - A @ w0).coef_
    model = PriorRidge(prior_columns=own).fit(X, y)
    np.testing.assert_allclose(model.combination_.weights, weights * y.std(), atol=1e-12)
    assert model.combination_.intercept == pytest.approx(y.mean())


def test_the_prior_does_not_vanish_on_a_wide_rating_scale():
    """Fitted to raw 0-100 ratings a prior in rating points would be lost."""
    X, y = example()
    narrow = PriorRidge(prior_columns=[0, 1]).fit(X, y).predict(X)
    wide = PriorRidge(prior_columns=[0, 1]).fit(X, 100 * y).predict(X)
    np.testing.assert_allclose(wide, 100 * narrow, rtol=1e-9)


def test_a_useless_label_leaves_the_plain_mean_in_front():
    """With an almost total penalty only the prior is left."""
    X, y = example()
    own = list(range(0, 60, 7))
    model = PriorRidge(prior_r2=1e-9, prior_columns=own).fit(X, y)
    assert kendall_tau_b(model.predict(X), normal_scores(X)[:, own].mean(axis=1)) == pytest.approx(1, abs=0.01)
    spread = model.predict(X).std() / y.std()
    assert spread == pytest.approx(0.25, abs=1e-3)


def test_only_declared_columns_give_their_plain_mean_by_least_squares():
    X, y = example(p=5)
    model = PriorRidge(prior_columns=range(5)).fit(X, y)
    mean = normal_scores(X).mean(axis=1)
    slope, intercept = np.polyfit(mean, y, 1)
    assert model.plain_mean_
    assert not model.slope_from_prior_
    assert slope > 0
    np.testing.assert_allclose(model.predict(X), intercept + slope * mean, atol=1e-10)
    assert len(set(np.round(model.combination_.weights, 12))) == 1


def test_a_plain_mean_keeps_its_direction_when_the_labels_point_down():
    X, y = example(p=5)
    mean = normal_scores(X).mean(axis=1)
    model = PriorRidge(prior_columns=range(5)).fit(X, -y)
    assert model.plain_mean_
    assert model.slope_from_prior_
    np.testing.assert_allclose(model.predict(X), -y.mean() + 0.25 * y.std() * mean / mean.std(), atol=1e-10)


def test_a_constant_undeclared_column_does_not_prevent_the_plain_mean():
    X, y = example(p=5)
    X[:, 0] = 1.0
    assert PriorRidge(prior_columns=[1, 2, 3, 4]).fit(X, y).plain_mean_
    X[:, 0] = X[:, 1] ** 2
    assert not PriorRidge(prior_columns=[1, 2, 3, 4]).fit(X, y).plain_mean_


def test_declared_columns_that_cancel_or_do_not_vary_give_no_prior():
    X, y = example(p=6)
    X[:, 1] = -X[:, 0]
    np.testing.assert_allclose(
        PriorRidge(prior_columns=[0, 1]).fit(X, y).predict(X), PriorRidge().fit(X, y).predict(X), atol=1e-10
    )
    only = PriorRidge(prior_columns=[0, 1]).fit(X[:, :2], y)
    assert only.plain_mean_
    np.testing.assert_allclose(only.predict(X[:, :2]), y.mean())
    X[:, 5] = 2.0
    np.testing.assert_allclose(
        PriorRidge(prior_columns=[5]).fit(X, y).predict(X), PriorRidge().fit(X, y).predict(X), atol=1e-12
    )


def test_wild_scores_hardly_matter():
    X, y = example(rows=80, p=20)
    wild = X.copy()
    cells = np.random.default_rng(3).random(X.shape) < 0.03
    wild[cells] *= 1e6
    clean, robust = PriorRidge().fit(X, y).predict(X), PriorRidge().fit(wild, y).predict(X)
    assert np.corrcoef(clean, robust)[0, 1] > 0.98


def test_a_falling_column_gets_a_negative_weight_unless_declared_strongly():
    X, y = example(p=3)
    X[:, 0] = -y
    assert PriorRidge().fit(X, y).combination_.weights[0] < 0


@pytest.mark.parametrize("prior_r2", [0, 1, -0.1, 2, math.nan])
def test_prior_r2_outside_its_range_is_an_error(prior_r2):
    with pytest.raises(OptionError, match="not a share of variance"):
        PriorRidge(prior_r2=prior_r2).fit(*example())


@pytest.mark.parametrize("strength", [-0.1, math.inf, math.nan])
def test_prior_strength_outside_its_range_is_an_error(strength):
    with pytest.raises(OptionError, match="finite and not negative"):
        PriorRidge(prior_strength=strength).fit(*example())
