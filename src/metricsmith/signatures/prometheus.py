"""A filled form in; feedback and a grade out, or feedback and the better of two: for models of the Prometheus 2 form.

The headings, their order, the gaps and the form of an answer are those that these weights were trained on (Kim et al.,
2024, "Prometheus 2"; prometheus-eval 0.1.20, `prompts.py`). The rules, which are the signatures' instructions, and the
system sentences say the same in words of this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import dspy

__all__ = ["FORMS", "ChooseByForm", "GradeByForm"]


class _Form(dspy.Signature):  # type: ignore[misc]
    system: str = dspy.InputField(desc="the sentence that tells the grader its part")
    form: str = dspy.InputField(desc="the headings of the request, with gaps for the other texts")
    rubric: str = dspy.InputField(desc="the one quality to look at, and its levels")
    instruction: str = dspy.InputField(desc="what was asked for")
    reference_answer: str = dspy.InputField(desc="an answer that earns the best grade, where the form has a gap for it")


class GradeByForm(_Form):
    """Grade one response to an instruction by a rubric: the five levels of a single quality.

    A reference answer, where there is one, stands for level 5.
    1. Explain first, in detail, how the response does on that quality; nothing else about it plays a part.
    2. Then choose the level that describes it best: a whole number from 1 to 5.
    3. Write both in this form: "(your explanation) [RESULT] (a whole number from 1 to 5)"
    4. Start with the explanation, end with the number, and write nothing besides.
    """

    response: str = dspy.InputField(desc="the work to be graded")
    reasoning: str = dspy.OutputField(desc="how the response does on the rubric")
    score: int = dspy.OutputField(desc="a whole number from 1 to 5")


class ChooseByForm(_Form):
    """Compare two responses to an instruction by a rubric, which names a single quality.

    A reference answer, where there is one, shows how a good response can look.
    1. Explain first, in detail, how the two responses differ in that quality; nothing else about them plays a part.
    2. Then choose the better of the two: A or B.
    3. Write both in this form: "(your explanation) [RESULT] (A or B)"
    4. Start with the explanation, end with the letter, and write nothing besides.
    """

    response_A: str = dspy.InputField(desc="the first response")  # noqa: N815  # as the gaps are called
    response_B: str = dspy.InputField(desc="the second response")  # noqa: N815
    reasoning: str = dspy.OutputField(desc="how the responses differ on the rubric")
    choice: Literal["A", "B"] = dspy.OutputField(desc="the better response")


def _form(*headings: tuple[str, str]) -> str:
    """A form of these headings, each with the gap below it."""
    blocks = [f"###{heading}:\n{{{gap}}}\n\n" for heading, gap in headings]
    return "".join(blocks) + "###Feedback: "


_RULES, _RESPONSE = ("Task Description", "rules"), ("Response to evaluate", "response")
_ABSOLUTE = (_RULES, ("The instruction to evaluate", "instruction"), _RESPONSE)
_RELATIVE = (
    _RULES, ("Instruction", "instruction"), ("Response A", "response_A"), ("Response B", "response_B"),
)  # fmt: skip

FORMS: Mapping[str, str] = {  # under the names that the published texts have
    "ABS_SYSTEM_PROMPT": "You grade single responses: fairly, by the given quality alone, and with reasons that show "
    "why a response reaches the level that you give it.",
    "REL_SYSTEM_PROMPT": "You compare two responses at a time: fairly, by the given quality alone, and with reasons "
    "that show why one is better than the other.",
    "ABSOLUTE_PROMPT": _form(
        *_ABSOLUTE, ("Reference Answer (Score 5)", "reference_answer"), ("Score Rubrics", "rubric")
    ),
    "ABSOLUTE_PROMPT_WO_REF": _form(*_ABSOLUTE, ("Score Rubrics", "rubric")),
    "RELATIVE_PROMPT": _form(*_RELATIVE, ("Reference Answer", "reference_answer"), ("Score Rubric", "rubric")),
    "RELATIVE_PROMPT_WO_REF": _form(*_RELATIVE, ("Score Rubric", "rubric")),
}
