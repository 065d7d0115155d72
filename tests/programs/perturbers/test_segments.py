"""None"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import (
    Edit,
    appended,
    applied,
    fitted,
    line_places,
    looks_english,
    pick_share,
    pick_some,
    sampler,
    sentence_places,
    without,
    word_places,
)
from perturbing import ARTICLE, prose


def told(text: str) -> list[str]:
    return [text[place.start : place.end] for place in sentence_places(text)]


def heard(text: str) -> list[str]:
    return [text[start:end] for start, end in word_places(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid 3.14. He left.", ["Dr. Smith paid 3.14.", "He left."]),
        ("Use a tool, e.g. this one. Stop.", ["Use a tool, e.g. this one.", "Stop."]),
        ("The U.S. Senate met. It voted.", ["The U.S. Senate met.", "It voted."]),
        ("in the u.s. senate. next.", ["in the u.s. senate.", "next."]),
        ("It opens at 5 p.m. The bus waits.", ["It opens at 5 p.m.", "The bus waits."]),
        ("See no. 5 on p. 12 there. Good.", ["See no. 5 on p. 12 there.", "Good."]),
        ("Acme Inc. makes it. Yes!", ["Acme Inc. makes it.", "Yes!"]),
        ("He said no. She left.", ["He said no.", "She left."]),
        ('"Stop!" he said. Why?', ['"Stop!"', "he said.", "Why?"]),
        ("Wait... what? OK", ["Wait...", "what?", "OK"]),
        ("- One item\n- Two. Three.\n", ["One item", "Two.", "Three."]),
        ("1. First step\n2) Second\r\n(3) Third", ["First step", "Second", "Third"]),
        ("# Head\n\nText.\n\n| a. b | c |\n---\nEnd.", ["Text.", "End."]),
        ("Before.\n```\nx. y. z.\n```\nAfter.", ["Before.", "After."]),
        ("Before.\n~~~\nx. y.\n```\n never closed.", ["Before."]),
        ("你好。再见。", ["你好。", "再见。"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences(text, expected):
    assert told(text) == expected


def test_a_long_line_that_goes_on_in_small_letters_is_one_sentence_with_the_next():
    wrapped = "This is a long line of prose that somebody has wrapped\nin the middle. Next."
    assert told(wrapped) == [wrapped[:-6], "Next."]
    assert len(told(wrapped.replace("in the middle", "In the middle"))) == 3
    assert told("apples\npears") == ["apples", "pears"]


def test_the_kind_of_line_is_told():
    kinds = [line.kind for line in line_places("# a\n\n- b\n1. c\nd\n| e |\n```\n- f\n```\ng\n* * *")]
    told = "furniture blank bullet numbered prose furniture code code code prose furniture"
    assert " ".join(kinds) == told


@given(prose() | st.text())
def test_sentences_are_in_order_stripped_and_lose_no_letter_of_prose(text):
    found = sentence_places(text)
    ends = [0, *(place.end for place in found)]
    assert all(place.start >= end for place, end in zip(found, ends, strict=False))
    assert all(one == one.strip() != "" for one in told(text))
    outside = "".join(text[end : place.start] for place, end in zip(found, ends, strict=False)) + text[ends[-1] :]
    if all(line.kind in ("prose", "blank") for line in line_places(text)):
        assert outside.strip() == ""


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("A one. B two. C three.", 1, "A one. C three."),
        ("A one. B two. C three.", 2, "A one. B two."),
        ("A one. B two.", 0, "B two."),
        ("- A one.\n- B two.\n- C three.", 1, "- A one.\n- C three."),
        ("- A one. Also.\n- B two.", 0, "- Also.\n- B two."),
        ("P one.\n\nQ two.\n\nR three.", 1, "P one.\n\nR three."),
        ("P one.\r\n\r\nQ two.\r\n", 1, "P one.\r\n"),
        ("P one.\n\nQ two.\n", 0, "Q two.\n"),
    ],
)
def test_a_sentence_goes_with_the_line_that_it_fills(text, place, expected):
    assert without(text, sentence_places(text), {place}) == expected


def test_several_sentences_go_at_once():
    text = "A one. B two. C three.\n- D four. E five.\n- F six.\n\nG seven.\n"
    found = sentence_places(text)
    assert without(text, found, {1, 2, 3, 5}) == "A one.\n- E five.\nG seven.\n"
    assert without(text, found, {0, 2, 6}) == "B two.\n- D four. E five.\n- F six.\n"
    assert without(text, found, set()) == text


def test_words_keep_what_belongs_to_them():
    text = "(It's a well-known U.S. rule: 3,000.5 km, see https://x.org/a?b=1 🙂!)"
    assert heard(text) == [
        "It's", "a", "well-known", "U.S", "rule", "3,000.5", "km", "see", "https://x.org/a?b=1", "🙂",
    ]  # fmt: skip


def test_words_of_scripts_with_combining_marks_stay_whole():
    assert heard("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


def test_words_between_two_places():
    assert [("one two three"[a:b]) for a, b in word_places("one two three", 4, 7)] == ["two"]


def test_what_looks_english():
    assert looks_english(ARTICLE)
    assert looks_english(ARTICLE.lower())
    assert not looks_english("Der Zug hält heute an jedem Bahnhof, auch an den kleinen, und das ist neu.")
    assert not looks_english("Paris.")
    assert not looks_english("")


def test_edits_are_made_at_their_places_whatever_their_order():
    # by hand: "c" deleted, "X" put in front of "b"
    assert applied("abcd", [Edit(2, 3, ""), Edit(1, 1, "X")]) == "aXbd"


def test_of_two_that_overlap_the_earlier_counts():
    assert applied("abcd", [Edit(1, 3, "-"), Edit(2, 4, "+")]) == "a-d"


def test_no_edits_give_the_text_back():
    assert applied("abc", []) == "abc"


@given(st.lists(st.integers(), unique=True, max_size=20), st.integers(0, 25), st.integers(0, 99))
def test_drawn_items_keep_their_order_and_come_once(items, count, seed):
    found = pick_some(items, count, np.random.default_rng(seed))
    places = [items.index(item) for item in found]
    assert len(found) == min(count, len(items))
    assert places == sorted(set(places))


def test_a_share_is_never_nothing():
    random = np.random.default_rng(0)
    assert len(pick_share("abcdefghij", 0.3, random)) == 3
    assert len(pick_share("abc", 0.01, random)) == 1


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
