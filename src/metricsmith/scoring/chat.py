"""DSPy's chat form, written with less work: the same characters, without doing again what never changes.

`dspy.ChatAdapter` builds the system message anew for every request, sends each text through a serializer of its
own and each number of the answer through a repairer of JSON and a new pydantic validator; for short texts that is
half of the processor time of a request.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.utils import format_field_value

from metricsmith.scoring.reading import read

__all__ = ["Chat", "reading_exactly"]


class Chat(dspy.ChatAdapter):  # type: ignore[misc]
    """`dspy.ChatAdapter` to the letter, without its fallback to JSON; answers are read by `reading.read`."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read the fields by `read`."""
        return read(self, signature, completion)

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """The system message, remembered as long as instructions and field descriptions stay the same."""
        text: str = _remembered(signature, "system", super().format_system_message)
        return text

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        """The reminder of the form, remembered likewise."""
        text: str = _remembered(signature, "reminder", super().user_message_output_requirements)
        return text

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Field after field; a plain text is its own serialization."""
        parts = [prefix]
        for name, info in signature.input_fields.items():
            if name in inputs:
                value = inputs[name]
                text = value if type(value) is str else format_field_value(field_info=info, value=value)
                parts.append(f"[[ ## {name} ## ]]\n{text}")
        if main_request:
            parts.append(self.user_message_output_requirements(signature))
        parts.append(suffix)
        return "\n\n".join(parts).strip()


def reading_exactly() -> AbstractContextManager[Any]:
    """For a block, `Chat` in the place of DSPy's own chat adapter; an adapter that somebody chose stays in force."""
    chosen = dspy.settings.adapter
    if chosen is not None and type(chosen) is not dspy.ChatAdapter:
        return nullcontext()
    return dspy.context(adapter=Chat())  # type: ignore[no-any-return]


_MEMORY: WeakKeyDictionary[type[dspy.Signature], dict[str, tuple[Any, str]]] = WeakKeyDictionary()


def _remembered(signature: type[dspy.Signature], what: str, write: Any) -> str:
    """What `write` makes of a signature; made again when anything in the signature has changed."""
    now = (
        signature.__doc__,
        tuple(
            (name, field.annotation, tuple(sorted((field.json_schema_extra or {}).items(), key=lambda item: item[0])))
            for name, field in signature.model_fields.items()
        ),
    )
    memory = _MEMORY.setdefault(signature, {})
    known = memory.get(what)
    if known is None or known[0] != now:
        known = memory[what] = (now, write(signature))
    return known[1]
