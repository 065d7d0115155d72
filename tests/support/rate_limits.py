"""A limiter on a clock that tests move on, and requests through it."""

from __future__ import annotations

from metricsmith.model_calls.limits import RequestEnd
from metricsmith.model_calls.rate_limiter import Clock, RateLimiter
from metricsmith.records import Usage

__all__ = ["ONE", "Hand", "ask", "proven"]


ONE = Usage(1, 80, 20, 0.01)


class Hand(Clock):
    """A clock that waits by moving on; only a wait without end would block, and that is an error here."""

    def __init__(self):
        self.time = 0.0
        self.waits = 0

    def now(self):
        return self.time

    def wait(self, condition, seconds):
        assert seconds is not None, "would wait for ever"
        self.waits += 1
        self.time += seconds

    def pause(self, halted, seconds):
        self.time += seconds
        return halted.is_set()


def ask(limiter, clock, end=RequestEnd.ANSWERED, seconds=0.1, usage=ONE, message=""):
    permit = limiter.enter()
    clock.time += seconds
    limiter.leave(permit, end, usage, message)


def proven(concurrency, budget=None):
    """A limiter whose server has answered once."""
    clock = Hand()
    limiter = RateLimiter(concurrency, budget, clock=clock)
    ask(limiter, clock)
    return limiter, clock
