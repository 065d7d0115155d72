"""From the numbers of a probe to what its report shows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import row_text
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.report.probe.record import Attack, Strategy, Subject, Surprise
from metricsmith.stats.resampling import PermutationTest, holm
from metricsmith.stats.validity import (
    Change,
    Sensitivity,
    compare_sensitivity,
    compare_stability,
    never_moves,
    score_change,
    sensitivity,
    sensitivity_magnitude,
    stability,
)
from metricsmith.studies.probing.subjects import Changed, Numbers, Probed

__all__ = ["WORTHLESS", "Findings", "find"]

IntArray = NDArray[np.int64]
WORTHLESS = frozenset({"empty_output", "copy_input", "other_good_output"})  # attacks that leave no merit
MOST_SURPRISES = 3  # of either effect


@dataclass(frozen=True)
class Findings:
    """What a probe found."""

    subjects: tuple[Subject, ...]
    strategies: tuple[Strategy, ...]
    attacks: tuple[Attack, ...]
    surprises: tuple[Surprise, ...]


def find(
    changed: Changed,
    subjects: Sequence[Probed],
    numbers: Sequence[Numbers],
    summaries: Mapping[str, str],
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> Findings:
    """Compare every changed output with its original.

    Parameters
    ----------
    changed : Changed
    subjects, numbers : sequences of equal length
        The metric that is probed comes first.
    summaries : mapping of str to str
        What each strategy does.
    permutations, seed : int
        Of the tests.
    """
    pairs = _Pairs(changed)
    lines = [_subject(one, values, pairs) for one, values in zip(subjects, numbers, strict=True)]
    return Findings(
        tuple(_tested(lines, numbers, pairs, permutations, seed)),
        tuple(_strategies(pairs, subjects, numbers, summaries)),
        tuple(_attacks(pairs, subjects, numbers, summaries)),
        tuple(_surprises(pairs, numbers[0])),
    )


@dataclass(frozen=True)
class _Pairs:
    """The places of changed outputs among all rows, and of their originals."""

    changed: Changed

    @property
    def usual(self) -> tuple[IntArray, IntArray]:
        """Places of what was made worse, and of what was changed without loss."""
        return self.where("worse"), self.where("same")

    def where(self, effect: str) -> IntArray:
        """Places of the outputs with this effect."""
        n = len(self.changed.originals)
        return np.array([n + at for at, one in enumerate(self.changed.made) if one.effect == effect], dtype=np.int64)

    def sides(self, values: NDArray[np.float64], places: IntArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Originals and changed outputs."""
        return values[self.origins(places)], values[places]

    def origins(self, places: IntArray) -> IntArray:
        """Places of the originals."""
        made, n = self.changed.made, len(self.changed.originals)
        return np.array([made[place - n].row for place in places], dtype=np.int64)

    def groups(self, places: IntArray) -> list[str]:
        """Groups of the originals."""
        return [self.changed.groups[row] for row in self.origins(places)]


def _subject(one: Probed, values: Numbers, pairs: _Pairs) -> Subject:
    line = Subject(one.name, one.label, one.kind)
    if np.isnan(values.plain).all():
        kind = one.metric.card.kind if one.metric is not None else ""
        why = (
            "its numbers come with the data, and a changed output has none" if kind == "column" else "it gave no number"
        )
        return replace(line, lacking=why)
    still = never_moves(values.plain[: len(pairs.changed.originals)], *(values.plain[at] for at in pairs.usual))
    found = _sensitivity(values, pairs, pairs.where("worse"))
    if still:
        return replace(line, still=True, sensitivity=found)
    return replace(
        line,
        sensitivity=found,
        magnitude=_measured(sensitivity_magnitude, values.unit, pairs, pairs.where("worse")),
        stability=_measured(stability, values.unit, pairs, pairs.where("same")),
    )


def _sensitivity(values: Numbers, pairs: _Pairs, places: IntArray) -> Sensitivity | None:
    return sensitivity(*pairs.sides(values.plain, places), pairs.groups(places)) if places.size else None


def _measured(
    measure: Callable[..., Change], values: NDArray[np.float64], pairs: _Pairs, places: IntArray
) -> Change | None:
    return measure(*pairs.sides(values, places), pairs.groups(places)) if places.size else None


def _tested(
    lines: Sequence[Subject], numbers: Sequence[Numbers], pairs: _Pairs, permutations: int, seed: int
) -> Iterator[Subject]:
    """Each line with p-values against the first, after Holm."""

    def p_values(effect: str) -> NDArray[np.float64]:
        places, found = pairs.where(effect), np.full(len(lines), math.nan)
        for at in range(1, len(lines)):
            test = _test(effect, [numbers[0], numbers[at]], [lines[0], lines[at]], pairs, places, permutations, seed)
            found[at] = math.nan if test is None else test.p_value
        return holm(found)

    worse, same = p_values("worse"), p_values("same")
    for line, p_sensitivity, p_stability in zip(lines, worse.tolist(), same.tolist(), strict=True):
        yield replace(line, p_sensitivity=p_sensitivity, p_stability=p_stability)


