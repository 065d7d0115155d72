from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metricsmith.bank.catalogue import family
from metricsmith.bank.meteor import align, meteor

FAMILY = family("meteor")

(METRIC,) = FAMILY.metrics()
TOKENS = st.lists(
    st.sampled_from(["cat", "cats", "run", "running", "runs", "the", "a", "generous", "generously"]), max_size=9
)


def test_value_by_hand() -> None:
    # 'the cat sat' against 'on the mat sat the cat': 3 matches, P = 1, R = 1/2, chunks 'the cat' and 'sat'
    f_mean = 1 * 0.5 / (0.9 * 1 + 0.1 * 0.5)
    expected = f_mean * (1 - 0.5 * (2 / 3) ** 3)
    assert meteor(["the", "cat", "sat"], ["on", "the", "mat", "sat", "the", "cat"]) == pytest.approx(expected)


def test_stems_match_after_equal_words() -> None:
    assert align(["running", "runs"], ["runs", "run"]) == [(0, 1), (1, 0)]
    assert METRIC.score("She runs", references="she running") > METRIC.score("she walks", references="she running")


def test_synonyms_do_not_match() -> None:
    assert METRIC.score("glad", references="happy") == 0.0


@pytest.mark.parametrize("text", ["yes", "two words", "a full sentence, with marks."])
def test_a_full_match_in_order_scores_1_however_short(text: str) -> None:
    assert METRIC.score(text.upper(), references=text) == 1.0


def test_broken_order_costs() -> None:
    reference = "a b c d e f"
    assert METRIC.score("d e f a b c", references=reference) > METRIC.score("f e d c b a", references=reference)
    assert METRIC.score("d e f a b c", references=reference) < 1.0


@settings(deadline=None, max_examples=50)
@given(TOKENS, TOKENS)
def test_equals_nltk_without_a_thesaurus(candidate: list[str], reference: list[str]) -> None:
    from nltk.translate.meteor_score import single_meteor_score

    class NoThesaurus:
        def synsets(self, word: str) -> list[object]:
            return []

    ours = meteor(candidate, reference)
    assume(ours < 1.0)  # the one stated departure: a full match in order has no penalty
    expected = single_meteor_score(reference, candidate, wordnet=NoThesaurus())
    assert ours == pytest.approx(expected, abs=1e-12)
