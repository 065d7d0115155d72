"""The data of a comparison, the same for every method: one split of the rows, and existing scores computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.datasets.splits import connected_parts, content_order, effective_groups, holdout, instructions
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import count
from metricsmith.metric import Metric
from metricsmith.optimizers.candidates import generate_candidates, retrieve_candidates
from metricsmith.optimizers.fitting import check_learnable
from metricsmith.optimizers.options import ChosenSources, Options
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.optimizers.splitting import FRACTION, named_groups, set_apart
from metricsmith.programs.learned import learned_from
from metricsmith.records import Task
from metricsmith.saving import row_hash
from metricsmith.scoring import ScoreTable, score
from metricsmith.stats.correlation import FloatArray

__all__ = ["ComparisonData", "ThreeWaySplit", "comparison_data", "three_way_split"]


@dataclass(frozen=True)
class ThreeWaySplit:
    """Rated rows to train, to validate and to test on; no group stands in two of the three."""

    train: RatedRows
    validation: RatedRows
    test: RatedRows


@dataclass(frozen=True)
class ComparisonData:
    """The data that a method may use. Ratings of the test rows are for the comparison alone: no method reads them.

    Parameters
    ----------
    task : Task
    split : ThreeWaySplit
    options : Options
        Those of AutoMetrics; the other methods take model, store, concurrency, allowed failures and bank from them.
    guideline : str
        The guideline that the raters were given; may be empty.
    dimensions : int
        Number of dimensions that DnA-Eval judges by.
    finetuned : FinetunedMetric, optional
        The metric that the finetuned baselines train.
    warnings : tuple of str
        Doubts about the data.
    sparse : dict of str to str
        Candidates of AutoMetrics that lack values, with the share of rows; it fills as seeds are run.
    """

    task: Task
    split: ThreeWaySplit
    options: Options
    guideline: str = ""
    dimensions: int = 3
    finetuned: FinetunedMetric | None = None
    warnings: tuple[str, ...] = ()
    sparse: dict[str, str] = field(default_factory=dict)

    @cached_property
    def learned(self) -> RatedRows:
        """Training and validation rows: those that a method without a choice of its own learns from."""
        return self.split.train + self.split.validation

    @property
    def test(self) -> RatedRows:
        """The rows that all methods are compared on."""
        return self.split.test

    @property
    def instruction(self) -> str:
        """The guideline, or the task's description where there is none."""
        return self.guideline.strip() or self.task.description.strip()

    @cached_property
    def existing_metrics(self) -> tuple[Metric, ...]:
        """All bank metrics and score columns that have their inputs in half of the rows; empty if there are none.

        The baselines handle missing scores in their own ways, so that these do not rule a metric out.
        """
        has_text = any(row.get("output") for row in self.learned.rows)
        options = replace(self.options.with_own(()), k=10**9, panel=False, allow_missing=True)  # own: AutoMetrics'
        uses_bank = has_text and options.bank != "none"
        if not uses_bank and not options.columns:
            return ()
        pool = generate_candidates(self.learned.rows, self.task, options, ChosenSources(uses_bank, False, ()))
        return retrieve_candidates(pool, self.task, options).metrics

    @cached_property
    def existing(self) -> ScoreTable:
        """The scores of the existing metrics, computed once: learned rows first, then test rows."""
        options = {**self.options.scoring, "progress": False}
        return score(self.existing_metrics, [*self.learned.rows, *self.test.rows], **options)

    @property
    def learned_scores(self) -> FloatArray:
        """Existing scores of the learned rows, shape (n, m)."""
        return self.existing.run()[: len(self.learned)]

    @property
    def validation_scores(self) -> FloatArray:
        """Existing scores of the validation rows."""
        return self.learned_scores[len(self.split.train) :]

    @property
    def test_scores(self) -> FloatArray:
        """Existing scores of the test rows."""
        return self.existing.run()[len(self.learned) :]


