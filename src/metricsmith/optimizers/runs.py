"""One evaluated induction: on test rows, on the training rows, or over the folds of a cross-validation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import Split
from metricsmith.errors import DataError, ModelFailure
from metricsmith.optimizers.crossing import cross_validated, remembering
from metricsmith.optimizers.estimate import Pass, estimate
from metricsmith.optimizers.evaluation import METRIC, Trial, learning_curve, predictions, selected_shares
from metricsmith.optimizers.induction import Induction, Options, induct
from metricsmith.optimizers.new_systems import new_systems
from metricsmith.optimizers.rated import Rated, in_given_order
from metricsmith.optimizers.recording import Evaluation, record_run
from metricsmith.optimizers.signature import signature_line
from metricsmith.optimizers.spending import spending
from metricsmith.optimizers.stages import stage
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Task, Usage
from metricsmith.report.record import RunRecord
from metricsmith.report.write import write_reports
from metricsmith.scoring import score
from metricsmith.stats.agreement import agreement, paired_agreement
from metricsmith.store import Store

__all__ = ["Induced", "Sides", "estimate_run", "evaluate"]


@dataclass(frozen=True, repr=False)
class Induced:
    """An induced metric and the record of how it came about."""

    metric: InducedMetric
    record: RunRecord

    def write(self, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
        """Write ``metric.json``, ``report.html``, ``report.md``, ``report.json`` and ``scores.csv``.

        With `raw_csv`, texts in the latter that a spreadsheet would run are not marked.

        Raises
        ------
        DataError
            If the folder cannot be written to.
        """
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            self.metric.save(target / "metric.json")
            write_reports(self.record, target, raw_csv=raw_csv)
        except OSError as problem:
            raise DataError(f"cannot write to {target}: {problem.strerror}; name another folder") from problem

    def __repr__(self) -> str:
        return f"Induced(metric={self.metric!r}, tau-b {self.record.headline.kendall_tau_b:.3f})"


@dataclass(frozen=True)
class Sides:
    """Which rows a run is fitted to and which it is tested on.

    Parameters
    ----------
    kind : str
        ``holdout``, ``file``, ``cv`` or ``train_only``.
    train, test : Rated
        `test` is empty except for ``holdout`` and ``file``.
    unrated : sequence of dspy.Example
    folds : sequence of Split
        Of the training rows, for ``cv``.
    origin : str
        Where the rows come from and how they were split, for the signature line.
    notes : sequence of str
        What was guessed or left out when they were read.
    split : str
        How rows were set aside, and why so, in a sentence.
    places : mapping of str to int array
        Of each side (``train``, ``test``, ``unrated``) the places at which its rows were given, for the report: rows
        stand in the order of their contents (`splits.content_order`), so that nothing depends on that of the file.
    warnings : sequence of str
        What speaks against the data; the first warnings of the report.
    """

    kind: str
    train: Rated
    test: Rated
    unrated: Sequence[dspy.Example] = ()
    folds: Sequence[Split] = ()
    origin: str = ""
    notes: Sequence[str] = field(default=())
    places: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)
    warnings: Sequence[str] = field(default=())
    split: str = ""

    def with_learning(self, more: Rated) -> Sides:
        """The same with further rows, which are learned from in every fold and tested on in none."""
        places = np.arange(len(self.train), len(self.train) + len(more))
        folds = [Split(np.concatenate([fold.train, places]), fold.test) for fold in self.folds]
        origin = f"{self.origin} | {len(more)} further rows learned from and never tested on"
        return replace(self, train=self.train + more, folds=folds, origin=origin)


def evaluate(sides: Sides, task: Task, options: Options, expected: Usage | None = None) -> Induced:
    """Induce a metric and find out how far it agrees with raters whom the fit has not seen.

    `expected` is the estimate, where it is known already.

    Raises
    ------
    ModelFailure
        Where the budget runs out before all is known, and as `induct` raises it.
    """
    expected = estimate_run(sides, task, options) if expected is None else expected
    store, model = options.store, options.model
    limits = spending(options.budget, options.concurrency, expected=expected, store=store, model=model)
    with limits, remembering(options) if sides.folds else nullcontext(options) as own:
        return _evaluate(sides, task, own, expected)


def _evaluate(sides: Sides, task: Task, options: Options, expected: Usage) -> Induced:
    started = time.perf_counter()
    if options.store is not None and not isinstance(options.store, Store):
        Store(options.store).close()  # one that cannot be used is found out before anything is paid for
    if sides.folds:
        induction, evaluation = cross_validated(sides.train, sides.folds, sides.unrated, task, options)
    else:
        induction, evaluation = _held_out(sides, task, options)
    metric = induction.metric
    signature = signature_line(induction, sides.origin, task, options)
    metric.settings.values["signature"] = signature
    try:
        with dspy.context(lm=options.model):
            unrated = score(metric.components, sides.unrated, **options.scoring)
    except ModelFailure as stopped:
        if options.strict or stopped.table is None or len(stopped.table.dropped) < len(metric.components):
            raise
        unrated = stopped.table  # no component can judge these rows: the metric is made all the same
    record = record_run(
        induction,
        evaluation,
        sides.unrated,
        metric.combine(unrated),
        signature=signature,
        estimated=expected,
        seconds=time.perf_counter() - started,
        seed=options.seed,
        notes=sides.notes,
        first=sides.warnings,
        unrated_usage=unrated.usage,
        unrated_fallen=unrated.dropped.values(),
    )
    metric.record = replace(record, data=in_given_order(record.data, sides.places), split=sides.split)
    return Induced(metric, metric.record)


def estimate_run(sides: Sides, task: Task, options: Options, *, most: bool = False) -> Usage:
    """The requests that a run is likely to make, or with `most` the most that it can, faults aside (`estimate`)."""
    folds = [Pass(sides.train.take(fold.train), held_out=sides.train.take(fold.test).rows) for fold in sides.folds]
    last = Pass(sides.train, others=sides.test.rows, unrated=sides.unrated)
    return estimate([*folds, last], task, options, most=most)


def _held_out(sides: Sides, task: Task, options: Options) -> tuple[Induction, Evaluation]:
    """Fit once; compare on the test rows, or on the training rows if there are none."""
    induction = induct(sides.train, sides.test.rows, task, options, sides.unrated)
    tested = len(sides.test) > 0
    rows, values = (sides.test, induction.other_values) if tested else (sides.train, induction.train_values)
    trials = [Trial(induction, rows, values)] if tested else []
    with stage("evaluating", options.progress):
        predicted = predictions(induction, values, rows.rows)
        blocks = {
            label: agreement(numbers, rows.ratings, rows.groups, seed=options.seed)
            for label, numbers in predicted.items()
        }
        own = blocks.pop(METRIC)
        return induction, Evaluation(
            kind=sides.kind,
            test=own if tested else agreement([], []),
            baselines=blocks,
            test_rows=sides.test,
            shares=selected_shares(induction, induction.fit, options.seed),
            learning=learning_curve(trials, induction.fit, options.seed),
            differences={
                label: paired_agreement(predicted[METRIC], predicted[label], rows.ratings, rows.groups)
                for label in blocks
            },
            new_systems=new_systems(trials, induction.fit),
        )
