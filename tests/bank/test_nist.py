from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.nist import sentence_nist

FAMILY = family("nist")

(METRIC,) = FAMILY.metrics()
TOKENS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


def test_an_exact_match_of_distinct_words_scores_their_information() -> None:
    # each of 8 words occurs once: log2 8 = 3 bits; longer n-grams are certain once their beginning is known
    assert METRIC.score("a b c d e f g h", references="a b c d e f g h") == pytest.approx(3.0)


def test_a_repeated_beginning_makes_its_continuation_informative() -> None:
    # 'x' once out of 'a x', 'a y': 4 words; a: log2(4/2), x and y: log2 4; 'a x', 'a y': log2(2/1) each
    expected = (1 + 2 + 1 + 2) / 4 + (1 + 0 + 1) / 3 + 0
    assert sentence_nist(["a", "x", "a", "y"], [["a", "x", "a", "y"]]) == pytest.approx(expected)


def test_two_thirds_of_the_length_halve_the_score() -> None:
    full = ["a", "b", "c", "d", "e", "f"]
    # 4 of 6 words, each log2 6 bits, all precise
    assert sentence_nist(full[:4], [full]) == pytest.approx(0.5 * math.log2(6))


def test_one_word_carries_no_information() -> None:
    assert METRIC.score("yes", references="yes") == 0.0


def test_nothing_to_compare() -> None:
    assert METRIC.score("", references="a b") == 0.0
    assert math.isnan(sentence_nist(["a"], []))


@settings(deadline=None, max_examples=50)
@given(TOKENS, st.lists(TOKENS, min_size=1, max_size=3))
def test_equals_nltk(candidate: list[str], references: list[list[str]]) -> None:
    from nltk.translate.nist_score import sentence_nist as oracle

    expected = oracle(references, candidate, n=min(5, len(candidate)))
    assert sentence_nist(candidate, references) == pytest.approx(expected, abs=1e-12)
