"""Perturbers that make a text worse word by word do what they say."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import sentence_places, word_places
from metricsmith.programs.perturbers.builtin.worse_words import NAMES, name_places, number_places
from perturbing import ARTICLE, change, prose

SEEDS = st.integers(0, 99)
STRENGTHS = st.sampled_from(["subtle", "obvious"])


def heard(text: str) -> list[str]:
    return [text[start:end] for start, end in word_places(text)]


def changed(before: str, after: str) -> list[tuple[str, str]]:
    one, two = heard(before), heard(after)
    assert len(one) == len(two)
    return [(old, new) for old, new in zip(one, two, strict=True) if old != new]


@given(prose(), SEEDS, STRENGTHS)
def test_shuffled_words_are_the_same_words_and_marks(text, seed, strength):
    after = change("shuffle_words", text, strength, seed)
    assert Counter(heard(text)) == Counter(heard(after))
    assert Counter(text) == Counter(after)


@given(SEEDS)
def test_words_that_are_equal_do_not_change_places(seed):
    assert change("shuffle_words", "go go go stop go go", "subtle", seed) != "go go go stop go go"


@given(SEEDS)
def test_few_words_change_places_if_subtle_and_none_leaves_its_sentence(seed):
    subtle, obvious = (change("shuffle_words", ARTICLE, strength, seed) for strength in ("subtle", "obvious"))
    assert 2 <= len(changed(ARTICLE, subtle)) <= 0.16 * len(heard(ARTICLE))
    assert len(changed(ARTICLE, obvious)) > 0.6 * len(heard(ARTICLE))
    first = sentence_places(ARTICLE)[0].end
    assert Counter(heard(obvious[:first])) == Counter(heard(ARTICLE[:first]))


@given(prose(), SEEDS, STRENGTHS)
def test_corrupted_numbers_have_as_many_digits_in_the_same_places(text, seed, strength):
    after = change("corrupt_numbers", text, strength, seed)
    if not any(text[start].isalpha() for start, _ in number_places(text)):
        assert re.sub(r"[0-9]", "0", after) == re.sub(r"[0-9]", "0", text)
        assert len(number_places(text)) == 0 or after != text


def test_every_number_changes_if_obvious_and_one_if_subtle():
    text = "In 1912 it had 12,000 books, 3.5 floors and four doors."
    after = change("corrupt_numbers", text)
    assert [old for old, _ in changed(text, after)] == ["1912", "12,000", "3.5", "four"]
    assert all(new[0] != old[0] and new[1:] == old[1:] for old, new in changed(text, after)[:3])
    assert len(changed(text, change("corrupt_numbers", text, "subtle"))) == 1


@given(SEEDS)
def test_dates_and_times_stay_possible(seed):
    after = change("corrupt_numbers", "It is on 2026-11-21 at 14:30 sharp.", seed=seed)
    day, time = re.search(r"2026-11-(\d\d) at 14:3(\d)", after).groups()
    assert 1 <= int(day) <= 28
    assert int(day) != 21
    assert time != "0"


def test_numbers_of_steps_and_identifiers_stay():
    for text in ("1. Open v1.000\n2. See https://x.org/5", "No figures here."):
        assert change("corrupt_numbers", text) == text


def test_a_name_becomes_an_invented_one_and_a_day_another_day():
    text = "On Monday our Anna Keller met Keller's aunt in Marlow."
    after = change("corrupt_names", text)
    pairs = dict(changed(text, after))
    assert set(pairs) == {"Monday", "Anna", "Keller", "Keller's", "Marlow"}
    assert pairs["Monday"].endswith("day")
    assert pairs["Keller's"] == pairs["Keller"] + "'s"
    assert {pairs["Anna"], pairs["Keller"], pairs["Marlow"]} < set(NAMES)
    assert len({pairs["Anna"], pairs["Keller"], pairs["Marlow"]}) == 3


@given(SEEDS)
def test_one_name_changes_if_subtle(seed):
    text = "Yesterday it was Anna Keller who met Tom in Marlow."
    found = {old for old, _ in changed(text, change("corrupt_names", text, "subtle", seed))}
    assert found in ({"Anna", "Keller"}, {"Tom"}, {"Marlow"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The pool is open.", "The pool is not open."),
        ("You can swim here.", "You cannot swim here."),
        ("They don't take cash.", "They do take cash."),
        ("It can't be, and it won't help.", "It can be, and it won't help."),
        ("It cannot be moved.", "It can be moved."),
        ("We will not come.", "We will come."),
        ("The old can is open now.", "The old can is not open now."),
        ("It is not only big.", "It is not only big."),
        ("Is it open? Yes, it is.", "Is it open? Yes, it is."),
        ("The pool is open?", "The pool is open?"),
        ("The can rusts.", "The can rusts."),
        ("It is never shut.", "It is never shut."),
        ("Open in May may be late.", "Open in May may not be late."),
    ],
)
def test_negation(text, expected):
    assert change("negate", text) == expected


def test_every_sentence_is_negated_if_obvious_and_one_if_subtle():
    text = "It is big. It was old. They ran. It will last."
    assert change("negate", text) == "It is not big. It was not old. They ran. It will not last."
    assert {change("negate", text, "subtle", seed).count(" not ") for seed in range(9)} == {1}


@given(SEEDS)
def test_a_misspelt_word_keeps_its_first_letter_and_most_of_its_length(seed):
    for strength, low, high in (("subtle", 1, 4), ("obvious", 14, 22)):
        pairs = changed(ARTICLE, change("typos", ARTICLE, strength, seed))
        assert low <= len(pairs) <= high
        assert all(old[0] == new[0] and abs(len(old) - len(new)) <= 1 for old, new in pairs)


def test_short_words_numbers_and_addresses_are_spelt_right():
    text = "I do it at 12:30 via https://example.org/page so it is ok"
    assert change("typos", text) == text


@given(prose(), SEEDS, STRENGTHS)
def test_wrong_case_leaves_the_letters(text, seed, strength):
    assert change("wrong_casing", text, strength, seed).casefold() == text.casefold()


def test_every_letter_changes_case_if_obvious_and_one_word_in_seven_if_subtle():
    assert change("wrong_casing", "The US pays, ok?") == "tHE us PAYS, OK?"
    assert len(changed(ARTICLE, change("wrong_casing", ARTICLE, "subtle"))) == int(0.15 * 79)
    assert change("wrong_casing", "今日は雨です。") == "今日は雨です。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It cost $1,000,000 in 2022, or 3.14%.", ["1,000,000", "2022", "3.14"]),
        ("From 2026-11-21 at 14:30 to 5/6.", ["2026-11-21", "14:30", "5/6"]),
        ("Use v1.000 or GPT-3 on the 5th; H2O and x86.", []),
        ("5kg, 20 km and 1990s", ["5", "20", "1990"]),
        ("1. First 7\n2. Second", ["7"]),
        ("Three of twelve, one left; twenty-two", ["Three", "twelve"]),
        ("`x = 5` and https://a.org/2024/ and 6", ["6"]),
        ("no figures", []),
    ],
)
def test_numbers(text, expected):
    assert [text[a:b] for a, b in number_places(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday Anna Keller met Dr. Smith in Marlow.", [["Anna", "Keller"], ["Smith"], ["Marlow"]]),
        ("Anna left. Then Bob's dog and I'm off.", [["Bob"]]),
        ("He said: Come here, and “Go now” to Tom.", [["Tom"]]),
        ("On Monday the US sent NASA to Mars.", [["Monday"], ["US"], ["NASA"], ["Mars"]]),
        ("All Words Are Capital Here", []),
        ("no names at all", []),
        ("", []),
    ],
)
def test_names(text, expected):
    assert [[text[a:b] for a, b in run] for run in name_places(text)] == expected
