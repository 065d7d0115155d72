"""The common fitted form: sums, exactness, state."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, StateError
from metricsmith.stats.regression.combination import LinearCombination, NormalScore, ZScore, transform_from_dict

NAN = math.nan


def example(seed=0, k=7, rows=30):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, k)).round(2) * 10.0 ** random.integers(-3, 4, k)
    kinds = [(ZScore, NormalScore)[place % 2] for place in range(k)]
    combination = LinearCombination(
        tuple(f"metric {place}" for place in range(k)),
        tuple(range(3, 3 + k)),
        tuple(kind.fit(column) for kind, column in zip(kinds, X.T, strict=True)),
        tuple(random.normal(size=k).tolist()),
        51.3,
    )
    return combination, X


def test_prediction_by_hand():
    # z-scores of (1, 3) around 2 with sd 1: 10 + 4 z - 1 z'
    columns = (ZScore(2.0, 1.0), ZScore(0.0, 5.0))
    combination = LinearCombination(("up", "down"), (0, 1), columns, (4.0, -1.0), 10.0)
    X = [[3, 10], [2, 0], [NAN, -5]]
    np.testing.assert_array_equal(combination.contributions(X), [[4, -2], [0, 0], [0, 1]])
    np.testing.assert_array_equal(combination.predict(X), [12, 10, 11])


def test_intercept_and_contributions_sum_to_the_prediction_exactly():
    combination, X = example()
    sums = [math.fsum([combination.intercept, *row]) for row in combination.contributions(X)]
    assert combination.predict(X).tolist() == sums


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_one_row_alone_scores_to_the_same_bits_as_in_a_batch(seed, k):
    combination, X = example(seed, k)
    X[0, 0] = NAN
    batch = combination.predict(X)
    assert [float(combination.predict(row[None])[0]) for row in X] == batch.tolist()
    assert combination.predict(np.asfortranarray(X)[::-1]).tolist() == batch[::-1].tolist()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_state_survives_json_to_the_bit(seed):
    combination, X = example(seed)
    again = LinearCombination.from_dict(json.loads(json.dumps(combination.to_dict(), allow_nan=False)))
    assert again == combination
    assert again.predict(X).tolist() == combination.predict(X).tolist()


def test_no_column_predicts_the_intercept():
    empty = LinearCombination((), (), (), (), 2.5)
    assert len(empty) == 0
    assert empty.predict(np.zeros((3, 0))).tolist() == [2.5] * 3
    assert LinearCombination.from_dict(empty.to_dict()) == empty


def test_no_row_gives_no_prediction():
    combination, X = example()
    assert combination.predict(X[:0]).shape == (0,)
    assert combination.contributions(X[:0]).shape == (0, 7)


@pytest.mark.parametrize("shape", [(3, 6), (3, 8), (7,)])
def test_scores_that_do_not_fit_are_an_error(shape):
    with pytest.raises(DataError, match="do not fit"):
        example()[0].predict(np.zeros(shape))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda state: state.pop("intercept"), "KeyError: 'intercept'"),
        (lambda state: state["columns"][0].pop("weight"), "KeyError: 'weight'"),
        (lambda state: state["columns"][0].update(weight=NAN), "finite"),
        (lambda state: state["columns"][0].update(weight="heavy"), "heavy"),
        (lambda state: state["columns"][1].update(transform=None), "AttributeError"),
        (lambda state: state["columns"][1]["transform"].update(kind="cube"), "unknown column transform 'cube'"),
        (lambda state: state.update(columns=5), "TypeError"),
    ],
)
def test_a_broken_state_is_an_error_that_says_why(change, problem):
    state = json.loads(json.dumps(example()[0].to_dict()))
    change(state)
    with pytest.raises(StateError, match=problem):
        LinearCombination.from_dict(state)


def test_parts_of_different_length_are_an_error():
    with pytest.raises(StateError, match="1 names, 0 indices"):
        LinearCombination(("a",), (), (), (), 0.0)


def test_a_saved_combination_is_read_without_scikit_learn_or_scipy():
    code = (
        "import sys; from metricsmith.stats.regression import LinearCombination, project; "
        "c = {'name': 'a', 'index': 0, 'weight': 1.0, 'transform': "
        "{'kind': 'normal_score', 'values': [1.0, 2.0], 'centre': 0.0, 'scale': 1.0}}; "
        "LinearCombination.from_dict({'intercept': 0, 'columns': [c]}).predict([[1.5]]); "
        "sys.exit(bool({'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


NAN, INF = math.nan, math.inf
KINDS = [ZScore, NormalScore]
columns = st.lists(st.one_of(st.integers(0, 3).map(float), st.floats(-1e9, 1e9)), min_size=2, max_size=30)
some = settings(deadline=None, max_examples=50)


def test_z_score_by_hand():
    # mean 2, population sd sqrt(2/3)
    z = ZScore.fit([1, 2, 3])
    np.testing.assert_allclose(z.apply([1, 2, 5]), [-math.sqrt(1.5), 0, 3 * math.sqrt(1.5)])


def test_normal_score_by_hand():
    # m = 2: the training scores have u = 1/4 and 3/4, quantiles -+.6744898 (table), mean 0, sd .6744898.
    # 1.5 has u = (1 + 1) / 4; below all u = 0, clipped to .5 / 2.
    score = NormalScore.fit([2.0, 1.0])
    np.testing.assert_allclose(score.apply([1, 2, 1.5, -99, 99]), [-1, 1, 0, -1, 1], atol=1e-15)
    assert score.scale == pytest.approx(0.6744897501960817)


@some
@given(columns)
def test_training_scores_get_their_midrank_normal_score(column):
    from scipy.stats import norm, rankdata

    column = np.array(column)
    score = NormalScore.fit(column)
    if score.constant:
        assert np.ptp(column) <= 1e-10 * np.abs(column).max()
        return
    expected = norm.ppf((rankdata(column) - 0.5) / column.size)
    np.testing.assert_allclose(score.apply(column), (expected - expected.mean()) / expected.std(), atol=1e-12)


@some
@given(columns, st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=10))
def test_new_scores_follow_the_definition(column, new):
    from scipy.stats import norm

    column, m = np.array(column), len(column)
    score = NormalScore.fit(column)
    if score.constant:
        return
    below = (column[None] < np.array(new)[:, None]).sum(axis=1)
    not_above = (column[None] <= np.array(new)[:, None]).sum(axis=1)
    u = np.clip((below + not_above) / (2 * m), 0.5 / m, 1 - 0.5 / m)
    np.testing.assert_allclose(score.apply(new), (norm.ppf(u) - score.centre) / score.scale, atol=1e-12)


def test_many_columns_at_once_are_the_same_columns_one_by_one():
    """Ties, gaps of several sizes, constants and huge numbers side by side; to the bit."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 60))
    X[:, :20] = random.integers(0, 4, size=(40, 20))
    X[:, 20], X[:, 21], X[:, 22], X[1:, 23] = 3.0, NAN, 1e300 * X[:, 22], NAN
    X[random.random(X.shape) < np.linspace(0, 0.5, 60)] = NAN
    X[0, 30:34] = INF
    fits, applied = NormalScore.fit_columns(X)
    for place, fit in enumerate(fits):
        assert fit == NormalScore.fit(X[:, place])
        np.testing.assert_array_equal(applied[:, place], fit.apply(X[:, place]))
    assert {fit.constant for fit in fits} == {True, False}


