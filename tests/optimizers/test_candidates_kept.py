"""Judges and rankings that inductions share: asked for once where nothing differs, anew where anything does."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest

from gathered import gather
from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import ModelFailure
from metricsmith.optimizers.candidates import candidates_kept, generate_candidates, recommender_key
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.recommenders.base import Recommendation, unscored
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.records import Usage
from metricsmith.testing import GivenModel
from metricsmith.threads import in_threads
from planted import TASK, planted_rows

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
ROWS = planted_rows(sources=8)
WRITTEN = {"criterion": 2, "rubric": 1}  # one request for axes, one for the rubric
REQUESTS = 2


def generated(rows=ROWS, task=TASK, **options):
    settled = Options(**{"metrics": BANK, "bank": "generated", "generators": WRITTEN, **options})
    with settled.asking():
        return generate_candidates(rows, task, settled, settled.resolve(len(rows), True, True))


def test_the_same_judges_are_generated_once_and_cost_nothing_again():
    with serve(scripted) as server, candidates_kept():
        lm = server.lm()
        first, again = generated(lm=lm), generated(lm=lm, k=2, n=1, panel=True, store="elsewhere.sqlite")
        assert server.requests == REQUESTS
    assert first.made.usage.requests == REQUESTS
    assert again.made == replace(first.made, usage=Usage())


@pytest.mark.parametrize(
    "other",
    [
        {"rows": ROWS[1:]},
        {"rows": [ROWS[0].copy(rating=1.5), *ROWS[1:]]},
        {"rows": [ROWS[0].copy(output="Another text."), *ROWS[1:]]},
        {"task": replace(TASK, description="Another task.")},
        {"task": replace(TASK, scale=replace(TASK.scale, higher_is_better=False))},
        {"generators": {"criterion": 1, "rubric": 1}},
        {"generators": dict(reversed(WRITTEN.items()))},
        {"seed": 1},
        {"strict": True},
        {"repetition": 1},
        {"settings": {"temperature": 0.7}},
        {"settings": {"rollout_id": 3}},
        {"adapter": dspy.JSONAdapter()},
    ],
    ids=lambda other: ", ".join(other),
)
def test_where_anything_differs_nothing_is_shared(other):
    given = dict(other)
    settings, adapter = given.pop("settings", {}), given.pop("adapter", None)
    with serve(scripted) as server, candidates_kept():
        generated(lm=server.lm())
        with dspy.context(adapter=adapter):
            generated(lm=server.lm(**settings), **given)
        assert server.requests >= 2 * REQUESTS


def test_nothing_is_kept_outside_and_nothing_after_the_end():
    with serve(scripted) as server:
        for _ in range(2):
            generated(lm=server.lm())
        assert server.requests == 2 * REQUESTS
        for _ in range(2):
            with candidates_kept():
                generated(lm=server.lm())
        assert server.requests == 4 * REQUESTS


def test_of_several_threads_one_asks():
    with serve(scripted, delay=0.05) as server, candidates_kept():
        lm = server.lm()
        made = in_threads([lambda: generated(lm=lm)] * 6, 6, "test")
        assert server.requests == REQUESTS
    assert sorted(pool.made.usage.requests for pool in made) == [0] * 5 + [REQUESTS]


def test_generation_that_ended_everything_is_asked_again():
    with GivenModel(scripted) as server, candidates_kept():
        with serve(scripted, always=400) as broken, pytest.raises(ModelFailure):
            generated(lm=broken.lm())
        assert generated(lm=broken_twin(server)).made.metrics


def broken_twin(server):
    """The same model by name and settings, behind a server that works."""
    return dspy.LM("openai/loopback", api_base=server.lm().kwargs["api_base"], api_key="none", cache=False)


def ranked(k=2, recommender=None, task=TASK, **options):
    settled = Options(metrics=BANK, bank="existing", k=k, **options)
    sources = settled.resolve(len(ROWS), True, True)
    with settled.asking():
        return gather(ROWS, task, settled, sources, recommender)


def test_a_ranking_is_asked_for_once():
    with serve(scripted) as server, candidates_kept():
        lm = server.lm()
        first = ranked(lm=lm)
        equal = PipelineRecommender(None, LMRecommender())
        others = [ranked(lm=lm, n=3), ranked(lm=lm, seed=1), ranked(lm=lm, recommender=equal)]
        assert server.requests == 1
    assert first.usage.requests == 1
    for again in others:
        assert again.usage == Usage()
        assert [metric.name for metric in again.metrics] == [metric.name for metric in first.metrics]
        assert again.notes == first.notes


def told(instructions):
    asking = LMRecommender()
    asking.rank.signature = asking.rank.signature.with_instructions(instructions)
    return asking


@pytest.mark.parametrize(
    "other",
    [
        {"k": 1},
        {"whole_cards": False},
        {"task": replace(TASK, target="ease")},
        {"recommender": LMRecommender()},
        {"recommender": PipelineRecommender(BM25Recommender(b=0.5), LMRecommender())},
        {"recommender": PipelineRecommender(None, told("Rank the metrics."))},
        {"recommender": PipelineRecommender(None, LMRecommender(), first_k=3)},
        {"repetition": 2},
    ],
    ids=lambda other: ", ".join(other),
)
def test_another_ranking_is_asked_for(other):
    with serve(scripted) as server, candidates_kept():
        ranked(lm=server.lm())
        ranked(lm=server.lm(), **other)
        assert server.requests == 2


def test_a_recommender_with_a_model_of_its_own_is_told_apart():
    with serve(scripted) as server, candidates_kept():
        own = LMRecommender()
        own.rank.lm = server.lm(temperature=0.9)
        for recommender in (LMRecommender(), own, own):
            ranked(lm=server.lm(), recommender=recommender)
        assert server.requests == 2


class Counting:
    """A recommender of the caller's own, which may learn between calls."""

    def __init__(self):
        self.calls = 0

    def recommend(self, task, cards, k=30):
        self.calls += 1
        names = tuple(card.name for card in cards[:k])
        return Recommendation(names, unscored(names), usage=Usage(requests=3))


def test_recommenders_of_ones_own_are_always_asked_also_as_a_stage():
    own = Counting()
    with candidates_kept():
        for _ in range(2):
            assert ranked(recommender=own).usage.requests == 3
            ranked(recommender=PipelineRecommender(own))
    assert own.calls == 4
    assert recommender_key(PipelineRecommender(own)) is None


def test_a_whole_pass_shares_what_it_generates_and_finds_the_same_metric():
    train = RatedRows.of(planted_rows(sources=12), "rating")

    def metric(**options):
        options = {"bank": "all", "metrics": BANK, "generators": WRITTEN, "k": 4, "progress": False, **options}
        return run_pass(train, [], TASK, Options(**options)).metric()

    with serve(scripted) as server:
        alone = metric(lm=server.lm())
        each = server.requests
        with candidates_kept():
            metric(lm=server.lm(), n=1)
            shared = metric(lm=server.lm())
        both = server.requests - each
    assert shared.fingerprint() == alone.fingerprint()
    assert both == 2 * each - REQUESTS - 1  # judges read their rows again without a store, the ranking is shared too
