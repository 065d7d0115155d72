"""The adapter of models that were trained on one form: they know neither field markers nor earlier turns."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

import dspy

from metricsmith.errors import OptionError
from metricsmith.model_calls.reading import UnreadableAnswer

__all__ = ["GAP", "RESULT", "TrainedForm"]

GAP = re.compile(r"\{(\w*)\}")  # of a form, with the name of the input that fills it
RESULT = "[RESULT]"  # parts feedback and result in an answer
LABEL = re.compile(r"(?:###)?Feedback:")  # the prompt's last word, which some answers repeat
WHOLE = re.compile(r"\(?(0|[1-9][0-9]{0,3})\)?")


class TrainedForm(dspy.Adapter):  # type: ignore[misc]
    """Fills the form that a request brings along, and reads ``(feedback) [RESULT] (result)``.

    The signature has the inputs ``system`` and ``form``; every ``{gap}`` in the form is filled, in one pass, with the
    input of that name, and ``{rules}`` with the signature's instructions. Its outputs are the feedback and the result,
    a whole number or one of a few words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.native_response_types: list[
            Any
        ] = []  # of which an answer has none, so that they are no part of its identity

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Write the messages: the system sentence, if there is one, and the filled form.

        Raises
        ------
        OptionError
            If there are demonstrations.
        """
        if demos:
            raise OptionError(
                f"the form that this model was trained on has no place for examples, and there are {len(demos)}: take "
                "a judge without them, or show them to another kind of judge"
            )
        filled = {**inputs, "rules": signature.instructions}
        form = GAP.sub(lambda gap: str(filled.get(gap[1], gap[0])), inputs["form"])
        turns = [("system", inputs["system"]), ("user", form)]
        return [{"role": role, "content": content} for role, content in turns if content]

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        """The form of an answer in words, for a request that repeats an unusable one."""
        return f'It is: "(feedback) {RESULT} ({_choices(signature)[1]})"'

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read feedback and result.

        Raises
        ------
        UnreadableAnswer
            If there is not one ``[RESULT]`` with feedback before it and the result alone after it; a number may stand
            between parentheses, as the prompt shows it.
        """
        feedback_field, result_field = signature.output_fields
        pattern, wanted = _choices(signature)

        def unreadable(fault: str) -> UnreadableAnswer:
            return UnreadableAnswer(signature, completion, f"{fault}: {_shown(completion)}", fault)

        parts = completion.split(RESULT)
        if len(parts) != 2 or len(re.findall(re.escape(RESULT), completion, re.IGNORECASE)) != 1:
            raise unreadable(f"{RESULT} must stand in the answer once, and stands there {len(parts) - 1} times")
        feedback = LABEL.sub("", parts[0].strip(), count=1).strip() if LABEL.match(parts[0].strip()) else parts[0]
        if not feedback.strip():
            raise unreadable(f"the answer has no feedback before {RESULT}")
        found = pattern.fullmatch(parts[1].strip())
        if found is None:
            raise unreadable(f"after {RESULT} must stand {wanted} and nothing else")
        result = int(found[1]) if signature.output_fields[result_field].annotation is int else found[1]
        return {feedback_field: feedback.strip(), result_field: result}


def _choices(signature: type[dspy.Signature]) -> tuple[re.Pattern[str], str]:
    """The pattern of a signature's result, and the same in words."""
    kind = list(signature.output_fields.values())[1].annotation
    if get_origin(kind) is Literal:
        names = get_args(kind)
        return re.compile(f"({'|'.join(map(re.escape, names))})"), " or ".join(names)
    return WHOLE, "a whole number"


def _shown(answer: str) -> str:
    """The end of an answer, where its result should be."""
    text = " ".join(answer[-1000:].split())
    return repr(text if len(text) <= 120 else f"...{text[-120:]}")
