"""Judges of one quality: by its meaning alone, or by five described levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from metricsmith.errors import OptionError
from metricsmith.programs import schema
from metricsmith.programs.judges.base import Judge, slug
from metricsmith.records import MetricCard
from metricsmith.signatures.judgement import JudgeCriterion, JudgeRubric

__all__ = ["CriterionJudge", "RubricJudge"]


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
        values = self.settings.values
        return self.card_with(
            name=values["criterion"],
            summary=f"A language model rates one criterion from 1 to 5. {values['meaning']}",
            formula="The whole number from 1 to 5 that the model gives after stating its reasons.",
            best_for=(f"Checking {values['criterion'].lower()} and explaining the verdict in words",),
            not_for=("Judging overall quality: it looks at nothing but its criterion",),
            limits=(
                "The criterion was proposed by a model from a few rated examples",
                "Five levels tie often, and another model may use the levels differently",
            ),
            failure_cases=("Texts beyond the model's context", "Topics on which the model itself is wrong"),
            papers=("AutoMetrics, section 3.1 (single criterion)",),
        )


class RubricJudge(Judge):
    """Places an output on a five-level rubric (the "rubric" judge of AutoMetrics, section 3.1).

    Parameters
    ----------
    criterion, meaning, task, name
        As for `CriterionJudge`; the default name ends in ``_rubric``.
    levels : sequence of five str
        The descriptions of levels 1 to 5, worst first.

    Raises
    ------
    OptionError
        If there are not exactly five non-empty levels.
    """

    kind = "rubric_judge"
    signature = JudgeRubric
    saves: ClassVar[schema.Checks] = {**CriterionJudge.saves, "levels": schema.list_of(schema.text(least=1), 5, 5)}

    def __init__(self, *, criterion: str, meaning: str, levels: Sequence[str], task: str, name: str = "") -> None:
        if len(levels) != 5 or not all(level.strip() for level in levels):
            raise OptionError(f"a rubric has five described levels, worst first; got {len(levels)}: {levels!r}")
        super().__init__(
            name=name or f"{slug(criterion)}_rubric",
            criterion=criterion,
            meaning=meaning,
            levels=list(levels),
            task=task,
        )

    def question(self) -> Mapping[str, str]:
        """Task, criterion and the numbered levels."""
        levels = "\n".join(f"{number}: {level}" for number, level in enumerate(self.settings.levels, 1))
        return {**super().question(), "rubric": levels}

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        values = self.settings.values
        return self.card_with(
            name=f"{values['criterion']} (rubric)",
            summary=f"A language model places the output on a rubric of five levels. {values['meaning']}",
            formula="; ".join(f"{number} = {level}" for number, level in enumerate(values["levels"], 1)),
            best_for=(f"Checking {values['criterion'].lower()} against levels that people can read and amend",),
            not_for=("Judging overall quality: it looks at nothing but its rubric",),
            limits=(
                "Criterion and levels were written by a model from a few rated examples",
                "Outputs that fit no level are rounded down to the lower of two",
            ),
            failure_cases=("Texts beyond the model's context", "Topics on which the model itself is wrong"),
            papers=("AutoMetrics, section 3.1 (rubric)",),
        )
