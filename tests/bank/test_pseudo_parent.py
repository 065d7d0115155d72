from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.pseudo_parent import pseudo_parent

FAMILY = family("pseudo_parent")

(METRIC,) = FAMILY.metrics()
FLOOR = 1e-5  # what a share of zero counts as, by the card
TOKENS = st.lists(st.sampled_from("abcde"), max_size=8)
FILLED = TOKENS.filter(bool)


def test_value_by_hand() -> None:
    # input {a, b}, reference 'a c', output 'a b'.
    # Precision n=1: a is in the reference: 1; b is not, but the input has it: 1; mean 1.
    #   n=2: 'a b' is not in the reference, the input has both tokens: 1.  P = 1.
    # Recall of the reference, weighted by the input: n=1: a has weight 1 and is found, c weight 0: 1 / 1.
    #   n=2: 'a c' has weight 1/2 and is not found: 0, counted as 1e-5.  Rr = sqrt(1e-5).
    # Recall of the input: a and b of a and b: 1.  R = sqrt(Rr) = 1e-5 ** 0.25.
    recall = FLOOR**0.25
    assert METRIC.score("a b", input="a b", references="a c") == pytest.approx(2 * recall / (1 + recall))


def test_words_that_only_the_input_has_are_no_error() -> None:
    reference, source = "ann won", "ann won in 2019"
    supported = METRIC.score("ann won in 2019", input=source, references=reference)
    invented = METRIC.score("ann won in 1999", input=source, references=reference)
    assert supported > invented


def test_leaving_out_the_inputs_words_costs_recall() -> None:
    # output = reference: P = 1 and Rr = 1; the output has 1 of the input's 4 words: R = sqrt(1 / 4)
    assert METRIC.score("a", input="a b c d", references="a") == pytest.approx(2 * 0.5 / 1.5)
    assert METRIC.score("a b c d", input="a b c d", references="a b c d") == 1.0


def test_a_reference_without_any_word_of_the_input_gives_full_recall_of_it() -> None:
    # reference and output 'x y', input 'a': Rr is 0 of 0, that is 1; Ri is 0, counted as 1e-5
    recall = math.sqrt(FLOOR)
    assert METRIC.score("x y", input="a", references="x y") == pytest.approx(2 * recall / (1 + recall))


def test_nothing_supported_and_empty_outputs_score_0() -> None:
    assert METRIC.score("x y", input="a b", references="c d") == 0.0
    assert METRIC.score("", input="a b", references="a") == 0.0


def test_the_best_reference_counts_blank_ones_do_not_and_case_neither() -> None:
    best = METRIC.score("a b", input="a b", references="a b")
    assert METRIC.score("A b", input="a B", references=["c", " ", "a B"]) == best


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(TOKENS, FILLED, st.sets(st.sampled_from("abcxy"), min_size=1)), max_size=4))
def test_equals_the_papers_sums(triples: list[tuple[list[str], list[str], set[str]]]) -> None:
    assert pseudo_parent(triples) == pytest.approx([by_definition(*triple) for triple in triples], abs=1e-12)


def by_definition(output: list[str], reference: list[str], table: set[str]) -> float:
    precisions, recalls = [], []
    for order in range(1, 5):
        ours, theirs = (
            Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))
            for tokens in (output, reference)
        )

        def weight(gram: tuple[str, ...]) -> float:
            return sum(token in table for token in gram) / len(gram)

        if ours:
            found = {gram: min(1.0, theirs[gram] / count) for gram, count in ours.items()}
            entailed = sum(count * (found[gram] + (1 - found[gram]) * weight(gram)) for gram, count in ours.items())
            precisions.append(entailed / ours.total())
        if theirs:
            wanted = sum(count * weight(gram) for gram, count in theirs.items())
            got = sum(count * weight(gram) * min(1.0, ours[gram] / count) for gram, count in theirs.items())
            recalls.append(got / wanted if wanted else 1.0)
    if not precisions or not precisions[0]:
        return 0.0
    precision, recall = (
        math.prod(max(share, FLOOR) for share in shares) ** (1 / len(shares)) for shares in (precisions, recalls)
    )
    recall = math.sqrt(recall * max(len(table & {*output}) / len(table), FLOOR))
    return 2 * precision * recall / (precision + recall)
