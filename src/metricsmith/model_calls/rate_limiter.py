"""The rate limiter that every model request of a run passes: how many at once, how fast, and how far."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.limits import AdaptiveLimit, Budget, Concurrency, RequestEnd
from metricsmith.records import Status, Usage

__all__ = ["Clock", "Permit", "RateLimiter", "in_force", "span", "spanning", "use"]

logger = logging.getLogger("metricsmith.scoring")

UNPROVEN = 4  # in flight until the server has answered once: a wrong key burns four requests, not sixty-four
PATIENCE_AFTER_SUCCESS = 5  # times as many refusals in a row are borne once there was an answer
LONGEST_WAIT = threading.TIMEOUT_MAX  # seconds, three hundred years or so; more is an error in Python

# The rate limiter of the run around us, and the one that spans all those made here, if there are any.
in_force: ContextVar[RateLimiter | None] = ContextVar("metricsmith_rate_limiter", default=None)
spanning: ContextVar[RateLimiter | None] = ContextVar("metricsmith_span", default=None)


class Clock:
    """A clock and its ways to wait; tests put another one in its place."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait for a notification, at most `seconds`."""
        condition.wait(None if seconds is None else min(seconds, LONGEST_WAIT))

    def pause(self, halted: threading.Event, seconds: float) -> bool:
        """Wait for `seconds`, or until `halted` is set: then True."""
        return halted.wait(min(seconds, LONGEST_WAIT))


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to send one request.

    `started` is the time of its admission, `epoch` that of the limit, `tokens` the estimate that was reserved, and
    `outer` the permit of the rate limiter around, where there is one.
    """

    started: float
    epoch: int
    tokens: float
    outer: Permit | None = None


class RateLimiter:
    """Admits the requests of a run one by one; all threads of the run share it.

    A rate limiter that is made inside a `span` sends every request through that one too, whose budget and ceilings
    so hold for all of them together.

    Parameters
    ----------
    concurrency : Concurrency
        Bounds of the number in flight, and ceilings per minute.
    budget : Budget, optional
        The most that may be spent; its time counts from here.
    hopeless_in_a_row : int
        How many requests in a row the server may refuse for good before nothing more is admitted, as long as it has
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
        Why nothing is admitted any more; empty while requests are.
    hopeless : str
        The server's words, once it has refused too often; otherwise empty.
    refused : str
        Why a request was not admitted, or not tried again, by this rate limiter or one around it; otherwise empty.
    barred : bool
        Whether any request met a wrong key, no credit or an unknown model.
    outer : RateLimiter or None
        The rate limiter around this one.
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
        self._clock = clock or Clock()
        self._next_start = self._next_tokens = self._clock.now()
        self.concurrency, self.budget = concurrency, budget or Budget()
        self.room = room or nullcontext()
        self.spent = Usage()
        self.in_flight = self.unreported = 0
        self.stopped = self.hopeless = self.refused = ""
        self.barred = False
        self.outer = spanning.get()
        self._condition = threading.Condition(threading.Lock())
        self._halted = threading.Event()
        self._deadline = None if self.budget.seconds is None else self._next_start + self.budget.seconds
        self._hopeless_in_a_row, self._refused = hopeless_in_a_row, 0
        self._adaptive = AdaptiveLimit(concurrency)
        self._answered = False
        self._ended = 0  # requests whose tokens and cost are known

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        return self._adaptive.limit if self._answered else min(self._adaptive.limit, UNPROVEN)

    def enter(self, *inner: RateLimiter) -> Permit:
        """Wait until a request may be sent, and count it.

        Parameters
        ----------
        *inner : RateLimiter
            Those inside this one that have admitted it already; none is admitted once one of these is stopped.

        Raises
        ------
        JudgementFailed
            With status ``budget`` if the budget is spent, with ``skipped`` if the rate limiter was stopped.
        """
        with self._condition:
            while (wait := self._wait(inner)) != 0:
                self._clock.wait(self._condition, wait)
            now = self._clock.now()
            tokens = self._mean_tokens()
            self.in_flight += 1
            self.spent = replace(self.spent, requests=self.spent.requests + 1)
            ceilings = self.concurrency
            if ceilings.requests_per_minute is not None:
                self._next_start = max(now, self._next_start) + 60 / ceilings.requests_per_minute
            if ceilings.tokens_per_minute is not None:
                self._next_tokens = max(now, self._next_tokens) + tokens * 60 / ceilings.tokens_per_minute
            permit = Permit(now, self._adaptive.epoch, tokens)
        if self.outer is None:
            return permit
        try:
            outer = self.outer.enter(self, *inner)
        except BaseException:
            with self._condition:
                self.in_flight -= 1
                self.spent = replace(self.spent, requests=self.spent.requests - 1)
                self._condition.notify()
            self.refused = self.refused or self.outer.refused
            if self.outer.stopped:
                self.stop(self.outer.stopped)
            raise
        return replace(permit, started=self._clock.now(), outer=outer)

    def leave(self, permit: Permit, end: RequestEnd, usage: Usage, message: str = "", *, unreported: int = 0) -> None:
        """Book the end of a request and admit others.

        Parameters
        ----------
        permit : Permit
            From `enter`.
        end : RequestEnd
        usage : Usage
            Tokens and dollars; ``requests`` 0 for an answer from a cache, which takes the counted one back.
        message : str
            The server's own words, where it refused.
        unreported : int
            Answers of which the tokens are not known.
        """
        if self.outer is not None and permit.outer is not None:
            self.outer.leave(permit.outer, end, usage, message, unreported=unreported)
        with self._condition:
            self.unreported += unreported
            before = self.limit
            self._ended += usage.requests > 0
            if self.concurrency.tokens_per_minute is not None:
                stray = usage.prompt_tokens + usage.completion_tokens - permit.tokens
                self._next_tokens += stray * 60 / self.concurrency.tokens_per_minute
            self._answered = self._answered or end is RequestEnd.ANSWERED
            if usage.requests:
                self._adaptive.learn(
                    permit.epoch, end, self._clock.now() - permit.started, full=self.in_flight >= before
                )
            self.spent += Usage(usage.requests - 1, usage.prompt_tokens, usage.completion_tokens, usage.cost)
            self.in_flight -= 1
            self._judge(end, usage, message, unreported)
            self._condition.notify(max(1, 1 + self.limit - before))
        if self.stopped:
            self._wake()

    def pause(self, seconds: float) -> bool:
        """Wait before a retry.

        Returns
        -------
        bool
            False at once if the pause would pass the time budget, or as soon as the rate limiter is stopped.
        """
        return not self._ends_within(seconds) and not self._clock.pause(self._halted, seconds)

    def stop(self, reason: str) -> None:
        """Admit nothing more and wake all threads that wait."""
        with self._condition:
            self._stop(reason)
        self._wake()

    def _ends_within(self, seconds: float) -> bool:
        """True if this rate limiter's time, or that of one around it, is over by then, which is a refusal."""
        if self._left() < seconds:
            self.refused = self.refused or self._out_of_time()
        elif self.outer is not None and self.outer._ends_within(seconds):
            self.refused = self.refused or self.outer.refused
        else:
            return False
        return True

    def _left(self) -> float:
        """Seconds until the budget's time is over; infinite where it has none."""
        return math.inf if self._deadline is None else self._deadline - self._clock.now()

    def _out_of_time(self) -> str:
        return f"the budget of {self.budget.seconds:g} seconds is spent"

    def _around(self) -> list[RateLimiter]:
        """The rate limiters around this one, the nearest first."""
        return [] if self.outer is None else [self.outer, *self.outer._around()]

    def _wake(self) -> None:
        """Let threads that wait in the rate limiters around see that this one is stopped."""
        for limiter in self._around():
            with limiter._condition:
                limiter._condition.notify_all()

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        self._halted.set()
        self._condition.notify_all()

    def _judge(self, end: RequestEnd, usage: Usage, message: str, unreported: int) -> None:
        """Stop where going on makes no sense, or where the budget cannot be kept since an answer's cost is unknown."""
        if end is RequestEnd.HOPELESS:
            self._refused += 1
            if self._refused >= self._hopeless_in_a_row * (PATIENCE_AFTER_SUCCESS if self._answered else 1):
                self.hopeless = message
                self._stop(f"the server refuses to work: {message}")
        if end is not RequestEnd.ANSWERED:
            return
        self._refused = 0
        if not usage.requests:
            return
        if self.budget.tokens is not None and (unreported or not (usage.prompt_tokens or usage.completion_tokens)):
            self._stop(
                "the server reports no tokens, so that a budget in tokens cannot be kept; give one in requests instead"
            )
        if self.budget.usd is not None and usage.cost is None:
            self._stop(
                "the price of the answers is unknown, so that a budget in dollars cannot be kept; give one in tokens "
                "or requests instead"
            )

    def _wait(self, inner: tuple[RateLimiter, ...]) -> float | None:
        """0 to go now, seconds to wait at most, None to wait for others; raises where waiting is of no use."""
        around = self._around()
        stopped = next((limiter.stopped for limiter in (self, *inner) if limiter.stopped), "")
        if stopped:
            self.refused = self.refused or self.stopped
            raise JudgementFailed(f"not asked: {stopped}", Status.SKIPPED)
        if over := next(
            (limiter for limiter in around if limiter.stopped or limiter.refused), None
        ):  # no use in waiting here
            over.refused = over.refused or over.stopped
            self.refused = self.refused or over.refused
            if over.stopped:
                self._stop(over.stopped)
            self._condition.notify_all()  # of those who wait here, only one was told
            raise JudgementFailed(
                f"not asked: {over.stopped or over.refused}", Status.SKIPPED if over.stopped else Status.BUDGET
            )
        first = min((self, *inner, *around), key=RateLimiter._left)  # whose time is over first
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
        """The part of the budget that is used up, time aside, as a text; empty if none is."""
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


@contextmanager
def span(limiter: RateLimiter) -> Iterator[RateLimiter]:
    """Let every rate limiter that is made in a block admit its requests through `limiter` too.

    So a run of many parts, each with a concurrency and a patience of its own, has one budget and one rate.
    """
    token = spanning.set(limiter)
    try:
        yield limiter
    finally:
        spanning.reset(token)


@contextmanager
def use(limiter: RateLimiter) -> Iterator[RateLimiter]:
    """Put `limiter` in force for a block, and for threads that copy the context inside it.

    A warning at its end counts the answers with which no token counts came.
    """
    token = in_force.set(limiter)
    try:
        yield limiter
    finally:
        in_force.reset(token)
        if limiter.unreported:
            logger.warning(
                "%d answers came without usable token counts: tokens and dollars of this run are those of the others",
                limiter.unreported,
            )
