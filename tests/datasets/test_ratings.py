from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.rating_forms import RatingForm
from metricsmith.datasets.ratings import as_scale, infer_scale, read_ratings, seen_scale
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Scale


def column(*cells):
    return open_source(pd.DataFrame({"score": pd.Series(cells, dtype=object)}))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e9, 1e9), min_size=2))
def test_the_inferred_scale_holds_every_rating(ratings):
    scale = infer_scale(ratings)
    assert all(scale.contains(rating) for rating in ratings)


@pytest.mark.parametrize(
    ("ratings", "scale"),
    [
        ([0, 1, 1], Scale(0, 1, 1)),
        ([0.2, 0.4], Scale(0, 1)),
        ([2, 3], Scale(1, 5, 1)),
        ([1.33, 4.67], Scale(1, 5)),
        ([1, 6], Scale(1, 7, 1)),
        ([0, 3, 5], Scale(0, 5, 1)),  # scales from 0 need a rating above their middle: 5 of 10 and 50 of 100 are none
        ([0, 50], Scale(0, 50, 1)),
        ([0, 51], Scale(0, 100, 1)),
        ([1, 8], Scale(1, 10, 1)),
        ([0, 6], Scale(0, 10, 1)),
        ([36.7, 99.3], Scale(0, 100)),
        ([0, 100], Scale(0, 100, 1)),
        ([0, 1, 2], Scale(0, 2, 1)),
        ([0, 20], Scale(0, 20, 1)),
        ([-1, 1], Scale(-1, 1, 1)),
        ([-0.5, 2.25], Scale(-0.5, 2.25)),
        ([math.nan, 1, 5], Scale(1, 5, 1)),
        ([], Scale(0, 1)),
        ([200, 200], Scale(199, 201, 1)),
    ],
)
def test_scales_are_recognised(ratings, scale):
    assert infer_scale(ratings) == scale


@pytest.mark.parametrize(
    ("text", "scale"), [("1:5:1", Scale(1, 5, 1)), ("0:100", Scale(0, 100)), ("-1:1:0.5", Scale(-1, 1, 0.5))]
)
def test_a_scale_is_read_from_text(text, scale):
    assert as_scale(text) == scale
    assert as_scale(scale) is scale


@pytest.mark.parametrize("text", ["5", "1-5", "1:2:3:4", "a:b", ""])
def test_a_misspelt_scale_says_the_form(text):
    with pytest.raises(OptionError, match="LOW:HIGH or LOW:HIGH:STEP"):
        as_scale(text)


def test_an_upside_down_scale_is_refused():
    with pytest.raises(OptionError, match="low < high"):
        as_scale("5:1")


def test_a_column_of_mixed_writing_is_read():
    ratings = read_ratings(column("up", "", "no", None, True, 0, "1"), "score")
    np.testing.assert_array_equal(ratings, [1, math.nan, 0, math.nan, 1, 0, 1])


def test_a_cell_that_is_no_rating_is_shown_with_its_place():
    with pytest.raises(DataError) as caught:
        read_ratings(column(1, 2, "excellent"), "score")
    text = str(caught.value)
    assert "the data frame, row 3 (counted from 1), column 'score': 'excellent' is not a rating" in text
    assert "allowed are finite numbers" in text
    assert "correct the cell or empty it" in text


@pytest.mark.parametrize(("cell", "shown"), [(1e300, "1e+300"), ("1e300", "1e+300"), (-1e300, "-1e+300")])
def test_a_rating_too_large_to_be_squared_is_refused_with_its_place(cell, shown):
    with pytest.raises(DataError) as caught:
        read_ratings(column(1, cell, 2), "score")
    text = str(caught.value)
    assert f"the data frame, row 2 (counted from 1), column 'score': the rating {shown} is too large" in text
    assert "allowed are numbers from -1e+15 to 1e+15" in text
    assert read_ratings(column(1, 1e15, 2), "score")[1] == 1e15


def test_words_beside_other_numbers_are_refused():
    with pytest.raises(DataError, match=r"row 2 .*'5' stands beside words such as 'yes'"):
        read_ratings(column("yes", 5, "no"), "score")


