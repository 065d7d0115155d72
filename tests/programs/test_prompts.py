"""The texts that a model reads, word for word: no prompt changes unnoticed.

After a change that is meant, run this file (``python tests/programs/test_prompts.py``) and read the diff.
"""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.metric import make_row
from metricsmith.programs.generators.axes import AxesGenerator, DimensionsGenerator, contrast
from metricsmith.programs.generators.code import CodeGenerator, tried
from metricsmith.programs.generators.rubrics import ExampleRubricGenerator, RubricGenerator, StepsGenerator
from metricsmith.programs.judges.choice import ChoiceJudge, ResponseSetJudge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.direct_assessment import KINDS, DirectAssessment, ESAJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.perturbers.base import Source
from metricsmith.programs.perturbers.generated import DegradationStrategies, Preserve, Worsen
from metricsmith.programs.perturbers.generation import shown_examples
from metricsmith.programs.recommenders.language_model import LMRecommender
from metricsmith.records import MetricCard, Output, Scale, Task
from metricsmith.signatures.generation import Strategy
from metricsmith.testing import GivenModel

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "prompts"
TEMPLATE = FOLDER.parents[1] / "support" / "graded_prompts.py"
LEVELS = ["none", "some", "half", "most", "all"]
TASK = Task("Rewrite a public notice in plain words.", "rating", Scale(1, 5))
TEXTS = {"output": "The road is shut.", "input": "Notice of closure.", "references": ["Shut.", "Closed."]}
CARDS = [MetricCard(name, "bank", f"Measures {name}.", "f", (Output(name.lower()),)) for name in ("Alpha", "Beta")]


def judge(kind, **extra):
    made = kind(criterion="Plain words", meaning="Every word is short.", task=TASK.description, **extra)
    return made(**TEXTS)


def examples():
    made = ExampleJudge(measure="Clarity", task=TASK.description, scale=Scale(1, 5, 1))
    rows = [make_row("The road is shut, see annex 4.", input="Notice."), make_row("Shut until May.", input="Notice.")]
    return made.with_examples(rows, [2, 5], ["Nobody knows annex 4.", ""])(**TEXTS)


def guideline():
    text = "Give 5 if a reader could act on the notice at once, 1 if not."
    made = GuidelineJudge(measure="Clarity", guideline=text, task=TASK.description, scale=Scale(1, 5, 1))
    return made(**TEXTS)


def translated(kind, **settings):
    made = kind(source_language="English", target_language="German", **settings)
    return made(output="Die Straße ist gesperrt.", input="The road is closed.", references=["Gesperrt."], context="CTX")


def assessed(scale):
    return lambda: translated(DirectAssessment, scale=scale, reference=scale in ("da", "classes"))


def chosen(kind, **settings):
    options = ["plain", "not plain", "beside the point"]
    return kind(options, "Would a reader call the notice plain?", TASK.description, **settings)(**TEXTS)


def trained(ask, **extra):
    made = PrometheusJudge(
        criterion="Plain words", meaning="Every word is short.", levels=LEVELS, task=TASK.description, **extra
    )
    return ask(made)


def compared(made):
    return made.compare("The road is shut.", "Closed.", input=TEXTS["input"], references=TEXTS["references"])


def panel():
    given = {"meaning": "Every word is short.", "task": TASK.description}
    judges = [CriterionJudge(criterion="Plain words", **given), RubricJudge(criterion="Short", levels=LEVELS, **given)]
    return Panel(judges)(**TEXTS)


def axes():
    rows = [make_row(f"Version {number}.", input="Notice.", rating=number) for number in (1, 2, 4, 5)]
    shown = contrast(rows, TASK, each=2)
    return AxesGenerator()(
        task=TASK.description, rating="rating, from 1 to 5", liked=shown.liked, disliked=shown.disliked, count=3
    )


def rubric_from_examples():
    rows = [make_row(f"Version {number}.", input="Notice.", rating=number) for number in (1, 2, 4, 5)]
    shown = contrast(rows, TASK, each=2)
    return ExampleRubricGenerator()(
        task=TASK.description, rating="rating, from 1 to 5", liked=shown.liked, disliked=shown.disliked,
        criterion="Plain words: every word is short.",
    )  # fmt: skip


def function(source=""):
    rows = [make_row(f"Version {number}.", input="Notice.", rating=number) for number in (1, 2, 4, 5)]
    shown = contrast(rows, TASK, each=1)
    again = {"attempt": source, "problems": tried(source, rows).problems} if source else {}
    return CodeGenerator()(
        task=TASK.description, rating="rating, from 1 to 5", criterion="Plain words: every word is short.",
        liked=shown.liked, disliked=shown.disliked, **again,
    )  # fmt: skip


