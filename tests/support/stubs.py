"""A metric that stands for a judge: it costs a model call and its verdicts are given."""

from __future__ import annotations

import threading

from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.reward import DSPyCallable


class Scripted(DSPyCallable):
    """Judges row i by ``verdict(row, run)``, which gives a number or a failure; keeps what it was asked."""

    def __init__(self, verdict=lambda row, run: float(row.id), name="scripted"):
        self.verdict, self.name = verdict, name
        self.output = Output(name, low=None, high=None, half=1.0)
        self.card = MetricCard(name, "criterion_judge", "", "", (self.output,), cost="model")
        self.asked = []
        self.lock = threading.Lock()

    def fingerprint(self):
        return f"scripted {self.name}"

    def to_state(self):
        return {"kind": "scripted"}

    def judge_batch(self, rows, *, run=0):
        return [self._judge(row, run) for row in rows]

    def _judge(self, row, run):
        with self.lock:
            self.asked.append((row.get("id"), run))
        verdict = self.verdict(row, run)
        usage = Usage(1, 10, 5, 0.5, 2.0)
        if isinstance(verdict, Status):
            return Judgement(self.name, status=verdict, error="planted", run=run, usage=usage)
        return Judgement(
            self.name, verdict, self.output.score(verdict), f"said of {row.get('id')}", run=run, usage=usage
        )
