"""The choice of a judge: all judges by all measures, what each measure's pick costs, and how far the choice holds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metricsmith.errors import DataError
from metricsmith.rating_model.bounds import consistency_difference_bounds, set_range, squared_error_difference_bounds
from metricsmith.rating_model.measures import (
    DOWNSTREAM,
    MEASURES,
    RatingMeasure,
    Sides,
    as_loss,
    best_place,
    downstream_measures,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.model import ResponseSets
from metricsmith.rating_model.rated_sides import Beta, Rated, RatedSides
from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, RivalJudge, SweepCell
from metricsmith.rating_model.vectors import Decision, RatingVectors, Ties
from metricsmith.rating_model.verdict import verdict
from metricsmith.rating_model.violations import rank_violations
from metricsmith.stats.correlation import FloatArray, batch_spearman
from metricsmith.stats.resampling import (
    MOST_REPLICATES,
    Interval,
    bootstrap_weights,
    check_level,
    group_mean_interval,
    jackknife_interval,
    left_out_weights,
    share_interval,
)

__all__ = ["select_judge"]


def select_judge(
    human: Rated,
    judges: Mapping[str, Rated],
    *,
    response_sets: ResponseSets,
    decision: Decision | None = None,
    beta: Beta = 0.0,
    added: str | None = None,
    measures: Sequence[str] | None = None,
    by: str | None = None,
    betas: Sequence[float] = (),
    thresholds: Sequence[float] = (),
    target: RatingVectors | None = None,
    groups: Sequence[Hashable] | None = None,
    raters: bool = False,
    ties: Ties = "split",
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> JudgeSelection:
    """Choose the judge that agrees best with people where several ratings of an item can be right.

    Parameters
    ----------
    human : Ratings, RatingVectors or tuple of Ratings
        Forced choices or response sets; both as (choices, sets) of the same raters; or vectors.
    judges : mapping of str to the same
        At least two. Their items are brought into the order of people's.
    response_sets : ResponseSets
        The admissible sets; `ResponseSets.single` where a choice says everything.
    decision : Decision, optional
        The use downstream. Without it there are no downstream figures, no sweep and no bounds of decisions.
    beta : float or mapping
        Share of those who chose no positive option and would also have endorsed `added`, or the mapping that
        `metricsmith.rating_model.model.sensitivity_matrix` takes. It holds for people and judges alike, wherever
        only choices are known.
    added : str, optional
        By default the first positive option.
    measures : sequence of str, optional
        By default all of `metricsmith.rating_model.measures.MEASURES`.
    by : str, optional
        The measure that decides; by default decision consistency, without a decision the squared error of sets.
    betas, thresholds : sequence of float
        The grid of the sweep; by default `beta` and the decision's threshold alone.
    target : RatingVectors, optional
        People's vectors that decisions are taken by; by default `human`.
    groups : sequence of hashable, length n, optional
        Of people's items; by default those of the ratings, else each item stands alone.
    raters : bool
        Draw people's ratings within items too, which costs one plain evaluation for every draw.
    ties : {"split", "expected", "random", "first"}
    draws, level, seed
        Of the joint bootstrap and of intervals.

    Returns
    -------
    JudgeSelection
        Intervals leave out whole groups; differences are paired.

    Raises
    ------
    OptionError
        If there are fewer than two judges, or an option has no meaning.
    DataError
        If fewer than two judges rated half of people's items, or fewer than two items are left.
    """
    check_level(level)
    data = RatedSides.of(human, judges, response_sets, decision, added, target, beta, groups, ties, seed)
    chosen = rating_measures(measures) + (downstream_measures(decision) if decision else [])
    deciding = by or ("decision_consistency" if decision else "squared_error_sets")
    if deciding not in [measure.name for measure in chosen]:
        chosen = rating_measures([deciding]) + chosen
    sides, weights = data.sides(beta), bootstrap_weights(data.labels, draws, seed)
    table = _Table(
        chosen,
        data.names,
        weighted_values(chosen, sides)[:, 0],
        weighted_values(chosen, sides, left_out_weights(data.labels, MOST_REPLICATES)),
        _drawn(data, chosen, beta, weights, seed + 1) if raters else weighted_values(chosen, sides, weights),
        sides,
        data.labels,
        level,
    )
    place = [measure.name for measure in chosen].index(deciding)
    results = tuple(table.result(m) for m in range(len(chosen)))
    pick = results[place].pick
    if not pick:
        raise DataError(f"no judge has a value of {deciding}: give another measure as by=")
    grid = (betas or ([beta] if isinstance(beta, int | float) else []), thresholds or [sides.threshold])
    found = JudgeSelection(
        pick=pick,
        by=deciding,
        verdict="",
        reasons=(),
        judges=tuple(data.names),
        results=results,
        rivals=tuple(_rivals(data, table, place, pick)),
        sweep=tuple(_sweep(data, chosen, *grid)) if decision else (),
        violations=tuple(rank_violations(MEASURES["hit_rate"], chosen[place], sides, data.names, data.items)),
        items=len(data.items),
        groups=len(set(data.labels)),
        left_out=data.left_out,
        settings={
            "beta": beta, "added": added, "decision": decision, "ties": ties, "raters": raters, "draws": draws,
            "level": level, "seed": seed,
        },
        notes=tuple(data.notes()),
    )  # fmt: skip
    word, reasons = verdict(found)
    return replace(found, verdict=word, reasons=reasons)


@dataclass(frozen=True, eq=False)
class _Table:
    """Values (M, J), those without each group (M, g, J) and those of draws (M, B, J), with what they are made of."""

    measures: Sequence[RatingMeasure]
    names: Sequence[str]
    values: FloatArray
    parts: FloatArray
    draws: FloatArray
    sides: Sides
    labels: Sequence[Hashable]
    level: float

    @property
    def downstream(self) -> int | None:
        """The place of decision consistency."""
        names = [measure.name for measure in self.measures]
        return names.index("decision_consistency") if "decision_consistency" in names else None

    def interval(self, m: int, judge: int, other: int | None = None) -> Interval:
        """Of a judge's value, or of its lead over another judge, above 0 where it is better."""
        measure, level, parts = self.measures[m], self.level, self.parts[m]
        bounds = measure.bounds
        if (measure.value is None and measure.name != "prevalence_bias") or (other is None and measure.value is None):
            terms = measure.terms(self.sides)
            if other is not None:
                gap = as_loss(measure, terms[other]) - as_loss(measure, terms[judge])
                reach = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
                return group_mean_interval(gap, self.labels, level=level, bounds=reach)
            if bounds == (0.0, 1.0):
                return share_interval(terms[judge], self.labels, level=level)
            return group_mean_interval(terms[judge], self.labels, level=level, bounds=bounds)
        if other is None:
            return jackknife_interval(self.values[m, judge], parts[:, judge], level=level, bounds=bounds)
        lost, without = as_loss(measure, self.values[m]), as_loss(measure, parts)
        return jackknife_interval(float(lost[other] - lost[judge]), without[:, other] - without[:, judge], level=level)

    def result(self, m: int) -> MeasureResult:
        """All judges by one measure, and its pick downstream."""
        measure, pick = self.measures[m], best_place(self.measures[m], self.values[m])
        if pick is None:
            figures = tuple(JudgeFigure(name, math.nan, Interval(math.nan, math.nan), math.nan) for name in self.names)
            return MeasureResult(measure.name, measure.sides, measure.higher_is_better, figures)
        lost = as_loss(measure, self.draws[m])
        winners = lost == np.nanmin(np.where(np.isnan(lost), np.inf, lost), axis=1, keepdims=True)
        shared = winners / np.maximum(winners.sum(axis=1, keepdims=True), 1)
        chances = shared[winners.any(axis=1)].mean(axis=0) if winners.any() else np.full(len(self.names), math.nan)
        figures = tuple(
            JudgeFigure(name, float(self.values[m, j]), self.interval(m, j), float(chances[j]))
            for j, name in enumerate(self.names)
        )
        optimism = (shared * (self.draws[m] - self.values[m])).sum(axis=1)
        found = MeasureResult(
            measure.name, measure.sides, measure.higher_is_better, figures, self.names[pick],
            float(self.values[m, pick] - np.nanmean(optimism)),
        )  # fmt: skip
        return found if self.downstream is None else replace(found, **self._downstream(m, pick, shared))

    def _downstream(self, m: int, pick: int, shared: FloatArray) -> dict[str, Any]:
        assert self.downstream is not None
        down, measure = self.downstream, self.measures[m]
        values, best = self.values[down], int(np.nanargmax(self.values[down]))
        ranks = [-as_loss(measure, self.values[m]), -as_loss(measure, self.parts[m])]
        correlation = float(batch_spearman(ranks[0], values))
        replicates = batch_spearman(ranks[1], self.parts[down])
        return {
            "downstream": float(values[pick]),
            "regret": float(values[best] - values[pick]),
            "regret_interval": Interval(0.0, 0.0, self.level) if best == pick else self.interval(down, best, pick),
            "expected_regret": float(values[best] - (shared @ np.nan_to_num(values)).mean()),
            "rank_correlation": correlation,
            "rank_interval": jackknife_interval(correlation, replicates, level=self.level, bounds=(-1.0, 1.0)),
        }