def strategies():
    sources = [Source(f"Version {number}.", input="Notice.") for number in (1, 2)]
    return DegradationStrategies()(
        task=TASK.description, dimension="Plain words: every word is short.", examples=shown_examples(sources)
    )


def perturbed(perturber, **extra):
    asked = {"task": TASK.description, "dimension": "Plain words: every word is short.", "strength": "subtle"}
    return perturber(**asked, **TEXTS, **extra)


ASKED = {
    "criterion_judge": lambda: judge(CriterionJudge),
    "criterion_judge_on_scale": lambda: judge(CriterionJudge, scale="0:10"),
    "rubric_judge": lambda: judge(RubricJudge, levels=LEVELS),
    "example_judge": examples,
    "geval_judge": lambda: judge(GEval, steps=["Look for long words.", "Weigh them."], mode="stated"),
    "guideline_judge": guideline,
    **{f"direct_assessment_{scale}": assessed(scale) for scale in KINDS},
    "choice_judge": lambda: chosen(ChoiceJudge),
    "response_set_judge": lambda: chosen(ResponseSetJudge),
    "response_set_judge_alone": lambda: chosen(ResponseSetJudge, forced=False),
    "esa_judge": lambda: translated(ESAJudge),
    "mqm_annotator": lambda: translated(MQMAnnotator),
    "mqm_annotator_without_spans": lambda: translated(MQMAnnotator, spans=False),
    "dimensions": lambda: DimensionsGenerator()(task=TASK.description, rating="rating", count=3),
    "panel": panel,
    "axes": axes,
    "rubric": lambda: RubricGenerator()(task=TASK.description, criterion="Plain words: every word is short."),
    "rubric_from_examples": rubric_from_examples,
    "steps": lambda: StepsGenerator()(task=TASK.description, criterion="Plain words: every word is short."),
    "function": function,
    "function_repair": lambda: function("def score(output, input, references):\n    return print(output)"),
    "strategies": strategies,
    "worsen": lambda: perturbed(Worsen(), strategies=[Strategy(name="Use long words", description="Where one fits.")]),
    "preserve": lambda: perturbed(Preserve()),
    "ranking": lambda: LMRecommender()(task=TASK.description, target="rating", cards=CARDS, k=2),
}
ON_A_FORM = {
    "prometheus_absolute": lambda: trained(lambda made: made(**TEXTS), reference=False),
    "prometheus_absolute_with_reference": lambda: trained(lambda made: made(**TEXTS), reference=True),
    "prometheus_relative": lambda: trained(compared, reference=False),
    "prometheus_relative_with_reference": lambda: trained(compared),
    "prometheus_template": lambda: trained(lambda made: made(**TEXTS), template=TEMPLATE),
}
ANSWER = {
    "reasoning": "r",
    "score": "3",
    "ratings": '[{"criterion": "Short", "reason": "r", "score": 3}]',
    "axes": '[{"name": "a", "meaning": "b"}]',
    "dimensions": '[{"name": "a", "meaning": "b", "weight": 100}]',
    "levels": '["a", "b", "c", "d", "e"]',
    "steps": '["a", "b"]',
    "source": "def score(output, input, references):\n    return 1.0",
    "names": '["Alpha"]',
    "strategies": '[{"name": "a", "description": "b"}]',
    "outputs": '["a"]',
    "reason": "r",
    "declines": "False",
    "changed": "a",
    "quality": "sound",
    "possible": '["plain"]',
    "choice": "plain",
    "errors": '{"major": [], "minor": []}',
}


def rendered(name: str) -> str:
    errors = {"errors": '{"critical": [], "major": [], "minor": []}'} if name.startswith("mqm_annotator") else {}
    lm = DummyLM([ANSWER | errors])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        ASKED[name]()
    return written(lm.history[0]["messages"])


def written(messages: list[dict[str, str]]) -> str:
    return "\n\n".join(f"=== {m['role']} ===\n{m['content']}" for m in messages) + "\n"


def rendered_form(name: str) -> str:
    """The request of a judge on a trained form; of a comparison, that in the given order."""
    with GivenModel(lambda prompt: f"r [RESULT] {'A' if 'Response A' in prompt else 3}") as model:
        with dspy.context(lm=model.lm()):
            ON_A_FORM[name]()
    texts = [written(body["messages"]) for body in model.bodies]
    return next(text for text in texts if "###Response B:\nThe road" not in text)


@pytest.mark.parametrize("name", ASKED)
def test_the_prompt_is_the_one_on_record(name):
    assert rendered(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", ON_A_FORM)
def test_the_form_is_the_one_on_record(name):
    assert rendered_form(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for prompt in ASKED:
        (FOLDER / f"{prompt}.txt").write_text(rendered(prompt), "utf-8")
    for prompt in ON_A_FORM:
        (FOLDER / f"{prompt}.txt").write_text(rendered_form(prompt), "utf-8")
