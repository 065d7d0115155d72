"""The choice of splits: a hold-out or cross-validation, and rows that metrics have learned from already.

Groups with rows that a metric of the caller's has learned from stay on the learning side, in every fold, and the metric
has no value there: no metric is weighed by such rows, nor tested on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import Split, content_order, effective_groups, folds, holdout
from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError, nearest
from metricsmith.formats import count, statistic
from metricsmith.metric import Metric
from metricsmith.optimizers.cross_fitting import is_untrained
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.own import from_learning
from metricsmith.optimizers.spending import budget_lines, estimate_run
from metricsmith.optimizers.splits import RatedRows, Splits, shared_source, twin_note
from metricsmith.programs.learned import has_learned, learned_from
from metricsmith.records import Task, Usage

__all__ = [
    "ENOUGH", "FEWEST_GROUPS", "FEWEST_ROWS", "FRACTION", "SPLITS", "Division", "configure", "fold_count",
    "named_groups", "set_apart", "split_table",
]  # fmt: skip

BoolArray = NDArray[np.bool_]
FEWEST_ROWS, FEWEST_GROUPS = 20, 5  # that a metric has not learned from, for it to be weighed by
SPLITS = ("auto", "holdout", "cv")
FRACTION = 0.3  # of the rated rows, where a hold-out is made
ENOUGH = 15
"""Held-out groups from which on the default holds rows out; with fewer it cross-validates."""
FEW, MANY = 3, 5
GROUPS_A_FOLD = 4
MOST_TIMES = 5  # requests of a cross-validation that nobody asked for, over those of a hold-out


@dataclass(frozen=True)
class Division:
    """The caller's wish for a split: the options of `induce`, by their names.

    Raises
    ------
    OptionError
        For an unknown way to split, or one that contradicts what else is asked for.
    """

    fraction: float | None = None
    test: Table | None = None
    cv: int | None = None
    split: str = "auto"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise OptionError(f"split={self.split!r}{nearest(self.split, SPLITS)} must be one of {', '.join(SPLITS)}")
        if self.cv is not None and self.test is not None:
            raise OptionError("--cv and a test file exclude each other: cross-validation tests on every row")
        asked = "" if self.open else "--cv" if self.cv is not None else "--test"
        if asked and self.split == ("holdout" if asked == "--cv" else "cv"):
            raise OptionError(f"--split {self.split} and {asked} contradict each other; leave one of them out")

    @property
    def open(self) -> bool:
        """True if nothing but `split` decides."""
        return self.fraction is None and self.test is None and self.cv is None


def fold_count(groups: int, asks: bool) -> int:
    """The default number of folds.

    Three cover as well as more (docs/coverage.md) and cost least, so that three are taken where a model is asked.
    Elsewhere five leave fits more rows, if each then has four groups.
    """
    return min(MANY if not asks and groups >= MANY * GROUPS_A_FOLD else FEW, groups)


def split_table(table: Table, options: Options, task: Task, division: Division) -> tuple[Splits, Options]:
    """The splits, and the options with those of the caller's own metrics that can be weighed on them.

    Rows from which these have learned are set apart before the others are divided, and then join the learning side.
    """
    if not options.own:
        return _chosen(table, options, task, division), options
    order = content_order(table.rows, task.target)
    places = order[~np.isnan(table.ratings[order])]
    rated = RatedRows.of(table.subset(places).rows, task.target)

    def divide(learned: NDArray[np.bool_]) -> Splits:
        if not learned.any():
            return _chosen(table, options, task, division)
        rest = np.setdiff1d(np.arange(len(table)), places[learned])
        more = rated.take(np.flatnonzero(learned))
        splits = _chosen(table.subset(rest), options, task, division, more)
        own = ("train", "unrated", *(["test"] if division.test is None else []))
        given = {**splits.places, **{side: rest[splits.places[side]] for side in own}}
        given["train"] = np.concatenate([given["train"], places[learned]])
        return replace(splits.with_learning(more), places=given)

    splits, own = set_apart(options.own, rated, divide)
    return splits, options.with_own(own)


def _chosen(table: Table, options: Options, task: Task, division: Division, more: RatedRows | None = None) -> Splits:
    """The splits that are asked for, or else those that `split` stands for; `more` rows join the learning side."""
    if not division.open:
        return _splits(table, options, task, division)
    part = table.subset(table.rated())
    groups = len(set(effective_groups(part.groups, part.texts).tolist()))
    asks = options.model is not None and options.chosen_sources(RatedRows.of(part.rows, task.target)).generated
    crossed = partial(_splits, table, options, task, Division(cv=fold_count(groups, asks)))
    if division.split == "cv":
        return crossed()
    held = _splits(table, options, task, Division(fraction=FRACTION))
    return held if division.split == "holdout" else _settled(held, crossed, task, options, more)


def _splits(table: Table, options: Options, task: Task, division: Division) -> Splits:
    test, cv = division.test, division.cv
    order = content_order(table.rows, task.target)
    places, apart = order[~np.isnan(table.ratings[order])], order[np.isnan(table.ratings[order])]
    part = table.subset(places)
    rated, none = RatedRows.of(part.rows, task.target), RatedRows.of([], task.target)
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
        held = RatedRows.of(test.subset(given["test"]).rows, task.target)
        named = (replace(side, rows=named_groups(one, side.rows)) for one, side in ((table, rated), (test, held)))
        shared = shared_source(*named)
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
    first = options.check_columns(part.rows, task.target)
    pairs = [(rated.take(one.train).rows, rated.take(one.test).rows) for one in parts] or [(train.rows, held.rows)]
    notes = tuple(filter(None, (*table.notes, twin_note(pairs))))
    return Splits(kind, train, held, table.subset(apart).rows, parts, origin, notes, given, first)


def named_groups(table: Table, rows: Sequence[dspy.Example]) -> list[dspy.Example]:
    """Rows of a table without groups that are row numbers or guesses: these mean nothing in another file."""
    names = ("group", "own_group") if table.columns.group is None else ()
    return [row.without(*(name for name in names if name in row)) for row in rows]


def _settled(
    held: Splits, crossed: Callable[[], Splits], task: Task, options: Options, more: RatedRows | None = None
) -> Splits:
    """The splits that ``--split auto`` takes.

    Parameters
    ----------
    held : Splits
        A hold-out.
    crossed : callable
        Makes the cross-validation; called only if the hold-out leaves fewer than `ENOUGH` groups.
    task, options
        Of the run; its budget counts as far as requests, tokens and dollars are known beforehand, by their bounds.
    more : RatedRows, optional
        Rows that will be learned from in every fold and cost requests, though they are on no side yet.

    Returns
    -------
    Splits
        One of the two. `split` says which and why, with what either would ask of a model; the hold-out's reasons
        are that it leaves enough groups, that there are too few to cross-validate, that the budget does not reach for
        cross-validation, or that this takes more than five times the requests of the hold-out.
    """

    def asking(splits: Splits, *, most: bool) -> Usage:
        return estimate_run(splits.with_learning(more) if more else splits, task, options, most=most)

    groups = len(set(held.test.groups))
    left = f"holding out {statistic(FRACTION, 1)} of the rows leaves {count(groups, 'group')} to test on"
    if groups >= ENOUGH:
        requests = asking(held, most=False).requests
        costs = f" It asks about {requests:,} requests." if requests else ""
        return replace(held, split=f"Hold-out: {left}.{costs}")
    if groups + len(set(held.train.groups)) < FEW:
        return replace(held, split=f"Hold-out: {left}, and there are too few groups to cross-validate.")
    other = crossed()
    plain, bound = (asking(splits, most=True) for splits in (held, other))
    asked = f" A hold-out would ask at most {plain.requests:,} requests, cross-validation at most {bound.requests:,}."
    costs = asked if bound.requests else ""
    name = f"{len(other.folds)}-fold cross-validation by group"
    short = budget_lines(options.budget, bound, short=True)
    why = f"the budget does not reach for {name}: {' and '.join(short)}" if short else ""
    if not short and bound.requests > MOST_TIMES * plain.requests:
        why = f"{name} would take more requests than five times the hold-out"
    if why:
        return replace(held, split=f"Hold-out, though {left}: {why}.{costs}")
    return replace(other, split=f"{name[0].upper()}{name[1:]}: {left}, fewer than {ENOUGH}.{costs}")


def set_apart(
    own: Sequence[Metric], rated: RatedRows, divide: Callable[[BoolArray], Splits]
) -> tuple[Splits, tuple[Metric, ...]]:
    """Splits on which no own metric is tested on groups that it has learned from, and the metrics that can be weighed.

    Where too few rows are new to all, the metric that learned most goes first.

    Parameters
    ----------
    own : sequence of Metric
    rated : RatedRows
        The n rated rows that `divide` puts on splits.
    divide : callable
        From which of these rows have to learn, shape (n,), to splits.

    Returns
    -------
    Splits
        Test rows of a file of their own that a metric has learned from are left out, and the notes say so. Warnings
        say which metrics do not tell what they learned from, and which are left out since too few of the rows to learn
        from, or of those to test on, are new to them.
    tuple of Metric
    """
    kept, notes = list(own), list[str]()
    warnings = [warning for metric in own if (warning := _unstated(metric))]
    while True:
        learned = _any_learned(kept, rated)
        if learned.any() and (why := _too_few(rated, learned)):
            out = [(max(kept, key=lambda metric: int(from_learning(metric, rated).sum())), why)]
        else:
            splits = divide(learned)
            out = [(metric, why) for metric in kept if (why := _too_few_on(metric, splits))]
        if not out:
            break
        kept = [metric for metric in kept if all(metric is not one for one, _ in out)]
        warnings += [f"Your metric {metric.name!r} is left out: {why}." for metric, why in out]
    if learned.any():
        notes.append(
            f"{int(learned.sum())} rated rows are learned from and never tested on: your metrics have learned from "
            "these groups"
        )
    if splits.kind == "file":
        known = _any_learned(kept, splits.test)
        if known.any():
            new = np.flatnonzero(~known)
            given = {**splits.places, "test": splits.places["test"][new]} if "test" in splits.places else {}
            splits = replace(splits, test=splits.test.take(new), places=given)
            notes.append(f"{int(known.sum())} test rows are left out: your metrics have learned from their groups")
    return replace(splits, notes=(*splits.notes, *notes), warnings=(*splits.warnings, *warnings)), tuple(kept)


def _any_learned(metrics: Sequence[Metric], rated: RatedRows) -> BoolArray:
    learned = np.zeros(len(rated), dtype=bool)
    for metric in metrics:
        learned |= from_learning(metric, rated)
    return learned


def _unstated(metric: Metric) -> str:
    """A warning about a judge that shows signs of learning and does not say from which rows; else empty."""
    if is_untrained(metric) or learned_from(metric) or not has_learned(metric):
        return ""
    return (
        f"Your metric {metric.name!r} has learned from rated rows and does not say which: if they are among these, its "
        "weight and every figure are too good. Tune it again with this version, or on other rows."
    )


def _too_few_on(metric: Metric, splits: Splits) -> str:
    """The reason why too few rows of a side are new to a metric for it to be weighed or tested; else empty."""
    learning = [splits.train.take(fold.train) for fold in splits.folds] or [splits.train]
    for side in [*learning, *([splits.test] if splits.kind == "file" else [])]:
        learned = from_learning(metric, side)
        if learned.any() and (why := _too_few(side, learned)):
            return why
    return ""


def _too_few(rated: RatedRows, learned: BoolArray) -> str:
    groups = {group for group, known in zip(rated.groups, learned, strict=True) if not known}
    rows = int((~learned).sum())
    if rows >= FEWEST_ROWS and len(groups) >= FEWEST_GROUPS:
        return ""
    return (
        f"it has learned from {int(learned.sum())} of {len(rated)} rows or their groups, and the other {rows} in "
        f"{len(groups)} groups are fewer than {FEWEST_ROWS} in {FEWEST_GROUPS}; rate more rows, or tune on fewer"
    )


def configure(table: Table, optimizer: Options) -> tuple[Options, Task]:
    """The optimizer's options with the table's candidate columns added."""
    columns = tuple(dict.fromkeys([*optimizer.columns, *table.metric_values]))
    prior = tuple(dict.fromkeys([*optimizer.prior_columns, *table.prior]))
    task = optimizer.task or table.task
    if not task.target:
        raise OptionError("the table has no rating column: name one with target=... (--target)")
    return replace(optimizer, columns=columns, prior_columns=prior), task
