"""From rated rows to an induced metric and its record: generate, retrieve, score, fit, report."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.base import numbers_kept
from metricsmith.datasets.columns import Columns
from metricsmith.datasets.given import as_table
from metricsmith.datasets.splits import Split
from metricsmith.datasets.table import Table
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.formats import count, money
from metricsmith.optimizers.candidates import generate_candidates, retrieve_candidates
from metricsmith.optimizers.evaluation import FoldTrial, cross_validated, held_out, needed_places
from metricsmith.optimizers.fitting import check_learnable, fit
from metricsmith.optimizers.generation import FREE, GENERATORS
from metricsmith.optimizers.options import ChosenSources, Options, unusable_notes
from metricsmith.optimizers.own import check_functions, from_learning
from metricsmith.optimizers.passes import Pass, stage
from metricsmith.optimizers.probed import Probing, with_probe
from metricsmith.optimizers.recording import SignatureLine, record_run
from metricsmith.optimizers.result import RunResult
from metricsmith.optimizers.spending import budget_lines, estimate_run, spending
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.optimizers.splitting import Division, configure, split_table
from metricsmith.records import Task, Usage
from metricsmith.scoring import ScoreTable, score
from metricsmith.scoring.local import told_once
from metricsmith.stats.ceiling import RaterCeiling
from metricsmith.store import Store

notes = logging.getLogger("metricsmith.notes")

__all__ = ["Prepared", "induce", "induce_splits", "prepare", "run_pass"]


def run_pass(
    train: RatedRows,
    others: Sequence[dspy.Example],
    task: Task,
    options: Options,
    unrated: Sequence[dspy.Example] = (),
    *,
    sources: ChosenSources | None = None,
) -> Pass:
    """Generate, retrieve, score and fit.

    Parameters
    ----------
    train : RatedRows
        The only rows whose ratings are seen.
    others : sequence of dspy.Example
        Rows that are scored along, for testing. Their ratings are never read.
    task : Task
    options : Options
    unrated : sequence of dspy.Example
        Rows without a rating. Where no candidate costs a model call they help to choose the small model.
    sources : ChosenSources, optional
        By default as the number of training rows decides.
    """
    check_learnable(train.ratings)
    sources = sources or options.chosen_sources(train)
    options = options.trained(train, task)
    with options.asking():
        with stage("finding candidates", options.progress):
            pool = generate_candidates(train.rows, task, options, sources)
            candidates = retrieve_candidates(pool, task, options)
        with stage("scoring rows", options.progress):
            scored = score(candidates.metrics, [*train.rows, *others], **options.scoring)
            candidates = candidates.without(scored.dropped)
            asked = scored.select(metric.name for metric in candidates.metrics)
            candidates = candidates.without_sparse(options.sparse(asked, len(train)))
            table = scored.select(metric.name for metric in candidates.metrics)
            extra = score(candidates.metrics, [] if candidates.costly else unrated, progress=False).run()
    warnings = check_functions(
        table, train.ratings, task.target, allowed=options.allow_columns, prior=options.prior_columns
    )
    new = np.zeros(len(train), dtype=bool)
    learned = [from_learning(metric, train) if metric.name in candidates.own else new for metric in table.metrics]
    mask = np.array(learned, dtype=bool).reshape(len(table.metrics), len(train)).T
    with stage("fitting", options.progress):
        fitted = fit(
            np.where(mask, np.nan, table.run()[: len(train)]),
            train.ratings,
            table.names,
            declared=candidates.declared,
            judged=candidates.judged,
            higher_is_better=task.scale.higher_is_better,
            options=options.fit.settled(candidates.costly),
            unrated=extra,
        )
    return Pass(train, task, options, candidates, scored, table, extra, fitted, mask, warnings)


def induce_splits(
    splits: Splits,
    task: Task,
    options: Options,
    expected: Usage | None = None,
    *,
    columns: Columns | None = None,
    raters: RaterCeiling | None = None,
) -> RunResult:
    """Induce a metric from given splits, and measure its agreement with ratings that the fit has not seen.

    Under cross-validation the whole pass is repeated inside every fold, and the metric itself is fitted on all rows.
    What learns from ratings learns them anew in each fold, from its learning rows alone.

    Parameters
    ----------
    splits : Splits
    task : Task
    options : Options
    expected : Usage, optional
        The estimate, where it is known already.
    columns : Columns, optional
        Where the rows were read from, so that new rows can be read alike.
    raters : RaterCeiling, optional
        For the record.

    Raises
    ------
    ModelFailure
        If the budget runs out before all is known, and as `run_pass` raises it.
    """
    expected = estimate_run(splits, task, options) if expected is None else expected
    store, model = options.store, options.model
    limits = spending(options.budget, options.concurrency, expected=expected, store=store, model=model)
    started = time.perf_counter()
    with limits, _own_store(options) if splits.folds else nullcontext(options) as own:
        if own.store is not None and not isinstance(own.store, Store):
            Store(own.store).close()  # one that cannot be used is found out before anything is paid for
        with numbers_kept() if splits.folds else nullcontext(), told_once():
            sources = own.chosen_sources(splits.train)  # one procedure for all folds: that of the saved metric
            for line in own.absent_weights if sources.existing else ():
                notes.warning("%s", line)
            trials = [_fold_trial(splits.train, fold, task, own, sources) for fold in splits.folds]
            trained = run_pass(splits.train, splits.test.rows, task, own, splits.unrated, sources=sources)
            evaluation = cross_validated(trained, splits.folds, trials) if trials else held_out(trained, splits)
        metric = trained.metric(SignatureLine.of(splits, task, own).whole(trained), columns)
        record = record_run(
            trained, metric, evaluation, _judge_unrated(trained, splits.unrated), splits,
            estimated=expected, seconds=time.perf_counter() - started, raters=raters,
        )  # fmt: skip
    return RunResult(metric.with_record(record), record)


@contextmanager
def _own_store(options: Options) -> Iterator[Options]:
    """Options with a temporary store where the run has none.

    A judge that is the same in several folds, because it learned nothing from ratings, is then asked once a row.
    """
    if options.store is not None or options.model is None:
        yield options
        return
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "judgements.sqlite")
        try:
            yield replace(options, store=store)
        finally:
            store.close()


def _fold_trial(rated: RatedRows, fold: Split, task: Task, options: Options, sources: ChosenSources) -> FoldTrial:
    """The pass on a fold's learning rows, and the judgements of its held-out rows.

    Of the candidates that cost requests, those are asked on the held-out rows that the metric, the best single
    candidate or the paper's regression of the fold needs.
    """
    trained, test = run_pass(rated.take(fold.train), [], task, options, sources=sources), rated.take(fold.test)
    known = needed_places(trained)
    with options.asking():
        held = score([trained.table.metrics[place] for place in known], test.rows, **options.scoring)
    values = np.full((len(test), len(trained.table.metrics)), np.nan)
    values[:, known] = held.run()
    judgements = [*trained.scored.flat(), *held.flat()]
    return FoldTrial(trained, test, values, frozenset(known), held=held, judgements=judgements)


def _judge_unrated(trained: Pass, rows: Sequence[dspy.Example]) -> ScoreTable:
    """The components' judgements of unrated rows; the metric is made even if no component can judge these."""
    options, metrics = trained.options, trained.saved
    try:
        with dspy.context(lm=options.model):
            return score(metrics, rows, **options.scoring)
    except ModelFailure as stopped:
        table: ScoreTable | None = stopped.table
        if options.strict or table is None or len(table.dropped) < len(metrics):
            raise
        return table


