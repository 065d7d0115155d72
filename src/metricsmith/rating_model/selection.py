"""The choice of a judge: all judges by all measures, what each measure's pick costs, and how far the choice holds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.bounds import consistency_difference_bounds, set_range, squared_error_difference_bounds
from metricsmith.rating_model.measures import (
    DOWNSTREAM,
    MEASURES,
    SHARE,
    RatingMeasure,
    Sides,
    as_loss,
    best_place,
    downstream_measures,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.rated_sides import Beta, Rated, RatedSides
from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, RivalJudge, SweepCell
from metricsmith.rating_model.response_sets import ResponseSets
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
    symmetric_interval,
)

__all__ = ["select_judge"]

TIE = 1e-12  # values so near to each other differ by rounding only


def select_judge(
    human: Rated,
    judges: Mapping[str, Rated],
    *,
    response_sets: ResponseSets | None = None,
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
    response_sets : ResponseSets, optional
        The admissible sets; `ResponseSets.single` declares that a choice says everything. Without them choices count
        as whole opinions too, but as nobody declared that, no verdict is above ``"depends"``. Vectors have theirs.
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
        People's vectors that decisions are taken by, which `raters` leaves as they are; by default `human`.
    groups : sequence of hashable, length n, optional
        Of people's items; by default those of the ratings, else each item stands alone.
    raters : bool
        Draw people's ratings within items too, which costs one plain evaluation for every draw. Of m ratings the draws
        show (m - 1) / m of the spread that m other raters would have: of a single one nothing.
    ties : {"split", "expected", "random", "first"}
    draws, level, seed
        Of the joint bootstrap and of intervals.

    Returns
    -------
    JudgeSelection
        Intervals leave out whole groups, and differences are paired. The intervals of rank correlations come of the
        joint draws, as P(best), the expected regret and the correction for having been chosen do.

    Raises
    ------
    OptionError
        If there are fewer than two judges, or an option has no meaning.
    DataError
        If fewer than two judges rated half of people's items, or fewer than two items are left.
    """
    check_level(level)
    if by in DOWNSTREAM and decision is None:
        raise OptionError(f"{by} needs a decision: give positive options, or another measure as by=")
    data = RatedSides.of(
        human, judges, response_sets=response_sets, decision=decision, added=added, target=target, beta=beta,
        groups=groups, ties=ties, seed=seed,
    )  # fmt: skip
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
    grid = (list(betas) or ([beta] if isinstance(beta, int | float) else []), list(thresholds) or [sides.threshold])
    found = JudgeSelection(
        pick=pick,
        by=deciding,
        verdict="",
        reasons=(),
        judges=tuple(data.names),
        results=results,
        rivals=tuple(_rivals(data, table, place, pick)),
        sweep=tuple(_sweep(data, chosen, *grid, data.names.index(pick))) if decision else (),
        violations=tuple(rank_violations(MEASURES["hit_rate"], chosen[place], sides, data.names, data.items)),
        items=len(data.items),
        groups=len(set(data.labels)),
        left_out=data.left_out,
        declared=response_sets is not None or isinstance(human, RatingVectors),
        sets_known=all(map(data.knows_sets, [data.human, *data.judges.values()])),
        settings={
            "response_sets": [sorted(held) for held in data.response_sets.sets], "beta": beta, "added": added,
            "decision": decision, "ties": ties, "raters": raters, "draws": draws, "level": level, "seed": seed,
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

    @cached_property
    def terms(self) -> list[FloatArray | None]:
        """The terms (J, n) of each measure that is their mean."""
        plain = [measure.terms(self.sides) if measure.value is None else None for measure in self.measures]
        limits = [measure.bounds or (None, None) for measure in self.measures]
        return [None if one is None else np.clip(one, *ends) for one, ends in zip(plain, limits, strict=True)]

    def interval(self, m: int, judge: int) -> Interval:
        """Of a judge's value: of a share of whole hits, of another mean, or by leaving out groups."""
        bounds, terms = self.measures[m].bounds, self.terms[m]
        if terms is None:
            return jackknife_interval(self.values[m, judge], self.parts[m][:, judge], level=self.level, bounds=bounds)
        if bounds == SHARE and np.isin(terms[~np.isnan(terms)], (0.0, 0.5, 1.0)).all():
            return share_interval(terms[judge], self.labels, level=self.level)
        return group_mean_interval(terms[judge], self.labels, level=self.level, bounds=bounds)

    def lead(self, m: int, judge: int, other: int) -> Interval:
        """Of a judge's lead over another, above 0 where it is better."""
        measure, terms = self.measures[m], self.terms[m]
        if terms is not None and measure.name != DOWNSTREAM[1] and not np.isnan(terms[[judge, other]]).any():
            gap = as_loss(measure, terms[other]) - as_loss(measure, terms[judge])
            reach = measure.bounds and (measure.bounds[0] - measure.bounds[1], measure.bounds[1] - measure.bounds[0])
            return group_mean_interval(gap, self.labels, level=self.level, bounds=reach)
        lost, without = as_loss(measure, self.values[m]), as_loss(measure, self.parts[m])
        gaps = without[:, other] - without[:, judge]
        return jackknife_interval(float(lost[other] - lost[judge]), gaps, level=self.level)

    def result(self, m: int) -> MeasureResult:
        """All judges by one measure, and its pick downstream."""
        measure, pick = self.measures[m], best_place(self.measures[m], self.values[m])
        lost, drawn = as_loss(measure, self.values[m]), as_loss(measure, self.draws[m])
        least = drawn <= np.fmin.reduce(drawn, axis=1, keepdims=True) + TIE
        least = least[least.any(axis=1)]
        shared = least / least.sum(axis=1, keepdims=True)
        chances = shared.mean(axis=0) if len(shared) else np.full(len(self.names), math.nan)
        figures = tuple(
            JudgeFigure(name, float(self.values[m, j]), self.interval(m, j), float(chances[j]))
            for j, name in enumerate(self.names)
        )
        found = MeasureResult(measure.name, measure.sides, measure.higher_is_better, figures)
        if pick is None:
            return found
        corrected = float(lost[pick]) + optimism(lost, drawn)
        found = replace(found, pick=self.names[pick], corrected=-corrected if measure.higher_is_better else corrected)
        names = [one.name for one in self.measures]
        down = names.index(DOWNSTREAM[0]) if DOWNSTREAM[0] in names else None
        return found if down is None else replace(found, **self._use(m, pick, shared, down))

    def _use(self, m: int, pick: int, shared: FloatArray, down: int) -> dict[str, Any]:
        """The figures of a measure's pick downstream."""
        values, others = self.values[down], [j for j in range(len(self.names)) if j != pick]
        best = pick if values[pick] > values.max() - TIE else int(values.argmax())
        leads = {j: self.lead(down, j, pick) for j in others}
        sure = 0.0 if best == pick else max(leads[best].low, 0.0)
        most = float(np.max([lead.high for lead in leads.values()]))
        kept, drawn = (-as_loss(self.measures[m], each[m]) for each in (self.values, self.draws))
        correlation = float(batch_spearman(kept, values))
        return {
            "downstream": float(values[pick]),
            "regret": float(values[best] - values[pick]),
            "regret_interval": Interval(sure, max(most, 0.0), self.level),
            "expected_regret": max(0.0, float(values[best] - (shared @ values).mean())) if len(shared) else math.nan,
            "rank_correlation": correlation,
            "rank_interval": symmetric_interval(
                correlation, batch_spearman(drawn, self.draws[down]), level=self.level, bounds=(-1.0, 1.0)
            ),
        }


def optimism(lost: FloatArray, drawn: FloatArray) -> float:
    """The mean by which the least of some losses is too small because it was chosen for being the least.

    Bootstrap draws tell how the losses move by chance. They move around losses pulled together until these vary as much
    as they would without chance: around the losses themselves, equal judges would be told apart by chance already.

    Parameters
    ----------
    lost : float array, shape (J,)
        Undefined ones are NaN.
    drawn : float array, shape (B, J)
        Draws with a NaN among judges that are defined are left out.

    Returns
    -------
    float
        At least 0; NaN without draws.
    """
    known = ~np.isnan(lost)
    lost, drawn = lost[known], drawn[:, known]
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    if lost.size < 2 or not len(drawn):
        return 0.0 if lost.size == 1 else math.nan
    chance = drawn - drawn.mean(axis=0)
    spread, noise = float(lost.var(ddof=1)), float(chance.var(axis=1, ddof=1).mean())
    real = math.sqrt(max(0.0, 1 - noise / spread)) if spread > 0 else 0.0
    first = (real * (lost - lost.mean()) + chance).argmin(axis=1)
    return max(0.0, -float(chance[np.arange(len(chance)), first].mean()))


def _drawn(
    data: RatedSides, measures: Sequence[RatingMeasure], beta: Beta, weights: FloatArray, seed: int
) -> FloatArray:
    """The values of draws of groups in which people's ratings are drawn again within their items."""
    sides, rng = data.sides(beta), np.random.default_rng(seed)
    again = (replace(sides, human=data.redrawn(rng, beta)) for _ in weights)
    found = [weighted_values(measures, side, row[None])[:, 0] for side, row in zip(again, weights, strict=True)]
    return np.stack(found, axis=1)


def _sweep(
    data: RatedSides,
    measures: Sequence[RatingMeasure],
    betas: Sequence[float],
    thresholds: Sequence[float],
    pick: int,
) -> Iterator[SweepCell]:
    """The picks of all measures for each beta and threshold; people and judges get the same beta.

    The judge that was chosen comes first of those equally good downstream.
    """
    assert data.decision is not None
    own = [measure for measure in measures if measure.name not in DOWNSTREAM]
    for beta in betas:
        for threshold in thresholds:
            decision = replace(data.decision, threshold=threshold)
            sides = replace(data.sides(beta), threshold=threshold)
            *values, down = weighted_values([*own, downstream_measures(decision)[0]], sides)[:, 0]
            picks = {
                measure.name: (data.names[place], float(down[place]))
                for measure, row in zip(own, values, strict=True)
                if (place := best_place(measure, row)) is not None
            }
            best = pick if down[pick] > down.max() - TIE else int(down.argmax())
            name = "" if down.min() > down.max() - TIE else data.names[best]
            prevalence = float(decision.of(sides.people).mean())
            yield SweepCell(float(beta), threshold, prevalence, name, float(down[best]), picks)


def _rivals(data: RatedSides, table: _Table, place: int, pick: str) -> Iterator[RivalJudge]:
    """The lead of the pick over every other judge, with its bounds over what choices leave open."""
    measure, first, sides = table.measures[place], data.names.index(pick), table.sides
    human = set_range(sides.human, data.decision, known=data.knows_sets(data.human))
    ranges = [
        set_range(sides.judges.judge(j), data.decision, known=data.knows_sets(data.judges[name]))
        for j, name in enumerate(data.names)
    ]
    lost = as_loss(measure, table.values[place])
    chance = np.nan_to_num(sides.judges.endorsement_noise).mean(axis=1)  # taken from the squared errors
    for j, name in enumerate(data.names):
        low = high = math.nan
        if sides.target is None and measure.name == "decision_consistency":
            low, high = consistency_difference_bounds(human, ranges[first], ranges[j])
        elif sides.target is None and measure.name == "squared_error_sets":
            ends = squared_error_difference_bounds(human, ranges[j], ranges[first])
            low, high = (end - chance[j] + chance[first] for end in ends)
        if j != first:
            yield RivalJudge(name, float(lost[j] - lost[first]), table.lead(place, first, j), low, high)
