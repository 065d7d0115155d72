"""Where a request to a language model is let through, counted, and its end booked; whoever sends it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from dspy.utils.exceptions import LMError

from metricsmith.errors import JudgementFailed
from metricsmith.records import Usage
from metricsmith.scoring.failures import failure, rejects_choices, words
from metricsmith.scoring.flow import Flow, Outcome

__all__ = ["Gate", "cost_of", "gated"]


class Gate:
    """Lets the requests of a call through a flow, one by one, and keeps what they brought.

    Parameters
    ----------
    flow : Flow
    choices : bool
        Whether the requests ask for several answers at once: a server that takes no such wish has not refused to
        work, since the single request is still to be tried.

    Attributes
    ----------
    entries : list of dict
        DSPy's history of the requests that were answered.
    closed : JudgementFailed or None
        Why the flow let a request not through; whoever swallows that error has not got an answer all the same.
    """

    def __init__(self, flow: Flow, *, choices: bool = False) -> None:
        self.flow, self.choices = flow, choices
        self.entries: list[dict[str, Any]] = []
        self.closed: JudgementFailed | None = None

    @property
    def usage(self) -> Usage:
        """What the answered requests cost."""
        return sum(map(cost_of, self.entries), Usage())

    def __call__(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send one request.

        Raises
        ------
        JudgementFailed
            If the flow is stopped or its budget spent.
        LMError or another error
            As the request raises it.
        """
        try:
            ticket = self.flow.enter()
        except JudgementFailed as stopped:
            self.closed = stopped
            raise
        before = len(self.entries)
        outcome, lost, said = Outcome.FAILED, Usage(requests=1), ""
        try:
            answer = request()
            outcome, lost = Outcome.ANSWERED, Usage(requests=len(self.entries) == before)
            return answer
        except LMError as problem:
            cause = failure(problem)
            forgiven = self.choices and rejects_choices(problem)
            outcome, lost = Outcome.FAILED if forgiven else cause.outcome, Usage(requests=cause.sent)
            said = words(problem, lm)
            raise
        finally:
            self.flow.leave(ticket, outcome, sum(map(cost_of, self.entries[before:]), lost), said)


def gated(lm: Any, through: Callable[[Any, Callable[[], Any]], Any] | None = None) -> Any:
    """Make a model send its requests by ``through(lm, request)``, from now on; it is the model that is changed.

    Parameters
    ----------
    lm : dspy.LM or other DSPy model
        A copy that nobody else uses.
    through : callable, optional
        Usually a `Gate`. None sends as before.
    """
    lm.__class__ = _gated(type(lm))  # type: ignore[arg-type]
    lm.through = through
    return lm


@cache
def _gated(kind: type) -> type:
    if getattr(kind, "is_gated", False):
        return kind

    class Gated(kind):  # type: ignore[misc]
        is_gated = True

        def __call__(self, *prompt: Any, **request: Any) -> Any:
            send = partial(super().__call__, *prompt, **request)
            return send() if self.through is None else self.through(self, send)

    Gated.__name__, Gated.__qualname__ = kind.__name__, kind.__qualname__
    return Gated


def cost_of(entry: dict[str, Any]) -> Usage:
    """What one answered request of DSPy's history cost; an answer from the cache costs nothing."""
    if _cached(entry):
        return Usage()
    tokens = entry.get("usage") or {}
    asked, answered = (max(0, int(tokens.get(kind) or 0)) for kind in ("prompt_tokens", "completion_tokens"))
    return Usage(1, asked, answered, entry.get("cost"))


def _cached(entry: dict[str, Any]) -> bool:
    """DSPy books no usage for an answer from its cache; the answer is marked, or knows its tokens all the same."""
    response = entry.get("response")
    if entry.get("usage"):
        return False
    return bool(getattr(response, "cache_hit", False)) or (
        getattr(getattr(response, "usage", None), "total_tokens", None) is not None
    )
