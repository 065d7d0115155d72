"""Permutation tests: honest under the null with group levels, able to find what is there."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, batch_pearson, kendall_tau_b
from metricsmith.stats.resampling import (
    MINIMUM_GROUPS,
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    paired_permutation_test,
    permutation_null,
    permutation_p_value,
    permutation_test,
)

NAN = math.nan
EQUAL = [6] * 20
UNEQUAL = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] * 2
LOPSIDED = [40] + [2] * 20


def rejection_rate(sizes, keep_groups, simulations=300):
    """Share of p <= .05 for unrelated sides that both have strong group levels."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rejected = 0
    for seed in range(simulations):
        random = np.random.default_rng(seed)
        x, y = 2 * random.normal(size=(2, len(sizes)))[:, groups] + random.normal(size=(2, groups.size))
        test = permutation_test(
            batch_pearson, x, y, groups if keep_groups else None, permutations=99, seed=seed, batched=True
        )
        rejected += test.p_value <= 0.05
    return rejected / simulations


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL, LOPSIDED], ids=["equal", "unequal", "one large group"])
def test_type_one_error_stays_near_five_percent_with_group_levels(sizes):
    assert 0.01 <= rejection_rate(sizes, keep_groups=True) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL, LOPSIDED], ids=["equal", "unequal", "one large group"])
def test_row_permutation_would_reject_far_too_often(sizes):
    assert rejection_rate(sizes, keep_groups=False, simulations=100) > 0.15


