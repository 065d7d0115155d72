"""The share of a paid metric's agreement with people that a free one keeps, and the interval of a ratio."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmark import loaded
from metricsmith.errors import DataError, OptionError
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.kept_share import FEWEST_GROUPS, kept_share
from metricsmith.stats.resampling import correlation_interval
from metricsmith.stats.resampling.ratios import ratio_interval


def rows(groups=30, each=4, seed=0, strength=1.0):
    rng = np.random.default_rng(seed)
    people = rng.normal(size=groups * each)
    paid = strength * people + rng.normal(size=groups * each)
    free = strength * people + 2 * rng.normal(size=groups * each)
    return free, paid, people, np.repeat(np.arange(groups), each)


def test_the_share_is_the_ratio_of_both_taus():
    free, paid, people, groups = rows()
    found = kept_share([free], [paid], [people], [groups])
    assert found.value == pytest.approx(kendall_tau_b(free, people) / kendall_tau_b(paid, people), rel=1e-12)
    assert found.ci_low < found.value < found.ci_high
    assert (found.n, found.groups, found.why_not) == (120, 30, "")


def test_the_ends_are_the_ratios_that_a_plain_interval_cannot_tell_from_the_truth():
    """At an end r, Student's interval of ``tau(free) - r tau(paid)`` by leaving out groups just touches 0."""
    from scipy.special import stdtrit

    free, paid, people, groups = rows()
    found = kept_share([free], [paid], [people], [groups])
    left = [
        [kendall_tau_b(one[groups != group], people[groups != group]) for one in (free, paid)] for group in range(30)
    ]
    for end in (found.ci_low, found.ci_high):
        gap = kendall_tau_b(free, people) - end * kendall_tau_b(paid, people)
        spread = np.array([a - end * b for a, b in left])
        error = math.sqrt(29 * np.var(spread))
        assert abs(gap) == pytest.approx(float(stdtrit(29, 0.975)) * error, rel=1e-9)


def test_a_metric_keeps_itself_whole():
    _, paid, people, groups = rows()
    found = kept_share([paid], [paid], [people], [groups])
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx((1, 1, 1))


def test_folds_are_averaged_and_their_variance_doubled():
    one, other = rows(seed=1), rows(seed=2)
    both = [list(pair) for pair in zip(one, other, strict=True)]
    found = kept_share(*both)
    taus = [[kendall_tau_b(fold[side], fold[2]) for fold in (one, other)] for side in (0, 1)]
    assert found.value == pytest.approx(sum(taus[0]) / sum(taus[1]), rel=1e-12)
    assert (found.n, found.groups) == (240, 60)
    alone = kept_share(*[[part] for part in one])
    # half of the variance by two folds, and doubled again: about as wide as one fold
    assert 0.8 < (found.ci_high - found.ci_low) / (alone.ci_high - alone.ci_low) < 1.25


def test_rows_without_one_of_the_three_are_left_out():
    free, paid, people, groups = rows()
    free[0], paid[1], people[2] = math.nan, math.nan, math.nan
    found = kept_share([free], [paid], [people], [groups])
    assert found == kept_share([free[3:]], [paid[3:]], [people[3:]], [groups[3:]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (rows(groups=FEWEST_GROUPS - 1), "takes 10 groups"),
        (rows(strength=0.0, seed=3), "cannot be told from 0"),
        (rows(strength=-1.0), "ranks against people"),
        ((*rows()[:2], np.zeros(120), rows()[3]), "undefined"),
        ((np.zeros(120), *rows()[1:]), "undefined"),
    ],
)
def test_where_there_is_no_share_the_reason_stands_in_its_place(given, said):
    found = kept_share(*[[part] for part in given])
    assert said in found.why_not
    assert math.isnan(found.value)
    assert math.isnan(found.ci_low)


def test_a_fold_of_two_groups_leaves_no_share():
    found = kept_share(*[list(pair) for pair in zip(rows(), rows(groups=2), strict=True)])
    assert "three in every fold" in found.why_not


def test_folds_must_fit():
    with pytest.raises(DataError, match="one array per fold"):
        kept_share([], [], [])
    with pytest.raises(DataError, match="2 folds"):
        kept_share([[1], [2]], [[1]], [[1]])


@pytest.mark.slow
@pytest.mark.parametrize("groups", [10, 20, 60])
@pytest.mark.parametrize("case", ["most", "much", "a third", "all"])
def test_intervals_hold_the_truth(case, groups):
    """400 runs: Monte Carlo error 1.1 points, more where few runs have a share (docs/distillation.md has 500)."""
    _, held, none = loaded("distillation").coverage(case, groups, 400, 1)
    assert held > 0.90 if none > 0.5 else held > 0.92


def test_fieller_by_hand():
    """1/2 with standard errors of .1 and no covariance, t = 2.042 (30 degrees, 95 %): roots of a quadratic by hand.

    4 - .0417 = 3.9583; half of the middle term 2; last 1 - .0417 = .9583; (2 -+ sqrt(4 - 3.9583 * .9583)) / 3.9583.
    """
    found = ratio_interval(1.0, 2.0, (0.01, 0.01, 0.0), 30)
    assert (found.low, found.high) == pytest.approx((0.3904, 0.6202), abs=1e-4)


def test_a_bottom_that_may_be_0_has_no_interval():
    assert math.isnan(ratio_interval(1.0, 0.15, (0.01, 0.01, 0.0), 30).low)
    assert math.isnan(ratio_interval(1.0, 2.0, (0.01, 0.01, 0.0), 0).low)
    assert math.isnan(ratio_interval(math.nan, 2.0, (0.01, 0.01, 0.0), 9).low)
    with pytest.raises(OptionError, match="negative"):
        ratio_interval(1.0, 2.0, (-0.01, 0.01, 0.0), 30)


def test_there_is_a_share_only_where_the_shown_interval_of_the_paid_one_lies_above_0():
    shown = []
    for seed in range(80):
        free, paid, people, groups = rows(groups=12, seed=seed, strength=0.45)
        ends = correlation_interval(batch_kendall_tau_b, paid, people, groups, batched=True)
        shown.append(ends.low > 0)
        assert (not kept_share([free], [paid], [people], [groups]).why_not) <= shown[-1]
    assert 20 < sum(shown) < 80
