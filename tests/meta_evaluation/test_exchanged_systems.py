"""SPA of infinitely many sign vectors under exchanges: the Gram matrices give what its p-values give."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from metricsmith.meta_evaluation import SoftSystemAccuracy, SystemCorrelation, perm_both
from metricsmith.meta_evaluation.exchanged_systems import soft_accuracies_limit

RANDOM = np.random.default_rng(6)
GOLD = RANDOM.normal(size=(5, 40)) + np.linspace(0, 0.5, 5)[:, None]
FIRST, SECOND = GOLD + RANDOM.normal(size=(2, *GOLD.shape)) * [[[0.7]], [[1.5]]]


def limit(metric, gold):
    """Soft pairwise accuracy with the p-values of a z-test on the differences of two systems' scores."""
    pairs = list(itertools.combinations(range(len(gold)), 2))
    p_values = [
        [
            norm.sf((side[i] - side[j]).sum() / math.sqrt(((side[i] - side[j]) ** 2).sum()))
            if (side[i] != side[j]).any()
            else 0.5
            for i, j in pairs
        ]
        for side in (metric, gold)
    ]
    return 1 - np.abs(np.subtract(*p_values)).mean()


@pytest.mark.parametrize("twins", [False, True])
def test_the_limit_draw_by_draw(twins):
    first, second, gold = FIRST.copy(), SECOND.copy(), GOLD.copy()
    if twins:  # systems 0 and 1 tie everywhere: undecided
        first[1], second[1], gold[1] = first[0], second[0], gold[0]
    swap = RANDOM.random((20, gold.size)) < 0.5
    if twins:
        swap.reshape(20, *gold.shape)[:, 1] = swap.reshape(20, *gold.shape)[:, 0]
    expected = [
        limit(np.where(row, second, first), gold) - limit(np.where(row, first, second), gold)
        for row in swap.reshape(-1, *gold.shape)
    ]
    found = soft_accuracies_limit(first, second, gold, 0.5)(swap)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_only_segments_that_lack_nothing_count():
    gold = GOLD.copy()
    gold[2, 3] = gold[0, 9] = math.nan
    whole = ~np.isnan(gold).any(axis=0)
    found, expected = (
        perm_both(SoftSystemAccuracy(), *(side[:, kept] for side in (FIRST, SECOND, gold)), standardize=False,
                  resamples=5, approximately=True).observed
        for kept in (slice(None), whole)
    )  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-12)


def test_p_values_of_the_limit_are_near_those_of_the_draws():
    for seed in range(3):
        random = np.random.default_rng(seed)
        first, second = GOLD + random.normal(size=(2, *GOLD.shape)) * [[[0.7]], [[1.2]]]
        drawn, limited = (
            perm_both(SoftSystemAccuracy(), first, second, GOLD, resamples=400, approximately=quick)
            for quick in (False, True)
        )
        assert abs(drawn.p_value - limited.p_value) < SoftSystemAccuracy.p_error


def test_without_a_whole_segment_or_a_second_system_nothing_is_defined():
    gold = np.where(np.eye(5, 40, dtype=bool) | (np.arange(40) >= 5), math.nan, GOLD)
    for measure in (SoftSystemAccuracy(), SystemCorrelation()):
        assert math.isnan(perm_both(measure, FIRST, SECOND, gold, resamples=5).p_value)
    assert math.isnan(
        perm_both(SoftSystemAccuracy(), FIRST[:1], SECOND[:1], GOLD[:1], resamples=5, approximately=True).p_value
    )
