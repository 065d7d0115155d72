from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.programs.recommenders.names import match_names
from metricsmith.records import MetricCard, Output


def make(name, *outputs):
    return MetricCard(name, "bank", "", "", tuple(Output(output) for output in outputs or (name,)))


CARDS = [
    make("BLEU", "bleu"),
    make("chrF", "chrf"),
    make("chrF++", "chrf_pp"),
    make("ROUGE", "rouge1_f", "rougeL_f"),
    make("Jaro-Winkler", "jaro_winkler"),
    make("Keeps the facts", "keeps_the_facts"),
]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("BLEU", "BLEU"),
        ("bleu", "BLEU"),
        (" 'Bleu'. ", "BLEU"),
        ("`BLEU`", "BLEU"),
        ("**BLEU**", "BLEU"),
        ("3. BLEU", "BLEU"),
        ("- BLEU", "BLEU"),
        ("CHRF++", "chrF++"),
        ("ChrF", "chrF"),
        ("jaro winkler", "Jaro-Winkler"),
        ("JaroWinkler", "Jaro-Winkler"),
        ("Jaro–Winkler", "Jaro-Winkler"),
        ("keeps the facts.", "Keeps the facts"),
        ("rougeL_f", "ROUGE"),
        ("Rouge1-F", "ROUGE"),
    ],
)
def test_case_and_punctuation_do_not_matter(written, name):
    matched = match_names([written], CARDS)
    assert matched.names == (name,)
    assert matched.unknown == ()


@pytest.mark.parametrize("written", ["BLEURT", "chrF+", "", "   ", "++", "ROUGE-9", "Factuality"])
def test_what_no_card_carries_is_reported_as_written(written):
    matched = match_names([written], CARDS)
    assert matched.names == ()
    assert matched.unknown == (written,)


def test_one_card_is_named_once_at_its_first_place():
    matched = match_names(["ROUGE", "bleu", "rouge1_f", "BLEU", "nope", "nope"], CARDS)
    assert matched.names == ("ROUGE", "BLEU")
    assert matched.unknown == ("nope",)


def test_a_spelling_that_fits_two_cards_fits_none():
    cards = [make("Top 1"), make("Top-1")]
    assert match_names(["top_1"], cards).unknown == ("top_1",)
    assert match_names(["TOP-1"], cards).names == ("Top-1",)


def test_symbols_tell_metrics_apart():
    assert match_names(["chrF++", "CHRF ++"], [make("chrF")]).unknown == ("chrF++", "CHRF ++")


def test_a_card_goes_before_another_cards_output():
    cards = [make("Overlap", "bleu"), make("BLEU", "score")]
    assert match_names(["bleu"], cards).names == ("BLEU",)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from([card.name for card in CARDS]))))
def test_nothing_is_lost_and_nothing_is_invented(written):
    matched = match_names(written, CARDS)
    assert set(matched.names) <= {card.name for card in CARDS}
    assert set(matched.unknown) <= set(written)
    for name in written:
        found = match_names([name], CARDS).names
        assert (found[0] in matched.names) if found else (name in matched.unknown)
