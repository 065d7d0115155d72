"""The judge that learns from rated examples: what people gave to similar works, in the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from metricsmith.programs.judges.base import Judge, slug
from metricsmith.records import MetricCard, Scale
from metricsmith.signatures.judgement import JudgeByExamples

__all__ = ["ExampleJudge"]


class ExampleJudge(Judge):
    """Gives the number that the raters would give, on their own scale (the "examples" judge of AutoMetrics).

    Parameters
    ----------
    measure : str
        What the rating measures, in a few words; a column name will do.
    task : str
        What the outputs are made for.
    scale : Scale or mapping
        The raters' scale; answers outside it are failures.
    name : str, optional
        Column name; by default made from the measure.

    Examples
    --------
    >>> judge = ExampleJudge(measure="Helpfulness", task="Answer questions.", scale=Scale(1, 5, 1))
    >>> judge.name, len(judge.examples)
    ('helpfulness_by_examples', 0)
    """

    kind = "example_judge"
    signature = JudgeByExamples

    def __init__(self, *, measure: str, task: str, scale: Scale | Mapping[str, Any], name: str = "") -> None:
        plain = asdict(scale) if isinstance(scale, Scale) else dict(scale)
        Scale(**plain)  # refuses what is none
        super().__init__(
            name=name or f"{slug(measure)}_by_examples", measure=measure, meaning=f"{measure} as its raters see it",
            task=task, scale=plain,
        )  # fmt: skip

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a judge from `to_state`'s result."""
        settings = {name: value for name, value in state["state"]["settings"].items() if name != "meaning"}
        judge = cls(**settings)
        judge.load_state(dict(state["state"]))
        return judge

    @property
    def scale(self) -> Scale:
        """The raters' scale."""
        return Scale(**self.settings.scale)

    def question(self) -> Mapping[str, str]:
        """Task and scale."""
        scale = self.scale
        best = scale.high if scale.higher_is_better else scale.low
        steps = "" if scale.step is None else f" in steps of {scale.step:g}"
        return {
            "task": str(self.settings.task),
            "scale": f"{self.settings.measure}: a number from {scale.low:g} to {scale.high:g}{steps}; {best:g} is best",
        }

    @property
    def card(self) -> MetricCard:
        """The generated card."""
        count = len(self.examples)
        return MetricCard(
            name=f"{self.settings.measure} (by examples)",
            kind=self.kind,
            summary=f"A language model that has seen {count} rated outputs gives {self.settings.meaning}.",
            formula=f"The number from {self.scale} that the model gives after comparing with the rated examples.",
            outputs=(self.output,),
            needs=("model",),
            cost="model",
            multi_reference="All references are shown, in the order given.",
            tasks=(self.settings.task,),
            best_for=(f"Predicting {self.settings.measure.lower()} where it is easier shown than said",),
            not_for=("Saying which quality an output lacks: its examples carry ratings, not criteria",),
            limits=(
                f"Rests on {count} examples: what they do not show it cannot learn",
                "Every request carries all examples, which costs tokens",
            ),
            failure_cases=("Outputs unlike all examples", "Examples that contradict one another"),
            papers=("AutoMetrics, section 3.1 and appendix (examples)",),
            backend="the language model in force",
            backend_license="the model provider's terms",
        )
