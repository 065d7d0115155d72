"""From a task to weighted dimensions: one request, without a look at any output or rating."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.programs.generators.axes import distinct
from metricsmith.records import Status
from metricsmith.signatures.dimensions import Dimension, ProposeDimensions

__all__ = ["DimensionsGenerator", "weighted"]


class DimensionsGenerator(dspy.Module):  # type: ignore[misc]
    """Proposes dimensions and their weights (DnA-Eval, as AutoMetrics, section 4.2 describes it)."""

    def __init__(self) -> None:
        super().__init__()
        self.propose = dspy.Predict(ProposeDimensions)

    def forward(self, *, task: str, rating: str, count: int) -> dspy.Prediction:
        """Return a Prediction with ``dimensions``: at most `count`, no two of one name, weights that add up to 1."""
        answer = self.propose(task=task, rating=rating, count=count)
        return dspy.Prediction(dimensions=weighted(answer.dimensions, count))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """As `forward`, asynchronously."""
        answer = await self.propose.acall(**inputs)
        return dspy.Prediction(dimensions=weighted(answer.dimensions, inputs["count"]))


def weighted(dimensions: Sequence[Dimension], count: int) -> list[Dimension]:
    """The first `count` distinct dimensions, their weights renormalised to a sum of 1.

    Raises
    ------
    JudgementFailed
        If nothing is left, or a weight is not a finite number above 0.
    """
    kept = distinct(dimensions)[:count]
    for dimension in kept:
        if not (math.isfinite(dimension.weight) and dimension.weight > 0):
            raise JudgementFailed(
                f"the weight of {dimension.name!r} is {dimension.weight:g}; every weight must be above 0",
                Status.UNPARSABLE,
            )
    total = math.fsum(dimension.weight for dimension in kept)
    return [dimension.model_copy(update={"weight": dimension.weight / total}) for dimension in kept]
