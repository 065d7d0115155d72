"""The ridge on frozen vectors: its closed form against refits, its choice of a penalty, chance and a plant."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.bank.models import ridge
from metricsmith.bank.models.finetuned import ENCODERS
from metricsmith.bank.models.trained import RatedTexts
from metricsmith.errors import StateError


@pytest.fixture
def table(monkeypatch):
    """Vectors by text; texts are numbers of rows."""
    vectors = {}
    monkeypatch.setattr(ridge, "mean_vectors", lambda _, texts: np.array([vectors[text] for text in texts]))

    def put(rows, start=0):
        names = [str(start + number) for number in range(len(rows))]
        vectors.update(zip(names, rows, strict=True))
        return names

    return put


def learned(texts, numbers, groups, validation=None):
    return ridge.train(RatedTexts(texts, numbers, groups), None, {}, 0, validation)


def refitted(X, numbers, penalty):
    """Intercept and coefficients of a ridge regression with an intercept that is not penalised, by its equations."""
    design = np.column_stack([np.ones(len(X)), X])
    fine = np.diag([0.0, *[penalty] * X.shape[1]])
    return np.linalg.solve(design.T @ design + fine, design.T @ numbers)


def standard(X):
    return (X - X.mean(0)) / X.std(0)


@pytest.mark.parametrize(("n", "d"), [(12, 3), (12, 30)])
def test_errors_of_left_out_groups_are_those_of_refits_without_them(n, d):
    rng = np.random.default_rng(n + d)
    X, numbers = standard(rng.normal(size=(n, d))), rng.normal(size=n)
    codes = np.array([0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4, 4])
    values, basis = np.linalg.eigh(X @ X.T)
    for penalty in (0.1, 3.0, 400.0):
        total = 0.0
        for group in range(5):
            out = codes == group
            fit = refitted(X[~out], numbers[~out], penalty)
            total += np.square(numbers[out] - fit[0] - X[out] @ fit[1:]).sum()
        found = ridge.left_out_errors(np.maximum(values, 0), basis, numbers, codes, penalty)
        assert found == pytest.approx(total, rel=1e-9)


def test_the_weights_are_those_of_the_penalty_with_the_smallest_error_on_left_out_groups(table):
    rng = np.random.default_rng(3)
    raw = rng.normal(size=(30, 6)) * [1, 10, 0.1, 1, 1, 1] + 5
    X, groups = standard(raw), [f"g{number // 3}" for number in range(30)]
    numbers = X[:, 0] + rng.normal(size=30)
    numbers = (numbers - numbers.mean()) / numbers.std()
    errors = {}
    for penalty in ridge.PENALTIES * 6:
        outs = [np.array(groups) == group for group in dict.fromkeys(groups)]
        fits = [refitted(X[~out], numbers[~out], penalty) for out in outs]
        errors[penalty] = sum(
            np.square(numbers[out] - fit[0] - X[out] @ fit[1:]).sum() for out, fit in zip(outs, fits, strict=True)
        )
    best = min(errors, key=errors.get)
    assert min(ridge.PENALTIES) * 6 < best < max(ridge.PENALTIES) * 6
    names = table(raw)
    weights = learned(names, numbers, groups)
    fit = refitted(X, numbers, best)
    np.testing.assert_allclose(ridge.predict(names, None, weights, {}), fit[0] + X @ fit[1:], atol=1e-9)


def test_groups_are_left_out_whole(table):
    """Five copies of a row: rows left out one at a time would be predicted by their copies, whatever the numbers."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(16, 40)), 5, axis=0)
    numbers = np.repeat(rng.normal(size=16), 5)
    names = table(X)
    whole, parted = (
        learned(names, numbers, groups)["coefficients"]
        for groups in ([str(number // 5) for number in range(80)], [str(number) for number in range(80)])
    )
    assert np.linalg.norm(whole) < 0.2 * np.linalg.norm(parted)


def test_rows_for_validation_choose_the_penalty_and_are_not_learned(table):
    rng = np.random.default_rng(8)
    X, w = rng.normal(size=(40, 20)), rng.normal(size=20)
    names, groups = table(X), list(map(str, range(40)))
    numbers = standard(X @ w + 10 * rng.normal(size=40))
    there = rng.normal(size=(60, 20))
    held = table(there, 100)
    true, wrong = (RatedTexts(held, sign * there @ w / 20, held) for sign in (1, -1))
    free = learned(names, numbers, groups, true)["coefficients"]
    shrunk = learned(names, numbers, groups, wrong)["coefficients"]
    assert np.linalg.norm(shrunk) < 0.01 * np.linalg.norm(free)
    fit = refitted(standard(X), numbers, ridge.PENALTIES[-1] * 20)  # the largest one, on the training rows alone
    np.testing.assert_allclose(shrunk * X.std(0), fit[1:], atol=1e-12)


def correlations(table, make, seeds=20):
    """Of predictions with the numbers of 200 new rows, by seed; 80 rows in 40 groups are learned from."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(280, 64))
        y = make(X, rng)
        names = table(X)
        numbers = standard(y[:80])
        weights = learned(names[:80], numbers, [str(number // 2) for number in range(80)])
        found.append(np.corrcoef(ridge.predict(names[80:], None, weights, {}), y[80:])[0, 1])
    return np.array(found)


def test_on_random_vectors_it_is_near_chance(table):
    found = correlations(table, lambda X, rng: rng.normal(size=len(X)))
    assert abs(found.mean()) < 3 / np.sqrt(20 * 200)  # three standard errors of a mean of 20 chance correlations
    assert np.abs(found).max() < 0.3


def test_on_planted_vectors_it_is_near_the_plant(table):
    def planted(noise):
        return lambda X, rng: X[:, :4] @ [1, 1, -1, 1] / 2 + noise * rng.normal(size=len(X))

    assert correlations(table, planted(0.0)).min() > 0.9
    # the plant itself has sqrt(1 / (1 + .25)) = .89 with numbers of this noise
    assert 0.55 < correlations(table, planted(0.5)).mean() < 0.89


def test_dimensions_that_do_not_vary_count_for_nothing(table):
    rng = np.random.default_rng(2)
    X, numbers = rng.normal(size=(20, 4)), rng.normal(size=20)
    more = np.column_stack([X, np.full(20, 0.1), np.full(20, 1e9), np.zeros(20)])
    groups = list(map(str, range(20)))
    plain = learned(table(X), numbers, groups)
    wide = learned(table(more, 100), numbers, groups)
    np.testing.assert_allclose(wide["coefficients"][:4], plain["coefficients"], atol=1e-12)
    np.testing.assert_array_equal(wide["coefficients"][4:], 0)


def test_a_dimension_that_varies_by_rounding_alone_is_not_blown_up(table):
    rng = np.random.default_rng(4)
    X, numbers = rng.normal(size=(20, 3)), rng.normal(size=20)
    X[:, 0] = 1 + np.finfo(np.float32).eps * rng.integers(-1, 2, 20)
    weights = learned(table(X), numbers, list(map(str, range(20))))
    assert weights["coefficients"][0] == 0
    new = table(np.array([[1.001, 0, 0]]), 100)
    assert abs(ridge.predict(new, None, weights, {})[0]) < 1


def test_nothing_but_equal_vectors_predicts_the_mean(table):
    names = table(np.ones((6, 3)))
    weights = learned(names, np.array([1.0, 2, 3, 4, 5, 9]), list("aabbcc"))
    np.testing.assert_allclose(ridge.predict(names, None, weights, {}), 4.0)


def test_the_same_rows_give_the_same_bits_and_a_row_alone_the_same_number(table):
    rng = np.random.default_rng(1)
    names, numbers = table(rng.normal(size=(50, 16))), rng.normal(size=50)
    once, twice = (learned(names, numbers, names) for _ in range(2))
    assert all((once[name] == twice[name]).all() for name in once)
    together = ridge.predict(names, None, once, {})
    assert together.tolist() == [ridge.predict([name], None, once, {})[0] for name in names]


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"coefficients": np.zeros(4)},
        {"coefficients": np.zeros(4), "intercept": np.zeros(2)},
        {"coefficients": np.zeros(4), "intercept": np.zeros(())},
        {"coefficients": np.zeros((4, 1)), "intercept": np.zeros(1)},
        {"coefficients": np.zeros(4), "intercept": np.zeros(1), "more": np.zeros(1)},
        {"coefficients": np.zeros(3), "intercept": np.zeros(1)},  # of another encoder
    ],
)
def test_other_weights_than_its_own_are_refused(table, weights):
    with pytest.raises(StateError, match="do not fit a ridge on the 4 numbers of minilm"):
        ridge.predict(table(np.ones((2, 4))), ENCODERS["minilm"], weights, {})
