"""acc-t of exchanged metrics: the very number of calibrating the mixture, however coarse the bins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.meta_evaluation.exchanged_pairs import ExchangedPairs
from metricsmith.meta_evaluation.pairs import GoldPairs

TENTHS = st.integers(-12, 12).map(lambda number: number / 10)
HARD = TENTHS | st.sampled_from([-0.0, 5e-324, 1e-310, 1e-17, 1 + 2**-52, 0.1 + 0.2, 1e300, -1e300])
SCORES = arrays.arrays(float, (5, 4), elements=HARD)


def mixed_calibration(pairs, first, second, swap):
    return pairs.calibrated(np.where(swap, second, first))[0]


@given(
    first=SCORES,
    second=SCORES,
    gold=arrays.arrays(float, (5, 4), elements=st.integers(0, 3).map(float)),
    swap=arrays.arrays(bool, (5, 4)),
    empty=st.sets(st.integers(0, 3)),
    decimals=st.sampled_from([None, 1]),
    bins=st.sampled_from([1, 2, 3, 7, 32_766]),
)
@settings(max_examples=300, deadline=None)
def test_the_same_as_calibrating_the_mixture(first, second, gold, swap, empty, decimals, bins):
    for scores in (first, second, gold):
        scores[list(empty)] = math.nan
    pairs = GoldPairs(gold, decimals)
    exchanged = ExchangedPairs(pairs, first, second, bins)
    for turned in (swap, ~swap):  # the second finds nothing left of the first
        assert exchanged.accuracy(turned) == mixed_calibration(pairs, first, second, turned)


@pytest.mark.parametrize("bins", [1, 10, 500, 8192, 32_766])
@pytest.mark.parametrize("digits", [0, 2, None])
def test_the_same_on_many_pairs(bins, digits):
    random = np.random.default_rng(6)
    gold = np.round(random.normal(size=(200, 9)))
    first, second = (gold + random.normal(size=gold.shape) for _ in range(2))
    if digits is not None:
        first, second = np.round(first, digits), np.round(second, digits)
    pairs = GoldPairs(gold)
    exchanged = ExchangedPairs(pairs, first, second, bins)
    swaps = random.random((10, *gold.shape)) < 0.5
    found = [exchanged.accuracy(swap) for swap in swaps]
    assert found == [mixed_calibration(pairs, first, second, swap) for swap in swaps]
    assert len(set(found)) > 5


def test_gold_without_ties_has_no_threshold_but_zero():
    gold, first = np.array([[1.0, 2, 3]]), np.array([[1.0, 3, 2]])
    exchanged = ExchangedPairs(GoldPairs(gold), first, gold)
    assert exchanged.accuracy(np.zeros((1, 3), dtype=bool)) == 2 / 3
    assert exchanged.accuracy(np.ones((1, 3), dtype=bool)) == 1
    assert exchanged.accuracy(np.array([[False, True, False]])) == 2 / 3  # 1 2 2: two in order, one tied
