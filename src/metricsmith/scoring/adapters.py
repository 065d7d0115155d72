"""DSPy adapters for one call: they send through a private model, show an answer again, keep and replay choices.

All of them write and read the chat form of `dspy.ChatAdapter`, without its fallback to JSON, which would send
requests that nobody counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.adapters.chat_adapter import FieldInfoWithName
from dspy.adapters.utils import translate_field_type
from dspy.utils.exceptions import AdapterParseError

from metricsmith.scoring.admission import Gate
from metricsmith.scoring.chat import Chat
from metricsmith.scoring.reading import Unreadable, read, whole

__all__ = ["Channel", "ChoicesChannel", "Repair", "Replay"]

LONGEST_ANSWER = 4_000  # characters of an unusable answer that the model is shown again

# DSPy wraps it in every subclass so that callbacks fire; the plain function keeps them from firing twice.
_format: Callable[..., list[dict[str, Any]]] = getattr(dspy.ChatAdapter.format, "__wrapped__", dspy.ChatAdapter.format)


@dataclass(frozen=True, slots=True)
class Repair:
    """An unusable answer: the messages that it answers, its text, and what is wrong with it."""

    messages: list[dict[str, Any]]
    answer: str
    complaint: str


class Channel(Chat):
    """The chat adapter of one call.

    Parameters
    ----------
    lm : dspy.LM
        The private copy that is in force.
    private : callable
        Gives a private copy of a model that a predictor has of its own.
    gate : Gate
        Lets every request through that a private copy sends.
    repair : Repair, optional
        To be shown when the request that it answers is written again.

    Attributes
    ----------
    asked : list of dict
        The messages of the latest request, without what a repair adds.
    """

    def __init__(self, lm: Any, private: Callable[[Any], Any], gate: Gate, repair: Repair | None = None) -> None:
        super().__init__()
        self.lm, self.private, self.gate, self.repair = lm, private, gate, repair
        self.asked: list[dict[str, Any]] = []
        self._attach(lm)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """DSPy's history of the requests that were answered."""
        return self.gate.entries

    def _attach(self, lm: Any) -> None:
        lm.through, lm.update_history = self.gate, self.gate.record

    def __call__(
        self,
        lm: Any,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Send one request on a private copy of `lm`."""
        if lm is not self.lm:
            lm = self.lm = self.private(lm)
        self._attach(lm)
        lm_kwargs = {name: value for name, value in lm_kwargs.items() if name != "n"}  # a predictor's own
        answers: list[dict[str, Any]] = super().__call__(lm, lm_kwargs, signature, demos, inputs)
        return answers

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Write the messages, followed by the unusable answer and its correction where these are its messages."""
        messages = [
            {**message, "content": whole(message["content"])} for message in _format(self, signature, demos, inputs)
        ]
        self.asked = messages
        if self.repair is None or messages != self.repair.messages:
            return messages
        answer = self.repair.answer
        cut = answer[:LONGEST_ANSWER] + (" [...]" if len(answer) > LONGEST_ANSWER else "")
        shown = [{"role": "assistant", "content": cut}] if cut.strip() else []  # some servers take no empty turn
        return [*messages, *shown, {"role": "user", "content": self._correction(signature, self.repair.complaint)}]

    def _correction(self, signature: type[dspy.Signature], complaint: str) -> str:
        form = self.format_field_with_value(
            {
                FieldInfoWithName(name=name, info=info): translate_field_type(name, info)
                for name, info in signature.output_fields.items()
            }
        )
        return (
            f"This answer cannot be used: {complaint}. Answer the request above once more, with nothing before, "
            f"between or after the fields, in exactly this form:\n\n{form}\n\n[[ ## completed ## ]]"
        )

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read the fields, as `Chat` does: inherited, it would fire DSPy's callbacks twice."""
        return read(self, signature, completion)

    def _call_postprocess(
        self,
        processed_signature: type[dspy.Signature],
        original_signature: type[dspy.Signature],
        outputs: list[Any],
        lm: Any,
        lm_kwargs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        text = outputs[0].get("text") if outputs and isinstance(outputs[0], dict) else (outputs or [None])[0]
        if not str(text or "").strip():
            raise Unreadable(original_signature, "", "the answer is empty", "it is empty")
        values: list[dict[str, Any]] = super()._call_postprocess(
            processed_signature, original_signature, outputs[:1], lm, lm_kwargs
        )
        return values


class ChoicesChannel(Channel):
    """One request for several answers, each of which is read on its own.

    Attributes
    ----------
    choices : list
        For each answer its fields, or what was raised when it was read.
    """

    def __init__(self, lm: Any, private: Callable[[Any], Any], gate: Gate) -> None:
        super().__init__(lm, private, gate)
        self.choices: list[dict[str, Any] | AdapterParseError] = []

    def _call_postprocess(
        self,
        processed_signature: type[dspy.Signature],
        original_signature: type[dspy.Signature],
        outputs: list[Any],
        lm: Any,
        lm_kwargs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        def read(output: Any) -> dict[str, Any] | AdapterParseError:
            try:
                return super(ChoicesChannel, self)._call_postprocess(
                    processed_signature, original_signature, [output], lm, lm_kwargs
                )[0]
            except AdapterParseError as problem:
                return problem

        self.choices = [read(output) for output in outputs]
        first = next((choice for choice in self.choices if isinstance(choice, dict)), None)
        if first is None:
            raise next(
                (problem for problem in self.choices if isinstance(problem, AdapterParseError)),
                Unreadable(original_signature, "", "the answer is empty", "it is empty"),
            )
        return [dict(first)]


class Replay(dspy.ChatAdapter):  # type: ignore[misc]
    """Gives fields that are known already, and sends nothing."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self.fields = fields

    def __call__(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Answer without a request."""
        return [dict(self.fields)]
