"""The whole job on a table: choose the sides, induce, evaluate, record."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import Split, content_order, effective_groups, folds, holdout
from metricsmith.datasets.table import Table
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.metric import Metric
from metricsmith.optimizers.apart import set_apart
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.generation import GENERATORS
from metricsmith.optimizers.induction import Options
from metricsmith.optimizers.rated import Rated, shared_source
from metricsmith.optimizers.runs import Induced, Sides, estimate_run, evaluate
from metricsmith.optimizers.signature import known_signature
from metricsmith.optimizers.spending import budget_lines, spending
from metricsmith.optimizers.splitting import FRACTION, Division, fold_count, settled
from metricsmith.optimizers.twins import twin_note
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Status, Task, Usage
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.scoring import Budget, Concurrency
from metricsmith.store import Store

__all__ = ["Induced", "Prepared", "configure", "induce", "prepare", "with_probe"]


class Probing(Protocol):
    """The part of a `Prober` that an induction uses: probing stands above it."""

    def filled(
        self,
        *,
        lm: Any,
        store: str | PathLike[str] | Store | None,
        budget: Budget | None,
        concurrency: Literal["auto"] | int | Concurrency,
    ) -> Self:
        """The same with these where it has none of its own."""

    def probe(self, metric: Metric, rows: Sequence[dspy.Example], task: Task | None = None) -> ProbeRecord:
        """Change outputs of the rows and score them."""

    def outlook(self, rows: Sequence[dspy.Example], task: Task) -> str:
        """A sentence on what it will take."""


def induce(
    table: Table,
    optimizer: AutoMetrics | None = None,
    *,
    fraction: float | None = None,
    test: Table | None = None,
    cv: int | None = None,
    split: str = "auto",
    prober: Probing | None = None,
) -> Induced:
    """Induce a metric from a table and evaluate it on rows that the fit has not seen.

    Parameters
    ----------
    table : Table
        Read by `read_table`; its candidate columns join the optimizer's.
    optimizer : AutoMetrics, optional
        By default ``AutoMetrics()``.
    fraction : float, optional
        Share of the rated rows to hold out, by group; 0 evaluates on the training rows, with a warning.
    test : Table, optional
        Test rows of their own, instead of a fraction.
    cv : int, optional
        Grouped cross-validation instead: generation, retrieval and fit are repeated inside each of this
        many folds, ``test`` is the mean over folds, and the metric is fitted on all rated rows.
    split : str
        What is done where none of these three is given. ``holdout``: .3 of the rows are held out. ``cv``:
        cross-validation, in five folds where they have four groups each and no model is asked, else in three.
        ``auto``: a hold-out where it leaves 15 groups or more, else cross-validation, as long as the optimizer's budget
        reaches for it and it takes at most five times the requests.
    prober : Prober, optional
        Changes outputs of the table on purpose and shows in the report what the metric makes of them (`with_probe`).

    Raises
    ------
    OptionError
        If `cv` and `test` are both given, or `split` contradicts one of them, or the table has no target.
    DataError
        If there are too few groups.
    NeedsError, ModelFailure
        As `AutoMetrics.compile` raises them.
    """
    run = prepare(table, optimizer, Division(fraction, test, cv, split))
    with run.spending():
        done = run.induced()
        return done if prober is None else with_probe(done, table, optimizer or AutoMetrics(), prober)


def prepare(table: Table, optimizer: AutoMetrics | None = None, division: Division | None = None) -> Prepared:
    """Decide all that `induce` with the same arguments decides before anything is asked; errors as there."""
    if not isinstance(table, Table):
        raise OptionError(f"induce takes a Table, not a {type(table).__name__}: read one with read_table(...)")
    options, task = configure(table, optimizer or AutoMetrics())
    division = division or Division()
    sides, options = _apart(table, options, task, division)
    return Prepared(table, task, options, sides, table if division.test is None else division.test)


@dataclass(frozen=True)
class Prepared:
    """A run of which the sides are chosen and nothing is asked yet; `tested` is the table that the test rows are of."""

    table: Table
    task: Task
    options: Options
    sides: Sides
    tested: Table

    @cached_property
    def estimated(self) -> Usage:
        """The requests that the run is likely to make."""
        return estimate_run(self.sides, self.task, self.options)

    @property
    def signature(self) -> Sequence[str]:
        """The parts of the signature line that are known already."""
        return known_signature(len(self.sides.train), self.sides.origin, self.task, self.options)

    def spending(self) -> AbstractContextManager[None]:
        """One budget for whatever is asked in a block: the run, and a probe after it."""
        options = self.options
        return spending(
            options.budget, options.concurrency, expected=self.estimated, store=options.store, model=options.model
        )

    def induced(self) -> Induced:
        """Run it."""
        done = evaluate(self.sides, self.task, self.options, self.estimated)
        done.metric.record = replace(done.record, raters=self.tested.rater_ceiling())
        done.metric.settings.values["reading"] = _reading(self.table, done.metric)
        return replace(done, record=done.metric.record)

    def plan(self, prober: Probing | None = None) -> str:
        """Say what the run would do and what it would ask of the model; asks nothing."""
        options, sides, usage, counts = self.options, self.sides, self.estimated, self.options.sources.generators
        if isinstance(options.store, str | PathLike) and Path(options.store).exists():
            Store(options.store, read_only=True).close()  # the run would find out too, but later
        chosen = options.plan(sides.train)
        most = estimate_run(sides, self.task, options, most=True).requests
        cost = "unknown price" if usage.cost is None else f"about ${usage.cost:.2f}"
        judges = sum(counts.values()) if chosen.generated else 0
        seated = sum(count for name, count in counts.items() if name in GENERATORS and GENERATORS[name].on_panels)
        own = f", {len(options.sources.own)} of your own" if options.sources.own else ""
        known = judges and options.store is not None
        stored = "; the store may hold a part of that: it shows only with the judges" if known else ""
        together = f" ({seated} of them asked together)" if options.sources.panel and judges else ""
        return "\n".join(
            [
                f"rows: {len(sides.train)} train, {len(sides.test)} test, {len(sides.unrated)} unrated",
                f"source: {sides.origin}",
                *([sides.split] if sides.split else []),
                f"candidates: {judges} generated judges{together}, {'the' if chosen.existing else 'no'} bank metrics, "
                f"{len(options.sources.columns)} columns{own}; retrieval keeps at most {options.sources.k} judges and "
                "metrics",
                *chosen.notes,
                *sides.warnings,
                f"requests: {usage.requests}, prompt tokens: {usage.prompt_tokens}, completion tokens: "
                f"{usage.completion_tokens} ({cost}; what is likely, retries not counted; at most {most} requests"
                f"{stored})",
                *(f"budget: {line}" for line in budget_lines(options.budget, usage)),
                *([] if prober is None else [prober.outlook(self.table.rows, self.task)]),
                "nothing was sent and nothing was written",
            ]
        )


def with_probe(done: Induced, table: Table, optimizer: AutoMetrics, prober: Probing) -> Induced:
    """The same with a section on outputs of the table that were changed on purpose.

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
        usage = _with(done.record.usage, found)
        record = replace(done.record, probe=found, warnings=warnings, notes=notes, usage=usage)
    done.metric.record = record
    return replace(done, record=record)


