"""Model calls, with every request counted: the only place where a model may fail.

Every request passes the flow of the run around it (`metricsmith.model_calls.flow`). DSPy's own retries and its
fallback to a second adapter are off in here, so that our count of requests is what the server saw. A failure
becomes a status; which failures are tried again is told in `metricsmith.model_calls.failures`.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakSet

import dspy
from dspy.utils.exceptions import AdapterParseError

from metricsmith.errors import HopelessModel, JudgementFailed, NeedsError
from metricsmith.model_calls.adapters import Channel, ChoicesChannel, Repair, Replay
from metricsmith.model_calls.admission import Gate
from metricsmith.model_calls.failures import delay, rejects_choices
from metricsmith.model_calls.flow import Flow, in_force
from metricsmith.model_calls.limits import Concurrency
from metricsmith.model_calls.prices import offline_prices
from metricsmith.model_calls.requests import (
    Answer,
    NotAdmitted,
    ask,
    no_number,
    private_copy,
    unfinished,
    unread_answer,
)
from metricsmith.records import Status, Usage

__all__ = ["Call", "model_call", "model_calls"]

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
