"""All uses of DSPy below its public surface; no other file has any.

`tests/model_calls/test_dspy_internals.py` names each assumption, so that a new DSPy is a change in this file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import dspy
from dspy.clients import costs, model_metadata
from dspy.clients.call_result import CallResult
from dspy.clients.execution import IGNORED_CACHE_KEYS, prepare
from dspy.utils.usage_tracker import UsageTracker

from metricsmith.model_calls.models import without_keys
from metricsmith.records import Usage

__all__ = [
    "AnswerTracker", "Reader", "answer_part", "came_from_cache", "copied", "entry_usage", "fields_apart",
    "finish_reason", "full_evaluations", "keep_in_cache", "member", "metered", "output_text",
    "price_list", "requests_of", "text_of", "token_count", "tokens_of", "without_callbacks",
]  # fmt: skip

MOST_TOKENS = 2**53  # what is no whole number from 0 to here is no count

Function = TypeVar("Function", bound=Callable[..., Any])


def without_callbacks(method: Function) -> Function:
    """The method without the callbacks that DSPy wraps around it, once more in every subclass of an adapter."""
    while getattr(method, "__globals__", {}).get("__name__") == "dspy.utils.callback":
        method = method.__wrapped__  # type: ignore[attr-defined]
    return method


class Reader:
    """A base put before an adapter's own class: another way to read, and callbacks that fire once.

    Attributes
    ----------
    chosen : dspy.Adapter
        The adapter that this is a copy of.
    plain_format, own_parse : callable
        Those of the adapter's class; `own_parse` is None where the class reads as one of DSPy's forms does.
    """

    chosen: dspy.Adapter
    plain_format: Callable[..., list[dict[str, Any]]]
    own_parse: Callable[..., dict[str, Any]] | None

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Write the messages as the adapter does."""
        return type(self).plain_format(self, signature, demos, inputs)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Read the fields of an answer."""
        raise NotImplementedError

    def read_outputs(
        self, signature: type[dspy.Signature], outputs: list[Any], one: Callable[[Any], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The fields of each answer of a response; `one` reads one, and calls `parse`."""
        return list(map(one, outputs))

    def _call_postprocess(
        self,
        processed_signature: type[dspy.Signature],
        original_signature: type[dspy.Signature],
        outputs: list[Any],
        lm: Any,
        lm_kwargs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        read = super()._call_postprocess  # type: ignore[misc]

        def one(output: Any) -> dict[str, Any]:
            fields: dict[str, Any] = read(processed_signature, original_signature, [output], lm, lm_kwargs)[0]
            return fields

        return self.read_outputs(original_signature, outputs, one)


FORMS = frozenset(without_callbacks(kind.parse) for kind in (dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter))


def copied(adapter: dspy.Adapter, reader: type[Reader], kind: type[dspy.Adapter] | None = None) -> Any:
    """A copy of an adapter with `reader` before its class, or before `kind`; without DSPy's fallback to another one."""
    made: Any = object.__new__(_reading(reader, kind or type(adapter)))  # type: ignore[arg-type]
    made.__dict__.update(adapter.__dict__, use_json_adapter_fallback=False, chosen=adapter)
    return made


@cache
def _reading(reader: type[Reader], kind: type[dspy.Adapter]) -> type:
    parse = without_callbacks(kind.parse)
    space = {
        "__module__": kind.__module__,
        "plain_format": staticmethod(without_callbacks(kind.format)),
        "own_parse": None if parse in FORMS else staticmethod(parse),
    }
    return type(kind.__name__, (reader, kind), space)


def fields_apart(adapter: dspy.Adapter, signature: type[dspy.Signature], text: str) -> dict[str, Any]:
    """The fields of an answer in XML, as DSPy's adapter reads them."""
    fields: dict[str, Any] = without_callbacks(dspy.XMLAdapter.parse)(adapter, signature, text)
    return fields


def full_evaluations(level: str) -> int:
    """The number of full evaluations that GEPA's ``auto`` stands for."""
    from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS

    return int(AUTO_RUN_SETTINGS[level]["n"])


def metered(lm: Any, through: Any = None, *, n: int | None = None) -> Any:
    """Make a model send its requests ``through`` a sender, each for one answer unless the model says otherwise itself.

    The model itself is changed: ``n`` is taken out of its settings, because DSPy's client sends as many requests.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
        A copy that nobody else uses.
    through : Sender, optional
        Usually a `RequestMeter`. None sends as before.
    n : int, optional
        How many answers one request asks for, where a server carries several.
    """
    if n is None and getattr(lm, "kwargs", None):
        lm.kwargs = {name: value for name, value in lm.kwargs.items() if name not in ("n", "num_generations")}
    lm.__class__ = _metered(type(lm))  # type: ignore[arg-type]
    lm.through = through
    return lm


@cache
def _metered(kind: type) -> type:
    if getattr(kind, "is_metered", False):
        return kind

    class Metered(kind):  # type: ignore[misc]
        is_metered = True

        def __call__(self, *prompt: Any, **request: Any) -> Any:
            send = partial(super().__call__, *prompt, **request)
            return without_keys(send() if self.through is None else self.through.send(self, send), self)

        async def acall(self, *prompt: Any, **request: Any) -> Any:
            send = partial(super().acall, *prompt, **request)
            return without_keys(await (send() if self.through is None else self.through.asend(self, send)), self)

        def update_history(self, entry: dict[str, Any]) -> None:
            record: Any = getattr(self.through, "record", super().update_history)
            record(entry)

    Metered.__name__, Metered.__qualname__ = kind.__name__, kind.__qualname__
    return Metered


def text_of(entry: Mapping[str, Any], choice: int = 0) -> str:
    """The text of one answer in an entry of DSPy's history; empty if there is none."""
    outputs = entry.get("outputs") or []
    return output_text(outputs[choice]) if choice < len(outputs) else ""


def output_text(output: Any) -> str:
    """The text of one answer as a model gives it: a text, or a dict where there is more than a text."""
    return str((output.get("text") if isinstance(output, dict) else output) or "")


def member(thing: Any, name: str) -> Any:
    """A member of a response, which DSPy's clients give as mappings or as objects; None if it is not there."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def finish_reason(response: Any, choice: int) -> Any:
    """The server's reason to end an answer: ``content_filter``, ``length`` or another; None where it gives none."""
    return member(answer_part(response, choice), "finish_reason")


def answer_part(response: Any, choice: int) -> Any:
    """One of the answers in a response; the response itself where it has no list of them."""
    choices = member(response, "choices")
    return choices[choice] if isinstance(choices, list) and choice < len(choices) else response


def tokens_of(entry: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens of the prompt and of the answer; None where the server reports none, or what is no number of them."""
    usage = entry.get("usage") or {}
    return token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))


def requests_of(entry: Mapping[str, Any]) -> int:
    """The number of requests that an entry stands for; DSPy's own client sends one for each of several answers."""
    response = entry.get("response")
    return len(response) if isinstance(response, tuple) else 1


def entry_usage(entry: Mapping[str, Any]) -> Usage:
    """The cost of one answered request of DSPy's history; an answer from the cache costs nothing."""
    if came_from_cache(entry):
        return Usage()
    asked, answered = tokens_of(entry)
    return Usage(requests_of(entry), asked or 0, answered or 0, entry.get("cost"))


def came_from_cache(entry: Mapping[str, Any]) -> bool:
    """True if an answer came from DSPy's cache: `AnswerTracker` has noted it, or the response says so."""
    return bool(entry.get("cache_hit", getattr(entry.get("response"), "cache_hit", False)))


class AnswerTracker(UsageTracker):  # type: ignore[misc]
    """Counts the answers to one request: DSPy tells a usage tracker of every answer, but for those from its cache.

    While one is in force, no answer of an OpenAI-compatible server is lost over the bookkeeping that comes with it.

    Parameters
    ----------
    outer : UsageTracker, optional
        The tracker in force, which is told the same.

    Attributes
    ----------
    entries : list of dict
        DSPy's history of the recorded answers.
    usage : Usage
        Their cost.
    unreported : int
        Answers that were paid for, and nobody knows with how many tokens.
    """

    def __init__(self, outer: UsageTracker | None) -> None:
        super().__init__()
        if outer is not None:
            self.usage_data = outer.usage_data
        self.outer, self.new = outer, 0
        self.entries: list[dict[str, Any]] = []
        self.usage, self.unreported = Usage(), 0

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Count an answer that was not in the cache."""
        self.new += 1
        if self.outer is not None:
            self.outer.add_usage(lm, usage_entry)

    def record(self, entry: dict[str, Any]) -> None:
        """Take the entry of DSPy's history that follows, and note in it under ``cache_hit`` its origin."""
        entry["cache_hit"] = not self.new and not entry.get("usage")
        self.new = max(0, self.new - 1)
        self.unreported += not entry["cache_hit"] and None in tokens_of(entry)
        self.usage += entry_usage(entry)
        self.entries.append(entry)


def token_count(value: Any) -> int | None:
    """A number of tokens; None for what is none, such as a text or a negative number."""
    usable = type(value) in (int, float) and 0 <= value < MOST_TOKENS and value == int(value)
    return int(value) if usable else None


openai_chat: Any = importlib.import_module("dspy._vendor.lm15.providers.openai_chat")
_read_body = openai_chat._response_from_chat_body


def _read_mended_body(provider: str, data: Any, *, choice: int | None = None, **options: Any) -> Any:
    """DSPy's reader of a response, which raises on token counts that are no counts, and on a second choice."""
    if isinstance(dspy.settings.usage_tracker, AnswerTracker) and isinstance(data, Mapping):
        usage = data.get("usage")
        data = {**data, "usage": _counts(usage) if isinstance(usage, Mapping) else {}}
        choices = data.get("choices")
        choice = 0 if choice is None and isinstance(choices, list) and len(choices) > 1 else choice
    return _read_body(provider, data, choice=choice, **options)


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The token counts among `usage`, one level down as well."""
    known: dict[str, Any] = {}
    for name, value in usage.items():
        if isinstance(value, Mapping) and name.endswith("_details"):
            known[name] = _counts(value)
        elif (count := token_count(value)) is not None:
            known[name] = count
    return known


openai_chat._response_from_chat_body = _read_mended_body  # as it was, unless `AnswerTracker` are collected


def price_list() -> Mapping[str, Any]:
    """DSPy's list of models and their prices, loaded once; not to be changed."""
    entries: Mapping[str, Any] = model_metadata._load()
    return entries


_model_info = costs.model_info
_remembered_info = lru_cache(maxsize=256)(_model_info)


def _model_info_once(provider: str, model: str, *, namespaces: Any = None) -> Mapping[str, Any]:
    """DSPy's entry of a model; its search for one that has none goes through the whole list at every answer."""
    if not isinstance(dspy.settings.usage_tracker, AnswerTracker):
        return _model_info(provider, model, namespaces=namespaces)  # type: ignore[no-any-return]
    known: Mapping[str, Any] = _remembered_info(
        provider, model, namespaces=None if namespaces is None else tuple(namespaces)
    )
    return known


costs.model_info = _model_info_once  # as it was, unless `AnswerTracker` are collected


def keep_in_cache(lm: Any, messages: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    """Let DSPy's cache answer `messages` with the response in `entry`, in place of any that it held for them before.

    The key is that of a first request with these messages, though the response may answer their repair; it is what
    DSPy would have stored itself.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
        The copy that sent the request, its own cache off.
    messages : list of dict
        Of the request, without what a repair adds.
    entry : dict
        DSPy's history of the request that was answered.
    """
    call = prepare(lm, entry["prompt"], messages, {"cache": True, **entry["kwargs"]})
    if not call.cache:  # of a model class, or a predictor, that keeps nothing
        return
    record = response = entry["response"]
    if isinstance(response, dspy.lm15.Response):
        record = CallResult(
            (response,), entry["outputs"], entry["usage"], entry["cost"], response, entry["response_model"],
            cost_details=entry.get("cost_details", {}),
        ).dump()  # fmt: skip
    dspy.cache.put(call.key(lm, False), record, IGNORED_CACHE_KEYS)
