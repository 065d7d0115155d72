from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family
from metricsmith.bank.rouge import common_places, rouge_tokens

FAMILY = family("rouge")

NAMES = [output.name for output in FAMILY.card.outputs]
TYPES = {"rouge1": "rouge1", "rouge2": "rouge2", "rouge_l": "rougeL", "rouge_lsum": "rougeLsum"}
WORDS = ["the", "cat", "cats", "running", "runs", "on", "mat-like", "3.5", "café", "naïve", "Don't"]
LINES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=3).map("\n".join)


def scores(output: str, *references: str) -> dict[str, float]:
    found = FAMILY.compute(TextBatch([output], [""], [references]), NAMES)
    return {name: float(found[name][0]) for name in NAMES}


def test_values_by_hand() -> None:
    found = scores("the cats sat on a mat", "the cat is on the mat")
    # words: the, cat (stem), on, mat of 6 and 6; pairs: 'the cat' of 5 and 5; in order: the cat on mat
    assert found["rouge1_p"] == found["rouge1_r"] == found["rouge_l_f"] == pytest.approx(4 / 6)
    assert found["rouge2_f"] == pytest.approx(1 / 5)


def test_precision_falls_with_padding_and_recall_with_omission() -> None:
    padded, cut = scores("the cat sat down there", "the cat sat"), scores("the cat", "the cat sat")
    assert (padded["rouge1_p"], padded["rouge1_r"]) == pytest.approx((3 / 5, 1))
    assert (cut["rouge1_p"], cut["rouge1_r"]) == pytest.approx((1, 2 / 3))


def test_p_r_and_f_come_from_the_reference_with_the_highest_f() -> None:
    short, fitting = "the", "the cat sat here"
    found = scores("the cat sat", short, fitting)
    # the short reference has recall 1 but f 1/2; the other one has p 1, r 3/4
    assert (found["rouge1_p"], found["rouge1_r"]) == pytest.approx((1, 3 / 4))


def test_lsum_takes_lines_in_any_order() -> None:
    found = scores("b c d\na e", "a e\nb c d")
    assert found["rouge_lsum_f"] == 1.0
    assert found["rouge_l_f"] == pytest.approx(3 / 5)


def test_a_word_counts_once_in_lsum_even_if_two_lines_hold_it() -> None:
    found = scores("cat\ncat", "cat")
    assert (found["rouge_lsum_p"], found["rouge_lsum_r"]) == pytest.approx((1 / 2, 1))


def test_letters_of_other_scripts_are_words() -> None:
    assert rouge_tokens("Комитет одобрил GPT-4 猫が!") == ["комитет", "одобрил", "gpt", "4", "猫", "が"]
    assert rouge_tokens("नमस्ते") == ["नमस्ते"]


@pytest.mark.parametrize("text", ["Café naïve Über", "e\u0301t\u00e9 ªº µ", "İstanbul ﬁne ²", "“quotes” – dash…"])
def test_latin_text_has_the_tokens_of_rouge_score(text: str) -> None:
    from rouge_score.tokenizers import DefaultTokenizer

    assert rouge_tokens(text) == DefaultTokenizer(use_stemmer=True).tokenize(text)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_equals_rouge_score(output: str, references: list[str]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    expected = RougeScorer(list(TYPES.values()), use_stemmer=True).score_multi(references, output)
    found = scores(output, *references)
    for ours, theirs in TYPES.items():
        score = expected[theirs]
        values = [found[f"{ours}_{part}"] for part in "prf"]
        assert values == pytest.approx([score.precision, score.recall, score.fmeasure], abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_the_subsequence_read_out_is_that_of_rouge_score(line: list[str], other: list[str]) -> None:
    from rouge_score.rouge_scorer import lcs_ind

    assert common_places(line, other) == lcs_ind(line, other)
