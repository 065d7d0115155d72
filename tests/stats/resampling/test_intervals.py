"""Intervals: closed forms by hand and against statsmodels."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import OptionError
from metricsmith.stats.resampling import mean_interval, mean_test, wilson_interval
from metricsmith.stats.resampling.intervals import percentile_interval

NAN = math.nan


def test_percentiles_of_resampled_values_leave_out_undefined_ones():
    # Of 0 to 40 the quantiles .025 and .975 are 1 and 39.
    interval = percentile_interval([*range(41), NAN, NAN], 0.95)
    assert (interval.low, interval.high) == pytest.approx((1, 39))
    assert (interval.draws, interval.undefined) == (41, 2)
    nothing = percentile_interval([NAN], 0.95)
    assert math.isnan(nothing.low)
    assert (nothing.draws, nothing.undefined) == (0, 1)


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
