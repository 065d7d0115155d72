"""Perturbers that change the layout leave everything else as it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import Protected, line_places
from perturbing import ARTICLE, UNTOUCHABLE, change, prose

SEEDS = st.integers(0, 99)
STRENGTHS = st.sampled_from(["subtle", "obvious"])
LIST = "Please bring this to the hall for the day of the fair:\n\n- a warm coat\n- some water\n- an old towel\n"
MARKS = str.maketrans({"’": "'", "“": '"', "”": '"', "_": "*"})


def paragraphs(text: str) -> list[list[str]]:
    return [part.split() for part in re.split(r"(?>\r\n|\r|\n)[ \t]*(?>\r\n|\r|\n)\s*", text.strip())]


@given(prose() | st.text(), SEEDS, STRENGTHS)
def test_white_space_changes_no_word_and_no_paragraph(text, seed, strength):
    after = change("whitespace", text, strength, seed)
    assert after.split() == text.split()
    assert paragraphs(after) == paragraphs(text)


@given(prose(), SEEDS, STRENGTHS)
def test_white_space_makes_no_line_a_list_item_a_heading_or_code(text, seed, strength):
    def kinds(told: str) -> list[str]:
        return [line.kind for line in line_places(told) if line.kind not in ("prose", "blank")]

    assert kinds(change("whitespace", text, strength, seed)) == kinds(text)


@given(prose(), SEEDS, STRENGTHS)
def test_white_space_never_breaks_a_line_hard_or_indents_one(text, seed, strength):
    before, after = (
        [(line[:1] == " ", line.endswith("  ")) for line in told.splitlines()]
        for told in (text, change("whitespace", text, strength, seed))
    )
    assert sum(indented for indented, _ in after) <= sum(indented for indented, _ in before)
    assert sum(hard for _, hard in after) <= sum(hard for _, hard in before)


def test_white_space_by_hand():
    text = "One here. Two there.\nA line that ends.\n\nEnd"
    assert change("whitespace", text) == "One here.  Two there. \nA line that ends. \n\nEnd\n"
    assert change("whitespace", "a.\r\nb.") == "a. \r\nb.\r\n"
    assert {change("whitespace", "One here. Two there.", "subtle", seed) for seed in range(20)} == {
        "One here.  Two there.",
        "One here. Two there.\n",
    }


def test_long_paragraphs_are_wrapped_at_words_and_verses_are_not():
    wrapped = change("whitespace", ARTICLE)
    assert max(map(len, wrapped.splitlines())) < 100 < max(map(len, ARTICLE.splitlines()))
    verses = "\n".join(["A verse that is " + "very " * 20 + "long"] * 2)
    assert change("whitespace", verses).count("\n") == 2  # the one between them, the one at the end


@pytest.mark.parametrize("text", ["", "  ", "done \n"])
def test_white_space_declines(text):
    assert change("whitespace", text) == text


@given(prose() | st.text(alphabet="don't“”\"’*-_ .\n"), SEEDS, STRENGTHS)
def test_marks_become_others_of_the_same_meaning(text, seed, strength):
    after = change("markup", text, strength, seed)

    def plain(told: str) -> str:
        return re.sub(r"(?m)^([ \t]*)\*(?=[ \t])", r"\1-", told.translate(MARKS))

    assert plain(after) == plain(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('She said "go" to us.', "She said “go” to us."),
        ("She said “go” to us.", 'She said "go" to us.'),
        ("It's Anna's, don't.", "It’s Anna’s, don’t."),
        ("It’s ours.", "It's ours."),
        ("- one\n- two", "* one\n* two"),
        ("* one\n  * two", "- one\n  - two"),
        ("This is **bold text** here.", "This is __bold text__ here."),
    ],
)
def test_marks_by_hand(text, expected):
    assert change("markup", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "- one\n* two",
        'A 5\'10" man with a "hat.',
        'print("hello")',
        '{"key": "value"}',
        'return "abc"',
        'We call print("so") on it.',
        'It is a"b"c to us.',
        "f's' b't'",
        "x**2 and y**2, a**b**c",
        "---\n\n***",
        "`don't`",
        "2 * 3 * 4",
        "__init__",
        '"a","b"',
    ],
)
def test_marks_that_mean_something_else_stay(text):
    assert change("markup", text) == text


def test_one_kind_of_mark_changes_if_subtle_and_all_if_obvious():
    text = 'It\'s "so" **big** today.'
    assert change("markup", text) == "It’s “so” __big__ today."
    single = {change("markup", text, "subtle", seed) for seed in range(20)}
    assert single == {'It’s "so" **big** today.', "It's “so” **big** today.", 'It\'s "so" __big__ today.'}


@given(SEEDS, STRENGTHS)
def test_reordered_items_are_the_same_and_all_else_stays(seed, strength):
    after = change("reorder", LIST, strength, seed)
    assert after != LIST
    assert sorted(after.splitlines()) == sorted(LIST.splitlines())
    assert after.splitlines()[:2] == LIST.splitlines()[:2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bring this", "bring this in this order"),
        ("- some water", "- then some water"),
        ("- some water", "- water for 3 of us"),
        ("- some water", "- 2 bottles of water"),
        ("- some water", "- some water."),
        ("- some water", "- some water, and"),
        ("- some water", "- It is for the water"),
        ("- some water", "- some water\n  in a bottle"),
        ("- some water", "  - some water"),
        ("- some water", "* some water"),
        ("- ", "1. "),
        ("- an old towel\n", "- an old towel\nwhich is dry\n"),
        ("- some water", "- some `water`"),
        ("- some water", "- brown shoes"),  # already in the order of the alphabet, had the others been
    ],
)
def test_a_list_that_may_have_an_order_keeps_it(old, new):
    text = LIST.replace(old, new)
    if new == "- brown shoes":
        text = text.replace("an old towel", "clean socks")
    assert change("reorder", text) == text


def test_a_list_in_another_language_keeps_its_order():
    text = "Bitte mitbringen:\n\n- zuerst den Mantel\n- das Wasser\n- ein Handtuch\n"
    assert change("reorder", text) == text


@pytest.mark.parametrize("kept", UNTOUCHABLE)
@pytest.mark.parametrize("name", ["whitespace", "markup", "reorder"])
def test_code_addresses_tables_and_quotations_stay(name, kept):
    text = f"It's one thing. It's another thing.\n\n{kept}\n\nIt's **all** there. It's the end."
    inner = kept[1:-1] if kept[0] in '"“' else kept
    for seed in range(5):
        assert inner in change(name, text, seed=seed)
        assert inner in change(name, text, "subtle", seed)


@given(prose(), SEEDS, st.sampled_from(["whitespace", "reorder"]))
def test_protected_places_are_the_same_afterwards(text, seed, name):
    def kept(told: str) -> list[str]:
        return [" ".join(told[start:end].split()) for start, end in Protected(told).spans()]

    assert kept(change(name, text, seed=seed)) == kept(text)
