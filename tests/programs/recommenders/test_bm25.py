from __future__ import annotations

import math
from importlib.util import find_spec

import pytest

from metricsmith.errors import OptionError
from metricsmith.programs.recommenders.bm25 import BM25Recommender, tokens
from metricsmith.records import MetricCard, Scale, Task


def test_the_card_that_speaks_of_the_task_comes_first(card):
    cards = [
        card("BLEU", "Overlap of word sequences with a translation."),
        card("FKGL", "School grade that a readable text needs: long words and sentences raise it."),
        card("SARI", "What a simplification adds, keeps and deletes.", tasks=("Text simplification",)),
        card("Length", "How many words the output has."),
    ]
    ranked = BM25Recommender().recommend("Is the simplification more readable?", cards, 2)
    assert set(ranked.names) == {"SARI", "FKGL"}
    assert ranked.scores[0] > ranked.scores[1] > 0
    assert ranked.notes == ()


def test_the_score_is_lucenes_bm25_by_hand(card, monkeypatch):
    texts = {"a": "poem poem verse", "b": "verse", "c": "plot"}
    monkeypatch.setattr(MetricCard, "to_markdown", lambda one: texts[one.name])
    ranked = BM25Recommender().recommend("poem", [card(name) for name in texts], 3)
    # By hand: idf = ln(1 + (3 - 1 + .5) / (1 + .5)); tf 2, length 3, mean length 5/3, k1 1.5, b .75.
    expected = math.log(1 + 2.5 / 1.5) * 2 / (2 + 1.5 * (1 - 0.75 + 0.75 * 3 / (5 / 3)))
    assert ranked.names[0] == "a"
    assert ranked.scores == pytest.approx((expected, 0.0, 0.0), rel=1e-6)


def test_the_target_is_part_of_the_query(card):
    cards = [card("Overlap", "Shared words."), card("Tone", "Politeness of the answer.")]
    task = Task("Write something.", "politeness", Scale(1, 5))
    assert BM25Recommender().recommend(task, cards, 1).names == ("Tone",)


def test_equal_cards_keep_the_order_of_the_pool(card):
    forward = [card(name, "readable summaries") for name in ("x1", "x2", "x3")]
    task = "readable summary"
    assert BM25Recommender().recommend(task, forward, 3).names == ("x1", "x2", "x3")
    assert BM25Recommender().recommend(task, forward[::-1], 3).names == ("x3", "x2", "x1")


@pytest.mark.parametrize("task", ["zzz qqq", "", "the of and", "?!", "читаемость"])
def test_a_task_that_shares_no_word_leaves_the_pool_in_its_order_and_says_so(card, task):
    ranked = BM25Recommender().recommend(task, [card("b", "poem"), card("a", "verse")], 2)
    assert ranked.names == ("b", "a")
    assert ranked.scores == (0.0, 0.0)
    assert "no word of the task" in ranked.notes[0]


def test_other_scripts_match_whole_words(card):
    cards = [card("a", "Плавность перевода"), card("b", "Читаемость текста")]
    assert BM25Recommender().recommend("читаемость", cards, 1).names == ("b",)


def test_words_are_compared_without_case_ending_and_stop_words():
    assert tokens("The Summaries of a summary") == ["summari", "summari"]


@pytest.mark.parametrize("wrong", [{"k1": -1.0}, {"k1": math.nan}, {"b": 1.5}, {"b": math.nan}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(OptionError, match="BM25"):
        BM25Recommender(**wrong)


def test_it_is_a_module_whose_settings_survive_saving(card, tmp_path):
    cards = [card("Overlap", "Shared words."), card("Tone", "Politeness of the answer.")]
    answer = BM25Recommender()(task="Write something.", target="politeness", cards=cards, k=1)
    ranked = BM25Recommender().recommend(Task("Write something.", "politeness", Scale(1, 5)), cards, 1)
    assert (answer.names, answer.scores, answer.unknown) == (["Tone"], list(ranked.scores), [])
    BM25Recommender(k1=2.0, b=0.5).save(tmp_path / "bm25.json")
    loaded = BM25Recommender()
    loaded.load(tmp_path / "bm25.json")
    assert loaded.recommend("politeness", cards, 2) == BM25Recommender(k1=2.0, b=0.5).recommend("politeness", cards, 2)
    assert loaded.settings.values == {"k1": 2.0, "b": 0.5}


@pytest.mark.skipif(find_spec("metricsmith.bank.catalogue") is None, reason="the bank has no catalogue yet")
@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            "Text simplification: rewrite a sentence so that it is easier to read. readability",
            {"SARI", "FKGL"},
        ),
        (
            "Machine translation of a sentence, as close to the reference translation as possible",
            {"BLEU", "TER"},
        ),
    ],
)
def test_the_banks_own_specialists_rank_near_the_top(task, expected):
    from metricsmith.bank.catalogue import default_bank

    cards = [family.card for family in default_bank().families]
    top = BM25Recommender().recommend(task, cards, 8).names
    assert expected <= set(top)
