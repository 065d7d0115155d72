"""Judges whose numbers are told, for tests of repetition."""

from __future__ import annotations

from collections import Counter

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Judgement, Output, Status, Usage
from metricsmith.testing import GivenJudge

TABLE_1 = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]  # GEMBA-MQM V2: rrwa -8.496 without -55
MQM = Output("mqm", low=None, high=0.0, half=10.0, description="negated MQM")
ERRORS = Output("errors", low=0.0, high=None, higher_is_better=False, half=10.0)
USAGE = Usage(1, 10, 1, 0.5, 0.25)


class Scripted(GivenJudge):
    """A judge whose number is a function of the run: None for a failure."""

    def __init__(self, numbers, output=MQM):
        def given(row, run):
            number = numbers[run % len(numbers)]
            if number is None:
                raise JudgementFailed(f"run {run} went wrong")
            return dspy.Prediction(score=number, feedback=f"because of run {run}")

        super().__init__(given, name=output.name, output=output, version=str(numbers), usage=USAGE)

    @property
    def runs(self):
        """The count of judgements asked for, by run."""
        return Counter(run for _, run in self.asked)


def told(number, run=0, output=MQM, status=Status.UNPARSABLE):
    """One run's judgement; each costs one request and ten tokens."""
    if number is None:
        return Judgement(output.name, status=status, error=f"run {run} went wrong", run=run, usage=USAGE)
    return Judgement(output.name, float(number), output.score(number), f"because of run {run}", run=run, usage=USAGE)


def runs_of(numbers, output=MQM):
    return [told(number, run, output) for run, number in enumerate(numbers)]


def criterion(**changes):
    return CriterionJudge(**{"criterion": "Plain words", "meaning": "Short.", "task": "Write.", **changes})


def of(numbers, **options):
    return Repeated(Scripted(numbers), len(numbers), **options)


def verdict(numbers, **options):
    return of(numbers, **options).verdict(runs_of(numbers), 0)


# Its place among metrics
