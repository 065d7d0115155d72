"""Model calls, with every request counted: the only place where a model may fail.

Every request passes the flow of the run around it (`metricsmith.model_calls.flow`). DSPy's own retries and its
fallback to a second adapter are off in here, so that our count of requests is what the server saw. A failure
becomes a status; which failures are tried again is told in `metricsmith.model_calls.failures`.
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from metricsmith.errors import HopelessModel, JudgementFailed, NeedsError
from metricsmith.model_calls.adapters import Channel, ChoicesChannel, Repair, Replay
from metricsmith.model_calls.admission import Gate
from metricsmith.model_calls.dspy_internals import gated, keep_in_cache, text_of
from metricsmith.model_calls.failures import (
    cut_off,
    delay,
    failure,
    filtered,
    one_line,
    refusal,
    rejects_choices,
    words,
)
from metricsmith.model_calls.flow import Flow, in_force
from metricsmith.model_calls.limits import Concurrency, offline_prices
from metricsmith.model_calls.models import redact, without_keys
from metricsmith.model_calls.reading import Unreadable, whole
from metricsmith.records import Status, Usage

__all__ = [
    "Answer",
    "Call",
    "NotAdmitted",
    "ask",
    "model_call",
    "model_calls",
    "no_number",
    "private_copy",
    "unfinished",
    "unread_answer",
    "unusable",
]

TIMEOUT = 120.0  # seconds without a byte, for models that name no time-out
REPAIRABLE = (Status.UNPARSABLE, Status.OUT_OF_RANGE)
_threads = threading.local()


class NotAdmitted(Exception):
    """The flow admits no more requests; not to be mixed up with what a module raises."""

    def __init__(self, message: str, status: Status, usage: Usage) -> None:
        super().__init__(message)
        self.status, self.usage = status, usage


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request brought.

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


def ask(module: dspy.Module, inputs: dict[str, Any], channel: Channel) -> Answer:
    """Run the module once, its requests through `channel`.

    Raises
    ------
    NotAdmitted
        If the flow is stopped or its budget spent.
    """
    problem = None
    try:
        with dspy.context(lm=channel.lm, adapter=channel, disable_history=False):
            answer = _run(module, inputs, channel)
    except Exception as raised:  # whatever a module makes of the end of a budget, it is the end; all else goes on
        if channel.gate.closed is None:
            raise
        problem = raised
    if (stopped := channel.gate.closed) is not None:  # also where the module made something of the error
        raise NotAdmitted(one_line(str(stopped)), Status(stopped.status), channel.gate.usage) from problem or stopped
    return replace(answer, cached=channel.gate.cached and answer.problem is None)


def _run(module: dspy.Module, inputs: dict[str, Any], channel: Channel) -> Answer:
    try:
        prediction = module(**inputs)
    except JudgementFailed as problem:
        return no_number(channel, problem)
    except AdapterParseError as problem:
        return unread_answer(channel, problem)
    except LMError as problem:
        cause = failure(problem)
        stopping = cause.stopping and not (isinstance(channel, ChoicesChannel) and rejects_choices(problem))
        usage = channel.gate.usage + Usage(requests=int(cause.sent))
        error = words(problem, channel.lm)
        return Answer(cause.status, usage, None, error, problem, again=cause.again, stopping=stopping)
    except (ConnectionError, TimeoutError) as problem:  # of a model class that leaves its client's errors as they are
        return Answer(
            Status.TRANSPORT, channel.gate.usage + Usage(requests=1), None, words(problem, channel.lm), problem,
            again=True,
        )  # fmt: skip
    cut = unfinished(channel)
    if cut is not None:
        return cut
    if channel.entries and getattr(channel.lm, "past_cache", False):
        keep_in_cache(channel.lm, channel.asked, channel.entries[-1])
    return Answer(Status.OK, channel.gate.usage, prediction)


def unfinished(channel: Channel, choice: int = 0) -> Answer | None:
    """The failure of an answer that was cut off or filtered; None for one that came to its end."""
    response = channel.entries[-1].get("response") if channel.entries else None
    if filtered(response, choice):
        return unusable(channel, Status.UNPARSABLE, "", "", None, choice)
    if not cut_off(response, choice):
        return None
    error = "the answer was cut off at the limit of tokens: raise the model's max_tokens"
    return unusable(channel, Status.UNPARSABLE, error, "it was cut off before its end; be brief", None, choice)


def unusable(
    channel: Channel, status: Status, error: str, complaint: str, fields: Sequence[str] | None = None, choice: int = 0
) -> Answer:
    """An answer that came and is of no use: a refusal, or one that may be repaired.

    `fields` are those that could not be read; None if they could, for what can be read is no refusal, unless the
    server says that it is.
    """
    usage = channel.gate.usage
    entry = channel.entries[-1] if channel.entries else None
    if entry is None or status not in REPAIRABLE:
        return Answer(status, usage, error=error)
    text = without_keys(whole(text_of(entry, choice)), channel.lm)
    if said := refusal(entry.get("response"), choice, text, fields, channel.lm):
        return Answer(Status.REFUSED, usage, error=one_line(f"the model refuses: {said}"))
    return Answer(status, usage, error=error, repair=Repair(channel.asked, text, complaint))


def no_number(channel: Channel, problem: JudgementFailed, choice: int = 0) -> Answer:
    """An answer that was read, and from which the module got no number."""
    error = one_line(redact(str(problem), channel.lm))
    if not problem.repairable:
        return Answer(Status(problem.status), channel.gate.usage, error=error)
    return unusable(channel, Status(problem.status), error, error, None, choice)


def unread_answer(channel: Channel, problem: AdapterParseError, choice: int = 0) -> Answer:
    """An answer from which the fields could not be read, for the reason given by `problem`."""
    if isinstance(problem, Unreadable):
        fault, complaint = redact(problem.fault, channel.lm), problem.complaint
    else:  # of an adapter that reads in its own way
        fault, complaint = f"the answer cannot be read: {words(problem, channel.lm)}", "its fields cannot be told apart"
    fields = list(problem.signature.output_fields)
    return unusable(channel, Status.UNPARSABLE, one_line(fault), complaint, fields, choice)


def private_copy(lm: Any, *, fresh: bool = False, run: int = 0, **settings: Any) -> Any:
    """A gated copy of `lm` that this thread alone uses, without retries; made anew when the model's settings change.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
    fresh : bool
        Whether answers from DSPy's cache are out of the question; the copy's ``past_cache`` says that there are any.
    run : int
        Repetition number.
    **settings
        What else the copy has of its own.
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
        known[1][key] = gated(lm.copy(**own), n=settings.get("n"))
        known[1][key].past_cache = fresh and bool(getattr(lm, "cache", False))
    return known[1][key]


