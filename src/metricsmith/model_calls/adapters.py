"""Request adapters: DSPy adapters for one call, which write its messages and read its answers exactly.

Each is a copy of the adapter that the user has in force and writes its form. It sends through a metered model, may
show an unusable answer again, and may keep several answers. DSPy's fallback to another adapter is off, since it would
send requests that nobody counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.chat_adapter import FieldInfoWithName
from dspy.adapters.utils import format_field_value, translate_field_type
from dspy.utils.exceptions import AdapterParseError
from pydantic.fields import FieldInfo

from metricsmith.errors import OptionError
from metricsmith.model_calls.dspy_internals import Reader, copied, output_text
from metricsmith.model_calls.metering import RequestMeter
from metricsmith.model_calls.reading import UnreadableAnswer, read, whole

__all__ = [
    "ADAPTER_NAMES",
    "RequestAdapter",
    "Chat",
    "ChoicesAdapter",
    "Repair",
    "Replay",
    "adapter_in_force",
    "adapter_name",
    "in_form",
    "messages_of",
    "reading_exactly",
]

LONGEST_ANSWER = 4_000  # characters of an unusable answer that the model is shown again
NAMES = {
    "dspy.adapters.chat_adapter.ChatAdapter": "chat",
    "dspy.adapters.json_adapter.JSONAdapter": "json",
    "dspy.adapters.xml_adapter.XMLAdapter": "xml",
    "dspy.adapters.baml_adapter.BAMLAdapter": "baml",
}
OTHER = "other"
ADAPTER_NAMES = (*NAMES.values(), OTHER)
_CHAT = dspy.ChatAdapter()


def adapter_in_force() -> dspy.Adapter:
    """The adapter that the user has in force, DSPy's chat adapter if there is none.

    Raises
    ------
    OptionError
        If it is none, or asks a model of its own, whose requests nobody would count, limit or price.
    """
    chosen = _chosen()
    if type(chosen) is dspy.ChatAdapter:
        return chosen
    if not isinstance(chosen, dspy.Adapter):
        raise OptionError(f"adapter={chosen!r} is no dspy.Adapter; take dspy.ChatAdapter() or one like it")
    if any(isinstance(value, dspy.BaseLM) for value in vars(chosen).values()):
        raise OptionError(
            f"{type(chosen).__name__} asks a model of its own for every answer, and these requests would be neither "
            "counted nor limited nor priced; put dspy.ChatAdapter(), dspy.JSONAdapter() or dspy.XMLAdapter() in force: "
            "dspy.context(adapter=...)"
        )
    return chosen


def adapter_name() -> str:
    """The name of the adapter in force in a file: chat, json, xml, baml, or other."""
    kind = type(_chosen())
    return NAMES.get(f"{kind.__module__}.{kind.__qualname__}", OTHER)


def _chosen() -> Any:
    """The user's adapter, also where a copy of it or a replay is in force."""
    adapter = dspy.settings.adapter or _CHAT
    return adapter.chosen if isinstance(adapter, Reader | Replay) else adapter


def messages_of(
    signature: type[dspy.Signature], demos: list[Any], inputs: dict[str, Any], form: dspy.Adapter | None = None
) -> list[dict[str, Any]]:
    """The messages of a request as `form` writes them, or the adapter in force."""
    messages: list[dict[str, Any]] = Exact.like(form or adapter_in_force()).format(signature, demos, inputs)
    return messages


def in_form(form: dspy.Adapter | None) -> AbstractContextManager[Any]:
    """Put the one form that a model knows in force for a block; None leaves the adapter that is."""
    return nullcontext() if form is None else dspy.context(adapter=form)


def reading_exactly(form: dspy.Adapter | None = None) -> AbstractContextManager[Any]:
    """Make the adapter in force, or in its place `form`, read exactly for a block.

    An adapter in force that asks a model of its own stays as it is. In a call that is counted, the request adapter
    goes on under `form`.
    """
    now = dspy.settings.adapter
    if isinstance(now, Replay) or (isinstance(now, Reader) and form is None):
        return nullcontext()
    if isinstance(now, RequestAdapter):
        return dspy.context(adapter=now.under(form))  # type: ignore[no-any-return]
    try:
        adapter = form or adapter_in_force()
    except OptionError:
        return nullcontext()
    return dspy.context(adapter=Exact.like(adapter))  # type: ignore[no-any-return]


class Chat(dspy.ChatAdapter):  # type: ignore[misc]
    """DSPy's chat form, written with less work: the same characters, without doing again what never changes.

    `dspy.ChatAdapter` builds the system message anew for every request, sends each text through a serializer of its
    own and each number of the answer through a repairer of JSON and a new pydantic validator; for short texts that is
    half of the processor time of a request.
    """

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """The system message, remembered as long as instructions and field descriptions stay the same."""
        text: str = _remembered(signature, "system", super().format_system_message)
        return text

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        """The reminder of the form, remembered in the same way."""
        text: str = _remembered(signature, "reminder", super().user_message_output_requirements)
        return text

    def format_field_with_value(self, fields_with_values: dict[FieldInfoWithName, Any]) -> str:
        """The fields of an answer, such as a demonstration's, one after the other."""
        return "\n\n".join(
            _written(field.name, field.info, value) for field, value in fields_with_values.items()
        ).strip()

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """The fields, one after the other."""
        parts = [prefix]
        for name, info in signature.input_fields.items():
            if name in inputs:
                parts.append(_written(name, info, inputs[name]))
        if main_request:
            parts.append(self.user_message_output_requirements(signature))
        parts.append(suffix)
        return "\n\n".join(parts).strip()


