"""The mean difference of two versions: its figures, its verdict, and the pairs that would decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmark import loaded
from metricsmith.errors import DataError
from metricsmith.stats.mean_difference import mean_difference
from metricsmith.stats.resampling import group_mean_interval

WON = [1.0, 2.0, 2.0, 3.0, 0.5, 0.0, 1.5, 1.0, -0.5, 2.5]  # mean 1.3, eight won, one tied, one lost


def differing(gaps, groups=None, **options):
    return mean_difference(np.zeros(len(gaps)), gaps, groups, **options)


def test_figures_of_ten_pairs():
    found = mean_difference(np.arange(10), np.arange(10) + np.array(WON), name="all")
    assert (found.name, found.n, found.groups, found.missing) == ("all", 10, 10, 0)
    assert (found.first, found.second, found.value) == pytest.approx((4.5, 5.8, 1.3))
    assert (found.wins.value, found.wins.tied, found.wins.risen) == pytest.approx((0.8, 0.1, 0.1))
    assert found.interval == group_mean_interval(WON)
    # Of the 1,024 arrangements of signs 3 x 2 reach the sum of 13: all pairs positive, with the zero and the loss free.
    assert found.p_value == pytest.approx(8 / 1024, abs=0.008)
    assert found.verdict == "better"


def test_the_direction_of_the_scale_decides_on_better_and_on_won():
    found = differing(WON, higher_is_better=False)
    assert found.verdict == "worse"
    assert found.value == pytest.approx(1.3)
    assert (found.wins.value, found.wins.risen) == pytest.approx((0.1, 0.8))


def test_a_pair_without_a_value_on_either_side_is_left_out_and_counted():
    found = mean_difference([0.0, math.nan, *[0.0] * 10], [math.nan, 9.0, *WON])
    assert (found.n, found.missing, found.value) == (10, 2, pytest.approx(1.3))


def test_no_pairs_have_no_figures():
    found = differing([])
    assert found.n == 0
    assert all(map(math.isnan, (found.value, found.first, found.p_value, found.needed, found.interval.low)))
    assert found.verdict == "undecided"


def test_lengths_that_differ_are_refused():
    with pytest.raises(DataError, match="not aligned"):
        mean_difference([1.0], [1.0, 2.0])


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_fewer_than_six_groups_never_decide(groups):
    gaps = np.random.default_rng(0).normal(100, 1, 60)
    assert differing(gaps, np.arange(60) % groups).verdict == "undecided"
    assert differing(gaps, np.arange(60) % 6).verdict == "better"


def test_the_test_has_a_say_where_the_interval_excludes_0():
    gaps = [0.5] * 40 + [0.4, 0.6, 0.5, -0.2, 0.3, -0.4]  # one group of forty makes the mean, six others say little
    found = differing(gaps, [0] * 40 + list(range(1, 7)))
    assert found.interval.low > 0.3
    assert found.p_value > 0.1
    assert found.verdict == "undecided"


def test_the_interval_has_a_say_where_the_test_is_sure():
    found = differing([3.0, 3.0, 3.1, 2.9, 3.0, 3.0, -0.3])  # 4 of 128 arrangements are as extreme: p .031
    assert found.p_value < 0.05
    assert found.interval.low < 0
    assert found.verdict == "undecided"
    assert found.needed == 8  # never as few as there are


def test_groups_count_and_not_rows():
    gaps = np.random.default_rng(1).normal(0.6, 1, 12)
    alone, copied = differing(gaps), differing(np.repeat(gaps, 20), np.repeat(np.arange(12), 20))
    assert copied.groups == alone.groups == 12
    assert copied.interval.low == pytest.approx(alone.interval.low)
    assert copied.p_value == pytest.approx(alone.p_value)


def test_pairs_that_would_decide_follow_from_the_spread_of_the_groups():
    gaps = np.tile([-0.8, 1.2], 15)  # mean .2, variance 30/29
    found = differing(gaps)
    # (1.96 + 0.84)^2 * (30 / 29) / .2^2 = 203, a little more by Student's quantile.
    assert 200 <= found.needed <= 210
    # As many pairs show (2.05 + 0.84) * sqrt(30 / 29 / 30) = .536 in four of five cases.
    assert found.detectable == pytest.approx(0.536, abs=0.003)
    assert differing(np.repeat(gaps, 4), np.repeat(np.arange(30), 4)).needed == pytest.approx(
        4 * found.needed, rel=0.02
    )


def test_that_many_pairs_decide_in_four_of_five_runs():
    random = np.random.default_rng(2)
    needed = math.ceil(differing(np.tile([-0.7, 1.3], 15)).needed)  # mean .3, sd 1.02
    decided = [differing(random.normal(0.3, 1.017, needed)).verdict == "better" for _ in range(300)]
    assert 0.72 < np.mean(decided) < 0.88


def test_no_number_of_pairs_is_named_for_a_difference_of_about_0():
    assert differing(np.tile([-1.0, 1.001], 15)).needed == math.inf
    assert differing(np.tile([-1.0, 1.0], 15)).needed == math.inf


def test_pairs_that_all_differ_alike_say_nothing_of_others():
    found = differing([0.0] * 30, width=4.0)
    assert (math.isnan(found.needed), found.verdict) == (True, "undecided")
    assert differing([1.0] * 8, width=4.0).verdict == "undecided"
    assert differing([1.0] * 40, width=4.0).verdict == "better"  # on a scale with ends few unseen groups cannot turn it


def test_a_difference_beyond_the_scale_needs_no_bounds():
    assert differing([*WON, 5.0], width=4.0).value == pytest.approx(18 / 11)


def test_without_a_difference_it_decides_in_few_runs():
    simulated = loaded("versus").simulated
    for kind in ("normal", "skewed"):
        found = [one.verdict for one, _ in simulated(kind, "3", 10, 300, 0)]
        assert np.mean([verdict != "undecided" for verdict in found]) <= 0.09


def test_pairs_find_what_two_tables_that_nobody_paired_do_not():
    found = list(loaded("versus").simulated("weighted steps", "3", 30, 60, 0, gain=0.38))
    assert np.mean([one.verdict == "better" for one, _ in found]) > 0.85
    assert np.mean([other for _, other in found]) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("groups", [3, 5, 6, 10, 30, 100])
@pytest.mark.parametrize("kind", ["normal", "mostly ties", "weighted steps", "skewed", "ties and skewed"])
def test_without_a_difference_better_and_worse_together_are_rare(kind, groups):
    for size in ("1", "3", "uneven"):
        found = [one.verdict for one, _ in loaded("versus").simulated(kind, size, groups, 600, 1)]
        assert np.mean([verdict != "undecided" for verdict in found]) <= 0.08  # .06 and two standard errors
