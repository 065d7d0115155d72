"""Where a request to a language model is let through, counted, and its end booked; whoever sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Protocol

import dspy
from dspy.utils.exceptions import LMError

from metricsmith.errors import JudgementFailed
from metricsmith.records import Usage
from metricsmith.scoring.dspy_internals import Answers, reading_leniently, token_count
from metricsmith.scoring.failures import failure, keep_keys, rejects_choices, words
from metricsmith.scoring.flow import Flow, Outcome, Ticket
from metricsmith.scoring.models import without_keys

__all__ = ["Gate", "Through", "cost_of", "gated"]


class Through(Protocol):
    """What a gated model sends its requests by."""

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send a request and return what it returns."""

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """As `send`, without blocking the event loop."""


class Gate:
    """Lets the requests of a call through a flow, one by one, and keeps what they brought.

    Parameters
    ----------
    flow : Flow
    choices : bool
        Whether the requests ask for several answers at once: a server that takes no such wish has not refused to
        work, since the single request is still to be tried.

    Attributes
    ----------
    entries : list of dict
        DSPy's history of the requests that were answered.
    closed : JudgementFailed or None
        Why the flow let a request not through; whoever swallows that error has not got an answer all the same.
    """

    def __init__(self, flow: Flow, *, choices: bool = False) -> None:
        self.flow, self.choices = flow, choices
        self.entries: list[dict[str, Any]] = []
        self.closed: JudgementFailed | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Gate:
        return self

    @property
    def usage(self) -> Usage:
        """What the answered requests cost."""
        return sum(map(cost_of, self.entries), Usage())

    @property
    def cached(self) -> bool:
        """Whether the latest answer came from DSPy's cache."""
        return bool(self.entries) and _cached(self.entries[-1])

    def record(self, entry: dict[str, Any]) -> None:
        """Take an entry of DSPy's history, in the thread or task of its request."""
        fresh = _FRESH.get()
        if fresh is not None:
            fresh.record(entry)
        self.entries.append(entry)

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send one request.

        Raises
        ------
        JudgementFailed
            If the flow is stopped or its budget spent.
        LMError or another error
            As the request raises it.
        """
        ticket = self._enter()
        with self._booked(lm, ticket):
            return request()

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """As `send`; waits for admission beside the event loop, on which the requests ahead may depend."""
        ticket = await asyncio.to_thread(self._enter)
        with self._booked(lm, ticket):
            return await request()

    def _enter(self) -> Ticket:
        try:
            return self.flow.enter()
        except JudgementFailed as stopped:
            self.closed = stopped
            raise

    @contextmanager
    def _booked(self, lm: Any, ticket: Ticket) -> Iterator[None]:
        """Tell the flow how the request inside ended."""
        fresh = Answers(dspy.settings.usage_tracker)
        token = _FRESH.set(fresh)
        outcome, lost, said = Outcome.FAILED, 1, ""
        try:
            with dspy.context(usage_tracker=fresh), reading_leniently():
                yield
            outcome, lost = Outcome.ANSWERED, int(not fresh.entries)
        except LMError as problem:
            keep_keys(problem, lm)
            cause = failure(problem)
            forgiven = self.choices and rejects_choices(problem)
            outcome, lost = Outcome.FAILED if forgiven else cause.outcome, int(cause.sent)
            said = words(problem, lm)
            self.flow.barred |= cause.stopping and not forgiven
            raise
        except BaseException as problem:
            keep_keys(problem, lm)
            raise
        finally:
            _FRESH.reset(token)
            usage = sum(map(cost_of, fresh.entries), Usage(requests=lost))
            self.flow.leave(ticket, outcome, usage, said, unreported=sum(map(_is_unreported, fresh.entries)))


# The answers to the one request that this thread or task is sending: a gate may have several under way.
_FRESH: ContextVar[Answers | None] = ContextVar("metricsmith_fresh", default=None)


def gated(lm: Any, through: Through | None = None, *, n: int | None = None) -> Any:
    """Make a model send its requests ``through``, from now on, each for one answer unless it says otherwise itself.

    It is the model that is changed: ``n`` is taken out of its settings, because DSPy's client sends as many requests.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
        A copy that nobody else uses.
    through : Through, optional
        Usually a `Gate`. None sends as before.
    n : int, optional
        How many answers one request asks for, where a server carries several.
    """
    if n is None and getattr(lm, "kwargs", None):
        lm.kwargs = {name: value for name, value in lm.kwargs.items() if name not in ("n", "num_generations")}
    lm.__class__ = _gated(type(lm))  # type: ignore[arg-type]
    lm.through = through
    return lm


@cache
def _gated(kind: type) -> type:
    if getattr(kind, "is_gated", False):
        return kind

    class Gated(kind):  # type: ignore[misc]
        is_gated = True

        def __call__(self, *prompt: Any, **request: Any) -> Any:
            send = partial(super().__call__, *prompt, **request)
            return without_keys(send() if self.through is None else self.through.send(self, send), self)

        async def acall(self, *prompt: Any, **request: Any) -> Any:
            send = partial(super().acall, *prompt, **request)
            return without_keys(await (send() if self.through is None else self.through.asend(self, send)), self)

    Gated.__name__, Gated.__qualname__ = kind.__name__, kind.__qualname__
    return Gated


def cost_of(entry: dict[str, Any]) -> Usage:
    """What one answered request of DSPy's history cost; an answer from the cache costs nothing."""
    if _cached(entry):
        return Usage()
    response = entry.get("response")  # several, where DSPy's client sent a request for each of n answers
    requests = len(response) if isinstance(response, tuple) else 1
    asked, answered = _tokens(entry)
    return Usage(requests, asked or 0, answered or 0, entry.get("cost"))


def _tokens(entry: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens of the prompt and of the answer; None where the server reports none, or what is no number of them."""
    usage = entry.get("usage") or {}
    return token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))


def _is_unreported(entry: dict[str, Any]) -> bool:
    """Whether an answer was paid for, and nobody knows with how many tokens."""
    return not _cached(entry) and None in _tokens(entry)


def _cached(entry: dict[str, Any]) -> bool:
    """Whether an answer came from DSPy's cache."""
    return bool(entry.get("cache_hit", getattr(entry.get("response"), "cache_hit", False)))