def comparison_data(
    table: Table, task: Task, options: Options, *, fraction: float, validation: float, guideline: str, dimensions: int,
    finetuned: FinetunedMetric | None = None, test: Table | None = None,
) -> ComparisonData:  # fmt: skip
    """Split the rated rows of a table; rows that the caller's own metrics have learned from are training rows.

    With `test`, whose rows are the test rows, those of the table that share a group or a text with one are left out,
    and test rows that the caller's own metrics have learned from.
    """
    if isinstance(dimensions, bool) or dimensions < 1:
        raise OptionError(f"dimensions={dimensions!r} must be a whole number from 1; the paper takes 3")
    if not isinstance(finetuned, FinetunedMetric | None):
        raise OptionError(f"finetuned={finetuned!r:.60} must be a FinetunedMetric, such as FinetunedMetric(task)")
    left_out: tuple[str, ...] = ()
    if test is not None:
        table, test, left_out = _apart(table, test, options.own)
    rated = RatedRows.of(table.subset(table.rated()).rows, task.target)
    warnings = options.check_columns(rated.rows, task.target)
    parts = ThreeWaySplit(rated, rated, rated)

    def split(learned: NDArray[np.bool_]) -> Splits:
        """Split the rows that are not learned from, and put the others to the training rows."""
        nonlocal parts
        rest = table.subset(table.rated()[~learned])
        parts = three_way_split(rest, task, fraction=fraction, validation=validation, seed=options.seed, test=test)
        parts = replace(parts, train=parts.train + rated.take(np.flatnonzero(learned)))
        return Splits("holdout" if test is None else "file", parts.train + parts.validation, parts.test)

    sides, own = set_apart(options.own, rated, split)
    parts, options = replace(parts, test=sides.test), options.with_own(own)
    check_learnable(parts.train.ratings)
    told = (*warnings, *left_out, *sides.warnings, *sides.notes)
    return ComparisonData(task, parts, options, guideline, dimensions, finetuned, told)


def _apart(table: Table, test: Table, own: Sequence[Metric]) -> tuple[Table, Table, tuple[str, ...]]:
    """The rows of `table` that share no named group and no text with `test`, and lines on the others.

    As in the test file of an induction, groups that nobody named join nothing, nor do instructions. Where
    an own metric has learned from a row that stays out, so do the test rows that it shares something with.
    """
    texts = [*table.texts, *test.texts]
    alike = effective_groups([str(place) for place in range(len(texts))], texts).tolist()
    told = instructions([text for text, _ in table.texts], range(len(table)))
    inputs = [None if text in told else text or None for text, _ in texts]
    named = [*named_groups(table, table.rows), *named_groups(test, test.rows)]
    groups = ([row.get(name) for row in named] for name in ("group", "own_group"))
    joined = connected_parts(alike, inputs, *groups)
    learned, held = joined[: len(table)], joined[len(table) :]
    shared = np.isin(learned, held)
    out = f"{count(int(shared.sum()), 'row')} to learn from shared a group or a text with a test row and stayed out"
    seen = frozenset[str]().union(*(learned_from(metric) for metric in own))
    known = np.isin(held, [learned[place] for place in np.flatnonzero(shared) if row_hash(table.rows[place]) in seen])
    lost = f"{count(int(known.sum()), 'test row')} left out: your metrics have learned from rows of their groups"
    lines = (*([out] if shared.any() else []), *([lost] if known.any() else []))
    return table.subset(np.flatnonzero(~shared)), test.subset(np.flatnonzero(~known)), lines


def three_way_split(
    table: Table, task: Task, *, fraction: float, validation: float, seed: int, test: Table | None = None
) -> ThreeWaySplit:
    """Split rated rows into training, validation and test rows by group.

    Parameters
    ----------
    table : Table
    task : Task
        Names the rating.
    fraction, validation : float
        Shares of all rated rows for test and validation, above 0, together below 1. The paper: .3 and .2.
    seed : int
    test : Table, optional
        The test rows, where they are chosen; the table's are then divided into the other two as if .3 had been tested
        on (a `validation` of .2 is 2/7 of them), whatever `fraction` is.

    Raises
    ------
    OptionError
        If the shares leave nothing to train on.
    DataError
        If there are fewer than three groups.
    """
    fraction = fraction if test is None else FRACTION
    if not (fraction > 0 and validation > 0 and fraction + validation < 1):
        raise OptionError(
            f"a share of {fraction:g} to test and of {validation:g} to validate is not possible: both must be above 0, "
            "and together below 1; the paper takes 0.3 and 0.2"
        )
    part = table.subset(table.rated())
    part = part.subset(content_order(part.rows, task.target))
    if test is not None:
        inner = holdout(part.groups, part.texts, fraction=validation / (1 - fraction), seed=seed, ratings=part.ratings)
        rated, held = (RatedRows.of(one.subset(one.rated()).rows, task.target) for one in (part, test))
        held = held.take(content_order(held.rows, task.target))
        return ThreeWaySplit(rated.take(inner.train), rated.take(inner.test), held)
    if len(set(part.groups)) < 3:
        raise DataError(
            f"the rated rows form {len(set(part.groups))} groups; training, validation and test need one each at "
            "least: name a finer group column with group=... (--group)"
        )
    rated = RatedRows.of(part.rows, task.target)
    outer = holdout(part.groups, part.texts, fraction=fraction, seed=seed, ratings=part.ratings)
    rest = part.subset(outer.train)
    inner = holdout(rest.groups, rest.texts, fraction=validation / (1 - fraction), seed=seed, ratings=rest.ratings)
    learned = rated.take(outer.train)
    return ThreeWaySplit(learned.take(inner.train), learned.take(inner.test), rated.take(outer.test))
