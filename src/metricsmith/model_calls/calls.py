"""Model calls, with every request counted: the only place where a model may fail.

A call is a retry loop: each try sends one request through a request adapter, on a private metered copy of the model,
and what comes back is read and classified. Every request passes the rate limiter in force
(`metricsmith.model_calls.rate_limiter`). DSPy's own retries and its fallback to a second adapter are off in here, so
that our count is what the server saw. A failure becomes a status; `failures` tells which of them are tried again.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from metricsmith.errors import HopelessModel, JudgementFailed, NeedsError
from metricsmith.model_calls.adapters import ChoicesAdapter, Repair, Replay, RequestAdapter
from metricsmith.model_calls.dspy_internals import finish_reason, keep_in_cache, text_of
from metricsmith.model_calls.failures import error_text, failure, refusal, rejects_choices, short_line
from metricsmith.model_calls.limits import Concurrency, offline_prices
from metricsmith.model_calls.metering import RequestMeter, Tries, private_copy
from metricsmith.model_calls.models import redact, without_keys
from metricsmith.model_calls.rate_limiter import RateLimiter, in_force
from metricsmith.model_calls.reading import UnreadableAnswer, whole
from metricsmith.records import Status, Usage

__all__ = ["Call", "model_call", "model_calls"]

TRIES = 5  # requests that fail on their way, before the call fails
PARSE_TRIES = 2  # unusable answers, before the call fails: one repair
WITHOUT_LIMIT = Concurrency(10_000, 10_000)
_one_at_a_time: WeakSet[Any] = WeakSet()  # models whose servers give one answer per request only
_log = logging.getLogger(__name__)

AnyAdapter = TypeVar("AnyAdapter", bound=RequestAdapter)


@dataclass(frozen=True, slots=True)
class Call:
    """The end of a call; `prediction` is None unless `status` is ok."""

    prediction: Any
    status: Status
    error: str
    usage: Usage

    def result(self) -> Any:
        """The prediction, or `JudgementFailed`."""
        if self.prediction is None:
            raise JudgementFailed(self.error, self.status, self.usage)
        return self.prediction


def model_call(
    module: dspy.Module, /, *, tries: int = TRIES, parse_tries: int = PARSE_TRIES, run: int = 0, **inputs: Any
) -> Call:
    """Call a module on the language model in force and account for every request.

    At most ``tries + parse_tries - 1`` requests are sent: a request that fails on its way is sent again after a
    pause, and an unusable answer is shown to the model with what is wrong with it. Refusals, wrong keys and the
    like are not asked again. Without a rate limiter in force the call has no limit but its own.

    Parameters
    ----------
    module : dspy.Module
        Makes one language-model request per call. Its predictors' own models come before the one in force.
    tries : int
        How many requests may fail on their way (time-outs, 429, 5xx, broken responses) before the call fails.
    parse_tries : int
        How many unusable answers are borne before the call fails.
    run : int
        Repetition number; runs after the first get their own place in the cache.
    **inputs
        The module's inputs.

    Returns
    -------
    Call
        ``usage`` has every request that was sent, also for a call that failed.

    Raises
    ------
    NeedsError
        If no language model is set.
    HopelessModel
        Without a rate limiter in force: if no retry can help (wrong key, no credit, unknown model).
    """
    return _converse(module, inputs, run, tries, parse_tries)


def model_calls(
    module: dspy.Module,
    /,
    runs: Sequence[int],
    *,
    tries: int = TRIES,
    parse_tries: int = PARSE_TRIES,
    **inputs: Any,
) -> list[Call]:
    """`model_call` for several repetitions, carried by one request where the provider takes ``n``.

    Every answer is read on its own, and the module runs once more for each. Answers that do not come, or cannot
    be used, are asked for singly, the latter as a repair. Where the server takes no ``n``, or the model is a
    custom engine, every run is a request of its own.

    Parameters
    ----------
    module : dspy.Module
        Makes one language-model request per call.
    runs : sequence of int
        Repetition numbers, all different.
    tries, parse_tries, **inputs
        As for `model_call`; `parse_tries` holds for each run.

    Returns
    -------
    list of Call
        In the order of `runs`. What the shared request cost stands in the first.

    Raises
    ------
    NeedsError, HopelessModel
        As `model_call` raises them.
    """
    if len(runs) < 2 or not _takes_choices(lm := _model_of(module)):
        return [_converse(module, inputs, run, tries, parse_tries) for run in runs]
    offline_prices()
    settings: dict[str, Any] = {"engine": "litellm", "n": len(runs)}
    if list(runs) != list(range(len(runs))):
        settings["rollout_id"] = zlib.crc32(repr(list(runs)).encode())
    loop = _RetryLoop(module, inputs, tries)
    try:
        adapter, answer = loop.ask(ChoicesAdapter, lm, partial(private_copy, **settings))
    except NotAdmitted as stopped:
        return loop.all_failed(runs, stopped.status, str(stopped))
    rejected = rejects_choices(answer.problem)
    if answer.problem is not None and not rejected:
        return loop.all_failed(runs, answer.status, answer.error)
    choices = adapter.choices if len(adapter.meter.entries) == 1 else []
    shared = loop.cost()
    calls = [
        _settle(module, inputs, run, adapter, place, tries, parse_tries)
        if place < len(choices)
        else _converse(module, inputs, run, tries, parse_tries)
        for place, run in enumerate(runs)
    ]
    if rejected and lm not in _one_at_a_time and any(call.status is Status.OK for call in calls):
        _log.warning("%s takes no n, so that every run is a request of its own: %s", lm.model, answer.error)
        _one_at_a_time.add(lm)
    return [replace(calls[0], usage=shared + calls[0].usage), *calls[1:]]


def _settle(
    module: dspy.Module,
    inputs: dict[str, Any],
    run: int,
    adapter: ChoicesAdapter,
    place: int,
    tries: int,
    parse_tries: int,
) -> Call:
    """The call for one of several answers: ended by it, or begun where it needs repair or is an old one of no use."""
    fields = adapter.choices[place]
    if isinstance(fields, AdapterParseError):
        answer = _unread(adapter, fields, place)
    elif (cut := _unfinished(adapter, place)) is not None:
        answer = cut
    else:
        try:
            with dspy.context(lm=adapter.lm, adapter=Replay(fields)):
                return Call(module(**inputs), Status.OK, "", Usage())
        except JudgementFailed as problem:
            answer = _without_number(adapter, problem, place)
    if adapter.meter.cached:  # its repair of that time, if there was one, has a place of its own in the cache
        return _converse(module, inputs, run, tries, parse_tries)
    if answer.repair is None or parse_tries < 2:
        return Call(None, answer.status, answer.error, Usage())
    return _converse(module, inputs, run, tries, parse_tries - 1, answer.repair)


def _converse(
    module: dspy.Module,
    inputs: dict[str, Any],
    run: int,
    tries: int,
    parse_tries: int,
    repair: Repair | None = None,
) -> Call:
    """Send one request, its retries and repairs; begins with the repair of an answer that is known already, if given.

    An answer from DSPy's cache that cannot be used counts for nothing: the same is asked once more, past the cache.
    """
    lm, loop, fresh = dspy.settings.lm or _model_of(module), _RetryLoop(module, inputs, tries), repair is not None
    left = max(1, parse_tries)
    try:
        while left:
            _, answer = loop.ask(RequestAdapter, lm, partial(private_copy, fresh=fresh, run=run), repair)
            if answer.cached and answer.status is not Status.OK and not fresh:
                fresh = True
                continue
            repair, fresh, left = answer.repair, True, left - 1
            if repair is None:
                break
    except NotAdmitted as stopped:
        return Call(None, stopped.status, str(stopped), loop.cost())
    return Call(answer.prediction, answer.status, answer.error, loop.cost())


class NotAdmitted(Exception):
    """The rate limiter admits no more requests; not to be mixed up with what a module raises."""

    def __init__(self, message: str, status: Status, usage: Usage) -> None:
        super().__init__(message)
        self.status, self.usage = status, usage


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one try.

    `again` says that it failed on its way and may be sent again, `stopping` that no other can do better,
    `repair` that the model may do better when it sees what it wrote, `cached` that DSPy's cache gave it, where an
    answer that cannot be used may be a server's fault of long ago.
    """

    status: Status
    usage: Usage
    prediction: Any = None
    error: str = ""
    problem: Any = None
    again: bool = False
    stopping: bool = False
    repair: Repair | None = None
    cached: bool = False


