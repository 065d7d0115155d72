"""The judge that learns from rated examples: the prompt shows similar works with their ratings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metricsmith.programs.judges.base import slug
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.records import MetricCard, Scale
from metricsmith.signatures.judgement import JudgeByExamples

__all__ = ["ExampleJudge"]


class ExampleJudge(RatersJudge):
    """Gives the number that the raters would give (the "examples" judge of AutoMetrics).

    Parameters
    ----------
    measure : str
        What the rating measures, in a few words; a column name will do.
    task : str
        What the outputs are made for.
    scale : Scale or mapping
        The raters' scale, from which follows the one that is asked (`asked_scale`).
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
        super().__init__(name=name or f"{slug(measure)}_by_examples", measure=measure, task=task, scale=scale)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        count = len(self.examples)
        return self.card_with(
            name=f"{self.settings.measure} (by examples)",
            summary=f"A language model that has seen {count} rated outputs gives {self.settings.meaning}.",
            formula=f"The number from {self.scale} that the model gives after comparing with the rated examples.",
            best_for=(f"Predicting {self.settings.measure.lower()} where it is easier shown than said",),
            not_for=("Saying which quality an output lacks: its examples carry ratings, not criteria",),
            limits=(
                f"Rests on {count} examples: what they do not show it cannot learn",
                "Every request carries all examples, which costs tokens",
            ),
            failure_cases=("Outputs unlike all examples", "Examples that contradict one another"),
            papers=("AutoMetrics, section 3.1 and appendix (examples)",),
        )
