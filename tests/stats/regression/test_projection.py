"""Small models: they reproduce the full one, greedily, without labels."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.regression import LinearCombination, PriorRidge, TwoStagePLS, project


def example(rows=120, p=40, seed=0):
    random = np.random.default_rng(seed)
    factors = random.normal(size=(rows, 5))
    X = factors @ random.normal(size=(5, p)) + 0.8 * random.normal(size=(rows, p))
    return X, 3 + factors[:, 0] + 0.5 * random.normal(size=rows)


@pytest.fixture(scope="module")
def fitted():
    X, y = example()
    return PriorRidge().fit(X[:60], y[:60]), X


def test_the_smallest_size_that_reaches_the_fidelity_is_taken(fitted):
    model, X = fitted
    small = project(model, X, fidelity=0.95)
    size = len(small.combination)
    assert 1 < size < 40
    assert small.fidelity == small.curve[size - 1] >= 0.95 > small.curve[size - 2]


def test_fidelity_is_the_correlation_with_the_full_model(fitted):
    model, X = fitted
    small = project(model, X, n=4)
    prediction = small.combination.predict(X[:, small.combination.indices])
    assert np.corrcoef(prediction, model.predict(X))[0, 1] == pytest.approx(small.fidelity, abs=1e-12)
    assert prediction.mean() == pytest.approx(model.predict(X).mean())


def test_weights_are_the_ridge_of_the_full_prediction_on_centred_columns(fitted):
    """Also on rows that lie far from the training rows."""
    model, X = fitted
    far = X[60:] + 2
    small = project(model, far, n=5).combination
    G, f = small.transform(far[:, small.indices]), model.predict(far)
    G, f = G - G.mean(axis=0), f - f.mean()
    np.testing.assert_allclose(small.weights, np.linalg.solve(G.T @ G + 0.01 * 60 * np.eye(5), G.T @ f))


def test_n_is_a_budget_that_overrides_fidelity(fitted):
    model, X = fitted
    small = project(model, X, n=3, fidelity=0.5)
    assert len(small.combination) == 3
    assert len(small.curve) > 3
    assert len(project(model, X, n=1000).combination) == 40


def test_the_curve_rises_towards_one(fitted):
    model, X = fitted
    curve = np.array(project(model, X).curve)
    assert (np.diff(curve) > -0.01).all()
    assert curve[-1] >= 0.999


def test_each_step_lowers_the_ridge_objective_the_most(fitted):
    """Against refitting with every possible next column."""
    model, X = fitted
    F = model.combination_.transform(X)
    F = F - F.mean(axis=0)
    target = F @ np.array(model.combination_.weights)
    lam = 0.01 * len(X)

    def objective(columns):
        G = F[:, columns]
        v = np.linalg.solve(G.T @ G + lam * np.eye(len(columns)), G.T @ target)
        return float(((target - G @ v) ** 2).sum() + lam * v @ v)

    chosen: list[int] = []
    for _ in range(5):
        chosen.append(min(set(range(40)) - set(chosen), key=lambda column: objective([*chosen, column])))
    assert sorted(project(model, X, n=5).combination.indices) == sorted(chosen)
    best = min(objective(list(pair)) for pair in combinations(range(40), 2))
    assert objective(chosen[:2]) <= 1.5 * best


def plainly_ordered(F, target, lam):
    """The greedy order by sweeping the whole Gram matrix, column after column."""
    gram, covariance, left, path = F.T @ F + lam * np.eye(F.shape[1]), F.T @ target, set(range(F.shape[1])), []
    while left:
        gain = {column: covariance[column] ** 2 / gram[column, column] for column in left}
        most = max(gain.values()) * (1 - 1e-9)
        path.append(min(column for column in left if gain[column] >= most))
        left.remove(path[-1])
        row = gram[path[-1]] / gram[path[-1], path[-1]]
        covariance = covariance - row * covariance[path[-1]]
        gram = gram - np.outer(row, gram[path[-1]])
    return path


@pytest.mark.parametrize(("rows", "p", "seed"), [(120, 40, 0), (40, 90, 1), (60, 60, 2), (25, 150, 3)])
def test_columns_and_curve_are_those_of_the_plain_sweep_over_all_columns(rows, p, seed):
    """Also with more columns than rows, coarse columns, twins, and the curve followed to the last column."""
    X, y = example(rows, p, seed)
    X[:, : p // 3] = np.round(X[:, : p // 3])
    X[:, p - 2] = X[:, 1]
    model = PriorRidge().fit(X, y)
    F = model.combination_.transform(X)
    F = F - F.mean(axis=0)
    target, lam = F @ np.array(model.combination_.weights), 0.01 * rows
    path = plainly_ordered(F, target, lam)
    curve = []
    for size in range(1, p + 1):
        G = F[:, path[:size]]
        curve.append(np.corrcoef(G @ np.linalg.solve(G.T @ G + lam * np.eye(size), G.T @ target), target)[0, 1])
    for n in (1, 7, p):
        small = project(model, X, n=n)
        assert set(small.combination.indices) == set(path[:n])
        np.testing.assert_allclose(small.curve, curve[: len(small.curve)], rtol=0, atol=1e-12)
    reached = project(model, X)
    assert len(reached.combination) == 1 + next(place for place, value in enumerate(curve) if value >= 0.97)


def test_columns_that_are_transformed_already_need_no_second_pass(fitted):
    model, X = fitted
    plain, given = project(model, X[:60]), project(model, X[:60], transformed=model.columns_)
    assert given == plain


def test_labels_enter_only_through_the_model(fitted):
    """Unlabelled rows need no rating, and the small model keeps names, places and transforms."""
    model, X = fitted
    small = project(model, X, n=4).combination
    for name, index, column in zip(small.names, small.indices, small.columns, strict=True):
        assert name == f"x{index}"
        assert column == model.combination_.columns[model.combination_.indices.index(index)]
    assert list(np.abs(small.weights)) == sorted(np.abs(small.weights), reverse=True)
    again = LinearCombination.from_dict(json.loads(json.dumps(small.to_dict())))
    assert again.predict(X[:, again.indices]).tolist() == small.predict(X[:, small.indices]).tolist()


def test_a_selected_pls_projects_to_a_part_of_its_columns():
    X, y = example()
    model = TwoStagePLS(n=6).fit(X, y)
    small = project(model, X, n=2)
    assert set(small.combination.indices) < set(model.combination_.indices)
    assert small.fidelity > 0.8


def test_missing_scores_stand_at_the_centre(fitted):
    model, X = fitted
    gaps = X.copy()
    gaps[5:15, :20] = math.nan
    assert project(model, gaps).fidelity >= 0.97


def test_redundant_copies_are_taken_once():
    X, y = example(p=6)
    X = np.column_stack([X, X, X])
    model = PriorRidge().fit(X, y)
    assert len({place % 6 for place in project(model, X, n=4).combination.indices}) == 4


def test_a_constant_model_has_no_small_one():
    X, _ = example()
    small = project(PriorRidge().fit(X, np.full(120, 2.0)), X)
    assert len(small.combination) == 0
    assert small.combination.intercept == 2.0
    assert math.isnan(small.fidelity)
    assert small.curve == ()


def test_bad_arguments_are_errors(fitted):
    model, X = fitted
    with pytest.raises(OptionError, match="n=0 keeps no column"):
        project(model, X, n=0)
    for fidelity in (0, 1.1, math.nan):
        with pytest.raises(OptionError, match="not a correlation to reach"):
            project(model, X, fidelity=fidelity)
    for rows in (X[:1], X[:, :3], X[0]):
        with pytest.raises(DataError, match="do not fit"):
            project(model, rows)


@pytest.mark.parametrize("seed", range(20))
def test_of_twin_columns_the_first_is_taken_whatever_the_rounding(seed):
    """Twins whose numbers differ in the last bits, as on machines whose matrix products round otherwise."""
    X, y = example(p=12, seed=seed)
    twins = X * (1 + 1e-13 * np.random.default_rng(seed).uniform(-1, 1, size=X.shape))
    both = np.hstack([X, twins])
    model = TwoStagePLS(n=24, k=None, random_state=seed).fit(both, y)
    taken = project(model, both, n=4).combination.indices
    assert len(taken) == 4
    for index in taken:
        assert index < 12 or index - 12 in taken