class _RetryLoop:
    """The tries of one call, and what they cost."""

    def __init__(self, module: dspy.Module, inputs: dict[str, Any], tries: int) -> None:
        self.module, self.inputs = module, inputs
        around = in_force.get()
        self.alone = around is None
        self.limiter = around or RateLimiter(WITHOUT_LIMIT)
        self.tries = Tries(self.limiter, tries)
        self.usage, self.started = Usage(), time.perf_counter()

    def ask(
        self, kind: type[AnyAdapter], lm: Any, private: Callable[[Any], Any], repair: Repair | None = None
    ) -> tuple[AnyAdapter, Answer]:
        """Send a request until it is answered, cannot be, or has failed too often; each try has an adapter of its own.

        Raises
        ------
        NotAdmitted
            If the rate limiter is stopped or its budget spent.
        HopelessModel
            Without a rate limiter in force, if no request can succeed.
        """
        while True:
            meter = RequestMeter(self.limiter, choices=kind is ChoicesAdapter)
            adapter = kind.opened(private(lm), private, meter, repair)
            try:
                answer = _answer(self.module, self.inputs, adapter)
            except NotAdmitted as stopped:
                self.usage += stopped.usage
                raise
            self.usage += answer.usage
            if answer.stopping and self.alone:
                raise HopelessModel(f"the model refuses to work: {answer.error}", usage=self.usage) from answer.problem
            if not answer.again or not self.tries.another(answer.problem):
                return adapter, answer

    def cost(self) -> Usage:
        """The cost of all requests so far, and how long they took."""
        return replace(self.usage, seconds=time.perf_counter() - self.started)

    def all_failed(self, runs: Sequence[int], status: Status, error: str) -> list[Call]:
        """The same failure for every run, with the cost in the first."""
        return [Call(None, status, error, Usage() if place else self.cost()) for place in range(len(runs))]


