from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.edits import Edit, appended, applied, drawn, fitted, sampler, share


def test_edits_are_made_at_their_places_whatever_their_order():
    # by hand: "c" deleted, "X" put in front of "b"
    assert applied("abcd", [Edit(2, 3, ""), Edit(1, 1, "X")]) == "aXbd"


def test_of_two_that_overlap_the_earlier_counts():
    assert applied("abcd", [Edit(1, 3, "-"), Edit(2, 4, "+")]) == "a-d"


def test_no_edits_give_the_text_back():
    assert applied("abc", []) == "abc"


@given(st.lists(st.integers(), unique=True, max_size=20), st.integers(0, 25), st.integers(0, 99))
def test_drawn_items_keep_their_order_and_come_once(items, count, seed):
    found = drawn(items, count, np.random.default_rng(seed))
    places = [items.index(item) for item in found]
    assert len(found) == min(count, len(items))
    assert places == sorted(set(places))


def test_a_share_is_never_nothing():
    random = np.random.default_rng(0)
    assert len(share("abcdefghij", 0.3, random)) == 3
    assert len(share("abc", 0.01, random)) == 1


def test_a_sampler_gives_each_once_before_any_comes_again():
    take = sampler("abc", np.random.default_rng(1))
    first, second = [take() for _ in range(3)], [take() for _ in range(3)]
    assert sorted(first) == ["a", "b", "c"]
    assert first == second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains.", "It rains. More."),
        ("It rains.\n", "It rains. More.\n"),
        ("One\nTwo.", "One\nTwo.\n\nMore."),
        ("Paris", "Paris\n\nMore."),
        (" ", "More."),
    ],
)
def test_an_addition_stands_behind_a_sentence_and_below_anything_else(text, expected):
    assert appended(text, "More.") == expected


def test_an_addition_has_small_letters_where_the_text_has_no_others():
    assert fitted("A Word.", "all small.") == "a word."
    assert fitted("A Word.", "Not small.") == "A Word."
    assert fitted("A Word.", "東京") == "A Word."
