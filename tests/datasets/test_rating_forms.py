from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.rating_forms import RatingForm, as_levels, parse_rating
from metricsmith.datasets.ratings import read_ratings
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError, OptionError


def column(*cells):
    return open_source(pd.DataFrame({"score": pd.Series(cells, dtype=object)}))


@pytest.mark.parametrize(
    "cell",
    [
        "up",
        "Thumbs up",
        "thumbs_up",
        "THUMBS-UP",
        "yes",
        "Y",
        "true",
        "Good",
        "like",
        "pass",
        "👍",
        "👍🏽",
        "✔️",
        True,
    ],
)
def test_words_of_approval_are_one(cell):
    assert parse_rating(cell) == 1.0


@pytest.mark.parametrize(
    "cell",
    [
        "down",
        "Thumbs Down",
        "thumbs-down",
        "no",
        "N",
        "FALSE",
        "bad",
        "dislike",
        "fail",
        "👎",
        "👎🏿",
        "❌",
        False,
    ],
)
def test_words_of_disapproval_are_zero(cell):
    assert parse_rating(cell) == 0.0


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("4", 4), (" 4.5 ", 4.5), ("-1", -1), ("+1", 1), ("1e-3", 0.001), (3, 3), (2.5, 2.5),
        ("4 stars", 4), ("1 Star", 1), ("★★★☆☆", 3), ("⭐⭐", 2), ("⭐️⭐️⭐️", 3),
    ],
)  # fmt: skip
def test_numbers_and_stars(cell, number):
    assert parse_rating(cell) == number


@pytest.mark.parametrize("cell", [None, "", " ", "NaN", "null", "None", "n/a", "N/A", "NA", "-", math.nan])
def test_a_missing_rating_is_nan_and_never_zero(cell):
    assert math.isnan(parse_rating(cell))


@pytest.mark.parametrize("cell", ["excellent", "4/5", "3,5", "1_0", "inf", math.inf, "-Infinity", [4], "+", "☆☆☆"])
def test_what_is_no_rating_is_refused(cell):
    with pytest.raises(ValueError):
        parse_rating(cell)


@settings(deadline=None, max_examples=50)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_survives_as_number_and_as_text(number):
    assert parse_rating(number) == number
    assert parse_rating(repr(number)) == number
    assert parse_rating(f"  {number!r}\t") == number


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=6))
def test_any_text_is_a_finite_number_or_missing_or_refused(text):
    try:
        number = parse_rating(text)
    except ValueError:
        return
    assert not math.isinf(number)


def read(*cells, levels=()):
    raw = column(*cells)
    return read_ratings(raw, "score", form=RatingForm.of(raw, "score", levels)).tolist()


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (("2/5", " 4 / 5 ", "3 of 5", "1 out of 5", "3,5/5", "5/5.0"), [2, 4, 3, 1, 3.5, 5]),
        (("40%", "7,5 %", "0%", "100 %"), [40, 7.5, 0, 100]),
        (("1,8", "2", "-0,5", "3.5", 4), [1.8, 2, -0.5, 3.5, 4]),
        (("0,125", "1,5"), [0.125, 1.5]),  # no thousands begin with 0
        ((1.234, "1,5"), [1.234, 1.5]),  # a number has no marks
    ],
)
def test_a_column_of_one_form_is_read(cells, numbers):
    assert read(*cells) == numbers


def test_missing_cells_are_missing_in_every_form():
    for cell in ("2/5", "40%", "1,8"):
        np.testing.assert_array_equal(np.isnan(read(cell, "n/a", "", None, "nan")), [False, True, True, True, True])