def _drawn(
    data: RatedSides, measures: Sequence[RatingMeasure], beta: Beta, weights: FloatArray, seed: int
) -> FloatArray:
    """The values of draws of groups in which people's ratings are drawn again within their items."""
    sides, rng = data.sides(beta), np.random.default_rng(seed)
    again = (replace(sides, human=data.redrawn(rng, beta), target=None) for _ in weights)
    found = [weighted_values(measures, side, row[None])[:, 0] for side, row in zip(again, weights, strict=True)]
    return np.stack(found, axis=1)


def _sweep(
    data: RatedSides, measures: Sequence[RatingMeasure], betas: Sequence[float], thresholds: Sequence[float]
) -> Iterator[SweepCell]:
    """The picks of all measures for each beta and threshold; people and judges get the same beta."""
    assert data.decision is not None
    own = [measure for measure in measures if measure.name not in DOWNSTREAM]
    for beta in betas:
        for threshold in thresholds:
            decision = replace(data.decision, threshold=threshold)
            sides = replace(data.sides(beta), threshold=threshold)
            values = weighted_values(own, sides)[:, 0]
            down = weighted_values(downstream_measures(decision)[:1], sides)[0, 0]
            picks = {
                measure.name: (data.names[place], float(down[place]))
                for measure, row in zip(own, values, strict=True)
                if (place := best_place(measure, row)) is not None
            }
            best = int(np.nanargmax(down))
            prevalence = float(np.nanmean(decision.of(sides.people)))
            yield SweepCell(float(beta), threshold, prevalence, data.names[best], float(down[best]), picks)


def _rivals(data: RatedSides, table: _Table, place: int, pick: str) -> Iterator[RivalJudge]:
    """The lead of the pick over every other judge, with its bounds over what choices leave open."""
    measure, first, sides = table.measures[place], data.names.index(pick), table.sides
    human = set_range(sides.human, data.decision, known=data.knows_sets(data.human))
    ranges = [
        set_range(sides.judges.judge(j), data.decision, known=data.knows_sets(data.judges[name]))
        for j, name in enumerate(data.names)
    ]
    lost = as_loss(measure, table.values[place])
    for j, name in enumerate(data.names):
        low = high = math.nan
        if sides.target is None and measure.name == "decision_consistency":
            low, high = consistency_difference_bounds(human, ranges[first], ranges[j])
        elif sides.target is None and measure.name == "squared_error_sets":
            low, high = squared_error_difference_bounds(human, ranges[j], ranges[first])
        if j != first:
            yield RivalJudge(name, float(lost[j] - lost[first]), table.interval(place, first, j), low, high)