def test_a_rating_off_the_given_scale_names_its_place_and_the_scale():
    with pytest.raises(DataError, match=r"row 2 .*column 'score': the rating '6' is outside the scale 1 to 5"):
        read_ratings(column(5, "6"), "score", Scale(1, 5, 1))


def test_the_ends_of_the_given_scale_and_means_between_its_steps_belong_to_it():
    ratings = read_ratings(column(1, 5, 3.5, None), "score", Scale(1, 5, 1))
    np.testing.assert_array_equal(ratings, [1, 5, 3.5, math.nan])


@pytest.mark.parametrize("cell", ["good", True, "👎"])
def test_a_word_is_no_number_on_a_scale_of_its_own(cell):
    with pytest.raises(DataError, match=r"is a verdict .*and the ratings are numbers from 0 to 100"):
        read_ratings(column(55, cell), "score", Scale(0, 100))
    assert read_ratings(column(1, cell), "score", Scale(0, 1))[0] == 1


def scale_of(*cells, levels=()):
    raw = column(*cells)
    form = RatingForm.of(raw, "score", levels)
    return seen_scale(raw, "score", form, read_ratings(raw, "score", form=form))


@pytest.mark.parametrize(
    ("cells", "scale"),
    [
        (("2/5", "4/5"), Scale(1, 5, 1)),
        (("0/5", "3.5/5"), Scale(0, 5)),
        (("1/4", "2/4"), Scale(1, 4, 1)),
        (("2/20", "9/20"), Scale(0, 20, 1)),
        (("0/1", "1/1"), Scale(0, 1, 1)),
        (("10%", "40%"), Scale(0, 100, 1)),
        (("10%", "140%"), Scale(10, 140, 1)),  # no share of a whole: as for numbers
        (("1,8", "4"), Scale(1, 5)),
    ],
)
def test_shares_are_on_a_scale_up_to_their_whole(cells, scale):
    found, lines = scale_of(*cells)
    assert found == scale
    assert lines[0].startswith(f"rating scale inferred: {scale}, ")


def test_named_words_are_on_a_scale_of_as_many_levels_also_where_one_never_stands():
    assert scale_of("poor", "good", levels=("poor", "okay", "good"))[0] == Scale(1, 3, 1)


STARS = [1, 2, 3, 4, 5] * 6


@pytest.mark.parametrize("odd", [55, -99, 10])
def test_one_rating_that_stretches_the_scale_is_warned_of_with_its_row(odd):
    scale, (_, warning) = scale_of(*STARS, odd)
    assert f"column 'score': the rating {odd} stretches the scale to {scale}, the others lie on 1 to 5" in warning
    assert warning.startswith("warning: the data frame, row 31 ")
    assert "--scale" in warning


@pytest.mark.parametrize(
    "cells",
    [
        STARS,
        [*STARS, 6],  # 1 to 7 is no twice as wide
        [*STARS, *[55] * 2],  # two of 32 are more than 2 %
        [1, 2] * 15 + [5],  # the scale of the others is 1 to 5 too
        [10, 20, 30, 40] * 6 + [60],  # as far from 40 as 40 from 20
        [1] * 30 + [5],  # the others do not vary
        [12, 20, 35, 44, 48, 60] * 4,  # without 60 the scale would be 12 to 48, but no gap is wide
        [0, 1] * 10,
        ["4%"] * 9 + ["100%"],
    ],
)
def test_what_stretches_nothing_is_not_warned_of(cells):
    assert len(scale_of(*cells)[1]) == 1


def test_penalties_whose_others_lie_on_no_common_scale_have_honest_outliers():
    cells = [0, -1, -5, 0, -1, 0, -5, -1, 0, -25]
    raw = open_source(pd.DataFrame({"score": cells}))
    scale, notes = seen_scale(raw, "score", RatingForm(), np.array(cells, dtype=float))
    assert (str(scale), len(notes)) == ("-25 to 0", 1)


def test_two_of_a_hundred_ratings_that_stretch_the_scale_are_both_named():
    _, (_, warning) = scale_of(*STARS * 4, 55, 66)
    assert "row 121 (counted from 1), column 'score': the rating 55; the data frame, row 122 " in warning
