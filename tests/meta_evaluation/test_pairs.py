"""The best tie threshold, to the last bit, on floats that are hard to tell apart or far apart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.meta_evaluation.pairs import GoldPairs

TENTHS = st.integers(-12, 12).map(lambda number: number / 10)
SPECIAL = [0.0, -0.0, 5e-324, 1e-310, 1e-17, 1.0, 1 + 2**-52, 0.1 + 0.2, 1e300, -1e300, 2.0**-60]
HARD = TENTHS | st.sampled_from(SPECIAL)
DECIMALS = st.sampled_from([None, 1])


def tried_out(metric, gold, decimals):
    """Every candidate on every pair of whole groups, counted in whole numbers."""
    pairs = [
        tuple(side[one] - side[other] if decimals is None else np.round(side[one] - side[other], decimals)
              for side in (x, y))
        for x, y in zip(metric, gold, strict=True) if not math.isnan(y[0])
        for one, other in itertools.combinations(range(len(x)), 2)
    ]  # fmt: skip
    candidates = sorted({0.0, *(abs(apart) for apart, _ in pairs)})
    right = [
        sum((abs(apart) <= epsilon) if wanted == 0 else (abs(apart) > epsilon and apart * wanted > 0)
            for apart, wanted in pairs)
        for epsilon in candidates
    ]  # fmt: skip
    size = gold.shape[1] * (gold.shape[1] - 1) // 2
    return max(right) / size / (len(pairs) // size), candidates[right.index(max(right))]


@given(
    metric=arrays.arrays(float, (5, 4), elements=HARD),
    gold=arrays.arrays(float, (5, 4), elements=st.integers(0, 3).map(float)),
    empty=st.sets(st.integers(0, 3)),
    decimals=DECIMALS,
)
@settings(max_examples=200, deadline=None)
def test_the_same_value_and_threshold_as_trying_all(metric, gold, empty, decimals):
    metric[list(empty)] = gold[list(empty)] = math.nan
    assert GoldPairs(gold, decimals).calibrated(metric) == tried_out(metric, gold, decimals)


@pytest.mark.parametrize("digits", [0, 1, None])
def test_the_same_with_more_thresholds_than_are_looked_at_one_by_one(digits):
    random = np.random.default_rng(4)
    gold = np.round(random.normal(size=(40, 6)))
    metric = gold + random.normal(size=gold.shape)
    metric = metric if digits is None else np.round(metric, digits)
    assert GoldPairs(gold).calibrated(metric) == tried_out(metric, gold, None)


@given(gold=arrays.arrays(float, (4, 5), elements=TENTHS | st.just(math.nan)), decimals=DECIMALS)
def test_gold_has_all_pairs_tied_or_in_its_own_order(gold, decimals):
    pairs = GoldPairs(gold, decimals)
    tied, untied = pairs.distances(gold)
    assert (tied == 0).all()
    assert (untied > 0).all()
    groups = np.concatenate([pairs.tied_groups, pairs.untied_groups])
    assert np.bincount(groups, minlength=4).tolist() == pairs.sizes.tolist()


@given(
    metric=arrays.arrays(float, (4, 5), elements=HARD),
    gold=arrays.arrays(float, (4, 5), elements=TENTHS | st.just(math.nan)),
    decimals=DECIMALS,
)
def test_distances_are_those_of_all_pairs(metric, gold, decimals):
    metric[np.isnan(gold)] = math.nan
    pairs = GoldPairs(gold, decimals)
    expected = []
    for group, (x, y) in enumerate(zip(metric, gold, strict=True)):
        for one, other in itertools.combinations(range(5), 2):
            apart, wanted = x[one] - x[other], y[one] - y[other]
            if decimals is not None:
                apart, wanted = np.round([apart, wanted], decimals)
            if not math.isnan(wanted):
                expected.append((wanted == 0, group, abs(apart) if wanted == 0 else apart * np.sign(wanted)))
    tied, untied = pairs.distances(metric)
    found = [
        *((True, group, apart) for group, apart in zip(pairs.tied_groups, tied, strict=True)),
        *((False, group, apart) for group, apart in zip(pairs.untied_groups, untied, strict=True)),
    ]
    assert sorted(found) == sorted(expected)
