from __future__ import annotations

import math

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.programs.recommenders.base import Recommendation
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.records import Scale, Task

TASK = Task("Write a poem.", "rhyme", Scale(1, 5))


class Reversed:
    """A first stage whose order is plain to see: the pool backwards."""

    def recommend(self, task, cards, k=30):
        names = tuple(card.name for card in cards)[::-1][:k]
        return Recommendation(names, tuple(float(-rank) for rank in range(len(names))), notes=("backwards",))


def answering(names):
    return DummyLM([{"reasoning": "because", "names": names}] * 3)


def test_without_a_model_the_first_stages_order_stands(pool):
    ranked = PipelineRecommender().recommend(TASK, pool, 5)
    alone = BM25Recommender().recommend(TASK, pool, 5)
    assert ranked == alone


def test_the_model_sees_only_what_the_first_stage_kept_best_first(pool):
    lm = answering('["M38", "M0"]')
    pipeline = PipelineRecommender(Reversed(), LMRecommender(), first_k=4)
    with dspy.context(lm=lm):
        pipeline(task=TASK.description, target=TASK.target, cards=pool, k=3)
        ranked = pipeline.recommend(TASK, pool, 3)
    prompt = lm.history[-1]["messages"][-1]["content"]
    shown = [name for name in (card.name for card in reversed(pool)) if f"## {name}\n" in prompt]
    assert shown == ["M39", "M38", "M37", "M36"]
    assert prompt.index("## M39\n") < prompt.index("## M36\n")
    assert ranked.names == ("M38", "M39", "M37")
    assert ranked.unknown == ("M0",)
    assert ranked.notes[0] == "backwards"
    assert any("left out 36 of 40" in note for note in ranked.notes)
    assert all(math.isnan(score) for score in ranked.scores)


def test_the_first_stage_never_keeps_fewer_than_k(pool):
    with dspy.context(lm=answering("[]")):
        ranked = PipelineRecommender(Reversed(), LMRecommender(), first_k=2).recommend(TASK, pool, 5)
    assert ranked.names == ("M39", "M38", "M37", "M36", "M35")


def test_thirty_are_named_unless_told_otherwise(pool):
    assert len(PipelineRecommender().recommend(TASK, pool)) == 30


def test_a_failing_model_call_is_not_swallowed(pool):
    pipeline = PipelineRecommender(second=LMRecommender())
    with dspy.context(lm=answering("no list")), pytest.raises(JudgementFailed):
        pipeline.recommend(TASK, pool, 3)


def test_it_is_a_module_whose_predictor_optimisers_find(pool):
    pipeline = PipelineRecommender(Reversed(), LMRecommender(), first_k=4)
    assert [name for name, _ in pipeline.named_predictors()] == ["second.rank"]
    with dspy.context(lm=answering('["M38"]')):
        answer = pipeline(task="Write a poem.", target="rhyme", cards=pool, k=2)
    assert answer.names == ["M38"]
    alone = PipelineRecommender(Reversed())(task="Write a poem.", target="rhyme", cards=pool, k=2)
    assert alone.names == ["M39", "M38"]


def test_its_settings_survive_saving(tmp_path):
    first = BM25Recommender(k1=2.0)
    PipelineRecommender(first, LMRecommender(max_prompt_tokens=9000), first_k=7).save(tmp_path / "p.json")
    loaded = PipelineRecommender(second=LMRecommender())
    loaded.load(tmp_path / "p.json")
    assert loaded.settings.first_k == 7
    assert loaded.first.settings.k1 == 2.0
    assert loaded.second.settings.max_prompt_tokens == 9000


def test_a_first_stage_that_keeps_nothing_is_refused():
    with pytest.raises(OptionError, match="first_k = 0"):
        PipelineRecommender(first_k=0)
