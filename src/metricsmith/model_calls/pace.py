"""The number of requests in flight, which follows the server, and how a request ended as far as that is concerned.

Additive increase, multiplicative decrease (Chiu and Jain 1989), with a slow start. Congestion shows as throttling, or
as answers that take more than twice as long as they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from statistics import median

from metricsmith.model_calls.limits import Concurrency

__all__ = ["Outcome", "Pace", "Ticket"]

START = 8  # requests in flight at first
SHRINK, EASE = 0.5, 0.8  # what is left of the limit after throttling, and after slow answers
SLOW = 2.0  # times the quickest round
FORGETTING = 1.001  # the quickest round counts for a little less with every round, so that a run can slow down
SMALLEST_ROUND = 8  # answers whose median says something


class Outcome(Enum):
    """The ends of a request that a flow tells apart."""

    ANSWERED = "answered"
    THROTTLED = "throttled"  # 429, 503
    FAILED = "failed"  # other 5xx, transport, time-out
    HOPELESS = "hopeless"  # 400, 401, 402, 403, 404: no retry can help


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to send one request: when it was given, in which epoch of the limit, and what it reserves.

    `outer` is the ticket of the flow around, where there is one.
    """

    started: float
    epoch: int
    tokens: float
    outer: Ticket | None = None


class Pace:
    """The adaptive limit within `bounds`."""

    def __init__(self, bounds: Concurrency) -> None:
        self.bounds = bounds
        self.epoch = 0  # rises with every decrease; what started before one does not cause another
        self._limit = float(bounds.high if bounds.low == bounds.high else max(bounds.low, min(START, bounds.high)))
        self._slow_start = True
        self._round: list[float] = []
        self._round_size = max(SMALLEST_ROUND, self.limit)
        self._quickest = float("inf")

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight."""
        return int(self._limit)

    def learn(self, ticket: Ticket, outcome: Outcome, seconds: float, *, full: bool) -> None:
        """Adapt to one ended request; `full`: the limit was in use."""
        if self.bounds.low == self.bounds.high or ticket.epoch < self.epoch:
            return
        if outcome is Outcome.THROTTLED:
            self._shrink(SHRINK)
        elif outcome is Outcome.ANSWERED:
            if full:
                self._limit = min(self.bounds.high, self._limit + (1.0 if self._slow_start else 1.0 / self._limit))
            self._time(seconds)
        elif outcome is Outcome.FAILED:
            self._time(seconds)

    def _time(self, seconds: float) -> None:
        """Compare each round's median with the quickest so far."""
        self._round.append(seconds)
        if len(self._round) < self._round_size:
            return
        middle = median(self._round)
        self._new_round()
        self._quickest = min(self._quickest * FORGETTING, middle)
        if middle > SLOW * self._quickest:
            self._shrink(EASE)

    def _shrink(self, share: float) -> None:
        self._limit = max(float(self.bounds.low), self._limit * share)
        self._slow_start = False
        self.epoch += 1
        self._new_round()

    def _new_round(self) -> None:
        self._round.clear()
        self._round_size = max(SMALLEST_ROUND, self.limit)
