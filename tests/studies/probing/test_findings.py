"""Findings are validity's own numbers on the right pairs, groups and sides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.programs.perturbers.catalogue import BUILTIN
from metricsmith.stats.resampling import holm
from metricsmith.stats.validity import (
    compare_sensitivity,
    compare_stability,
    score_stability,
    sensitivity,
    sensitivity_magnitude,
)
from metricsmith.studies.probing.data import MetricNumbers, PerturbedRows, ProbedMetric
from metricsmith.studies.probing.findings import WORTHLESS, find

N = 24
GROUPS = [f"g{row // 4}" for row in range(N)]  # six groups of four
ORIGINALS = [make_row(f"output {row}", id=str(row), group=GROUPS[row]) for row in range(N)]
EFFECTS = ("worse", "worse", "same", "attack")
MADE = [
    Perturbation(row, f"{effect} {number}", effect, "obvious", f"changed {row} {number}")
    for row in range(N)
    for number, effect in enumerate(EFFECTS)
]
RANDOM = np.random.default_rng(3)
LEVEL = np.repeat(RANDOM.normal(0, 1, 6), 4)  # rows of a group resemble each other


def numbers(strength, sign=1):
    """A metric on all rows: originals, then what was made of them, in [0, 1]."""
    original = LEVEL + RANDOM.normal(0, 0.3, N)
    step = {"worse": -strength, "same": 0.0, "attack": 0.2}
    changed = [original[one.row] + step[one.effect] + RANDOM.normal(0, 0.5) for one in MADE]
    plain = np.concatenate([original, changed])
    unit = (plain - plain.min()) / np.ptp(plain)
    return MetricNumbers(sign * plain, plain, unit, unit)


OWN, OTHERS = numbers(0.6, sign=-1), [numbers(0.1), numbers(0.3)]
NAMES = [ProbedMetric(None, name, name, "baseline") for name in ("own", "weak", "fair")]
FOUND = find(PerturbedRows(ORIGINALS, GROUPS, MADE), NAMES, [OWN, *OTHERS], {}, permutations=400, seed=1)


def sides(values, effect):
    places = [N + at for at, one in enumerate(MADE) if one.effect == effect]
    rows = [one.row for one in MADE if one.effect == effect]
    return values[rows], values[places], [GROUPS[row] for row in rows]


@pytest.mark.parametrize("place", range(3))
def test_figures_and_intervals_are_by_group(place):
    values, line = [OWN, *OTHERS][place], FOUND.subjects[place]
    assert line.sensitivity == sensitivity(*sides(values.plain, "worse"))
    assert line.magnitude == sensitivity_magnitude(*sides(values.unit, "worse"))
    assert line.stability == score_stability(*sides(values.unit, "same"))
    single = sensitivity_magnitude(*sides(values.unit, "worse")[:2]).interval
    assert line.magnitude.interval != single


@pytest.mark.parametrize(
    ("effect", "compare", "unit", "name"),
    [("worse", compare_sensitivity, "plain", "p_sensitivity"), ("same", compare_stability, "unit", "p_stability")],
)
def test_p_values_are_by_group_and_after_holm(effect, compare, unit, name):
    (*own, groups) = sides(getattr(OWN, unit), effect)
    tests = [
        compare(own, sides(getattr(other, unit), effect)[:2], groups, permutations=400, seed=1) for other in OTHERS
    ]
    assert [getattr(line, name) for line in FOUND.subjects[1:]] == holm([test.p_value for test in tests]).tolist()
    assert math.isnan(getattr(FOUND.subjects[0], name))


def test_strategies_and_attacks_have_their_own_pairs():
    lines = {line.name: line for line in FOUND.strategies}
    assert set(lines) == {"worse 0", "worse 1", "same 2"}
    assert lines["worse 0"].sensitivity.n == N
    pooled = (lines["worse 0"].sensitivity.value + lines["worse 1"].sensitivity.value) / 2
    assert pooled == pytest.approx(FOUND.subjects[0].sensitivity.value)
    (attack,) = FOUND.attacks
    assert (attack.pairs.n, attack.change.n) == (N, N)
    assert attack.change.value == pytest.approx(-np.subtract(*sides(OWN.attacked, "attack")[:2]).mean())


def test_surprises_are_the_largest_with_the_metrics_own_numbers():
    worse = [one for one in FOUND.surprises if one.effect == "worse"]
    same = [one for one in FOUND.surprises if one.effect == "same"]
    before, after, _ = sides(OWN.plain, "worse")
    assert worse[0].before - worse[0].after == pytest.approx((after - before).max())  # raw is the other way round
    before, after, _ = sides(OWN.plain, "same")
    moves = sorted(np.abs(after - before), reverse=True)
    assert [abs(one.after - one.before) for one in same] == pytest.approx(moves[:3])
    signed = sorted(after - before, reverse=True)
    assert moves[:3] != pytest.approx(signed[:3])  # falls are among them


def test_what_is_worthless_is_said():
    assert {"empty_output", "copy_input", "other_good_output"} == WORTHLESS
    assert {name for name, one in BUILTIN.items() if one.effect == "attack"} > WORTHLESS
