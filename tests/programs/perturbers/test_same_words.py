"""Rewordings mean the same: they can be undone, values stay, and traps are left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.same_words import PHRASES, SPELLINGS
from metricsmith.programs.perturbers.builtin.segments import Protected
from perturbing import ARTICLE, UNTOUCHABLE, change, prose

SEEDS = st.integers(0, 99)
STRENGTHS = st.sampled_from(["subtle", "obvious"])
REWORDINGS = ("contractions", "number_format", "synonyms")

# Written for this test, apart from the table that is tested.
LONG = {
    "don't": "do not", "doesn't": "does not", "didn't": "did not", "isn't": "is not", "aren't": "are not",
    "wasn't": "was not", "weren't": "were not", "couldn't": "could not", "wouldn't": "would not",
    "shouldn't": "should not", "hasn't": "has not", "haven't": "have not", "hadn't": "had not", "won't": "will not",
    "can't": "cannot", "i'm": "i am", "it's": "it is", "that's": "that is", "there's": "there is",
}  # fmt: skip
ENDINGS = {"re": "are", "ve": "have", "ll": "will"}
NUMERALS = dict(zip("two three four five six seven eight nine".split(), range(2, 10), strict=True))  # noqa: SIM905


def in_full(text: str) -> str:
    """Every contraction written out, in small letters."""
    told = text.lower().replace("’", "'")
    for short, full in LONG.items():
        told = re.sub(rf"\b{short}\b", full, told)
    return re.sub(r"\b(\w+)'(re|ve|ll)\b", lambda match: f"{match[1]} {ENDINGS[match[2]]}", told)


def values(text: str) -> list[float]:
    found = re.findall(rf"\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(NUMERALS)})\b", text.lower())
    return [float(NUMERALS.get(one, one.replace(",", "").rstrip(".") if one not in NUMERALS else 0)) for one in found]


@given(prose(), SEEDS, STRENGTHS)
def test_contractions_written_out_are_the_same_text(text, seed, strength):
    assert in_full(change("contractions", text, strength, seed)) == in_full(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They don't take cash.", "They do not take cash."),
        ("I can't go, and I'm late.", "I cannot go, and I am late."),
        ("We’re here; you've won.", "We are here; you have won."),
        ("It's a start, and that's the end.", "It is a start, and that is the end."),
        ("Passengers won't notice.", "Passengers will not notice."),
        ("They do not take cash.", "They don't take cash."),
        ("It is a start. We are going home.", "It's a start. We're going home."),
        ("We cannot see it. You will be late.", "We can't see it. You'll be late."),
    ],
)
def test_contractions_by_hand(text, expected):
    assert change("contractions", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The dog lost its bone.",
        "It's been long.",  # has
        "It's gone now.",
        "He'd go, and she'd gone.",  # would, had
        "Anna's dog and the boys' cat.",
        "Let's go.",
        "The others don't know?",
        "IT'S A START. THEY DON'T CARE.",
        "Isn't it late? Why don't you come?",
        "It is late, isn't it.",
        "Don't people ever learn?",
        "Yes, I will.",
        "You know what it is.",
        "Tell me who they are.",
        "What you do not only matters to you.",
        "Tell me what you do not what you say.",
        "His will not being found, they left.",
        "I told them not to.",
        "Who I am is my affair.",
        "They shouldn't've gone.",
        "We can't.",
        "the dos and don'ts",
        "Do not enter.",
    ],
)
def test_where_forms_could_differ_in_meaning_they_stay(text):
    assert change("contractions", text) == text


@given(prose(), SEEDS, STRENGTHS)
def test_values_stay(text, seed, strength):
    assert values(change("number_format", text, strength, seed)) == values(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was seen by 12,000 people in the town.", "It was seen by 12000 people in the town."),
        ("It was seen by 12000 people in the town.", "It was seen by 12,000 people in the town."),
        ("There were over 1,500 visitors on the day.", "There were over 1500 visitors on the day."),
        ("It costs $1,000,000 or £51,000.", "It costs $1000000 or £51000."),
        ("It costs $4500 to fix it.", "It costs $4,500 to fix it."),
        ("It is due in 5 days or after two weeks.", "It is due in five days or after 2 weeks."),
        ("It was about 28% of them, or 3.5%.", "It was about 28 percent of them, or 3.5 percent."),
    ],
)
def test_numbers_by_hand(text, expected):
    assert change("number_format", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It was in 2022 people saw it, and in 1999 days were long.",  # a year
        "It was built in 1912 and is 1,912 years old.",
        "It is in v1.000 and in 2026-11-21 of the plan.",
        "Call us on 0555 010 330 or at room 12000 of the house.",
        "It is 3.14 and 3,14 and 1,00,000 in the list.",
        "It is the point (1,200) of the graph and f(12,000).",
        "It is in Chapter 5 and on Bus 5 of the line.",
        "The 5 days to 7 days are in the plan of 3-5 days.",
        "It costs $1,000.50 or $1,000-2,000 to do it.",
        "The five of us are in the house on the one day.",
        "Team 5 people are in version 5 days of the plan.",
        "It is 12,000 km and 12000 mm to the end of it.",
        "Er hat 12,000 people.",
        "FIVE DAYS of it is in FIVE DAYS of the plan",
    ],
)
def test_other_numbers_stay(text):
    assert change("number_format", text) == text


def undone(text: str) -> str:
    """Every wording of the table in one form, in small letters."""
    told = text.lower()
    for one, two in (
        ("for instance", "for example"), ("one another", "each other"), ("in spite of", "despite"),
        ("irrespective", "regardless"), ("everybody", "everyone"), ("anybody", "anyone"),
        ("furthermore", "moreover"), ("towards", "toward"), ("afterwards", "afterward"), ("per cent", "percent"),
        ("although", "though"), ("gray", "grey"), ("color", "colour"), ("e.g.,", "e.g."), ("e.g.", "for example,"),
        ("i.e.,", "i.e."), ("i.e.", "that is,"),
    ):  # fmt: skip
        told = told.replace(one, two)
    return told


@given(prose(), SEEDS, STRENGTHS)
def test_wordings_can_be_undone(text, seed, strength):
    assert undone(change("synonyms", text, strength, seed)) == undone(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Take this, for example: a cat.", "Take this, for instance: a cat."),
        ("For instance, everybody came.", "For example, everyone came."),
        ("Although it rained, they met each other.", "Though it rained, they met one another."),
        ("Use a tool (e.g. this one), i.e., it.", "Use a tool (for example, this one), that is, it."),
        ("It rose in spite of the fact that it fell.", "It rose although it fell."),
        ("It was 5 percent despite us.", "It was 5 per cent in spite of us."),
        ("We realised the colours of neighbouring centres.", "We realized the colors of neighboring centers."),
        ("The traveler canceled.", "The traveller cancelled."),
        ("Approximately 50 came.", "Roughly 50 came."),
        ("We left prior to the rain.", "We left before the rain."),
    ],
)
def test_wordings_by_hand(text, expected):
    assert change("synonyms", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "We asked for example sentences.",
        "Each other member gave one another chance.",
        "EVERYONE FOR EXAMPLE, ALTHOUGH",
        "Anna Grey went to Pearl Harbor and the World Trade Center.",
        "Centred and centered in metres.",
        "That is anyone's guess, a for-example.",
        "It had an approximately 50 page limit.",
        "In percent and per cent.",
        "the labour party in the gray theatre",  # no capital: it may be a name
        "Not nearly enough, almost.",
    ],
)
def test_traps_stay(text):
    assert change("synonyms", text) == text


@pytest.mark.parametrize(("old", "new"), [(one.pattern, one.new) for one in (*PHRASES, *SPELLINGS)])
def test_nothing_in_the_tables_is_its_own_rewording(old, new):
    assert not old.fullmatch(new)


@pytest.mark.parametrize("kept", UNTOUCHABLE)
@pytest.mark.parametrize("name", REWORDINGS)
def test_code_addresses_tables_and_quotations_stay(name, kept):
    text = f"They don't mind it, for example.\n\n{kept}\n\nIt is about 5 days, although the Colour is not mine."
    after = change(name, text)
    assert after != text
    assert kept in after


@given(prose(), SEEDS, STRENGTHS, st.sampled_from(REWORDINGS))
def test_protected_places_are_the_same_afterwards(text, seed, strength, name):
    def kept(told: str) -> list[str]:
        return [told[start:end] for start, end in Protected(told).spans()]

    assert kept(change(name, text, strength, seed)) == kept(text)


def test_one_change_if_subtle_and_all_if_obvious():
    for name, count in (("contractions", 2), ("number_format", 4), ("synonyms", 4)):
        obvious = change(name, ARTICLE)
        subtle = {change(name, ARTICLE, "subtle", seed) for seed in range(40)}
        assert len(subtle) == count, name
        assert obvious not in subtle
