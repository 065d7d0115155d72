"""The judge that reads what the raters read: their guideline, their scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from metricsmith.errors import OptionError
from metricsmith.programs import schema
from metricsmith.programs.judges.base import slug
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.records import MetricCard, Scale
from metricsmith.signatures.judgement import JudgeByGuideline

__all__ = ["GuidelineJudge"]


class GuidelineJudge(RatersJudge):
    """Rates by the guideline that the raters were given (the "LLM-Judge" baseline of AutoMetrics, section 4.2).

    Parameters
    ----------
    measure : str
        What the rating measures, in a few words; a column name will do.
    guideline : str
        The instruction to the raters, word for word.
    task : str
        What the outputs are made for.
    scale : Scale or mapping
        The raters' scale, from which follows the one that is asked (`asked_scale`).
    name : str, optional
        Column name; by default made from the measure.

    Raises
    ------
    OptionError
        If the guideline is empty or `scale` is none.

    Examples
    --------
    >>> text = "Give 5 if a reader could act on the notice at once, 1 if not."
    >>> GuidelineJudge(measure="Clarity", guideline=text, task="Rewrite notices.", scale=Scale(1, 5, 1)).name
    'clarity_by_guideline'
    """

    kind = "guideline_judge"
    signature = JudgeByGuideline
    saves: ClassVar[schema.Checks] = {**RatersJudge.saves, "guideline": schema.text(least=1)}

    def __init__(
        self, *, measure: str, guideline: str, task: str, scale: Scale | Mapping[str, Any], name: str = ""
    ) -> None:
        if not guideline.strip():
            raise OptionError("the guideline is empty; give the text that the raters were given")
        super().__init__(
            name=name or f"{slug(measure)}_by_guideline", measure=measure, task=task, scale=scale, guideline=guideline
        )

    def question(self) -> Mapping[str, str]:
        """Task, guideline and scale."""
        return {**super().question(), "guideline": str(self.settings.guideline)}

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        return self.card_with(
            name=f"{self.settings.measure} (by guideline)",
            summary=f"A language model that has read the raters' guideline gives {self.settings.meaning}.",
            formula=f"The number from {self.scale} that the model gives after stating its reasons.",
            best_for=(f"A first guess at {self.settings.measure.lower()} where nothing has been rated yet",),
            not_for=("Learning from ratings: it has seen none",),
            limits=(
                "Knows what the raters were told, not what they did",
                "Uses another part of the scale than the raters may have used: calibrate it before reading its numbers",
            ),
            failure_cases=("Guidelines that leave the decisive question open", "Texts beyond the model's context"),
            papers=("AutoMetrics, section 4.2 and appendix C (LLM-Judge)",),
        )
