"""Intervals: closed forms by hand and against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark import loaded
from metricsmith.errors import OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import (
    correlation_interval,
    mean_interval,
    mean_test,
    measured_coverage,
    repeated_interval,
    signed_rank_test,
    symmetric_interval,
    wilson_interval,
)
from metricsmith.stats.resampling.intervals import MEASURED, percentile_interval

NAN = math.nan


def test_percentiles_of_resampled_values_leave_out_undefined_ones():
    # Of 0 to 40 the quantiles .025 and .975 are 1 and 39.
    interval = percentile_interval([*range(41), NAN, NAN], 0.95)
    assert (interval.low, interval.high) == pytest.approx((1, 39))
    assert (interval.draws, interval.undefined) == (41, 2)
    nothing = percentile_interval([NAN], 0.95)
    assert math.isnan(nothing.low)
    assert (nothing.draws, nothing.undefined) == (0, 1)


def test_a_symmetric_interval_reaches_as_far_as_most_draws_lie_from_the_estimate():
    # The distances from .5 are 0 to .4 by hundredths; their quantile .95 is .38.
    draws = [0.5 + (-1) ** step * step / 100 for step in range(41)]
    found = symmetric_interval(0.5, [*draws, NAN], level=0.95, bounds=(-1.0, 1.0))
    assert (found.low, found.high) == pytest.approx((0.12, 0.88))
    assert (found.draws, found.undefined) == (41, 1)
    assert symmetric_interval(0.9, draws, level=0.95, bounds=(-1.0, 1.0)).high == 1.0
    for estimate, values in ((NAN, [0.1, 0.2]), (0.5, [NAN]), (0.5, [])):
        assert math.isnan(symmetric_interval(estimate, values, level=0.95, bounds=(-1.0, 1.0)).low)


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


def test_one_sided_tests_equal_scipys():
    from scipy.stats import ttest_1samp, wilcoxon

    values = [0.2, 0.3, -0.1, 0.4, -0.05]
    greater = mean_test(values, alternative="greater")
    assert greater == pytest.approx(ttest_1samp(values, 0, alternative="greater").pvalue)
    assert mean_test([-value for value in values], alternative="greater") == pytest.approx(1 - greater)
    assert signed_rank_test([*values, math.nan]) == wilcoxon(values, alternative="greater").pvalue
    # Ranks of size 1 and 2 are below 0: of the 2^5 signs those with a sum of negative ranks up to 3 are five.
    assert signed_rank_test(values) == pytest.approx(5 / 32)


def test_one_sided_tests_are_defined_where_they_can_be():
    assert mean_test([-0.3, -0.3], alternative="greater") == 1.0
    assert mean_test([0.3, 0.3], alternative="greater") == 0.0
    assert signed_rank_test([0.0, 0.0]) == 1.0
    assert math.isnan(signed_rank_test([0.3]))


def test_the_t_test_is_defined_where_it_can_be():
    assert math.isnan(mean_test([0.3]))
    assert mean_test([0.0, 0.0]) == 1.0
    assert mean_test([0.3, 0.3]) == 0.0


REPLICATIONS = 400


@pytest.fixture(scope="module")
def benchmark():
    return loaded("coverage")


@pytest.mark.parametrize("kind", MEASURED)
def test_the_nearest_smaller_number_of_groups_counts(kind):
    table = MEASURED[kind]
    assert [measured_coverage(kind, groups) for groups in (5, 9, 10, 17, 18, 29)] == [
        table[5], table[5], table[10], table[10], table[18], table[18]
    ]  # fmt: skip
    assert measured_coverage(kind, 30) is None
    assert measured_coverage(kind, 1000) is None
    assert measured_coverage(kind, 4) == pytest.approx(table.get(3, math.nan), nan_ok=True)
    assert math.isnan(measured_coverage(kind, 2))


def test_an_unknown_kind_is_an_error_that_names_the_known_ones():
    with pytest.raises(OptionError, match="'median': choose one of share, mean, tau, difference"):
        measured_coverage("median", 10)


# Where docs/coverage.md has its lowest coverage.
LOWEST = {
    ("share", 5): (0.5, 0.6, "1-11"),
    ("share", 10): (0.95, 0.0, "1"),
    ("share", 18): (0.8, 0.3, "1-11"),
    ("mean", 5): ("skewed (ninth power of a uniform number)", 0.0, "1"),
    ("mean", 10): ("skewed (ninth power of a uniform number)", 0.0, "1"),
    ("mean", 18): ("drops: 10 % -.2, 50 % 0, rest up to 1", 0.6, "1-11"),
    ("tau", 5): (0.0, 0.0, "1"),
    ("difference", 3): ("thumbs: .5, .2", 0.3, "1-11"),
    ("difference", 10): ("thumbs: .5, .2", 0.6, "1-11"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "groups"), LOWEST)
def test_the_table_holds_in_a_fresh_simulation_of_its_worst_data(benchmark, kind, groups):
    cell = benchmark.Cell(groups, *LOWEST[kind, groups])
    simulate, _ = benchmark.STUDIES[kind]
    covered = next(iter(simulate(cell, REPLICATIONS, seed=1).values()))
    expected = MEASURED[kind][groups]
    assert covered == pytest.approx(expected, abs=3.5 * math.sqrt(expected * (1 - expected) / REPLICATIONS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "truth"),
    [("share", 0.95), ("mean", "70 % zeros, rest up to 1"), ("tau", 0.3), ("difference", "levels: .5, .2")],
)
def test_thirty_groups_are_enough(benchmark, kind, truth):
    """Intervals cover 93 to 97 % within three Monte Carlo errors; the percentile bootstrap does not, for shares."""
    simulate, _ = benchmark.STUDIES[kind]
    found = simulate(benchmark.Cell(30, truth, 0.3, "6"), REPLICATIONS, seed=2)
    assert 0.93 - 3 * 0.0128 < next(iter(found.values())) < 0.97 + 3 * 0.0085
    if kind == "share":
        assert found["percentile bootstrap"] < 0.9


@pytest.mark.slow
def test_the_permutation_test_keeps_its_level(benchmark):
    (rate,) = benchmark.rejections(benchmark.Cell(10, 0.0, 0.6, "6"), REPLICATIONS, 0).values()
    assert 0.05 - 3 * 0.011 < rate < 0.05 + 3 * 0.011


@pytest.mark.parametrize("rows", ["1", "3", "1-11"])
def test_the_benchmark_computes_the_interval_of_the_library(benchmark, rows):
    """Sums over pairs of groups give the same tau-b and leave-one-out values as the rows do."""
    random = np.random.default_rng(0)
    for _ in range(10):
        x, y, codes = benchmark.pairs(benchmark.Cell(12, 0.3, 0.0 if rows == "1" else 0.3, rows), random)
        found = correlation_interval(batch_kendall_tau_b, x, y, codes, batched=True)
        twin = benchmark.tau_intervals(x, y, codes, random)["correlation_interval"]
        assert twin == pytest.approx((found.low, found.high))


@pytest.mark.parametrize("truth", ["levels: .5, .2", "thumbs: .3, .3"])
def test_the_benchmark_computes_the_paired_interval_of_the_library(benchmark, truth):
    random, pair = np.random.default_rng(0), benchmark.PAIRS[truth]
    codes = benchmark.labels(np.array([1, 4, 6, 2, 3, 5, 9, 7]))
    for _ in range(5):
        x, z, y = benchmark.normals((0.6, 0.4), codes.size, random)
        y = np.searchsorted(pair.cuts, y)
        found = repeated_interval(batch_kendall_tau_b, [x], y, codes, against=[z], batched=True)
        twin = benchmark.difference_intervals(x, z, y, codes, random)["repeated_interval"]
        assert twin == pytest.approx((found.low, found.high))


def test_the_two_predictions_of_the_benchmark_err_together(benchmark):
    x, z, y = benchmark.normals((0.6, 0.3), 200_000, np.random.default_rng(0))
    missed = np.corrcoef(x - 0.6 * y, z - 0.3 * y)[0, 1]
    assert (np.corrcoef(x, y)[0, 1], np.corrcoef(z, y)[0, 1], missed) == pytest.approx((0.6, 0.3, 0.5), abs=0.01)


def test_the_benchmarks_bootstraps_agree_with_scipys(benchmark):
    from scipy.stats import bootstrap

    values = np.random.default_rng(4).exponential(size=25)
    ours = benchmark.bootstraps(values[None], np.ones((1, 25), dtype=int), np.random.default_rng(5))
    for name, method in (("BCa bootstrap", "BCa"), ("percentile bootstrap", "percentile")):
        theirs = bootstrap((values,), np.mean, method=method, n_resamples=9999, random_state=6).confidence_interval
        width = theirs.high - theirs.low
        assert np.ravel(ours[name]) == pytest.approx([theirs.low, theirs.high], abs=0.12 * width)


@pytest.mark.parametrize("tau", [0.3, 0.6])
def test_the_benchmarks_true_tau_b_is_that_of_a_large_sample(benchmark, tau):
    random = np.random.default_rng(0)
    x, rest = random.normal(size=(2, 200_000))
    r = benchmark.correlation_for(tau)
    y = np.searchsorted(benchmark.CUTS, r * x + math.sqrt(1 - r * r) * rest)
    assert kendall_tau_b(x, y) == pytest.approx(tau, abs=0.005)


def test_tables_name_lowest_mean_and_highest(benchmark):
    first, second = benchmark.cells((0.5,), (10,))[:2]
    results = {first: {"own": 0.9, "other": 0.5}, second: {"own": 0.96, "other": 0.7}}
    assert benchmark.summary(results)[2:] == ["| own | 90.0 / 93.0 / 96.0 |", "| other | 50.0 / 60.0 / 70.0 |"]
    assert benchmark.details(results)[2:] == ["| 10 | 0.5 | 90.0 | 96.0 |"]
    assert benchmark.worst(results) == {10: (0.9, first)}