def _with(usage: Mapping[str, Any], found: ProbeRecord) -> dict[str, Any]:
    """What the run cost, with the probe; before the run its cost could not be known."""
    sent = found.usage
    cost = [part for part in (usage["cost"], sent.cost) if part is not None]
    return {
        **usage,
        "requests": usage["requests"] + sent.requests,
        "prompt_tokens": usage["prompt_tokens"] + sent.prompt_tokens,
        "completion_tokens": usage["completion_tokens"] + sent.completion_tokens,
        "cost": sum(cost) if cost else None,
        "seconds": round(usage["seconds"] + sent.seconds, 3),
    }


def configure(table: Table, optimizer: AutoMetrics) -> tuple[Options, Task]:
    """The optimizer's options with the table's candidate columns added."""
    sources = optimizer.options.sources
    columns = tuple(dict.fromkeys([*sources.columns, *table.metric_values]))
    prior = tuple(dict.fromkeys([*sources.prior_columns, *table.prior]))
    task = optimizer.task or table.task
    if not task.target:
        raise OptionError("the table has no rating column: name one with target=... (--target)")
    return replace(optimizer.options, sources=replace(sources, columns=columns, prior_columns=prior)), task


def _apart(table: Table, options: Options, task: Task, division: Division) -> tuple[Sides, Options]:
    """The sides, and the options with those of the caller's own metrics that can be weighed on them.

    Rows from which these have learned are set apart before the others are divided, and then join the learning side.
    """
    if not options.sources.own:
        return _chosen(table, options, task, division), options
    order = content_order(table.rows, task.target)
    places = order[~np.isnan(table.ratings[order])]
    rated = Rated.of(table.subset(places).rows, task.target)

    def divide(learned: NDArray[np.bool_]) -> Sides:
        if not learned.any():
            return _chosen(table, options, task, division)
        rest = np.setdiff1d(np.arange(len(table)), places[learned])
        more = rated.take(np.flatnonzero(learned))
        sides = _chosen(table.subset(rest), options, task, division, more)
        own = ("train", "unrated", *(["test"] if division.test is None else []))
        given = {**sides.places, **{side: rest[sides.places[side]] for side in own}}
        given["train"] = np.concatenate([given["train"], places[learned]])
        return replace(sides.with_learning(more), places=given)

    sides, own = set_apart(options.sources.own, rated, divide)
    return sides, replace(options, sources=replace(options.sources, own=own))


