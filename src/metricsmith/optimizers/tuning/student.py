"""The judge as DSPy's optimisers see it, and the table of everything that its candidates have said.

Every candidate that an optimiser tries passes through `Student.forward`. Its answers are kept by candidate and
row, so that nothing is asked twice, a row can be compared with its peers as the same candidate judges them, and
every candidate that has judged all selection rows can be compared by the true statistic afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
import numpy as np
from dspy.utils.exceptions import LMError
from numpy.typing import NDArray

from metricsmith.metric import content_hash
from metricsmith.model_calls.admission import Gate
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.dspy_internals import gated, record_by
from metricsmith.model_calls.failures import delay, failure, words
from metricsmith.model_calls.flow import UNPROVEN, Flow, Outcome, use
from metricsmith.records import Status

__all__ = ["Answers", "Demos", "Meter", "Student", "Verdict", "demos_of", "own_demos", "without_demos"]

FloatArray = NDArray[np.float64]
Demos = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Verdict:
    """What a candidate said of a row.

    `prediction` is None unless `status` is ok; `steps` are the traced calls as (predictor's name, inputs, outputs).
    """

    prediction: Any
    status: Status
    error: str = ""
    steps: tuple[tuple[str, Any, Any], ...] = ()


@dataclass
class Answers:
    """Candidates and their answers; shared by all copies of a student.

    Parameters
    ----------
    flow : Flow
        Admits the requests.
    lm : dspy.LM
        Answers them.
    """

    flow: Flow
    lm: Any
    modules: dict[str, dspy.Module] = field(default_factory=dict)
    _said: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _asking: defaultdict[tuple[str, str], threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def __deepcopy__(self, memo: dict[int, Any]) -> Answers:
        return self

    def candidate(self, judge: dspy.Module, first: Demos) -> str:
        """Register a judge as it is now, its demos after `first`, and return its name."""
        name = _content(judge, first)
        with self._lock:
            if name not in self.modules:
                module = judge.deepcopy()
                for place, predictor in module.named_predictors():
                    predictor.demos = [*first.get(place, ()), *predictor.demos]
                self.modules[name] = module
        return name

    def ask(self, candidate: str, inputs: Mapping[str, Any]) -> Verdict:
        """What a candidate says of a row: asked once, however many threads want to know."""
        key = candidate, content_hash(inputs)
        with self._lock:
            asking = self._asking[key]
        with asking:
            if key not in self._said:
                self._said[key] = self._ask(self.modules[candidate], inputs)
            return self._said[key]

    def known(self, candidate: str, inputs: Mapping[str, Any]) -> Verdict | None:
        """What a candidate has said of a row, if it was asked."""
        return self._said.get((candidate, content_hash(inputs)))

    def failures(self) -> dict[str, set[str]]:
        """For each candidate with failed calls, the rows of these."""
        failed: defaultdict[str, set[str]] = defaultdict(set)
        for (name, row), verdict in self._said.items():
            if verdict.prediction is None:
                failed[name].add(row)
        return dict(failed)

    def _ask(self, module: dspy.Module, inputs: Mapping[str, Any]) -> Verdict:
        several = len(module.predictors()) > 1  # a repair goes on with one conversation, and there are several
        with self.flow.room, use(self.flow), dspy.context(trace=[], lm=self.lm):
            call = model_call(module, parse_tries=1 if several else 2, **inputs)
            trace = list(dspy.settings.trace)
        names = {id(predictor): name for name, predictor in module.named_predictors()}
        steps = tuple((names[id(at)], given, gave) for at, given, gave in trace if id(at) in names)
        return Verdict(call.prediction, call.status, call.error, steps if call.prediction is not None else ())


class Student(dspy.Module):  # type: ignore[misc]
    """A judge whose every answer goes through `Answers`; its predictors are the judge's own.

    Parameters
    ----------
    judge : dspy.Module
    answers : Answers
    first : mapping of str to demos
        By predictor, demos that stay in front of whatever an optimiser puts there.
    beside : callable, optional
        From a row's inputs to those of the peers that the same candidate judges along with it.
    """

    def __init__(
        self,
        judge: dspy.Module,
        answers: Answers,
        first: Demos | None = None,
        beside: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        super().__init__()
        self.judge = judge
        self._answers, self._first = answers, _Kept(first or {})
        self._beside = beside or (lambda _: ())

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """As `forward`, in a thread that sees the caller's DSPy context."""
        return await asyncio.to_thread(self._judged, **inputs)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Judge a row and its peers; never raises, for DSPy would book that as a number.

        Returns
        -------
        dspy.Prediction
            ``candidate`` names who judged, ``verdict`` is the `Verdict`; what was judged is not repeated.
        """
        return self._judged(**inputs)

    def _judged(self, **inputs: Any) -> dspy.Prediction:
        candidate = self._answers.candidate(self.judge, self._first.demos)
        verdict = self._answers.ask(candidate, inputs)
        for peer in self._beside(inputs):
            self._answers.ask(candidate, peer)
        trace = dspy.settings.trace
        if trace is not None:
            predictors = dict(self.judge.named_predictors())
            trace.extend((predictors[name], given, gave) for name, given, gave in verdict.steps)
        return dspy.Prediction(candidate=candidate, verdict=verdict)


@dataclass(frozen=True)
class _Kept:
    """Demos that DSPy's walk over a module's attributes does not find, and so does not reset."""

    demos: Demos

    def __deepcopy__(self, memo: dict[int, Any]) -> _Kept:
        return self


def own_demos(judge: dspy.Module) -> dict[str, list[Any]]:
    """The demos of each predictor."""
    return {name: list(predictor.demos) for name, predictor in judge.named_predictors()}


def without_demos(judge: dspy.Module) -> dspy.Module:
    """A copy of the judge with no demos."""
    copy = judge.deepcopy()
    for predictor in copy.predictors():
        predictor.demos = []
    return copy


def demos_of(judge: dspy.Module) -> int:
    """How many demos a judge has in all."""
    return sum(len(predictor.demos) for predictor in judge.predictors())


def _content(judge: dspy.Module, first: Demos) -> str:
    """A name for what an optimiser can change: instructions and demos."""
    return content_hash(
        [
            (name, at.signature.instructions, [dict(demo.items()) for demo in (*first.get(name, ()), *at.demos)])
            for name, at in judge.named_predictors()
        ]
    )


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