def test_a_fit_of_which_no_value_was_asked_for_is_the_same_fit():
    first, second, third, fourth = NormalScore.fit_columns(np.tile([[3.0], [1.0], [2.0]], 4))[0]
    whole = NormalScore((1.0, 2.0, 3.0), first.centre, first.scale)
    assert copy.deepcopy(first) == whole
    assert pickle.loads(pickle.dumps(second)) == whole
    assert replace(third, centre=0.0) == replace(whole, centre=0.0)
    assert hash(fourth) == hash(whole)
    assert repr(fourth) == repr(whole)
    with pytest.raises(AttributeError, match="'NormalScore' object has no attribute 'value'"):
        _ = first.value


@pytest.mark.parametrize("kind", KINDS)
@some
@given(column=columns)
def test_training_columns_get_mean_zero_and_sd_one(kind, column):
    transform = kind.fit(column)
    values = transform.apply(column)
    if transform.constant:
        assert not values.any()
    else:
        assert values.mean() == pytest.approx(0, abs=1e-6)
        assert values.std() == pytest.approx(1, abs=1e-6)


def test_normal_scores_see_only_the_order():
    column, new = np.array([3.0, 1, 4, 1, 5]), np.array([0.0, 2, 4.5])
    stretched = NormalScore.fit(np.exp(column)).apply(np.exp(new))
    np.testing.assert_array_equal(stretched, NormalScore.fit(column).apply(new))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_and_infinite_scores_stand_at_the_centre(kind):
    with_gaps, without = kind.fit([1, NAN, 2, INF, 6, -INF]), kind.fit([1, 2, 6])
    assert with_gaps == without
    np.testing.assert_array_equal(with_gaps.apply([NAN, INF, -INF]), [0, 0, 0])
    assert with_gaps.apply([0.0])[0] < 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [[], [NAN, INF], [7.0], [0.1] * 10, [1e9] * 3, [0.3, 0.1 + 0.2, 0.3]])
