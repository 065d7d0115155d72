"""Judges in the raters' place are asked for people's numbers, one question for every part of a data set."""

from __future__ import annotations

import doctest

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.programs import asked_scale as module
from metricsmith.programs.asked_scale import (
    FIFTHS,
    asked_note,
    asked_scale,
    mid_rank_points,
    nearest_points,
    rating_map,
)
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.loading import from_state
from metricsmith.records import Scale, Status

Z = Scale(-1.72919, 1.15398)
GRID = Scale(1, 5, 1)
RATINGS = st.lists(st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 3)), min_size=1, max_size=40)
WHOLE = st.integers(-50, 50)


def example_judge(scale, **changes):
    return ExampleJudge(measure="Clarity", task="Rewrite notices.", scale=scale, **changes)


def test_the_examples_are_right():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("raters", "asked"),
    [
        (Scale(1, 5, 1), Scale(1, 5, 1)),
        (Scale(1, 5), Scale(1, 5, 1)),  # averages of stars
        (Scale(0, 10), Scale(0, 10, 1)),  # eleven points
        (Scale(-5, 5, 1, higher_is_better=False), Scale(-5, 5, 1, higher_is_better=False)),
        (Scale(1, 5, 0.5), Scale(1, 5, 0.5)),  # nine points that the raters had
        (Scale(0, 50, 10), Scale(0, 50, 10)),  # six of them
        (Scale(0, 10, 0.5), Scale(0, 10, 1)),  # twenty-one: too many
        (Scale(0, 1, 1), Scale(0, 1, 1)),
        (Scale(0, 1), Scale(0, 1)),
        (Scale(0, 100), Scale(0, 100)),
        (Scale(0, 100, 1), Scale(0, 100, 1)),
    ],
)
def test_a_scale_of_points_that_people_use_is_asked_itself(raters, asked):
    found = asked_scale(raters)
    assert (found.scale, found.points) == (asked, ())


@pytest.mark.parametrize(
    "raters", [Z, Scale(0, 11), Scale(0, 25), Scale(-3, 1000, 1), Scale(0.5, 5), Scale(1, 4.33), Scale(0, 1e300)]
)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_any_other_scale_is_asked_in_fifths_of_which_five_is_the_best(raters, higher_is_better):
    found = asked_scale(Scale(raters.low, raters.high, raters.step, higher_is_better))
    assert (found.scale, found.points) == (GRID, FIFTHS)
    assert not any(character.isdigit() for point in FIFTHS for character in point)


@given(st.tuples(WHOLE, WHOLE).filter(lambda ends: ends[0] < ends[1]), st.booleans())
def test_whole_ends_are_asked_as_they_are_up_to_eleven_points(ends, higher_is_better):
    raters = Scale(*ends, higher_is_better=higher_is_better)
    found = asked_scale(raters)
    few = ends[1] - ends[0] <= 10 or ends == (0, 100)
    assert bool(found.points) != few
    assert (found.scale.low, found.scale.high) == (ends if few else (1, 5))
    assert found.scale.higher_is_better == (higher_is_better if few else True)


@given(st.tuples(WHOLE, st.integers(1, 10), st.sampled_from([1, 0.5, 0.25])), st.lists(st.floats(0, 1), min_size=1))
def test_the_nearest_point_is_a_point_at_most_half_a_step_away_and_points_stay(shape, shares):
    low, steps, step = shape
    scale = Scale(low, low + steps * step, step)
    ratings = low + np.array(shares) * scale.width
    points = nearest_points(ratings, scale)
    assert np.isin(points, low + step * np.arange(steps + 1)).all()
    assert np.abs(points - ratings).max() <= step / 2 + 1e-9
    np.testing.assert_array_equal(nearest_points(points, scale), points)
    assert (np.diff(points[np.argsort(ratings, kind="stable")]) >= 0).all()