def induce(
    data: Any,
    optimizer: Options | None = None,
    *,
    fraction: float | None = None,
    test: Any = None,
    cv: int | None = None,
    split: str = "auto",
    prober: Probing | None = None,
    **reading: Any,
) -> RunResult:
    """Induce a metric from rated outputs and evaluate it on rows that the fit has not seen.

    Parameters
    ----------
    data : Table, or any source of `read_table`
        A path, a data frame, a data set, dicts or rows are read by `read_table`, guesses and all: its notes go to the
        logger ``metricsmith.notes``. Candidate columns join the optimizer's.
    optimizer : AutoMetrics, optional
        By default ``AutoMetrics()``.
    fraction : float, optional
        Share of the rated rows to hold out, by group; 0 evaluates on the training rows, with a warning.
    test : Table, or any source of `read_table`, optional
        Test rows of their own, instead of a fraction; read as `data` are.
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
    **reading
        Options of `read_table` for data that are not read yet: ``target="stars"``, ``output="answer"`` and so on.

    Raises
    ------
    OptionError
        If `cv` and `test` are both given, or `split` contradicts one of them, or the table has no target.
    DataError
        If the data cannot be read, or there are too few groups.
    NeedsError, ModelFailure
        As `AutoMetrics.compile` raises them.
    """
    if optimizer is not None and not isinstance(optimizer, Options):
        raise OptionError(
            f"optimizer={optimizer!r:.60} is no AutoMetrics: write AutoMetrics(...); columns go by name, say "
            "target='rating'"
        )
    table = as_table(data, reading, induce)
    if test is not None:
        test = as_table(test, {} if isinstance(test, Table) else reading, induce)
    run = prepare(table, optimizer, Division(fraction, test, cv, split))
    with run.spending():
        done = run.induced()
        return done if prober is None else with_probe(done, table, optimizer or Options(), prober)


