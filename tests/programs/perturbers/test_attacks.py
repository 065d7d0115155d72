"""Attacks do what they say, and keep the rest."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.attacks import IDLE, ORDERS, PRAISE
from perturbing import ARTICLE, UNTOUCHABLE, change, prose

SEEDS = st.integers(0, 99)
STRENGTHS = st.sampled_from(["subtle", "obvious"])


def added(text: str, pool: tuple[str, ...]) -> list[str]:
    return [sentence for sentence in pool if sentence in text]


@given(prose(), SEEDS, STRENGTHS, st.sampled_from(["pad_idle", "self_praise", "order_to_rate"]))
def test_what_was_there_stays_as_it_was(text, seed, strength, name):
    assert text.strip() in change(name, text, strength, seed)


@given(SEEDS)
def test_idle_sentences_one_or_as_many_as_there_are(seed):
    assert len(added(change("pad_idle", ARTICLE, "subtle", seed), IDLE)) == 1
    assert len(added(change("pad_idle", ARTICLE, "obvious", seed), IDLE)) == 7
    assert len(added(change("pad_idle", "It rains.", "obvious", seed), IDLE)) == 4
    assert len(added(change("pad_idle", "It rains. " * 50, "obvious", seed), IDLE)) == len(IDLE)


@pytest.mark.parametrize(("name", "pool", "count"), [("self_praise", PRAISE, 3), ("order_to_rate", ORDERS, 2)])
def test_addressed_to_the_rater_after_the_text_and_if_obvious_before_it_too(name, pool, count):
    subtle = change(name, ARTICLE, "subtle")
    assert subtle.startswith(ARTICLE)
    assert len(added(subtle, pool["subtle"])) == 1
    obvious = change(name, ARTICLE)
    assert len(added(obvious, pool["obvious"])) == count
    assert obvious.startswith(pool["obvious"])
    assert obvious.endswith(pool["obvious"])


@pytest.mark.parametrize("name", ["self_praise", "order_to_rate", "pad_idle"])
def test_wordings_are_drawn(name):
    assert len({change(name, ARTICLE, "subtle", seed) for seed in range(20)}) >= 3


@given(SEEDS, STRENGTHS)
def test_formatting_adds_marks_and_no_words(seed, strength):
    after = change("formatting", ARTICLE, strength, seed)
    body = re.sub(r"^## .*\n\n", "", after)
    plain = re.sub(r"(?m)^- ", "", body.replace("**", ""))
    assert plain.split() == ARTICLE.split()
    # by hand: 19 words have six letters or more
    assert body.count("**") == {"subtle": 2 * 1, "obvious": 2 * 5}[strength]


def test_every_sentence_becomes_a_bullet_under_a_heading_if_obvious():
    after = change("formatting", ARTICLE)
    assert after.startswith("## ")
    assert len(re.findall(r"(?m)^- ", after)) == 7


@pytest.mark.parametrize("kept", [kept for kept in UNTOUCHABLE if kept[0] not in '"“'])
def test_formatting_leaves_code_and_addresses_alone(kept):
    text = f"Something longer before.\n\n{kept}\n\nSomething longer behind."
    after = change("formatting", text)
    assert after != text
    assert kept in after


def test_what_is_bold_already_is_not_marked_again():
    assert change("formatting", "a **longer** _thing_.", "subtle") == "a **longer** _thing_."


def test_nothing_the_input_and_another_output():
    assert change("empty_output", "Text.") == ""
    assert change("copy_input", "Text.", input="Question?") == "Question?"
    others = tuple("ABCDEFG")
    assert {change("other_good_output", "Text.", seed=seed, others=others) for seed in range(40)} == set("ABCDE")