@given(RATINGS, st.integers(1, 7))
def test_mid_ranks_keep_order_and_ties_and_fill_the_parts_evenly(ratings, parts):
    found = mid_rank_points(ratings, ratings, parts)
    assert set(found.tolist()) <= set(range(parts))
    assert (np.diff(found[np.argsort(ratings, kind="stable")]) >= 0).all()
    assert all(len({part for part, one in zip(found, ratings, strict=True) if one == value}) == 1 for value in ratings)
    if len(set(ratings)) == len(ratings):  # without ties the parts differ by one row at most
        sizes = np.bincount(found, minlength=parts)
        assert sizes.max() - sizes.min() <= 1
    # Only the order counts: any rising function of the ratings gives the same parts.
    risen = np.array(ratings) * 8
    np.testing.assert_array_equal(mid_rank_points(risen, risen, parts), found)


@given(RATINGS, RATINGS)
def test_a_rating_takes_the_place_that_its_mid_rank_has_among_others(ratings, others):
    found = mid_rank_points(ratings, others, 5)
    for part, rating in zip(found.tolist(), ratings, strict=True):
        share = (sum(other < rating for other in others) + sum(other == rating for other in others) / 2) / len(others)
        assert part == min(4, int(5 * share + 1e-9))


@pytest.mark.parametrize("wrong", [([1.0], []), ([float("nan")], [1.0]), ([1.0], [float("inf")])])
def test_ranks_among_nothing_or_of_no_number_are_refused(wrong):
    with pytest.raises(DataError, match="at least one rating to stand among"):
        mid_rank_points(*wrong, 5)


@settings(deadline=None)  # the first fit imports scikit-learn
@given(RATINGS.filter(lambda ratings: len(ratings) > 1), st.booleans(), st.integers(0, 99))
def test_the_map_to_ratings_is_monotone_in_the_raters_direction(ratings, falling, seed):
    numbers = np.random.default_rng(seed).integers(1, 6, len(ratings))
    found = rating_map(numbers, ratings, falling=falling)
    assert found["knots"] == sorted(set(found["knots"]))
    assert found["values"] == sorted(found["values"], reverse=falling)
    assert len(found["knots"]) == len(found["values"])
    assert min(ratings) - 1e-6 <= min(found["values"]) <= max(found["values"]) <= max(ratings) + 1e-6


def test_three_splits_of_one_table_ask_the_same_question():
    """Demonstrations aside, whatever scale was guessed from the rows that were drawn."""
    ratings = np.random.default_rng(0).normal(size=90)
    row, questions = make_row("The road is shut."), set()
    for part in ratings.reshape(3, 30):
        scale = Scale(float(part.min()), float(part.max()))
        for judge in (
            example_judge(scale),
            GuidelineJudge(measure="Clarity", guideline="Be fair.", task="Rewrite notices.", scale=scale),
        ):
            questions.add(str(judge.messages(row)))
            assert judge.fingerprint() != example_judge(Z).fingerprint()
    assert len(questions) == 2  # one of each judge


def test_the_question_describes_each_point_and_names_no_number_of_the_sample():
    scale = example_judge(Z).question()["scale"]
    assert scale == (
        "Clarity, told by rank in place of the raters' numbers: a whole number from 1 to 5. "
        "1: among the worst fifth of works of this kind; 2: in the second worst fifth; 3: in the middle fifth; "
        "4: in the second best fifth; 5: among the best fifth of works of this kind"
    )


@pytest.mark.parametrize("step", [1, None])
def test_stars_keep_their_question_letter_for_letter(step):
    steps = " in steps of 1" if step else ""
    assert example_judge(Scale(1, 5, step)).question()["scale"] == f"Clarity: a number from 1 to 5{steps}; 5 is best"
    assert ("asked" in example_judge(Scale(1, 5, step)).settings.values) == (step is None)


def test_steps_are_named_where_the_raters_scale_has_any_and_are_those_asked():
    assert (
        example_judge(Scale(0, 10, 0.5)).question()["scale"]
        == "Clarity: a number from 0 to 10 in steps of 1; 10 is best"
    )
    assert (
        example_judge(Scale(1, 5, 0.5)).question()["scale"]
        == "Clarity: a number from 1 to 5 in steps of 0.5; 5 is best"
    )


