"""One model call, with every request counted: the only place where a model may fail.

Every request passes the flow of the run around it (`metricsmith.scoring.flow`). DSPy's own retries and its
fallback to a second adapter are off in here, so that our count of requests is what the server saw. A failure
becomes a status; which failures are tried again is told in `metricsmith.scoring.faults`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from metricsmith.errors import JudgementFailed, ModelFailure, NeedsError
from metricsmith.records import Status, Usage
from metricsmith.scoring.adapters import Channel, Repair, complaint, whole
from metricsmith.scoring.faults import delay, fault, one_line, refusal, unread, words
from metricsmith.scoring.flow import Flow, Outcome, in_force
from metricsmith.scoring.limits import Concurrency

__all__ = ["Call", "model_call"]

TRIES = 5  # requests that fail on their way, before the call fails
PARSE_TRIES = 2  # unusable answers, before the call fails: one repair
FIRST_PAUSE = 0.5  # seconds before the second try of a transport failure; doubles from there
TIMEOUT = 120.0  # seconds without a byte, for models that name no time-out
WITHOUT_LIMIT = Concurrency(10_000, 10_000)
REPAIRABLE = (Status.UNPARSABLE, Status.OUT_OF_RANGE)
_threads = threading.local()


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
    ModelFailure
        Without a flow in force: if no retry can help (wrong key, no credit, unknown model).
    """
    return converse(module, inputs, tries=tries, parse_tries=parse_tries, run=run)


def converse(
    module: dspy.Module,
    inputs: dict[str, Any],
    *,
    tries: int = TRIES,
    parse_tries: int = PARSE_TRIES,
    run: int = 0,
    repair: Repair | None = None,
) -> Call:
    """`model_call`, which may start with the repair of an answer that is known already."""
    lm, flow = _model(module), in_force()
    alone = flow is None
    flow = flow or Flow(WITHOUT_LIMIT)
    started, usage, lost, unusable = time.perf_counter(), Usage(), 0, 0
    while True:
        private = partial(private_copy, fresh=repair is not None, run=run)
        try:
            answer = ask(module, inputs, Channel(private(lm), private, repair), flow)
        except NotAdmitted as stopped:
            return Call(None, stopped.status, str(stopped), _timed(usage, started))
        usage += answer.usage
        if answer.status is Status.OK:
            break
        if answer.stopping and alone:
            raise ModelFailure(f"the model refuses to work: {answer.error}") from answer.problem
        if answer.repair is not None:
            repair, unusable = answer.repair, unusable + 1
            if unusable >= parse_tries:
                break
        elif answer.again:
            lost += 1
            if lost >= tries or not flow.pause(delay(answer.problem, lost, FIRST_PAUSE)):
                break
        else:
            break
    return Call(answer.prediction, answer.status, answer.error, _timed(usage, started))


