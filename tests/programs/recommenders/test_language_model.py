from __future__ import annotations

import asyncio
import math

import dspy
import pytest
from dspy.utils import DummyLM
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed, NeedsError, OptionError
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.recommenders.language_model import LMRecommender, fit_cards, match_names
from metricsmith.records import MetricCard, Output, Scale, Task

TASK = Task("Rewrite notices in plain words.", "simplicity", Scale(1, 5))


def answering(*answers):
    return DummyLM([{"reasoning": "because", "names": names} for names in answers])


def prompt_of(module, cards, k):
    lm = answering("[]")
    with dspy.context(lm=lm):
        module(task=TASK.description, target=TASK.target, cards=cards, k=k)
    return "\n".join(message["content"] for message in lm.history[-1]["messages"])


@pytest.fixture
def cards(card):
    return [card(name, f"{name} counts something.") for name in ("BLEU", "SARI", "FKGL", "Length", "Tone")]


def test_the_models_order_stands(cards):
    with dspy.context(lm=answering('["fkgl", "Sari", "Tone"]')):
        ranked = LMRecommender().recommend(TASK, cards, 3)
    assert ranked.names == ("FKGL", "SARI", "Tone")
    assert all(math.isnan(score) for score in ranked.scores)
    assert ranked.unknown == ()
    assert ranked.notes == ()
    assert ranked.usage.requests == 1


def test_unknown_names_are_reported_and_repeats_dropped(cards):
    with dspy.context(lm=answering('["BERTScore", "SARI", "sari.", "COMET", "Tone"]')):
        ranked = LMRecommender().recommend(TASK, cards, 2)
    assert ranked.names == ("SARI", "Tone")
    assert ranked.unknown == ("BERTScore", "COMET")
    assert any("'BERTScore'" in note and "'COMET'" in note for note in ranked.notes)


def test_missing_places_are_filled_in_the_order_of_the_cards_and_said(cards):
    with dspy.context(lm=answering('["Length"]')):
        ranked = LMRecommender().recommend(TASK, cards, 3)
    assert ranked.names == ("Length", "BLEU", "SARI")
    assert any("1 of 3" in note for note in ranked.notes)


def test_more_names_than_asked_for_are_cut(cards):
    with dspy.context(lm=answering('["Tone", "Length", "FKGL", "SARI"]')):
        assert LMRecommender().recommend(TASK, cards, 2).names == ("Tone", "Length")


def test_forward_is_a_plain_dspy_module_call(cards):
    with dspy.context(lm=answering('["Tone", "Nope"]')):
        answer = LMRecommender()(task="Rewrite.", target="simplicity", cards=cards, k=3)
    assert answer.names == ["Tone"]
    assert answer.unknown == ["Nope"]
    assert answer.summarised == 0
    assert answer.reasoning == "because"


def test_asynchronous_calls_give_the_same(cards):
    async def ask():
        with dspy.context(lm=answering('["Tone", "Nope"]')):
            return await LMRecommender().acall(task="Rewrite.", target="simplicity", cards=cards, k=3)

    assert asyncio.run(ask()).names == ["Tone"]


def test_the_prompt_holds_task_target_and_every_card(cards):
    prompt = prompt_of(LMRecommender(), cards, 3)
    assert TASK.description in prompt
    assert TASK.target in prompt
    assert all(card.to_markdown().strip() in prompt for card in cards)


def test_a_prompt_without_room_keeps_every_name_and_summary(card):
    cards = [card(f"M{index}", f"Sees trait {index}.", formula="x" * 1000) for index in range(20)]
    module = LMRecommender(max_prompt_tokens=2500)
    with dspy.context(lm=answering('["M19"]')):
        ranked = module.recommend(TASK, cards, 5)
    prompt = prompt_of(module, cards, 5)
    assert all(f"## M{index}\n\nSees trait {index}." in prompt for index in range(20))
    assert 0 < prompt.count("x" * 1000) < 20
    assert estimate_tokens(prompt) <= 2500
    assert any("of 20 cards as name and summary" in note for note in ranked.notes)


def test_a_prompt_that_cannot_hold_the_summaries_is_refused_before_any_call(cards):
    lm = answering()
    with dspy.context(lm=lm), pytest.raises(OptionError, match="max_prompt_tokens"):
        LMRecommender(max_prompt_tokens=100).recommend(TASK, cards, 3)
    assert lm.history == []


def test_an_answer_that_is_no_list_fails_with_a_status_and_fills_nothing(cards):
    lm = answering("- BLEU\n- SARI", "- BLEU\n- SARI", "- BLEU")
    with dspy.context(lm=lm), pytest.raises(JudgementFailed) as failure:
        LMRecommender().recommend(TASK, cards, 3)
    assert failure.value.status == "unparsable"


def test_without_a_language_model_it_says_what_to_set(cards):
    with dspy.context(lm=None), pytest.raises(NeedsError, match="language model"):
        LMRecommender().recommend(TASK, cards, 3)


def test_the_predictor_is_tunable_and_settings_survive_saving(tmp_path):
    module = LMRecommender(max_prompt_tokens=5000)
    assert [name for name, _ in module.named_predictors()] == ["rank"]
    module.save(tmp_path / "module.json")
    loaded = LMRecommender()
    loaded.load(tmp_path / "module.json")
    assert loaded.settings.max_prompt_tokens == 5000


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.text(max_size=40), st.text(max_size=400)), min_size=1, max_size=8),
    st.integers(0, 1500),
)
def test_fitted_cards_stay_inside_the_budget_and_none_is_dropped(texts, budget):
    cards = [
        MetricCard(f"M{index}", "bank", summary, formula, (Output("o"),))
        for index, (summary, formula) in enumerate(texts)
    ]
    try:
        fitted = fit_cards(cards, budget)
    except OptionError:
        assert budget < sum(estimate_tokens(card.summary) + 20 for card in cards) + 60
        return
    assert estimate_tokens(fitted.text) <= budget + fitted.text.count("[ [##")
    assert all(f"## {card.name}\n" in fitted.text for card in cards)
    assert fitted.text.count("| output | range |") >= len(cards) - fitted.summarised


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
