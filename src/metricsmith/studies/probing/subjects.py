"""The metrics of a probe, each turned so that higher is better, and the numbers that they gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import Metric, make_row, row_text
from metricsmith.optimizers.rated import group_of
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.records import Output
from metricsmith.report.probe.record import Kind
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.plan import as_metric
from metricsmith.stats.validity import Null, null_scores, to_unit

__all__ = ["KNOW_NOTHING", "UNITS", "Changed", "Probed", "Unit", "drawn", "numbers", "probed"]

FloatArray = NDArray[np.float64]
Unit = Literal["range", "score"]
UNITS: Mapping[Unit, str] = {
    "range": "share of the range of a metric's own numbers, originals and changed outputs together",
    "score": "scores in [0, 1], by each metric's own scale",
}

KNOW_NOTHING: Mapping[str, Null] = {
    "random numbers": "random", "a constant": "constant", "length in characters": "length",
}  # fmt: skip
LENGTH = Output("length", low=0.0, high=None, half=500.0)  # half of the scale at 500 characters


@dataclass(frozen=True)
class Probed:
    """A metric to be probed.

    Parameters
    ----------
    metric : Metric or None
        None for a metric that knows nothing.
    name, label : str
    kind : str
        As of `Subject`.
    sign : int
        -1 where lower raw numbers are better, or count for better.
    """

    metric: Any
    name: str
    label: str
    kind: Kind
    sign: int = 1


@dataclass(frozen=True)
class Numbers:
    """One metric's numbers, higher is better: `plain` as they are, `unit` in [0, 1], shape (n + m,) each.

    `attacked` are in [0, 1] too, of the range that the attacked outputs span along with all others.
    """

    raw: FloatArray
    plain: FloatArray
    unit: FloatArray
    attacked: FloatArray = field(repr=False)


def probed(metric: Any, against: Sequence[Any]) -> list[Probed]:
    """The metric itself, its components, the metrics to compare with, and those that know nothing.

    A metric to compare with that is a component already stands there once, as the component.

    Raises
    ------
    OptionError
        If one name stands for two different metrics.
    """
    metric, against = as_metric(metric), [as_metric(other) for other in against]
    found = [Probed(metric, metric.name, _label(metric), "metric", _direction(metric))]
    if isinstance(metric, InducedMetric):
        better = 1 if metric.task.scale.higher_is_better else -1
        weights = metric.combination.weights
        found += [
            Probed(part, part.name, part.name, "component", better if weight >= 0 else -better)
            for part, weight in zip(metric.components, weights, strict=True)
        ]
    for other in against:
        same = next((one for one in found if one.name == other.name), None)
        if same is None:
            found.append(Probed(other, other.name, other.name, "baseline", _direction(other)))
        elif (same.metric.card.kind, same.metric.card.name) != (other.card.kind, other.card.name):
            raise OptionError(f"two different metrics of the probe are called {other.name!r}: give one another name")
    return [*found, *(Probed(None, label, label, "null") for label in KNOW_NOTHING)]


def numbers(
    subjects: Sequence[Probed],
    table: ScoreTable,
    texts: Sequence[str],
    attacked: NDArray[np.bool_],
    unit: Unit,
    seed: int,
) -> list[Numbers]:
    """Every subject's numbers.

    Parameters
    ----------
    subjects : sequence of Probed
    table : ScoreTable
        Of the subjects that are metrics, in order.
    texts : sequence of str, length n + m
        Outputs, originals first.
    attacked : bool array, shape (n + m,)
        Which of them are attacks: their numbers do not stretch the range of the others.
    unit : str
    seed : int
        Of the random numbers.
    """
    asked = [one for one in subjects if one.metric is not None]
    raws = {one.name: table.run()[:, place] for place, one in enumerate(asked)}
    scores = {
        one.name: np.array([np.nan if said.score is None else said.score for said in table.column(place)])
        for place, one in enumerate(asked)
        if unit == "score"
    }
    found = []
    for one in subjects:
        raw = raws[one.name] if one.metric is not None else null_scores(KNOW_NOTHING[one.name], texts, seed=seed)
        plain = one.sign * raw
        if one.name in scores:
            score = scores[one.name] if one.sign == _direction(one.metric) else 1 - scores[one.name]
            found.append(Numbers(raw, plain, score, score))
            continue
        if unit == "score":
            score = np.array([LENGTH.score(value) for value in raw]) if KNOW_NOTHING[one.name] == "length" else raw
            found.append(Numbers(raw, plain, score, score))
            continue
        usual, attacks = to_unit(np.where(attacked, np.nan, plain))[0], to_unit(plain)[0]
        found.append(Numbers(raw, plain, usual, attacks))
    return found


def _label(metric: Metric) -> str:
    return "induced metric" if isinstance(metric, InducedMetric) else metric.name


def _direction(metric: Metric) -> int:
    return 1 if metric.output.higher_is_better else -1


@dataclass(frozen=True)
class Changed:
    """Originals, and what was made of them.

    Parameters
    ----------
    originals : list of dspy.Example, length n
        Texts, id and group alone: numbers that came with the data belong to the original output and say nothing of
        a changed one.
    groups : list of str, length n
    perturbations : list of Perturbation
        ``row`` is the place among the originals.
    """

    originals: list[dspy.Example]
    groups: list[str]
    perturbations: list[Perturbation] = field(default_factory=list)

    @property
    def made(self) -> list[Perturbation]:
        """Those that have an output."""
        return [one for one in self.perturbations if one.output is not None]

    @property
    def rows(self) -> list[dspy.Example]:
        """The originals, then one row for each of `made`, in order."""
        return [*self.originals, *(self._changed(one) for one in self.made)]

    def _changed(self, one: Perturbation) -> dspy.Example:
        row = self.originals[one.row]
        name = "~".join(part for part in (row["id"], one.strategy, one.strength, one.dimension) if part)
        return row.copy(output=one.output, id=name)


def drawn(rows: Sequence[dspy.Example], n: int, seed: int) -> tuple[Changed, list[int]]:
    """At most `n` rows: one of each group in turn, groups and rows in an order that `seed` decides.

    Parameters
    ----------
    rows : sequence of dspy.Example
        As `make_row` builds them; rows with an empty output are left out.
    n : int
        At least 1.
    seed : int

    Returns
    -------
    Changed
        Without perturbations.
    list of int
        The places of its originals among `rows`.

    Raises
    ------
    OptionError, DataError
        If `n` is below 1, or there is no row with an output.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise OptionError(f"n={n!r} must be a whole number from 1: how many outputs to probe with")
    waiting: dict[str, list[int]] = defaultdict(list)
    for place in np.random.default_rng(seed).permutation(len(rows)).tolist():
        if row_text(rows[place]).output.strip():
            waiting[group_of(rows[place], place)].append(place)
    if not waiting:
        raise DataError(f"none of {len(rows)} rows has an output to change")
    turns = sorted(
        (turn, order, place) for order, places in enumerate(waiting.values()) for turn, place in enumerate(places)
    )
    places = sorted(place for _, _, place in turns[:n])
    return Changed(
        [_plain(rows[place], place) for place in places], [group_of(rows[place], place) for place in places]
    ), places


def _plain(row: dspy.Example, place: int) -> dspy.Example:
    text = row_text(row)
    return make_row(
        text.output, input=text.input, references=text.references, context=text.context,
        id=str(row.get("id", place)), group=group_of(row, place),
    )  # fmt: skip
