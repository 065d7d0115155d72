"""Intervals: coverage of whole groups, agreement of the two ways to compute, closed forms against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.correlation import batch_kendall_tau_b, batch_pearson, kendall_tau_b
from metricsmith.errors import DataError, OptionError
from metricsmith.resampling import group_bootstrap, mean_interval, mean_test, wilson_interval

NAN = math.nan


def mean(values):
    return float(np.mean(values))


def test_the_same_seed_gives_the_same_interval_and_another_does_not():
    values = np.random.default_rng(0).normal(size=30)
    first = group_bootstrap(mean, [values], seed=3)
    assert group_bootstrap(mean, [values], seed=3) == first
    assert group_bootstrap(mean, [values], seed=4) != first


@pytest.mark.parametrize("groups", [None, [0] * 5 + [1] * 2 + [2] * 9 + [3] * 14])
def test_batched_and_single_statistics_give_the_same_interval(groups):
    x, y = np.random.default_rng(1).normal(size=(2, 30)).round(1)
    x[4] = NAN
    single = group_bootstrap(kendall_tau_b, [x, y], groups, resamples=200)
    batched = group_bootstrap(batch_kendall_tau_b, [x, y], groups, resamples=200, batched=True)
    assert batched.low == pytest.approx(single.low, abs=1e-12)
    assert batched.high == pytest.approx(single.high, abs=1e-12)
    assert (batched.draws, batched.undefined) == (single.draws, single.undefined)


def test_whole_groups_are_drawn():
    """Rows of a group stand or fall together: every draw's mean is one of the means that groups can give."""
    groups = ["a", "b", "b", "a", "c", "c"]
    values = np.array([1.0, 10, 10, 1, 100, 100])
    seen = set()

    def spy(rows):
        seen.add(tuple(sorted(rows)))
        return float(rows.mean())

    group_bootstrap(spy, [values], groups, resamples=200)
    assert all(rows.count(level) % 2 == 0 for rows in seen for level in (1.0, 10.0, 100.0))
    assert {len(rows) for rows in seen} == {6}
    assert len(seen) == 10  # multisets of 3 out of 3 groups


def test_arrays_of_other_types_keep_it():
    labels = np.array(["good", "bad", "good", "good"])
    share = group_bootstrap(lambda rows: float(np.mean(rows == "good")), [labels], resamples=100)
    assert 0 <= share.low < share.high <= 1


def test_grouping_widens_the_interval_when_groups_share_a_level():
    random = np.random.default_rng(2)
    groups = np.repeat(np.arange(20), 10)
    values = 3 * random.normal(size=20)[groups] + random.normal(size=200)
    by_group, by_row = group_bootstrap(mean, [values], groups), group_bootstrap(mean, [values])
    assert by_group.high - by_group.low > 2 * (by_row.high - by_row.low)


def test_coverage_is_near_nominal():
    """Mean of 40 groups of unequal size with strong levels, true mean 0, 200 data sets of 200 draws."""
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        groups = np.repeat(np.arange(40), random.integers(1, 6, 40))
        values = random.normal(size=40)[groups] + random.normal(size=groups.size)
        interval = group_bootstrap(mean, [values], groups, resamples=200, seed=seed)
        covered += interval.low <= 0 <= interval.high
    assert 0.88 <= covered / 200 <= 0.98


def test_undefined_draws_are_left_out_and_counted():
    # Two groups with one level each: draws of the same group twice are constant, about half of them.
    interval = group_bootstrap(batch_pearson, [[0, 0, 1, 1], [0, 1, 5, 4]], list("aabb"), resamples=400, batched=True)
    assert interval.draws + interval.undefined == 400
    assert 150 < interval.undefined < 250
    # deviations +-.5 and (-2.5, -1.5, 2.5, 1.5): 4 / sqrt(1 * 17)
    assert (interval.low, interval.high) == pytest.approx([4 / math.sqrt(17)] * 2)


