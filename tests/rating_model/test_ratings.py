"""Ratings in long form: what is read, what is missing, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith import rating_model
from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings

ROWS = [("x", "ann", "yes"), ("x", "bob", "no"), ("y", "ann", None), ("z", "bob", "no")]
OPTIONS = ("yes", "no")


def test_rows_become_counts_and_what_is_missing_has_no_entry():
    ratings = Ratings.from_rows(ROWS, OPTIONS)
    assert (ratings.items, ratings.raters, ratings.missing) == (("x", "y", "z"), ("ann", "bob"), 1)
    assert ratings.counts.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert ratings.per_item.tolist() == [2, 0, 1]
    assert ratings.table().tolist() == [[0, 1], [-1, -1], [-1, 1]]


def test_counts_and_rows_are_the_same_ratings():
    ratings = Ratings.from_counts([[2, 1], [0, 0], [0, 3]], OPTIONS, ["x", "y", "z"])
    assert ratings.counts.tolist() == [[2, 1], [0, 0], [0, 3]]
    assert ratings.raters == (0, 1, 2)
    rows = [
        (ratings.items[item], ratings.raters[rater], OPTIONS[given.argmax()])
        for item, rater, given in zip(ratings.item, ratings.rater, ratings.given, strict=True)
    ]
    assert (
        Ratings.from_rows([*rows, ("y", 0, None)], OPTIONS).of_items("xyz").counts.tolist() == ratings.counts.tolist()
    )


def test_sets_hold_several_options():
    ratings = Ratings.from_rows([("x", 1, ["no", "yes"]), ("x", 2, {"no"}), ("y", 1, "yes")], OPTIONS, sets=True)
    assert ratings.counts.tolist() == [[1, 2], [1, 0]]
    with pytest.raises(OptionError, match="no one option per rater"):
        ratings.table()


def test_collapsed_ratings_say_if_any_positive_option_was_given():
    options = ("very rude", "rude", "fine")
    rows = [("x", 1, ["very rude"]), ("x", 2, ["rude", "fine"]), ("y", 1, ["fine"])]
    ratings = Ratings.from_rows(rows, options, sets=True, groups={"x": 0, "y": 1}).collapsed(("very rude", "rude"))
    assert ratings.options == ("very rude or rude", "not very rude or rude")
    assert ratings.counts.tolist() == [[2, 0], [0, 1]]
    assert ratings.chosen.tolist() == [0, 0, 1]
    assert ratings.groups == (0, 1)
    with pytest.raises(OptionError, match=r"positive options: 'rud' is no option \(did you mean 'rude'\?\)"):
        Ratings.from_rows(rows, options, sets=True).collapsed(["rud"])


def test_counts_are_marked_however_they_are_cut():
    counts = Ratings.from_counts([[2, 1], [0, 3]], OPTIONS)
    cut = counts.of_items([1]), counts.drawn(np.array([0, 0, 1])), counts.collapsed(["yes"])
    assert all(one.counted for one in (counts, *cut))
    assert not Ratings.from_rows(ROWS, OPTIONS).counted


def test_items_are_taken_in_the_order_asked_for_and_keep_their_groups():
    ratings = Ratings.from_rows(ROWS, OPTIONS, groups={"x": 1, "y": 1, "z": 2})
    taken = ratings.of_items(["z", "new", "x"])
    assert taken.counts.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert taken.groups == (2, "new", 1)
    assert ratings.of_items([]).counts.shape == (0, 2)


@pytest.mark.parametrize(
    ("rows", "sets", "message"),
    [
        ([("x", 1, "yess")], False, r"rating 1 \(item 'x', rater 1\): 'yess' was not declared.*did you mean 'yes'"),
        ([("x", 1, ["yes"])], False, "was not declared"),
        ([("x", 1, ["yes", "maybe"])], True, "'maybe' was not declared"),
        ([("x", 1, [])], True, "empty response set"),
        ([("x", 1, math.nan)], True, "nan was not declared"),
        ([("x", 1, 3)], False, "3 was not declared"),
        ([("x", 1, "yes"), ("x", 1, "no")], False, "rating 2: 1 rated item 'x' twice"),
    ],
)
def test_a_bad_rating_is_named(rows, sets, message):
    with pytest.raises(DataError, match=message):
        Ratings.from_rows(rows, OPTIONS, sets=sets)


def test_a_text_is_a_set_of_one_option_and_not_its_letters():
    assert Ratings.from_rows([("x", 1, "yes")], OPTIONS, sets=True).given.sum() == 1
    with pytest.raises(DataError, match="'ab' was not declared"):
        Ratings.from_rows([("x", 1, "ab")], ("a", "b"), sets=True)


def test_bad_options_groups_and_counts_are_named():
    for options in (("yes",), ("yes", "yes"), "yn"):
        with pytest.raises(OptionError, match="at least two, each once"):
            Ratings.from_rows([], options)
    with pytest.raises(DataError, match=r"item 'y' has no group \(2 have none\)"):
        Ratings.from_rows(ROWS, OPTIONS, groups={"x": 1})
    for counts in ([[1, -1]], [[0.5, 1]], [[np.nan, 1]]):
        with pytest.raises(DataError, match="negative or no whole number"):
            Ratings.from_counts(counts, OPTIONS)
    with pytest.raises(DataError, match=r"counts of shape \(1, 3\) for 2 options"):
        Ratings.from_counts([[1, 2, 3]], OPTIONS)
    for items in (["x"], ["x", "x"]):
        with pytest.raises(DataError, match="for 2 items: name each once"):
            Ratings.from_counts([[1, 0], [0, 1]], OPTIONS, items)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6), st.integers(0, 1000))
def test_a_redraw_keeps_the_number_of_ratings_and_draws_each_items_own(counts, seed):
    ratings = Ratings.from_counts(counts, OPTIONS)
    order = np.random.default_rng(seed).permutation(ratings.item.size)  # in any order of rows
    mixed = ratings.drawn(order)
    drawn = mixed.drawn(mixed.redraw(np.random.default_rng(seed)))
    np.testing.assert_array_equal(drawn.per_item, ratings.per_item)
    assert (drawn.counts[ratings.counts == 0] == 0).all()
    np.testing.assert_array_equal(mixed.counts, ratings.counts)


def test_an_item_is_asked_for_once():
    with pytest.raises(DataError, match="2 items, of which 1 differ"):
        Ratings.from_rows([("x", 1, "yes")], OPTIONS).of_items(["x", "x"])


def test_counts_are_what_agreement_of_many_raters_takes():
    # Pairs alike: 1 of 1, 0 of 1; shares 3/4 and 1/4: (1/2 - 10/16) / (6/16), and 1 - (4 - 1) x 2 / (2 x 3).
    counts = Ratings.from_counts([[2, 0], [1, 1]], OPTIONS).counts
    assert rating_model.fleiss_kappa(counts) == pytest.approx(-1 / 3)
    assert rating_model.krippendorff_alpha(counts) == pytest.approx(0.0)
    assert rating_model.gwet_ac1(counts) == pytest.approx((1 / 2 - 6 / 16) / (10 / 16))
