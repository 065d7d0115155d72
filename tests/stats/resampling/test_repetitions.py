"""Intervals and tests of predictions that were made several times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, t

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import (
    correlation_interval,
    paired_permutation_test,
    repeated_interval,
    repeated_mean,
    repeated_permutation_test,
)

GROUPS = [number // 3 for number in range(60)]


def planted(repetitions, strength=1.0, spread=0.5, seed=0):
    """Ratings, and repetitions that follow them with noise of their own."""
    random = np.random.default_rng(seed)
    rating = random.integers(1, 6, 60).astype(float)
    return strength * rating + spread * random.normal(size=(repetitions, 60)), rating


def test_the_mean_is_that_of_the_repetitions_and_leaves_undefined_ones_out():
    x, y = planted(3)
    x[1] = 7.0
    assert repeated_mean(kendall_tau_b, x, y) == pytest.approx((kendall_tau_b(x[0], y) + kendall_tau_b(x[2], y)) / 2)
    assert math.isnan(repeated_mean(kendall_tau_b, np.ones((2, 60)), y))


@pytest.mark.parametrize("between", [True, False])
def test_one_repetition_gives_the_correlation_interval(between):
    x, y = planted(1)
    ours = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, between=between, batched=True)
    assert ours == correlation_interval(batch_kendall_tau_b, x[0], y, GROUPS, batched=True)


def test_the_interval_against_a_jackknife_written_out():
    """Three repetitions against two: every group is left out of all five at once."""
    x, y = planted(3, spread=2.0)
    z, _ = planted(2, strength=0.2, spread=2.0, seed=1)
    labels = np.array(GROUPS)

    def difference(kept):
        sides = [np.mean([kendalltau(row[kept], y[kept]).statistic for row in side]) for side in (x, z)]
        return sides[0] - sides[1]

    estimate = difference(labels >= 0)
    parts = [difference(labels != group) for group in range(20)]
    half = t.ppf(0.975, 19) * math.sqrt(19 / 20 * sum((part - np.mean(parts)) ** 2 for part in parts))
    place = math.atanh(estimate / 2)  # the difference brought from [-2, 2] to [-1, 1]
    half /= 2 * (1 - (estimate / 2) ** 2)
    found = repeated_interval(kendall_tau_b, x, y, GROUPS, against=z, between=False)
    assert (found.low, found.high) == pytest.approx((2 * math.tanh(place - half), 2 * math.tanh(place + half)))
    assert (found.draws, found.undefined) == (20, 0)


def test_equal_repetitions_add_nothing_to_the_interval():
    x, y = planted(1)
    five = np.repeat(x, 5, axis=0)
    wide = repeated_interval(batch_kendall_tau_b, five, y, GROUPS, batched=True)
    one = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, batched=True)
    assert (wide.low, wide.high) == pytest.approx((one.low, one.high), abs=1e-12)


def test_repetitions_that_differ_add_their_variance():
    # y has 20 groups that are all alike, so that leaving one out changes nothing and only repetitions vary: taus 1, 1
    # and -1 have the mean 1/3 and the variance 4/3, that of the mean is 4/9 with 2 degrees of freedom.
    y = np.tile([1.0, 2.0, 3.0], 20)
    x = np.array([y, y, -y])
    rows = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, between=False, batched=True)
    assert (rows.low, rows.high) == pytest.approx((1 / 3, 1 / 3))
    both = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, batched=True)
    half = t.ppf(0.975, 2) * math.sqrt(4 / 9) / (1 - 1 / 9)
    assert (both.low, both.high) == pytest.approx(tuple(np.tanh(math.atanh(1 / 3) + np.array([-half, half]))))


def test_batched_and_plain_statistics_agree():
    x, y = planted(2)
    x[0, 4] = np.nan
    options = {"groups": GROUPS, "against": planted(3, seed=4)[0]}
    plain = repeated_interval(kendall_tau_b, x, y, **options)
    quick = repeated_interval(batch_kendall_tau_b, x, y, batched=True, **options)
    assert (plain.low, plain.high) == pytest.approx((quick.low, quick.high))


@pytest.mark.slow
def test_the_interval_covers_over_new_repetitions_and_new_rows():
    """The truth is the mean over many repetitions on many rows."""
    big = np.random.default_rng(99)
    y_all = big.integers(1, 6, 6000).astype(float)
    slopes = big.normal(0.5, 0.3, 400)
    noise = big.normal(size=(20, 6000))
    truth = np.mean([kendall_tau_b(s * y_all + noise[k % 20], y_all) for k, s in enumerate(slopes)])
    hits = {True: 0, False: 0}
    for trial in range(60):
        random = np.random.default_rng(trial)
        y = random.integers(1, 6, 60).astype(float)
        x = random.normal(0.5, 0.3, (5, 1)) * y + random.normal(size=(5, 60))
        for between in hits:
            interval = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, between=between, batched=True)
            hits[between] += interval.low <= truth <= interval.high
    assert hits[True] >= 54  # .95 of 60 is 57; fewer than 54 with probability .04 at most
    assert hits[True] > hits[False]


def test_the_difference_is_taken_on_the_rows_that_have_everything():
    x, y = planted(3)
    z, _ = planted(3, strength=0.2, seed=1)
    whole = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, against=z, batched=True)
    assert whole.low > 0
    holed = z.copy()
    holed[1, :6] = np.nan
    left = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, against=holed, batched=True)
    cut = repeated_interval(batch_kendall_tau_b, x[:, 6:], y[6:], GROUPS[6:], against=z[:, 6:], batched=True)
    assert left == cut


def test_a_repetition_without_a_statistic_is_left_out_and_without_any_there_is_no_interval():
    x, y = planted(3)
    flat = np.ones((2, 60))
    one, all_three = (repeated_interval(kendall_tau_b, side, y, GROUPS) for side in (x, np.vstack([x, flat])))
    assert all_three == one
    assert math.isnan(repeated_interval(kendall_tau_b, flat, y, GROUPS).low)
    assert math.isnan(repeated_interval(kendall_tau_b, x, y, GROUPS, against=flat).low)
    rests = np.where(np.arange(60) < 3, y, 7.0)[None]  # varies in the first group alone
    assert repeated_interval(kendall_tau_b, rests, y, GROUPS).undefined == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3))
def test_swapping_the_sides_mirrors_the_interval(seed, s, t):
    x, y = planted(s, spread=2.0, seed=seed)
    z, _ = planted(t, strength=0.5, spread=2.0, seed=seed + 1)
    one = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, against=z, batched=True)
    other = repeated_interval(batch_kendall_tau_b, z, y, GROUPS, against=x, batched=True)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert -2 <= one.low <= one.high <= 2
    same = repeated_interval(batch_kendall_tau_b, x, y, GROUPS, against=x, between=False, batched=True)
    assert (same.low, same.high) == (0, 0)


def test_one_repetition_gives_the_paired_test():
    x, y = planted(1)
    z, _ = planted(1, strength=0.3, seed=1)
    x[0, 5] = np.nan
    ours = repeated_permutation_test(batch_kendall_tau_b, x, z, y, GROUPS, batched=True)
    assert ours == paired_permutation_test(batch_kendall_tau_b, x[0], z[0], y, GROUPS, batched=True)


def test_the_draws_are_those_of_a_plain_loop_and_scales_do_not_matter():
    x, y = planted(3)
    z = y + 0.55 * np.random.default_rng(5).normal(size=x.shape)
    a, b = ([(row - row.mean()) / row.std() for row in side] for side in (x, z))
    observed = np.mean([kendall_tau_b(one, y) - kendall_tau_b(other, y) for one, other in zip(a, b, strict=True)])
    extreme = 0
    for swapped in np.random.default_rng(0).random((60, 20)) < 0.5:
        rows = swapped[GROUPS]
        pairs = [(np.where(rows, q, p), np.where(rows, p, q)) for p, q in zip(a, b, strict=True)]
        drawn = np.mean([kendall_tau_b(one, y) - kendall_tau_b(other, y) for one, other in pairs])
        extreme += abs(drawn) >= abs(observed) - 1e-12
    found = repeated_permutation_test(kendall_tau_b, x, 1000 * z + 7, y, GROUPS, permutations=60)
    assert found.observed == pytest.approx(observed)
    assert found.p_value == (extreme + 1) / 61
    assert extreme  # a draw at least as far from 0, so that the count is put to the test


def test_equal_repetitions_are_tested_as_one():
    x, y = planted(1)
    z, _ = planted(1, strength=0.3, seed=1)
    five = [np.repeat(side, 5, axis=0) for side in (x, z)]
    ours = repeated_permutation_test(batch_kendall_tau_b, *five, y, GROUPS, batched=True)
    one = repeated_permutation_test(batch_kendall_tau_b, x, z, y, GROUPS, batched=True)
    assert (ours.p_value, ours.observed) == pytest.approx((one.p_value, one.observed))


def test_the_test_finds_a_difference_in_the_mean_and_no_difference_in_nothing():
    x, y = planted(4)
    z, _ = planted(4, strength=0.2, seed=1)
    found = repeated_permutation_test(batch_kendall_tau_b, x, z, y, GROUPS, batched=True)
    assert found.observed == pytest.approx(repeated_mean(kendall_tau_b, x, y) - repeated_mean(kendall_tau_b, z, y))
    assert found.p_value < 0.01
    assert repeated_permutation_test(batch_kendall_tau_b, x, x, y, GROUPS, batched=True).p_value == 1.0
    assert math.isnan(repeated_permutation_test(batch_kendall_tau_b, x, np.ones_like(x), y, GROUPS).p_value)


@pytest.mark.slow
def test_the_level_of_the_test_holds_where_predictions_are_equally_good():
    rejected = 0
    for trial in range(120):
        random = np.random.default_rng(trial)
        y = random.integers(1, 6, 60).astype(float) + np.repeat(random.normal(size=20), 3)
        sides = [0.5 * y + np.repeat(random.normal(size=20), 3) + random.normal(size=(3, 60)) for _ in range(2)]
        test = repeated_permutation_test(
            batch_kendall_tau_b, *sides, y, GROUPS, permutations=199, seed=trial, batched=True
        )
        rejected += test.p_value <= 0.05
    assert rejected <= 14  # .05 of 120 is 6; 14 or fewer with probability .999


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_swapping_the_sides_turns_the_difference_round(seed, repetitions):
    x, y = planted(repetitions, seed=seed)
    z, _ = planted(repetitions, strength=0.5, seed=seed + 1)
    options = {"groups": GROUPS, "permutations": 50, "batched": True}
    one = repeated_permutation_test(batch_kendall_tau_b, x, z, y, **options)
    other = repeated_permutation_test(batch_kendall_tau_b, z, x, y, **options)
    assert (one.observed, one.p_value) == pytest.approx((-other.observed, other.p_value))


def test_wrong_shapes_and_options_are_refused():
    x, y = planted(2)
    with pytest.raises(DataError, match=r"shape \(60,\) for 60 ratings"):
        repeated_mean(kendall_tau_b, x[0], y)
    with pytest.raises(DataError, match="2 and 1 repetitions"):
        repeated_permutation_test(kendall_tau_b, x, x[:1], y)
    with pytest.raises(OptionError, match="level 2 is not a coverage"):
        repeated_interval(kendall_tau_b, x, y, level=2)
    with pytest.raises(DataError, match=r"shape \(60,\) for 60 ratings"):
        repeated_interval(kendall_tau_b, x, y, against=x[0])
    for groups in (["one"] * 60, ["one"] * 30 + ["two"] * 30):
        assert math.isnan(repeated_interval(kendall_tau_b, x, y, groups).low)
