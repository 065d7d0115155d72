"""Aggregates of repeated runs: the paper's table, golden numbers, and what must hold for any scores."""

from __future__ import annotations

import json
import math
import statistics
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.aggregation import (
    AGGREGATES,
    OutlierRule,
    aggregate_name,
    drop_outliers,
    geometric,
    maximum,
    mean,
    median,
    rrwa,
)

NAN = math.nan
TABLE_1 = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]  # GEMBA-MQM V2, table 1: negated MQM of ten runs
CASES = json.loads((Path(__file__).parents[2] / "golden" / "rrwa.json").read_text("utf-8"))["cases"]

SOME_RULE = st.builds(
    OutlierRule,
    k=st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    sided=st.sampled_from(["both", "low", "high"]),
    ddof=st.sampled_from([0, 1]),
)
RULES = st.none() | SOME_RULE
AGGREGATE = pytest.mark.parametrize("aggregate", [rrwa, mean, median, maximum])
EVERY = pytest.mark.parametrize("aggregate", list(AGGREGATES.values()), ids=list(AGGREGATES))
EIGHTHS = st.integers(-800, 800).map(lambda number: number / 8)
ROWS = st.lists(EIGHTHS, min_size=1, max_size=14)
WITH_GAPS = st.lists(EIGHTHS | st.just(NAN), min_size=1, max_size=14)
HALTING = settings(max_examples=80, deadline=None)


def kept_slowly(scores, rule):
    """The runs that stay, in rational numbers: deviations are squared, so that no root has to be rounded."""
    present = [Fraction(score) for score in scores if not math.isnan(score)]
    if rule is None or len(present) <= rule.ddof:
        return present
    centre = sum(present) / len(present)
    bound = Fraction(rule.k) ** 2 * sum((score - centre) ** 2 for score in present) / (len(present) - rule.ddof)
    sides = {"both": (-1, 1), "low": (-1,), "high": (1,)}[rule.sided]
    return [
        score for score in present if not ((score - centre) ** 2 > bound and (1 if score > centre else -1) in sides)
    ]


def slowly(aggregate, scores, rule):
    kept = sorted(kept_slowly(scores, rule), reverse=True)
    if not kept:
        return NAN
    if aggregate is median:
        return float(statistics.median(kept))
    if aggregate is maximum:
        return float(kept[0])
    if aggregate is geometric:
        return 0.0 if 0 in kept else -statistics.geometric_mean([-score for score in kept])
    weights = [Fraction(1, rank) if aggregate is rrwa else Fraction(1) for rank in range(1, len(kept) + 1)]
    return float(sum(w * score for w, score in zip(weights, kept, strict=True)) / sum(weights))


# Table 1 and the golden file


def test_table_1_of_the_paper():
    # Sum -168 over ten runs, sd 18.0: -55 is 38.2 below the mean of -16.8 and beyond 2 sd = 36.0, -50 is not.
    # Kept: -6 x 5, -11 x 3, -50. Ranks: 6 (1 + 1/2 + 1/3 + 1/4 + 1/5) + 11 (1/6 + 1/7 + 1/8) + 50/9 = 24.0353,
    # over 1 + 1/2 + ... + 1/9 = 2.82897.
    assert np.flatnonzero(np.isnan(drop_outliers(TABLE_1))).tolist() == [7]
    assert rrwa(TABLE_1) == pytest.approx(-8.496, abs=5e-4)
    assert mean(TABLE_1) == pytest.approx(-113 / 9)  # -12.556; the paper cuts off to -12.55
    assert maximum(TABLE_1) == -6
    assert geometric(TABLE_1) == pytest.approx(-((6**5 * 11**3 * 50) ** (1 / 9)))  # -9.294
    assert geometric(TABLE_1) == pytest.approx(-9.294, abs=5e-4)
    assert median(TABLE_1) == -6  # the fifth of nine; not in the paper


def test_the_mean_of_all_runs_is_not_the_one_that_the_paper_prints():
    # The paper has -16.85, for which ten whole numbers would have to add up to -168.5.
    assert mean(TABLE_1, outliers=None) == pytest.approx(-16.80)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("case", sorted(CASES))
def test_golden_numbers(case, ddof):
    scores, expected = CASES[case]["scores"], CASES[case][f"ddof{ddof}"]
    rule = OutlierRule(ddof=ddof)
    assert np.flatnonzero(np.isnan(drop_outliers(scores, ddof=ddof))).tolist() == expected["outlier_idx"]
    assert mean(scores, outliers=None) == pytest.approx(expected["mean_all"], abs=1e-12)
    assert mean(scores, outliers=rule) == pytest.approx(expected["mean"], abs=1e-12)
    assert rrwa(scores, outliers=rule) == pytest.approx(expected["rrwa"], abs=1e-12)
    assert maximum(scores, outliers=rule) == expected["max"]
    assert geometric(scores, outliers=rule) == pytest.approx(expected["geo"], abs=1e-12)


