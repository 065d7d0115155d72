"""Measures by name are the functions of the package, and values that compare."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    SoftSystemAccuracy,
    SystemCorrelation,
    measure,
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    system_means,
    system_pairwise_accuracy,
)
from metricsmith.meta_evaluation.matrices import paired_matrices
from metricsmith.stats.correlation import pearson

RNG = np.random.default_rng(3)
GOLD = RNG.normal(size=(5, 12)).round()
METRIC = GOLD + RNG.normal(size=GOLD.shape)
FUNCTIONS = {
    "spa": soft_pairwise_accuracy,
    "acc-t": pairwise_accuracy,
    "system-accuracy": system_pairwise_accuracy,
    "system-pearson": lambda metric, gold: pearson(*system_means(metric, gold)),
    "acc": lambda metric, gold: pairwise_accuracy(metric, gold, epsilon=0.0),
    "tau-b": segment_correlation,
    "tau-b-item": lambda metric, gold: segment_correlation(metric, gold, by="item"),
    "pearson": lambda metric, gold: segment_correlation(metric, gold, correlation="pearson"),
    "pearson-item": lambda metric, gold: segment_correlation(metric, gold, correlation="pearson", by="item"),
    "spearman": lambda metric, gold: segment_correlation(metric, gold, correlation="spearman"),
    "spearman-item": lambda metric, gold: segment_correlation(metric, gold, correlation="spearman", by="item"),
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_its_function(name):
    assert measure(name)(METRIC, GOLD) == FUNCTIONS[name](METRIC, GOLD)


def test_no_two_measures_are_alike_on_these_scores():
    values = [getattr(one(METRIC, GOLD), "value", one(METRIC, GOLD)) for one in MEASURES.values()]
    assert len(set(values)) == len(values)


def test_measures_are_values():
    assert measure("acc-t") == SegmentAccuracy() != SegmentAccuracy(decimals=6)


def test_unknown():
    with pytest.raises(OptionError, match=r"unknown measure 'acct'.*acc-t"):
        measure("acct")


@pytest.mark.parametrize("correlation", ["pearson", "spearman", "kendall_tau_b"])
def test_two_systems_have_no_correlation(correlation):
    # Two points lie on a line: 1 or -1 says which system is better, which is what system accuracy says.
    statistic = SystemCorrelation(correlation)
    assert math.isnan(statistic(METRIC[:2], GOLD[:2]))
    assert not math.isnan(statistic(METRIC[:3], GOLD[:3]))
    assert measure("system-accuracy")(METRIC[:2], GOLD[:2]).value in (0, 1)


NAN = math.nan
RANDOM = np.random.default_rng(5)
AGAINST_GOLD = -np.round(RANDOM.exponential(2, (6, 25)))
NOISY = AGAINST_GOLD + RANDOM.normal(size=(11, *AGAINST_GOLD.shape)) * np.linspace(0.1, 4, 11)[:, None, None]
NOISY[::2] = NOISY[::2].round()
NOISY[1] = 3.0  # a constant
SHARING = {
    **{
        name: one for name, one in MEASURES.items() if hasattr(one, "against") and one.against(AGAINST_GOLD) is not None
    },
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
    gold = np.where(RANDOM.random(AGAINST_GOLD.shape) < 0.1 * gaps, NAN, AGAINST_GOLD)
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
