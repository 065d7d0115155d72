"""The common fitted form: sums, exactness, state."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, StateError
from metricsmith.stats.regression.columns import NormalScore, ZScore
from metricsmith.stats.regression.combination import LinearCombination

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