def _written(name: str, info: FieldInfo, value: Any) -> str:
    """A field under its header; a plain text is its own serialization, and so is a whole number."""
    text = value if type(value) in (str, int) else format_field_value(field_info=info, value=value)
    return f"[[ ## {name} ## ]]\n{text}"


_MEMORY: WeakKeyDictionary[type[dspy.Signature], dict[str, tuple[Any, str]]] = WeakKeyDictionary()


def _remembered(signature: type[dspy.Signature], what: str, write: Any) -> str:
    """The text that `write` makes of a signature; made again when anything in the signature has changed."""
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


@dataclass(frozen=True, slots=True)
class Repair:
    """An unusable answer: the messages that it answers, its text, and what is wrong with it."""

    messages: list[dict[str, Any]]
    answer: str
    complaint: str


class Exact(Reader):
    """Put before an adapter's class: answers are read by `reading.read`."""

    @classmethod
    def like(cls, adapter: dspy.Adapter) -> Any:
        """A copy of `adapter` that reads exactly; the chat adapter's writes faster, too."""
        return copied(adapter, cls, Chat if type(adapter) is dspy.ChatAdapter else None)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read the fields by `read`."""
        return read(self, signature, completion)


class RequestAdapter(Exact):
    """Put before the class of the adapter of one call, which `opened` makes.

    Attributes
    ----------
    asked : list of dict
        The messages of the latest request, without what a repair adds.
    """

    lm: Any
    private: Callable[[Any], Any]
    meter: RequestMeter
    repair: Repair | None
    asked: list[dict[str, Any]]

    @classmethod
    def opened(cls, lm: Any, private: Callable[[Any], Any], meter: RequestMeter, repair: Repair | None = None) -> Self:
        """A request adapter like the adapter in force.

        Parameters
        ----------
        lm : dspy.LM
            The private copy that is in force.
        private : callable
            Gives a private copy of a model that a predictor has of its own.
        meter : RequestMeter
            Sends every request of a private copy.
        repair : Repair, optional
            To be shown when the request that it answers is written again.

        Raises
        ------
        OptionError
            If the adapter in force asks a model of its own.
        """
        adapter: Self = cls.like(adapter_in_force())
        adapter.lm, adapter.private, adapter.meter, adapter.repair, adapter.asked = lm, private, meter, repair, []
        lm.through = meter
        return adapter

    def under(self, form: Any) -> Self:
        """The same request adapter with another form: both are one in all that they know and note."""
        other: Self = type(self).__mro__[1].like(form)  # type: ignore[attr-defined]
        other.__dict__ = self.__dict__
        return other

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
        lm.through = self.meter
        lm_kwargs = {name: value for name, value in lm_kwargs.items() if name != "n"}  # a predictor's own
        answers: list[dict[str, Any]] = super().__call__(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[misc]
        return answers

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Write the messages, followed by the unusable answer and its correction where these are its messages."""
        messages = type(self).plain_format(self, signature, demos, inputs)
        messages = [{**message, "content": whole(message["content"])} for message in messages]
        self.asked = messages
        if self.repair is None or messages != self.repair.messages:
            return messages
        answer = self.repair.answer
        cut = answer[:LONGEST_ANSWER] + (" [...]" if len(answer) > LONGEST_ANSWER else "")
        shown = [{"role": "assistant", "content": cut}] if cut.strip() else []  # some servers take no empty turn
        return [*messages, *shown, {"role": "user", "content": self._correction(signature, self.repair.complaint)}]

    def _correction(self, signature: type[dspy.Signature], complaint: str) -> str:
        """The message that asks for the same answer in a usable form."""
        fault = f"This answer cannot be used: {complaint}. Answer the request above once more,"
        adapter: Any = self
        if self.own_parse is not None or isinstance(self, dspy.JSONAdapter | dspy.XMLAdapter):
            remind = getattr(adapter, "user_message_output_requirements", None)
            reminder = f" {remind(signature)}" if remind else ""
            return f"{fault} in the form that it asks for, with nothing else.{reminder}"
        form = adapter.format_field_with_value(
            {
                FieldInfoWithName(name=name, info=info): translate_field_type(name, info)
                for name, info in signature.output_fields.items()
            }
        )
        return (
            f"{fault} with nothing before, between or after the fields, in exactly this form:\n\n{form}\n\n"
            "[[ ## completed ## ]]"
        )

    def read_outputs(
        self, signature: type[dspy.Signature], outputs: list[Any], one: Callable[[Any], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Read the first answer, if there is one."""
        if not outputs or not output_text(outputs[0]).strip():
            raise UnreadableAnswer(signature, "", "the answer is empty", "it is empty")
        return [one(outputs[0])]


class ChoicesAdapter(RequestAdapter):
    """Reads each of several answers to one request on its own.

    Attributes
    ----------
    choices : list
        For each answer its fields, or the error that was raised when it was read.
    """

    choices: list[dict[str, Any] | AdapterParseError]

    def read_outputs(
        self, signature: type[dspy.Signature], outputs: list[Any], one: Callable[[Any], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Read every answer; the first that can be read is the module's."""
        self.choices = []
        for output in outputs:
            try:
                self.choices += super().read_outputs(signature, [output], one)
            except AdapterParseError as problem:
                self.choices.append(problem)
        for choice in self.choices:
            if isinstance(choice, dict):
                return [dict(choice)]
        return super().read_outputs(signature, outputs[:1], one)  # which raises


class Replay(dspy.ChatAdapter):  # type: ignore[misc]
    """Answers with fields that are known already, and sends nothing."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self.fields, self.chosen = fields, adapter_in_force()

    def __call__(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """Answer without a request."""
        return [dict(self.fields)]
