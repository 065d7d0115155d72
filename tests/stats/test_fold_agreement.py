"""Agreement over folds: means inside folds, an interval where simulations allow one, paired differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import kendall_tau_b, kendall_tau_b_influence, pearson
from metricsmith.stats.fold_agreement import (
    FEW_GROUPS,
    FoldMean,
    agreement_over_folds,
    difference_over_folds,
    fold_mean,
)


def related(n, groups, seed=0, strength=0.7):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return x, np.round(strength * x + random.normal(size=n)), np.arange(n) % groups


def folds(count=4, strength=0.7, rows=30, groups=6):
    parts = [related(rows, groups, seed, strength) for seed in range(count)]
    return [x for x, _, _ in parts], [y for _, y, _ in parts], [names for _, _, names in parts]


def test_it_is_the_mean_over_folds_with_the_interval_of_the_groups_influence():
    x, y, groups = folds()
    block = agreement_over_folds(x, y, groups)
    taus = [kendall_tau_b(*fold) for fold in zip(x, y, strict=True)]
    pulls = [
        [kendall_tau_b_influence(one, other)[names == name].sum() for name in range(6)]
        for one, other, names in zip(x, y, groups, strict=True)
    ]
    found = fold_mean(taus, pulls)
    assert (block.n, block.groups) == (120, 24)
    assert block.kendall_tau_b == pytest.approx(np.mean(taus))
    assert (block.ci_low, block.ci_high, block.p_value) == pytest.approx((found.low, found.high, found.p_value))
    assert block.pearson == pytest.approx(np.mean([pearson(*fold) for fold in zip(x, y, strict=True)]))


def test_a_strong_association_is_found_and_none_is_not():
    assert agreement_over_folds(*folds(8, strength=0.9)).p_value < 0.01
    block = agreement_over_folds(*folds(strength=0))
    assert block.p_value > 0.05
    assert block.ci_low < 0 < block.ci_high


def test_predictions_are_never_ranked_across_folds():
    """Each fold's predictions on a scale of its own: the same block."""
    x, y, groups = folds()
    shifted = [fold * (place + 1) + 100 * place for place, fold in enumerate(x)]
    block, moved = agreement_over_folds(x, y, groups), agreement_over_folds(shifted, y, groups)
    assert moved.kendall_tau_b == pytest.approx(block.kendall_tau_b)
    assert moved.pearson == pytest.approx(block.pearson)
    assert (moved.ci_low, moved.ci_high) == pytest.approx((block.ci_low, block.ci_high))


def test_undefined_folds_are_left_out():
    x, y, groups = folds()
    block = agreement_over_folds([*x, np.ones(5)], [*y, np.arange(5)], [*groups, np.arange(5)])
    without = agreement_over_folds(x, y, groups)
    assert block.n == without.n + 5
    assert (block.kendall_tau_b, block.ci_low, block.p_value) == (
        without.kendall_tau_b, without.ci_low, without.p_value,
    )  # fmt: skip


def test_five_groups_in_three_folds_have_an_interval_and_four_have_none():
    x, y, _ = folds(3, rows=12)
    five = agreement_over_folds(x, y, [[*"aaaabbbbbbbb"], [*"ccccdddddddd"], [*"eeeeeeeeeeee"]])
    four = agreement_over_folds(x, y, [[*"aaaabbbbbbbb"], [*"cccccccccccc"], [*"eeeeeeeeeeee"]])
    assert five.groups == 5
    assert five.ci_low < five.kendall_tau_b < five.ci_high
    assert math.isfinite(four.kendall_tau_b)
    assert math.isnan(four.ci_low)
    assert math.isnan(four.p_value)


def test_a_fold_that_drops_out_may_leave_too_few_groups_for_influences():
    """Twelve groups, four of them in a fold of one rating: eight are left out one by one."""
    x, y, groups = folds(3, rows=24, groups=4)
    y[0] = np.ones(24)
    block = agreement_over_folds(x, y, groups)
    assert math.isfinite(block.ci_low)


@pytest.mark.parametrize(("rows", "down", "defined"), [(60, 12, True), (60, 9, False), (24, 12, False)])
def test_too_few_rows_or_ratings_besides_the_commonest_have_no_interval(rows, down, defined):
    random = np.random.default_rng(0)
    ratings = np.array([0.0] * down + [1.0] * (rows - down))[random.permutation(rows)].reshape(2, -1)
    block = agreement_over_folds(random.normal(size=ratings.shape), ratings)
    assert math.isfinite(block.kendall_tau_b)
    assert math.isfinite(block.ci_low) is defined


