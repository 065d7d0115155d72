"""Every judge runs through DSPy's Evaluate and optimisers, as student and as metric."""

from __future__ import annotations

import warnings

import dspy
import pytest

from logprobs import SPREAD
from loopback import serve
from metricsmith.programs.judges.base import LEVELS
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.direct_assessment import CLASSES, DirectAssessment
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.esa import ESAJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.guideline import GuidelineJudge
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.rubric import RubricJudge
from metricsmith.records import Scale
from metricsmith.signatures.dimensions import Dimension
from panels import panelled

ROWS = [
    dspy.Example(output=f"Some words {n} " * (n + 1), input="q", rating=n % 5 + 1).with_inputs("output", "input")
    for n in range(8)
]
JUDGES = [
    CriterionJudge(criterion="Brevity", meaning="Short.", task="Write."),
    RubricJudge(criterion="Brevity", meaning="Short.", levels=list("abcde"), task="Write."),
]
STEPS = {"criterion": "Brevity", "meaning": "Short.", "steps": ["Count the words."], "task": "Write."}
JUDGES += [
    Panel(JUDGES),
    GuidelineJudge(measure="Brevity", guideline="Shorter is better.", task="Write.", scale=Scale(1, 5, 1)),
    DnAEval([Dimension(name=name, meaning="Short.", weight=1) for name in ("Brevity", "Haste")], task="Write."),
    GEval(**STEPS, mode="logprob"),
    GEval(**STEPS, mode="sampled", n=2),
]
LANGUAGES = {"source_language": "English", "target_language": "German"}
JUDGES += [
    DirectAssessment(**LANGUAGES),
    DirectAssessment(**LANGUAGES, scale="stars"),
    DirectAssessment(**LANGUAGES, scale="classes"),
    ESAJudge(**LANGUAGES),
    MQMAnnotator(**LANGUAGES),
]


def closeness(example, pred, trace=None, pred_name=None, pred_trace=None):
    return 1 - abs(pred.score - (example.rating - 1) / 4)


def on_the_scale(tuned):
    scale, raw = getattr(tuned, "scale", LEVELS), tuned(output="text", input="q").raw
    return all(map(scale.contains, raw.values() if isinstance(raw, dict) else [raw]))


def answer(prompt):
    if "new_instruction" in prompt:
        return {"new_instruction": "Rate brevity from 1 to 5."}
    if "## proposed_instruction ##" in prompt:
        return {"proposed_instruction": "Rate brevity."}
    if "## observations ##" in prompt or "## summary ##" in prompt or "## program_description ##" in prompt:
        return {
            "observations": "COMPLETE",
            "summary": "short",
            "program_description": "p",
            "module_description": "m",
        }
    fields = translated(panelled(prompt), prompt)
    return {**fields, SPREAD: {fields["score"]: 0.75, "three": 0.25}} if "score" in fields else fields


def translated(fields, prompt):
    """What judges of translations fill in besides, the class and the number by the same script."""
    if "[[ ## quality ## ]]" in prompt:
        return {"reasoning": fields["reasoning"], "quality": CLASSES[int(fields["score"]) - 1]}
    if "[[ ## errors ## ]]" in prompt:
        error = {"span": "words", "type": "style/awkward", "description": "Plain."}
        lists = {"major": [], "minor": [error]}
        return {"errors": {"critical": [], **lists}} if '"critical"' in prompt else {"errors": lists, **fields}
    return fields


@pytest.fixture(params=JUDGES, ids=lambda judge: getattr(judge, "name", judge.kind))
def judge(request):
    return request.param.deepcopy()


@pytest.fixture
def lm():
    with serve(answer) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        model = server.lm(temperature=1.0)
        with dspy.context(lm=model):
            yield model


def test_evaluate_runs_a_judge_as_student(judge, lm):
    result = dspy.Evaluate(devset=ROWS, metric=closeness, num_threads=2, display_progress=False)(judge)
    assert 0 < result.score <= 100


def test_bootstrap_few_shot_gives_a_judge_demonstrations(judge, lm):
    tuned = dspy.BootstrapFewShot(metric=lambda *a, **k: True, max_bootstrapped_demos=2).compile(judge, trainset=ROWS)
    assert all(len(predictor.demos) >= 1 for predictor in tuned.predictors())
    assert on_the_scale(tuned)


def test_mipro_tunes_a_judge(judge, lm):
    optimiser = dspy.MIPROv2(
        metric=closeness,
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=1,
        prompt_model=lm,
    )
    tuned = optimiser.compile(judge, trainset=ROWS[:4], valset=ROWS[4:], num_trials=2, minibatch=False)
    assert on_the_scale(tuned)


def test_gepa_tunes_a_judge(judge, lm):
    optimiser = dspy.GEPA(metric=closeness, max_metric_calls=12, reflection_lm=lm, num_threads=2)
    tuned = optimiser.compile(judge, trainset=ROWS[:4], valset=ROWS[4:])
    assert on_the_scale(tuned)


class Writer(dspy.Module):
    def __init__(self):
        super().__init__()
        self.write = dspy.Predict("question -> answer")

    def forward(self, question):
        return dspy.Prediction(answer=f"plain words about {question}")


def test_evaluate_and_gepa_take_a_judge_as_metric(judge, lm):
    metric = (judge.members()[1] if isinstance(judge, Panel) else judge).as_metric(input="question", output="answer")
    rows = [dspy.Example(question=f"q{n}").with_inputs("question") for n in range(4)]
    result = dspy.Evaluate(devset=rows, metric=metric, num_threads=2, display_progress=False)(Writer())
    assert 0 <= result.score <= 100
    dspy.GEPA(metric=metric, max_metric_calls=8, reflection_lm=lm, num_threads=2).compile(
        Writer(), trainset=rows[:2], valset=rows[2:]
    )
    assert metric.failures == ()
