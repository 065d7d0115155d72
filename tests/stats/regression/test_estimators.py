"""The contract of every regression: scikit-learn's contract, missing scores, names, exact scoring."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricsmith.errors import OptionError
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.regression import NormalScore, PriorRidge, TwoStagePLS

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


def pls_example(rows=50, p=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, p)) @ random.normal(size=(p, p)) * 10.0 ** random.integers(-2, 3, p) + 5
    return X, X @ random.normal(size=p) / 10 + random.normal(size=rows)


def test_one_component_weights_each_column_by_its_correlation_with_the_rating():
    X, y = pls_example()
    combination = TwoStagePLS(n=8).fit(X, y).combination_
    r = np.array([np.corrcoef(X[:, place], y)[0, 1] for place in combination.indices])
    ratio = np.array(combination.weights) / r
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)
    assert ratio[0] > 0


def test_equals_scikit_learn_with_one_component():
    from sklearn.cross_decomposition import PLSRegression

    X, y = pls_example()
    new = pls_example(seed=1)[0]
    theirs = PLSRegression(n_components=1).fit(X, y)
    np.testing.assert_allclose(TwoStagePLS(n=8).fit(X, y).predict(new), theirs.predict(new).ravel(), rtol=1e-9)


def test_two_stages_equal_scikit_learn_refitted_on_the_top_n():
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.preprocessing import StandardScaler

    X, y = pls_example()
    first = PLSRegression(n_components=1).fit(StandardScaler().fit_transform(X), y)
    top = np.argsort(-np.abs(first.coef_.ravel()))[:3]
    second = PLSRegression(n_components=1).fit(X[:, top], y)
    model = TwoStagePLS(n=3).fit(X, y)
    assert model.combination_.indices == tuple(top)
    np.testing.assert_allclose(model.predict(X), second.predict(X[:, top]).ravel(), rtol=1e-9)


def test_by_hand():
    # z of (1, 2, 3) is (-a, 0, a), a = sqrt(1.5); ratings (1, 1, 4), mean 2. One column: least squares
    # on z: slope = mean(z y) = 3 a / 3 = a.
    model = TwoStagePLS().fit([[1.0], [2], [3]], [1.0, 1, 4])
    assert model.combination_.weights == pytest.approx((np.sqrt(1.5),))
    np.testing.assert_allclose(model.predict([[1], [2], [3]]), [0.5, 2, 3.5])


def test_k_keeps_the_columns_with_the_largest_absolute_tau():
    X, y = pls_example()
    X[:, 0] = np.where(np.arange(50) == 7, 1e6, -y + np.random.default_rng(2).normal(size=50))
    kept = TwoStagePLS(n=8, k=4).fit(X, y).combination_.indices
    taus = [abs(kendall_tau_b(column, y)) for column in X.T]
    assert set(kept) == set(np.argsort(taus)[-4:].tolist())


def planted(rows=200):
    """Columns 0..5 with falling absolute correlation; 1 and 3 point down."""
    random = np.random.default_rng(0)
    y = random.normal(size=rows)
    strength = np.array([1.0, -0.9, 0.8, -0.6, 0.5, 0.3])
    return y[:, None] * strength + 0.7 * random.normal(size=(rows, 6)), y


def test_negative_judges_among_the_selected_are_dropped():
    X, y = planted()
    model = TwoStagePLS(n=3, positive_columns=[1, 2, 3]).fit(X, y)
    assert model.combination_.indices == (0, 2)
    assert model.dropped_ == (1,)
    np.testing.assert_allclose(model.predict(X), TwoStagePLS(n=2).fit(X[:, [0, 2]], y).predict(X[:, [0, 2]]))


def test_existing_measures_may_stay_negative():
    X, y = planted()
    combination = TwoStagePLS(n=3).fit(X, y).combination_
    assert combination.indices == (0, 1, 2)
    assert combination.weights[1] < 0


def test_refill_takes_the_next_best_that_need_not_be_dropped():
    X, y = planted()
    model = TwoStagePLS(n=3, positive_columns=[1, 2, 3], refill=True).fit(X, y)
    assert model.combination_.indices == (0, 2, 4)


def test_when_everything_is_dropped_the_mean_is_predicted():
    X, y = planted()
    model = TwoStagePLS(n=2, positive_columns=[0, 1]).fit(X[:, [1, 3]], y)
    assert len(model.combination_) == 0
    assert model.dropped_ == (0, 1)
    assert model.predict(X[:2, [1, 3]]).tolist() == [y.mean()] * 2


def test_equal_columns_are_chosen_among_by_the_seed():
    X, y = planted()
    X = np.repeat(X[:, :1], 6, axis=1)
    chosen = {seed: TwoStagePLS(n=2, random_state=seed).fit(X, y).combination_.indices for seed in range(8)}
    assert len(set(chosen.values())) > 3
    assert TwoStagePLS(n=2, random_state=3).fit(X, y).combination_.indices == chosen[3]


def test_columns_without_any_weight_are_never_selected():
    X, y = planted()
    X[:, 2:] = 4.0
    assert TwoStagePLS(n=5).fit(X, y).combination_.indices == (0, 1)


@pytest.mark.parametrize("options", [{"n": 0}, {"k": 0}])
def test_keeping_no_column_is_an_error(options):
    with pytest.raises(OptionError, match="keeps no column"):
        TwoStagePLS(**options).fit(*planted())


def prior_ridge_example(rows=40, p=60, seed=0):
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

    X, y = prior_ridge_example(p=p)
    new = prior_ridge_example(p=p, seed=1)[0]
    theirs = Ridge(alpha=p * (1 - prior_r2) / prior_r2).fit(normal_scores(X), y)
    model = PriorRidge(prior_r2=prior_r2).fit(X, y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(normal_scores(X, new)), atol=1e-10)
    assert model.penalty_ == pytest.approx(p * (1 - prior_r2) / prior_r2)
    assert not model.plain_mean_


def test_declared_columns_are_the_point_to_shrink_towards():
    """w = w0 + ridge fitted to y - A w0, in units of the rating's sd."""
    from sklearn.linear_model import Ridge

    X, y = prior_ridge_example()
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
    X, y = prior_ridge_example()
    narrow = PriorRidge(prior_columns=[0, 1]).fit(X, y).predict(X)
    wide = PriorRidge(prior_columns=[0, 1]).fit(X, 100 * y).predict(X)
    np.testing.assert_allclose(wide, 100 * narrow, rtol=1e-9)


