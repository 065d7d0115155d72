"""Cross-fitting by group: a metric that learns from the ratings themselves, weighed by numbers that it had not learned.

A metric trained on rated rows agrees with their ratings whether it learned anything or not, so that a regression would
give it all the weight. As a candidate its number for a training row therefore comes from a copy that was trained
without the row's group (stacking: Wolpert 1992; Breiman 1996). What is saved is a metric trained on all of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import dspy
import numpy as np

from metricsmith.datasets.splits import effective_groups, folds
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import Metric, content_hash, content_key
from metricsmith.optimizers.splits import RatedRows
from metricsmith.records import Judgement, MetricCard, Output, Task
from metricsmith.reward import DSPyCallable
from metricsmith.saving import row_hash
from metricsmith.scoring.progress import progress_bar

__all__ = ["FOLDS", "CrossFitted", "Trainable", "cross_fit", "is_untrained", "trained_own"]

FOLDS = 5  # copies that are trained besides the metric itself, or as many as there are groups


@runtime_checkable
class Trainable(Protocol):
    """A metric that rated rows train; until then it has a name, a card and settings, and no number."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def task(self) -> Task:
        """Names the rating that it learns, and its scale."""

    @property
    def trained(self) -> object:
        """The result of training; None or False before it."""

    def compile(self, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None = None) -> Metric:
        """A trained metric of this name, whose state tells the rows; this one stays as it is."""


def is_untrained(metric: object) -> bool:
    """True for a `Trainable` that has to be trained before it can give a number."""
    return callable(getattr(metric, "compile", None)) and not getattr(metric, "trained", True)


@dataclass(frozen=True)
class CrossFitted(DSPyCallable):
    """A trained metric whose numbers for its own training rows come from copies that had not seen their groups.

    A training row is known by its texts. Every other row has the number of `kept`, which is also what is saved.

    Parameters
    ----------
    kept : Metric
        Trained on all rows.
    column : mapping of str to Judgement
        By the `content_key` of a training row the judgement of the copy that had not seen its group.
    members : tuple of (str, tuple of str)
        Of each copy the fingerprint, and the keys of the rows that were held out from it.
    seed : int
        Of the folds.
    """

    kept: Metric
    column: Mapping[str, Judgement] = field(repr=False)
    members: tuple[tuple[str, tuple[str, ...]], ...] = field(repr=False)
    seed: int = 0

    @property
    def name(self) -> str:
        """The kept metric's."""
        return self.kept.name

    @property
    def card(self) -> MetricCard:
        """The kept metric's."""
        return self.kept.card

    @property
    def output(self) -> Output:
        """The kept metric's."""
        return self.kept.output

    @property
    def weights(self) -> str:
        """The weights of the kept metric, in words; empty where it does not name any."""
        return str(getattr(self.kept, "weights", ""))

    def fingerprint(self) -> str:
        """A hash of the kept metric, the copies with their folds, and the seed."""
        return content_hash("cross-fitted", self.kept.fingerprint(), self.members, self.seed)

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement per row, in order."""
        keys = [content_key(row) for row in rows]
        others = [row for row, key in zip(rows, keys, strict=True) if key not in self.column]
        judged = iter(self.kept.judge_batch(others, run=run) if others else ())
        return [replace(self.column[key], run=run) if key in self.column else next(judged) for key in keys]

    def called(self, name: str, kept: Metric) -> CrossFitted:
        """The same under another name, which `kept` has already."""
        return replace(self, kept=kept, column={key: replace(one, metric=name) for key, one in self.column.items()})

    def to_state(self) -> dict[str, object]:
        """The kept metric's: no file holds the copies."""
        return self.kept.to_state()


def cross_fit(metric: Trainable, rated: RatedRows, *, seed: int = 0, progress: bool = False) -> CrossFitted:
    """Train a metric on all rows, and a copy without each fold of whole groups for the numbers of that fold.

    Rows of one output (`row_hash`) are in one fold. Copies differ in level: one trained without the best rows predicts
    less, so that the plain column would fall where ratings rise (tau-b -.15 on 80 rows without any signal, where the
    copies learn little). Each copy is therefore moved to the kept metric's mean over the training rows, for which no
    rating is read.

    Parameters
    ----------
    metric : Trainable
    rated : RatedRows
        All training rows.
    seed : int
        Decides the folds.
    progress : bool
        True: a bar counts the metrics that are trained.

    Raises
    ------
    DataError
        If the rows form fewer than two groups, or the metric cannot be trained on a part of them.
    """
    rows, texts = rated.rows, [row_hash(row) for row in rated.rows]
    count = max(2, min(FOLDS, len(set(effective_groups(rated.groups, texts).tolist()))))
    parts = folds(rated.groups, count, seed, texts, ratings=rated.ratings)
    keys, column, members = [content_key(row) for row in rows], dict[str, Judgement](), []
    with progress_bar(progress, total=count + 1, desc=f"training {metric.name}") as bar:
        kept = metric.compile(rows)
        level = _level(kept.judge_batch(rows))
        bar.update()
        for part in parts:
            member = metric.compile([rows[place] for place in part.train])
            judged = member.judge_batch(rows)
            shift = level - _level(judged)
            held = {keys[place]: _moved(judged[place], shift, kept.output) for place in part.test}
            column |= held
            members.append((member.fingerprint(), tuple(held)))
            bar.update()
    return CrossFitted(kept, column, tuple(members), seed)


def trained_own(
    own: Sequence[Metric], rated: RatedRows, task: Task, *, seed: int = 0, progress: bool = False
) -> tuple[list[Metric], list[str]]:
    """The caller's own metrics with those that are untrained cross-fitted, and notes on those that cannot be.

    Raises
    ------
    OptionError
        If one learns another rating than the run's.
    """
    ready, notes = list[Metric](), list[str]()
    for metric in own:
        if not isinstance(metric, Trainable) or not is_untrained(metric):
            ready.append(metric)
            continue
        if (metric.task.target, metric.task.scale) != (task.target, task.scale):
            raise OptionError(
                f"your metric {metric.name!r} learns {metric.task.target!r} ({metric.task.scale}), and the rating of "
                f"this run is {task.target!r} ({task.scale}): give it the task of the run"
            )
        try:
            ready.append(cross_fit(metric, rated, seed=seed, progress=progress))
        except DataError as problem:
            notes.append(f"your metric {metric.name!r} could not be trained and is left out: {problem}")
    return ready, notes


def _level(judged: Sequence[Judgement]) -> float:
    """The mean of the numbers that there are."""
    raws = [judgement.raw for judgement in judged if judgement.raw is not None]
    if not raws:
        raise DataError(f"it gives no number on its training rows; the first: {judged[0].error}")
    return float(np.mean(raws))


def _moved(judgement: Judgement, shift: float, output: Output) -> Judgement:
    if judgement.raw is None:
        return judgement
    raw = judgement.raw + shift
    return replace(judgement, raw=raw, score=output.score(raw))
