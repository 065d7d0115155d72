"""The whole job on a table: split or fold, induce, evaluate, record."""

from __future__ import annotations

import glob
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from metricsmith import __version__
from metricsmith.agreement import agreement, agreement_over_folds
from metricsmith.datasets.splits import folds, holdout
from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.estimate import Load, estimate
from metricsmith.optimizers.evaluation import (
    METRIC,
    baselines,
    held_out,
    learning_curve,
    predictions,
    selected_shares,
)
from metricsmith.optimizers.induction import Induction, Options, Rated, induct
from metricsmith.optimizers.recording import Evaluation, record_run
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Judgement, Task, Usage
from metricsmith.report.record import RunRecord
from metricsmith.report.write import write_reports

__all__ = ["Induced", "evaluate_on", "induce", "plan"]


@dataclass(frozen=True)
class Induced:
    """An induced metric and the record of how it came about."""

    metric: InducedMetric
    record: RunRecord

    def write(self, folder: str | PathLike[str]) -> None:
        """Write ``metric.json``, ``report.html``, ``report.md``, ``report.json`` and ``scores.csv``."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        self.metric.save(target / "metric.json")
        write_reports(self.record, target)


@dataclass(frozen=True)
class Sides:
    """A table's rated rows by side, its unrated rows, and how it is evaluated."""

    kind: str
    train: Rated
    test: Rated
    unrated: list[dspy.Example]
    folds: tuple[Any, ...]
    label: str


def induce(
    table: Table,
    optimizer: AutoMetrics | None = None,
    *,
    fraction: float = 0.3,
    test: Table | None = None,
    folds: int | None = None,
) -> Induced:
    """Induce a metric from a table and evaluate it on rows that the fit has not seen.

    Parameters
    ----------
    table : Table
        Read by `read_table`; its candidate columns join the optimizer's.
    optimizer : AutoMetrics, optional
        By default ``AutoMetrics()``.
    fraction : float
        Share of the rated rows to hold out, by group; 0 evaluates on the training rows, with a warning.
    test : Table, optional
        Test rows of their own, instead of a fraction.
    folds : int, optional
        Grouped cross-validation instead: generation, retrieval and fit are repeated inside each of this
        many folds, ``test`` is the mean over folds, and the metric is fitted on all rated rows.

    Raises
    ------
    OptionError
        If `folds` and `test` are both given, or the table has no target.
    DataError
        If there are too few groups.
    """
    options, task = _configure(table, optimizer or AutoMetrics())
    sides = _sides(table, options, task, fraction, test, folds)
    origin = f"data {table.name} sha256:{table.checksum} | {sides.label}"
    if sides.folds:
        done = _cross_validate(sides, task, options, origin=origin, notes=table.notes)
    else:
        done = evaluate_on(
            sides.train, sides.test, sides.unrated, task, options, kind=sides.kind, origin=origin, notes=table.notes
        )
    done.metric.settings.values["reading"] = _reading(table)
    return done


def plan(
    table: Table,
    optimizer: AutoMetrics,
    *,
    fraction: float = 0.3,
    test: Table | None = None,
    folds: int | None = None,
) -> str:
    """Say what `induce` would do and what it would ask of the model; asks nothing."""
    options, task = _configure(table, optimizer)
    sides = _sides(table, options, task, fraction, test, folds)
    chosen = options.sources.resolve(len(sides.train), options.model is not None, _has_text(sides.train))
    usage = _estimate(sides, task, options)
    cost = "unknown price" if usage.cost is None else f"about ${usage.cost:.2f}"
    judges = sum(options.sources.generators.values()) if chosen.generated else 0
    lines = [
        f"rows: {len(sides.train)} train, {len(sides.test)} test, {len(sides.unrated)} unrated ({sides.label})",
        f"candidates: {judges} generated judges, {'the' if chosen.existing else 'no'} bank metrics, "
        f"{len(options.sources.columns)} columns; at most k = {options.sources.k} of judges and bank",
        *chosen.notes,
        f"requests: {usage.requests}, prompt tokens: {usage.prompt_tokens}, completion tokens: "
        f"{usage.completion_tokens} ({cost}; estimates, retries not counted)",
        "nothing was sent and nothing was written",
    ]
    return "\n".join(lines)


def evaluate_on(
    train: Rated,
    test: Rated,
    unrated: Sequence[dspy.Example],
    task: Task,
    options: Options,
    *,
    kind: str,
    origin: str = "",
    notes: Sequence[str] = (),
) -> Induced:
    """Induce from training rows, evaluate on test rows (on the training rows if there are none)."""
    started = time.perf_counter()
    induction = induct(train, test.rows, task, options, unrated)
    rows, values = (test, induction.other_values) if len(test) else (train, induction.train_values)
    predicted = predictions(induction, values, rows.rows)
    evaluation = Evaluation(
        kind=kind,
        test=held_out(predicted, test, options.seed) if len(test) else agreement([], []),
        baselines=baselines(predicted, rows, options.seed),
        test_rows=test,
        shares=selected_shares(induction, options.fit, options.seed),
        learning=learning_curve(induction, test, values, options.fit, options.seed) if len(test) else (),
    )
    return _finish(induction, evaluation, unrated, options, started, origin, notes, Sides(
        kind, train, test, list(unrated), (), ""
    ))


