"""DSPy's chat form, written and read with less work: the same characters, without doing again what never changes.

`dspy.ChatAdapter` builds the system message anew for every request, sends each text through a serializer of its
own and each number of the answer through a repairer of JSON and a new pydantic validator; for short texts that is
half of the processor time of a request. Objects are read without the repairer for another reason: it loses entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import dspy
import pydantic
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import format_field_value
from dspy.utils.exceptions import AdapterParseError

__all__ = ["Chat", "read", "read_exact", "read_plain", "reading_exactly", "whole"]

ODD_NUMBER = re.compile(r"true|false|[-+]?0[xob]\w+|[-+]?[\d.]*_[\d_.]*", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,14}|0")
CODE_BLOCK = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)

# DSPy wraps it in every subclass so that callbacks fire; the plain function keeps them from firing twice.
_parse: Callable[..., dict[str, Any]] = getattr(dspy.ChatAdapter.parse, "__wrapped__", dspy.ChatAdapter.parse)


class Chat(dspy.ChatAdapter):  # type: ignore[misc]
    """`dspy.ChatAdapter` to the letter, without its fallback to JSON."""

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


def read(adapter: Chat, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
    """The fields of an answer; half characters, which no file can hold, become question marks.

    Raises
    ------
    AdapterParseError
        If a field is missing or holds something else than it must; see `read_exact`.
    """
    text = whole(completion)
    plain = read_plain(signature, text)
    if plain is not None:
        return plain
    exact = read_exact(signature, text)
    return _parse(adapter, signature, text) | exact


def reading_exactly() -> AbstractContextManager[Any]:
    """For a block, `Chat` in the place of DSPy's own chat adapter; an adapter that somebody chose stays in force."""
    chosen = dspy.settings.adapter
    if chosen is not None and type(chosen) is not dspy.ChatAdapter:
        return nullcontext()
    return dspy.context(adapter=Chat())  # type: ignore[no-any-return]


def whole(text: Any) -> Any:
    """A text with a question mark for each half of a surrogate pair, which UTF-8 cannot write."""
    return text if not isinstance(text, str) or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def read_plain(signature: type[dspy.Signature], answer: str) -> dict[str, Any] | None:
    """The fields of an answer that needs no interpretation, as `dspy.ChatAdapter.parse` reads them.

    Returns
    -------
    dict or None
        None unless every field of the answer is there, and a text or a whole number in plain digits; then DSPy is
        to read it, or to say what is wrong.
    """
    sections = {name: texts[0] for name, texts in _sections(answer.splitlines(), "\n").items()}
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


def read_exact(signature: type[dspy.Signature], answer: str) -> dict[str, Any]:
    """The fields that hold an object, each of which must be one piece of JSON and nothing else.

    DSPy repairs what is no JSON: it closes a list that breaks off, drops what follows an object and takes the last of
    two equal keys, so that of the entries in it some are lost and nobody is told. White space and the marks of a code
    block may stand around the object, and line breaks in its texts. Besides, a number must be in digits: DSPy reads
    ``true`` as 1, ``0x10`` as 16 and ``1_0`` as 10.

    Raises
    ------
    AdapterParseError
        If such a field is there and holds anything else, or an object is there twice.
    """
    kinds = {name: info.annotation for name, info in signature.output_fields.items()}
    objects = {name for name, kind in kinds.items() if _is_object(kind)}
    numbers = {name for name, kind in kinds.items() if kind in (int, float)}
    fields: dict[str, Any] = {}
    if not objects and not numbers:
        return fields
    for name, texts in _sections(answer.splitlines(keepends=True), "").items():
        try:
            if name in numbers and ODD_NUMBER.fullmatch(texts[0].strip("\"'")):
                raise ValueError("no number in digits")
            if name in objects:
                if len(texts) > 1:
                    raise ValueError("it is there twice")
                fields[name] = kinds[name].model_validate(_json(texts[0]))
        except ValueError as problem:  # of JSON and of pydantic alike
            raise AdapterParseError(
                "ChatAdapter", signature, answer, f"Failed to parse field {name} with value {texts[0]}: {problem}"
            ) from problem
    return fields


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel) and not issubclass(kind, pydantic.RootModel)


def _json(text: str) -> Any:
    block = CODE_BLOCK.fullmatch(text)
    return json.loads(block[1] if block else text, strict=False, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("two members have the same name")
    return members


def _sections(lines: list[str], separator: str) -> dict[str, list[str]]:
    """The texts under each header, in their order; most are there once."""
    sections: dict[str, list[list[str]]] = {}
    current: list[str] = []
    for line in lines:
        header = field_header_pattern.match(line.strip())
        if header is None:
            current.append(line)
        else:
            current = [line[header.end() :].strip()]
            sections.setdefault(header[1], []).append(current)
    return {name: [separator.join(part).strip() for part in parts] for name, parts in sections.items()}


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
