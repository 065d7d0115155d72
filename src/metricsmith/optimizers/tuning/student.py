"""The stand-ins that DSPy's optimisers work with: a student for the judge, a metered model for the instruction writer.

Every candidate that an optimiser tries passes through `Student.forward`. Its judgements are kept by candidate and
row. So no row is asked twice of one candidate, a row can be compared with its peers as the same candidate judges
them, and candidates that have judged all selection rows can be compared by the true statistic afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from metricsmith.metric import content_hash
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.dspy_internals import metered
from metricsmith.model_calls.failures import error_text, failure
from metricsmith.model_calls.limits import RequestEnd
from metricsmith.model_calls.metering import RequestMeter, Tries
from metricsmith.model_calls.rate_limiter import UNPROVEN, RateLimiter, use
from metricsmith.records import Status

__all__ = ["CandidateJudgement", "Demos", "JudgementTable", "Meter", "Student"]

Demos = Mapping[str, Sequence[Any]]
TRIES = 3  # an optimiser asks for few instructions: one that is lost costs a candidate, not a row


@dataclass(frozen=True)
class CandidateJudgement:
    """A candidate's judgement of one row.

    Parameters
    ----------
    prediction : dspy.Prediction or None
        None unless `status` is ok.
    status : Status
    error : str
        The reason for a failure.
    steps : tuple of (str, inputs, outputs)
        The traced calls, each with its predictor's name.
    """

    prediction: Any
    status: Status
    error: str = ""
    steps: tuple[tuple[str, Any, Any], ...] = ()


@dataclass
class JudgementTable:
    """Candidates and their judgements by row; shared by all copies of a student.

    Parameters
    ----------
    limiter : RateLimiter
        Admits the requests.
    lm : dspy.LM
        Answers them.
    modules : dict of str to dspy.Module
        The candidates by name.
    """

    limiter: RateLimiter
    lm: Any
    modules: dict[str, dspy.Module] = field(default_factory=dict)
    _known: dict[tuple[str, str], CandidateJudgement] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _asking: defaultdict[tuple[str, str], threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def __deepcopy__(self, memo: dict[int, Any]) -> JudgementTable:
        return self

    def candidate(self, judge: dspy.Module, first: Demos) -> str:
        """Register a copy of a judge, with `first` in front of its demonstrations, and return the candidate's name.

        The name is a hash of all that an optimiser can change: instructions and demonstrations.
        """
        name = content_hash(
            [
                (place, at.signature.instructions, [dict(demo.items()) for demo in (*first.get(place, ()), *at.demos)])
                for place, at in judge.named_predictors()
            ]
        )
        with self._lock:
            if name not in self.modules:
                module = judge.deepcopy()
                for place, predictor in module.named_predictors():
                    predictor.demos = [*first.get(place, ()), *predictor.demos]
                self.modules[name] = module
        return name

    def ask(self, candidate: str, inputs: Mapping[str, Any]) -> CandidateJudgement:
        """Return a candidate's judgement of a row; threads that want the same one wait for a single call."""
        key = candidate, content_hash(inputs)
        with self._lock:
            asking = self._asking[key]
        with asking:
            if key not in self._known:
                self._known[key] = self._ask(self.modules[candidate], inputs)
            return self._known[key]

    def known(self, candidate: str, inputs: Mapping[str, Any]) -> CandidateJudgement | None:
        """Return a candidate's judgement of a row; None if it was not asked."""
        return self._known.get((candidate, content_hash(inputs)))

    def failures(self) -> dict[str, set[str]]:
        """Return the rows of failed calls, by candidate; candidates without any are left out."""
        failed: defaultdict[str, set[str]] = defaultdict(set)
        for (name, row), judgement in self._known.items():
            if judgement.prediction is None:
                failed[name].add(row)
        return dict(failed)

    def _ask(self, module: dspy.Module, inputs: Mapping[str, Any]) -> CandidateJudgement:
        several = len(module.predictors()) > 1  # a repair goes on with one conversation, and there are several
        with self.limiter.room, use(self.limiter), dspy.context(trace=[], lm=self.lm):
            call = model_call(module, parse_tries=1 if several else 2, **inputs)
            trace = list(dspy.settings.trace)
        names = {id(predictor): name for name, predictor in module.named_predictors()}
        steps = tuple((names[id(at)], given, gave) for at, given, gave in trace if id(at) in names)
        return CandidateJudgement(
            call.prediction, call.status, call.error, steps if call.prediction is not None else ()
        )


