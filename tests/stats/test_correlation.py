"""Correlations: by hand, against scipy, and their invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metricsmith.errors import DataError
from metricsmith.stats import correlation
from metricsmith.stats.correlation import (
    batch_kendall_tau_b,
    batch_pearson,
    batch_spearman,
    complete_pairs,
    grouped_correlation,
    kendall_tau_b,
    kendall_tau_b_influence,
    kendall_tau_b_left_out,
    midranks,
    pearson,
    spearman,
)

NAN = math.nan
ALL = [kendall_tau_b, pearson, spearman]
BATCHES = [(kendall_tau_b, batch_kendall_tau_b), (pearson, batch_pearson), (spearman, batch_spearman)]

few_levels = st.integers(0, 4).map(float)
numbers = st.one_of(few_levels, st.floats(-1e6, 1e6).map(lambda value: round(value, 3)))
pairs = st.integers(2, 40).flatmap(
    lambda n: st.tuples(arrays(float, n, elements=numbers), arrays(float, n, elements=numbers))
)
some = settings(deadline=None, max_examples=50)


def test_tau_b_by_hand():
    # 6 pairs. Concordant: (0,1) (0,2) (0,3) (1,3); (1,2) tied in y; (2,3) tied in x.
    # tau-b = 4 / sqrt(5 * 5).
    assert kendall_tau_b([1, 2, 3, 3], [1, 2, 2, 3]) == pytest.approx(0.8)


def test_pearson_by_hand():
    # deviations (-1, 0, 1) and (-1, 1, 0): 1 / 2
    assert pearson([1, 2, 3], [0, 2, 1]) == pytest.approx(0.5)


def test_spearman_by_hand():
    # ranks (1, 2, 3) and (1.5, 1.5, 3): deviations (-1, 0, 1), (-.5, -.5, 1): 1.5 / sqrt(2 * 1.5)
    assert spearman([10, 20, 1000], [5, 5, 6]) == pytest.approx(1.5 / math.sqrt(3))


def test_midranks_share_ties_and_keep_missing():
    np.testing.assert_array_equal(midranks([3.0, 1.0, NAN, 3.0]), [2.5, 1.0, NAN, 2.5])


@pytest.mark.parametrize("correlation", ALL)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1], [2]),
        ([1, 1, 1], [1, 2, 3]),
        ([1, 2, 3], [7, 7, 7]),
        ([1, NAN], [1, 2]),
        ([NAN] * 3, [1, 2, 3]),
    ],
    ids=["empty", "one row", "constant x", "constant y", "one pair", "all missing"],
)
def test_undefined_is_nan(correlation, x, y):
    assert math.isnan(correlation(x, y))


@pytest.mark.parametrize("correlation", ALL)
@pytest.mark.parametrize("level", [0.0, 0.1, -1e300])
def test_a_constant_is_constant_whatever_its_mean_rounds_to(correlation, level):
    assert math.isnan(correlation([level] * 7, np.arange(7)))


@pytest.mark.parametrize("correlation", ALL)
def test_pairs_with_a_missing_side_are_left_out(correlation):
    x, y = [1, NAN, 3, 2, 5], [2, 4, 3, NAN, 1]
    kept_x, kept_y = complete_pairs(x, y)
    assert kept_x.tolist() == [1, 3, 5]
    assert correlation(x, y) == pytest.approx(correlation(kept_x, kept_y), abs=1e-15)


def test_infinite_scores_rank_at_the_ends_and_have_no_pearson():
    assert kendall_tau_b([1, 2, math.inf], [1, 2, 3]) == 1
    assert spearman([-math.inf, 2, 3], [1, 2, 3]) == pytest.approx(1)
    assert math.isnan(pearson([1, 2, math.inf], [1, 2, 3]))


def test_huge_and_tiny_numbers_do_not_overflow():
    assert pearson([1e300, 2e300, 3e300], [1e-300, 2e-300, 3e-300]) == pytest.approx(1)
    assert pearson([-1.7e308, 1.7e308], [0, 1]) == pytest.approx(1)


@pytest.mark.parametrize("correlation", ALL)
@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])])
def test_arrays_that_do_not_pair_are_an_error(correlation, x, y):
    with pytest.raises(DataError, match="1-D"):
        correlation(x, y)


@some
@given(pairs)
def test_equals_scipy(pair):
    from scipy import stats

    x, y = pair
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(kendall_tau_b(x, y))
        return
    assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    unit = np.ptp(x)
    assert pearson(x, y) == pytest.approx(np.corrcoef(x / unit, y / np.ptp(y))[0, 1], abs=1e-7)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 63, 64, 65, 700])
def test_tau_b_equals_scipy_at_every_block_size(n):
    from scipy import stats

    random = np.random.default_rng(n)
    x, y = random.normal(size=n), random.normal(size=n).round(1)
    assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@some
@given(pairs)
def test_tau_b_sees_only_the_order(pair):
    x, y = pair
    np.testing.assert_equal(kendall_tau_b(np.cbrt(x), 3 * y - 7), kendall_tau_b(x, y))


@pytest.mark.parametrize("correlation", ALL)
@some
@given(pair=pairs, data=st.data())
def test_symmetric_odd_and_free_of_row_order(correlation, pair, data):
    x, y = pair
    value = correlation(x, y)
    order = data.draw(st.permutations(range(len(x))))
    np.testing.assert_allclose(correlation(y, x), value, atol=1e-12)
    np.testing.assert_allclose(correlation(-x, y), -value, atol=1e-12)
    np.testing.assert_allclose(correlation(x[order], y[order]), value, atol=1e-9)
    assert math.isnan(value) or -1 <= value <= 1


@pytest.mark.parametrize(("single", "batch"), BATCHES)
def test_a_batch_equals_its_rows(single, batch):
    random = np.random.default_rng(0)
    x = random.integers(0, 5, 23).astype(float)
    y = random.integers(0, 9, (4, 3, 23)).astype(float)
    y[0, 0, :5] = NAN
    y[1, 1] = 2.0
    y[2, 2, 1:] = NAN
    values = batch(x, y)
    assert values.shape == (4, 3)
    expected = [[single(x, row) for row in block] for block in y]
    np.testing.assert_allclose(values, expected, atol=1e-15)
    assert np.isnan(values).sum() == 2


@pytest.mark.parametrize(("single", "batch"), BATCHES)
def test_a_batch_may_vary_on_both_sides(single, batch):
    x, y = np.random.default_rng(1).normal(size=(2, 6, 11))
    np.testing.assert_allclose(batch(x, y), [single(*row) for row in zip(x, y, strict=True)], atol=1e-15)


def test_within_groups_by_hand():
    # a: order kept, 1; b: order reversed, -1; c: constant, dropped; d: one row, dropped. Levels between
    # groups would give another number.
    x = [1, 2, 11, 12, 5, 5, 9]
    y = [1, 2, 12, 11, 1, 2, 9]
    result = grouped_correlation(kendall_tau_b, x, y, list("aabbccd"))
    assert (result.value, result.groups_used, result.groups_dropped) == (0.0, 2, 2)


def test_groups_need_not_be_contiguous_or_of_one_type():
    result = grouped_correlation(pearson, [1, 1, 2, 2], [3, 9, 4, 1], [("a", 1), None, ("a", 1), None])
    assert (result.value, result.groups_used) == (pytest.approx(0.0), 2)


def test_no_defined_group_is_nan():
    result = grouped_correlation(spearman, [1, 2], [1, 2], ["a", "b"])
    assert math.isnan(result.value)
    assert result.groups_dropped == 2


def test_one_label_per_row_is_needed():
    with pytest.raises(DataError, match="3 groups for 2 rows"):
        grouped_correlation(pearson, [1, 2], [1, 2], "abc")


@pytest.mark.parametrize("n", range(3, 60))
def test_the_same_order_is_exactly_one(n):
    x = np.arange(n) // 2.0
    assert kendall_tau_b(x, x) == 1
    assert kendall_tau_b(x, -x) == -1


def test_the_docstring_example_holds():
    assert kendall_tau_b([1, 2, 3], [1, 3, 2]) == 1 / 3


def test_the_influence_of_a_row_by_hand():
    # With weight w on the first row: (2 w - 1) / (2 w + 1), whose derivative at 1 is (2 * 3 - 1 * 2) / 9.
    assert kendall_tau_b_influence([1, 2, 3], [1, 3, 2]) == pytest.approx([4 / 9, -2 / 9, -2 / 9])


@given(pairs)
@some
def test_influences_add_up_to_nothing_and_are_the_slope_of_tau_b(pair):
    x, y = pair
    influence = kendall_tau_b_influence(x, y)
    if math.isnan(kendall_tau_b(x, y)):
        assert np.isnan(influence).all()
        return
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    # A row given twice among 200 copies of each has weight 1.005: tied copies of a row change nothing else.
    step, many = 1 / 200, np.repeat(np.arange(x.size), 200)
    more = np.append(many, 0)
    slope = (kendall_tau_b(x[more], y[more]) - kendall_tau_b(x[many], y[many])) / step
    assert slope == pytest.approx(influence[0], abs=0.02)


def test_influences_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    x, y = np.random.default_rng(0).integers(0, 6, size=(2, 50))
    whole = kendall_tau_b_influence(x, y)
    monkeypatch.setattr(correlation, "_BLOCK", 120)
    assert np.array_equal(kendall_tau_b_influence(x, y), whole)


@given(pairs, st.integers(1, 6), st.integers(0, 99))
@some
def test_tau_b_without_each_part_is_to_the_last_bit_that_of_the_rows_left(pair, parts, seed):
    x, y = pair
    part = np.random.default_rng(seed).integers(0, parts, x.size)
    expected = [kendall_tau_b(x[part != one], y[part != one]) for one in range(parts)]
    assert np.array_equal(kendall_tau_b_left_out(x, y, part, parts), expected, equal_nan=True)
