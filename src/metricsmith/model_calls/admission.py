"""Where a request to a language model is let through, counted, and its end booked; whoever sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import dspy
from dspy.utils.exceptions import LMError

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.dspy_internals import Answers, came_from_cache, gated, requests_of, tokens_of
from metricsmith.model_calls.failures import failure, keep_keys, rejects_choices, words
from metricsmith.model_calls.flow import Flow, Outcome, Ticket
from metricsmith.records import Usage

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
        """True if the latest answer came from DSPy's cache."""
        return bool(self.entries) and came_from_cache(self.entries[-1])

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
            with dspy.context(usage_tracker=fresh):
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


def cost_of(entry: dict[str, Any]) -> Usage:
    """What one answered request of DSPy's history cost; an answer from the cache costs nothing."""
    if came_from_cache(entry):
        return Usage()
    asked, answered = tokens_of(entry)
    return Usage(requests_of(entry), asked or 0, answered or 0, entry.get("cost"))


def _is_unreported(entry: dict[str, Any]) -> bool:
    """True if an answer was paid for, and nobody knows with how many tokens."""
    return not came_from_cache(entry) and None in tokens_of(entry)
