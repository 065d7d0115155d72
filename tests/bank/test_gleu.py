from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family

FAMILY = family("gleu")

(METRIC,) = FAMILY.metrics()
TEXTS = st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join)


def test_value_by_hand() -> None:
    # 'a b c' against 'a b c d': 3 + 2 + 1 shared n-grams of 4 + 3 + 2 + 1
    assert METRIC.score("a b c", references="a b c d") == pytest.approx(6 / 10)


def test_it_is_symmetrical_and_blind_to_case() -> None:
    assert METRIC.score("A b, c d", references="a b e") == METRIC.score("a b e", references="A b, c d")
    assert METRIC.score("STAY HERE", references="stay here") == 1.0


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(TEXTS.filter(bool), min_size=1, max_size=3))
def test_equals_nltk_on_the_same_tokens(output: str, references: list[str]) -> None:
    from nltk.translate.gleu_score import sentence_gleu

    found = FAMILY.compute(TextBatch([output], [""], [references]), ["gleu"])["gleu"][0]
    assert found == pytest.approx(sentence_gleu([text.split() for text in references], output.split()), abs=1e-12)
