"""Repetitions that each have test rows of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, t

from benchmark import loaded
from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import (
    repeated_interval,
    repeated_mean,
    repeated_permutation_test,
)

LABELS = np.arange(60) // 3


def planted(repetitions, strength=1.0, spread=2.0, seed=0):
    """Ratings, and repetitions that follow them with noise of their own."""
    random = np.random.default_rng(seed)
    rating = random.integers(1, 6, 60).astype(float)
    return strength * rating + spread * random.normal(size=(repetitions, 60)), rating


def cut(lines, *, groups=8, seed=0):
    """Each line on the rows of some groups, drawn anew for each."""
    random = np.random.default_rng(seed)
    kept = [np.isin(LABELS, random.choice(20, groups, replace=False)) for _ in lines]
    return np.where(kept, lines, np.nan)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_without_missing_rows_everything_is_as_it_was(seed, repetitions):
    x, y = planted(repetitions, seed=seed)
    z, _ = planted(repetitions, strength=0.5, seed=seed + 1)
    assert repeated_mean(kendall_tau_b, x, y, own_rows=True) == repeated_mean(kendall_tau_b, x, y)
    for options in ({}, {"between": False}, {"against": z, "between": False}):
        options |= {"groups": LABELS, "batched": True}
        one, other = (repeated_interval(batch_kendall_tau_b, x, y, own_rows=own, **options) for own in (False, True))
        assert one == other
    one, other = (
        repeated_permutation_test(batch_kendall_tau_b, x, z, y, LABELS, permutations=50, batched=True, own_rows=own)
        for own in (False, True)
    )
    assert one == other


def test_the_mean_is_that_of_each_repetition_on_its_own_rows():
    x, y = planted(2)
    x[0, :30] = np.nan
    by_hand = (kendalltau(x[0, 30:], y[30:]).statistic + kendalltau(x[1], y).statistic) / 2
    assert repeated_mean(kendall_tau_b, x, y, own_rows=True) == pytest.approx(by_hand)
    assert math.isnan(repeated_mean(kendall_tau_b, np.full((2, 60), np.nan), y, own_rows=True))


@pytest.mark.parametrize("batched", [True, False])
def test_the_interval_against_a_jackknife_written_out(batched):
    """A group that a repetition lacks changes nothing there; the spread of both together is Satterthwaite's."""
    x, y = planted(4)
    x = cut(x)

    def mean(lines, kept):
        return np.mean([kendalltau(row[kept], y[kept], nan_policy="omit").statistic for row in lines])

    estimate = mean(x, LABELS >= 0)
    present = np.unique(LABELS[~np.isnan(x).all(axis=0)])
    parts = np.array([mean(x, group != LABELS) for group in present])
    g = present.size
    rows = (g - 1) / g * ((parts - parts.mean()) ** 2).sum()
    seeds = np.var([mean([row], LABELS >= 0) for row in x], ddof=1) / 4
    freedom = (rows + seeds) ** 2 / (rows**2 / (g - 1) + seeds**2 / 3)
    half = t.ppf(0.975, freedom) * math.sqrt(rows + seeds) / (1 - estimate**2)
    statistic = batch_kendall_tau_b if batched else kendall_tau_b
    found = repeated_interval(statistic, x, y, LABELS, batched=batched, own_rows=True)
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(math.atanh(estimate) + np.array([-half, half]))))
    assert found.draws == g


def test_partners_lose_the_same_rows_and_repetitions():
    x, y = planted(3)
    z, _ = planted(3, strength=0.5, seed=1)
    x, holed = cut(x), cut(z, seed=0)
    x[0, :9], holed[1, 30:36] = np.nan, np.nan
    both = np.isnan(x) | np.isnan(holed)
    same = [np.where(both, np.nan, side) for side in (x, z)]
    options = {"groups": LABELS, "batched": True, "own_rows": True}
    assert repeated_interval(batch_kendall_tau_b, x, y, against=holed, **options) == repeated_interval(
        batch_kendall_tau_b, same[0], y, against=same[1], **options
    )
    assert repeated_permutation_test(batch_kendall_tau_b, x, holed, y, **options) == repeated_permutation_test(
        batch_kendall_tau_b, *same, y, **options
    )
    flat = z.copy()
    flat[2] = 7.0
    kept = repeated_interval(batch_kendall_tau_b, x[:2], y, against=z[:2], **options)
    found = repeated_interval(batch_kendall_tau_b, x, y, against=flat, **options)
    assert found.draws >= kept.draws  # groups that only the third holds count, and change nothing
    observed = repeated_permutation_test(batch_kendall_tau_b, x, flat, y, **options).observed
    means = [repeated_mean(kendall_tau_b, np.where(np.isnan(x), np.nan, side)[:2], y, own_rows=True) for side in (x, z)]
    assert observed == pytest.approx(means[0] - means[1])


