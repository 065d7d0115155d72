"""Two-stage PLS: the identity behind it, the library's own PLS, selection, the negative filter."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.regression import TwoStagePLS


def example(rows=50, p=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, p)) @ random.normal(size=(p, p)) * 10.0 ** random.integers(-2, 3, p) + 5
    return X, X @ random.normal(size=p) / 10 + random.normal(size=rows)


def test_one_component_weights_each_column_by_its_correlation_with_the_rating():
    X, y = example()
    combination = TwoStagePLS(n=8).fit(X, y).combination_
    r = np.array([np.corrcoef(X[:, place], y)[0, 1] for place in combination.indices])
    ratio = np.array(combination.weights) / r
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)
    assert ratio[0] > 0


def test_equals_scikit_learn_with_one_component():
    from sklearn.cross_decomposition import PLSRegression

    X, y = example()
    new = example(seed=1)[0]
    theirs = PLSRegression(n_components=1).fit(X, y)
    np.testing.assert_allclose(TwoStagePLS(n=8).fit(X, y).predict(new), theirs.predict(new).ravel(), rtol=1e-9)


def test_two_stages_equal_scikit_learn_refitted_on_the_top_n():
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.preprocessing import StandardScaler

    X, y = example()
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
    X, y = example()
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
