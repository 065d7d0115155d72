from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family

FAMILY = family("chrf")

CHRF, CHRF_PP = FAMILY.metrics()
TEXTS = st.text(alphabet=st.sampled_from("ab c.(é猫🙂\n"), max_size=15)


def test_value_by_hand() -> None:
    # 'abc' against 'abd': 2 of 3 letters, 1 of 2 pairs, 0 of 1 triple on both sides; longer n-grams do not exist
    assert CHRF.score("abc", references="abd") == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)


def test_words_count_in_chrf_pp_only() -> None:
    # letters of 'ab' and 'a b' are the same; of the words, none of 1 and none of 2
    assert CHRF.score("a b", references="ab") == pytest.approx(100.0)
    assert CHRF_PP.score("a b", references="ab") == pytest.approx(100 * (1 + 1 + 0) / 3)


def test_a_mark_at_a_words_end_is_a_word_of_its_own() -> None:
    assert CHRF_PP.score("cat", references="cat.") > CHRF_PP.score("cats", references="cat.")


def test_recall_weighs_more_than_precision() -> None:
    full = "the library will close in may"
    assert CHRF.score(full + " and so on and on", references=full) > CHRF.score("the library will", references=full)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_equals_sacrebleu(output: str, references: list[str]) -> None:
    from sacrebleu import metrics

    found = FAMILY.compute(TextBatch([output], [""], [references]), ["chrf", "chrf_pp"])
    for name, word_order in (("chrf", 0), ("chrf_pp", 2)):
        expected = metrics.CHRF(word_order=word_order).sentence_score(output, references).score
        assert found[name][0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