def _test(
    effect: str,
    both: Sequence[Numbers],
    lines: Sequence[Subject],
    pairs: _Pairs,
    places: IntArray,
    permutations: int,
    seed: int,
) -> PermutationTest | None:
    if (
        not places.size
        or any(line.lacking for line in lines)
        or (effect == "same" and any(line.still for line in lines))
    ):
        return None
    groups = pairs.groups(places)
    compare = compare_sensitivity if effect == "worse" else compare_stability
    first, second = (pairs.sides(one.plain if effect == "worse" else one.unit, places) for one in both)
    return compare(first, second, groups, permutations=permutations, seed=seed)


def _strategies(
    pairs: _Pairs, subjects: Sequence[Probed], numbers: Sequence[Numbers], summaries: Mapping[str, str]
) -> Iterator[Strategy]:
    for (name, effect, strength, dimension, origin), members in _by_strategy(pairs.changed, ("worse", "same")):
        places = _places(pairs, members)
        declined = [one.declined for one in members if one.output is None]
        line = Strategy(
            name, effect, strength, dimension, origin, summaries.get(name, ""), places.size, len(declined),
            Counter(declined).most_common(1)[0][0] if declined else "",
        )  # fmt: skip
        own = numbers[0]
        if places.size == 0:
            yield line
        elif effect == "worse":
            yield replace(
                line,
                sensitivity=_sensitivity(own, pairs, places),
                change=_measured(score_change, own.unit, pairs, places),
                others={one.name: _value(_sensitivity(at, pairs, places)) for one, at in _others(subjects, numbers)},
            )
        else:
            yield replace(
                line,
                stability=_measured(stability, own.unit, pairs, places),
                change=_measured(score_change, own.unit, pairs, places),
                others={
                    one.name: _value(_measured(stability, at.unit, pairs, places))
                    for one, at in _others(subjects, numbers)
                },
            )


def _attacks(
    pairs: _Pairs, subjects: Sequence[Probed], numbers: Sequence[Numbers], summaries: Mapping[str, str]
) -> Iterator[Attack]:
    for (name, *_), members in _by_strategy(pairs.changed, ("attack",)):
        places = _places(pairs, members)
        change = _measured(score_change, numbers[0].attacked, pairs, places)
        moved = _sensitivity(numbers[0], pairs, places)
        if change is None or moved is None:
            continue
        others = {
            one.name: _value(_measured(score_change, at.attacked, pairs, places))
            for one, at in _others(subjects, numbers)
        }
        yield Attack(name, summaries.get(name, ""), name in WORTHLESS, change, moved, others)


def _surprises(pairs: _Pairs, own: Numbers) -> Iterator[Surprise]:
    """Worse outputs that rose most, or fell least, and equal ones that moved most."""
    made, n = pairs.changed.made, len(pairs.changed.originals)
    for effect in ("worse", "same"):
        places = pairs.where(effect)
        if not places.size:
            continue
        before, after = pairs.sides(own.plain, places)
        size = after - before if effect == "worse" else np.abs(after - before)
        least = (
            0.0 if effect == "worse" else np.finfo(float).tiny
        )  # a worse output must fall, an equal one must not move
        kept = [at for at in np.argsort(-size, kind="stable").tolist() if size[at] >= least]
        for at in kept[:MOST_SURPRISES]:
            one = made[places[at] - n]
            row = pairs.changed.originals[one.row]
            yield Surprise(
                str(row["id"]), one.strategy, effect, one.strength, row_text(row).output, str(one.output),
                float(own.raw[one.row]), float(own.raw[places[at]]),
            )  # fmt: skip


def _by_strategy(
    changed: Changed, effects: Sequence[str]
) -> list[tuple[tuple[str, str, str, str, str], list[Perturbation]]]:
    found: dict[tuple[str, str, str, str, str], list[Perturbation]] = defaultdict(list)
    for one in changed.perturbations:
        if one.effect in effects:
            found[(one.strategy, one.effect, one.strength, one.dimension, one.origin)].append(one)
    return sorted(found.items(), key=lambda item: effects.index(item[0][1]))


def _places(pairs: _Pairs, members: Sequence[Perturbation]) -> IntArray:
    wanted = {id(one) for one in members}
    n = len(pairs.changed.originals)
    return np.array([n + at for at, one in enumerate(pairs.changed.made) if id(one) in wanted], dtype=np.int64)


def _others(subjects: Sequence[Probed], numbers: Sequence[Numbers]) -> list[tuple[Probed, Numbers]]:
    return list(zip(subjects, numbers, strict=True))[1:]


def _value(found: Change | None) -> float:
    return math.nan if found is None else found.value
