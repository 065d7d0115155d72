"""Intervals for grouped rows: by hand, against oracles, and what must not move them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import t

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, batch_pearson, kendall_tau_b, pearson
from metricsmith.stats.resampling import (
    correlation_interval,
    group_mean_interval,
    jackknife_interval,
    share_interval,
    wilson_interval,
)

NAN = math.nan
LEVELS = st.sampled_from([0.8, 0.95, 0.99])


def ends(interval):
    return interval.low, interval.high


def grouped(values):
    """Lists of rows (value, group)."""
    return st.lists(st.tuples(values, st.integers(0, 5)), min_size=2, max_size=40)


def columns(rows):
    return [value for value, _ in rows], [group for _, group in rows]


def test_the_share_interval_by_hand():
    # Share .5. Between 2 (.25 + 0 + .25) / 2 = 1/2, within (1/4 + 1/4) / 3 = 1/6, rho (1/2 - 1/6) / (1/2 + 1/6) = 1/2,
    # two groups hold a hit and two a miss: rho 1/2 + 1/2 * .25 / 2.25 = 5/9. Effect 14/9, effective size 54/14.
    interval = share_interval([1, NAN, 1, 1, 0, 0, 0], ["a", "a", "a", "b", "b", "c", "c"])
    assert ends(interval) == pytest.approx(ends(wilson_interval(27 / 14, 54 / 14)))
    assert interval.undefined == 1


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=60), LEVELS)
def test_rows_without_groups_have_wilsons_interval(hits, level):
    plain = wilson_interval(sum(hits), len(hits), level=level)
    assert ends(share_interval(hits, level=level)) == pytest.approx(ends(plain))


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 0.5, 1]), min_size=1, max_size=30), st.integers(2, 4))
def test_rows_repeated_inside_their_group_add_nothing_to_a_share(hits, times):
    once, often = share_interval(hits), share_interval(hits * times, list(range(len(hits))) * times)
    assert ends(often) == pytest.approx(ends(once))


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([0, 1])] * 3), min_size=2, max_size=15), st.integers(2, 3))
def test_groups_of_one_size_repeated_are_never_narrower_where_rows_of_a_group_are_alike(groups, times):
    hits, labels = np.ravel(groups), np.repeat(np.arange(len(groups)), 3)
    once = share_interval(hits, labels)
    assume(once.high - once.low > ends(share_interval(hits))[1] - ends(share_interval(hits))[0] + 1e-9)
    often = share_interval(np.tile(hits, times), np.tile(labels, times))
    assert often.high - often.low >= once.high - once.low - 1e-9


def test_one_group_of_many_that_holds_the_misses_leaves_rho_uncertain():
    # 9 groups of 2 with one miss. Between 2 (8 / 18^2 + (8/18)^2) / 8 = 1/18, within (1/4 + 1/4) / 9 = 1/18: rho 0.
    # One group holds a miss: rho .25 / 1.25 = .2, effect 1.2, effective size 15.
    hits = [1] * 17 + [0]
    interval = share_interval(hits, np.repeat(np.arange(9), 2))
    assert ends(interval) == pytest.approx(ends(wilson_interval(15 * 17 / 18, 15)))


@pytest.mark.parametrize("hit", [0, 1])
def test_rows_that_are_all_alike_count_as_many_as_groups(hit):
    interval = share_interval([hit] * 60, np.repeat(np.arange(10), 6))
    assert ends(interval) == pytest.approx(ends(wilson_interval(10 * hit, 10)))


def test_one_group_counts_as_one_row():
    assert ends(share_interval([1, 1, 1, 0], ["a"] * 4)) == pytest.approx(ends(wilson_interval(0.75, 1)))


@settings(deadline=None)
@given(grouped(st.sampled_from([0, 0.5, 1])), st.randoms(use_true_random=False))
def test_order_and_names_of_groups_do_not_move_a_share_and_hits_mirror_misses(rows, random):
    first = share_interval(*columns(rows))
    mixed = list(rows)
    random.shuffle(mixed)
    hits, groups = columns(mixed)
    assert ends(share_interval(hits, [f"group {-group}" for group in groups])) == pytest.approx(ends(first))
    mirrored = share_interval([1 - hit for hit in hits], groups)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx(ends(first), abs=1e-9)
    assert 0 <= first.low <= np.mean(hits) <= first.high <= 1


def test_no_row_has_no_share_and_wrong_hits_are_errors():
    assert math.isnan(share_interval([]).low)
    assert share_interval([NAN]).undefined == 1
    with pytest.raises(DataError, match=r"1\.5 lies outside \[0, 1\].*NaN"):
        share_interval([1, 1.5])
    with pytest.raises(DataError, match="1 groups for 2 rows"):
        share_interval([1, 0], ["a"])
    with pytest.raises(OptionError, match="level 95"):
        share_interval([1, 0], level=95)


def test_a_symmetric_mean_has_students_interval_by_hand():
    # Mean 3. Sums of deviations: a -2 - 1 = -3, b 0 + 3 = 3, c 0. Variance 3/2 * (9 + 9 + 0) / 25 = 1.08,
    # t(.975; 2) = 4.302653 (table): half width 4.302653 * sqrt(1.08) = 4.471448. The groups are not skewed.
    interval = group_mean_interval([1, 2, 3, NAN, 6, 3], ["a", "a", "b", "a", "b", "c"])
    assert ends(interval) == pytest.approx((3 - 4.471448, 3 + 4.471448), abs=1e-5)
    assert interval.undefined == 1


def test_a_variance_added_to_that_of_a_mean_has_its_own_degrees_of_freedom_and_no_skewness():
    # the variance 1.08 with 2 degrees from above, and .92 with 40: 2 with 2^2 / (1.08^2 / 2 + .92^2 / 40) = 6.6
    values, groups = [1, 2, 3, 6, 3], list("aabbc")
    found = group_mean_interval(values, groups, added=[(0.92, 40)])
    half = t.ppf(0.975, 4 / (1.08**2 / 2 + 0.92**2 / 40)) * math.sqrt(2)
    assert ends(found) == pytest.approx((3 - half, 3 + half))
    assert ends(group_mean_interval(values, groups, added=[(0.0, 4)])) == ends(group_mean_interval(values, groups))
    skewed = [0] * 20 + [0.1, 0.2, 0.9]
    alone, more = group_mean_interval(skewed), group_mean_interval(skewed, added=[(100.0, 1000)])
    assert more.high + more.low == pytest.approx(2 * np.mean(skewed), abs=0.01)
    assert alone.high + alone.low > 2.5 * np.mean(skewed)
    # values that are all alike have none but the added one
    half = t.ppf(0.975, 40) * math.sqrt(0.92)
    assert ends(group_mean_interval([3, 3, 3], added=[(0.92, 40)])) == pytest.approx((3 - half, 3 + half))


@settings(deadline=None)
@given(grouped(st.integers(-4, 9)), LEVELS)
def test_halls_transformation_takes_both_ends_to_students_quantiles(rows, level):
    """The transformation as it stands in the paper, forward: T + k T^2 / 3 + k^2 T^3 / 27 + k / 6."""
    from scipy.stats import skew, t

    values, groups = columns(rows)
    names = sorted(set(groups))
    sums = [sum(v - np.mean(values) for v, group in rows if group == name) for name in names]
    assume(len(names) > 1 and np.ptp(sums) > 1e-6)
    g = len(names)
    error = math.sqrt(g / (g - 1)) * np.linalg.norm(sums) / len(values)
    k = skew(sums) / math.sqrt(g)
    interval = group_mean_interval(values, groups, level=level)
    reached = [(np.mean(values) - end) / error for end in (interval.high, interval.low)]
    forward = [T + k * T**2 / 3 + k**2 * T**3 / 27 + k / 6 for T in reached]
    quantile = t.ppf((1 + level) / 2, g - 1)
    assert forward == pytest.approx([-quantile, quantile], rel=1e-3, abs=1e-3)


def test_the_long_tail_gets_the_long_side():
    values = [0] * 20 + [0.1, 0.2, 0.9]
    interval, mean = group_mean_interval(values), float(np.mean(values))
    assert interval.high - mean > 1.5 * (mean - interval.low)


def test_repeated_rows_of_a_group_add_nothing_to_a_mean():
    once = group_mean_interval([1, 2, 9], ["a", "b", "c"])
    assert ends(group_mean_interval([1, 2, 9] * 3, ["a", "b", "c"] * 3)) == pytest.approx(ends(once))


@settings(deadline=None)
@given(grouped(st.integers(0, 8)), st.randoms(use_true_random=False))
def test_order_names_and_mirror_of_a_mean(rows, random):
    first = group_mean_interval(*columns(rows))
    mixed = list(rows)
    random.shuffle(mixed)
    values, groups = columns(mixed)
    again = group_mean_interval(values, [str(group) for group in groups])
    assert ends(again) == pytest.approx(ends(first), nan_ok=True)
    mirrored = group_mean_interval([-value for value in values], groups)
    assert (-mirrored.high, -mirrored.low) == pytest.approx(ends(first), nan_ok=True)
    within = group_mean_interval(values, groups, bounds=(0, 8))
    if not math.isnan(within.low):
        assert 0 <= within.low <= np.mean(values) + 1e-9
        assert np.mean(values) - 1e-9 <= within.high <= 8


@pytest.mark.parametrize(("values", "groups"), [([], None), ([3], None), ([1, 2], ["a", "a"]), ([2, 2, 2], None)])
def test_without_two_groups_and_two_values_there_is_no_mean_interval(values, groups):
    assert np.isnan(ends(group_mean_interval(values, groups))).all()


def test_values_that_are_all_alike_have_an_interval_within_bounds():
    """No change in ten groups: the share of groups that change may still be Wilson's upper end for 0 of 10."""
    unseen = wilson_interval(0, 10).high
    stable = group_mean_interval([1] * 30, list(range(10)) * 3, bounds=(0, 1))
    assert ends(stable) == pytest.approx((1 - unseen, 1))
    drop = group_mean_interval([0.5] * 10, bounds=(-1, 1))
    assert ends(drop) == pytest.approx((0.5 - 1.5 * unseen, 0.5 + 0.5 * unseen))
    uneven = group_mean_interval([0] * 12, [0] * 10 + [1, 2], bounds=(0, 1))
    assert uneven.high == pytest.approx(wilson_interval(0, 144 / 102).high)