def _answer(module: dspy.Module, inputs: dict[str, Any], adapter: RequestAdapter) -> Answer:
    """Run the module once, its requests through `adapter`; raises `NotAdmitted` where the rate limiter stopped it."""
    meter, problem = adapter.meter, None
    try:
        with dspy.context(lm=adapter.lm, adapter=adapter, disable_history=False):
            answer = _classified(module, inputs, adapter)
    except Exception as raised:  # a module may turn the end of a budget into another error; all else goes on
        if meter.closed is None:
            raise
        problem = raised
    if (stopped := meter.closed) is not None:  # also where the module made something of the error
        raise NotAdmitted(short_line(str(stopped)), Status(stopped.status), meter.usage) from problem or stopped
    return replace(answer, cached=meter.cached and answer.problem is None)


def _classified(module: dspy.Module, inputs: dict[str, Any], adapter: RequestAdapter) -> Answer:
    """The module's prediction, or the failure that its error means."""
    meter = adapter.meter
    try:
        prediction = module(**inputs)
    except JudgementFailed as problem:
        return _without_number(adapter, problem)
    except AdapterParseError as problem:
        return _unread(adapter, problem)
    except LMError as problem:
        cause = failure(problem)
        stopping = cause.stopping and not (meter.choices and rejects_choices(problem))
        usage = meter.usage + Usage(requests=int(cause.sent))
        error = error_text(problem, adapter.lm)
        return Answer(cause.status, usage, None, error, problem, again=cause.again, stopping=stopping)
    except (ConnectionError, TimeoutError) as problem:  # of a model class that leaves its client's errors as they are
        usage = meter.usage + Usage(requests=1)
        return Answer(Status.TRANSPORT, usage, None, error_text(problem, adapter.lm), problem, again=True)
    if (cut := _unfinished(adapter)) is not None:
        return cut
    if meter.entries and getattr(adapter.lm, "past_cache", False):
        keep_in_cache(adapter.lm, adapter.asked, meter.entries[-1])
    return Answer(Status.OK, meter.usage, prediction)


