from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.ngrams import symbols
from metricsmith.bank.ter import _needs_beam, translation_edits

FAMILY = family("ter")

(METRIC,) = FAMILY.metrics()
TOKENS = st.lists(st.sampled_from("abcdef"), max_size=14)


def sacrebleu_edits(candidate: list[str], reference: list[str]) -> int:
    from sacrebleu.metrics.lib_ter import translation_edit_rate

    return translation_edit_rate(candidate, reference)[0]


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("a b c d", "a b c d", 0.0),
        ("A b c", "a B c", 0.0),  # lower-cased
        ("a x c d", "a b c d", 25.0),  # one word replaced
        ("c d a b", "a b c d", 25.0),  # one block moved
        ("", "a b c d", 100.0),  # all inserted
        ("a b c d x y z w", "a b c d", 100.0),  # four dropped
    ],
)
def test_values_by_hand(output: str, reference: str, expected: float) -> None:
    assert METRIC.score(output, references=reference) == pytest.approx(expected)


def test_fewest_edits_over_mean_reference_length() -> None:
    # one edit from the first reference; mean length (3 + 5) / 2
    assert METRIC.score("a b x", references=["a b c", "d e f g h"]) == pytest.approx(100 / 4)


@settings(deadline=None, max_examples=50)
@given(TOKENS, TOKENS.filter(bool))
def test_equals_sacrebleu_on_any_words(candidate: list[str], reference: list[str]) -> None:
    assert translation_edits(*symbols(candidate, reference)) == sacrebleu_edits(candidate, reference)


@pytest.mark.parametrize("seed", range(12))
def test_equals_sacrebleu_on_edited_and_shuffled_texts(seed: int) -> None:
    generator = random.Random(seed)
    reference = [str(generator.randrange(12)) for _ in range(generator.randint(15, 35))]
    candidate = list(reference)
    for _ in range(generator.randint(1, 8)):
        start = generator.randrange(len(candidate))
        block = candidate[start : start + generator.randint(1, 5)]
        del candidate[start : start + len(block)]
        place = generator.randint(0, len(candidate))
        candidate[place:place] = generator.choice([block, block[::-1], ["new"]])
    assert translation_edits(*symbols(candidate, reference)) == sacrebleu_edits(candidate, reference)


@pytest.mark.parametrize(("seed", "own", "other"), [(0, 60, 60), (1, 3, 70), (2, 70, 4), (3, 5, 130)])
def test_equals_sacrebleu_where_the_beam_cuts(seed: int, own: int, other: int) -> None:
    generator = random.Random(seed)
    candidate = [str(generator.randrange(60)) for _ in range(own)]
    reference = [str(generator.randrange(60)) for _ in range(other)]
    assert _needs_beam(max(own, other) - 8, own, other)
    assert translation_edits(*symbols(candidate, reference)) == sacrebleu_edits(candidate, reference)


@pytest.mark.parametrize(("seed", "length"), [(84, 36), (104, 24), (147, 36), (233, 36)])
def test_equals_sacrebleu_where_the_search_stops_after_a_thousand_candidates(seed: int, length: int) -> None:
    # seeds for which neither a wider search nor trying equal places twice gives the same number
    generator = random.Random(seed)
    assert generator.choice([24, 30, 36]) == length
    reference = [generator.choice("abc") for _ in range(length)]
    candidate = list(reference)
    for _ in range(4):
        start = generator.randrange(length)
        block = candidate[start : start + 4]
        del candidate[start : start + 4]
        place = generator.randint(0, len(candidate))
        candidate[place:place] = block
    assert translation_edits("".join(candidate), "".join(reference)) == sacrebleu_edits(candidate, reference)
