"""Sensitivity, magnitude and stability: by hand, by property, and against the paper's null."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.validity import (
    NULLS,
    compare_sensitivity,
    compare_stability,
    never_moves,
    null_scores,
    position_lean,
    score_change,
    score_stability,
    sensitivity,
    sensitivity_magnitude,
    to_unit,
)

NAN = float("nan")
UNITS = arrays(float, st.integers(2, 30), elements=st.floats(0, 1, width=32))


def test_sensitivity_counts_strict_drops_and_names_ties_and_rises():
    # By hand: .9 -> .5 falls, .4 -> .4 ties, .2 -> .3 rises, .8 -> .1 falls: 2 of 4.
    found = sensitivity([0.9, 0.4, 0.2, 0.8], [0.5, 0.4, 0.3, 0.1])
    assert (found.value, found.tied, found.risen) == (0.5, 0.25, 0.25)
    assert (found.n, found.groups, found.missing) == (4, 4, 0)


def test_missing_numbers_are_left_out_and_counted_and_never_read_as_0():
    found = sensitivity([0.9, NAN, 0.2, 0.8], [0.5, 0.1, NAN, 0.1], ["a", "b", "c", "a"])
    assert (found.value, found.n, found.groups, found.missing) == (1.0, 2, 1, 2)
    assert score_stability([0.5, NAN], [0.5, 0.0]).value == 1.0
    nothing = sensitivity([NAN], [0.1])
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.interval.low)
    assert (nothing.n, nothing.missing) == (0, 1)


def test_rounding_is_no_drop():
    original = np.array([0.1 + 0.2, 1.0])
    assert sensitivity(original, [0.3, 0.5]).tied == 0.5


def test_a_range_that_is_rounding_itself_is_none():
    original = np.full(6, 0.3)
    changed = original - 5e-17
    assert sensitivity(original, changed).tied == 1.0
    assert never_moves(original, changed)
    assert np.isnan(to_unit(original, changed)[0]).all()
    assert not never_moves([1.0, np.inf])
    assert never_moves([np.inf, np.inf])


def test_balance_is_falls_less_rises_with_its_interval():
    uniform = sensitivity([0.5] * 12, [0.4] * 12)
    assert 0 < uniform.balance.low < uniform.balance.high == 1.0
    even = sensitivity(np.arange(40.0), np.arange(40.0) + np.tile([1.0, -1.0], 20))
    assert even.balance.low < 0 < even.balance.high


def test_comparisons_without_a_common_pair_or_in_another_unit_are_no_numbers():
    nothing = compare_sensitivity(([1.0, NAN], [0.0, 0.0]), ([NAN, 1.0], [0.0, 0.0]))
    assert math.isnan(nothing.p_value)
    assert math.isnan(nothing.observed)
    with pytest.raises(DataError, match="to_unit"):
        compare_stability(([1.0, 5.0], [0.0, 0.0]), ([0.5, 1.0], [0.0, 0.0]))
    with pytest.raises(DataError, match="not aligned"):
        compare_sensitivity(([1.0, 5.0], [0.0]), ([0.5, 1.0], [0.0, 0.0]))


def test_magnitude_stability_and_change_by_hand():
    # Drops .4, 0, -.1, .7: mean .25. Absolute changes .4, 0, .1, .7: mean .3.
    original, changed = [0.9, 0.4, 0.2, 0.8], [0.5, 0.4, 0.3, 0.1]
    assert sensitivity_magnitude(original, changed).value == pytest.approx(0.25)
    assert score_stability(original, changed).value == pytest.approx(0.7)
    assert score_change(original, changed).value == pytest.approx(-0.25)


def test_intervals_respect_groups_and_stay_in_range():
    random = np.random.default_rng(0)
    original = random.uniform(0.3, 1, 60)
    same = np.clip(original + np.repeat(random.normal(0, 0.1, 10), 6), 0, 1)
    rows, sources = score_stability(original, same), score_stability(original, same, np.repeat(np.arange(10), 6))
    assert rows.value == sources.value
    assert sources.interval.high - sources.interval.low > 1.5 * (rows.interval.high - rows.interval.low)
    assert sources.interval.high <= 1
    close = score_stability([1.0, 1.0, 0.9], [1.0, 1.0, 1.0])
    assert close.interval.high == 1.0


@pytest.mark.parametrize("function", [sensitivity, sensitivity_magnitude, score_stability, score_change, position_lean])
def test_pairs_that_repeat_their_group_narrow_no_interval(function):
    # Six pairs alike in each of ten groups say what ten pairs say, in each interval that comes with the figure.
    original = np.linspace(0.4, 0.7, 10)
    changed = original - [0.1, -0.1, 0.2, 0.1, 0.0, 0.3, 0.1, -0.2, 0.1, 0.2]
    once = function(original, changed)
    again = function(np.repeat(original, 6), np.repeat(changed, 6), np.repeat(np.arange(10), 6))
    assert (again.n, again.groups, once.n) == (60, 10, 10)
    for name in ("interval", "balance")[: 1 + hasattr(once, "balance")]:
        ends = [(getattr(found, name).low, getattr(found, name).high) for found in (once, again)]
        assert ends[1] == pytest.approx(ends[0])


def test_pairs_that_repeat_their_group_make_no_difference_surer():
    # The first metric falls in three groups of three, the second in none. Swapping whole groups gives a difference
    # as large in 2 of 8 ways; swapping pairs, in 2 of 2^18.
    original, groups = np.ones(18), np.repeat(np.arange(3), 6)
    found = compare_sensitivity((original, original - 1), (original, original), groups, permutations=400)
    assert found.p_value > 0.2
    found = compare_stability((original, original - 1), (original, original), groups, permutations=400)
    assert found.p_value > 0.2


@given(UNITS, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_swapping_the_two_sides_swaps_falls_and_rises(original, seed):
    changed = np.random.default_rng(seed).permutation(original)
    one, other = sensitivity(original, changed), sensitivity(changed, original)
    assert (one.value, one.tied) == (other.risen, other.tied)
    assert one.value + one.tied + one.risen == pytest.approx(1)
    drop = sensitivity_magnitude(original, changed).value
    assert drop == pytest.approx(-score_change(original, changed).value)
    assert score_stability(original, changed).value == pytest.approx(score_stability(changed, original).value)
    assert abs(drop) <= 1 - score_stability(original, changed).value + 1e-12


@given(UNITS, st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_sensitivity_knows_nothing_of_the_scale(original, seed):
    changed = np.round(np.random.default_rng(seed).uniform(size=original.size), 2)
    original = np.round(original, 2)
    there = sensitivity(original, changed)
    assert sensitivity(7 * original - 3, 7 * changed - 3).value == there.value


def test_numbers_are_mapped_from_their_scale_or_their_range():
    assert [part.tolist() for part in to_unit([1, 3], [5, 7], low=1, high=5)] == [[0.0, 0.5], [1.0, 1.0]]
    original, changed = to_unit([-2.0, 2.0, NAN], [0.0, 6.0, 1.0])
    assert original[:2].tolist() == [0.0, 0.5]
    assert changed.tolist() == [0.25, 1.0, 0.375]
    assert math.isnan(original[2])
    assert all(np.isnan(part).all() for part in to_unit([3.0, 3.0], [3.0]))


@pytest.mark.parametrize("ends", [{"low": 1}, {"low": 2, "high": 2}, {"low": NAN, "high": 1}])
def test_a_scale_without_length_is_refused(ends):
    with pytest.raises(OptionError, match="has no length"):
        to_unit([1, 2], **ends)


def test_numbers_outside_the_unit_are_refused_where_sizes_count():
    with pytest.raises(DataError, match="to_unit"):
        score_stability([1.0, 2.0], [1.0, 0.5])


def test_a_metric_that_never_moves_is_named():
    assert never_moves([2.0, 2.0], [2.0], [NAN])
    assert not never_moves([2.0, 2.0], [2.0, 2.1])
    assert not never_moves([NAN], [NAN])
    assert sensitivity([2.0, 2.0], [2.0, 2.0]).value == 0.0


def test_the_null_of_the_paper_is_near_a_half_and_repeats():
    # Two independent draws from one continuous distribution: P(second < first) = .5.
    texts = [f"text {number}" for number in range(8000)]
    scores = null_scores("random", texts, seed=5)
    found = sensitivity(scores[:4000], scores[4000:])
    assert found.value == pytest.approx(0.5, abs=0.03)
    assert found.interval.low < 0.5 < found.interval.high
    # E |X - Y| of two normals is 2 / sqrt(pi) standard deviations, one of which is 1/6 of the unit.
    assert score_stability(scores[:4000], scores[4000:]).value == pytest.approx(
        1 - 2 / math.sqrt(math.pi) / 6, abs=0.01
    )
    assert (scores == null_scores("random", texts, seed=5)).all()
    assert (scores != null_scores("random", texts, seed=6)).any()
    assert 0 <= scores.min() < 0.1
    assert 0.9 < scores.max() <= 1


def test_the_other_nulls():
    assert null_scores("length", ["", "abc"]).tolist() == [0.0, 3.0]
    assert never_moves(null_scores("constant", ["a", "b"]))
    assert set(NULLS) == {"random", "constant", "length"}
    with pytest.raises(OptionError, match="unknown null metric"):
        null_scores("noise", ["a"])


def test_two_metrics_are_compared_on_the_pairs_that_both_have():
    random = np.random.default_rng(1)
    original = random.uniform(size=80)
    good, blind = original - 0.2, random.uniform(size=80)
    groups = np.repeat(np.arange(40), 2)
    test = compare_sensitivity((original, good), (original, blind), groups, seed=2)
    assert test.observed == pytest.approx(1 - sensitivity(original, blind).value)
    assert test.p_value < 0.01
    assert compare_sensitivity((original, good), (original, good), groups).p_value == 1.0
    gaps = np.where(np.arange(80) < 40, NAN, good)
    assert compare_sensitivity((original, gaps), (original, blind), groups).observed == pytest.approx(
        1 - sensitivity(original[40:], blind[40:]).value
    )
    steady = compare_stability((original, original), (original, blind), groups)
    assert steady.observed == pytest.approx(1 - score_stability(original, blind).value)
    assert steady.p_value < 0.01


def test_lengths_must_fit():
    with pytest.raises(DataError, match="not aligned"):
        sensitivity([1.0, 2.0], [1.0])
    with pytest.raises(DataError, match="group"):
        score_stability([0.1, 0.2], [0.1, 0.2], ["a"])


def test_a_judge_that_takes_the_first_place_leans_and_one_that_reads_does_not():
    # Always the first: 1 when ours stands first, 0 when it stands second.
    first = position_lean(np.ones(40), np.zeros(40))
    assert (first.value, first.consistent, first.n) == (0.5, 0.0, 40)
    fair = np.array([1.0, 0.0, 0.5, 1.0])
    assert (position_lean(fair, fair).value, position_lean(fair, fair).consistent) == (0.0, 1.0)
    # By hand: (1 - .5) / 2, 0, (0 - 1) / 2: mean -1/12; one of three is consistent.
    soft = position_lean([0.1, 0.3], [1 - 0.9, 1 - 0.7])  # alike but for rounding
    assert soft.consistent == 1.0
    mixed = position_lean([1.0, 0.5, 0.0, NAN], [0.5, 0.5, 1.0, 1.0])
    assert mixed.value == pytest.approx(-1 / 12)
    assert mixed.consistent == pytest.approx(1 / 3)
    assert mixed.missing == 1
    assert -0.5 <= mixed.interval.low <= mixed.value <= mixed.interval.high <= 0.5
    with pytest.raises(DataError, match=r"not in \[0, 1\]"):
        position_lean([2.0], [0.0])
