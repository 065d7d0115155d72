from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family
from metricsmith.bank.update_rouge import updates

FAMILY = family("update_rouge")

NAMES = [output.name for output in FAMILY.card.outputs]
THEIRS = dict(zip(NAMES, ("rouge1", "rouge2", "rougeLsum"), strict=True))
SENTENCES = st.lists(st.sampled_from(["the", "cats", "ran", "Ann's", "3.5", "café", "running"]), min_size=1, max_size=6)
TEXTS = st.lists(SENTENCES.map(lambda tokens: " ".join(tokens) + "."), max_size=3).map(" ".join)


def scores(source: str, output: str, *references: str) -> dict[str, float]:
    found = FAMILY.compute(TextBatch([output], [source], [references]), NAMES)
    return {name: float(found[name][0]) for name in NAMES}


def test_only_new_sentences_are_compared_by_hand() -> None:
    # new in the output: 'Bob came home.'; new in the reference: 'Bob went home early.'
    # words bob, home of 3 and 4: F = 2 * (2/3)(2/4) / (2/3 + 2/4) = 4/7; no pair shared; in order: both
    source = "Ann left. Bob stayed."
    found = scores(source, "Ann left. Bob came home.", "Ann left. Bob went home early.")
    assert found == pytest.approx({"update_rouge1": 4 / 7, "update_rouge2": 0, "update_rouge_lsum": 4 / 7})


def test_copying_earns_nothing_where_something_should_change() -> None:
    source = "Ann left. Bob stayed."
    assert set(scores(source, source, "Ann left. Bob went home.").values()) == {0.0}
    assert set(scores(source, "Ann left. Bob fled.", source).values()) == {0.0}


def test_changing_nothing_where_nothing_should_change_is_perfect() -> None:
    assert set(scores("Ann left. Bob stayed.", "Bob stayed. Ann left.", "Ann left.").values()) == {1.0}


def test_lsum_takes_sentences_in_any_order() -> None:
    found = scores("x", "Ann left us. Bob came.", "Bob came. Ann left us.")
    assert found["update_rouge_lsum"] == 1.0
    assert found["update_rouge2"] == pytest.approx(3 / 4)  # all but the pair across the full stop


def test_words_are_not_stemmed() -> None:
    assert scores("x", "He runs.", "He run.")["update_rouge1"] == pytest.approx(1 / 2)


def test_each_output_takes_its_best_reference() -> None:
    words, pairs = "dog the bit man the", "the dog sang"
    found = scores("x", "the dog bit the man", words, pairs)
    # words: all five of the first reference; pairs: 'the dog' of the second is 1 of 4 and 1 of 2
    assert found["update_rouge1"] == 1.0
    assert found["update_rouge2"] == pytest.approx(2 * (1 / 4) * (1 / 2) / (1 / 4 + 1 / 2))


def test_updates_are_sentences_whose_text_is_not_in_the_source() -> None:
    assert updates("One. Two. Three!", "Zero. Two. One.") == "Three!"
    assert updates("", "One.") == ""


@settings(deadline=None, max_examples=50)
@given(TEXTS, TEXTS, st.lists(TEXTS.filter(bool), min_size=1, max_size=2))
def test_equals_rouge_score_on_the_new_sentences(source: str, output: str, references: list[str]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(THEIRS.values()), use_stemmer=False)
    ours = updates(output, source)
    expected = dict.fromkeys(NAMES, 0.0)
    for theirs in (updates(reference, source) for reference in references):
        found = scorer.score(theirs, ours)
        for name, kind in THEIRS.items():
            value = 1.0 if not ours and not theirs else found[kind].fmeasure
            expected[name] = max(expected[name], value)
    assert scores(source, output, *references) == pytest.approx(expected, abs=1e-9)
