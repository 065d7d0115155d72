"""A free metric that imitates a paid one: an induction whose target is that metric's own scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import dspy
import numpy as np

from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.datasets.given import as_table, merged_reading
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import percent
from metricsmith.metric import Metric
from metricsmith.model_calls.models import using
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import Prepared, prepare
from metricsmith.optimizers.own import from_learning
from metricsmith.optimizers.result import RunResult, write_metric_and
from metricsmith.optimizers.spending import spending
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.splitting import FEWEST_GROUPS, FEWEST_ROWS, Division
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.learned import has_learned, learned_from
from metricsmith.records import Scale, Task, Usage
from metricsmith.report.distillation.document import write_distillation
from metricsmith.report.distillation.record import Distillation, Divergence
from metricsmith.scoring import Budget, Concurrency, ScoreTable, estimate, score
from metricsmith.scoring.plan import as_metric
from metricsmith.stats.agreement import Agreement, Difference, agreement, paired_agreement
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.fold_agreement import agreement_over_folds, difference_over_folds
from metricsmith.stats.kept_share import KeptShare, kept_share
from metricsmith.store import Store

__all__ = ["Distilled", "distil"]

FREE = ("free", "cheap")  # costs of a card that ask no model and need no weights
FAMILY = "code"  # the one family of generated metrics that cost nothing when they score
EVERY = 1_000  # candidates: none costs anything, so that retrieval leaves out none
MOST_APART = 8  # rows shown


@dataclass(frozen=True, repr=False)
class Distilled:
    """The free metric, and the record of how far it stands in for the paid one."""

    metric: InducedMetric
    record: Distillation

    def write(self, folder: str | PathLike[str]) -> None:
        """Write ``metric.json``, ``distillation.html``, ``distillation.md`` and ``distillation.json``.

        Raises
        ------
        DataError
            If the folder cannot be written to.
        """
        write_metric_and(self.metric, folder, lambda target: write_distillation(self.record, target))

    def _repr_html_(self) -> str:
        return self.record._repr_html_()

    def __repr__(self) -> str:
        share = percent(abs(self.record.share.value))
        return f"Distilled({self.metric!r}, share kept {'−' * (self.record.share.value < 0)}{share})"


def distil(
    metric: Any,
    rows: Any,
    *,
    metrics: MetricBank | None = None,
    generators: Mapping[str, int] | None = None,
    n: int | None = None,
    fraction: float | None = None,
    cv: int | None = None,
    split: str = "auto",
    lm: Any = None,
    store: str | PathLike[str] | Store | None = None,
    budget: Budget | None = None,
    concurrency: Literal["auto"] | int | Concurrency = "auto",
    max_failure_rate: float = 0.2,
    progress: bool = True,
    seed: int = 0,
    **reading: Any,
) -> Distilled:
    """Fit a free metric to a paid metric's own scores, and measure how much of its agreement with people is kept.

    The free metric is induced from the metrics of the bank that ask no model and need no weights (length among them),
    and from generated functions where these are asked for. People's ratings are never fitted to.

    Parameters
    ----------
    metric : metric, callable or str
        The paid one: anything that `score` takes and that gives one number a row, better in one direction.
    rows : Table, or any source of `read_table`
        Outputs like those that the free metric is for; no rating is needed. Rows that people have rated, under
        ``target=...`` (an induced metric's own target by default), are compared with people where they are held out.
        Rows with equal texts are scored once, and are never on both sides.
    metrics : MetricBank, optional
        The candidates, in place of the default bank; one that costs something is an error.
    generators : mapping of str to int, optional
        ``{"code": 3}``: so many functions that `lm` writes join the candidates. Other families cost calls, and are an
        error.
    n : int, optional
        The number of components, by default twelve.
    fraction, cv, split
        As for `metricsmith.induce`.
    lm : dspy.LM, optional
        By default the one in force.
    store, budget, concurrency, max_failure_rate, progress
        As for `score`. One budget holds for everything. A failed judgement is no number: the row is left out, and
        counted.
    seed : int
        Decides splits and ties.
    **reading
        Options of `read_table`; an induced metric reads its rows as those of its training.

    Returns
    -------
    Distilled
        The metric is saved, loaded and used as any induced one; its card and its file name the metric that it
        imitates.

    Raises
    ------
    OptionError
        If the metric gives no number that is better one way, a candidate would not be free, or an option has no
        meaning.
    DataError
        If the data cannot be read, or the paid metric has a score on fewer than twenty rows in five groups or gives
        one and the same throughout.
    NeedsError, ModelFailure
        As `score` and `AutoMetrics.compile` raise them.
    """
    paid = as_metric(default_bank().get(metric) if isinstance(metric, str) else metric)
    _ = paid.output.sign  # refuses one that is better neither way
    if stray := sorted({*(generators or ())} - {FAMILY}):
        raise OptionError(
            f"generators={dict(generators or {})!r}: metrics of the family {stray[0]!r} cost model calls, and the "
            f"distilled metric is to be free; write generators={{'code': 3}}, or leave it out"
        )
    if costly := [one.card.name for one in (metrics.families if metrics else ()) if one.card.cost not in FREE]:
        raise OptionError(
            f"metrics names {costly[0]}, which is not free: pass a bank without metrics that have weights"
        )
    own = {"target": paid.task.target} if isinstance(paid, InducedMetric) else {}
    named = {**own, "require_target": False, **merged_reading([paid], reading)}
    table = as_table(rows, reading if isinstance(rows, Table) else named, distil)
    plain = [_unrated(row, table.task.target) for row in table.rows]
    division = Division(fraction, None, cv, split)
    with using(lm):
        expected = estimate([paid], plain, store=store)
        with spending(budget, concurrency, expected=expected, store=store, model=lm):
            judged = score(
                [paid], plain, store=store, concurrency=concurrency, max_failure_rate=max_failure_rate,
                progress=progress,
            )  # fmt: skip
            side = _side(paid, table, judged)
            optimizer = AutoMetrics(
                bank="all" if generators else "existing", metrics=metrics, generators=generators, k=EVERY, n=n,
                seed=seed, store=store if generators else None, concurrency=concurrency,
                progress=progress,
            )  # fmt: skip
            run = prepare(side.table, optimizer, division)
            done = run.induced()
    return _distilled(paid, side, run, done, judged)


@dataclass(frozen=True)
class _Side:
    """Rows with a paid score, as a table whose rating is that score; people's ratings beside it, NaN without one.

    `sign` is -1 where less is better to people; `known` counts the rated rows that the paid metric has learned from.
    """

    table: Table
    people: FloatArray
    target: str
    sign: int
    known: int


def _unrated(row: dspy.Example, target: str) -> dspy.Example:
    return row.without(target) if target in row else row


def _side(paid: Metric, table: Table, judged: ScoreTable) -> _Side:
    """The rows with a paid score, whose rating it becomes."""
    values = judged.run()[:, 0]
    places = np.flatnonzero(np.isfinite(values))
    part, scores, people = table.subset(places), values[places], table.ratings[places].copy()
    groups = {row["group"] for row in part.rows}
    if len(places) < FEWEST_ROWS or len(groups) < FEWEST_GROUPS:
        raise DataError(
            f"{paid.name} has a score on {len(places)} rows in {len(groups)} groups to learn from, and it takes "
            f"{FEWEST_ROWS} in {FEWEST_GROUPS}: give more rows, or name a finer group column with group=..."
        )
    if scores.min() == scores.max():
        raise DataError(f"{paid.name} gives {scores[0]:g} on every row: there is nothing to imitate")
    task = _imitation(paid, table.task, (scores.min(), scores.max()))
    rows = [
        _unrated(row, table.task.target).copy(**{task.target: score})
        for row, score in zip(part.rows, scores.tolist(), strict=True)
    ]
    known = from_learning(paid, RatedRows.of(rows, task.target)) & ~np.isnan(people)
    people[known] = math.nan
    imitated = replace(
        part, rows=rows, ratings=scores, task=task, metric_values={}, prior=(), people=None,
        columns=replace(part.columns, target=None),
    )  # fmt: skip
    return _Side(imitated, people, table.task.target, 1 if table.task.scale.higher_is_better else -1, int(known.sum()))


def _imitation(paid: Metric, task: Task, seen: Sequence[float]) -> Task:
    """The task to give the paid metric's scores, on its scale, or on the numbers seen where that has no ends."""
    low, high = seen if None in (paid.output.low, paid.output.high) else (paid.output.low, paid.output.high)
    told = filter(None, [paid.output.description, task.description or getattr(paid, "task", task).description])
    return Task(
        " ".join([f"Give the score that {paid.name} ({paid.fingerprint()[:12]}) gives.", *told]),
        f"scores of {paid.name}",
        Scale(float(low or 0.0), float(high or 0.0), higher_is_better=paid.output.sign > 0),
    )


def _distilled(paid: Metric, side: _Side, run: Prepared, done: RunResult, judged: ScoreTable) -> Distilled:
    """The record, and the metric with the name of the one that it imitates."""
    record = done.record
    held = [row for row in record.data if record.held_out(row)]
    places = np.sort(run.splits.places["train" if record.evaluation == "cv" else "test"]) if held else np.array([], int)
    number = [math.nan if row.prediction is None else row.prediction for row in held]
    free, scores = np.array(number, dtype=float), side.table.ratings[places]
    folds = [np.flatnonzero([row.fold == fold for row in held]) for fold in sorted({row.fold for row in held})]
    people = side.sign * np.where(np.isnan(free), math.nan, side.people[places])
    groups = [str(side.table.rows[place]["group"]) for place in places]
    found = _people(paid.output.sign * free, paid.output.sign * scores, people, groups, folds)
    gaps = _standard(free) - _standard(scores)
    apart = [place for place in np.argsort(-np.abs(gaps), kind="stable") if abs(gaps[place]) > 0]
    fingerprint = paid.fingerprint()
    metric = done.metric
    metric.made_with = {**metric.made_with, "imitates": f"the metric {paid.name} ({fingerprint})"}
    spent = Usage(**{name: record.usage[name] for name in ("requests", "prompt_tokens", "completion_tokens", "cost")})
    distillation = Distillation(
        paid=paid.name, fingerprint=fingerprint, width=side.table.task.scale.width, evaluation=record.evaluation,
        learned=record.rows["train"], components=record.components, imitation=record.test,
        target=side.target if np.isfinite(people).any() else "", **found,
        apart=tuple(
            Divergence(
                held[place].id, held[place].output, held[place].input, free[place], scores[place], gaps[place],
                None if math.isnan(people[place]) else float(side.people[places[place]]),
            )
            for place in apart[:MOST_APART]
        ),
        judgements=judged.counts(), usage=judged.usage + spent, signature=metric.settings.signature,
        split=record.split, notes=_notes(paid, metric, record.notes),
        warnings=_warnings(paid, side.known, judged, record.test),
    )  # fmt: skip
    about = f"Ratings in this record are the scores of {paid.name}: no person gave them."
    own = replace(record, title=f"Imitation of {paid.name}", warnings=(about, *record.warnings))
    return Distilled(metric.with_record(own), distillation)


def _people(
    free: FloatArray, paid: FloatArray, people: FloatArray, groups: Sequence[str], folds: Sequence[Any]
) -> dict[str, Any]:
    """The agreement of both with people on the rows that have both numbers and a rating, by fold."""
    known = ~np.isnan(people)
    if not known.any():
        none = Agreement(0, 0)
        return {"free_people": none, "paid_people": none, "difference": Difference(0, 0), "share": KeptShare(0, 0)}
    parts = [fold[known[fold]] for fold in folds if known[fold].any()]
    first, second, y = ([values[part] for part in parts] for values in (free, paid, people))
    labels = [[groups[place] for place in part] for part in parts]
    share = kept_share(first, second, y, labels)
    if len(folds) == 1:
        one = (y[0], labels[0])
        return {
            "free_people": agreement(first[0], *one), "paid_people": agreement(second[0], *one),
            "difference": paired_agreement(first[0], second[0], *one), "share": share,
        }  # fmt: skip
    return {
        "free_people": agreement_over_folds(first, y, labels), "paid_people": agreement_over_folds(second, y, labels),
        "difference": difference_over_folds(first, second, y, labels), "share": share,
    }  # fmt: skip


def _standard(values: FloatArray) -> FloatArray:
    """In standard deviations from the mean; 0 where all are alike, NaN where there is none."""
    known = values[np.isfinite(values)]
    spread = float(known.std()) if known.size else 0.0
    return np.asarray((values - known.mean()) / spread if spread > 0 else values * 0.0)


def _notes(paid: Metric, metric: InducedMetric, notes: Sequence[str]) -> tuple[str, ...]:
    more = sorted({*metric.card.needs} - {*paid.card.needs})
    said = {
        f"{paid.name} asks no model and needs no weights: it is free already": paid.card.cost in FREE,
        f"the free metric needs {', '.join(more)}, which {paid.name} does not: pass a bank without such metrics": more,
    }
    return (*(line for line, holds in said.items() if holds), *notes)


def _warnings(paid: Metric, known: int, judged: ScoreTable, found: Agreement) -> tuple[str, ...]:
    failed = judged.counts()
    lost = failed["requested"] - failed["ok"]
    said = {
        f"{paid.name} has learned from {known} of the rated rows or their groups: these are not compared with people":
            known,
        f"{paid.name} has learned from rated rows and does not say which: if they are among these, its agreement with "
        "people is too good": has_learned(paid) and not learned_from(paid),
        f"{paid.name} has no score on {lost} of {failed['requested']} rows: if these are harder than the others, the "
        "free metric has not learned from them": lost,
        f"on held-out rows the free metric cannot be told from chance as an imitation of {paid.name}":
            found.n and not found.ci_low > 0,
    }  # fmt: skip
    return tuple(line for line, holds in said.items() if holds)
