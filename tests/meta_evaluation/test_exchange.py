"""PERM-BOTH by the measures' own ways: the numbers and p-values of calling the measure for every resample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from benchmark import loaded
from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    SegmentCorrelation,
    SoftSystemAccuracy,
    SystemAccuracy,
    SystemCorrelation,
    perm_both,
)
from metricsmith.meta_evaluation.significance import measured

NAN = math.nan
TENTHS = st.integers(-12, 12).map(lambda number: number / 10)  # differences that should be equal are not
SCORES = arrays.arrays(float, (4, 6), elements=TENTHS)
GAPPED = arrays.arrays(float, (4, 6), elements=TENTHS | st.just(NAN))
GROUPS = st.sampled_from([None, [0, 0, 1, 1, 2, 3], list("abacab")])
EXCHANGED = [
    *(
        SegmentAccuracy(by, epsilon, decimals)
        for by in ("item", "system", "none")
        for epsilon in (None, 0.0, 0.3)
        for decimals in (None, 1)
    ),
    *(SegmentCorrelation(name, by) for name in ("kendall_tau_b", "pearson", "spearman") for by in ("none", "item")),
    *(SystemCorrelation(name) for name in ("kendall_tau_b", "pearson", "spearman")),
    SystemAccuracy(),
    SoftSystemAccuracy(draws=20),
    SoftSystemAccuracy(draws=20, ties="full"),
]


def both(measure, first, second, gold, **options):
    """The test by the measure's own way, and with the measure hidden in a function."""
    own = perm_both(measure, first, second, gold, **options)
    return own, perm_both(lambda m, g: measure(m, g), first, second, gold, **options)


def swaps(shape, count, seed=0):
    return np.random.default_rng(seed).random((count, math.prod(shape))) < 0.5


@pytest.mark.parametrize("measure", EXCHANGED, ids=str)
@given(first=GAPPED, second=SCORES, gold=GAPPED, groups=GROUPS, standardize=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_same_as_calling_the_measure(measure, first, second, gold, groups, standardize):
    own, called = both(measure, first, second, gold, groups=groups, standardize=standardize, resamples=25)
    assert own.observed == pytest.approx(called.observed, abs=1e-13, nan_ok=True)
    assert (own.draws, own.undefined) == (called.draws, called.undefined)
    assert own.p_value == pytest.approx(called.p_value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("measure", EXCHANGED, ids=str)
def test_draw_by_draw(measure):
    random = np.random.default_rng(5)
    gold = np.round(random.normal(size=(5, 40)))
    first, second = (gold + np.round(random.normal(size=gold.shape), 1) for _ in range(2))
    swap = swaps(gold.shape, 6)
    expected = []
    for row in swap.reshape(-1, *gold.shape):
        mixed, other = np.where(row, second, first), np.where(row, first, second)
        expected.append(measured(measure, mixed, gold) - measured(measure, other, gold))
    way = measure.exchanged(first, second, gold)
    if way is None:  # tied scores of two cells
        assert measure == SegmentCorrelation("kendall_tau_b")
        return
    found = way(swap)
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("offset", [1e4, -1e6])
def test_scores_far_from_0_keep_their_digits(offset):
    random = np.random.default_rng(4)
    gold = random.normal(size=(4, 12))
    first, second = gold + random.normal(size=(2, 4, 12)) + offset
    own, called = both(SegmentCorrelation("pearson"), first, second, gold, standardize=False, resamples=40)
    assert (own.observed, own.p_value) == (pytest.approx(called.observed, abs=1e-8), called.p_value)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_named_measure_is_tested_alike(name):
    random = np.random.default_rng(2)
    gold = random.normal(size=(4, 12)) + np.arange(4)[:, None] / 3
    first, second = gold + random.normal(size=(2, *gold.shape))
    own, called = both(MEASURES[name], first, second, gold, resamples=15)
    assert (own.observed, own.p_value) == (pytest.approx(called.observed, abs=1e-13), called.p_value)


@pytest.mark.parametrize("constant", [0.1, 0.4, 7.0])
def test_constant_gold_leaves_every_difference_of_correlations_undefined(constant):
    random = np.random.default_rng(1)
    own, called = both(SegmentCorrelation("pearson"), *random.normal(size=(2, 3, 4)), np.full((3, 4), constant))
    assert math.isnan(own.p_value)
    assert (own.draws, own.undefined) == (called.draws, called.undefined) == (0, 1000)


def test_swaps_that_leave_a_constant_have_no_correlation():
    random = np.random.default_rng(2)
    for constant in random.normal(size=20):
        first, second, gold = random.normal(size=(3, 1, 7))
        swap = random.random((1, 7)) < 0.5
        first[~swap] = second[swap] = constant
        found = SegmentCorrelation("pearson").exchanged(first, second, gold)
        assert np.isnan(found(np.concatenate([swap, ~swap]))).all()


@pytest.mark.parametrize("ties", ["half", "full"])
def test_one_system_alone_has_no_soft_accuracy(ties):
    own, called = both(SoftSystemAccuracy(ties=ties), *np.random.default_rng(0).normal(size=(3, 1, 6)), resamples=5)
    assert math.isnan(own.p_value)
    assert (own.draws, own.undefined) == (called.draws, called.undefined) == (0, 5)


def test_equal_metrics_never_differ():
    gold = np.random.default_rng(0).normal(size=(4, 9))
    metric = gold + np.random.default_rng(1).normal(size=gold.shape)
    for measure in EXCHANGED:
        test = perm_both(measure, metric, metric, gold, resamples=30)
        assert (test.observed, test.p_value) == (0, 1), measure


def test_the_benchmark_of_speed_finds_the_same_numbers(capsys):
    benchmark = loaded("meta_evaluation")
    small = ["--systems", "4", "--segments", "30", "--resamples", "40", "--repeats", "1"]
    assert benchmark.main(small) == 0
    printed = capsys.readouterr().out
    assert printed.count("PERM-BOTH, calibrated anew, 40 resamples") == 2
    assert all(f"| {name} |" in printed for name in MEASURES)


def test_the_benchmark_of_significance_has_both_p_values_and_all_measures(capsys):
    benchmark = loaded("meta_evaluation")
    small = ["--systems", "4", "--segments", "20", "--resamples", "40", "--side-by-side", "3", "--metrics", "3"]
    assert benchmark.main(small) == 0
    printed = capsys.readouterr().out
    assert printed.count("| spa | metric ") == printed.count("| tau-b | metric ") == 2
    assert all(f"| {name} | 3 |" in printed for name in MEASURES)


def test_the_benchmark_stops_where_numbers_differ(monkeypatch):
    benchmark = loaded("meta_evaluation")
    options = benchmark.arguments(["--systems", "4", "--segments", "30", "--resamples", "5", "--repeats", "1"])
    monkeypatch.setattr(benchmark, "plain_accuracy", lambda metric, gold, epsilon: float(metric[0, 0]))
    with pytest.raises(SystemExit, match="PERM-BOTH differs"):
        benchmark.races(options)
    monkeypatch.setattr(benchmark, "plain_calibration", lambda metric, gold, running: (0.5, 0.1))
    with pytest.raises(SystemExit, match="acc-t differs"):
        benchmark.races(options)
