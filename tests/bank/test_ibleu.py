from __future__ import annotations

import pytest

from metricsmith.bank.bleu import bleu_scores
from metricsmith.bank.catalogue import family

FAMILY = family("ibleu")

(METRIC,) = FAMILY.metrics()


def test_a_tenth_of_the_similarity_to_the_input_is_taken_off() -> None:
    output, source, reference = "the cat sat down", "the cat was sitting down", "a cat sat down"
    to_reference, to_source = bleu_scores([output, output], [[reference], [source]])
    assert METRIC.score(output, input=source, references=reference) == pytest.approx(
        0.9 * to_reference - 0.1 * to_source
    )


def test_the_ends_of_the_range() -> None:
    assert METRIC.score("a b c d", input="a b c d", references="w x y z") == pytest.approx(-10.0)
    assert METRIC.score("a b c d", input="w x y z", references="a b c d") == pytest.approx(90.0)


def test_copying_the_input_loses_to_rewriting_it() -> None:
    source, reference = "the meeting was adjourned", "the meeting was over"
    copied = METRIC.score(source, input=source, references=reference)
    rewritten = METRIC.score("the meeting was finished", input=source, references=reference)
    assert rewritten > copied