def test_wrong_bounds_are_errors():
    with pytest.raises(OptionError, match=r"bounds \(1, 0\) are not in order"):
        group_mean_interval([0, 1], bounds=(1, 0))
    with pytest.raises(DataError, match=r"2 lies outside \[0, 1\]"):
        group_mean_interval([0, 2], bounds=(0, 1))
    with pytest.raises(OptionError, match="level 0"):
        group_mean_interval([0, 1], level=0)


def test_the_correlation_interval_against_a_jackknife_written_out():
    from scipy.stats import t

    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, 40))
    y += x
    groups = np.sort(random.integers(0, 9, size=40))
    parts = [kendall_tau_b(x[groups != group], y[groups != group]) for group in range(9)]
    tau = kendall_tau_b(x, y)
    error = math.sqrt(8 / 9 * sum((part - np.mean(parts)) ** 2 for part in parts)) / (1 - tau**2)
    expected = np.tanh(np.arctanh(tau) + np.array([-1, 1]) * t.ppf(0.975, 8) * error)
    for found in (
        correlation_interval(kendall_tau_b, x, y, groups),
        correlation_interval(batch_kendall_tau_b, x, y, [f"{group}" for group in groups], batched=True),
    ):
        assert ends(found) == pytest.approx(expected)
        assert (found.draws, found.undefined) == (9, 0)


