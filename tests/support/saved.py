"""One metric of every kind that a file can hold, with demonstrations where it can have any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from loopback import scripted
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.metric import content_hash, make_row
from metricsmith.mqm import MQMWeights
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.choice import ChoiceJudge, ResponseSetJudge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.direct_assessment import CLASSES, DirectAssessment, ESAJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.parrot import ExampleMean, Parrot
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.records import ErrorSpan, Output, Scale, Task
from metricsmith.scoring import CallableMetric
from metricsmith.signatures.generation import Dimension
from metricsmith.stats.regression import LinearCombination, NormalScore, ZScore
from metricsmith.testing import GivenAnswer
from panels import panelled

TASK = "Rewrite notices."
ROW = make_row("The gate is shut.", input="The gate will be closed.", references=["Closed."], columns={"length": 4.0})
RATED = [make_row(f"Gate {n} is shut.", input=f"Gate {n} will be closed.", references=["Closed."]) for n in range(1, 4)]
OPTIONS, QUESTION = ["plain", "plain, at last", "über Kopf"], "How are the words?"
SHARE = """def kept(output, references):
    wanted = set(references[0].lower().split())
    return len(wanted & set(output.lower().split())) / len(wanted)
"""
LANGUAGES = {"source_language": "English", "target_language": "German"}


def words(example: Any, pred: Any) -> int:
    """The number of words of the output."""
    return len(pred.output.split())


def criterion(name: str = "Plain words") -> CriterionJudge:
    return CriterionJudge(criterion=name, meaning="Every word is common.", task=TASK)


def every_kind() -> dict[str, Any]:
    """Metrics, and a panel, by names of which the first word is the kind; `finetuning` has one that needs weights."""
    numbers: dict[str, Any] = {"measure": "Clarity", "task": TASK, "scale": Scale(1, 5, 1)}
    steps: dict[str, Any] = {"criterion": "Brevity", "meaning": "Short.", "steps": ["Count.", "Weigh."], "task": TASK}
    rubric = RubricJudge(criterion="Order", meaning="First things first.", levels=list("abcde"), task=TASK)
    dimensions = [Dimension(name=name, meaning="Good.", weight=weight) for name, weight in (("Facts", 3), ("Tone", 1))]
    marked = make_row("Halten Sie offen.", input="Keep closed.", spans=())
    judged = [
        criterion().with_examples(RATED, [1, 3, 5], ["Bad.", "Fair.", "Good."]),
        ExampleJudge(**numbers).with_examples(RATED, [1, 3, 5]),
        DirectAssessment(**LANGUAGES, scale="classes").with_examples(RATED[:1], [2]),
        ESAJudge(**LANGUAGES).with_examples([marked], [40]),
    ]
    panel = Panel([criterion(), rubric])
    template = Path(__file__).with_name("graded_prompts.py")
    corpus = default_bank().get("cider").fit([make_row("a b c d", references=["a b c d", "a b c e"])] * 3)
    kinds = {
        **{f"{judge.kind} with examples": judge for judge in judged},
        "criterion_judge on a scale": CriterionJudge(criterion="Tone", meaning="Kind.", task=TASK, scale="0:10"),
        "rubric_judge": rubric,
        "prometheus_judge": PrometheusJudge.from_rubric(rubric, reference=True),
        "prometheus_judge with a template": PrometheusJudge.from_rubric(rubric, template=template, name="published"),
        "guideline_judge": GuidelineJudge(**numbers, guideline="Give 5 to what is clear."),
        "geval_judge logprob": GEval(**steps, mode="logprob"),
        "geval_judge sampled": GEval(**steps, mode="sampled", n=2),
        "direct_assessment stars": DirectAssessment(**LANGUAGES, scale="stars", reference=True),
        "mqm_annotator": MQMAnnotator(**LANGUAGES, weights=MQMWeights.wmt(cap=25)),
        "mqm_annotator without spans": MQMAnnotator(**LANGUAGES, spans=False),
        "mqm_judge": MQMJudge(**LANGUAGES, runs=2),
        "mqm_judge without spans": MQMJudge(**LANGUAGES, runs=2, spans=False),
        "mqm_annotator specialised": specialised(MQMAnnotator(**LANGUAGES, worked_example=False, context="none")),
        "parrot": specialised(Parrot()),
        "example_mean": specialised(ExampleMean()),
        "choice_judge": ChoiceJudge(OPTIONS, QUESTION, TASK, "plain, at last"),
        "response_set_judge": ResponseSetJudge(OPTIONS, QUESTION, TASK, OPTIONS[:2], name="words"),
        "response_set_judge alone": ResponseSetJudge(OPTIONS, QUESTION, TASK, name="sets", forced=False),
        "option_member": ChoiceJudge(OPTIONS, QUESTION, TASK, name="tone").members()[1],
        "dna_eval": DnAEval(dimensions, task=TASK),
        "panel": panel,
        "panel_member": panel.members()[1],
        "repeated": Repeated(criterion("Kept facts"), 3, "median", stop_when=0.5),
        "bank": default_bank().get("rouge1_r"),
        "bank cider": corpus,
        "column": ColumnMetric("length"),
        "callable": CallableMetric(words, hidden=["rating"]),
        "code": CodeMetric(SHARE, "kept", name="kept_words", meaning="The share of words.", output=Output("", 0, 1)),
    }
    parts = [judged[0], panel.members()[0], kinds["repeated"], corpus, kinds["column"], kinds["code"]]
    return {**kinds, "induced": induced(parts)}


def specialised(judge: Any) -> Any:
    """A specialist for the one source of `ROW`, of which two systems have ratings."""
    marks = (ErrorSpan("major", "style/awkward", 4, 8, "gate", description="Odd."), ErrorSpan("minor", text="is"))
    ratings = [HistoricalRating(str(ROW.input), name, f"The gate {name}.", "r1", -1.0, marks) for name in ("A", "B")]
    return Specialist(ExamplePolicy(rater="any", max_examples=2)).compile(
        judge, History(tuple(ratings), "gates", Scale(-25, 0))
    )


def induced(components: list[Any]) -> InducedMetric:
    """Their sum, in halves of z-scores and normal scores."""
    values = np.array([[1.0, 2.0, 4.0]] * len(components))
    columns = tuple((ZScore, NormalScore)[place % 2].fit(row) for place, row in enumerate(values))
    names = tuple(component.name for component in components)
    combination = LinearCombination(names, tuple(range(len(names))), columns, (0.5,) * len(names), 3.0)
    return InducedMetric(
        components=components, combination=combination, task=Task(TASK, "rating", Scale(1, 5, 1)),
        best=[1.0] * len(names), signature="made by hand",
        reading={"output": "text", "inputs": ["source"], "reference": [], "context": None,
                 "metric_columns": ["length"]},
    )  # fmt: skip


def write(content: dict[str, Any], path: Path) -> Path:
    """A file with the hash that its content, whatever it is, must have."""
    members = {name: value for name, value in content.items() if name != "hash"}
    path.write_text(json.dumps({**members, "hash": content_hash(members)}), "utf-8")
    return path


def answer(prompt: str) -> dict[str, Any] | GivenAnswer | str:
    """Answers for every judge and for the proposers of DSPy's optimisers."""
    if prompt.endswith("###Feedback: "):
        return f"So it is. [RESULT] {scripted(prompt)['score']}"
    if "new_instruction" in prompt:
        return {"new_instruction": "Rate from 1 to 5, and look at the words first."}
    if "proposed_instruction" in prompt:
        return {"proposed_instruction": "Rate from 1 to 5, and look at the order first."}
    proposals = ("observations", "summary", "program_description", "module_description", "discussion")
    if any(f"## {name} ##" in prompt for name in (*proposals, "module_advice")):
        advice = {"module_advice": '{"judge": "Look twice."}'} if "module_advice" in prompt else {}
        return {**dict.fromkeys(proposals, "COMPLETE"), **advice}
    fields = panelled(prompt)
    if "[[ ## quality ## ]]" in prompt:
        return {"reasoning": fields["reasoning"], "quality": CLASSES[int(fields["score"]) - 1]}
    if "[[ ## errors ## ]]" in prompt:
        lists: dict[str, Any] = {
            "major": [],
            "minor": [{"span": "is", "type": "style/awkward", "description": "Plain."}],
        }
        return {"errors": {"critical": [], **lists}} if '"critical"' in prompt else {"errors": lists, **fields}
    if "[[ ## choice ## ]]" in prompt or "[[ ## possible ## ]]" in prompt:
        possible = json.dumps([OPTIONS[0], OPTIONS[2]], ensure_ascii=False)
        return {"reasoning": fields["reasoning"], "possible": possible, "choice": OPTIONS[2]}
    return GivenAnswer(fields, probabilities={fields["score"]: 0.75, "three": 0.25}) if "score" in fields else fields