def _chosen(table: Table, options: Options, task: Task, division: Division, more: Rated | None = None) -> Sides:
    """The sides that are asked for; where none are, those that `split` stands for. `more` rows join the learners."""
    if not division.open:
        return _sides(table, options, task, division)
    part = table.subset(table.rated())
    groups = len(set(effective_groups(part.groups, part.texts).tolist()))
    asks = options.model is not None and options.plan(Rated.of(part.rows, task.target)).generated
    crossed = partial(_sides, table, options, task, Division(cv=fold_count(groups, asks)))
    if division.split == "cv":
        return crossed()
    held = _sides(table, options, task, Division(fraction=FRACTION))
    return held if division.split == "holdout" else settled(held, crossed, task, options, more)


def _sides(table: Table, options: Options, task: Task, division: Division) -> Sides:
    test, cv = division.test, division.cv
    order = content_order(table.rows, task.target)
    places, apart = order[~np.isnan(table.ratings[order])], order[np.isnan(table.ratings[order])]
    part = table.subset(places)
    rated, none = Rated.of(part.rows, task.target), Rated.of([], task.target)
    given = {"train": places, "test": places[:0], "unrated": apart}
    kind, how, train, held = "train_only", "no test rows", rated, none
    parts: tuple[Split, ...] = ()
    if cv is not None:
        kind, how = "cv", f"{cv}-fold cross-validation by group"
        parts = folds(part.groups, cv, options.seed, part.texts, ratings=part.ratings)
    elif test is not None:
        kind, how = "file", f"test {test.source}"
        order = content_order(test.rows, task.target)
        given["test"] = order[~np.isnan(test.ratings[order])]
        held = Rated.of(test.subset(given["test"]).rows, task.target)
        shared = shared_source(_named_groups(table, rated), _named_groups(test, held))
        if shared:
            raise OptionError(
                f"{shared} of the test file {test.name} stands in the training rows too: what was fitted on cannot "
                "test; leave such rows out (--where), or hold out a share instead (--test 0.3)"
            )
    elif division.fraction:
        kind, how = "holdout", f"{division.fraction:g} held out by group"
        two = holdout(part.groups, part.texts, fraction=division.fraction, seed=options.seed, ratings=part.ratings)
        train, held = rated.take(two.train), rated.take(two.test)
        given |= {"train": places[two.train], "test": places[two.test]}
    origin = (
        f"data {table.source}, {len(table)} rows, columns {table.columns}, "
        f"scale {task.scale}{f', {table.people}' if table.people is not None else ''} | {how}"
    )
    first = options.sources.check_columns(part.rows, task.target)
    pairs = [(rated.take(one.train).rows, rated.take(one.test).rows) for one in parts] or [(train.rows, held.rows)]
    notes = tuple(filter(None, (*table.notes, twin_note(pairs))))
    return Sides(kind, train, held, table.subset(apart).rows, parts, origin, notes, given, first)


def _named_groups(table: Table, rated: Rated) -> Rated:
    """The rows without the groups that nobody named: row numbers mean nothing in another file."""
    if table.columns.group is not None:
        return rated
    names = ("group", "own_group")
    return replace(rated, rows=[row.without(*(name for name in names if name in row)) for row in rated.rows])


def _reading(table: Table, metric: InducedMetric) -> dict[str, Any]:
    """How to read new rows in the same way: the columns that the components look at, no others."""
    columns, cards = table.columns, [component.card for component in metric.components]
    judged = any(card.cost == "model" for card in cards)
    needs = {need for card in cards for need in card.needs}
    reading: dict[str, Any] = {
        "metric_columns": [glob.escape(card.name) for card in cards if card.kind == "column"],
    }
    if any(card.kind != "column" for card in cards):
        reading["output"] = columns.output
    if judged or "input" in needs:
        reading["inputs"] = list(columns.inputs)
    if judged or "references" in needs:
        reading["reference"] = list(columns.references)
    if judged:
        reading["context"] = columns.context
    return reading
