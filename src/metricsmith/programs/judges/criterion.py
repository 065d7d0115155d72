"""Judges of one quality: by its meaning alone, or by five described levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import dspy

from metricsmith.datasets.ratings import as_scale
from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.metric import RowText
from metricsmith.programs import schema
from metricsmith.programs.asked_scale import asked_scale, nearest_points, scale_words
from metricsmith.programs.judges.base import LEVELS, Judge, slug
from metricsmith.programs.kinds import asker_state
from metricsmith.records import MetricCard, Scale, Status
from metricsmith.signatures.judgement import JudgeCriterion, JudgeCriterionOnScale, JudgeRubric

__all__ = ["CriterionJudge", "RubricJudge"]

ROUNDING = 1e-9  # steps such as .1 are no exact numbers


class CriterionJudge(Judge):
    """Rates one criterion, by default from 1 to 5 (the "single criterion" judge of AutoMetrics, section 3.1).

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
    scale : Scale or str
        The numbers to choose from: a `Scale`, or text ``LOW:HIGH`` or ``LOW:HIGH:STEP``. Without a step, ends that are
        whole numbers mean whole numbers, of 0 to 1 and 0 to 100 any number. A number between two steps fails as
        ``out_of_range``.

    Raises
    ------
    OptionError
        If `scale` is none, or neither 0 to 1, nor 0 to 100, nor one of 2 to 11 points between whole numbers.

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

    def __init__(
        self,
        *,
        criterion: str,
        meaning: str,
        task: str,
        name: str = "",
        scale: Scale | str | Mapping[str, Any] = LEVELS,
    ) -> None:
        given = as_scale(scale)
        asked = asked_scale(given)
        if asked.points or given.step not in (None, asked.scale.step):
            raise OptionError(
                f"scale={str(scale)!r} is none that a model can be asked on; allowed are 0:1, 0:100, and 2 to 11 "
                "points between whole numbers, such as 1:5, 0:10 or 1:5:0.5: write one of these"
            )
        own = {} if asked.scale == LEVELS else {"scale": asdict(asked.scale)}
        self.signature = JudgeCriterionOnScale if own else JudgeCriterion
        super().__init__(name=name or slug(criterion), criterion=criterion, meaning=meaning, task=task, **own)

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result; the answer's fields follow from the scale."""
        plain = asker_state(JudgeCriterion, **cls.saves)
        scaled = asker_state(JudgeCriterionOnScale, **cls.saves, scale=schema.SCALE)
        return lambda value, path: (plain if schema.inside(value, "state.settings.scale") is None else scaled)(
            value, path
        )

    @property
    def scale(self) -> Scale:
        """The numbers that the model may give."""
        own = self.settings.values.get("scale")
        return LEVELS if own is None else Scale(**own)

    def question(self) -> Mapping[str, str]:
        """Task, criterion, and a scale that is not 1 to 5.

        Raises
        ------
        StateError
            If DSPy loaded the settings of a judge that is asked on another scale.
        """
        own = "scale" in self.settings.values
        if own != ("scale" in self.judge.signature.input_fields):
            raise StateError(
                f"the loaded settings are asked on the scale {self.scale}, but this judge was built for another: build "
                "it with that scale before its state is loaded, or use metricsmith.load"
            )
        return {**super().question(), **({"scale": scale_words(self.scale)} if own else {})}

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """The score of an answer about a row, on a point of the scale."""
        prediction = super().read(answer, text)
        if abs(prediction.raw - nearest_points([prediction.raw], self.scale)[0]) > ROUNDING:
            raise JudgementFailed(
                f"score {prediction.raw!r} is not on the scale {self.scale} in steps of {self.scale.step:g}",
                Status.OUT_OF_RANGE,
            )
        return prediction

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        values, scale = self.settings.values, self.scale
        whole = "whole " if scale.step == 1 else ""
        ties = "Five levels tie often, and another" if scale == LEVELS else "Another"
        return self.card_with(
            name=values["criterion"],
            summary=f"A language model rates one criterion from {scale}. {values['meaning']}",
            formula=f"The {whole}number from {scale} that the model gives after stating its reasons.",
            best_for=(f"Checking {values['criterion'].lower()} and explaining the verdict in words",),
            not_for=("Judging overall quality: it looks at nothing but its criterion",),
            limits=(
                "The criterion was proposed by a model from a few rated examples",
                f"{ties} model may use the levels differently",
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
