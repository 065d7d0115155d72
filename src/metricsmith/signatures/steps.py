"""From one quality to the steps in which a judge looks for it."""

from __future__ import annotations

import dspy

__all__ = ["WriteSteps"]


class WriteSteps(dspy.Signature):  # type: ignore[misc]
    """Plan how a reviewer is to judge one quality of an output, so that two strangers look at the same things.

    Write three to six steps in the order in which they are done. Each is one order: what to look for in the
    output, what to hold it against, and what counts for it or against it. The last step says how the findings
    are weighed. Name no number of the scale and no example. Speak of this quality alone.
    """

    task: str = dspy.InputField(desc="what the outputs are made for")
    criterion: str = dspy.InputField(desc="the quality and what it means")
    steps: list[str] = dspy.OutputField(desc="three to six steps, one sentence or two each, without numbering")
