"""Recommenders and generators are tuned by the same call as judges, on episodes of different tables."""

from __future__ import annotations

import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.students.episodes import axes_episodes, recommendation_episodes, rubric_episodes
from metricsmith.optimizers.students.metrics import RankingMetric, YieldMetric
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.generators.axes import AxesGenerator
from metricsmith.programs.generators.rubrics import RubricGenerator
from metricsmith.programs.recommenders.language_model import LMRecommender
from metricsmith.signatures.generation import Axis
from students import HINT, answer, rated_table

# Texts of different tables differ by seed; so no output is held out on both sides.
LEARN, SELECT = (
    [rated_table(sources=6, seed=seed) for seed in (1, 2)],
    [rated_table(sources=6, seed=seed) for seed in (3, 4, 5, 6)],
)
AXIS = Axis(name="Warm tone", meaning="It sounds friendly.")  # says nothing unless the rubric brings in padding


def ranking():
    episodes = [recommendation_episodes(tables, k=5) for tables in (LEARN, SELECT)]
    return LMRecommender(), RankingMetric("recall"), *episodes


def axes():
    episodes = [axes_episodes(tables, count=2, splits=1) for tables in (LEARN, SELECT)]
    return AxesGenerator(), YieldMetric(), *episodes


def rubrics():
    episodes = [rubric_episodes(tables, [AXIS]) for tables in (LEARN, SELECT)]
    return RubricGenerator(), YieldMetric(), *episodes


@pytest.mark.parametrize(("case", "budget"), [(ranking, 100), (axes, 250), (rubrics, 250)])
def test_the_planted_instruction_is_found_within_the_bound(case, budget):
    student, metric, learn, select = case()
    with serve(answer) as server:
        tuner = JudgeTuner(method="gepa", objective=metric, budget=budget, lm=server.lm(), seed=1)
        bound = tuner.bound(student, learn, select)
        tuned = tuner.compile(student, learn, select)
    tuning = tuned.tuning
    assert type(tuned) is type(student)
    assert HINT in next(iter(tuning.after.values()))
    assert tuning.replaced
    assert 0.05 < tuning.chosen.gain <= tuning.selection.candidates[0].gain  # corrected for the choice, never upwards
    assert tuning.chosen.standard_error > 0  # every episode is measured by its own rows
    assert tuning.usage.requests == server.requests <= bound <= budget


def test_what_a_measure_asks_is_within_the_bound_with_faults_too():
    student, metric, learn, select = axes()
    with serve(answer, script=Faults({Fault.ERROR_500: 0.45}), seed=2) as server:
        tuner = JudgeTuner(method="gepa", objective=metric, budget=200, lm=server.lm(), seed=1)
        bound = tuner.bound(student, learn, select)
        tuning = tuner.compile(student, learn, select).tuning
    assert tuning.usage.requests == server.requests <= bound <= 200
    assert server.statuses[500] > 40


def test_episodes_need_a_valset_of_other_tables_with_enough_episodes():
    student, metric, learn, select = axes()
    tuner = JudgeTuner(method="gepa", objective=metric, budget=1500)
    with pytest.raises(OptionError, match="pass valset="):
        tuner.bound(student, learn)
    with pytest.raises(OptionError, match="is held out in trainset and valset"):
        tuner.bound(student, select, select)
    with pytest.raises(DataError, match="at least 4"):
        tuner.bound(student, learn, select[:3])
    with pytest.raises(OptionError, match="labeled"):
        JudgeTuner(method="labeled", objective=metric, budget=1500).bound(student, learn, select)
