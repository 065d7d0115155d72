"""A language model whose requests DSPy's optimisers send themselves, admitted and counted like all others."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from metricsmith.records import Usage
from metricsmith.scoring.failures import delay, failure, words
from metricsmith.scoring.flow import Flow, Outcome
from metricsmith.scoring.requests import cost_of

__all__ = ["Meter"]

TRIES = 3  # an optimiser asks for few instructions: one that is lost costs a candidate, not a row
FIRST_PAUSE = 0.5  # seconds; doubles from there


class Meter:
    """Wraps models; what all of them were asked stands in `entries`.

    Parameters
    ----------
    flow : Flow
        Admits every request, retries included.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.entries: list[dict[str, Any]] = []

    @property
    def usage(self) -> Usage:
        """What the answered requests cost."""
        return sum((cost_of(entry) for entry in self.entries), Usage())

    def __deepcopy__(self, memo: dict[int, Any]) -> Meter:
        return self

    def wrap(self, lm: Any) -> Any:
        """A copy of `lm`, of a subclass of its class, that asks through the flow and has no retries of its own."""
        copy = lm.copy(num_retries=0)
        copy.update_history = self.entries.append
        copy.__class__ = _metered(type(lm), self)
        return copy

    def send(self, lm: Any, request: Any) -> Any:
        """Send one request, and again where it fails on its way.

        Raises
        ------
        JudgementFailed
            If the flow is stopped or its budget spent.
        LMError
            What the last try met.
        """
        for attempt in range(1, TRIES + 1):
            ticket, before = self.flow.enter(), len(self.entries)
            try:
                answer = request()
            except LMError as problem:
                cause = failure(problem)
                self.flow.leave(ticket, cause.outcome, Usage(requests=int(cause.sent)), words(problem, lm))
                if not cause.again or attempt == TRIES or not self.flow.pause(delay(problem, attempt, FIRST_PAUSE)):
                    raise
            except BaseException:
                self.flow.leave(ticket, Outcome.FAILED, Usage(requests=1))
                raise
            else:
                fresh = self.entries[before:]
                self.flow.leave(ticket, Outcome.ANSWERED, sum(map(cost_of, fresh), Usage()) if fresh else Usage(1))
                return answer
        raise AssertionError("the last try returns or raises")


def _metered(kind: type[Any], meter: Meter) -> type[dspy.BaseLM]:
    class Metered(kind):  # type: ignore[misc]
        def __call__(self, prompt: Any = None, **request: Any) -> Any:
            plain = super().__call__
            return meter.send(self, lambda: plain(prompt, **request))

    return Metered
