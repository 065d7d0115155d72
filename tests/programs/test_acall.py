"""Every module answers `acall` as it answers a call; a class without a case here fails."""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest

import metricsmith
from loopback import serve
from metricsmith.bank.catalogue import default_bank
from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.optimizers.specialist import Specialist
from metricsmith.optimizers.tuning.student import JudgementTable, Student
from metricsmith.programs.generators.axes import AxesGenerator, DimensionsGenerator
from metricsmith.programs.generators.code import CodeGenerator
from metricsmith.programs.generators.rubrics import ExampleRubricGenerator, RubricGenerator, StepsGenerator
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.base import Judge, MetricProgram, ModelAsker, ModelMetric, Predictor
from metricsmith.programs.judges.choice import ChoiceJudge, OptionMember, OptionsJudge, ResponseSetJudge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.direct_assessment import CLASSES, DirectAssessment, ESAJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.geval import GEval, _Answer
from metricsmith.programs.judges.members import Member
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.judges.parrot import ExampleMean, FromExamples, Parrot
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge, RatersJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.judges.translation import TranslationJudge
from metricsmith.programs.perturbers.generated import DegradationStrategies, Preserve, Worsen
from metricsmith.programs.recommenders.base import FirstStage, by_score
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.colbert import ColBERTRecommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.programs.state import Saved
from metricsmith.records import Scale, Task
from metricsmith.scoring import Concurrency
from metricsmith.signatures.generation import Dimension, Strategy
from metricsmith.stats.regression import LinearCombination, ZScore

ABSTRACT = {
    FromExamples, Judge, Member, MetricProgram, ModelAsker, ModelMetric, OptionsJudge, TranslationJudge, RatersJudge,
    FirstStage, Saved, Predictor,
}  # fmt: skip
ANY = ExamplePolicy(rater="any")
Q = History(tuple(HistoricalRating("q", name, name, "r", 2.0, ()) for name in "AB"), scale=Scale(1, 5))
ROW = {"output": "some words", "input": "q"}
LANGUAGES = {"source_language": "English", "target_language": "German"}
RATED = {"measure": "Brevity", "task": "Write.", "scale": Scale(1, 5, 1)}
JUDGE = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")
ASKED = (["yes", "no"], "Is it short?", "Write.")
STEPS = {"criterion": "Brevity", "meaning": "Short.", "steps": ["Count the words."], "task": "Write."}
CARDS = [family.card for family in default_bank().families[:4]]
POOL = {"task": "Simplify.", "target": "readability", "cards": CARDS, "k": 2}
WRITING = {"task": "t", "rating": "r", "criterion": "c", "liked": "l", "disliked": "d", "attempt": "a"}
DAMAGE = {"task": "Write.", "dimension": "Brevity", "output": "some words", "strength": "subtle"}


class Reversed(ColBERTRecommender):
    """The recommender without its encoder, which needs an extra: everything but the numbers is its own."""

    def __init__(self):
        FirstStage.__init__(self)

    def recommend(self, task, cards, k=30):
        return by_score(cards, range(len(cards)), k)


def induced():
    combination = LinearCombination(("brevity",), (0,), (ZScore(3.0, 1.0),), (1.0,), 3.0)
    return InducedMetric(components=[JUDGE], combination=combination, task=Task("Write.", "t", Scale(1, 5)), best=[2.0])


def student():
    return Student(JUDGE.deepcopy(), JudgementTable(RateLimiter(Concurrency(1, 1)), dspy.settings.lm))