def test_pearson_of_many_rows_has_fishers_interval():
    """Normal rows, 400 of them: Fisher's standard error 1 / sqrt(n - 3) is the oracle."""
    from scipy.stats import pearsonr

    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=400).T
    low, high = pearsonr(x, y).confidence_interval()
    assert ends(correlation_interval(batch_pearson, x, y, batched=True)) == pytest.approx((low, high), abs=0.02)


def test_more_than_a_thousand_groups_are_left_out_several_at_a_time():
    x, y = np.random.default_rng(0).normal(size=(2, 1500))
    found = correlation_interval(batch_pearson, x, x + y, batched=True)
    assert found.draws == 1000
    fisher = 2 * 1.96 / math.sqrt(1500) * (1 - pearson(x, x + y) ** 2)
    assert found.high - found.low == pytest.approx(fisher, rel=0.15)


def test_where_a_correlation_has_no_interval():
    assert math.isnan(correlation_interval(kendall_tau_b, [1, 2, 3, 4], [1, 2, 4, 3], list("aabb")).low)
    assert math.isnan(correlation_interval(kendall_tau_b, [1, 1, 1], [1, 2, 3]).low)
    # Without the last group all ratings are equal: the number rests on that group.
    rests = correlation_interval(kendall_tau_b, [1, 2, 3, 4], [1, 1, 1, 5])
    assert np.isnan(ends(rests)).all()
    assert (rests.draws, rests.undefined) == (3, 1)
    assert ends(correlation_interval(kendall_tau_b, [1, 2, 3, NAN, 4], [1, 2, 3, 9, 4])) == (1, 1)
    with pytest.raises(DataError, match="row 1 has no group"):
        correlation_interval(kendall_tau_b, [1, 2, 3], [1, 2, 3], ["a", None, "b"])
    with pytest.raises(OptionError, match="level 2"):
        correlation_interval(kendall_tau_b, [1, 2, 3], [1, 2, 3], level=2)


def test_added_variances_have_satterthwaites_degrees_of_freedom():
    parts = [10, 8, 10, 12, 10]
    spread = 4 * float(np.var(parts))  # (g - 1) times the variance
    assert spread == pytest.approx(6.4)
    found = jackknife_interval(10, parts, added=[(3.6, 1)])
    freedom = 10**2 / (6.4**2 / 4 + 3.6**2 / 1)
    half = t.ppf(0.975, freedom) * math.sqrt(10)
    assert ends(found) == pytest.approx((10 - half, 10 + half))
    assert ends(jackknife_interval(10, parts, added=[(0.0, 3)])) == pytest.approx(ends(jackknife_interval(10, parts)))
    assert ends(jackknife_interval(0.5, [0.5] * 4, bounds=(-1, 1))) == (0.5, 0.5)  # exactly, not through the scale
