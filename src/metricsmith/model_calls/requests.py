"""One try of a module: its requests sent on private copies of the model, what comes back read and classified."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.adapters import Channel, ChoicesChannel, Repair
from metricsmith.model_calls.dspy_internals import gated, keep_in_cache, text_of
from metricsmith.model_calls.failures import cut_off, failure, filtered, one_line, refusal, rejects_choices, words
from metricsmith.model_calls.models import redact, without_keys
from metricsmith.model_calls.reading import Unreadable, whole
from metricsmith.records import Status, Usage

__all__ = [
    "Answer", "NotAdmitted", "ask", "no_number", "private_copy", "unfinished", "unread_answer", "unusable",
]  # fmt: skip

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