TRIES = 5  # requests that fail on their way, before the call fails
PARSE_TRIES = 2  # unusable answers, before the call fails: one repair
LONGEST_WISH = 600.0  # seconds: a server that asks for a longer pause is asked again by the next run, not by this one
FIRST_PAUSE = 0.5  # seconds before the second try of a transport failure; doubles from there
WITHOUT_LIMIT = Concurrency(10_000, 10_000)
_one_at_a_time: WeakSet[Any] = WeakSet()  # models whose servers give one answer per request only
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """How a call ended: `prediction` is None unless `status` is ok."""

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
    like are not asked again. Without a flow in force the call has no limit but its own.

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
        Without a flow in force: if no retry can help (wrong key, no credit, unknown model).
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
    line, channels = _Line(module, inputs, tries), []
    settings: dict[str, Any] = {"engine": "litellm", "n": len(runs)}
    if list(runs) != list(range(len(runs))):
        settings["rollout_id"] = zlib.crc32(repr(list(runs)).encode())
    private: Callable[[Any], Any] = partial(private_copy, **settings)

    def channel() -> Channel:
        channels.append(ChoicesChannel.opened(private(lm), private, Gate(line.flow, choices=True)))
        return channels[-1]

    try:
        answer = line.ask(channel)
    except NotAdmitted as stopped:
        return line.all_failed(runs, stopped.status, str(stopped))
    rejected = rejects_choices(answer.problem)
    if answer.problem is not None and not rejected:
        return line.all_failed(runs, answer.status, answer.error)
    choices = channels[-1].choices if len(channels[-1].entries) == 1 else []
    shared = line.cost()
    calls = [
        _settle(module, inputs, run, channels[-1], place, tries, parse_tries)
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
    channel: ChoicesChannel,
    place: int,
    tries: int,
    parse_tries: int,
) -> Call:
    """The call that one of several answers ends, or begins if it needs repair or is an old one of no use."""
    fields = channel.choices[place]
    if isinstance(fields, AdapterParseError):
        answer = unread_answer(channel, fields, place)
    elif (cut := unfinished(channel, place)) is not None:
        answer = cut
    else:
        try:
            with dspy.context(lm=channel.lm, adapter=Replay(fields)):
                return Call(module(**inputs), Status.OK, "", Usage())
        except JudgementFailed as problem:
            answer = no_number(channel, problem, place)
    if channel.gate.cached:  # its repair of that time, if there was one, has a place of its own in the cache
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
    """One request, its retries and repairs; it may begin with the repair of an answer that is known already.

    An answer from DSPy's cache that cannot be used counts for nothing: the same is asked once more, past the cache.
    """
    lm, line, fresh = dspy.settings.lm or _model_of(module), _Line(module, inputs, tries), repair is not None
    left = max(1, parse_tries)
    try:
        while left:
            private = partial(private_copy, fresh=fresh, run=run)
            answer = line.ask(partial(_channel, lm, private, line.flow, repair))
            if answer.cached and answer.status is not Status.OK and not fresh:
                fresh = True
                continue
            repair, fresh, left = answer.repair, True, left - 1
            if repair is None:
                break
    except NotAdmitted as stopped:
        return Call(None, stopped.status, str(stopped), line.cost())
    return Call(answer.prediction, answer.status, answer.error, line.cost())