def test_singletons_are_the_row_permutation():
    x, y = np.random.default_rng(0).normal(size=(2, 4))
    draws = permutation_null(kendall_tau_b, x, y, list("dcba"), permutations=2000)
    exact = [kendall_tau_b(x, np.array(order)) for order in permutations(y)]
    values, counts = np.unique(np.round(draws, 9), return_counts=True)
    expected, weights = np.unique(np.round(exact, 9), return_counts=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(counts / 2000, weights / 24, atol=0.04)


def test_blocks_of_equal_size_stay_together_and_are_permuted_inside():
    groups = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    rating = 10 * groups + np.arange(9) / 10
    seen = set()

    def spy(_, y):
        blocks = [tuple(y[groups_sorted == group]) for group in range(3)]
        assert sorted(y) == sorted(rating)
        assert all(len({int(value // 10) for value in block}) == 1 for block in blocks)
        seen.add(tuple(y))
        return 0.0

    groups_sorted = np.sort(groups)
    permutation_null(spy, np.arange(9), rating, groups, permutations=500)
    assert len(seen) > 300  # out of 3! x 3!^3 = 1296 arrangements


def test_each_group_gets_the_ratings_of_one_group_when_sizes_differ():
    groups = list("abbcccc")
    rating = np.array([1.0, 20, 21, 300, 301, 302, 303])
    level = dict(zip(rating.tolist(), groups, strict=True))

    def spy(_, y):
        blocks = [y[:1].tolist(), y[1:3].tolist(), y[3:].tolist()]
        donors = [{level[value] for value in block} for block in blocks]
        assert all(len(donor) == 1 for donor in donors)
        assert len(set.union(*donors)) == 3
        for block, donor in zip(blocks, donors, strict=True):
            uses = [block.count(value) for value, group in level.items() if group in donor]
            assert max(uses) - min(uses) <= 1
        return 0.0

    permutation_null(spy, np.arange(7), rating, groups, permutations=100)


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL])
def test_a_real_association_is_found(sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.default_rng(0)
    x = random.normal(size=groups.size)
    y = x + random.normal(size=groups.size) + random.normal(size=len(sizes))[groups]
    test = permutation_test(batch_kendall_tau_b, x, y, groups, permutations=999, batched=True)
    assert test.p_value == 1 / 1000
    assert test.observed == kendall_tau_b(x, y)


def test_too_few_groups_cannot_make_a_difference_between_groups_significant():
    sizes = [10] * (MINIMUM_GROUPS - 1)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    test = permutation_test(batch_kendall_tau_b, groups, groups, groups, permutations=2000, batched=True)
    assert test.p_value == pytest.approx(2 / 24, abs=0.02)


def test_batched_and_single_statistics_give_the_same_draws_whatever_the_order_of_groups():
    x, y = np.random.default_rng(3).normal(size=(2, 12))
    groups = list("abcabcabcaab")
    single = permutation_null(kendall_tau_b, x, y, groups, permutations=50)
    np.testing.assert_allclose(
        permutation_null(batch_kendall_tau_b, x, y, groups, permutations=50, batched=True), single, atol=1e-15
    )


def test_rows_without_both_values_are_left_out():
    x, y, groups = [1.0, 2, 3, 4, 9], [2.0, 1, 4, 3, NAN], list("aabbc")
    with_gap = permutation_test(kendall_tau_b, x, y, groups, permutations=50)
    assert with_gap == permutation_test(kendall_tau_b, x[:4], y[:4], groups[:4], permutations=50)


def test_p_value_by_hand():
    # 2 of 4 draws at least as far from 0 as .5: (2 + 1) / (4 + 1)
    test = permutation_p_value(-0.5, [0.5, 0.2, NAN, -0.7, 0.4])
    assert (test.p_value, test.draws, test.undefined) == (0.6, 4, 1)


def test_rounding_does_not_make_an_equal_draw_less_extreme():
    assert permutation_p_value(0.1 + 0.2, [0.3]).p_value == 1


def test_a_one_sided_p_value_by_hand():
    # At least .3: .3 itself, .5 and what rounding puts beside .3; -.7 is far out on the other side.
    assert permutation_p_value(0.3, [0.5, 0.2, -0.7, 0.3, NAN], "greater").p_value == 3 / 5
    assert permutation_p_value(-0.3, [0.5, 0.2, -0.7, -0.1], "greater").p_value == 4 / 5
    assert permutation_p_value(0.1 + 0.2, [0.3], "greater").p_value == 1


def test_undefined_has_no_p_value():
    assert math.isnan(permutation_p_value(NAN, [0.1]).p_value)
    assert math.isnan(permutation_p_value(0.1, [NAN]).p_value)
    assert math.isnan(permutation_test(kendall_tau_b, [1, 1], [1, 2], permutations=5).p_value)
    assert math.isnan(permutation_test(batch_pearson, [], [], permutations=5, batched=True).p_value)


def test_bad_arguments_are_errors():
    with pytest.raises(DataError, match="groups for 3 rows"):
        permutation_test(kendall_tau_b, [1, 2, 3], [1, 2, 3], ["a"])
    with pytest.raises(OptionError, match="0 resamples"):
        permutation_test(kendall_tau_b, [1, 2], [1, 2], permutations=0)


def paired_data(seed, lead, level):
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), 5)
    rating = random.normal(size=100)
    shared = level * random.normal(size=20)[groups]
    first = lead * rating + shared + random.normal(size=100)
    return first, shared + random.normal(size=100), rating, groups


def test_paired_test_finds_the_better_prediction_on_any_scale():
    first, second, rating, groups = paired_data(0, lead=1.0, level=0)
    test = paired_permutation_test(
        batch_kendall_tau_b, 50 + 1000 * first, second, rating, groups, permutations=499, batched=True
    )
    assert test.p_value == 1 / 500
    assert test.observed == pytest.approx(kendall_tau_b(first, rating) - kendall_tau_b(second, rating))
    mirrored = paired_permutation_test(kendall_tau_b, second, first, rating, groups, permutations=499)
    assert mirrored.observed == pytest.approx(-test.observed)
    assert mirrored.p_value == 1 / 500


def test_paired_test_does_not_depend_on_the_units_of_a_prediction():
    first, second, rating, groups = paired_data(1, lead=0.3, level=0)
    test, moved = (
        paired_permutation_test(kendall_tau_b, side, second, rating, groups, permutations=199)
        for side in (first, 50 + 1000 * first)
    )
    assert test.p_value == moved.p_value > 1 / 200


@pytest.mark.slow
def test_paired_test_does_not_reject_equals():
    rejected = 0
    for seed in range(200):
        first, second, rating, groups = paired_data(seed, lead=0.0, level=1)
        test = paired_permutation_test(
            batch_pearson, first, second, rating, groups, permutations=99, seed=seed, batched=True
        )
        rejected += test.p_value <= 0.05
    assert rejected / 200 <= 0.085


def test_identical_predictions_have_p_one():
    x, y = np.random.default_rng(0).normal(size=(2, 10))
    assert paired_permutation_test(kendall_tau_b, x, x, y, permutations=20).p_value == 1


def test_paired_swaps_whole_groups_and_drops_incomplete_rows():
    groups = np.array([0, 0, 1, 1, 2])
    first, second = np.array([1.0, 1, 1, 1, NAN]), np.array([2.0, 2, 2, 2, 2])

    def spy(prediction, rating):
        assert prediction.size == 4
        assert prediction[0] == prediction[1]
        assert prediction[2] == prediction[3]
        return float(prediction.sum())

    test = paired_permutation_test(spy, first, second, np.arange(5), groups, permutations=50, standardize=False)
    assert test.observed == -4


def test_a_test_ends_early_where_its_p_value_is_clear():
    random = np.random.default_rng(0)
    rating = random.normal(size=60)
    near, far = rating + random.normal(size=60) / 4, random.normal(size=60)
    also = rating + random.normal(size=60) / 4

    def drawn(first, second, stop, permutations=450):
        return paired_permutation_test(
            batch_pearson, first, second, rating, permutations=permutations, batched=True, alternative="greater",
            stop=stop,
        )  # fmt: skip

    bounds = (0.02, 0.5)
    for first, second in ((near, far), (far, near)):  # b / m is 0 of 100, and 100 of 100
        assert drawn(first, second, None).draws == 450
        early = drawn(first, second, bounds)
        assert early.draws == 100
        assert early == drawn(first, second, None, permutations=100)  # the same draws come first
    one, other = sorted((near, also), key=lambda metric: -np.corrcoef(metric, rating)[0, 1])
    undecided = drawn(one, other, bounds)
    assert 0.02 < undecided.p_value < 0.5
    assert undecided == drawn(one, other, None)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_a_test_does_not_end_at_its_bounds_themselves(share):
    def exchange(*columns):
        return lambda swap: np.where(np.arange(len(swap)) % 100 < 100 * share, 1.0, -1.0)

    test = paired_permutation_test(
        batch_pearson, np.arange(60.0), np.arange(60.0), np.arange(60.0), permutations=1000, alternative="greater",
        exchange=exchange, stop=(0.02, 0.5),
    )  # fmt: skip
    assert (test.draws, test.observed) == (1000, 1)
    assert test.p_value == (1000 * share + 1) / 1001


@pytest.mark.parametrize("stop", [None, (0.02, 0.5)])
def test_without_an_observed_difference_there_is_no_p_value_and_no_early_end(stop):
    flat, rating = np.zeros(60), np.arange(60.0)
    test = paired_permutation_test(batch_pearson, flat, rating, rating, permutations=250, batched=True, stop=stop)
    assert np.isnan([test.observed, test.p_value]).all()
    assert test.draws + test.undefined == 250


# Rows of several numbers


def test_a_row_of_one_number_is_that_number():
    first, second, rating, groups = paired_data(2, lead=0.4, level=1)
    for options in ({}, {"standardize": False}, {"alternative": "greater"}, {"batched": True, "seed": 3}):
        statistic = batch_pearson if options.get("batched") else kendall_tau_b
        plain, rows = (
            paired_permutation_test(statistic, *sides, rating, groups, permutations=60, **options)
            for sides in ((first, second), (first[:, None], second[:, None]))
        )
        assert rows == plain


def test_the_numbers_of_a_row_are_swapped_together():
    first, second = np.arange(8.0).reshape(4, 2), np.arange(8.0).reshape(4, 2) + 100

    def together(one, other):
        assert (other - one == 1).all()  # both of one side
        return float(one.sum() + other.sum())

    test = paired_permutation_test(together, first, second, permutations=50, standardize=False)
    assert test.observed == 2 * 4 * -100
    assert test.p_value < 1


def test_a_ratio_of_sums_by_hand():
    # hits and trials: 3 of 8 and 1 of 8; of the four ways to swap two rows two are as far apart as 2/8.
    first, second = [[2.0, 4], [1, 4]], [[1.0, 4], [0, 4]]
    test = paired_permutation_test(
        lambda hits, trials: hits.sum(axis=-1) / trials.sum(axis=-1), first, second, permutations=4000, batched=True,
        standardize=False,
    )  # fmt: skip
    assert test.observed == 3 / 8 - 1 / 8
    assert test.p_value == pytest.approx(0.5, abs=0.03)


def test_a_row_that_lacks_one_of_its_numbers_is_left_out():
    first, second = np.arange(8.0).reshape(4, 2), np.arange(8.0).reshape(4, 2) ** 2
    gap = first.copy()
    gap[3, 1] = NAN

    def total(one, other):
        return float(one.sum() - other.sum() ** 2)

    with_gap = paired_permutation_test(total, gap, second, permutations=20, standardize=False)
    assert with_gap == paired_permutation_test(total, first[:3], second[:3], permutations=20, standardize=False)


def test_rows_of_another_length_cannot_be_swapped():
    with pytest.raises(DataError, match="rows of 2 and of 3 numbers cannot be swapped"):
        paired_permutation_test(lambda *columns: 0.0, np.ones((4, 2)), np.ones((4, 3)))


METHODS = [(holm, "holm"), (benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by")]


def test_holm_by_hand():
    # sorted .01 .02 .04: 3 x .01, max(.03, 2 x .02), max(.04, 1 x .04)
    np.testing.assert_allclose(holm([0.02, 0.04, 0.01]), [0.04, 0.04, 0.03])


def test_benjamini_hochberg_by_hand():
    # sorted .01 .02 .04: .04 x 3/3, min(.04, .02 x 3/2), min(.03, .01 x 3/1)
    np.testing.assert_allclose(benjamini_hochberg([0.02, 0.04, 0.01]), [0.03, 0.04, 0.03])


def test_benjamini_yekutieli_by_hand():
    # benjamini_hochberg's .03 .04 .03, times 1 + 1/2 + 1/3
    np.testing.assert_allclose(benjamini_yekutieli([0.02, 0.04, 0.01]), np.array([0.03, 0.04, 0.03]) * 11 / 6)


@pytest.mark.parametrize(("method", "name"), METHODS)
@settings(deadline=None, max_examples=50)
@given(p=st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), min_size=1, max_size=20))
def test_equals_statsmodels(method, name, p):
    from statsmodels.stats.multitest import multipletests

    np.testing.assert_allclose(method(p), multipletests(p, method=name)[1], atol=1e-12)


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_missing_tests_stay_missing_and_do_not_count(method, name):
    adjusted = method([0.01, math.nan, 0.04])
    assert math.isnan(adjusted[1])
    np.testing.assert_allclose(adjusted[[0, 2]], method([0.01, 0.04]))
    assert method([]).shape == (0,)


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_a_statistic_is_not_a_p_value(method, name):
    with pytest.raises(OptionError, match=r"p-value 1\.2"):
        method([0.1, 1.2])