# Which runs are outliers


def test_outliers_become_nan_in_their_places_and_the_scores_given_stay_untouched():
    scores = np.array([[-1.0, -1, -1, -100, -1, -1], [-1, -2, -3, -4, -5, -6]])
    dropped = drop_outliers(scores)
    np.testing.assert_array_equal(dropped, [[-1, -1, -1, NAN, -1, -1], [-1, -2, -3, -4, -5, -6]])
    assert not np.isnan(scores).any()


def test_a_sample_standard_deviation_keeps_what_the_population_one_drops():
    # 0 x 5 and -6: mean -1, squares 5 + 25 = 30. Population sd 2.24 (2 sd = 4.47), sample sd 2.45 (4.90): both drop
    # the deviation of 5. With k = 2.1 the bounds are 4.70 and 5.14.
    scores = [0, 0, 0, 0, 0, -6]
    assert np.isnan(drop_outliers(scores, k=2.1, ddof=0)[5])
    assert not np.isnan(drop_outliers(scores, k=2.1, ddof=1)).any()


def test_one_pass_does_not_drop_what_only_stands_out_once_others_are_gone():
    # With -55 among them, -50 lies 1.84 sd below the mean; without it 2.79 (37.4 below -12.6, sd 13.4).
    assert drop_outliers(TABLE_1)[0] == -50
    assert np.isnan(drop_outliers(drop_outliers(TABLE_1))[0])


@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_no_run_out_of_five_or_fewer_can_be_beyond_two_standard_deviations(runs):
    for odd in (-100.0, -0.1, 7.7, 1e9):
        assert not np.isnan(drop_outliers([0.3] * (runs - 1) + [odd])).any()


@pytest.mark.parametrize(
    "scores",
    [
        [0, -1, -1, -1, -1, -2, -2, -2, -2],  # mean -4/3, variance (16 + 4 + 16) / 81 = 4/9: 0 is 2 sd above
        [1, 1, 1, 2, 4, 4, 4, 7],  # mean 3, variance (12 + 1 + 3 + 16) / 8 = 4: 7 is 2 sd above
    ],
)
def test_a_run_exactly_two_standard_deviations_away_stays(scores):
    np.testing.assert_array_equal(drop_outliers(scores), scores)


@pytest.mark.parametrize("shift", [0.0, 0.1, 1 / 3, -7.7])
def test_a_run_on_the_bound_itself_stays_whatever_the_rounding(shift):
    # One of five: exactly 2 sd from the mean. One of ten: exactly 3 sd.
    assert not np.isnan(drop_outliers([shift] * 4 + [shift + 0.7])).any()
    assert not np.isnan(drop_outliers([shift] * 9 + [shift - 0.7], k=3)).any()
    # A bound that is two thousandths nearer is passed.
    assert np.isnan(drop_outliers([shift] * 9 + [shift - 0.7], k=2.994)[9])


def test_a_lone_clean_run_is_dropped_by_the_two_sided_rule_and_kept_by_the_low_one():
    # With 0 kept: (0 - 6 (1/2 + ... + 1/10)) / (1 + ... + 1/10) = -6 x 1.9289683 / 2.9289683 = -3.951497
    scores = [-6] * 9 + [0]
    assert rrwa(scores) == -6
    assert rrwa(scores, outliers=OutlierRule(sided="high")) == -6
    assert rrwa(scores, outliers=OutlierRule(sided="low")) == pytest.approx(-3.951497, abs=1e-6)


def test_ranks_are_counted_among_the_kept_runs_alone():
    # Mean -15/6 = -2.5, variance 155/6 - 2.5 x 2.5 = 19.58, 1.05 sd = 4.65: 5 (7.5 away) and -10 (7.5) go.
    # Of -1, -2, -3, -4 the weights are 1, 1/2, 1/3 and 1/4: -(1 + 1 + 1 + 1) / (25/12) = -48/25.
    scores = [5, -1, -2, -3, -4, -10]
    assert np.flatnonzero(np.isnan(drop_outliers(scores, k=1.05))).tolist() == [0, 5]
    assert rrwa(scores, outliers=OutlierRule(1.05)) == pytest.approx(-48 / 25)


def test_a_lone_bad_run_is_kept_by_the_high_rule():
    assert not np.isnan(drop_outliers([0] * 9 + [-6], sided="high")).any()
    assert np.isnan(drop_outliers([0] * 9 + [-6], sided="low")[9])


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("scores", [[-7.0], [-7.0, NAN, NAN], [NAN, NAN]])
def test_a_run_without_others_to_compare_it_with_is_no_outlier(scores, ddof):
    np.testing.assert_array_equal(drop_outliers(scores, ddof=ddof), scores)


