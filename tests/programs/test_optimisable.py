"""Every judge runs through DSPy's Evaluate and optimisers, as student and as metric."""

from __future__ import annotations

import json
import re
import warnings

import dspy
import pytest

from metricsmith.programs.judges.base import LEVELS
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.direct_assessment import CLASSES, DirectAssessment, ESAJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import GuidelineJudge
from metricsmith.records import Scale
from metricsmith.signatures.generation import Dimension
from metricsmith.testing import GivenAnswer, GivenModel
from panels import asked_for, is_joint, item

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
    MQMAnnotator(**LANGUAGES, spans=False, name="mqm_without_spans"),
]


BETTER = "Rate brevity from 1 to 5."  # the instruction that optimisers are given: with it every number is right
GUESS = 3  # the level that a judge states without it


def score_of(judge, level):
    """The score in [0, 1] of a judge that is told this level, by hand."""
    # MQM: 5 - level minor errors of weight 1 each; one major error, of weight 5, would score a half.
    return 5 / (5 + 5 - level) if isinstance(judge, MQMAnnotator) else (level - 1) / 4


def closeness_to(judge):
    def closeness(example, pred, trace=None, pred_name=None, pred_trace=None):
        return 1 - abs(pred.score - score_of(judge, example.rating))

    return closeness


def measured(judge, rows=ROWS):
    evaluate = dspy.Evaluate(devset=rows, metric=closeness_to(judge), num_threads=2, display_progress=False)
    return evaluate(judge).score


def guessed(judge, rows=ROWS):
    """The score that Evaluate gives a judge that always guesses."""
    misses = [abs(score_of(judge, GUESS) - score_of(judge, row.rating)) for row in rows]
    return round(100 * (1 - sum(misses) / len(rows)), 2)


def on_the_scale(tuned):
    scale, raw = getattr(tuned, "scale", LEVELS), tuned(output="text", input="q").raw
    return all(map(scale.contains, raw.values() if isinstance(raw, dict) else [raw]))


def answer(prompt):
    if "new_instruction" in prompt:
        return json.dumps({"new_instruction": BETTER})
    if "## proposed_instruction ##" in prompt:
        return {"proposed_instruction": BETTER}
    if "## observations ##" in prompt or "## summary ##" in prompt or "## program_description ##" in prompt:
        return {
            "observations": "COMPLETE",
            "summary": "short",
            "program_description": "p",
            "module_description": "m",
        }
    row = re.findall(r"Some words (\d)", prompt)
    return stated(prompt, int(row[-1]) % 5 + 1 if row and BETTER in prompt else GUESS)


def stated(prompt, level):
    """The level in the words of every kind of judge."""
    if is_joint(prompt):
        return {"ratings": [item(name, level) for name in asked_for(prompt)]}
    if "[[ ## quality ## ]]" in prompt:
        return {"reasoning": "r", "quality": CLASSES[level - 1]}
    number = str(25 * (level - 1) if "from 0 to 100" in prompt else level)
    if "[[ ## errors ## ]]" in prompt:
        lists = {
            "major": [],
            "minor": [{"span": "words", "type": "style/awkward", "description": "Plain."}] * (5 - level),
        }
        if '"critical"' in prompt:
            return {"errors": {"critical": [], **lists}}
        return {"errors": lists, "reasoning": "r", "score": number}
    return GivenAnswer({"reasoning": "r", "score": number}, probabilities={number: 1.0})


@pytest.fixture(params=JUDGES, ids=lambda judge: getattr(judge, "name", judge.kind))
def judge(request):
    return request.param.deepcopy()


@pytest.fixture
def lm():
    with GivenModel(answer) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        model = server.lm(temperature=1.0)
        with dspy.context(lm=model):
            yield model


def test_evaluate_runs_a_judge_as_student(judge, lm):
    assert measured(judge) == guessed(judge) < 90


def test_bootstrap_few_shot_gives_a_judge_the_demonstrations_that_pass(judge, lm):
    optimiser = dspy.BootstrapFewShot(
        metric=closeness_to(judge), metric_threshold=1.0, max_bootstrapped_demos=2, max_labeled_demos=0
    )
    tuned = optimiser.compile(judge, trainset=ROWS)
    # Guesses are right of the rows with rating 3, which are the third and the last.
    for predictor in tuned.predictors():
        made = [demo for demo in predictor.demos if demo.get("augmented")]
        assert [re.findall(r"Some words (\d)", str(demo.toDict()))[0] for demo in made] == ["2", "7"]
    assert measured(tuned) == guessed(judge)
    assert on_the_scale(tuned)


def test_mipro_tunes_a_judge(judge, lm):
    optimiser = dspy.MIPROv2(
        metric=closeness_to(judge),
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=1,
        prompt_model=lm,
    )
    tuned = optimiser.compile(judge, trainset=ROWS[:4], valset=ROWS[4:], num_trials=6, minibatch=False)
    assert {predictor.signature.instructions for predictor in tuned.predictors()} == {BETTER}
    assert measured(tuned) == 100
    assert on_the_scale(tuned)


def test_gepa_tunes_a_judge(judge, lm):
    optimiser = dspy.GEPA(metric=closeness_to(judge), max_metric_calls=30, reflection_lm=lm, num_threads=2)
    tuned = optimiser.compile(judge, trainset=ROWS[:4], valset=ROWS[4:])
    assert {predictor.signature.instructions for predictor in tuned.predictors()} == {BETTER}
    assert measured(tuned) == 100
    assert on_the_scale(tuned)


class Writer(dspy.Module):
    def __init__(self):
        super().__init__()
        self.write = dspy.Predict("question -> answer")

    def forward(self, question):
        return dspy.Prediction(answer=f"plain words about {question}")


def test_evaluate_and_gepa_take_a_judge_as_metric(judge, lm):
    judge = judge.members()[1] if isinstance(judge, Panel) else judge
    metric = judge.as_metric(input="question", output="answer")
    rows = [dspy.Example(question=f"q{n}").with_inputs("question") for n in range(4)]
    evaluate = dspy.Evaluate(devset=rows, metric=metric, num_threads=2, display_progress=False)
    result = evaluate(Writer())
    assert result.score == round(100 * score_of(judge, GUESS), 2)
    assert all("Score 0." in verdict.feedback for _, _, verdict in result.results)
    dspy.GEPA(metric=metric, max_metric_calls=8, reflection_lm=lm, num_threads=2).compile(
        Writer(), trainset=rows[:2], valset=rows[2:]
    )
    assert metric.failures == ()
    for predictor in judge.predictors():
        predictor.signature = predictor.signature.with_instructions(BETTER)
    rated = [dspy.Example(input="q", output=row.output).with_inputs("input", "output") for row in ROWS]
    better = dspy.Evaluate(devset=rated, metric=judge, num_threads=2, display_progress=False)
    expected = [score_of(judge, row.rating) for row in ROWS]
    assert better(lambda output, input: output).score == round(100 * sum(expected) / len(ROWS), 2)
