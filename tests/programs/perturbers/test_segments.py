from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import lines, looks_english, sentences, without, words
from perturbing import ARTICLE, prose


def told(text: str) -> list[str]:
    return [text[place.start : place.end] for place in sentences(text)]


def heard(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


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
    kinds = [line.kind for line in lines("# a\n\n- b\n1. c\nd\n| e |\n```\n- f\n```\ng\n* * *")]
    told = "furniture blank bullet numbered prose furniture code code code prose furniture"
    assert " ".join(kinds) == told


@given(prose() | st.text())
def test_sentences_are_in_order_stripped_and_lose_no_letter_of_prose(text):
    found = sentences(text)
    ends = [0, *(place.end for place in found)]
    assert all(place.start >= end for place, end in zip(found, ends, strict=False))
    assert all(one == one.strip() != "" for one in told(text))
    outside = "".join(text[end : place.start] for place, end in zip(found, ends, strict=False)) + text[ends[-1] :]
    if all(line.kind in ("prose", "blank") for line in lines(text)):
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
    assert without(text, sentences(text), {place}) == expected


def test_several_sentences_go_at_once():
    text = "A one. B two. C three.\n- D four. E five.\n- F six.\n\nG seven.\n"
    found = sentences(text)
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
    assert [("one two three"[a:b]) for a, b in words("one two three", 4, 7)] == ["two"]


def test_what_looks_english():
    assert looks_english(ARTICLE)
    assert looks_english(ARTICLE.lower())
    assert not looks_english("Der Zug hält heute an jedem Bahnhof, auch an den kleinen, und das ist neu.")
    assert not looks_english("Paris.")
    assert not looks_english("")
