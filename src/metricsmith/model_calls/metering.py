"""Metered models: copies of a language model whose requests a rate limiter admits and a meter counts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import LMError

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.dspy_internals import AnswerTracker, came_from_cache, entry_usage, metered
from metricsmith.model_calls.failures import delay, error_text, failure, redact_error, rejects_choices
from metricsmith.model_calls.limits import RequestEnd
from metricsmith.model_calls.rate_limiter import Permit, RateLimiter
from metricsmith.records import Usage

__all__ = ["RequestMeter", "Sender", "Tries", "private_copy"]

TIMEOUT = 120.0  # seconds without a byte, for models that name no time-out
FIRST_PAUSE = 0.5  # seconds before the second try of a transport failure; doubles from there
LONGEST_WISH = 600.0  # seconds: a server that asks for a longer pause is asked again by the next run, not by this one


class Sender(Protocol):
    """The way by which a metered model sends its requests.

    Its method ``record``, where it has one, takes the entries that DSPy would write in the model's history.
    """

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send a request and return what it returns."""

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """The same as `send`, without blocking the event loop."""


class RequestMeter:
    """Sends the requests of one call through a rate limiter, one by one, and keeps what they brought.

    Parameters
    ----------
    limiter : RateLimiter
    choices : bool
        Whether the requests ask for several answers at once: a server that takes no such wish has not refused to
        work, since the single request is still to be tried.

    Attributes
    ----------
    entries : list of dict
        DSPy's history of the requests that were answered.
    usage : Usage
        The cost of the answered requests.
    cached : bool
        True if the latest answer came from DSPy's cache.
    closed : JudgementFailed or None
        The rate limiter's reason not to admit a request; a caller that swallows that error has no answer all the same.
    """

    def __init__(self, limiter: RateLimiter, *, choices: bool = False) -> None:
        self.limiter, self.choices = limiter, choices
        self.entries: list[dict[str, Any]] = []
        self.usage, self.cached = Usage(), False
        self._booking = threading.Lock()  # a module may send several requests side by side, in threads of its own
        self.closed: JudgementFailed | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> RequestMeter:
        return self

    def record(self, entry: dict[str, Any]) -> None:
        """Take an entry of DSPy's history, in the thread or task of its request."""
        self.entries.append(entry)
        if (tracker := _TRACKER.get()) is None:  # of no request of ours
            self._book(entry_usage(entry))
            self.cached = came_from_cache(entry)
        else:  # its cost is booked when the request ends
            tracker.record(entry)
            self.cached = entry["cache_hit"]

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send one request.

        Raises
        ------
        JudgementFailed
            If the rate limiter is stopped or its budget spent.
        LMError or another error
            As the request raises it.
        """
        with self._booked(lm, self._permit()):
            return request()

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """The same as `send`; waits for admission beside the event loop, on which the requests ahead may depend."""
        with self._booked(lm, await asyncio.to_thread(self._permit)):
            return await request()

    def _permit(self) -> Permit:
        try:
            return self.limiter.enter()
        except JudgementFailed as stopped:
            self.closed = stopped
            raise

    def _book(self, usage: Usage) -> None:
        with self._booking:
            self.usage += usage

    @contextmanager
    def _booked(self, lm: Any, permit: Permit) -> Iterator[None]:
        """Tell the rate limiter how the request inside ended."""
        tracker = AnswerTracker(dspy.settings.usage_tracker)
        token = _TRACKER.set(tracker)
        end, lost, message = RequestEnd.FAILED, 1, ""
        try:
            with dspy.context(usage_tracker=tracker):
                yield
            end, lost = RequestEnd.ANSWERED, int(not tracker.entries)
        except LMError as problem:
            redact_error(problem, lm)
            cause = failure(problem)
            forgiven = self.choices and rejects_choices(problem)
            end, lost = RequestEnd.FAILED if forgiven else cause.end, int(cause.sent)
            message = error_text(problem, lm)
            self.limiter.barred |= cause.stopping and not forgiven
            raise
        except BaseException as problem:
            redact_error(problem, lm)
            raise
        finally:
            _TRACKER.reset(token)
            self._book(tracker.usage)
            usage = Usage(requests=lost) + tracker.usage
            self.limiter.leave(permit, end, usage, message, unreported=tracker.unreported)


@dataclass(slots=True)
class Tries:
    """The tries of one request that fail on their way, and the pauses between them.

    Parameters
    ----------
    limiter : RateLimiter
        Ends a pause when it is stopped or its time is over.
    most : int
        How many tries may fail.
    lost : int
        How many have failed so far.
    """

    limiter: RateLimiter
    most: int
    lost: int = 0

    def another(self, problem: Any) -> bool:
        """Count a try that failed with `problem` and wait before the next; False where there is to be none."""
        self.lost += 1
        if self.lost >= self.most:
            return False
        seconds = delay(problem, self.lost, FIRST_PAUSE)
        return seconds <= LONGEST_WISH and self.limiter.pause(seconds)


# The answers to the one request that this thread or task is sending: a meter may have several under way.
_TRACKER: ContextVar[AnswerTracker | None] = ContextVar("metricsmith_answer_tracker", default=None)
_threads = threading.local()


def private_copy(lm: Any, *, fresh: bool = False, run: int = 0, **settings: Any) -> Any:
    """A metered copy of `lm` that this thread alone uses, without retries; made anew when the model's settings change.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
    fresh : bool
        Whether answers from DSPy's cache are out of the question; the copy's ``past_cache`` says that there are any.
    run : int
        Repetition number.
    **settings
        Other settings that are the copy's own.
    """
    copies: WeakKeyDictionary[Any, tuple[Any, dict[Any, Any]]] = _threads.__dict__.setdefault(
        "copies", WeakKeyDictionary()
    )
    now = (lm.model, lm.cache, lm.kwargs, lm.callbacks)
    known = copies.get(lm)
    if known is None or known[0] != now:
        known = copies[lm] = ((lm.model, lm.cache, dict(lm.kwargs), list(lm.callbacks)), {})
    key = (fresh, run, *settings.items())
    if key not in known[1]:
        own: dict[str, Any] = {"num_retries": 0, **settings}
        if isinstance(getattr(lm, "engine", None), str) and lm.kwargs.get("timeout") is None:
            own["timeout"] = TIMEOUT
        if fresh:
            own["cache"] = False
        if run:
            own.setdefault("rollout_id", run)
        known[1][key] = metered(lm.copy(**own), n=settings.get("n"))
        known[1][key].past_cache = fresh and bool(getattr(lm, "cache", False))
    return known[1][key]