def prepare(table: Table, optimizer: Options | None = None, division: Division | None = None) -> Prepared:
    """Take all decisions that `induce` of a table takes before anything is asked; errors as there."""
    options, task = configure(table, optimizer or Options())
    division = division or Division()
    splits, options = split_table(table, options, task, division)
    return Prepared(table, task, options, splits, table if division.test is None else division.test)


@dataclass(frozen=True)
class Prepared:
    """A run with its splits chosen and nothing asked yet; `tested` is the table from which the test rows come."""

    table: Table
    task: Task
    options: Options
    splits: Splits
    tested: Table

    @cached_property
    def estimated(self) -> Usage:
        """The requests that the run is likely to make."""
        return estimate_run(self.splits, self.task, self.options)

    @property
    def signature(self) -> SignatureLine:
        """The parts of the signature line that are known already."""
        return SignatureLine.of(self.splits, self.task, self.options)

    def spending(self) -> AbstractContextManager[None]:
        """One budget for all requests of a block: those of the run, and of a probe after it."""
        options = self.options
        return spending(
            options.budget, options.concurrency, expected=self.estimated, store=options.store, model=options.model
        )

    def induced(self) -> RunResult:
        """Run it: an induced metric and its record."""
        raters, columns = self.tested.rater_ceiling(), self.table.columns
        return induce_splits(self.splits, self.task, self.options, self.estimated, columns=columns, raters=raters)

    def plan(self, prober: Probing | None = None) -> str:
        """The text of a dry run: rows, candidates, requests and cost; asks nothing."""
        options, splits, usage = self.options, self.splits, self.estimated
        if isinstance(options.store, str | PathLike) and Path(options.store).exists():
            Store(options.store, read_only=True).close()  # the run would find out too, but later
        chosen = options.chosen_sources(splits.train)
        most = estimate_run(splits, self.task, options, most=True).requests
        cost = "price unknown" if usage.cost is None else f"about {money(usage.cost)}"
        counts = options.judge_counts if chosen.generated else {}
        judges = sum(own for name, own in counts.items() if name not in FREE)
        free = "".join(f", {own} of the family {name!r}" for name, own in counts.items() if own and name in FREE)
        seated = sum(own for name, own in counts.items() if name in GENERATORS and GENERATORS[name].on_panels)
        usable, unusable = options.whole_bank.usable(splits.train.rows, coverage=options.coverage)
        weighted = {one.card.name: one.card.checkpoint for one in usable if one.family.model is not None}
        memory = ", ".join(f"{name} ({one.memory:.1f} GB)" for name, one in weighted.items() if one is not None)
        own = f", {len(options.own)} of your own" if options.own else ""
        known = judges and options.store is not None
        stored = "; the store may hold a part of that: it shows only with the judges" if known else ""
        together = f" ({seated} of them asked together)" if options.panel and judges else ""
        return "\n".join(
            [
                f"rows: {len(splits.train)} train, {len(splits.test)} test, {len(splits.unrated)} unrated",
                f"source: {splits.origin}",
                *([splits.split] if splits.split else []),
                f"candidates: {judges} generated judges{together}{free}, {'the' if chosen.existing else 'no'} bank "
                f"metrics, {len(options.columns)} columns{own}; retrieval keeps at most {options.k} judges and metrics",
                *([f"with weights, and the memory of each: {memory}"] if memory and chosen.existing else []),
                *chosen.notes,
                *options.remarks,
                *(unusable_notes(unusable) if chosen.existing else []),
                *splits.warnings,
                f"requests: {count(usage.requests)}, prompt tokens: {count(usage.prompt_tokens)}, completion tokens: "
                f"{count(usage.completion_tokens)} ({cost}; what is likely, retries not counted; at most "
                f"{count(most, 'request')}{stored})",
                *(f"budget: {line}" for line in budget_lines(options.budget, usage)),
                *([] if prober is None else [prober.outlook(self.table.rows, self.task)]),
                "nothing was sent and nothing was written",
            ]
        )
