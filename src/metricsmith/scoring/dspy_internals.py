"""What we use of DSPy below its public surface; nothing else does.

`tests/scoring/test_dspy_internals.py` names each assumption, so that a new DSPy is a change in this file.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import dspy
from dspy.clients.call_result import CallResult
from dspy.clients.execution import IGNORED_CACHE_KEYS, prepare
from dspy.utils.usage_tracker import UsageTracker

__all__ = ["Answers", "keep_in_cache", "plain_format", "plain_parse", "reading_leniently", "token_count"]

MOST_TOKENS = 2**53  # what is no whole number from 0 to here is no count


def plain_parse(kind: type[dspy.Adapter]) -> Callable[..., dict[str, Any]]:
    """An adapter class's `parse` without the callbacks that DSPy wraps around it, once for every subclass."""
    parse: Callable[..., dict[str, Any]] = inspect.unwrap(kind.parse)
    return parse


def plain_format(kind: type[dspy.Adapter]) -> Callable[..., list[dict[str, Any]]]:
    """The same of `format`."""
    write: Callable[..., list[dict[str, Any]]] = inspect.unwrap(kind.format)
    return write


class Answers(UsageTracker):  # type: ignore[misc]
    """The answers to one request: DSPy tells a usage tracker of every answer, but for those from its cache.

    Parameters
    ----------
    outer : UsageTracker, optional
        The tracker in force, which is told the same.
    """

    def __init__(self, outer: UsageTracker | None) -> None:
        super().__init__()
        if outer is not None:
            self.usage_data = outer.usage_data
        self.outer, self.new = outer, 0
        self.entries: list[dict[str, Any]] = []

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """An answer has come that was not in the cache."""
        self.new += 1
        if self.outer is not None:
            self.outer.add_usage(lm, usage_entry)

    def record(self, entry: dict[str, Any]) -> None:
        """Its entry of DSPy's history, which follows; from now on it says under ``cache_hit`` where it came from."""
        entry["cache_hit"] = not self.new and not entry.get("usage")
        self.new = max(0, self.new - 1)
        self.entries.append(entry)


def token_count(value: Any) -> int | None:
    """A number of tokens; None for what is none, such as a text or a negative number."""
    usable = type(value) in (int, float) and 0 <= value < MOST_TOKENS and value == int(value)
    return int(value) if usable else None


_LENIENT: ContextVar[bool] = ContextVar("metricsmith_lenient", default=False)
openai_chat: Any = importlib.import_module("dspy._vendor.lm15.providers.openai_chat")
_read_body = openai_chat._response_from_chat_body


@contextmanager
def reading_leniently() -> Iterator[None]:
    """For a block, in this thread or task alone: an answer is not lost over the bookkeeping that comes with it.

    DSPy's own client raises on token counts that are no counts, and on a second choice in a response.
    """
    token = _LENIENT.set(True)
    try:
        yield
    finally:
        _LENIENT.reset(token)


def _read_mended_body(provider: str, data: Any, *, choice: int | None = None, **options: Any) -> Any:
    if _LENIENT.get() and isinstance(data, Mapping):
        usage = data.get("usage")
        data = {**data, "usage": _counts(usage) if isinstance(usage, Mapping) else {}}
        choices = data.get("choices")
        choice = 0 if choice is None and isinstance(choices, list) and len(choices) > 1 else choice
    return _read_body(provider, data, choice=choice, **options)


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The counts among `usage`, one level down as well."""
    known: dict[str, Any] = {}
    for name, value in usage.items():
        if isinstance(value, Mapping) and name.endswith("_details"):
            known[name] = _counts(value)
        elif (count := token_count(value)) is not None:
            known[name] = count
    return known


openai_chat._response_from_chat_body = _read_mended_body  # as it was, but within `reading_leniently`


def keep_in_cache(lm: Any, messages: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    """Let DSPy's cache answer `messages` with the response in `entry`, whatever it held for them before.

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
