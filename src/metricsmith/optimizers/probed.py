"""A probe after an induction: what the metric makes of outputs that were changed on purpose, in its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, Literal, Protocol, Self

import dspy

from metricsmith.datasets.splits import content_order
from metricsmith.datasets.table import Table
from metricsmith.errors import ModelFailure
from metricsmith.metric import Metric
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.result import RunResult
from metricsmith.optimizers.splitting import configure
from metricsmith.records import Status, Task, Usage
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.scoring import Budget, Concurrency
from metricsmith.store import Store

__all__ = ["Probing", "with_probe"]


class Probing(Protocol):
    """The part of a `Prober` that an induction uses, as a protocol: probing is imported above this package."""

    def filled(
        self,
        *,
        lm: Any,
        store: str | PathLike[str] | Store | None,
        budget: Budget | None,
        concurrency: Literal["auto"] | int | Concurrency,
    ) -> Self:
        """A prober with these options where this one has none of its own."""

    def probe(self, metric: Metric, rows: Sequence[dspy.Example], task: Task | None = None) -> ProbeRecord:
        """Change outputs of the rows and score them."""

    def outlook(self, rows: Sequence[dspy.Example], task: Task) -> str:
        """A sentence on the requests that the probe will take."""


def with_probe(done: RunResult, table: Table, optimizer: Options, prober: Probing) -> RunResult:
    """A result whose record has a section on outputs of the table that were changed on purpose.

    The prober uses the optimizer's model, store, budget and concurrency where it has none of its own. Where the model
    fails in the probe, or the budget runs out, a warning takes the place of the section: the metric itself is made and
    paid for.
    """
    options, task = configure(table, optimizer)
    own = prober.filled(lm=options.model, store=options.store, budget=options.budget, concurrency=options.concurrency)
    try:
        found = own.probe(done.metric, table.subset(content_order(table.rows, task.target)).rows, task)
    except ModelFailure as problem:
        why = "the budget did not reach for it" if problem.status == Status.BUDGET else "the model failed"
        warnings = (*done.record.warnings, f"there is no probe, since {why}: {problem}")
        record = replace(done.record, warnings=warnings)
    else:
        warnings = (*done.record.warnings, *(f"probe: {warning}" for warning in found.warnings))
        notes = (*done.record.notes, *(f"probe: {note}" for note in found.notes))
        counted = {name: value for name, value in done.record.usage.items() if name != "estimated"}
        spent = Usage(**counted) + found.usage
        usage = {**done.record.usage, **asdict(spent), "seconds": round(spent.seconds, 3)}
        record = replace(done.record, probe=found, warnings=warnings, notes=notes, usage=usage)
    return RunResult(done.metric.with_record(record), record)
