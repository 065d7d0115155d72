"""DSPy's chat form, written and read with less work: the same characters, without doing again what never changes.

`dspy.ChatAdapter` builds the system message anew for every request, sends each text through a serializer of its
own and each number of the answer through a repairer of JSON and a new pydantic validator; for short texts that is
half of the processor time of a request.
"""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import format_field_value

__all__ = ["Chat", "odd_number", "read_plain"]

ODD_NUMBER = re.compile(r"true|false|[-+]?0[xob]\w+|[-+]?[\d.]*_[\d_.]*", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,14}|0")


class Chat(dspy.ChatAdapter):  # type: ignore[misc]
    """`dspy.ChatAdapter` to the letter, without its fallback to JSON."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

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


def read_plain(signature: type[dspy.Signature], answer: str) -> dict[str, Any] | None:
    """The fields of an answer that needs no interpretation, as `dspy.ChatAdapter.parse` reads them.

    Returns
    -------
    dict or None
        None unless every field of the answer is there, and a text or a whole number in plain digits; then DSPy is
        to read it, or to say what is wrong.
    """
    sections = _sections(answer)
    fields: dict[str, Any] = {}
    for name, info in signature.output_fields.items():
        if name not in sections:
            return None
        text = sections[name]
        if info.annotation is str:
            fields[name] = text
        elif info.annotation is int and WHOLE_NUMBER.fullmatch(text):
            fields[name] = int(text)
        else:
            return None
    return fields


def odd_number(signature: type[dspy.Signature], answer: str) -> tuple[str, str] | None:
    """The field and the words that DSPy would take for a number though they are none; None if there are none such.

    It reads ``true`` as 1, ``0x10`` as 16 and ``1_0`` as 10.
    """
    sections = _sections(answer)
    for name, info in signature.output_fields.items():
        said = sections.get(name, "")
        if info.annotation in (int, float) and ODD_NUMBER.fullmatch(said.strip("\"'")):
            return name, said
    return None


def _sections(answer: str) -> dict[str | None, str]:
    """An answer's fields as texts; of a field that comes again the first one counts."""
    sections: dict[str | None, list[str]] = {}
    lines = sections.setdefault(None, [])
    for line in answer.splitlines():
        header = field_header_pattern.match(line.strip())
        if header is None:
            lines.append(line)
        elif header[1] in sections:
            lines = []
        else:
            lines = sections[header[1]] = [line[header.end() :].strip()]
    return {name: "\n".join(lines).strip() for name, lines in sections.items()}


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