@pytest.mark.parametrize("groups", [["a"] * 4, None])
def test_one_group_or_no_defined_draw_has_no_interval(groups):
    values = [1.0, 2, 3, 4] if groups else [1.0] * 4
    interval = group_bootstrap(kendall_tau_b, [values, [1, 2, 3, 4]], groups, resamples=20)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_bad_arguments_are_errors():
    with pytest.raises(DataError, match="not aligned"):
        group_bootstrap(mean, [[1, 2], [1, 2, 3]])
    with pytest.raises(DataError, match="1 groups for 2 rows"):
        group_bootstrap(mean, [[1, 2]], ["a"])
    for label in (None, NAN):
        with pytest.raises(DataError, match="row 1 has no group"):
            group_bootstrap(mean, [[1, 2]], ["a", label])
    with pytest.raises(OptionError, match="0 resamples"):
        group_bootstrap(mean, [[1, 2]], resamples=0)
    with pytest.raises(OptionError, match="level 95"):
        group_bootstrap(mean, [[1, 2]], level=95)


def test_wilson_by_hand():
    # 8 of 10, z = 1.959964: centre (.8 + z2/20) / (1 + z2/10) = .71674,
    # half width z / 1.38415 * sqrt(.016 + z2/400) = .22658.
    interval = wilson_interval(8, 10)
    assert interval.low == pytest.approx(0.49016, abs=1e-5)
    assert interval.high == pytest.approx(0.94332, abs=1e-5)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_equals_statsmodels(trials, data, level):
    from statsmodels.stats.proportion import proportion_confint

    successes = data.draw(st.integers(0, trials))
    interval = wilson_interval(successes, trials, level=level)
    low, high = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)
    assert 0 <= interval.low <= successes / trials <= interval.high <= 1


def test_wilson_of_nothing_is_nan_and_impossible_counts_are_errors():
    assert math.isnan(wilson_interval(0, 0).low)
    with pytest.raises(OptionError, match="3 successes in 2 trials"):
        wilson_interval(3, 2)


def test_mean_interval_by_hand():
    # mean 2, s = 1, t(.975; 2) = 4.302653 (table): half width 4.302653 / sqrt(3) = 2.484138
    interval = mean_interval([1, NAN, 2, 3])
    assert (interval.low, interval.high) == pytest.approx((-0.484138, 4.484138), abs=1e-6)
    assert interval.undefined == 1


def test_the_mean_interval_is_cut_to_its_bounds():
    assert mean_interval([-1, 1], bounds=(-1, 1)) == mean_interval([-1, 1, 0], bounds=(-1, 1))
    wide, cut = mean_interval([0.9, 0.7]), mean_interval([0.9, 0.7], bounds=(-1, 1))
    assert (cut.low, cut.high) == (wide.low, 1)


def test_overlapping_training_rows_widen_the_mean_interval():
    # 5 folds: variance s2 (1/5 + 1/4) for s2 / 5
    plain, corrected = mean_interval(range(5)), mean_interval(range(5), test_to_train=1 / 4)
    ratio = (corrected.high - corrected.low) / (plain.high - plain.low)
    assert ratio == pytest.approx(math.sqrt((1 / 5 + 1 / 4) / (1 / 5)))


def test_one_value_has_no_interval():
    assert math.isnan(mean_interval([0.3]).low)


def test_the_t_test_of_a_mean_agrees_with_its_interval():
    values = [0.2, 0.3, 0.1, 0.4]
    for level in (0.9, 0.95, 0.99):
        interval = mean_interval(values, level=level, test_to_train=1 / 3)
        assert (mean_test(values, test_to_train=1 / 3) < 1 - level) == (interval.low > 0)


def test_the_t_test_equals_scipys_without_overlap():
    from scipy.stats import ttest_1samp

    values = [0.2, 0.3, -0.1, 0.4, 0.0]
    assert mean_test(values) == pytest.approx(ttest_1samp(values, 0).pvalue)
    assert mean_test([*values, math.nan]) == mean_test(values)


def test_the_t_test_is_defined_where_it_can_be():
    assert math.isnan(mean_test([0.3]))
    assert mean_test([0.0, 0.0]) == 1.0
    assert mean_test([0.3, 0.3]) == 0.0
