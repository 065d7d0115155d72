"""From a task to the few dimensions that outputs should be judged on, and how much each counts."""

from __future__ import annotations

import dspy
import pydantic

from metricsmith.signatures.axes import Axis

__all__ = ["Dimension", "ProposeDimensions"]


class Dimension(Axis):
    """One quality and its share of the verdict."""

    weight: float = pydantic.Field(description="its share of the verdict in per cent, above 0")


class ProposeDimensions(dspy.Signature):  # type: ignore[misc]
    """Decide by which qualities outputs for a task should be judged, and how much each of them counts.

    Nobody shows you an output: think of who needs it and of what would make it useless to them. Name qualities that
    a reader can check in a single output, put so that more is better, each of which could be high while the others
    are low. Give every quality its share of the verdict in per cent; the shares add up to 100, and equal shares are
    right only if you would really be as sorry for the loss of one as of another.
    """

    task: str = dspy.InputField(desc="what the outputs are made for")
    rating: str = dspy.InputField(desc="what the verdict is called")
    count: int = dspy.InputField(desc="how many qualities are wanted")
    dimensions: list[Dimension] = dspy.OutputField(desc="exactly `count` qualities with their shares, largest first")