@pytest.mark.parametrize(
    ("cells", "row", "why"),
    [
        (("4/5", "8/10"), 2, "'8/10' is not a rating: row 1 is '4/5', and all of a column must be out of 5"),
        ((4, "4/5"), 1, "'4' is not a rating: row 2 is '4/5', and all of a column must be out of 5"),
        (("40%", 0.4), 2, "'0.4' is not a rating: row 1 is '40%', and all of a column must be in %"),
        (("4/5", "yes"), 2, "row 1 is '4/5'"),
        (("4/5", True), 2, "row 1 is '4/5'"),
        (("4/5", "6/5"), 2, "'6/5' is not a rating: it is less than nothing or more than the whole"),
        (("4/5", "-1/5"), 2, "'-1/5' is not a rating: it is less than nothing or more than the whole"),
        (
            ("1,8", "1,800"),
            1,
            "'1,8' is not a rating: a comma may group thousands or be the decimal mark (row 2 is '1,800'",
        ),
        (("950", "1,800"), 2, "a comma may group thousands or be the decimal mark (row 2 is '1,800')"),
        (("1,5", "1.800"), 2, "its dot may group thousands, since commas are decimal marks in this column"),
        (("1,800/2,000", "1900/2000"), 1, "a comma may group thousands"),
        (("1.800,5", "2"), 1, "'1.800,5' is not a rating; allowed are"),
        (("1,8", "good"), 1, "stands beside words such as 'good'"),
        (("poor", "fine"), 1, "words named from worst to best with levels=... (--levels)"),
        (("missing", 2), 1, "'missing' is not a rating; allowed are"),
    ],
)
def test_a_cell_of_another_form_is_an_error_with_its_row(cells, row, why):
    with pytest.raises(DataError) as caught:
        read(*cells)
    assert f"row {row} (counted from 1), column 'score'" in str(caught.value)
    assert why in str(caught.value)


def test_the_other_row_is_named_by_its_number_in_the_file():
    raw = column("n/a", "4/5", "8/10").take([1, 2])
    with pytest.raises(DataError, match=r"row 3 .*row 2 is '4/5'"):
        read_ratings(raw, "score")


LEVELS = ("poor", "okay", "good")


def test_words_of_a_scale_count_from_worst_to_best_in_any_case():
    np.testing.assert_array_equal(
        read("Good", " poor ", "OKAY", None, "n/a", levels=LEVELS), [3, 1, 2, math.nan, math.nan]
    )
    assert read("very  bad", "Bad", levels=as_levels("Very bad, bad")) == [1, 2]
    assert read("n/a", "yes", levels=("n/a", "yes")) == [1, 2]


def test_a_word_that_is_no_level_names_its_row_and_the_nearest_level():
    with pytest.raises(DataError) as caught:
        read("good", "god", levels=LEVELS)
    assert "row 2 " in str(caught.value)
    assert "'god' is not a rating: it is none of the levels poor, okay, good (did you mean 'good'?)" in str(
        caught.value
    )
    with pytest.raises(DataError, match="'3' is not a rating: it is none of the levels"):
        read("good", 3, levels=LEVELS)


@pytest.mark.parametrize("levels", ["poor", "poor,", "poor,okay,Poor", ("good", " GOOD")])
def test_levels_are_two_or_more_different_words(levels):
    with pytest.raises(OptionError, match=r"must be two or more different words .* from worst to best"):
        as_levels(levels)


def test_levels_are_a_text_or_a_sequence():
    assert as_levels("poor, okay,good") == as_levels(LEVELS) == LEVELS
    assert as_levels(()) == ()


@pytest.mark.parametrize(
    ("cells", "levels", "said"),
    [
        (("2/5",), (), ("ratings of 'score' are out of 5",)),
        (("1,5%",), (), ("ratings of 'score' are percentages and have a comma as their decimal mark",)),
        (("Good",), LEVELS, ("the words of 'score' count as 1 poor, 2 okay, 3 good",)),
        (("up", 1), (), ()),
    ],
)
def test_what_was_read_as_what_is_said(cells, levels, said):
    assert RatingForm.of(column(*cells), "score", levels).notes("score") == said