def test_a_column_that_does_not_vary_becomes_zero(kind, column):
    transform = kind.fit(column)
    assert transform.constant
    np.testing.assert_array_equal(transform.apply([0.0, 1e300, NAN]), [0, 0, 0])
    assert transform_from_dict(transform.to_dict()).constant


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_tiny_and_huge_scores_are_scores(kind, unit):
    column = np.array([1.0, 2, 4])
    np.testing.assert_allclose(kind.fit(column * unit).apply(column * unit), kind.fit(column).apply(column), rtol=1e-12)


def test_a_score_too_far_from_training_for_a_float_is_the_largest_one():
    transform = ZScore.fit([0.0, 2.225073858507e-311])
    np.testing.assert_array_equal(transform.apply([-1.0, 1.0]), [-np.finfo(float).max, np.finfo(float).max])


@pytest.mark.parametrize("kind", KINDS)
@some
@given(column=columns, new=columns)
def test_state_survives_json_to_the_bit_of_columns(kind, column, new):
    transform = kind.fit(column)
    again = transform_from_dict(json.loads(json.dumps(transform.to_dict(), allow_nan=False)))
    assert again == transform
    np.testing.assert_array_equal(again.apply(new), transform.apply(new))


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"kind": "z_scor", "mean": 0, "sd": 1}, "did you mean 'z_score'"),
        ({}, "unknown column transform None"),
        ({"kind": "z_score", "mean": 0}, "KeyError: 'sd'"),
        ({"kind": "z_score", "mean": 0, "sd": -1}, "-1 is below 0"),
        ({"kind": "z_score", "mean": "0", "sd": 1}, "'0' is not a finite number"),
        ({"kind": "z_score", "mean": True, "sd": 1}, "True is not a finite number"),
        ({"kind": "normal_score", "values": [2, 1], "centre": 0, "scale": 1}, "ascending"),
        ({"kind": "normal_score", "values": [], "centre": 0, "scale": 1}, "some are needed"),
        ({"kind": "normal_score", "values": [1, NAN], "centre": 0, "scale": 1}, "nan is not a finite number"),
        ({"kind": "normal_score", "values": 3, "centre": 0, "scale": 1}, "TypeError"),
    ],
)
def test_a_broken_state_is_an_error_that_says_why_of_columns(state, problem):
    with pytest.raises(StateError, match=problem):
        transform_from_dict(state)
