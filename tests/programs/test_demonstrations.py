"""A row that stands among a judge's demonstrations is judged without the answer to it, and with all others."""

from __future__ import annotations

import dspy
import pytest

from metricsmith.metric import fenced_texts, make_row, row_text
from metricsmith.programs.judges.choice import ChoiceJudge, ResponseSetJudge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.direct_assessment import DirectAssessment, ESAJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Scale
from metricsmith.signatures.generation import Dimension
from metricsmith.testing import GivenModel

ONE = {"criterion": "Brevity", "meaning": "Short.", "task": "Write."}
ALL = {"measure": "Brevity", "task": "Write.", "scale": Scale(1, 5, 1)}
LANGUAGES = {"source_language": "English", "target_language": "German"}
JUDGES = {
    "criterion": CriterionJudge(**ONE),
    "rubric": RubricJudge(**ONE, levels=list("abcde")),
    "examples": ExampleJudge(**ALL),
    "guideline": GuidelineJudge(**ALL, guideline="Shorter is better."),
    "geval stated": GEval(**ONE, steps=["Count."], mode="stated"),
    "geval logprob": GEval(**ONE, steps=["Count."], mode="logprob"),
    "geval sampled": GEval(**ONE, steps=["Count."], mode="sampled", n=2),
    "da": DirectAssessment(**LANGUAGES),
    "da classes": DirectAssessment(**LANGUAGES, scale="classes"),
    "esa": ESAJudge(**LANGUAGES),
    "mqm run": MQMAnnotator(**LANGUAGES),
    "mqm": MQMJudge(**LANGUAGES),
    "repeated": Repeated(ExampleJudge(**ALL), 2),
    "dna": DnAEval([Dimension(name="Brevity", meaning="Short.", weight=1)], task="Write."),
    "choice": ChoiceJudge(["yes", "no"], "Is it short?", "Write."),
    "sets": ResponseSetJudge(["yes", "no"], "Is it short?", "Write."),
    "panel": Panel([CriterionJudge(**ONE)]),
}
SHOWN = [make_row(f"OUT{output}", input=f"IN{input}") for input, output in ((1, 1), (1, 2), (2, 1), (2, 2))]


def asked(judge):
    """The part of a judge that holds the predictor."""
    return next((part for _, part in judge.named_sub_modules() if hasattr(part, "question")), judge)


def demonstration(judge, row, answer):
    texts = judge.texts(row_text(row)) if hasattr(judge, "texts") else fenced_texts(row_text(row))
    return dspy.Example(**judge.question(), **texts, **dict.fromkeys(judge.judge.signature.output_fields, answer))


def prompts(judge, row):
    """The server's prompts for a row, repairs aside, and what a panel's judges are asked alone after them."""
    with GivenModel(lambda prompt: "nothing of use") as server, dspy.context(lm=server.lm(temperature=1.0)):
        metric = judge.members()[0] if hasattr(judge, "members") else judge
        metric.judge_batch([row])
    sent = [prompt for prompt in server.prompts if "nothing of use" not in prompt]
    return sent[:1] if isinstance(judge, Panel) else sent


@pytest.mark.parametrize("name", JUDGES)
def test_only_a_demonstration_of_the_same_input_and_output_is_left_out(name):
    judge = JUDGES[name].deepcopy()
    part = asked(judge)
    part.judge.demos = [demonstration(part, row, f"ANSWER{place}") for place, row in enumerate(SHOWN)]
    for row, left_out in [*zip(SHOWN, range(4), strict=True), (make_row("OUT3", input="IN1"), None)]:
        kept = [place != left_out for place in range(4)]
        sent = prompts(judge, row)
        assert sent
        for prompt in [*sent, "\n".join(message["content"] for message in part.messages(row))]:
            assert [f"ANSWER{place}" in prompt for place in range(4)] == kept
