"""A metric that stands for a judge: it costs a model call and its verdicts are given."""

from __future__ import annotations

import dspy

from metricsmith.errors import JudgementFailed
from metricsmith.records import Output, Status, Usage
from metricsmith.testing import GivenJudge


class Scripted(GivenJudge):
    """Judges row i by ``verdict(row, run)``, which gives a number or a failure; no file can keep it."""

    def __init__(self, verdict=lambda row, run: float(row.id), name="scripted", output=None):
        def given(row, run):
            number = verdict(row, run)
            if isinstance(number, Status):
                raise JudgementFailed("planted", number)
            return dspy.Prediction(score=number, feedback=f"said of {row.get('id')}")

        output = output or Output(name, low=None, high=None, half=1.0)
        super().__init__(given, name=name, output=output, version="1", usage=Usage(1, 10, 5, 0.5, 2.0))
        self.reads = ()  # labels beside the id change no verdict

    def to_state(self):
        return {"kind": "scripted"}