def test_a_useless_label_leaves_the_plain_mean_in_front():
    """With an almost total penalty only the prior is left."""
    X, y = prior_ridge_example()
    own = list(range(0, 60, 7))
    model = PriorRidge(prior_r2=1e-9, prior_columns=own).fit(X, y)
    assert kendall_tau_b(model.predict(X), normal_scores(X)[:, own].mean(axis=1)) == pytest.approx(1, abs=0.01)
    spread = model.predict(X).std() / y.std()
    assert spread == pytest.approx(0.25, abs=1e-3)


def test_only_declared_columns_give_their_plain_mean_by_least_squares():
    X, y = prior_ridge_example(p=5)
    model = PriorRidge(prior_columns=range(5)).fit(X, y)
    mean = normal_scores(X).mean(axis=1)
    slope, intercept = np.polyfit(mean, y, 1)
    assert model.plain_mean_
    assert not model.slope_from_prior_
    assert slope > 0
    np.testing.assert_allclose(model.predict(X), intercept + slope * mean, atol=1e-10)
    assert len(set(np.round(model.combination_.weights, 12))) == 1


def test_a_plain_mean_keeps_its_direction_when_the_labels_point_down():
    X, y = prior_ridge_example(p=5)
    mean = normal_scores(X).mean(axis=1)
    model = PriorRidge(prior_columns=range(5)).fit(X, -y)
    assert model.plain_mean_
    assert model.slope_from_prior_
    np.testing.assert_allclose(model.predict(X), -y.mean() + 0.25 * y.std() * mean / mean.std(), atol=1e-10)


def test_a_constant_undeclared_column_does_not_prevent_the_plain_mean():
    X, y = prior_ridge_example(p=5)
    X[:, 0] = 1.0
    assert PriorRidge(prior_columns=[1, 2, 3, 4]).fit(X, y).plain_mean_
    X[:, 0] = X[:, 1] ** 2
    assert not PriorRidge(prior_columns=[1, 2, 3, 4]).fit(X, y).plain_mean_


def test_declared_columns_that_cancel_or_do_not_vary_give_no_prior():
    X, y = prior_ridge_example(p=6)
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
    X, y = prior_ridge_example(rows=80, p=20)
    wild = X.copy()
    cells = np.random.default_rng(3).random(X.shape) < 0.03
    wild[cells] *= 1e6
    clean, robust = PriorRidge().fit(X, y).predict(X), PriorRidge().fit(wild, y).predict(X)
    assert np.corrcoef(clean, robust)[0, 1] > 0.98


def test_a_falling_column_gets_a_negative_weight_unless_declared_strongly():
    X, y = prior_ridge_example(p=3)
    X[:, 0] = -y
    assert PriorRidge().fit(X, y).combination_.weights[0] < 0


@pytest.mark.parametrize("prior_r2", [0, 1, -0.1, 2, math.nan])
def test_prior_r2_outside_its_range_is_an_error(prior_r2):
    with pytest.raises(OptionError, match="not a share of variance"):
        PriorRidge(prior_r2=prior_r2).fit(*prior_ridge_example())


@pytest.mark.parametrize("strength", [-0.1, math.inf, math.nan])
def test_prior_strength_outside_its_range_is_an_error(strength):
    with pytest.raises(OptionError, match="finite and not negative"):
        PriorRidge(prior_strength=strength).fit(*prior_ridge_example())
