from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.bleu import bleu_scores, words_13a
from metricsmith.bank.catalogue import family

FAMILY = family("bleu")

(METRIC,) = FAMILY.metrics()
TEXTS = st.lists(
    st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", ",", "3.5", "U.S.", "Über", "猫", "&amp;", "it's"]),
    max_size=9,
).map(" ".join)

PIECES = [*"ab5.,-&;/'{[( \n\u00a0é", "<skipped>", "&amp;", "&lt;", "&quot;"]


def test_values_by_hand() -> None:
    # all 6 words, 4 of 5 pairs, 2 of 4 triples, none of 3 quadruples: that counts as half a match
    moved = 100 * (6 / 6 * 4 / 5 * 2 / 4 * 0.5 / 3) ** 0.25
    assert METRIC.score("on the mat the cat sat", references="the cat sat on the mat") == pytest.approx(moved)
    # all 6 words, 2 of 5 pairs, no triple (half a match of 4), no quadruple (a quarter of a match of 3)
    mixed = 100 * (6 / 6 * 2 / 5 * 0.5 / 4 * 0.25 / 3) ** 0.25
    assert METRIC.score("the cat on sat the mat", references="the cat sat on the mat") == pytest.approx(mixed)


@pytest.mark.parametrize("text", ["yes", "at home", "stay at home", "stay at home today"])
def test_an_exact_match_scores_100_however_short(text: str) -> None:
    assert METRIC.score(text, references=text) == pytest.approx(100.0, abs=1e-12)


def test_a_short_output_pays_for_its_length() -> None:
    assert METRIC.score("the cat", references="the cat sat on the mat") == pytest.approx(100 * math.exp(1 - 6 / 2))


def test_no_shared_word_and_no_output_score_0() -> None:
    assert METRIC.score("dogs bark", references="the cat sat") == 0.0
    assert METRIC.score("", references="the cat sat") == 0.0


def test_of_two_equally_close_lengths_the_shorter_one_counts() -> None:
    assert METRIC.score("a b c", references=["a b c d", "a b"]) == pytest.approx(100.0)


def test_an_n_gram_counts_up_to_its_largest_count_in_one_reference() -> None:
    # 'the the' occurs twice in no single reference: each gives one 'the'
    split = METRIC.score("the the", references=["the cat", "the dog"])
    whole = METRIC.score("the the", references=["the the", "a dog"])
    assert split < whole == pytest.approx(100.0)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_equals_sacrebleu(output: str, references: list[str]) -> None:
    from sacrebleu.metrics import BLEU

    expected = BLEU(effective_order=True).sentence_score(output, references).score
    assert bleu_scores([output], [references])[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(TEXTS.filter(lambda text: len(text.split()) > 3), TEXTS.filter(str.strip))
def test_equals_plain_corpus_bleu_from_four_tokens_on(output: str, reference: str) -> None:
    from sacrebleu.metrics import BLEU

    expected = BLEU().corpus_score([output], [[reference]]).score
    assert bleu_scores([output], [[reference]])[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(PIECES), max_size=15).map("".join))
def test_tokens_are_those_of_sacrebleu(text: str) -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert words_13a(text) == Tokenizer13a()(text.rstrip()).split()


@settings(deadline=None, max_examples=50)
@given(st.text(alphabet=st.characters(max_codepoint=0x17F), max_size=40))
def test_every_mark_is_a_token_where_sacrebleu_makes_it_one(text: str) -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    assert words_13a(text) == Tokenizer13a()(text.rstrip()).split()
