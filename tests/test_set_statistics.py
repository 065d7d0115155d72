"""Statistics of a whole set of rows: exact on hand-made cases, equal to scikit-learn's, honest where undefined."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics

import metricsmith.stats.agreement as module
from metricsmith.errors import DataError
from metricsmith.stats.agreement import balanced_accuracy, cohen_kappa, concordance_index, f1, quadratic_kappa

ALL = (balanced_accuracy, cohen_kappa, f1, concordance_index, quadratic_kappa)
NAN = math.nan
some = settings(deadline=None, max_examples=200)
labels = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(1, 4), min_size=n, max_size=n) for _ in range(2)))
)
numbers = st.integers(2, 20).flatmap(
    lambda n: st.tuples(*(st.lists(st.floats(-100, 100, width=32), min_size=n, max_size=n) for _ in range(2)))
)


def test_the_examples_are_right():
    assert doctest.testmod(module).failed == 0


@some
@given(labels)
def test_labels_agree_as_scikit_learn_says(pair):
    x, y = pair
    known = sorted({*x, *y})
    assert f1(x, y) == pytest.approx(metrics.f1_score(y, x, average="macro", labels=known, zero_division=0.0))
    for label in known:
        expected = metrics.f1_score(y, x, average="macro", labels=[label], zero_division=0.0)
        assert f1(x, y, positive=label) == pytest.approx(expected)
    if len(known) > 1:
        assert cohen_kappa(x, y) == pytest.approx(metrics.cohen_kappa_score(y, x))
        for weights in ("linear", "quadratic"):
            expected = metrics.cohen_kappa_score(y, x, weights=weights)
            assert cohen_kappa(x, y, weights=weights) == pytest.approx(expected)
        everything = list(range(1, 5))  # equal steps, also where a label in between is never given
        expected = metrics.cohen_kappa_score(y, x, weights="quadratic", labels=everything)
        assert quadratic_kappa(x, y) == pytest.approx(expected)
    if len(set(y)) > 1:
        recalls = metrics.recall_score(y, x, average=None, labels=sorted(set(y)), zero_division=0.0)
        assert balanced_accuracy(x, y) == pytest.approx(recalls.mean())


@some
@given(numbers)
def test_pairs_are_counted_one_by_one(pair):
    x, y = pair
    worth = [
        0.5 if x[i] == x[j] else float((x[i] > x[j]) == (y[i] > y[j]))
        for i in range(len(x))
        for j in range(i)
        if y[i] != y[j]
    ]
    assume(worth)
    assert concordance_index(x, y) == pytest.approx(sum(worth) / len(worth))


@some
@given(numbers, st.floats(0.5, 3), st.floats(-10, 10))
def test_quadratic_kappa_is_lins_concordance_and_notices_another_part_of_the_scale(pair, factor, shift):
    x, y = np.array(pair)
    apart = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    assume(apart > 1e-6)
    assert quadratic_kappa(x, y) == pytest.approx(2 * np.cov(x, y, ddof=0)[0, 1] / apart, abs=1e-9)
    assert quadratic_kappa(x * factor + shift, y * factor + shift) == pytest.approx(quadratic_kappa(x, y), abs=1e-6)
    if y.var() > 1e-3:
        assert quadratic_kappa(y, y) == pytest.approx(1.0)
        assert quadratic_kappa(y + 100, y) < quadratic_kappa(y + 1, y) < 1.0


def test_by_hand():
    # Two raters of ten cases: 7 equal; chance .5 * .6 + .5 * .4 = .5; (.7 - .5) / .5 = .4.
    x, y = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0, 1, 1]
    assert cohen_kappa(x, y) == pytest.approx(0.4)
    assert balanced_accuracy(x, y) == pytest.approx((4 / 6 + 3 / 4) / 2)
    assert f1(x, y, positive=1) == pytest.approx(8 / 11)
    assert f1(x, y) == pytest.approx((8 / 11 + 6 / 9) / 2)
    # 24 pairs of a 1 and a 0 by the raters; predicted 1 > 0: 4 * 3, 0 > 1: 2 * 1, equal: 10.
    assert concordance_index(x, y) == pytest.approx((12 + 10 / 2) / 24)
    # Squared distances 1 in 3 of 10 rows; var .25 and .24, means .5 and .6.
    assert quadratic_kappa(x, y) == pytest.approx(1 - 0.3 / (0.25 + 0.24 + 0.01))


@pytest.mark.parametrize("statistic", ALL)
def test_rows_without_a_number_on_either_side_are_left_out(statistic):
    x, y = [1, 2, NAN, 3, 1], [1, 3, 2, NAN, 2]
    assert statistic(x, y) == statistic([1, 2, 1], [1, 3, 2])


@pytest.mark.parametrize("statistic", ALL)
def test_what_is_undefined_is_nan(statistic):
    assert math.isnan(statistic([], []))
    assert math.isnan(statistic([NAN], [1.0]))
    with pytest.raises(DataError, match="one length"):
        statistic([1, 2], [1])


def test_constant_sides():
    same, mixed = [2.0, 2.0, 2.0], [1.0, 2.0, 3.0]
    for statistic in (cohen_kappa, quadratic_kappa, balanced_accuracy, concordance_index):
        assert math.isnan(statistic(same, same))
    assert f1(same, same) == 1.0
    assert math.isnan(f1(same, same, positive=1.0))
    assert cohen_kappa(same, mixed) == quadratic_kappa(same, mixed) == 0.0
    assert balanced_accuracy(same, mixed) == pytest.approx(1 / 3)
    assert concordance_index(same, mixed) == 0.5
    assert math.isnan(concordance_index(mixed, same))


def test_kappa_of_a_thousand_labels_needs_no_table_of_their_cubes():
    labels = np.arange(1000.0)
    assert cohen_kappa(labels, labels) == 1.0
    assert cohen_kappa(labels, labels + 1000) == 0.0


def test_very_large_numbers_stay_finite():
    x = np.array([1.0, 2.0, 4.0]) * 1e200
    assert quadratic_kappa(x, x[::-1]) == pytest.approx(quadratic_kappa([1, 2, 4], [4, 2, 1]))
