"""From an axis to a rubric of five levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.records import Status
from metricsmith.signatures.rubric import WriteRubric

__all__ = ["RubricGenerator"]


class RubricGenerator(dspy.Module):  # type: ignore[misc]
    """Writes five level descriptions for one axis, worst first."""

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteRubric)

    def forward(self, *, task: str, criterion: str) -> dspy.Prediction:
        """Return a Prediction with ``levels``, a list of five strings."""
        return dspy.Prediction(levels=five(self.write(task=task, criterion=criterion).levels))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """As `forward`, asynchronously."""
        return dspy.Prediction(levels=five((await self.write.acall(**inputs)).levels))


def five(levels: Sequence[str]) -> list[str]:
    """Check that there are exactly five non-empty levels; `JudgementFailed` otherwise."""
    levels = [level.strip() for level in levels]
    if len(levels) != 5 or not all(levels):
        raise JudgementFailed(f"the model wrote {len(levels)} levels, five are needed", Status.UNPARSABLE)
    return levels