def _unfinished(adapter: RequestAdapter, choice: int = 0) -> Answer | None:
    """The failure of an answer that was cut off or filtered; None for one that came to its end."""
    entries = adapter.meter.entries
    reason = finish_reason(entries[-1].get("response") if entries else None, choice)
    if reason == "content_filter":
        return _unusable(adapter, Status.UNPARSABLE, "", "", None, choice)
    if reason != "length":
        return None
    error = "the answer was cut off at the limit of tokens: raise the model's max_tokens"
    return _unusable(adapter, Status.UNPARSABLE, error, "it was cut off before its end; be brief", None, choice)


def _without_number(adapter: RequestAdapter, problem: JudgementFailed, choice: int = 0) -> Answer:
    """An answer that was read, but held no number for the module."""
    error = short_line(redact(str(problem), adapter.lm))
    if not problem.repairable:
        return Answer(Status(problem.status), adapter.meter.usage, error=error)
    return _unusable(adapter, Status(problem.status), error, error, None, choice)


def _unread(adapter: RequestAdapter, problem: AdapterParseError, choice: int = 0) -> Answer:
    """An answer from which the fields could not be read, for the reason given by `problem`."""
    if isinstance(problem, UnreadableAnswer):
        fault, complaint = redact(problem.fault, adapter.lm), problem.complaint
    else:  # of an adapter that reads in its own way
        fault = f"the answer cannot be read: {error_text(problem, adapter.lm)}"
        complaint = "its fields cannot be told apart"
    return _unusable(
        adapter, Status.UNPARSABLE, short_line(fault), complaint, list(problem.signature.output_fields), choice
    )


def _unusable(
    adapter: RequestAdapter, status: Status, error: str, complaint: str, fields: Sequence[str] | None, choice: int
) -> Answer:
    """An answer that came and is of no use: a refusal, or one that may be repaired.

    `fields` are those that could not be read; None if they could, for what can be read is no refusal, unless the
    server says that it is.
    """
    entries, usage = adapter.meter.entries, adapter.meter.usage
    if not entries or status not in (Status.UNPARSABLE, Status.OUT_OF_RANGE):
        return Answer(status, usage, error=error)
    text = without_keys(whole(text_of(entries[-1], choice)), adapter.lm)
    if refused := refusal(entries[-1].get("response"), choice, text, fields, adapter.lm):
        return Answer(Status.REFUSED, usage, error=short_line(f"the model refuses: {refused}"))
    return Answer(status, usage, error=error, repair=Repair(adapter.asked, text, complaint))


def _model_of(module: dspy.Module) -> Any:
    """The model that the module's first predictor will use."""
    own = (predictor.lm for _, predictor in module.named_predictors() if predictor.lm is not None)
    lm = next(own, None) or dspy.settings.lm
    if lm is None:
        raise NeedsError("no language model is set: pass lm=dspy.LM('provider/model') or call dspy.configure(lm=...)")
    return lm


def _takes_choices(lm: Any) -> bool:
    """True if several answers may come with one request: only through litellm, and only for chat."""
    return (
        isinstance(lm, dspy.LM)
        and getattr(lm, "engine", None) in ("auto", "litellm")
        and lm.model_type == "chat"
        and lm not in _one_at_a_time
    )
