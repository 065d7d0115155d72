"""Findings: the comparison of every perturbed output with its source row, as the report shows it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from metricsmith.metric import row_text
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.report.probe.record import Attack, StrategyResult, Subject, Surprise
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.resampling import holm
from metricsmith.stats.validity import (
    PairedMean,
    compare_sensitivity,
    compare_stability,
    never_moves,
    score_change,
    score_stability,
    sensitivity,
    sensitivity_magnitude,
)
from metricsmith.studies.probing.data import MetricNumbers, PerturbedRows, ProbedMetric

__all__ = ["WORTHLESS", "Findings", "find"]

Figure = TypeVar("Figure")
Key = tuple[str, str, str, str, str]  # strategy, effect, strength, dimension, origin
WORTHLESS = frozenset({"empty_output", "copy_input", "other_good_output"})  # attacks that leave no merit
MOST_SURPRISES = 3  # of either effect


@dataclass(frozen=True)
class Findings:
    """All that a probe found, for its `ProbeRecord`."""

    subjects: tuple[Subject, ...]
    strategies: tuple[StrategyResult, ...]
    attacks: tuple[Attack, ...]
    surprises: tuple[Surprise, ...]


def find(
    rows: PerturbedRows,
    metrics: Sequence[ProbedMetric],
    numbers: Sequence[MetricNumbers],
    summaries: Mapping[str, str],
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> Findings:
    """Compare every perturbed output with its source row.

    Parameters
    ----------
    rows : PerturbedRows
    metrics, numbers : sequences of equal length
        The metric that is probed comes first.
    summaries : mapping of str to str
        A description of each strategy.
    permutations, seed : int
        Of the tests.
    """
    pairs = _Pairs(rows)
    subjects = [_subject(one, values, pairs) for one, values in zip(metrics, numbers, strict=True)]
    others = {one.name: values for one, values in list(zip(metrics, numbers, strict=True))[1:]}
    return Findings(
        tuple(_tested(subjects, numbers, pairs, permutations, seed)),
        tuple(_strategies(pairs, numbers[0], others, summaries)),
        tuple(_attacks(pairs, numbers[0], others, summaries)),
        tuple(_surprises(pairs, numbers[0])),
    )


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a source row and a perturbed output, by the place of the perturbed output among all rows."""

    rows: PerturbedRows

    def places(self, effect: str) -> IntArray:
        """Places of the outputs with this effect."""
        n = len(self.rows.sources)
        return np.array([n + at for at, one in enumerate(self.rows.made) if one.effect == effect], dtype=np.int64)

    def by_strategy(self, *effects: str) -> Iterator[tuple[Key, list[Perturbation], IntArray]]:
        """Every strategy's perturbations, and the places of those that have an output; effects in the given order."""
        place_of = {id(one): len(self.rows.sources) + at for at, one in enumerate(self.rows.made)}
        found: dict[Key, list[Perturbation]] = defaultdict(list)
        for one in self.rows.perturbations:
            if one.effect in effects:
                found[(one.strategy, one.effect, one.strength, one.dimension, one.origin)].append(one)
        for key, members in sorted(found.items(), key=lambda item: effects.index(item[0][1])):
            places = [place_of[id(one)] for one in members if one.output is not None]
            yield key, members, np.array(places, dtype=np.int64)

    def numbers(self, values: FloatArray, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Numbers of the source rows and of the perturbed outputs."""
        return values[self._sources(places)], values[places]

    def groups(self, places: IntArray) -> list[str]:
        """Groups of the source rows."""
        return [self.rows.groups[row] for row in self._sources(places)]

    def measured(
        self, measure: Callable[[FloatArray, FloatArray, list[str]], Figure], values: FloatArray, places: IntArray
    ) -> Figure | None:
        """A measure of the pairs; None if there are none."""
        return measure(*self.numbers(values, places), self.groups(places)) if places.size else None

    def _sources(self, places: IntArray) -> IntArray:
        made, n = self.rows.made, len(self.rows.sources)
        return np.array([made[place - n].row for place in places], dtype=np.int64)


def _subject(one: ProbedMetric, values: MetricNumbers, pairs: _Pairs) -> Subject:
    """A metric's figures over all perturbations; of one that never moves, its sensitivity alone."""
    subject = Subject(one.name, one.label, one.kind)
    if np.isnan(values.plain).all():
        kind = one.metric.card.kind if one.metric is not None else ""
        why = "numbers come with the data, and a changed output has none" if kind == "column" else "there is no number"
        return replace(subject, lacking=why)
    worse, same = pairs.places("worse"), pairs.places("same")
    subject = replace(subject, sensitivity=pairs.measured(sensitivity, values.plain, worse))
    if never_moves(values.plain[: len(pairs.rows.sources)], values.plain[worse], values.plain[same]):
        return replace(subject, still=True)
    return replace(
        subject,
        magnitude=pairs.measured(sensitivity_magnitude, values.unit, worse),
        stability=pairs.measured(score_stability, values.unit, same),
    )


def _tested(
    subjects: Sequence[Subject], numbers: Sequence[MetricNumbers], pairs: _Pairs, permutations: int, seed: int
) -> Iterator[Subject]:
    """Each subject with p-values against the first, after Holm."""

    def p_values(effect: str) -> list[float]:
        compare = compare_sensitivity if effect == "worse" else compare_stability
        places, found = pairs.places(effect), np.full(len(subjects), math.nan)
        for at in range(1, len(subjects)):
            both = (subjects[0], subjects[at])
            untestable = any(one.lacking or (effect == "same" and one.still) for one in both)
            if places.size and not untestable:
                first, second = (
                    pairs.numbers(one.plain if effect == "worse" else one.unit, places)
                    for one in (numbers[0], numbers[at])
                )
                found[at] = compare(first, second, pairs.groups(places), permutations=permutations, seed=seed).p_value
        return [float(p) for p in holm(found)]

    for subject, p_sensitivity, p_stability in zip(subjects, p_values("worse"), p_values("same"), strict=True):
        yield replace(subject, p_sensitivity=p_sensitivity, p_stability=p_stability)


def _strategies(
    pairs: _Pairs, own: MetricNumbers, others: Mapping[str, MetricNumbers], summaries: Mapping[str, str]
) -> Iterator[StrategyResult]:
    for (name, effect, strength, dimension, origin), members, places in pairs.by_strategy("worse", "same"):
        declined = [one.declined for one in members if one.output is None]
        strategy = StrategyResult(
            name, effect, strength, dimension, origin, summaries.get(name, ""), places.size, len(declined),
            Counter(declined).most_common(1)[0][0] if declined else "",
        )  # fmt: skip
        if places.size:
            found: Mapping[str, PairedMean | None]
            strategy = replace(strategy, change=pairs.measured(score_change, own.unit, places))
            if effect == "worse":
                found = {name: pairs.measured(sensitivity, at.plain, places) for name, at in others.items()}
                strategy = replace(strategy, sensitivity=pairs.measured(sensitivity, own.plain, places))
            else:
                found = {name: pairs.measured(score_stability, at.unit, places) for name, at in others.items()}
                strategy = replace(strategy, stability=pairs.measured(score_stability, own.unit, places))
            strategy = replace(strategy, others={name: one.value for name, one in found.items() if one is not None})
        yield strategy


def _attacks(
    pairs: _Pairs, own: MetricNumbers, others: Mapping[str, MetricNumbers], summaries: Mapping[str, str]
) -> Iterator[Attack]:
    for (name, *_), _, places in pairs.by_strategy("attack"):
        change = pairs.measured(score_change, own.attacked, places)
        moved = pairs.measured(sensitivity, own.plain, places)
        if change is None or moved is None:
            continue
        found = {name: pairs.measured(score_change, at.attacked, places) for name, at in others.items()}
        values = {name: one.value for name, one in found.items() if one is not None}
        yield Attack(name, summaries.get(name, ""), name in WORTHLESS, change, moved, values)


def _surprises(pairs: _Pairs, own: MetricNumbers) -> Iterator[Surprise]:
    """Worse outputs that rose most, or fell least, and equal ones that moved most."""
    made, n = pairs.rows.made, len(pairs.rows.sources)
    for effect in ("worse", "same"):
        places = pairs.places(effect)
        if not places.size:
            continue
        before, after = pairs.numbers(own.plain, places)
        size = after - before if effect == "worse" else np.abs(after - before)
        # A worse output must fall, an equal one must not move.
        least = 0.0 if effect == "worse" else np.finfo(float).tiny
        kept = [at for at in np.argsort(-size, kind="stable").tolist() if size[at] >= least]
        for at in kept[:MOST_SURPRISES]:
            one = made[places[at] - n]
            row = pairs.rows.sources[one.row]
            yield Surprise(
                str(row["id"]), one.strategy, effect, one.strength, row_text(row).output, str(one.output),
                float(own.raw[one.row]), float(own.raw[places[at]]),
            )  # fmt: skip
