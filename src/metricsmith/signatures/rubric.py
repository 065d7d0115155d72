"""From one quality to five descriptions of how well it can be met."""

from __future__ import annotations

import dspy

__all__ = ["WriteRubric"]


class WriteRubric(dspy.Signature):  # type: ignore[misc]
    """Describe five levels of one quality so that two strangers would place the same output on the same level.

    Go from level 1, the worst, to level 5, the best. Say for each level what is there and what is missing in words
    that can be checked against a single output. Neighbouring levels must differ in something visible, not merely
    in adverbs. Speak of this quality alone; leave length, style or correctness aside unless it is one of them.
    """

    task: str = dspy.InputField(desc="what the outputs are made for")
    criterion: str = dspy.InputField(desc="the quality and what it means")
    levels: list[str] = dspy.OutputField(desc="exactly five descriptions, level 1 first, without numbering")
