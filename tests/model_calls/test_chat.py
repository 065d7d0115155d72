"""The chat writer writes what DSPy's own adapter writes."""

from __future__ import annotations

import dspy
import pytest
from pydantic import BaseModel

from metricsmith.model_calls.adapters import Chat
from metricsmith.signatures.axes import ProposeAxes
from metricsmith.signatures.judgement import JudgeCriterion, JudgeRubric
from metricsmith.signatures.rubric import WriteRubric


class Item(BaseModel):
    name: str
    parts: list[int]


class Mixed(dspy.Signature):
    """Do a little of everything.

    In two paragraphs.
    """

    text: str = dspy.InputField(desc="a text")
    number: float = dspy.InputField()
    items: list[Item] = dspy.InputField()
    lines: str = dspy.InputField(desc="given as a list")
    answer: list[Item] = dspy.OutputField()
    verdict: bool = dspy.OutputField()


ODD = 'quotes " and \\ and [[ ## text ## ]]\nünïcode – 漢字 \U0001f600\t{"json": [1]}  '
VALUES = {
    "text": ODD, "number": 1.5, "items": [Item(name="ä", parts=[1])], "lines": ["one", "two"],
    "answer": [Item(name="b", parts=[])], "verdict": True,
}  # fmt: skip


def both(signature, demos, inputs):
    plain = dspy.ChatAdapter(use_json_adapter_fallback=False).format(signature, demos, dict(inputs))
    return Chat().format(signature, demos, dict(inputs)), plain


@pytest.mark.parametrize("signature", [JudgeCriterion, JudgeRubric, ProposeAxes, WriteRubric, Mixed])
@pytest.mark.parametrize("with_demos", [False, True])
def test_the_messages_are_those_of_dspy_to_the_letter(signature, with_demos):
    inputs = {name: VALUES.get(name, f"{ODD} {name}") for name in signature.input_fields}
    outputs = {name: VALUES.get(name, "some value") for name in signature.output_fields}
    demos = [{**inputs, **outputs}, {**inputs, "augmented": True}] if with_demos else []
    for _ in range(2):  # the second time from memory
        ours, plain = both(signature, demos, inputs)
        assert ours == plain


def test_a_missing_input_is_left_out_as_dspy_leaves_it_out():
    ours, plain = both(Mixed, [], {"text": "only this"})
    assert ours == plain


def test_a_changed_instruction_or_description_is_written_anew():
    inputs = {"text": "t"}
    before, _ = both(Mixed, [], inputs)
    changed = Mixed.with_instructions("Do nothing.")
    described = Mixed.with_updated_fields("text", desc="another text")
    for signature in (changed, described):
        ours, plain = both(signature, [], inputs)
        assert ours == plain
        assert ours[0] != before[0]


def test_a_signature_that_is_changed_in_place_is_written_anew():
    signature = Mixed.with_instructions("First.")
    both(signature, [], {"text": "t"})
    signature.instructions = "Second."
    ours, plain = both(signature, [], {"text": "t"})
    assert ours == plain
    assert "Second." in ours[0]["content"]