def test_a_shared_shift_of_the_repetitions_is_no_uncertainty_of_their_difference():
    """Test sets that are easy or hard for both sides alike: the differences hardly vary, the two means do."""
    random = np.random.default_rng(3)
    y = np.tile([1.0, 2.0, 3.0], 20)
    noise = np.array([0.2, 1.0, 2.0, 3.0])[:, None] * random.normal(size=(4, 60))
    x, z = y + noise, y + noise + 0.01 * random.normal(size=noise.shape)
    options = {"groups": LABELS, "batched": True}
    apart = repeated_interval(batch_kendall_tau_b, x, y, against=z, **options)
    paired = repeated_interval(batch_kendall_tau_b, x, y, against=z, own_rows=True, **options)
    assert paired.high - paired.low < (apart.high - apart.low) / 3


def test_the_draws_are_those_of_a_plain_loop():
    x, y = planted(3, spread=1.0)
    z = y + 1.02 * np.random.default_rng(5).normal(size=x.shape)
    x, z = cut(x), cut(z)
    present = np.unique(LABELS[~np.isnan(x).all(axis=0)])

    def unit(row):
        return (row - np.nanmean(row)) / np.nanstd(row)

    def tau(row):
        return kendalltau(row, y, nan_policy="omit").statistic

    a, b = [unit(row) for row in x], [unit(row) for row in z]
    observed = np.mean([tau(one) - tau(other) for one, other in zip(a, b, strict=True)])
    extreme = 0
    for swapped in np.random.default_rng(0).random((60, present.size)) < 0.5:
        rows = np.isin(LABELS, present[swapped])
        pairs = [(np.where(rows, q, p), np.where(rows, p, q)) for p, q in zip(a, b, strict=True)]
        extreme += abs(np.mean([tau(one) - tau(other) for one, other in pairs])) >= abs(observed) - 1e-12
    for statistic, batched in ((batch_kendall_tau_b, True), (kendall_tau_b, False)):
        found = repeated_permutation_test(statistic, x, z, y, LABELS, permutations=60, batched=batched, own_rows=True)
        assert found.observed == pytest.approx(observed)
        assert found.p_value == (extreme + 1) / 61
    assert 0 < extreme < 60  # the count is put to the test


def test_lines_of_one_repetition_are_averaged_first():
    """Taus of 1 and -1 in the one, of 1 in the other: means 0 and 1, where the three lines have the mean 1/3."""
    y = np.tile([1.0, 2.0, 3.0], 20)
    x, owner = np.array([y, -y, y]), [0, 0, 1]
    assert repeated_mean(kendall_tau_b, x, y, repetition=owner) == 0.5
    found = repeated_interval(batch_kendall_tau_b, x, y, LABELS, batched=True, own_rows=True, repetition=owner)
    half = t.ppf(0.975, 1) * math.sqrt(0.5 / 2) / (1 - 0.25)  # variance of 0 and 1 is 1/2, with 1 degree of freedom
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(math.atanh(0.5) + np.array([-half, half]))))
    test = repeated_permutation_test(
        batch_kendall_tau_b, x, np.array([-y, -y, y]), y, LABELS, permutations=20, batched=True, own_rows=True,
        repetition=owner,
    )  # fmt: skip
    assert test.observed == pytest.approx((1.0 + 0.0) / 2)  # differences 2 and 0 in the one, 0 in the other


def test_a_repetition_that_rests_on_one_group_leaves_no_interval():
    x, y = planted(2)
    x[1, 3:] = np.nan
    for statistic, batched in ((batch_kendall_tau_b, True), (kendall_tau_b, False)):
        assert math.isnan(repeated_interval(statistic, x, y, LABELS, batched=batched, own_rows=True).low)


def test_lines_without_partners_and_wrong_repetitions_are_refused():
    x, y = planted(2)
    with pytest.raises(DataError, match="2 and 1 lines: with own_rows each line needs its partner"):
        repeated_interval(kendall_tau_b, x, y, against=x[:1], own_rows=True)
    with pytest.raises(OptionError, match="give own_rows=True"):
        repeated_interval(kendall_tau_b, x, y, repetition=[0, 0])
    with pytest.raises(DataError, match=r"repetition of shape \(3,\) for 2 lines"):
        repeated_mean(kendall_tau_b, x, y, repetition=[0, 0, 1])


@pytest.mark.slow
def test_over_test_sets_that_overlap_the_interval_covers_and_a_test_alone_is_no_finding():
    """Shares of 150 studies of 40 groups; benchmarks/own_rows.py has more, and those of other sizes."""
    shares = loaded("own_rows").measured(40, True, 150, 1)
    assert shares["rows, seeds"] >= 0.9  # .95 less 2.8 standard errors
    assert shares["over seeds"] < 0.9
    assert shares["difference"] >= 0.9
    assert shares["p < .05"] > 0.05  # the two regressions of a study are seldom equally good, though their kinds are
    assert shares["both"] <= 0.05


@pytest.mark.slow
def test_the_test_alone_holds_its_level_for_predictions_that_are_equally_good():
    """Of 200 tests at .05 of fixed predictions 10 are to be expected, 19 or more with probability .005."""
    benchmark, rejected = loaded("own_rows"), 0
    for trial in range(200):
        own, other, rating, labels = benchmark.study(np.random.default_rng([3, trial]), 20, False)
        found = repeated_permutation_test(
            batch_kendall_tau_b, own, other, rating, labels, permutations=99, batched=True, own_rows=True
        )
        rejected += found.p_value <= 0.05
    assert 1 <= rejected <= 18