def test_averages_are_shown_as_their_nearest_star_and_ranks_as_fifths():
    rows = [make_row(f"Text {number}.") for number in range(5)]
    stars = example_judge(Scale(1, 5)).with_examples(rows, [1.0, 1.67, 3.33, 4.25, 5.0])
    assert [demo["score"] for demo in stars.examples] == [1, 2, 3, 4, 5]
    fifths = example_judge(Z).with_examples(rows, [0.1, -1.7, 1.1, 0.4, -0.3])
    assert [demo["score"] for demo in fifths.examples] == [3, 1, 5, 4, 2]
    lower = Scale(Z.low, Z.high, higher_is_better=False)
    turned = example_judge(lower).with_examples(rows, [0.1, -1.7, 1.1, 0.4, -0.3])
    assert [demo["score"] for demo in turned.examples] == [3, 5, 1, 2, 4]
    with pytest.raises(DataError, match=r"not on the scale -1\.72919 to 1\.15398"):
        fifths.with_examples(rows[:1], [1.2])


def test_the_number_stays_on_the_asked_scale_and_the_map_brings_it_back():
    judge = example_judge(Scale(Z.low, Z.high, higher_is_better=False))
    with dspy.context(lm=DummyLM([{"reasoning": "r", "score": "5"}, *[{"reasoning": "r", "score": "-0.5"}] * 2])):
        good, off = judge.judge_batch([make_row("a"), make_row("b")])
    assert (good.raw, good.score, off.status) == (5.0, 1.0, Status.OUT_OF_RANGE)
    assert judge.output.higher_is_better
    with pytest.raises(OptionError, match="with_rating_map"):
        judge.as_ratings([5.0])
    # Pooled neighbours: 3 and 4 break the order and share the mean (0.4 + 0.6) / 2; lower ratings are better here.
    known = judge.with_rating_map([1, 3, 4, 5, np.nan], [1.1, 0.4, 0.6, -1.5, 0.0])
    np.testing.assert_allclose(known.as_ratings([1, 2, 3.5, 5, 9, np.nan]), [1.1, 0.8, 0.5, -1.5, -1.5, np.nan])
    np.testing.assert_array_equal(example_judge(Scale(1, 5)).as_ratings([1, 2]), [1.0, 2.0])


def test_asked_scale_and_map_stand_in_the_state_and_on_the_card():
    judge = example_judge(Z).with_rating_map([1, 3, 5], [-1.5, 0.0, 1.0])
    again = from_state(judge.to_state())
    assert again.to_state() == judge.to_state()
    kept = again.to_state()["state"]["settings"]
    assert kept["asked"] == {"low": 1, "high": 5, "step": 1, "higher_is_better": True}
    assert kept["points"] == list(FIFTHS)
    assert kept["map"] == {"knots": [1.0, 3.0, 5.0], "values": [-1.5, 0.0, 1.0]}
    assert again.card.rating_map == ((1.0, -1.5), (3.0, 0.0), (5.0, 1.0))
    assert "- **Asked on**: 1 to 5, by fifths" in again.card.to_markdown()
    assert "- **In the raters' numbers**: 1 is -1.5, 3 is 0, 5 is 1" in again.card.to_markdown()
    assert again.fingerprint() == judge.fingerprint() == example_judge(Z).fingerprint()  # a map changes no request


def test_a_judge_saved_before_there_was_an_asked_scale_is_asked_as_it_was():
    state = example_judge(Z).to_state()
    for name in ("asked", "points"):
        del state["state"]["settings"][name]
    judge = from_state(state)
    assert judge.scale == judge.rating_scale == Z
    assert judge.question()["scale"] == "Clarity: a number from -1.72919 to 1.15398; 1.15398 is best"
    np.testing.assert_array_equal(judge.asked_numbers([0.25]), [0.25])


def test_the_note_says_what_was_done_and_why_only_where_something_was():
    assert asked_note("rating", Scale(1, 5), [1, 4, np.nan]) == ""
    assert asked_note("rating", Scale(0, 100), [33.3]) == ""
    assert "is an average" in asked_note("rating", Scale(1, 5), [1, 4.33])
    assert "models do not keep to numbers that nobody uses" in asked_note("rating", Z, [0.2])
