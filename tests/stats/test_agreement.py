"""Agreement blocks: values, missing and undefined cases, honest p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError
from metricsmith.stats.agreement import Difference, agreement, paired_agreement
from metricsmith.stats.correlation import kendall_tau_b, pearson, spearman
from metricsmith.stats.resampling import correlation_interval, repeated_interval

NAN = math.nan
STATISTICS = ("kendall_tau_b", "ci_low", "ci_high", "p_value", "pearson", "spearman")


def related(n, groups, seed=0, strength=0.7):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return x, np.round(strength * x + random.normal(size=n)), np.arange(n) % groups


def is_undefined(block):
    return all(math.isnan(getattr(block, name)) for name in STATISTICS)


def test_every_number_of_a_clear_association():
    x, y, groups = related(120, 30)
    block = agreement(x, y, groups)
    assert (block.n, block.groups) == (120, 30)
    assert block.kendall_tau_b == kendall_tau_b(x, y)
    assert block.pearson == pearson(x, y)
    assert block.spearman == spearman(x, y)
    assert 0.1 < block.ci_low < block.kendall_tau_b < block.ci_high < 0.8
    assert block.p_value == 1 / 1001


def test_no_association_is_not_significant():
    x, y, groups = related(120, 30, strength=0)
    block = agreement(x, y, groups)
    assert block.ci_low < 0 < block.ci_high
    assert block.p_value > 0.05


def test_seeded_and_independent_of_the_scales():
    x, y, groups = related(40, 10)
    block = agreement(x, y, groups, seed=5, resamples=200)
    assert agreement(x, y, groups, seed=5, resamples=200) == block
    moved = agreement(1000 * x - 3, y / 8, groups, seed=5, resamples=200)
    assert moved.ci_low == pytest.approx(block.ci_low, abs=1e-12)
    assert moved.p_value == block.p_value
    other = agreement(x, y, groups, seed=6, resamples=200)
    assert other.p_value != block.p_value
    assert (other.ci_low, other.ci_high) == (block.ci_low, block.ci_high)


def test_rows_without_both_values_do_not_count():
    x, y, groups = related(40, 10)
    x_gaps, y_gaps = np.append(x, [NAN, 1.0]), np.append(y, [1.0, NAN])
    labels = [*groups.tolist(), 98, 99]
    assert agreement(x_gaps, y_gaps, labels, resamples=50) == agreement(x, y, groups, resamples=50)


def test_without_groups_each_row_is_its_own():
    x, y, _ = related(30, 30)
    assert agreement(x, y, resamples=50) == agreement(x, y, range(30), resamples=50)


@pytest.mark.parametrize(
    ("x", "y", "n"),
    [([], [], 0), ([1], [2], 1), ([3, 3, 3], [1, 2, 3], 3), ([1, 2, 3], [5, 5, 5], 3), ([NAN, 1], [1, NAN], 0)],
)
def test_undefined_is_nan_throughout(x, y, n):
    block = agreement(x, y)
    assert (block.n, block.groups) == (n, n)
    assert is_undefined(block)


def test_one_group_has_no_interval():
    x, y, _ = related(20, 1)
    block = agreement(x, y, ["only"] * 20)
    assert math.isnan(block.ci_low)
    assert block.kendall_tau_b == kendall_tau_b(x, y)


@pytest.mark.slow
def test_group_levels_do_not_pass_for_agreement():
    """20 groups whose prediction and rating have unrelated levels: p <= .05 in few of 100 data sets."""
    groups = np.repeat(np.arange(20), 6)
    rejected = {"by group": 0, "by row": 0}
    for seed in range(100):
        random = np.random.default_rng(seed)
        x, y = 2 * random.normal(size=(2, 20))[:, groups] + random.normal(size=(2, 120))
        rejected["by group"] += agreement(x, y, groups, resamples=99, seed=seed).p_value <= 0.05
        rejected["by row"] += agreement(x, y, resamples=99, seed=seed).p_value <= 0.05
    assert rejected["by group"] <= 10
    assert rejected["by row"] >= 20


def test_misaligned_arrays_are_an_error():
    with pytest.raises(DataError, match="not aligned"):
        agreement([1, 2, 3], [1, 2])
    with pytest.raises(DataError, match="2 group labels"):
        agreement([1, 2, 3], [1, 2, 3], ["a", "b"])


def test_a_difference_is_paired_on_the_rows_that_have_everything():
    x, y, groups = related(60, 20)
    z = y + np.random.default_rng(2).normal(size=60)
    whole = paired_agreement(x, z, y, groups)
    assert (whole.n, whole.groups) == (60, 20)
    assert whole.kendall_tau_b == kendall_tau_b(x, y) - kendall_tau_b(z, y)
    interval = repeated_interval(kendall_tau_b, [x], y, groups, against=[z])
    assert (whole.ci_low, whole.ci_high) == pytest.approx((interval.low, interval.high))
    x[3], z[5], y[8] = NAN, NAN, NAN
    kept = [row for row in range(60) if row not in (3, 5, 8)]
    assert paired_agreement(x, z, y, groups) == paired_agreement(x[kept], z[kept], y[kept], groups[kept])


def test_two_predictions_that_err_together_differ_by_less_than_their_intervals_suggest():
    x, y, groups = related(120, 40, strength=1.5)
    close = x + 0.1 * np.random.default_rng(1).normal(size=120)
    apart = paired_agreement(x, close, y, groups)
    alone = correlation_interval(kendall_tau_b, x, y, groups)
    assert apart.ci_high - apart.ci_low < (alone.high - alone.low) / 3
    nothing = paired_agreement(x, 2 * x + 1, y, groups)
    assert (nothing.kendall_tau_b, nothing.ci_low, nothing.ci_high) == (0, 0, 0)


def test_without_one_of_the_two_there_is_no_difference():
    x, y, groups = related(30, 10)
    for first, second in ((x, np.ones(30)), (np.ones(30), x)):
        found = paired_agreement(first, second, y, groups)
        assert (found.n, found.groups) == (30, 10)
        assert all(map(math.isnan, (found.kendall_tau_b, found.ci_low, found.ci_high)))
    assert paired_agreement([], [], []) == Difference(0, 0, *[pytest.approx(NAN, nan_ok=True)] * 3)
    with pytest.raises(DataError, match="not aligned"):
        paired_agreement(x, x[1:], y)
