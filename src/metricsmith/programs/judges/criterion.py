"""The single-criterion judge: one quality, one number."""

from __future__ import annotations

from typing import ClassVar

from metricsmith.programs import schema
from metricsmith.programs.judges.base import Judge, slug
from metricsmith.records import MetricCard
from metricsmith.signatures.judgement import JudgeCriterion

__all__ = ["CriterionJudge"]


class CriterionJudge(Judge):
    """Rates one criterion from 1 to 5 (the "single criterion" judge of AutoMetrics, section 3.1).

    Parameters
    ----------
    criterion : str
        The quality's name.
    meaning : str
        One sentence on what it means to be strong on it.
    task : str
        What the outputs are made for.
    name : str, optional
        Column name; by default made from the criterion.

    Examples
    --------
    >>> CriterionJudge(criterion="Keeps the facts", meaning="Nothing is lost.", task="Rewrite notices.").name
    'keeps_the_facts'
    """

    kind = "criterion_judge"
    signature = JudgeCriterion
    saves: ClassVar[schema.Checks] = dict.fromkeys(("name", "task", "criterion", "meaning"), schema.text()) | {
        "name": schema.text(schema.NAME, 1)
    }

    def __init__(self, *, criterion: str, meaning: str, task: str, name: str = "") -> None:
        super().__init__(name=name or slug(criterion), criterion=criterion, meaning=meaning, task=task)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        return self.card_with(
            name=self.settings.criterion,
            summary=f"A language model rates one criterion from 1 to 5. {self.settings.meaning}",
            formula="The whole number from 1 to 5 that the model gives after stating its reasons.",
            best_for=(f"Checking {self.settings.criterion.lower()} and explaining the verdict in words",),
            not_for=("Judging overall quality: it looks at nothing but its criterion",),
            limits=(
                "The criterion was proposed by a model from a few rated examples",
                "Five levels tie often, and another model may use the levels differently",
            ),
            failure_cases=("Texts beyond the model's context", "Topics on which the model itself is wrong"),
            papers=("AutoMetrics, section 3.1 (single criterion)",),
        )