class NotAdmitted(Exception):
    """The flow admits no more requests; not to be mixed up with what a module raises."""

    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request brought.

    `again` says that it failed on its way and may be sent again, `stopping` that no other can do better,
    `repair` that the model may do better when it sees what it wrote.
    """

    status: Status
    usage: Usage
    prediction: Any = None
    error: str = ""
    outcome: Outcome = Outcome.ANSWERED
    problem: Any = None
    again: bool = False
    stopping: bool = False
    repair: Repair | None = None


def ask(module: dspy.Module, inputs: dict[str, Any], channel: Channel, flow: Flow) -> Answer:
    """Run the module once, its request through `channel` and admitted by `flow`.

    Raises
    ------
    NotAdmitted
        If the flow is stopped or its budget spent.
    """
    try:
        ticket = flow.enter()
    except JudgementFailed as stopped:
        raise NotAdmitted(one_line(str(stopped)), Status(stopped.status)) from stopped
    answer = None
    try:
        with dspy.context(lm=channel.lm, adapter=channel, disable_history=False):
            answer = _run(module, inputs, channel)
    finally:
        if answer is None:  # an error that is none of the model's
            flow.leave(ticket, Outcome.FAILED, spent(channel))
        else:
            flow.leave(ticket, answer.outcome, answer.usage, answer.error)
    return answer


def _run(module: dspy.Module, inputs: dict[str, Any], channel: Channel) -> Answer:
    try:
        prediction = module(**inputs)
    except JudgementFailed as problem:
        return unusable(channel, Status(problem.status), one_line(str(problem)), one_line(str(problem)))
    except AdapterParseError as problem:
        return unusable(channel, Status.UNPARSABLE, unread(problem), complaint(problem), fields_of(problem))
    except (RecursionError, OverflowError) as problem:
        error = f"the answer cannot be read: {words(problem, channel.lm)}"
        return unusable(channel, Status.UNPARSABLE, error, "it cannot be read")
    except LMError as problem:
        cause = fault(problem)
        usage = spent(channel) + Usage(requests=int(cause.sent))
        error = words(problem, channel.lm)
        return Answer(
            cause.status, usage, None, error, cause.outcome, problem, again=cause.again, stopping=cause.stopping
        )
    return Answer(Status.OK, spent(channel), prediction)


def unusable(
    channel: Channel, status: Status, error: str, complaint: str, fields: Sequence[str] | None = None, choice: int = 0
) -> Answer:
    """An answer that came and is of no use: a refusal, or one that may be repaired.

    `fields` are those that could not be read; None if they could, for what can be read is no refusal.
    """
    usage = spent(channel)
    entry = channel.entries[-1] if channel.entries else None
    if entry is None or status not in REPAIRABLE:
        return Answer(status, usage, error=error)
    outputs = entry.get("outputs") or []
    output = outputs[choice] if choice < len(outputs) else None
    text = whole(str((output.get("text") if isinstance(output, dict) else output) or ""))
    if fields is not None and (said := refusal(entry.get("response"), choice, text, fields)):
        return Answer(Status.REFUSED, usage, error=one_line(f"the model refuses: {said}"))
    return Answer(status, usage, error=error, repair=Repair(entry.get("messages") or [], text, complaint))


def fields_of(problem: AdapterParseError) -> list[str]:
    """The fields that could not be read."""
    return list(problem.signature.output_fields)


def _model(module: dspy.Module) -> Any:
    """The model in force, or one that the module has of its own."""
    if dspy.settings.lm is not None:
        return dspy.settings.lm
    for _, predictor in module.named_predictors():
        if predictor.lm is not None:
            return predictor.lm
    raise NeedsError("no language model is set: pass lm=dspy.LM('provider/model') or call dspy.configure(lm=...)")


def private_copy(lm: Any, *, fresh: bool = False, run: int = 0, **settings: Any) -> Any:
    """A copy of `lm` that this thread alone uses, without retries; made anew when the model's settings change.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
    fresh : bool
        Whether answers from DSPy's cache are out of the question.
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
        known[1][key] = lm.copy(**own)
    return known[1][key]


def spent(channel: Channel) -> Usage:
    """What the answered requests of a channel cost; an answer from the cache costs nothing."""
    total = Usage()
    for entry in channel.entries:
        if not _cached(entry):
            tokens = entry.get("usage") or {}
            asked, answered = (max(0, int(tokens.get(kind) or 0)) for kind in ("prompt_tokens", "completion_tokens"))
            total += Usage(1, asked, answered, entry.get("cost"))
    return total


def _cached(entry: dict[str, Any]) -> bool:
    """DSPy books no usage for an answer from its cache, though the answer itself knows its tokens."""
    known = getattr(getattr(entry.get("response"), "usage", None), "total_tokens", None)
    return not entry.get("usage") and known is not None


def _timed(usage: Usage, started: float) -> Usage:
    return replace(usage, seconds=time.perf_counter() - started)
