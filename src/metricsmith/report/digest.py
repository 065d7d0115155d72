"""Parts of a record, picked and ordered for reading: disagreements, outlook, costs, cards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from metricsmith.records import Agreement, MetricCard, Usage
from metricsmith.report.formats import count, duration, money
from metricsmith.report.plots.reliability import Bin, bins
from metricsmith.report.record import Component, RowRecord, RunRecord

__all__ = [
    "CostLine",
    "Disagreement",
    "Outlook",
    "cards",
    "costs",
    "disagreements",
    "jackknifed",
    "outlook",
    "rated_rows",
    "reliability_bins",
    "weight_width",
]

MOST_CONTRIBUTIONS = 10


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row on which metric and raters differ.

    Parameters
    ----------
    row : RowRecord
    rating, prediction : float
    held_out : bool
    start : float
        The prediction before any component adds to it.
    contributions : tuple of (str, float)
        By falling size, undefined ones last; at most `MOST_CONTRIBUTIONS`.
    others : int
        How many more there are.
    rest : float
        What those add together.
    """

    row: RowRecord
    rating: float
    prediction: float
    held_out: bool
    start: float
    contributions: tuple[tuple[str, float], ...]
    others: int
    rest: float

    @property
    def gap(self) -> float:
        """Prediction minus rating, in rating points."""
        return self.prediction - self.rating


@dataclass(frozen=True, slots=True)
class Outlook:
    """The interval as it would be with `factor` times as many labelled groups, the estimate unchanged."""

    factor: int
    groups: int
    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class CostLine:
    """One kind of cost, as estimated before the run and as it came out; an en dash where unknown."""

    name: str
    estimated: str
    actual: str


def rated_rows(record: RunRecord) -> list[tuple[RowRecord, float, float]]:
    """Rows that have both a rating and a prediction, with the two numbers."""
    return [
        (row, row.rating, row.prediction)
        for row in record.data
        if row.rating is not None
        and row.prediction is not None
        and math.isfinite(row.rating)
        and math.isfinite(row.prediction)
    ]


def reliability_bins(record: RunRecord) -> list[Bin]:
    """The held-out rows in bins by prediction, intervals cut to the scale; empty if nothing was held out."""
    held_out = [item for item in rated_rows(record) if record.tested and record.held_out(item[0])]
    predictions, ratings = [item[2] for item in held_out], [item[1] for item in held_out]
    scale, found = record.task.scale, bins(predictions, ratings, [item[0].group for item in held_out])
    return [replace(part, ci_low=max(part.ci_low, scale.low), ci_high=min(part.ci_high, scale.high)) for part in found]


def disagreements(record: RunRecord, most: int = 8) -> list[Disagreement]:
    """The rows where prediction and rating lie furthest apart: held-out rows first, then training rows.

    Rows that agree exactly never appear; ties keep the order of the data.
    """
    apart = [(row, rating, guess) for row, rating, guess in rated_rows(record) if guess != rating]
    apart.sort(key=lambda item: (not record.held_out(item[0]), -abs(item[2] - item[1])))
    return [_disagreement(record, *item) for item in apart[:most]]


def _disagreement(record: RunRecord, row: RowRecord, rating: float, prediction: float) -> Disagreement:
    ordered = sorted(row.contributions.items(), key=lambda item: -abs(item[1]) if math.isfinite(item[1]) else math.inf)
    total = math.fsum(value for _, value in ordered if math.isfinite(value))
    rest = ordered[MOST_CONTRIBUTIONS:]
    return Disagreement(
        row=row,
        rating=rating,
        prediction=prediction,
        held_out=record.held_out(row),
        start=prediction - total if ordered else math.nan,
        contributions=tuple(ordered[:MOST_CONTRIBUTIONS]),
        others=len(rest),
        rest=math.fsum(value for _, value in rest if math.isfinite(value)),
    )


def jackknifed(record: RunRecord) -> list[Agreement]:
    """The blocks whose interval is that of the group jackknife; none under cross-validation.

    There only the training block has one, and what is said of it would be read as said of all.
    """
    if record.tested and record.evaluation == "cv":
        return []
    return [*([record.test] if record.tested else []), record.train, *record.baselines.values()]


def outlook(block: Agreement, factors: tuple[int, ...] = (1, 2, 4)) -> list[Outlook]:
    """How the interval would shrink with more labelled groups; empty if it is undefined.

    The width of an interval falls with the square root of the number of groups, so each side
    is divided by the root of the factor.
    """
    value = block.kendall_tau_b
    if not all(map(math.isfinite, (value, block.ci_low, block.ci_high))):
        return []
    groups = block.groups or block.n
    return [
        Outlook(
            factor,
            factor * groups,
            value,
            value - (value - block.ci_low) / math.sqrt(factor),
            value + (block.ci_high - value) / math.sqrt(factor),
        )
        for factor in factors
    ]


def costs(record: RunRecord) -> list[CostLine]:
    """Requests, tokens, cost and time, estimated beside actual."""
    actual, estimated = _mapping(record.usage), _mapping(record.usage.get("estimated"))
    # `Usage` has 0 where nobody estimated a time.
    estimated = {**estimated, "seconds": estimated.get("seconds") or None}
    lines = (
        ("Requests to the model", "requests", count),
        ("Tokens sent", "prompt_tokens", count),
        ("Tokens received", "completion_tokens", count),
        ("Cost", "cost", money),
        ("Time", "seconds", duration),
    )
    return [CostLine(name, write(estimated.get(key)), write(actual.get(key))) for name, key, write in lines]


def _mapping(usage: Any) -> Mapping[str, Any]:
    if isinstance(usage, Usage):
        return asdict(usage)
    return usage if isinstance(usage, Mapping) else {}


def weight_width(record: RunRecord) -> float:
    """The width that weights are written for: the scale's, or less where every weight is small."""
    sizes = [abs(component.weight) for component in record.components if math.isfinite(component.weight)]
    largest = max(sizes, default=0.0)
    return min(record.task.scale.width, 10 * largest) if largest else record.task.scale.width


def cards(record: RunRecord) -> list[tuple[MetricCard, list[Component]]]:
    """Each distinct card with the components that it describes, in the components' order."""
    described: list[tuple[MetricCard, list[Component]]] = []
    for component in record.components:
        for card, components in described:
            if card == component.card:
                components.append(component)
                break
        else:
            described.append((component.card, [component]))
    return described
