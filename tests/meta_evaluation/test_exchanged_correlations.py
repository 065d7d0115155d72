"""Correlations of metrics that exchange cells: exact without ties, and the approximation of tau-b with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.meta_evaluation import segment_correlation
from metricsmith.meta_evaluation.exchanged_correlations import exchanged_item_spearman, exchanged_pooled_kendall

RANDOM = np.random.default_rng(3)
GOLD = RANDOM.integers(-6, 1, (6, 60)).astype(float)
FIRST, SECOND = GOLD + RANDOM.normal(0, 2, (2, *GOLD.shape))
SWAPS = RANDOM.random((12, GOLD.size)) < 0.5


def called(first, second, gold, **options):
    found = []
    for row in SWAPS.reshape(-1, *gold.shape):
        sides = np.where(row, second, first), np.where(row, first, second)
        one, other = (segment_correlation(side, gold, **options).value for side in sides)
        found.append(one - other)
    return np.array(found)


def test_tau_b_without_ties_is_linear_in_the_swaps():
    expected = called(FIRST, SECOND, GOLD)
    for approximately in (False, True):
        found = exchanged_pooled_kendall(FIRST, SECOND, GOLD, approximately=approximately)(SWAPS)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_equal_scores_of_one_cell_are_no_tie():
    second = np.where(RANDOM.random(GOLD.shape) < 0.5, FIRST, SECOND)
    np.testing.assert_allclose(
        exchanged_pooled_kendall(FIRST, second, GOLD)(SWAPS), called(FIRST, second, GOLD), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("other", [np.round(SECOND), SECOND], ids=["both in steps", "one in steps"])
def test_tau_b_with_ties_is_approximated_on_request_alone(other):
    first = np.round(FIRST)
    assert exchanged_pooled_kendall(first, other, GOLD) is None
    found, expected = (
        exchanged_pooled_kendall(first, other, GOLD, approximately=True)(SWAPS),
        called(first, other, GOLD),
    )
    assert np.abs(found - expected).max() < 1e-4 < 0.01 * expected.std()


def test_a_mixture_that_is_constant_has_no_tau():
    flat = np.zeros(GOLD.shape)
    found = exchanged_pooled_kendall(flat, FIRST, GOLD, approximately=True)(np.zeros((1, GOLD.size), dtype=bool))
    assert np.isnan(found).all()
    assert np.isnan(exchanged_pooled_kendall(FIRST, SECOND, flat)(SWAPS)).all()


def test_many_systems_are_ranked_without_rounding():
    gold = RANDOM.normal(size=(801, 2))  # sums of squared ranks beyond what single precision holds
    first, second = gold + RANDOM.normal(size=(2, *gold.shape))
    kept = np.zeros((1, gold.size), dtype=bool)
    expected = [segment_correlation(one, gold, correlation="spearman", by="item").value for one in (first, second)]
    found = exchanged_item_spearman(first, second, gold)(kept)
    assert math.isclose(found[0], expected[0] - expected[1], abs_tol=1e-13)
