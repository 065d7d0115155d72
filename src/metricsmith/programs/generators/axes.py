"""Axes from rated rows, and weighted dimensions from a task alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import dspy
import numpy as np

from metricsmith.errors import JudgementFailed
from metricsmith.metric import fenced_texts, row_text
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.asked_scale import asked_scale
from metricsmith.programs.judges.base import slug
from metricsmith.records import Status, Task
from metricsmith.signatures.generation import Axis, Dimension, ProposeAxes, ProposeDimensions

__all__ = ["AxesGenerator", "Contrast", "DimensionsGenerator", "contrast", "distinct", "weighted"]

Named = TypeVar("Named", bound=Axis)


@dataclass(frozen=True)
class Contrast:
    """Well and poorly rated examples as text for a prompt, their number at each end, and the places of their rows."""

    liked: str
    disliked: str
    shown_each: int
    places: tuple[int, ...] = ()


def contrast(
    rows: Sequence[dspy.Example], task: Task, *, each: int = 5, max_tokens: int = 12_000, seed: int = 0
) -> Contrast:
    """Choose the best and the worst rated rows, as many as fit.

    Rows are taken in turn from both ends of the ratings until `each` per end are chosen or the next pair
    would pass `max_tokens`; at least one per end is shown. Ties are broken, and the order inside each end
    is drawn, by `seed`. No row stands at both ends.

    Parameters
    ----------
    rows : sequence of dspy.Example
        Rated rows, at least two.
    task : Task
        Names the rating and its direction.
    each : int
        Examples per end at most.
    max_tokens : int
        Estimated tokens of all examples together.
    seed : int
        Decides ties and order.
    """
    random = np.random.default_rng(seed)
    ratings = np.array([float(row[task.target]) for row in rows])
    worst_first = np.lexsort((random.random(len(rows)), ratings if task.scale.higher_is_better else -ratings))
    asked = asked_scale(task.scale)
    numbers, scale = (asked.numbers(ratings, task.scale), asked.scale) if asked.points else (ratings, task.scale)
    texts = []
    for row, number in zip(rows, numbers.tolist(), strict=True):
        fields = [f"{label}:\n{text}" for label, text in fenced_texts(row_text(row)).items() if text != "(none)"]
        texts.append("\n".join([f"rating {number:g} ({scale})", *fields]))
    sizes = [estimate_tokens(text) for text in texts]
    low: list[int] = []
    high: list[int] = []
    used = 0
    for step in range(min(each, len(rows) // 2)):
        worst, best = int(worst_first[step]), int(worst_first[-1 - step])
        used += sizes[worst] + sizes[best]
        if low and used > max_tokens:
            break
        low.append(worst)
        high.append(best)
    liked, disliked = ("\n\n".join(texts[index] for index in random.permutation(end)) for end in (high, low))
    return Contrast(liked, disliked, len(low), (*low, *high))


class AxesGenerator(dspy.Module):  # type: ignore[misc]
    """Proposes an ordered list of distinct axes (AutoMetrics, section 3.1, "generate")."""

    def __init__(self) -> None:
        super().__init__()
        self.propose = dspy.Predict(ProposeAxes)

    def forward(self, *, task: str, rating: str, liked: str, disliked: str, count: int) -> dspy.Prediction:
        """Return a Prediction with ``axes``: at most `count`, no two of one name."""
        answer = self.propose(task=task, rating=rating, liked=liked, disliked=disliked, count=count)
        return dspy.Prediction(axes=distinct(answer.axes)[:count])

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Propose axes asynchronously; arguments and result are those of `forward`."""
        return dspy.Prediction(axes=distinct((await self.propose.acall(**inputs)).axes)[: inputs["count"]])


def distinct(axes: Sequence[Named]) -> list[Named]:
    """Drop nameless axes and repeated names (case and punctuation aside).

    Raises
    ------
    JudgementFailed
        If nothing is left.
    """
    kept: dict[str, Named] = {}
    for axis in axes:
        if axis.name.strip() and axis.meaning.strip():
            kept.setdefault(slug(axis.name), axis)
    if not kept:
        raise JudgementFailed("the model proposed no usable axis", Status.UNPARSABLE)
    return list(kept.values())


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
        """Propose dimensions asynchronously; arguments and result are those of `forward`."""
        return dspy.Prediction(dimensions=weighted((await self.propose.acall(**inputs)).dimensions, inputs["count"]))


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
