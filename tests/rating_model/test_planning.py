"""Plans: equal to the golden numbers and to simulation."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.planning import RatingSpread, flip_probability, human_ceiling, plan_ratings
from metricsmith.rating_model.ratings import Ratings

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "raters.json").read_text("utf-8"))["flip_probability"]
OPTIONS = ("no", "yes")


@pytest.mark.parametrize("threshold", GOLDEN)
def test_flip_probabilities_equal_the_golden_ones(threshold):
    for ratings, expected in GOLDEN[threshold].items():
        assert flip_probability(int(ratings), float(threshold)) == pytest.approx(expected, abs=5.1e-5)


def test_flip_probability_by_hand():
    # Shares .2 and .5 at threshold .5, two ratings: one of them is enough. 1 - .8^2 = .36 and .5^2 = .25.
    assert flip_probability(2, 0.5, shares=[0.2, 0.5, math.nan]) == pytest.approx((0.36 + 0.25) / 2)
    assert flip_probability(1, 1.0, shares=[1.0]) == 0
    assert math.isnan(flip_probability(3, 0.5, shares=[]))


@settings(deadline=None, max_examples=15)
@given(m=st.integers(1, 30), threshold=st.floats(0.05, 1), mean=st.floats(0.1, 0.9), part=st.floats(0.05, 0.9))
def test_the_closed_form_is_the_mean_over_shares_of_the_distribution(m, threshold, mean, part):
    from scipy.stats import beta

    spread = RatingSpread(mean, part * mean * (1 - mean), 0.0)
    a, b = spread.beta
    assert (beta.mean(a, b), beta.var(a, b)) == pytest.approx((mean, spread.between))
    shares = beta.ppf((np.arange(4000) + 0.5) / 4000, a, b)
    found = flip_probability(m, threshold, spread=spread)
    assert found == pytest.approx(flip_probability(m, threshold, shares=shares), abs=5e-3)


def pilot(random, items, ratings, a=2.0, b=3.0):
    """Choices of yes with Beta(a, b) shares; `ratings` is how many of each item."""
    shares = random.beta(a, b, items)
    return shares, Ratings.from_counts(
        np.column_stack([ratings - (yes := random.binomial(ratings, shares)), yes]), OPTIONS
    )


def test_a_pilot_gives_the_variances_that_its_shares_have():
    random = np.random.default_rng(0)
    found = RatingSpread.of_pilot(pilot(random, 40_000, random.integers(1, 5, 40_000))[1], ["yes"])
    # Beta(2, 3): mean .4, variance 6 / 150 = .04, and .24 - .04 around an item's share.
    assert (found.mean, found.between, found.within) == pytest.approx((0.4, 0.04, 0.2), abs=0.004)
    assert found.beta == pytest.approx((2, 3), rel=0.1)


def test_variances_equal_the_analysis_of_variance_by_hand():
    # Items (yes, yes) and (no, yes): within (.25 + .25) / 2; among items 2 x .25^2 x 2; between (.25 - .25) / 2 = 0.
    ratings = Ratings.from_counts([[0, 2], [1, 1], [0, 0]], OPTIONS)
    assert RatingSpread.of_pilot(ratings, ["yes"]) == RatingSpread(0.75, 0.0, 0.25)


def test_response_sets_count_as_positive_where_they_hold_an_option():
    rows = [(0, 0, ["no", "yes"]), (0, 1, ["no"]), (1, 0, ["yes"]), (1, 1, ["yes"])]
    spread = RatingSpread.of_pilot(Ratings.from_rows(rows, OPTIONS, sets=True), ["yes"])
    assert spread == RatingSpread(0.75, 0.0, 0.25)


@pytest.mark.parametrize(("items", "ratings"), [(40, 1), (40, 5), (150, 2)])
def test_half_widths_are_those_of_simulated_ratings(items, ratings):
    from metricsmith.stats.resampling import mean_interval

    random = np.random.default_rng(items + ratings)
    spread, halves, held = RatingSpread(0.4, 0.04, 0.2), [], 0
    for _ in range(600):
        shares = pilot(random, items, ratings)[1].counts[:, 1] / ratings
        interval = mean_interval(shares)
        halves.append((interval.high - interval.low) / 2)
        held += interval.low <= 0.4 <= interval.high
    assert spread.half_width(items, ratings) == pytest.approx(np.mean(halves), rel=0.03)
    assert held / 600 == pytest.approx(0.95, abs=0.03)


@settings(deadline=None, max_examples=20)
@given(
    between=st.floats(0.005, 0.2), within=st.floats(0.005, 0.25), wish=st.floats(0.02, 0.2), item_cost=st.floats(0, 20)
)
def test_the_plan_for_a_half_width_is_the_cheapest_that_meets_it(between, within, wish, item_cost):
    spread = RatingSpread(0.5, between, within)
    plan = plan_ratings(spread, half_width=wish, item_cost=item_cost)
    assert plan.half_width == spread.half_width(plan.items, plan.ratings_per_item) <= wish
    assert plan.items == 2 or spread.half_width(plan.items - 1, plan.ratings_per_item) > wish
    assert plan.cost == pytest.approx(plan.items * (item_cost + plan.ratings_per_item))
    for ratings in (1, 2, 3, 5, 10, 30):
        assert (
            plan_ratings(spread, half_width=wish, item_cost=item_cost, ratings_per_item=ratings).cost
            >= plan.cost - 1e-9
        )


def test_a_budget_is_split_by_the_square_root_rule():
    # sqrt(9 x .16 / (1 x .04)) = 6 ratings of each item, which then costs 15.
    plan = plan_ratings(RatingSpread(0.5, 0.04, 0.16), budget=15_000, item_cost=9)
    assert (plan.items, plan.ratings_per_item, plan.cost) == (1000, 6, 15_000)
    assert plan.half_width == pytest.approx(1.96 * math.sqrt((0.04 + 0.16 / 6) / 1000), rel=0.002)


def test_free_items_are_rated_once_and_few_items_often():
    spread = RatingSpread(0.5, 0.04, 0.2)
    assert plan_ratings(spread, budget=300).ratings_per_item == 1
    few = plan_ratings(spread, half_width=0.08, most_items=40)
    assert few.items == 40
    assert spread.half_width(40, few.ratings_per_item - 1) > 0.08


def test_plans_that_cannot_be_are_refused():
    spread = RatingSpread(0.5, 0.04, 0.2)
    with pytest.raises(OptionError, match="no plan of at most 10 items"):
        plan_ratings(spread, half_width=0.05, most_items=10)
    with pytest.raises(OptionError, match="either a half width or a budget"):
        plan_ratings(spread, half_width=0.05, budget=10)
    with pytest.raises(OptionError, match="either a half width or a budget"):
        plan_ratings(spread, half_width=0.0)
    with pytest.raises(OptionError, match="0 ratings per item"):
        plan_ratings(spread, half_width=0.05, ratings_per_item=0)
    with pytest.raises(OptionError, match="0 ratings"):
        flip_probability(0, 0.5)
    with pytest.raises(OptionError, match="variance 0 between items"):
        flip_probability(3, 0.5, spread=RatingSpread(0.5, 0.0, 0.25))
    with pytest.raises(DataError, match="a pilot needs two"):
        RatingSpread.of_pilot(Ratings.from_counts([[1, 0], [0, 1]], OPTIONS), ["yes"])


def test_the_ceiling_by_hand():
    # (yes, yes, no): each yes meets a tie of the others, no meets yes: hits (.5 + .5 + 0) / 3; pairs alike 1 of 3.
    # (yes, yes): 1 and 1. The item with one rating is left out.
    found = human_ceiling(Ratings.from_counts([[1, 2], [0, 2], [0, 1]], OPTIONS))
    assert (found.hit_rate, found.agreement) == pytest.approx(((1 / 3 + 1) / 2, (1 / 3 + 1) / 2))
    assert (found.items, found.left_out) == (2, 1)
    assert found.hit_rate_interval.low <= found.hit_rate <= found.hit_rate_interval.high
    assert math.isnan(human_ceiling(Ratings.from_counts([[1, 0]], OPTIONS)).hit_rate)


def test_no_judge_has_a_lower_brier_score_than_people_allow():
    from metricsmith.rating_model.measures import judge_agreement
    from metricsmith.rating_model.response_sets import ResponseSets
    from metricsmith.rating_model.vectors import RatingVectors

    random = np.random.default_rng(1)
    shares, ratings = pilot(random, 20_000, 3)
    sets = ResponseSets.single(OPTIONS)
    best = RatingVectors.stack([RatingVectors.of_population(sets, np.column_stack([1 - shares, shares]))])
    score = judge_agreement(RatingVectors.of_ratings(sets, ratings), best, ["brier_score"])[0, 0]
    assert score == pytest.approx(1 - human_ceiling(ratings).agreement, abs=0.01)


def test_groups_widen_the_ceilings_interval():
    rows = [
        (item, rater, OPTIONS[(item // 10 + (rater == 0) * (item // 20)) % 2])
        for item in range(60)
        for rater in range(3)
    ]
    alone, grouped = (
        human_ceiling(Ratings.from_rows(rows, OPTIONS, groups=groups)).agreement_interval
        for groups in (None, {item: item // 10 for item in range(60)})
    )
    assert grouped.high - grouped.low > alone.high - alone.low


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0, 0.0])
def test_numbers_that_no_plan_can_be_made_of_are_refused(wrong):
    spread = RatingSpread(0.5, 0.04, 0.2)
    for wish in ({"half_width": wrong}, {"budget": wrong}, {"budget": 9, "rating_cost": wrong}):
        with pytest.raises(OptionError, match=r"above 0|more than 0"):
            plan_ratings(spread, **wish)
    if wrong != 0:
        with pytest.raises(OptionError, match="variances from 0"):
            RatingSpread(0.5, wrong, 0.2)
    for ratings in (2.5, wrong):
        with pytest.raises(OptionError, match="a whole number from 1"):
            plan_ratings(spread, budget=100, ratings_per_item=ratings)
        with pytest.raises(OptionError, match="a whole number from 1"):
            flip_probability(ratings, 0.5)


def test_shares_that_are_none_positive_options_that_are_none_and_sets_are_refused():
    for shares in ([1.5], [-0.1, 0.5]):
        with pytest.raises(OptionError, match="shares from 0 to 1"):
            flip_probability(3, 0.5, shares=shares)
    with pytest.raises(OptionError, match="none was given"):
        RatingSpread.of_pilot(Ratings.from_counts([[1, 1], [2, 0]], OPTIONS), [])
    with pytest.raises(OptionError, match="response sets have no one option"):
        human_ceiling(Ratings.from_rows([(0, 0, ["no", "yes"]), (0, 1, ["no"])], OPTIONS, sets=True))


def test_groups_of_items_widen_the_plan_as_they_widen_the_interval():
    from metricsmith.stats.resampling import group_mean_interval

    random, spreads, halves = np.random.default_rng(5), [], []
    groups = dict(enumerate(np.repeat(np.arange(20), 10).tolist()))
    for _ in range(100):
        level = np.repeat(random.beta(2, 3, 20), 10)
        rows = [(item, rater, OPTIONS[int(random.random() < level[item])]) for item in groups for rater in range(2)]
        ratings = Ratings.from_rows(rows, OPTIONS, groups=groups)
        spreads.append(RatingSpread.of_pilot(ratings, ["yes"]))
        interval = group_mean_interval(ratings.counts[:, 1] / 2, ratings.groups)
        halves.append((interval.high - interval.low) / 2)
    alone = RatingSpread.of_pilot(Ratings.from_rows(rows, OPTIONS), ["yes"])
    assert (alone.group_size, alone.likeness, spreads[0].group_size) == (1, 0, 10)
    expected = np.mean([spread.half_width(200, 2) for spread in spreads])
    assert expected == pytest.approx(np.mean(halves), rel=0.06)
    assert alone.half_width(200, 2) < 0.8 * expected
    plan = plan_ratings(spreads[0], half_width=0.05)
    assert spreads[0].half_width(plan.items - 1, plan.ratings_per_item) > 0.05 >= plan.half_width


def test_ratings_that_are_all_alike_give_no_plan():
    spread = RatingSpread.of_pilot(Ratings.from_counts([[1, 1], [2, 0]], OPTIONS), OPTIONS)
    with pytest.raises(OptionError, match=r"all ratings are alike \(mean 1\).*name fewer positive options"):
        plan_ratings(spread, half_width=0.04)
