"""The data of a probe: source rows with their perturbed outputs, the metrics, and the numbers that these gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import group_of
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row, row_text
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.records import Output
from metricsmith.report.probe.record import Kind
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.plan import as_metric
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.validity import Null, null_scores, to_unit

__all__ = [
    "KNOW_NOTHING",
    "UNITS",
    "MetricNumbers",
    "PerturbedRows",
    "ProbedMetric",
    "Unit",
    "draw_source_rows",
    "metric_numbers",
    "probed_metrics",
]

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
class PerturbedRows:
    """Source rows with their perturbations.

    Parameters
    ----------
    sources : list of dspy.Example, length n
        Texts, id and group alone: numbers that came with the data belong to the original output and say nothing of
        a perturbed one.
    groups : list of str, length n
    perturbations : list of Perturbation
        ``row`` is the place among the source rows.
    """

    sources: list[dspy.Example]
    groups: list[str]
    perturbations: list[Perturbation] = field(default_factory=list)

    @property
    def made(self) -> list[Perturbation]:
        """The perturbations that have an output."""
        return [one for one in self.perturbations if one.output is not None]

    @property
    def rows(self) -> list[dspy.Example]:
        """The source rows, then one row for each of `made`, in order."""
        rows = list(self.sources)
        for one in self.made:
            source = self.sources[one.row]
            name = "~".join(part for part in (source["id"], one.strategy, one.strength, one.dimension) if part)
            rows.append(source.copy(output=one.output, id=name))
        return rows


def draw_source_rows(rows: Sequence[dspy.Example], n: int, seed: int) -> tuple[PerturbedRows, list[int]]:
    """Draw at most `n` rows: one of each group in turn, groups and rows in an order that `seed` decides.

    Parameters
    ----------
    rows : sequence of dspy.Example
        As `make_row` builds them; rows with an empty output are left out.
    n : int
        At least 1.
    seed : int

    Returns
    -------
    PerturbedRows
        Without perturbations.
    list of int
        The places of its source rows among `rows`.

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
    drawn = PerturbedRows([], [])
    for place in places:
        text, group = row_text(rows[place]), group_of(rows[place], place)
        drawn.groups.append(group)
        drawn.sources.append(
            make_row(
                text.output, input=text.input, references=text.references, context=text.context,
                id=str(rows[place].get("id", place)), group=group,
            )
        )  # fmt: skip
    return drawn, places


@dataclass(frozen=True)
class ProbedMetric:
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


def probed_metrics(metric: Any, against: Sequence[Any]) -> list[ProbedMetric]:
    """The metric itself, its components, the metrics to compare with, and those that know nothing.

    A metric to compare with that is a component already stands there once, as the component.

    Raises
    ------
    OptionError
        If one name stands for two different metrics, or a metric's numbers are better neither way.
    """
    metric, against = as_metric(metric), [as_metric(other) for other in against]
    label = "induced metric" if isinstance(metric, InducedMetric) else metric.name
    found = [ProbedMetric(metric, metric.name, label, "metric", metric.output.sign)]
    if isinstance(metric, InducedMetric):
        better = 1 if metric.task.scale.higher_is_better else -1
        weights = metric.combination.weights
        found += [
            ProbedMetric(part, part.name, part.name, "component", better if weight >= 0 else -better)
            for part, weight in zip(metric.components, weights, strict=True)
        ]
    for other in against:
        same = next((one for one in found if one.name == other.name), None)
        if same is None:
            found.append(ProbedMetric(other, other.name, other.name, "baseline", other.output.sign))
        elif (same.metric.card.kind, same.metric.card.name) != (other.card.kind, other.card.name):
            raise OptionError(f"two different metrics of the probe are called {other.name!r}: give one another name")
    return [*found, *(ProbedMetric(None, label, label, "null") for label in KNOW_NOTHING)]


@dataclass(frozen=True)
class MetricNumbers:
    """One metric's numbers, shape (n + m,) each: source rows, then perturbed outputs.

    Parameters
    ----------
    raw : float array
        As the metric gives them.
    plain : float array
        `raw`, turned so that higher is better.
    unit : float array
        In [0, 1], higher is better.
    attacked : float array
        In [0, 1] too, of the range that the attacked outputs span along with all others. They have a range of their
        own, because an empty output would shrink every other change.
    """

    raw: FloatArray
    plain: FloatArray
    unit: FloatArray
    attacked: FloatArray = field(repr=False)


def metric_numbers(
    metrics: Sequence[ProbedMetric],
    table: ScoreTable,
    texts: Sequence[str],
    attacked: NDArray[np.bool_],
    unit: Unit,
    seed: int,
) -> list[MetricNumbers]:
    """Read every metric's numbers from the scored table; make those of the metrics that know nothing.

    Parameters
    ----------
    metrics : sequence of ProbedMetric
    table : ScoreTable
        Of those that are metrics, in order.
    texts : sequence of str, length n + m
        Outputs, source rows first.
    attacked : bool array, shape (n + m,)
        True for attacks: their numbers do not stretch the range of the others.
    unit : str
    seed : int
        Of the random numbers.
    """
    places = {one.name: place for place, one in enumerate(one for one in metrics if one.metric is not None)}
    found = []
    for one in metrics:
        if one.metric is None:
            raw = null_scores(KNOW_NOTHING[one.name], texts, seed=seed)
        else:
            raw = table.run()[:, places[one.name]]
        plain = one.sign * raw
        if unit == "range":
            usual, attacks = to_unit(np.where(attacked, np.nan, plain))[0], to_unit(plain)[0]
        elif one.metric is None:
            length = KNOW_NOTHING[one.name] == "length"
            usual = attacks = np.array([LENGTH.score(value) for value in raw]) if length else raw
        else:
            column = table.column(places[one.name])
            scores = np.array([np.nan if judgement.score is None else judgement.score for judgement in column])
            usual = attacks = scores if one.sign == one.metric.output.sign else 1 - scores
        found.append(MetricNumbers(raw, plain, usual, attacks))
    return found
