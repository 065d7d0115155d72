"""The one limit that every model request of a run passes: how many at once, how fast, and how far."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.pace import Outcome, Pace, Ticket
from metricsmith.records import Status, Usage

__all__ = ["Clock", "Flow", "Outcome", "Ticket", "in_force", "span", "spanning", "use"]

logger = logging.getLogger("metricsmith.scoring")

UNPROVEN = 4  # the same, until the server has answered once: a wrong key burns four requests, not sixty-four
PATIENCE_AFTER_SUCCESS = 5  # times as many refusals in a row are borne once there was an answer
LONGEST_WAIT = threading.TIMEOUT_MAX  # seconds, three hundred years or so; more is an error in Python


class Clock:
    """Time, and waiting for it; tests put another one in its place."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait for a notification, at most `seconds`."""
        condition.wait(None if seconds is None else min(seconds, LONGEST_WAIT))

    def pause(self, halted: threading.Event, seconds: float) -> bool:
        """Wait for `seconds`, or until `halted` is set: then True."""
        return halted.wait(min(seconds, LONGEST_WAIT))


class Flow:
    """Admits requests one by one; shared by all threads of a run.

    A flow that is made inside a `span` sends every request through that flow too, whose budget and ceilings so hold
    for all of them together.

    Parameters
    ----------
    concurrency : Concurrency
        Bounds of the number in flight, and ceilings per minute.
    budget : Budget, optional
        What may be spent; the time counts from here.
    hopeless_in_a_row : int
        How many requests in a row the server may refuse for good before the flow stops, as long as it has
        answered none; five times as many once it has.
    clock : Clock, optional
    room : context manager, optional
        A semaphore that searches side by side share; they hold it while they ask.

    Attributes
    ----------
    spent : Usage
        Requests admitted, and tokens and dollars of those that ended. ``seconds`` is not kept.
    in_flight : int
    unreported : int
        Answers so far of which the server did not say the tokens in numbers.
    stopped : str
        Why nothing is admitted any more; empty while the flow runs.
    hopeless : str
        The server's words, once it has refused too often; otherwise empty.
    refused : str
        Why a request was not admitted, or not tried again, by this flow or one around it; empty while all were.
    barred : bool
        Whether any request met a wrong key, no credit or an unknown model.
    outer : Flow or None
        The flow around this one.
    """

    def __init__(
        self,
        concurrency: Concurrency,
        budget: Budget | None = None,
        *,
        hopeless_in_a_row: int = UNPROVEN,
        clock: Clock | None = None,
        room: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.concurrency, self.budget = concurrency, budget or Budget()
        self.room = room or nullcontext()
        self.spent = Usage()
        self.in_flight = self.unreported = 0
        self.stopped = self.hopeless = self.refused = ""
        self.barred = False
        self.outer = _SPAN.get()
        self._clock = clock or Clock()
        self._condition = threading.Condition(threading.Lock())
        self._halted = threading.Event()
        self._deadline = None if self.budget.seconds is None else self._clock.now() + self.budget.seconds
        self._hopeless_in_a_row, self._refused = hopeless_in_a_row, 0
        self._pace = Pace(concurrency)
        self._answered = False
        self._ended = 0  # requests whose tokens and cost are known
        self._next_start = self._next_tokens = self._clock.now()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return self._pace.limit if self._answered else min(self._pace.limit, UNPROVEN)

    def enter(self, *inner: Flow) -> Ticket:
        """Wait until a request may be sent, and count it.

        Parameters
        ----------
        *inner : Flow
            The flows inside this one that have admitted it already; none is admitted once one of these is stopped.

        Raises
        ------
        JudgementFailed
            With status ``budget`` if the budget is spent, with ``skipped`` if the flow was stopped.
        """
        ticket = self._admit(inner)
        if self.outer is None:
            return ticket
        try:
            outer = self.outer.enter(self, *inner)
        except BaseException:
            with self._condition:
                self.in_flight -= 1
                self.spent += Usage(requests=-1)
                self._condition.notify()
            self.refused = self.refused or self.outer.refused
            if self.outer.stopped:
                self.stop(self.outer.stopped)
            raise
        return replace(ticket, started=self._clock.now(), outer=outer)

    def _admit(self, inner: tuple[Flow, ...]) -> Ticket:
        """Enters as `enter` does, by this flow alone."""
        with self._condition:
            while (wait := self._wait(inner)) != 0:
                self._clock.wait(self._condition, wait)
            now = self._clock.now()
            tokens = self._mean_tokens()
            self.in_flight += 1
            self.spent += Usage(requests=1)
            ceilings = self.concurrency
            if ceilings.requests_per_minute is not None:
                self._next_start = max(now, self._next_start) + 60 / ceilings.requests_per_minute
            if ceilings.tokens_per_minute is not None:
                self._next_tokens = max(now, self._next_tokens) + tokens * 60 / ceilings.tokens_per_minute
            return Ticket(now, self._pace.epoch, tokens)

    def leave(self, ticket: Ticket, outcome: Outcome, usage: Usage, message: str = "", *, unreported: int = 0) -> None:
        """Book how a request ended and let others go.

        Parameters
        ----------
        ticket : Ticket
            From `enter`.
        outcome : Outcome
        usage : Usage
            Tokens and dollars; ``requests`` 0 for an answer from a cache, which takes the counted one back.
        message : str
            The server's own words, where it refused.
        unreported : int
            Answers of which the tokens are not known.
        """
        if self.outer is not None and ticket.outer is not None:
            self.outer.leave(ticket.outer, outcome, usage, message, unreported=unreported)
        with self._condition:
            self.unreported += unreported
            before = self.limit
            self.spent += Usage(usage.requests - 1, usage.prompt_tokens, usage.completion_tokens, usage.cost)
            self._ended += usage.requests > 0
            if self.concurrency.tokens_per_minute is not None:
                stray = usage.prompt_tokens + usage.completion_tokens - ticket.tokens
                self._next_tokens += stray * 60 / self.concurrency.tokens_per_minute
            self._answered = self._answered or outcome is Outcome.ANSWERED
            if usage.requests:
                self._pace.learn(ticket, outcome, self._clock.now() - ticket.started, full=self.in_flight >= before)
            self.in_flight -= 1
            self._judge(outcome, usage, message, unreported)
            self._condition.notify(max(1, 1 + self.limit - before))
        if self.stopped:
            self._wake()

    def pause(self, seconds: float) -> bool:
        """Wait before a retry.

        Returns
        -------
        bool
            False at once if the pause would pass the time budget, or as soon as the flow is stopped.
        """
        return not self._ends_within(seconds) and not self._clock.pause(self._halted, seconds)

    def stop(self, reason: str) -> None:
        """Admit nothing more and wake everybody who waits."""
        with self._condition:
            self._stop(reason)
        self._wake()

    def _ends_within(self, seconds: float) -> bool:
        """True if this flow's time, or that of one around it, is over by then, which is a refusal."""
        if self._left() < seconds:
            self.refused = self.refused or self._out_of_time()
        elif self.outer is not None and self.outer._ends_within(seconds):
            self.refused = self.refused or self.outer.refused
        else:
            return False
        return True

    def _around(self) -> list[Flow]:
        """The flows around this one, the nearest first."""
        return [] if self.outer is None else [self.outer, *self.outer._around()]

    def _left(self) -> float:
        """Seconds until the budget's time is over; infinite where it has none."""
        return math.inf if self._deadline is None else self._deadline - self._clock.now()

    def _out_of_time(self) -> str:
        return f"the budget of {self.budget.seconds:g} seconds is spent"

    def _wake(self) -> None:
        """Let those who wait in the flows around see that this one is stopped."""
        if self.outer is not None:
            with self.outer._condition:
                self.outer._condition.notify_all()
            self.outer._wake()

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        self._halted.set()
        self._condition.notify_all()

    def _judge(self, outcome: Outcome, usage: Usage, message: str, unreported: int) -> None:
        """Stop where going on makes no sense."""
        if outcome is Outcome.ANSWERED:
            self._refused = 0
            if usage.requests:
                self._check_countable(usage, unreported)
        elif outcome is Outcome.HOPELESS:
            self._refused += 1
            if self._refused >= self._hopeless_in_a_row * (PATIENCE_AFTER_SUCCESS if self._answered else 1):
                self.hopeless = message
                self._stop(f"the server refuses to work: {message}")

    def _check_countable(self, usage: Usage, unreported: int) -> None:
        """Stop where what an answer cost is not known, so that the budget cannot be kept."""
        if self.budget.tokens is not None and (unreported or not (usage.prompt_tokens or usage.completion_tokens)):
            self._stop(
                "the server reports no tokens, so that a budget in tokens cannot be kept; give one in requests instead"
            )
        if self.budget.usd is not None and usage.cost is None:
            self._stop(
                "the price of the answers is unknown, so that a budget in dollars cannot be kept; give one in tokens "
                "or requests instead"
            )

    def _wait(self, inner: tuple[Flow, ...]) -> float | None:
        """0 to go now, seconds to wait at most, None to wait for others; raises where there is nothing to wait for."""
        around = self._around()
        stopped = next((flow.stopped for flow in (self, *inner) if flow.stopped), "")
        if stopped:
            self.refused = self.refused or self.stopped
            raise JudgementFailed(f"not asked: {stopped}", Status.SKIPPED)
        if over := next((flow for flow in around if flow.stopped or flow.refused), None):  # no use in waiting here
            over.refused = over.refused or over.stopped
            self.refused = self.refused or over.refused
            if over.stopped:
                self._stop(over.stopped)
            raise JudgementFailed(
                f"not asked: {over.stopped or over.refused}", Status.SKIPPED if over.stopped else Status.BUDGET
            )
        first = min((self, *inner, *around), key=Flow._left)  # whose time is over first
        left, spent = first._left(), self._overspent()
        if spent:
            self.refused = f"the budget of {spent} is spent"
            self._condition.notify_all()  # the others are to know it too
            raise JudgementFailed(f"not asked: {self.refused}", Status.BUDGET)
        if left <= 0:
            first.refused = first._out_of_time()
            self.refused = self.refused or (first.refused if first in around else "")
            self._condition.notify_all()
            raise JudgementFailed(f"not asked: {first.refused}", Status.BUDGET)
        if self.in_flight >= self.limit or (self.in_flight and self._might_overspend()):
            return None if left == math.inf else left
        now = self._clock.now()
        until = max(self._next_start - now, self._next_tokens - now)
        return 0 if until <= 0 else min(until, left)

    def _overspent(self) -> str:
        """The part of the budget that is used up, time aside, in words; empty if none is."""
        budget, tokens = self.budget, self.spent.prompt_tokens + self.spent.completion_tokens
        ended = self.spent.requests - self.in_flight  # what is on its way may come from a cache
        if budget.requests is not None and ended >= budget.requests:
            return f"{budget.requests} requests"
        if budget.tokens is not None and tokens >= budget.tokens:
            return f"{budget.tokens} tokens"
        if budget.usd is not None and (self.spent.cost or 0.0) >= budget.usd:
            return f"{budget.usd:g} US dollars"
        return ""

    def _might_overspend(self) -> bool:
        """True if one more request, at what the others cost on average, could pass what is left of the budget."""
        budget, coming = self.budget, self.in_flight + 1
        if budget.requests is not None and self.spent.requests >= budget.requests:
            return True
        tokens = self.spent.prompt_tokens + self.spent.completion_tokens
        if budget.tokens is not None and tokens + coming * self._mean_tokens() > budget.tokens:
            return True
        cost = self.spent.cost or 0.0
        return budget.usd is not None and cost + coming * cost / max(1, self._ended) > budget.usd

    def _mean_tokens(self) -> float:
        return (self.spent.prompt_tokens + self.spent.completion_tokens) / max(1, self._ended)


_FLOW: ContextVar[Flow | None] = ContextVar("metricsmith_flow", default=None)
_SPAN: ContextVar[Flow | None] = ContextVar("metricsmith_span", default=None)


def spanning() -> Flow | None:
    """The flow that spans all flows made here, if there is one."""
    return _SPAN.get()


@contextmanager
def span(flow: Flow) -> Iterator[Flow]:
    """Let every flow that is made in a block admit its requests through `flow` too.

    So a run of many parts, each with a pace and a patience of its own, has one budget and one rate.
    """
    token = _SPAN.set(flow)
    try:
        yield flow
    finally:
        _SPAN.reset(token)


def in_force() -> Flow | None:
    """The flow of the run around us, if there is one."""
    return _FLOW.get()


@contextmanager
def use(flow: Flow) -> Iterator[Flow]:
    """Put `flow` in force for a block, and for threads that copy the context inside it.

    Answers with which no token counts came are told of at its end.
    """
    token = _FLOW.set(flow)
    try:
        yield flow
    finally:
        _FLOW.reset(token)
        if flow.unreported:
            logger.warning(
                "%d answers came without usable token counts: tokens and dollars of this run are those of the others",
                flow.unreported,
            )
