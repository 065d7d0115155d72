"""Texts about one axis: the levels of a rubric, the steps of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.records import Status
from metricsmith.signatures.generation import WriteRubric, WriteRubricFromExamples, WriteSteps

__all__ = ["ExampleRubricGenerator", "RubricGenerator", "StepsGenerator", "five", "usable"]


class RubricGenerator(dspy.Module):  # type: ignore[misc]
    """Writes five level descriptions for one axis, worst first."""

    signature = WriteRubric

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(self.signature)

    def forward(self, *, task: str, criterion: str, **shown: str) -> dspy.Prediction:
        """Return a Prediction with ``levels``, a list of five strings; `shown` are further inputs of the signature."""
        return dspy.Prediction(levels=five(self.write(task=task, criterion=criterion, **shown).levels))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Write levels asynchronously; arguments and result are those of `forward`."""
        return dspy.Prediction(levels=five((await self.write.acall(**inputs)).levels))


class ExampleRubricGenerator(RubricGenerator):
    """The same from well and poorly rated examples: inputs ``rating``, ``liked`` and ``disliked`` besides.

    The paper's prompt for rubrics has good and bad examples (AutoMetrics, appendix); `RubricGenerator` does without.
    The axis comes last, so that a provider's prefix cache takes the examples once for all rubrics.
    """

    signature = WriteRubricFromExamples


def five(levels: Sequence[str]) -> list[str]:
    """Check that there are exactly five non-empty levels; `JudgementFailed` otherwise."""
    levels = [level.strip() for level in levels]
    if len(levels) != 5 or not all(levels):
        raise JudgementFailed(f"the model wrote {len(levels)} levels, five are needed", Status.UNPARSABLE)
    return levels


NUMBERING = re.compile(r"\s*(?:step\s*)?\d{1,2}\s*[.):]\s+|\s*[-*•]\s+", re.IGNORECASE)
MOST = 12  # more is no plan, and every judgement would carry it


class StepsGenerator(dspy.Module):  # type: ignore[misc]
    """Writes the evaluation steps of a G-Eval judge for one axis (G-Eval, section 2; AutoMetrics, appendix).

    Examples
    --------
    ::

        steps = StepsGenerator()(task="Rewrite notices.", criterion="Plain words: every word is short.").steps
        judge = GEval(criterion="Plain words", meaning="Every word is short.", steps=steps, ...)
    """

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteSteps)

    def forward(self, *, task: str, criterion: str) -> dspy.Prediction:
        """Return a Prediction with ``steps``, 1 to 12 strings without numbering."""
        return dspy.Prediction(steps=usable(self.write(task=task, criterion=criterion).steps))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Write steps asynchronously; arguments and result are those of `forward`."""
        return dspy.Prediction(steps=usable((await self.write.acall(**inputs)).steps))


def usable(steps: Sequence[str]) -> list[str]:
    """Take off numbering and drop what is empty; `JudgementFailed` if nothing or more than 12 are left."""
    steps = [kept for step in steps if (kept := NUMBERING.sub("", step, count=1).strip())]
    if not 1 <= len(steps) <= MOST:
        raise JudgementFailed(f"the model wrote {len(steps)} steps, 1 to {MOST} are usable", Status.UNPARSABLE)
    return steps
