"""Rated tables -> examples on which recommenders and generators can be tuned like any other DSPy program.

An example's fields are exactly the program's inputs in an induction; its label measures the
answer (`metricsmith.optimizers.students.metrics`). Rows that stand behind an input never measure the answer to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.datasets.splits import holdout
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import Metric, make_row
from metricsmith.optimizers.candidates import card_key, pool_cards
from metricsmith.optimizers.generation import axes_inputs, rubric_inputs
from metricsmith.programs.perturbers.base import Source, Strength
from metricsmith.records import Task
from metricsmith.scoring import score
from metricsmith.signatures.generation import Axis
from metricsmith.stats.correlation import kendall_tau_b

__all__ = [
    "Episode", "Gains", "HeldOut", "Originals", "axes_episodes", "card_gains", "recommendation_episodes",
    "rubric_episodes", "table_splits",
]  # fmt: skip


class Episode(dspy.Example):  # type: ignore[misc]
    """An example whose fields are all inputs and whose label stands apart.

    DSPy's optimisers may put a training example as it is among a program's demonstrations, and save it with the
    program: held-out rows must not get there.

    Parameters
    ----------
    base : dspy.Example or mapping, optional
        As for `dspy.Example`; an episode's label is copied along.
    label : Gains, HeldOut or Originals, optional
    **fields
        What the program is asked.
    """

    _input_keys: set[str] | None

    def __init__(self, base: Any = None, *, label: Label | None = None, **fields: Any) -> None:
        super().__init__(base, **fields)
        self._label = label if label is not None else getattr(base, "_label", None)
        if self._input_keys is None:
            self._input_keys = set(self.keys())

    @property
    def label(self) -> Label | None:
        """The data that an answer is measured by; None in a copy by `inputs`."""
        return self._label


@dataclass(frozen=True)
class Gains:
    """The worth of the cards of a pool.

    Parameters
    ----------
    by_card : dict of str to float
        The largest absolute Kendall tau-b, over the card's metrics, with the ratings of the training rows; NaN
        where none has one (a constant, or no number). Retrieval chooses cards, the fit chooses outputs and signs: a
        metric that tracks a defect is as useful as one that tracks a strength.
    origin : str
        Table and seed, for messages.
    """

    by_card: dict[str, float]
    origin: str


@dataclass(frozen=True)
class HeldOut:
    """Rated rows that measure the judges made in an episode.

    Parameters
    ----------
    task : Task
        Names the rating and its direction.
    rows : tuple of dspy.Example
        None of them, and no row of their groups, was shown to the generator.
    origin : str
        Table and seed, for messages.
    wanted : int
        How many judges are asked for.
    axis : Axis, optional
        What the rubric is about, where the episode is a rubric generator's.
    """

    task: Task
    rows: tuple[dspy.Example, ...] = field(repr=False)
    origin: str
    wanted: int
    axis: Axis | None = None


@dataclass(frozen=True)
class Originals:
    """Outputs on which a perturber is tried; `metricsmith.optimizers.students.perturbers` makes such labels.

    Parameters
    ----------
    sources : tuple of Source
        None of them was shown to the proposer of strategies.
    task : str
    axis : Axis
        The quality to damage or to preserve.
    strength : str
    """

    sources: tuple[Source, ...] = field(repr=False)
    task: str
    axis: Axis
    strength: Strength

    @property
    def rows(self) -> tuple[dspy.Example, ...]:
        """The outputs as rows."""
        return tuple(
            make_row(source.output, input=source.input, references=source.references, context=source.context)
            for source in self.sources
        )


Label = Gains | HeldOut | Originals


def recommendation_episodes(
    tables: Table | Sequence[Table],
    *,
    k: int = 10,
    bank: MetricBank | None = None,
    metrics: Sequence[Metric] = (),
    splits: int = 1,
    fraction: float = 0.3,
    seed: int = 0,
    **scoring: Any,
) -> list[Episode]:
    """Examples for an `LMRecommender`: inputs ``task``, ``target``, ``cards`` and ``k``.

    The label says what each card is worth on training rows (`Gains`). These are the rows that `induce` trains on with
    the same `fraction` and seed, so that a later test on the others stays one.

    Parameters
    ----------
    tables : Table or sequence of Table
        With ratings.
    k : int
        How many names are asked for.
    bank : MetricBank, optional
        By default the whole one; what the training rows cannot feed is not in the pool.
    metrics : sequence of Metric
        More of the pool, for example generated judges. Names must differ from the bank's.
    splits : int
        Episodes by table, with seeds `seed`, `seed` + 1 ...
    fraction : float
        Share of the rated rows to leave out, by group.
    seed : int
    **scoring
        Options of `scoring.score`, such as ``lm`` and ``store``.

    Returns
    -------
    list of Episode
        Table by table.

    Raises
    ------
    OptionError
        If `k` or `splits` is below 1, a table has no rating, or names are not different.
    DataError
        If there are too few groups, or no metric has a tau other than 0.
    ModelFailure
        As `scoring.score` raises it.
    """
    if k < 1:
        raise OptionError(f"k={k} must be 1 or more: it is how many names the recommender is asked for")
    episodes = []
    for task, origin, train, _, _ in table_splits(tables, splits, fraction, seed):
        usable, _ = (default_bank() if bank is None else bank).usable(train.rows)
        pool: list[Metric] = [*(metric.fit(train.rows) for metric in usable), *metrics]
        twice = {card_key(metric) for metric in usable} & {card_key(metric) for metric in metrics}
        if twice:
            raise OptionError(f"two metrics of the pool are called {min(twice)!r}: rename the one in metrics=...")
        gains = card_gains(pool, train, **scoring)
        if not any(gain > 0 for gain in gains.values()):
            raise DataError(
                f"{origin}: none of {len(gains)} metrics has a tau with the rating on {len(train)} training rows, "
                f"so that no order is better than another: give more rows, or other metrics"
            )
        label, cards = Gains(gains, origin), pool_cards(pool)
        episodes.append(Episode(label=label, task=task.description, target=task.target, cards=cards, k=k))
    return episodes


def axes_episodes(
    tables: Table | Sequence[Table], *, count: int = 5, splits: int = 3, fraction: float = 0.3, seed: int = 0
) -> list[Episode]:
    """Examples for an `AxesGenerator`: inputs ``task``, ``rating``, ``liked``, ``disliked`` and ``count``.

    The examples that the generator sees are drawn from the training side of a split by group; the label is the other
    side (`HeldOut`).

    Episodes of one table overlap: a split inside the split would leave too few rows to rank judges by.

    Parameters
    ----------
    tables : Table or sequence of Table
        With ratings. What one split shows another may hold out: make the episodes for tuning and those for
        validation of tables without a common group (`Table.subset`), above all where demonstrations are learned.
    count : int
        How many axes are asked for.
    splits : int
        Episodes by table, with seeds `seed`, `seed` + 1 ...
    fraction : float
        Share of the rated rows to hold out, by group.
    seed : int

    Raises
    ------
    OptionError
        If `count` or `splits` is below 1, or a table has no rating.
    DataError
        If there are too few groups.
    """
    if count < 1:
        raise OptionError(f"count={count} must be 1 or more: it is how many axes the generator is asked for")
    return [
        Episode(label=HeldOut(task, tuple(held.rows), origin, count), **axes_inputs(train.rows, task, count, seed=draw))
        for task, origin, train, held, draw in table_splits(tables, splits, fraction, seed)
    ]


def rubric_episodes(
    tables: Table | Sequence[Table],
    axes: Sequence[Axis],
    *,
    splits: int = 1,
    fraction: float = 0.3,
    seed: int = 0,
) -> list[Episode]:
    """Examples for a `RubricGenerator`: inputs ``task`` and ``criterion``, one example for each axis and split.

    Parameters, labels and errors as in `axes_episodes`. The generator sees no rows; the split keeps the training
    side of the same seed free for making the axes.

    Parameters
    ----------
    axes : sequence of Axis
        What to write rubrics about, at least one.
    """
    if not axes:
        raise OptionError("there is no axis to write a rubric about: give axes=[Axis(name=..., meaning=...)]")
    return [
        Episode(label=HeldOut(task, tuple(held.rows), origin, 1, axis), **rubric_inputs(axis, task))
        for task, origin, _, held, _ in table_splits(tables, splits, fraction, seed)
        for axis in axes
    ]


def table_splits(
    tables: Table | Sequence[Table], splits: int, fraction: float, seed: int
) -> Iterator[tuple[Task, str, Table, Table, int]]:
    """Task, origin, training side, held-out side and seed of each split of each table's rated rows."""
    given = [tables] if isinstance(tables, Table) else list(tables)
    for table in given:
        if not isinstance(table, Table):
            raise OptionError(f"episodes are made of tables, not of a {type(table).__name__}: use read_table(...)")
        if not table.task.target:
            raise OptionError(f"{table.name} has no rating column: name one with read_table(..., target=...)")
    if given and splits < 1:
        raise OptionError(f"splits={splits} must be 1 or more: each gives an episode")
    for table in given:
        rated = table.subset(table.rated())
        for draw in range(seed, seed + splits):
            split = holdout(rated.groups, rated.texts, fraction=fraction, seed=draw, ratings=rated.ratings)
            yield table.task, f"{table.name}, seed {draw}", rated.subset(split.train), rated.subset(split.test), draw


def card_gains(pool: Sequence[Metric], train: Table, **scoring: Any) -> dict[str, float]:
    """The worth of the cards of a pool on the rows of a table, as `Gains` says; `scoring` are options of `score`."""
    values = score(pool, train.rows, **{"progress": False, **scoring}).run()
    gains: dict[str, float] = {}
    for metric, column in zip(pool, values.T, strict=True):
        key, tau = card_key(metric), abs(kendall_tau_b(column, train.ratings))
        known = gains.get(key, math.nan)
        gains[key] = max(known, tau) if known == known and tau == tau else tau if math.isnan(known) else known
    return gains
