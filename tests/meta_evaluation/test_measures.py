"""Measures by name are the functions of the package, and values that compare."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    SystemCorrelation,
    measure,
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    system_means,
    system_pairwise_accuracy,
)
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
