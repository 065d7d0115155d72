"""The test that exchanges decisions about pairs: exact tails by hand and by enumeration, and what moves it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import SegmentAccuracy, pairwise_accuracy, perm_pairs

NAN = math.nan
RANDOM = np.random.default_rng(8)
GOLD = RANDOM.integers(-3, 1, (4, 15)).astype(float)
FIRST, SECOND = (GOLD + RANDOM.normal(0, spread, GOLD.shape) for spread in (1.0, 1.6))


def test_a_tail_of_one_binomial_by_hand():
    # Two systems, so that a segment is a pair; 1 is better in gold throughout. The first metric alone is right on six
    # segments, the second alone on one, both on three: 5 / 10 more. Of seven exchanges with 1/2, six or seven must
    # leave the first right: (7 + 1) / 128.
    gold = np.array([[0.0] * 10, [1.0] * 10])
    first = np.array([[0.0] * 10, [1.0] * 6 + [-1.0] + [1.0] * 3])
    second = np.array([[0.0] * 10, [-1.0] * 6 + [1.0] * 4])
    test = perm_pairs(first, second, gold, epsilon=0.0, resamples=100_000)
    assert test.observed == pytest.approx(0.5)
    assert test.p_value == pytest.approx(8 / 128, abs=4 * math.sqrt(8 / 128 / 100_000))
    assert test.draws == 100_000


def decisions(metric, gold, epsilon):
    """By segment, whether the metric is right about each pair of present systems."""
    found = []
    for x, y in zip(metric.T, gold.T, strict=True):
        pairs = [(i, j) for i, j in itertools.combinations(range(len(x)), 2) if not math.isnan(y[i] + y[j])]
        sign = [0 if abs(x[i] - x[j]) <= epsilon else math.copysign(1, x[i] - x[j]) for i, j in pairs]
        found.append([one == np.sign(y[i] - y[j]) for one, (i, j) in zip(sign, pairs, strict=True)])
    return found


def test_segments_of_different_sizes_by_enumeration():
    gold = np.array([[1.0, 2.0, NAN, 1.0], [3.0, 1.0, 2.0, 1.0], [2.0, 3.0, 1.0, 0.0]])  # 3, 3, 1 and 3 pairs
    first, second = gold + np.random.default_rng(2).normal(0, 1.5, (2, 3, 4))
    thresholds = [pairwise_accuracy(metric, gold).epsilon for metric in (first, second)]
    sides = [decisions(metric, gold, epsilon) for metric, epsilon in zip((first, second), thresholds, strict=True)]
    apart = [
        (float(one) - float(other)) / len(mine) / 4
        for mine, yours in zip(*sides, strict=True)
        for one, other in zip(mine, yours, strict=True)
    ]
    observed = sum(apart)
    assert len(apart) == 10
    assert observed == pytest.approx(
        pairwise_accuracy(first, gold).value - pairwise_accuracy(second, gold).value, abs=1e-12
    )
    assert observed != 0
    exchanged = np.array(list(itertools.product([-1, 1], repeat=10))) @ apart
    exact = float(np.mean(exchanged >= observed - 1e-12))
    assert 0.01 < exact < 0.99
    test = perm_pairs(first, second, gold, resamples=40_000)
    assert test.observed == pytest.approx(observed, abs=1e-12)
    assert abs(test.p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 40_000)


@pytest.mark.parametrize("by", ["item", "system", "none"])
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.5])
def test_the_difference_is_that_of_the_accuracies(by, epsilon):
    values = [pairwise_accuracy(metric, GOLD, by=by, epsilon=epsilon).value for metric in (FIRST, SECOND)]
    test = perm_pairs(FIRST, SECOND, GOLD, by=by, epsilon=epsilon, resamples=50)
    assert test.observed == pytest.approx(values[0] - values[1], abs=1e-12)
    turned = perm_pairs(SECOND, FIRST, GOLD, by=by, epsilon=epsilon, resamples=50)
    assert turned.observed == pytest.approx(-test.observed, abs=1e-12)


def test_no_exchange_of_one_metric_with_itself_matters():
    test = perm_pairs(FIRST, FIRST, GOLD, resamples=9)
    assert (test.observed, test.p_value) == (0, 1)


def test_only_cells_that_all_have_take_part():
    holed = FIRST.copy()
    holed[2, :4] = NAN
    masked = np.where(np.isnan(holed), NAN, GOLD)
    assert perm_pairs(holed, SECOND, GOLD, resamples=20) == perm_pairs(FIRST, SECOND, masked, resamples=20)
    nothing = perm_pairs(np.full(GOLD.shape, NAN), SECOND, GOLD, resamples=5)
    assert math.isnan(nothing.observed)
    assert math.isnan(nothing.p_value)


def test_decimals_and_seed_count():
    coarse = perm_pairs(FIRST, SECOND, GOLD, decimals=0, resamples=20)
    assert coarse.observed == pytest.approx(
        pairwise_accuracy(FIRST, GOLD, decimals=0).value - pairwise_accuracy(SECOND, GOLD, decimals=0).value
    )
    p_values = {perm_pairs(FIRST, SECOND, GOLD, seed=seed, resamples=99).p_value for seed in range(4)}
    assert len(p_values) > 1


def test_accuracies_that_calibrate_have_this_test_and_others_have_not():
    given = FIRST, SECOND, GOLD, 30, 4
    assert SegmentAccuracy().pairs_exchanged(*given) == perm_pairs(FIRST, SECOND, GOLD, resamples=30, seed=4)
    assert SegmentAccuracy("none", decimals=1).pairs_exchanged(*given) == perm_pairs(
        FIRST, SECOND, GOLD, by="none", decimals=1, resamples=30, seed=4
    )
    assert SegmentAccuracy(epsilon=0.0).pairs_exchanged(*given) is None


def test_what_has_no_meaning_is_refused():
    with pytest.raises(OptionError, match="at least 1"):
        perm_pairs(FIRST, SECOND, GOLD, resamples=0)
    with pytest.raises(OptionError, match="epsilon=-1"):
        perm_pairs(FIRST, SECOND, GOLD, epsilon=-1)
    with pytest.raises(OptionError, match="unknown grouping"):
        perm_pairs(FIRST, SECOND, GOLD, by="segment")
    with pytest.raises(DataError, match="do not match"):
        perm_pairs(FIRST[:2], SECOND, GOLD)
