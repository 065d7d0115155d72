"""A language model whose requests DSPy's optimisers send themselves, admitted and counted like all others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dspy.utils.exceptions import LMError

from metricsmith.model_calls.admission import Gate
from metricsmith.model_calls.dspy_internals import gated, record_by
from metricsmith.model_calls.failures import delay, failure, words
from metricsmith.model_calls.flow import UNPROVEN, Flow, Outcome

__all__ = ["Meter"]

TRIES = 3  # an optimiser asks for few instructions: one that is lost costs a candidate, not a row
FIRST_PAUSE = 0.5  # seconds; doubles from there


class Meter:
    """Lets models through a flow; one that refuses to work from the start stops it.

    Parameters
    ----------
    flow : Flow
        Admits every request, retries included.
    """

    def __init__(self, flow: Flow) -> None:
        self.gate = Gate(flow)
        self._refused = 0  # until there is an answer; of the flow's other requests it learns nothing

    def __deepcopy__(self, memo: dict[int, Any]) -> Meter:
        return self

    def wrap(self, lm: Any) -> Any:
        """A copy of `lm`, of a subclass of its class, that asks through the flow and has no retries of its own."""
        copy = gated(lm.copy(num_retries=0), self)
        record_by(copy, self.gate.record)
        return copy

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send one request, and again where it fails on its way.

        Raises
        ------
        JudgementFailed
            If the flow is stopped or its budget spent.
        LMError
            What the last try met.
        """
        for attempt in range(1, TRIES + 1):
            try:
                with self.gate.flow.room:
                    return self.gate.send(lm, request)
            except LMError as problem:
                if not self.gate.flow.pause(self._pause(lm, problem, attempt)):
                    raise
        raise AssertionError("the last try returns or raises")

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """As `send`, without blocking the event loop."""
        for attempt in range(1, TRIES + 1):
            try:
                return await self.gate.asend(lm, request)
            except LMError as problem:
                if not await asyncio.to_thread(self.gate.flow.pause, self._pause(lm, problem, attempt)):
                    raise
        raise AssertionError("the last try returns or raises")

    def _pause(self, lm: Any, problem: LMError, attempt: int) -> float:
        """Seconds before the next try; raises the problem again where there is none."""
        cause = failure(problem)
        self._count(cause.outcome, words(problem, lm))
        if not cause.again or attempt == TRIES:
            raise problem
        return delay(problem, attempt, FIRST_PAUSE)

    def _count(self, outcome: Outcome, said: str) -> None:
        self._refused += outcome is Outcome.HOPELESS
        if self._refused >= UNPROVEN and not self.gate.entries:
            self.gate.flow.stop(f"the model that writes instructions refuses to work: {said}")
