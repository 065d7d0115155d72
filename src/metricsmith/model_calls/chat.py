"""DSPy's chat form, written with less work: the same characters, without doing again what never changes.

`dspy.ChatAdapter` builds the system message anew for every request, sends each text through a serializer of its
own and each number of the answer through a repairer of JSON and a new pydantic validator; for short texts that is
half of the processor time of a request.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.utils import format_field_value

__all__ = ["Chat"]


class Chat(dspy.ChatAdapter):  # type: ignore[misc]
    """Writes what `dspy.ChatAdapter` writes, to the letter."""

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
