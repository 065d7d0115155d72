"""The agreement of people, and the ceiling that follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError
from metricsmith.stats.ceiling import MINIMUM_OUTPUTS, RaterCeiling, average_ratings, rater_ceiling
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import correlation_interval

STARS = (-1.28, -0.67, 0.0, 0.84)  # 10, 15, 25, 30 and 20 per cent


def people(outputs, raters=2, correlation=0.6, cuts=STARS, seed=0):
    """Ratings of a normal model, and the part that all raters share."""
    random = np.random.default_rng(seed)
    common = random.standard_normal(outputs)
    rest = random.standard_normal((outputs, raters))
    numbers = math.sqrt(correlation) * common[:, None] + math.sqrt(1 - correlation) * rest
    ratings = numbers if cuts is None else np.searchsorted(cuts, numbers).astype(float)
    return common, ratings


def rows(ratings):
    return [{f"rater {rater}": value for rater, value in enumerate(row) if value == value} for row in ratings.tolist()]


def test_two_people_agree_by_tau_b_over_all_outputs_that_both_rated():
    ratings = people(60)[1]
    ratings[50:, 1] = math.nan  # ten outputs that one of them rated
    groups = [place // 3 for place in range(60)]
    found = rater_ceiling(rows(ratings), groups)
    assert found.agreement == kendall_tau_b(*ratings[:50].T)
    by_hand = correlation_interval(kendall_tau_b, *ratings[:50].T, groups[:50])
    assert (found.agreement_low, found.agreement_high) == pytest.approx((by_hand.low, by_hand.high))
    assert (found.outputs, found.twice, found.raters, found.ratings, found.groups) == (60, 50, 2, 110, 17)
    assert not found.interchangeable


def test_pairs_of_raters_count_by_the_outputs_that_they_share():
    ratings = people(60, raters=3)[1]
    ratings[:40, 2] = math.nan
    a, b, c = ratings.T
    # 60 outputs of the first two raters, 20 of each with the third.
    parts = 60 * kendall_tau_b(a, b) + 20 * kendall_tau_b(a, c) + 20 * kendall_tau_b(b, c)
    assert rater_ceiling(rows(ratings)).agreement == pytest.approx(parts / 100)


def closed_form(agreement, raters):
    """The ceiling of continuous ratings."""
    r = math.sin(math.pi / 2 * agreement)
    return 2 / math.pi * math.asin(math.sqrt(raters * r / (1 + (raters - 1) * r)))


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("raters", [2, 3])
def test_continuous_ratings_have_the_ceiling_of_the_closed_form(raters, correlation):
    found = rater_ceiling(rows(people(90, raters, correlation, cuts=None)[1]))
    assert found.ceiling == pytest.approx(closed_form(found.agreement, raters), abs=0.015)


@pytest.mark.parametrize(
    ("raters", "cuts", "ceiling", "too_high"),
    [
        # The model's own ceiling, on a million outputs, and by how much the closed form exceeds it.
        (2, STARS, 0.681, 0.02),
        (3, STARS, 0.726, 0.02),
        (2, (-0.84,), 0.535, 0.10),
        (3, (-0.84,), 0.590, 0.10),
    ],
)
def test_ratings_in_levels_have_the_lower_ceiling_of_their_model(raters, cuts, ceiling, too_high):
    found = rater_ceiling(rows(people(400, raters, cuts=cuts, seed=2)[1]), [place // 8 for place in range(400)])
    assert found.ceiling == pytest.approx(ceiling, abs=0.04)
    assert found.low < ceiling < found.high
    assert closed_form(found.agreement, raters) - found.ceiling == pytest.approx(too_high, abs=0.015)


def test_a_metric_that_is_the_common_part_reaches_the_ceiling_and_not_more():
    common, ratings = people(1000, raters=2)
    found = rater_ceiling(rows(ratings), [place // 10 for place in range(1000)])
    means = average_ratings(ratings, "mean")
    assert kendall_tau_b(common, means) == pytest.approx(found.ceiling, abs=0.03)
    levels = np.empty_like(common)
    levels[np.argsort(common)] = np.sort(means)
    assert kendall_tau_b(levels, means) == pytest.approx(found.tied, abs=0.03)
    assert found.tied > found.ceiling


def test_ratings_without_ties_have_one_ceiling():
    found = rater_ceiling(rows(people(100, cuts=None)[1]))
    assert found.tied == pytest.approx(found.ceiling, abs=0.005)


def test_people_of_one_mind_allow_for_a_metric_of_one_mind_with_them():
    ratings = people(60, correlation=1.0)[1]
    found = rater_ceiling(rows(ratings))
    assert found.agreement == 1
    assert found.tied == 1
    # Continuous numbers cannot tie where people do: tau-b is the root of the share of untied pairs.
    untied = 1 - sum(share**2 for share in np.unique(ratings[:, 0], return_counts=True)[1] / 60)
    assert found.ceiling == pytest.approx(math.sqrt(untied), abs=0.01)


def test_fewer_ratings_an_output_lower_the_ceiling():
    ratings = people(90, raters=3)[1]
    full = rater_ceiling(rows(ratings))
    ratings[30:, 2] = math.nan
    ratings[60:, 1] = math.nan
    some = rater_ceiling(rows(ratings))
    assert some.ceiling < full.ceiling - 0.03


def test_a_lenient_rater_agrees_as_before():
    ratings = people(60)[1]
    shifted = ratings + np.array([0.0, 10.0])
    a, b = rater_ceiling(rows(ratings)), rater_ceiling(rows(shifted))
    assert (a.agreement, a.ceiling) == (b.agreement, pytest.approx(b.ceiling, abs=0.01))


def test_raters_keep_their_own_levels():
    """One gives marks without ties, the other thumbs, one in five of them up."""
    common, numbers = people(20000, cuts=None, seed=3)
    numbers[:, 1] = numbers[:, 1] > 0.84
    found = rater_ceiling(rows(numbers[:300]), [place // 6 for place in range(300)])
    assert found.low < kendall_tau_b(common, numbers.mean(axis=1)) < found.high
    assert found.ceiling == pytest.approx(kendall_tau_b(common, numbers.mean(axis=1)), abs=0.02)


def test_the_median_has_a_ceiling_of_its_own():
    given = rows(people(90, raters=3)[1])
    mean, median = rater_ceiling(given), rater_ceiling(given, average="median")
    assert mean.agreement == median.agreement
    assert median.ceiling < mean.ceiling


def test_raters_who_hardly_share_an_output_are_interchangeable():
    random = np.random.default_rng(0)
    ratings = people(80, raters=40, seed=1)[1]
    for row in ratings:
        row[random.permutation(40)[2:]] = math.nan
    found = rater_ceiling(rows(ratings))
    assert found.interchangeable
    assert (found.raters, found.twice) == (40, 80)
    assert found.agreement_low < 0.45 < found.agreement_high  # the model's own agreement
    assert found.low < 0.68 < found.high


def test_names_and_order_of_raters_change_nothing():
    ratings = people(60, raters=3)[1]
    renamed = [dict(reversed([(ord(name[-1]), value) for name, value in row.items()])) for row in rows(ratings)]
    one, other = rater_ceiling(rows(ratings)), rater_ceiling(renamed)
    assert other.agreement == pytest.approx(one.agreement)
    assert other.ceiling == pytest.approx(one.ceiling, abs=0.015)
    assert rater_ceiling(rows(ratings)) == one


@pytest.mark.parametrize(
    ("given", "groups", "withheld"),
    [
        ([{"ann": 1.0}, {"bob": 2.0}, {}], None, "single"),
        (rows(people(MINIMUM_OUTPUTS - 1, correlation=0.9)[1]), None, "few"),
        ([{"ann": 1.0, "bob": 2.0}, {"ann": 2.0}, {"bob": 1.0}], None, "few"),
        ([{"ann": 1.0, "bob": float(n)} for n in range(30)], None, "alike"),
        (rows(people(40, correlation=0.9)[1]), [n % 2 for n in range(40)], "groups"),
        (rows(people(60, correlation=0.0)[1]), None, "chance"),
        ([{"ann": float(n), "bob": float(-n)} for n in range(40)], None, "chance"),
    ],
)
def test_a_ceiling_is_withheld_with_the_reason(given, groups, withheld):
    found = rater_ceiling(given, groups)
    assert found.withheld == withheld
    assert all(math.isnan(value) for value in (found.ceiling, found.low, found.high, found.tied))


def test_twenty_outputs_rated_twice_are_enough():
    assert rater_ceiling(rows(people(MINIMUM_OUTPUTS, correlation=0.9)[1])).withheld == ""


def test_missing_ratings_are_left_out():
    given = rows(people(60)[1])
    blank = [*({**row, "rater 2": math.nan} for row in given), {"rater 0": math.nan}]
    one, other = rater_ceiling(given), rater_ceiling(blank)
    assert (one.agreement, one.raters, one.outputs) == (other.agreement, other.raters, other.outputs)


def test_nothing_is_no_error():
    assert rater_ceiling([]) == RaterCeiling(withheld="single")


def test_groups_must_be_as_many_as_outputs():
    with pytest.raises(DataError, match="3 groups for 30 rows"):
        rater_ceiling(rows(people(30)[1]), [1, 2, 3])


def test_averages_that_are_equal_are_equal_numbers():
    # -1.1 - 0.1 and -1.2 + 0 differ in the last bit.
    means = average_ratings(np.array([[-1.1, -0.1], [-1.2, 0.0]]), "mean")
    assert means[0] == means[1] == -0.6
    assert average_ratings(np.array([1.0, 2.0, 9.0]), "median") == 2