def _channel(lm: Any, private: Callable[[Any], Any], flow: Flow, repair: Repair | None) -> Channel:
    return Channel.opened(private(lm), private, Gate(flow), repair)


class _Line:
    """The requests of one call, and what they cost."""

    def __init__(self, module: dspy.Module, inputs: dict[str, Any], tries: int) -> None:
        self.module, self.inputs, self.tries = module, inputs, tries
        outer = in_force()
        self.alone = outer is None
        self.flow = outer or Flow(WITHOUT_LIMIT)
        self.usage, self.lost, self.started = Usage(), 0, time.perf_counter()

    def ask(self, channel: Callable[[], Channel]) -> Answer:
        """Send a request until it is answered, cannot be, or has failed too often; each through a new channel.

        Raises
        ------
        NotAdmitted
            If the flow is stopped or its budget spent.
        HopelessModel
            Without a flow in force, if no request can succeed.
        """
        while True:
            try:
                answer = ask(self.module, self.inputs, channel())
            except NotAdmitted as stopped:
                self.usage += stopped.usage
                raise
            self.usage += answer.usage
            if answer.stopping and self.alone:
                raise HopelessModel(f"the model refuses to work: {answer.error}", usage=self.usage) from answer.problem
            self.lost += answer.again
            if not answer.again or self.lost >= self.tries:
                return answer
            seconds = delay(answer.problem, self.lost, FIRST_PAUSE)
            if seconds > LONGEST_WISH or not self.flow.pause(seconds):
                return answer

    def cost(self) -> Usage:
        """What all requests so far cost, and how long they took."""
        return replace(self.usage, seconds=time.perf_counter() - self.started)

    def all_failed(self, runs: Sequence[int], status: Status, error: str) -> list[Call]:
        """The same failure for every run, with the cost in the first."""
        return [Call(None, status, error, Usage() if place else self.cost()) for place in range(len(runs))]


def _model_of(module: dspy.Module) -> Any:
    """The model that the module's first predictor will use."""
    own = next((predictor.lm for _, predictor in module.named_predictors() if predictor.lm is not None), None)
    lm = own or dspy.settings.lm
    if lm is None:
        raise NeedsError("no language model is set: pass lm=dspy.LM('provider/model') or call dspy.configure(lm=...)")
    return lm


def _takes_choices(lm: Any) -> bool:
    """Whether several answers may come with one request: only through litellm, and only for chat."""
    return (
        isinstance(lm, dspy.LM)
        and getattr(lm, "engine", None) in ("auto", "litellm")
        and lm.model_type == "chat"
        and lm not in _one_at_a_time
    )
