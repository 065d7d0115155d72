from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.fkgl import flesch_kincaid_grade, syllables

FAMILY = family("fkgl")

(METRIC,) = FAMILY.metrics()


def test_value_by_hand() -> None:
    # 'The council will meet on Monday.': 6 words, 1 sentence; coun-cil and Mon-day have two syllables: 8.
    assert METRIC.score("The council will meet on Monday.") == pytest.approx(0.39 * 6 + 11.8 * 8 / 6 - 15.59)
    # two sentences, 5 words, 5 syllables
    assert METRIC.score("The cat sat. It ate.") == pytest.approx(0.39 * 5 / 2 + 11.8 - 15.59)


def test_short_sentences_of_short_words_have_the_lowest_grade_there_is() -> None:
    grade = flesch_kincaid_grade("Go! Stop. Yes?")
    assert grade == METRIC.output.low == pytest.approx(-3.4)
    assert METRIC.output.score(grade) == 1.0


def test_longer_words_and_longer_sentences_raise_the_grade() -> None:
    plain = METRIC.score("We can help. Call us now.")
    assert METRIC.score("We can help and you can call us now.") > plain
    assert METRIC.score("Assistance available. Telephone immediately.") > plain


@pytest.mark.parametrize(
    ("word", "count"),
    [("cat", 1), ("Monday", 2), ("readability", 4), ("well-known", 2), ("don't", 1), ("2022", 1), ("Straße", 1)],
)
def test_syllables_are_hyphenation_points_and_one(word: str, count: int) -> None:
    # by hand, with the hyphenation dictionary en_US of pyphen 0.18: read-abil-i-ty
    assert syllables(word) == count


def test_marks_numbers_and_clitics_make_no_word() -> None:
    assert METRIC.score("It isn't far -- I think...") == METRIC.score("It is far. I think".replace(".", ""))


@pytest.mark.parametrize("text", ["", " \n", "?!", "🙂"])
def test_a_text_without_words_has_no_grade(text: str) -> None:
    assert math.isnan(METRIC.score(text))


def test_text_in_another_script_gets_a_number_without_error() -> None:
    assert math.isfinite(METRIC.score("Комитет одобрил план."))
    assert math.isfinite(METRIC.score("我喜欢猫。"))


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_no_text_lies_below_the_lowest_grade(text: str) -> None:
    grade = flesch_kincaid_grade(text)
    assert math.isnan(grade) or grade >= METRIC.output.low
