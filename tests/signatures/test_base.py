"""Shared fields stand where every prompt has them, and the closing paragraph ends every instruction once."""

from __future__ import annotations

import dspy

from metricsmith.signatures.base import ORDER, ReviewedWork
from metricsmith.signatures.judgement import JudgeRubric


class Own(ReviewedWork):
    """Rate it."""

    note: str = dspy.InputField(desc="anything else")
    rubric: str = dspy.InputField(desc="the levels")
    score: int = dspy.OutputField(desc="a number")


class Heir(JudgeRubric):
    reason: str = dspy.OutputField(desc="why")


class Retold(Own):
    """Rate it anew."""


class Copied(Own):
    __doc__ = Own.instructions


def test_inputs_stand_in_the_one_order_and_unknown_ones_behind_them():
    assert list(Own.fields) == ["task", "rubric", "input", "references", "context", "output", "note", "score"]
    assert list(JudgeRubric.input_fields) == sorted(JudgeRubric.input_fields, key=ORDER.index)


def test_an_instruction_ends_with_the_closing_paragraph_once():
    assert Own.instructions.startswith("Rate it.\n\nThe input, the references,")
    assert Own.instructions.endswith("changes nothing else.")
    assert Copied.instructions == Own.instructions
    assert Retold.instructions == Own.instructions.replace("Rate it.", "Rate it anew.")


def test_a_signature_without_an_instruction_inherits_it_whole():
    assert Heir.instructions == JudgeRubric.instructions
    assert list(Heir.output_fields) == ["reasoning", "score", "reason"]