class Student(dspy.Module):  # type: ignore[misc]
    """A judge whose every judgement goes through a `JudgementTable`; its predictors are the judge's own.

    Parameters
    ----------
    judge : dspy.Module
    table : JudgementTable
    first : mapping of str to demos
        By predictor, demos that stay in front of those that an optimiser puts there.
    beside : callable, optional
        From a row's inputs to those of the peers that the same candidate judges along with it.
    """

    def __init__(
        self,
        judge: dspy.Module,
        table: JudgementTable,
        first: Demos | None = None,
        beside: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        super().__init__()
        self.judge = judge
        self._table, self._first = table, _HiddenDemos(first or {})
        self._beside = beside or (lambda _: ())

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Judge as `forward` does, in a thread that sees the caller's DSPy context."""
        return await asyncio.to_thread(Student.forward, self, **inputs)  # DSPy warns of `self.forward`

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Judge a row and its peers; never raises, for DSPy would book that as a number.

        Returns
        -------
        dspy.Prediction
            ``candidate`` names the candidate, ``judgement`` is its `CandidateJudgement`. A known judgement is not
            asked for again.
        """
        candidate = self._table.candidate(self.judge, self._first.demos)
        judgement = self._table.ask(candidate, inputs)
        for peer in self._beside(inputs):
            self._table.ask(candidate, peer)
        trace = dspy.settings.trace
        if trace is not None:
            predictors = dict(self.judge.named_predictors())
            trace.extend((predictors[name], given, gave) for name, given, gave in judgement.steps)
        return dspy.Prediction(candidate=candidate, judgement=judgement)


@dataclass(frozen=True)
class _HiddenDemos:
    """Demos that DSPy's walk over a module's attributes does not find, and so does not reset.

    `reset_copy` and MIPROv2's candidates without demonstrations would drop the judge's own silently.
    """

    demos: Demos

    def __deepcopy__(self, memo: dict[int, Any]) -> _HiddenDemos:
        return self


class Meter(RequestMeter):
    """Meters models that DSPy's optimisers ask themselves; one that refuses to work from the start ends the search.

    Parameters
    ----------
    limiter : RateLimiter
        Admits and counts every request, retries included.
    """

    def __init__(self, limiter: RateLimiter) -> None:
        super().__init__(limiter)
        self._refused = 0  # hopeless failures of these models, before their first answer

    def wrap(self, lm: Any) -> Any:
        """Return a metered copy of `lm`, of a subclass of its class, without retries of its own."""
        return metered(lm.copy(num_retries=0), self)

    def send(self, lm: Any, request: Callable[[], Any]) -> Any:
        """Send one request, and again where it fails on its way.

        Raises
        ------
        JudgementFailed
            If the search is stopped or its budget spent.
        LMError
            The last try's error.
        """
        tries = Tries(self.limiter, TRIES)
        while True:
            try:
                with self.limiter.room:
                    return super().send(lm, request)
            except LMError as problem:
                if not (self._may_pass(lm, problem) and tries.another(problem)):
                    raise

    async def asend(self, lm: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        """Send one request as `send` does, without blocking the event loop."""
        tries = Tries(self.limiter, TRIES)
        while True:
            try:
                return await super().asend(lm, request)
            except LMError as problem:
                if not (self._may_pass(lm, problem) and await asyncio.to_thread(tries.another, problem)):
                    raise

    def _may_pass(self, lm: Any, problem: LMError) -> bool:
        """True if the same request may succeed later; stops the search where the model refuses to work."""
        cause = failure(problem)
        self._refused += cause.end is RequestEnd.HOPELESS
        if self._refused >= UNPROVEN and not self.entries:
            self.limiter.stop(f"the model that writes instructions refuses to work: {error_text(problem, lm)}")
        return cause.again