def _cross_validate(sides: Sides, task: Task, options: Options, *, origin: str, notes: Sequence[str]) -> Induced:
    started = time.perf_counter()
    rated, per_fold, order = sides.train, [], []
    judgements: list[Judgement] = []
    usage = Usage()
    for fold in sides.folds:
        side = rated.take(fold.test)
        part = induct(rated.take(fold.train), side.rows, task, options, sides.unrated)
        per_fold.append(predictions(part, part.other_values, side.rows))
        order.append(fold.test)
        judgements += part.table.flat()
        usage += part.candidates.usage
    labels = [label for label in per_fold[0] if all(label in predicted for predicted in per_fold)]
    blocks = {
        label: agreement_over_folds(
            [predicted[label] for predicted in per_fold],
            [rated.ratings[rows] for rows in order],
            [[rated.groups[row] for row in rows] for rows in order],
            seed=options.seed,
        )
        for label in labels
    }
    induction = induct(rated, [], task, options, sides.unrated)
    held = {
        str(rated.rows[row].get("id", row)): float(value)
        for predicted, rows in zip(per_fold, order, strict=True)
        for row, value in zip(rows, predicted[METRIC], strict=True)
    }
    evaluation = Evaluation(
        kind="cv",
        test=blocks.pop(METRIC),
        baselines=blocks,
        test_rows=rated.take([]),
        held_out_predictions=held,
        shares=selected_shares(induction, options.fit, options.seed),
        judgements=tuple(judgements),
        usage=usage,
    )
    return _finish(induction, evaluation, sides.unrated, options, started, origin, notes, sides)


def _finish(
    induction: Induction,
    evaluation: Evaluation,
    unrated: Sequence[dspy.Example],
    options: Options,
    started: float,
    origin: str,
    notes: Sequence[str],
    sides: Sides,
) -> Induced:
    metric = induction.metric
    signature = _signature(induction, options, origin)
    metric.settings.values["signature"] = signature
    with dspy.context(lm=options.model):
        explanations = metric.explain(list(unrated), progress=options.progress) if unrated else []
    record = record_run(
        induction,
        evaluation,
        unrated,
        explanations,
        signature=signature,
        estimated=_estimate(sides, metric.task, options),
        seconds=time.perf_counter() - started,
        seed=options.seed,
        notes=notes,
    )
    metric.record = record
    return Induced(metric, record)


def _configure(table: Table, optimizer: AutoMetrics) -> tuple[Options, Task]:
    """The optimizer's options with the table's candidate columns added."""
    sources = optimizer.options.sources
    columns = tuple(dict.fromkeys([*sources.columns, *table.metric_values]))
    prior = tuple(dict.fromkeys([*sources.prior_columns, *table.prior]))
    task = optimizer.task or table.task
    if not task.target:
        raise OptionError("the table has no rating column: name one with target=... (--target)")
    return replace(optimizer.options, sources=replace(sources, columns=columns, prior_columns=prior)), task


def _sides(
    table: Table, options: Options, task: Task, fraction: float, test: Table | None, count: int | None
) -> Sides:
    if count is not None and test is not None:
        raise OptionError("--cv and a test file exclude each other: cross-validation tests on every row")
    indices = table.rated()
    rated = Rated.of([table.rows[i] for i in indices], task.target)
    texts = [table.texts[i] for i in indices]
    unrated = [row for row, rating in zip(table.rows, table.ratings, strict=True) if np.isnan(rating)]
    none = rated.take([])
    if count is not None:
        parts = folds(rated.groups, count, options.seed, texts, ratings=rated.ratings)
        return Sides("cv", rated, none, unrated, parts, f"{count}-fold cross-validation by group, seed {options.seed}")
    if test is not None:
        other = Rated.of([test.rows[i] for i in test.rated()], task.target)
        label = f"test file {test.name} sha256:{test.checksum}, seed {options.seed}"
        return Sides("file", rated, other, unrated, (), label)
    if fraction == 0:
        return Sides("train_only", rated, none, unrated, (), f"no test rows, seed {options.seed}")
    split = holdout(rated.groups, texts, fraction=fraction, seed=options.seed, ratings=rated.ratings)
    label = f"{fraction:g} of the rows held out by group, seed {options.seed}"
    return Sides("holdout", rated.take(split.train), rated.take(split.test), unrated, (), label)


def _estimate(sides: Sides, task: Task, options: Options) -> Usage:
    chosen = options.sources.resolve(len(sides.train), options.model is not None, _has_text(sides.train))
    if not chosen.generated:
        return Usage()
    passes = len(sides.folds) + 1
    judged = len(sides.train) * passes + len(sides.test) + len(sides.unrated)
    return estimate(
        sides.train.rows, task, options.sources.generators, Load(passes, judged), getattr(options.model, "model", "")
    )


def _has_text(rated: Rated) -> bool:
    return any(row.get("output") for row in rated.rows)


def _signature(induction: Induction, options: Options, origin: str) -> str:
    """The line that names everything on which the numbers depend."""
    model = getattr(options.model, "model", None)
    parts = [
        f"metricsmith {__version__}",
        origin,
        f"{len(induction.train)} training rows",
        options.fit.label,
        f"bank {options.sources.bank}, k {options.sources.k}",
        f"model {model}" if model else "no model",
        f"seed {options.seed}",
        f"metric {hashlib.sha256(induction.metric.fingerprint().encode()).hexdigest()[:12]}",
    ]
    return " | ".join(part for part in parts if part)


def _reading(table: Table) -> dict[str, Any]:
    """How to read new rows in the same way."""
    columns = table.columns
    return {
        "output": columns.output,
        "inputs": list(columns.inputs),
        "reference": list(columns.references),
        "context": columns.context,
        "metric_columns": [glob.escape(name) for name in table.metric_values],
    }