def test_skewed_ratings_get_the_more_cautious_interval():
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 40))
    even, skewed = (random.permuted(np.tile(np.arange(40) < down, (2, 1)), axis=1) for down in (20, 8))
    groups = [np.arange(40) % 5] * 2
    for ratings, power in ((even, 1), (skewed, 2)):
        pulls = [np.bincount(groups[0], kendall_tau_b_influence(a, b)) for a, b in zip(x, ratings, strict=True)]
        taus = [kendall_tau_b(a, b) for a, b in zip(x, ratings, strict=True)]
        expected = fold_mean(taus, pulls, skewed=power == 2)
        assert agreement_over_folds(x, ratings, groups).ci_low == pytest.approx(expected.low)


def test_without_any_defined_fold_everything_is_nan():
    block = agreement_over_folds([[1, 1], [2]], [[1, 2], [1]])
    assert (block.n, block.groups) == (3, 3)
    assert all(math.isnan(getattr(block, name)) for name in ("kendall_tau_b", "ci_low", "p_value", "pearson"))


def test_folds_must_match():
    with pytest.raises(DataError, match="0 folds"):
        agreement_over_folds([], [])
    with pytest.raises(DataError, match="1 of ratings"):
        agreement_over_folds([[1, 2], [1, 2]], [[1, 2]])


def test_a_difference_is_paired_inside_folds():
    x, y, groups = folds()
    noise = np.random.default_rng(9).normal(size=(4, 30))
    others = [one + more for one, more in zip(x, noise, strict=True)]
    found = difference_over_folds(x, others, y, groups)
    first, second = agreement_over_folds(x, y, groups), agreement_over_folds(others, y, groups)
    assert (found.n, found.groups) == (120, 24)
    assert found.kendall_tau_b == pytest.approx(first.kendall_tau_b - second.kendall_tau_b)
    assert found.ci_low < found.kendall_tau_b < found.ci_high
    # Both rest on the same rows: narrower than the two intervals would be together.
    apart = math.hypot(first.ci_high - first.ci_low, second.ci_high - second.ci_low)
    assert found.ci_high - found.ci_low < apart
    back = difference_over_folds(others, x, y, groups)
    assert (back.kendall_tau_b, back.ci_low) == pytest.approx((-found.kendall_tau_b, -found.ci_high))


def test_a_difference_stands_on_the_rows_that_both_predict():
    x, y, groups = folds()
    others = [np.where(np.arange(30) < 5, math.nan, -one) for one in x]
    found = difference_over_folds(x, others, y, groups)
    kept = [one[5:] for one in x], [one[5:] for one in y], [one[5:] for one in groups]
    assert found.n == 100
    assert found.kendall_tau_b == pytest.approx(2 * agreement_over_folds(*kept).kendall_tau_b)


def test_a_prediction_does_not_differ_from_itself():
    x, y, groups = folds()
    found = difference_over_folds(x, x, y, groups)
    assert (found.kendall_tau_b, found.ci_low, found.ci_high) == (0, 0, 0)


FIVE = [0.02, -0.04, 0.01, 0.03, -0.02]  # influences of five groups: 34 squares of .01


def test_the_interval_by_hand():
    # Two folds of five groups: 2 * (5/4 * .0034 + 5/4 * .0034) / 2^2 = .00425; 10 groups less 2 folds.
    found = fold_mean([0.3, 0.5], [FIVE, FIVE])
    error = math.sqrt(0.00425) / (1 - 0.4**2)
    half = stdtrit(8, 0.975) * error
    assert (found.value, found.folds, found.dropped) == (pytest.approx(0.4), 2, 0)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.4) - half))
    assert found.high == pytest.approx(math.tanh(math.atanh(0.4) + half))
    assert found.p_value == pytest.approx(2 * stdtr(8, -math.atanh(0.4) / error))


def test_skewed_ratings_widen_it_once_more_by_the_groups_of_a_fold():
    plain, skewed = (fold_mean([0.1, -0.1], [FIVE, FIVE], skewed=skewed) for skewed in (False, True))
    assert math.atanh(skewed.high) == pytest.approx(math.atanh(plain.high) * math.sqrt(5 / 4))