def test_runs_that_differ_by_rounding_alone_are_equal():
    noisy = -(0.1 + 0.1 + 0.1)
    assert noisy != -0.3
    assert not np.isnan(drop_outliers([-0.3] * 9 + [noisy])).any()


def test_tiny_and_huge_differences_are_judged_alike():
    for unit in (1e-200, 1e-30, 1.0, 1e200, 1e307):
        np.testing.assert_array_equal(np.isnan(drop_outliers([-unit * 0.1] * 7 + [-unit])), [False] * 7 + [True])


# What any scores must fulfil


@AGGREGATE
@given(scores=WITH_GAPS, rule=RULES)
@HALTING
def test_equal_to_exact_fractions_computed_run_by_run(aggregate, scores, rule):
    np.testing.assert_allclose(aggregate(scores, outliers=rule), slowly(aggregate, scores, rule), rtol=1e-12, atol=0)


@given(scores=WITH_GAPS, rule=SOME_RULE)
@HALTING
def test_the_same_runs_are_dropped_as_by_exact_fractions(scores, rule):
    dropped = drop_outliers(scores, rule.k, rule.sided, rule.ddof)
    assert dropped[~np.isnan(dropped)].tolist() == [float(score) for score in kept_slowly(scores, rule)]


@AGGREGATE
@given(scores=st.lists(st.floats(allow_infinity=False), min_size=1, max_size=12), rule=RULES, data=st.data())
@HALTING
def test_the_order_of_the_runs_changes_no_bit(aggregate, scores, rule, data):
    shuffled = data.draw(st.permutations(scores))
    np.testing.assert_array_equal(aggregate(shuffled, outliers=rule), aggregate(scores, outliers=rule))


@AGGREGATE
@given(scores=WITH_GAPS, rule=RULES, missing=st.integers(1, 9))
@HALTING
def test_missing_runs_change_no_bit(aggregate, scores, rule, missing):
    present = [score for score in scores if not math.isnan(score)]
    expected = aggregate(present, outliers=rule)
    np.testing.assert_array_equal(aggregate(scores, outliers=rule), expected)
    np.testing.assert_array_equal(aggregate([NAN] * missing + scores, outliers=rule), expected)


@AGGREGATE
@given(scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12), rule=RULES)
@HALTING
def test_never_outside_the_kept_runs(aggregate, scores, rule):
    kept = np.array(scores) if rule is None else drop_outliers(scores, rule.k, rule.sided, rule.ddof)
    assert np.nanmin(kept) <= aggregate(scores, outliers=rule) <= np.nanmax(kept)


@AGGREGATE
@given(value=st.floats(allow_nan=False, allow_infinity=False), runs=st.integers(1, 40), rule=RULES)
@HALTING
def test_equal_runs_give_that_very_number(aggregate, value, runs, rule):
    assert aggregate([value] * runs, outliers=rule) == value


@AGGREGATE
@given(scores=ROWS, rule=RULES, shift=st.integers(-1000, 1000), scale=st.sampled_from([0.125, 0.5, 3, 100]))
@HALTING
def test_follows_shift_and_scale(aggregate, scores, rule, shift, scale):
    moved = aggregate([score * scale + shift for score in scores], outliers=rule)
    assert moved == pytest.approx(aggregate(scores, outliers=rule) * scale + shift, rel=1e-12, abs=1e-10)


@given(scores=ROWS)
@HALTING
def test_the_highest_runs_weigh_most(scores):
    assert rrwa(scores) >= mean(scores) - 1e-12


@AGGREGATE
@pytest.mark.parametrize("rule", [None, OutlierRule(), OutlierRule(1, "low", 1)])
def test_many_rows_give_what_each_gives_alone(aggregate, rule):
    generator = np.random.default_rng(7)
    scores = np.round(generator.normal(-8, 6, (300, 10)), 1)
    scores[generator.random(scores.shape) < 0.2] = NAN
    scores[:3] = [[NAN] * 10, [-5.0] * 10, [NAN] * 9 + [-1.0]]
    together = aggregate(scores, outliers=rule)
    assert together.shape == (300,)
    np.testing.assert_array_equal(together, [aggregate(row, outliers=rule) for row in scores])
    np.testing.assert_array_equal(aggregate(scores.reshape(3, 100, 10), outliers=rule), together.reshape(3, 100))


# The geometric mean, which needs runs on one side of zero


