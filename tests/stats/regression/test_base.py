"""What every regression shares: scikit-learn's contract, missing scores, names, exact scoring."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricsmith.errors import OptionError
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.regression import PriorRidge, TwoStagePLS

NAN = math.nan
ESTIMATORS = [
    TwoStagePLS(),
    TwoStagePLS(n=2, k=3, positive_columns=[0], refill=True),
    PriorRidge(),
    PriorRidge(prior_columns=[0]),
]
BOTH = [TwoStagePLS(n=3), PriorRidge(prior_columns=[1])]


# No failure is expected. scikit-learn itself skips its array-API check unless asked for.
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def example(rows=60, p=6, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, p))
    return X, 50 + 10 * (X[:, 1] - X[:, 2] + random.normal(size=rows))


@pytest.mark.parametrize("estimator", BOTH)
def test_missing_and_infinite_scores_are_counted_and_stand_at_the_centre(estimator):
    X, y = example()
    X[3, 1], X[4, 1], X[5, 2] = NAN, math.inf, -math.inf
    model = clone(estimator).fit(X, y)
    assert model.n_missing_.tolist() == [0, 2, 1, 0, 0, 0]
    place = model.combination_.indices.index(1)
    assert model.contributions(X)[[3, 4], place].tolist() == [0, 0]
    assert np.isfinite(model.predict(np.full((2, 6), NAN))).all()
    assert model.predict(np.full((1, 6), NAN))[0] == model.combination_.intercept


@pytest.mark.parametrize("estimator", BOTH)
def test_a_missing_score_is_not_a_zero(estimator):
    X, y = example()
    X[:, 2] *= -1
    X += 100
    X[0] = NAN
    model = clone(estimator).fit(X, y)
    assert model.predict(X)[0] == pytest.approx(y.mean())
    assert model.predict(np.zeros((1, 6)))[0] < y.mean() - y.std() / 2


@pytest.mark.parametrize("estimator", BOTH)
def test_one_row_alone_scores_to_the_same_bits(estimator):
    X, y = example()
    model = clone(estimator).fit(X, y)
    assert [float(model.predict(row[None])[0]) for row in X] == model.predict(X).tolist()
    sums = [math.fsum([model.combination_.intercept, *row]) for row in model.contributions(X)]
    assert sums == model.predict(X).tolist()


@pytest.mark.parametrize("estimator", BOTH)
def test_predictions_follow_the_rating_scale(estimator):
    X, y = example()
    base, moved = clone(estimator).fit(X, y), clone(estimator).fit(X, 0.03 * y - 7)
    np.testing.assert_allclose(moved.predict(X), 0.03 * base.predict(X) - 7, atol=1e-10)
    np.testing.assert_allclose(moved.combination_.weights, 0.03 * np.array(base.combination_.weights), atol=1e-10)


@pytest.mark.parametrize("estimator", BOTH)
def test_the_order_of_rows_and_columns_does_not_matter(estimator):
    X, y = example()
    rows, columns = np.random.default_rng(1).permutation(60), [2, 0, 1, 3, 4, 5]
    model = clone(estimator)
    if isinstance(model, PriorRidge):
        model.set_params(prior_columns=[2])
    permuted = model.fit(X[rows][:, columns], y[rows])
    original = clone(estimator).fit(X, y)
    np.testing.assert_allclose(permuted.predict(X[:, columns]), original.predict(X), atol=1e-9)


@pytest.mark.parametrize("estimator", BOTH)
def test_constant_columns_and_constant_ratings(estimator):
    X, y = example()
    padded = np.column_stack([X, np.full(60, 3.3)])
    np.testing.assert_allclose(
        clone(estimator).fit(padded, y).predict(padded), clone(estimator).fit(X, y).predict(X), atol=1e-12
    )
    flat = clone(estimator).fit(X, np.full(60, 0.1))
    assert flat.predict(X).tolist() == [0.1] * 60
    nothing_varies = clone(estimator).fit(np.ones((60, 6)), y)
    assert nothing_varies.predict(X).tolist() == [float(y.mean())] * 60


@pytest.mark.parametrize("estimator", BOTH)
def test_columns_of_a_frame_are_known_by_name(estimator):
    X, y = example()
    frame = pd.DataFrame(X, columns=[f"metric {place}" for place in range(6)])
    parameter = "prior_columns" if isinstance(estimator, PriorRidge) else "positive_columns"
    by_name = clone(estimator).set_params(**{parameter: ["metric 1"]}).fit(frame, y)
    by_index = clone(estimator).set_params(**{parameter: [1]}).fit(X, y)
    assert by_name.predict(frame).tolist() == by_index.predict(X).tolist()
    assert set(by_name.combination_.names) <= set(frame.columns)
    assert by_index.combination_.names[0].startswith("x")


@pytest.mark.parametrize("column", ["metric 7", 6, -1, True, 1.5])
@pytest.mark.parametrize(
    ("estimator", "parameter"), [(TwoStagePLS(), "positive_columns"), (PriorRidge(), "prior_columns")]
)
def test_an_unknown_column_is_an_error_that_names_it(estimator, parameter, column):
    X, y = example()
    frame = pd.DataFrame(X, columns=[f"metric {place}" for place in range(6)])
    with pytest.raises(OptionError, match=f"{parameter} has {column!r}"):
        clone(estimator).set_params(**{parameter: [column]}).fit(frame, y)


@pytest.mark.parametrize("estimator", BOTH)
def test_the_planted_columns_are_found(estimator):
    X, y = example(200)
    model = clone(estimator).fit(X[:100], y[:100])
    weights = dict(zip(model.combination_.indices, model.combination_.weights, strict=True))
    assert weights[1] > 0 > weights[2]
    assert kendall_tau_b(model.predict(X[100:]), y[100:]) > 0.4