def test_few_groups_are_left_out_one_by_one():
    # Three folds of two groups; the mean without a group takes that fold's value from `without`, and where that is
    # undefined the mean of the other two.
    values, without = [0.3, 0.0, 0.6], [[0.6, 0.0], [0.0, 0.3], [math.nan, 0.3]]
    found = fold_mean(values, [[0, 0]] * 3, without)
    means = [0.4, 0.2, 0.3, 0.4, 0.15, 0.2]
    error = math.sqrt(5 * np.var(means)) / (1 - 0.3**2)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.3) - stdtrit(5, 0.975) * error))
    assert found.p_value == pytest.approx(2 * stdtr(5, -math.atanh(0.3) / error))


def test_a_difference_lies_on_a_scale_of_twice_the_reach():
    found = fold_mean([1.2, 1.0], [FIVE, FIVE], limit=2.0)
    assert 1.1 < found.high < 2
    assert found.low == pytest.approx(
        2 * math.tanh(math.atanh(0.55) - stdtrit(8, 0.975) * math.sqrt(0.00425) / (2 * (1 - 0.55**2)))
    )


@pytest.mark.parametrize(
    ("values", "influences", "options"),
    [
        ([0.1, 0.2], [[0.1, -0.1]] * 2, {"without": [[0.1, 0.2]] * 2}),  # four groups
        ([0.1] * 4, [[0.1, -0.1]] * 4, {"without": [[0.1, 0.2]] * 4}),  # eight groups in four folds
        ([0.1] * 3, [[0.1, -0.1]] * 3, {"without": [[0.1, 0.2]] * 3, "skewed": True}),  # six, of skewed ratings
        ([0.1] * 3, [[0.1, -0.1]] * 3, {}),  # six, none left out
        ([0.1, 0.1], [[0.0], [0.1] * 12], {}),  # a fold of one group
    ],
)
def test_what_is_too_little_has_a_value_and_no_interval(values, influences, options):
    found = fold_mean(values, influences, **options)
    assert found.value == pytest.approx(np.mean(values))
    assert all(map(math.isnan, (found.low, found.high, found.p_value)))


def test_undefined_folds_drop_out_and_are_counted():
    found = fold_mean([0.3, math.nan, 0.5], [FIVE, [math.nan] * 5, FIVE])
    assert found == FoldMean(*(getattr(fold_mean([0.3, 0.5], [FIVE, FIVE]), name) for name in (
        "value", "low", "high", "p_value", "folds"
    )), dropped=1)  # fmt: skip
    nothing = fold_mean([math.nan], [FIVE])
    assert math.isnan(nothing.value)
    assert (nothing.folds, nothing.dropped) == (0, 1)


def test_a_value_without_spread_is_its_own_interval():
    equal, perfect = fold_mean([0.0, 0.0], [[0.0] * 6] * 2), fold_mean([1.0, 1.0], [[0.0] * 6] * 2)
    assert (equal.low, equal.high, equal.p_value) == (0, 0, 1)
    assert (perfect.low, perfect.high, perfect.p_value) == (1, 1, 0)


def test_what_cannot_be_is_an_error():
    with pytest.raises(DataError, match="2 values and 1 influences"):
        fold_mean([0.1, 0.2], [FIVE])
    with pytest.raises(OptionError, match="limit=0"):
        fold_mean([0.1], [FIVE], limit=0)


@pytest.mark.slow
def test_fits_that_learn_from_each_others_noise_double_the_variance():
    """Folds predict by the mean association of the others, as a fit of noise does: .05 are rejected, not .17."""
    random = np.random.default_rng(0)
    rejected, naive = 0, 0
    for _ in range(1000):
        x = random.normal(size=(5, 40, 12))  # folds, groups of one row, columns
        y = random.normal(size=(5, 40))
        learned = np.einsum("fgc,fg->fc", x, y)
        weights = learned.sum(axis=0) - learned
        values, influences = [], []
        for own, rated, weight in zip(x, y, weights, strict=True):
            part = (own @ (weight / np.linalg.norm(weight))) * rated / 10  # a mean of products in place of tau-b
            values.append(part.mean())
            influences.append((part - part.mean()) / part.size)
        found = fold_mean(values, influences)
        rejected += found.p_value <= 0.05
        variance = sum(float(np.dot(one, one)) * 40 / 39 for one in influences) / 25
        naive += abs(np.mean(values)) > stdtrit(195, 0.975) * math.sqrt(variance)
    assert rejected / 1000 < 0.07
    assert naive / 1000 > 0.11


def test_ten_groups_are_where_influences_begin():
    assert FEW_GROUPS == 10
    nine, ten = (fold_mean([0.1, 0.1], [FIVE, FIVE[:size]]) for size in (4, 5))
    assert math.isnan(nine.low)
    assert ten.low < 0.1
