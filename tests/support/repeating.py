"""Judges whose numbers are told, for tests of repetition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.reward import DSPyCallable

TABLE_1 = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]  # GEMBA-MQM V2: rrwa -8.496 without -55
MQM = Output("mqm", low=None, high=0.0, half=10.0, description="negated MQM")
ERRORS = Output("errors", low=0.0, high=None, higher_is_better=False, half=10.0)


@dataclass
class Scripted(DSPyCallable):
    """A judge whose number is a function of the run: None for a failure. Counts what it is asked."""

    numbers: Any
    output: Output = MQM
    asked: Counter[int] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def card(self) -> MetricCard:
        return MetricCard("Scripted", "scripted", "Reads a list.", "The list.", (self.output,), cost="model")

    def fingerprint(self) -> str:
        return f"scripted {self.numbers}"

    def judge_batch(self, rows, *, run=0):
        self.asked[run] += len(rows)
        return [told(self.numbers[run % len(self.numbers)], run, self.output) for _ in rows]

    def to_state(self):
        return {"kind": "scripted"}


def told(number, run=0, output=MQM, status=Status.UNPARSABLE):
    """One run's judgement; each costs one request and ten tokens."""
    usage = Usage(1, 10, 1, 0.5, 0.25)
    if number is None:
        return Judgement(output.name, status=status, error=f"run {run} went wrong", run=run, usage=usage)
    return Judgement(output.name, float(number), output.score(number), f"because of run {run}", run=run, usage=usage)


def runs_of(numbers, output=MQM):
    return [told(number, run, output) for run, number in enumerate(numbers)]


def criterion(**changes):
    return CriterionJudge(**{"criterion": "Plain words", "meaning": "Short.", "task": "Write.", **changes})


def of(numbers, **options):
    return Repeated(Scripted(numbers), len(numbers), **options)


def verdict(numbers, **options):
    return of(numbers, **options).verdict(runs_of(numbers), 0)


# Its place among metrics