@given(scores=st.lists(st.integers(-800, 0).map(lambda number: number / 8) | st.just(NAN), max_size=14), rule=RULES)
@HALTING
def test_the_geometric_mean_is_that_of_the_standard_library(scores, rule):
    expected = slowly(geometric, scores, rule)
    np.testing.assert_allclose(geometric(scores, outliers=rule), expected, rtol=1e-12, atol=0)
    assert geometric(scores[::-1], outliers=rule) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_the_geometric_mean_of_runs_with_a_clean_one_is_zero():
    assert geometric([-6, -6, 0]) == geometric([4, 0]) == 0
    assert geometric([-6] * 9 + [0]) == pytest.approx(-6)  # the two-sided rule drops the clean run
    assert geometric([-6] * 9 + [0], outliers=OutlierRule(sided="low")) == 0


def test_the_geometric_mean_has_the_sign_of_its_runs():
    assert geometric([2, 8]) == pytest.approx(4)
    assert geometric([-2, -8]) == pytest.approx(-4)
    np.testing.assert_allclose(geometric([[1, 4, NAN], [-1, -4, -16], [NAN] * 3]), [2, -4, NAN])


def test_the_geometric_mean_stays_finite_and_between_its_runs():
    assert geometric([-1e300, -1e-300]) == pytest.approx(-1, rel=1e-12)
    for value in (-0.1, -7.0, -5e-324, -1.7976931348623157e308):
        assert geometric([value] * 3) == value


def test_runs_on_both_sides_of_zero_have_no_geometric_mean():
    with pytest.raises(DataError, match=r"runs -2 and 3 of one row lie on both sides of zero.*another aggregate"):
        geometric([[-1, -1], [3, -2]])
    assert geometric([-5] * 9 + [90]) == -5  # what is left out does not count
    assert geometric([-5, 0]) == 0


@given(scores=ROWS, rule=RULES)
@HALTING
def test_between_the_worst_and_the_best_in_the_order_that_is_known(scores, rule):
    negated = [-abs(score) for score in scores]
    values = {name: aggregate(negated, outliers=rule) for name, aggregate in AGGREGATES.items()}
    assert values["mean"] <= values["rrwa"] + 1e-9 <= values["maximum"] + 2e-9
    assert values["mean"] <= values["geometric"] + 1e-9 <= values["maximum"] + 2e-9
    assert values["median"] <= values["maximum"]


# Edges


@EVERY
@pytest.mark.parametrize("rule", [None, OutlierRule()])
def test_no_run_at_all_gives_nan(aggregate, rule):
    assert math.isnan(aggregate([], outliers=rule))
    assert math.isnan(aggregate([NAN, None], outliers=rule))
    np.testing.assert_array_equal(aggregate([[NAN, NAN], [NAN, -2.0]], outliers=rule), [NAN, -2.0])
    np.testing.assert_array_equal(aggregate(np.empty((3, 0)), outliers=rule), [NAN] * 3)
    assert aggregate(np.empty((0, 4)), outliers=rule).shape == (0,)


@AGGREGATE
@pytest.mark.parametrize("value", [5e-324, -1.7976931348623157e308])
def test_the_smallest_and_the_largest_number_survive(aggregate, value):
    assert aggregate([value] * 3) == value
    assert abs(aggregate([value, -value, NAN], outliers=None)) <= abs(value)


def test_one_row_gives_a_plain_number():
    assert type(rrwa([-1, -2])) is float
    assert rrwa([-1, -2]) == pytest.approx(-4 / 3)  # (-1 - 2/2) / (1 + 1/2)
    assert mean([-1, -2]) == -1.5


def test_a_number_of_which_lower_is_better_turns_its_sign_twice():
    assert -rrwa(-np.array([1, 2])) == pytest.approx(4 / 3)


@pytest.mark.parametrize("aggregate", [*AGGREGATES.values(), drop_outliers])
def test_what_is_no_row_of_finite_runs_is_refused(aggregate):
    with pytest.raises(DataError, match="single number"):
        aggregate(-3.0)
    with pytest.raises(DataError, match="infinite"):
        aggregate([-3.0, -math.inf])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0.5}, "k=0.5 must be finite and at least 1"),
        ({"k": NAN}, "k=nan"),
        ({"k": math.inf}, "outliers=None"),
        ({"sided": "hi"}, "sided='hi'.*allowed are both, low, high"),
        ({"sided": "lower"}, "did you mean 'low'"),
        ({"ddof": 2}, "ddof=2 must be 0 or 1"),
    ],
)
def test_options_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        drop_outliers(TABLE_1, **options)
    with pytest.raises(OptionError, match=message):
        OutlierRule(**options)


def test_aggregates_are_known_by_function_and_by_name():
    assert [aggregate_name(function) for function in AGGREGATES.values()] == list(AGGREGATES)
    assert aggregate_name("mean") == "mean"
    with pytest.raises(OptionError, match=r"'rrw'.*did you mean 'rrwa'"):
        aggregate_name("rrw")
    with pytest.raises(OptionError, match=r"unknown aggregate 'min'.*known are rrwa, mean, median, maximum, geometric"):
        aggregate_name(np.min)
