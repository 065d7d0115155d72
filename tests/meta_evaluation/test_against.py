"""Measures of many metrics against one gold give what they give one by one, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.meta_evaluation import MEASURES, SegmentAccuracy, SoftSystemAccuracy
from metricsmith.meta_evaluation.grouping import paired_matrices

NAN = math.nan
RANDOM = np.random.default_rng(5)
GOLD = -np.round(RANDOM.exponential(2, (6, 25)))
NOISY = GOLD + RANDOM.normal(size=(11, *GOLD.shape)) * np.linspace(0.1, 4, 11)[:, None, None]
NOISY[::2] = NOISY[::2].round()
NOISY[1] = 3.0  # a constant
SHARING = {
    **{name: one for name, one in MEASURES.items() if hasattr(one, "against") and one.against(GOLD) is not None},
    "acc by system": SegmentAccuracy(by="system", epsilon=0.5, decimals=2),
    "spa, full ties": SoftSystemAccuracy(draws=50, seed=3, ties="full"),
}


def one_by_one(measure, metrics, gold):
    return [measure(metric, gold).value for metric in metrics]


def test_the_measures_that_share_the_work_of_gold():
    assert set(SHARING) == {"spa", "acc-t", "acc", "tau-b-item", "acc by system", "spa, full ties"}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", SHARING)
def test_values_are_those_of_the_measure(name, gaps):
    gold = np.where(RANDOM.random(GOLD.shape) < 0.1 * gaps, NAN, GOLD)
    gold[:, 3] = 0  # an item without two ratings
    metrics = np.array([paired_matrices(metric, gold)[0] for metric in NOISY])
    found = SHARING[name].against(gold)(metrics)
    np.testing.assert_array_equal(found, one_by_one(SHARING[name], metrics, gold))
    assert np.unique(found[~np.isnan(found)]).size > 5


@pytest.mark.parametrize("name", SHARING)
@pytest.mark.parametrize("gold", [np.full((3, 4), NAN), np.zeros((1, 4))])
def test_without_pairs_nothing_is_defined(name, gold):
    metrics = np.zeros((2, *gold.shape)) + gold
    if name == "acc by system" and len(gold) == 1:
        assert SHARING[name].against(gold)(metrics).tolist() == [1.0, 1.0]
    else:
        assert np.isnan(SHARING[name].against(gold)(metrics)).all()


def test_many_systems_do_not_overflow_small_numbers():
    gold = np.arange(200.0)[:, None] * [1, -1]
    measure = MEASURES["tau-b-item"]
    np.testing.assert_array_equal(measure.against(gold)(np.array([gold, -gold, gold[:, ::-1]])), [1.0, -1.0, -1.0])
