from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.self_bleu import self_bleu

FAMILY = family("self_bleu")

(METRIC,) = FAMILY.metrics()
SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), min_size=2, max_size=5)


def test_equal_sentences_score_1_and_different_ones_0() -> None:
    assert METRIC.score("The bus is late. The bus is late. The bus is late.") == pytest.approx(1.0)
    assert METRIC.score("red fish swim! two dogs bark?") == 0.0


@pytest.mark.parametrize("output", ["", "   ", "One sentence only.", "no mark at all"])
def test_fewer_than_two_sentences_have_nothing_to_repeat(output: str) -> None:
    assert math.isnan(METRIC.score(output))


def test_value_by_hand() -> None:
    # both sentences: 2 of 3 words, 1 of 2 pairs, no triple (.1 of 1); equal lengths
    expected = (2 / 3 * 1 / 2 * 0.1) ** (1 / 3)
    assert self_bleu([["a", "b", "x"], ["a", "b", "y"]]) == pytest.approx(expected)


def test_a_sentence_is_not_compared_with_itself() -> None:
    # 'a a' occurs twice in the first sentence only: its own count must not help it
    assert self_bleu([["a", "a", "a"], ["a", "b", "c"]]) < 0.5


@settings(deadline=None, max_examples=50)
@given(SENTENCES)
def test_equals_the_mean_of_nltk_sentence_bleu(tokens: list[list[str]]) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method1
    each = [
        sentence_bleu(tokens[:place] + tokens[place + 1 :], own, (1 / 3,) * 3, smoothing_function=smoothing)
        for place, own in enumerate(tokens)
    ]
    assert self_bleu(tokens) == pytest.approx(sum(each) / len(each), abs=1e-12)