CASES = {
    CriterionJudge: (lambda: JUDGE, ROW),
    RubricJudge: (
        lambda: RubricJudge(criterion="Brevity", meaning="Short.", levels=list("abcde"), task="Write."), ROW,
    ),
    PrometheusJudge: (
        lambda: PrometheusJudge(criterion="Brevity", meaning="Short.", levels=list("abcde"), task="Write."), ROW,
    ),
    GuidelineJudge: (lambda: GuidelineJudge(guideline="Shorter is better.", **RATED), ROW),
    ExampleJudge: (lambda: ExampleJudge(**RATED), ROW),
    GEval: (lambda: GEval(**STEPS, mode="sampled", n=2), ROW),
    _Answer: (lambda: _Answer(GEval(**STEPS, mode="sampled", n=2)), ROW),
    DnAEval: (lambda: DnAEval([Dimension(name="Brevity", meaning="Short.", weight=1)], task="Write."), ROW),
    DirectAssessment: (lambda: DirectAssessment(**LANGUAGES, scale="classes"), ROW),
    ESAJudge: (lambda: ESAJudge(**LANGUAGES), ROW),
    MQMAnnotator: (lambda: MQMAnnotator(**LANGUAGES), ROW),
    MQMJudge: (lambda: MQMJudge(**LANGUAGES, runs=2), ROW),
    Parrot: (lambda: Specialist(ANY).compile(Parrot(), Q), ROW),
    ExampleMean: (lambda: Specialist(ANY).compile(ExampleMean(), Q), ROW),
    Repeated: (lambda: Repeated(JUDGE, runs=2), ROW),
    Panel: (lambda: Panel([JUDGE]), ROW),
    PanelMember: (lambda: Panel([JUDGE]).members()[0], ROW),
    ChoiceJudge: (lambda: ChoiceJudge(*ASKED, "yes"), ROW),
    ResponseSetJudge: (lambda: ResponseSetJudge(*ASKED), ROW),
    OptionMember: (lambda: ResponseSetJudge(*ASKED).members()[3], ROW),
    InducedMetric: (induced, ROW),
    Student: (student, ROW),
    AxesGenerator: (AxesGenerator, {"task": "t", "rating": "r", "liked": "l", "disliked": "d", "count": 1}),
    DimensionsGenerator: (DimensionsGenerator, {"task": "t", "rating": "r", "count": 1}),
    RubricGenerator: (RubricGenerator, {"task": "t", "criterion": "c"}),
    ExampleRubricGenerator: (
        ExampleRubricGenerator, {"task": "t", "rating": "r", "liked": "l", "disliked": "d", "criterion": "c"},
    ),
    CodeGenerator: (CodeGenerator, WRITING),
    StepsGenerator: (StepsGenerator, {"task": "t", "criterion": "c"}),
    DegradationStrategies: (DegradationStrategies, {"task": "t", "dimension": "d", "examples": "e"}),
    Worsen: (Worsen, {"strategies": [Strategy(name="Cut", description="Cut a word.")], **DAMAGE}),
    Preserve: (Preserve, DAMAGE),
    BM25Recommender: (BM25Recommender, POOL),
    ColBERTRecommender: (Reversed, POOL),
    LMRecommender: (LMRecommender, POOL),
    PipelineRecommender: (lambda: PipelineRecommender(second=LMRecommender(), first_k=3), POOL),
}  # fmt: skip

SAID = {
    "reasoning": "because", "reason": "because", "score": "4", "quality": CLASSES[3], "declines": "False",
    "changed": "other words", "names": [CARDS[1].name], "outputs": ["worse"], "steps": ["Count."],
    "levels": list("abcde"), "source": "```\nx\n```", "possible": ["yes", "no"], "choice": "no",
    "axes": [{"name": "Brevity", "meaning": "Short."}], "strategies": [{"name": "Cut", "description": "Cut a word."}],
    "dimensions": [{"name": "Brevity", "meaning": "Short.", "weight": 100}],
    "ratings": [{"criterion": "Brevity", "reason": "because", "score": 4}],
}  # fmt: skip


def answer(prompt):
    """Every field that is asked for, by its name alone."""
    if prompt.endswith("###Feedback: "):
        return "because [RESULT] 4"
    asked = re.findall(r"`\[\[ ## (\w+) ## \]\]`", prompt.rsplit("Respond with the corresponding output fields", 1)[-1])
    errors = {"critical": [], "major": [], "minor": []} if '"critical"' in prompt else {"major": [], "minor": []}
    return {name: errors if name == "errors" else SAID[name] for name in asked if name != "completed"}


def modules() -> Iterator[type]:
    """All classes of modules in the package."""
    package = Path(metricsmith.__file__).parent
    for path in package.rglob("*.py"):
        if path.stem not in ("__init__", "__main__"):
            importlib.import_module(".".join(["metricsmith", *path.relative_to(package).with_suffix("").parts]))
    known = [dspy.Module]
    for kind in known:
        known += kind.__subclasses__()
        if kind.__module__.startswith("metricsmith."):
            yield kind


def test_every_module_of_the_package_has_a_case():
    assert set(modules()) - ABSTRACT == set(CASES)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_acall_answers_as_a_call_does_and_dspy_warns_of_nothing(kind, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    build, inputs = CASES[kind]
    with serve(answer) as server, dspy.context(lm=server.lm(temperature=1.0)):
        module = build()
        assert isinstance(module, kind)
        called = module(**inputs).toDict()
        sent = server.requests
        awaited = asyncio.run(build().acall(**inputs)).toDict()
    assert awaited == called
    assert not [record for record in caplog.records if "discouraged" in record.getMessage()]
    assert sorted(server.prompts[:sent]) == sorted(server.prompts[sent:])
