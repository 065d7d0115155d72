"""PERM-BOTH by the measures' own ways: the numbers and p-values of calling the measure for every resample."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import norm

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
from metricsmith.meta_evaluation.exchanged_accuracies import ExchangedPairs, exchanged_soft_accuracies_limit
from metricsmith.meta_evaluation.matrices import measure_value
from metricsmith.meta_evaluation.pairwise import GoldPairs
from metricsmith.stats.resampling.permutation import standardized

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


def distinct(first, second, gold):
    """False where standardized scores of both sides are equal but for rounding.

    Exchanged, they may make a constant, which the measure itself takes for scores that differ by some 1e-16.
    """
    cells = ~np.isnan(first + second + gold)
    scores = np.unique(np.concatenate([standardized(first[cells]), standardized(second[cells])]))
    return bool((np.diff(scores) > 1e-9).all())


def rounding(measure):
    """Differences between both ways that rounding may make.

    System scores are rounded to 12 digits of the largest score (`system_means`). Means of up to six tenths between -1.2
    and 1.2 that differ do so by at least .007 of it, so that Pearson's correlation moves by some 1e-10.
    """
    return 1e-9 if measure == SystemCorrelation("pearson") else 1e-13


@pytest.mark.parametrize("measure", [*EXCHANGED, SystemAccuracy((3, 1)), SystemAccuracy((2, 2))], ids=str)
@given(first=GAPPED, second=SCORES, gold=GAPPED, groups=GROUPS, standardize=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_same_as_calling_the_measure(measure, first, second, gold, groups, standardize):
    assume(not standardize or distinct(first, second, gold))
    own, called = both(measure, first, second, gold, groups=groups, standardize=standardize, resamples=25)
    assert own.observed == pytest.approx(called.observed, abs=rounding(measure), nan_ok=True)
    assert (own.draws, own.undefined) == (called.draws, called.undefined)
    assert own.p_value == pytest.approx(called.p_value, abs=1e-12, nan_ok=True)


def test_a_difference_of_none_may_be_what_the_rounding_of_means_leaves():
    """Found by hypothesis: the second's correlation with gold is 0, and -1.35e-13 by its rounded means."""
    first = [[0, 0, NAN, 0.1, 0, NAN], [0, NAN, 0, 0, 0, NAN], [0, NAN, NAN, 0, 0, NAN], [NAN, NAN, NAN, 0, NAN, 0]]
    second = [[0, 0.2, 0, 0, 0, 0], [0, 0, 0, -0.1, 0, 0], [0, 0, 0, 0.1, 0, 0], [0, 0, 0, 0, 0, 0]]
    measure, matrices = SystemCorrelation("pearson"), map(np.array, (first, second, first))
    own, called = both(measure, *matrices, standardize=True, resamples=25)
    assert own.observed == pytest.approx(called.observed, abs=rounding(measure))
    assert own.observed == pytest.approx(1, abs=1e-15)
    assert own.p_value == called.p_value


def test_exchanged_scores_that_are_constant_but_for_rounding_are_undefined():
    """Found by hypothesis: first and second standardize to .7071067811865472 and .7071067811865476 where they are high.

    Both are high on two of three cells, so that 10 of 25 draws of one side are high on all three.
    """
    first, second, gold = ([[0, -0.1, 0]], [[0.1, 0.1, 0]], [[0, 0.1, 0]])
    own, _ = both(SegmentCorrelation("pearson"), *map(np.array, (first, second, gold)), resamples=25)
    assert own.undefined == 10


def test_draws_that_equal_the_observed_but_for_rounding_count_on_either_way():
    """Found by hypothesis: sums in another order differ by some 1e-15 here, and 4 of 25 draws were lost on one way."""
    first = [
        [0.4, 0, NAN, NAN, 0, 0],
        [0, 0, NAN, NAN, NAN, 0],
        [0.9, -0.4, NAN, NAN, 0, NAN],
        [0, NAN, NAN, 0, NAN, NAN],
    ]
    second = [[0, 1.1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [-0.5, 1, 0, 0, 0, 0], [0, 0, 0, -0.3, 0, 0]]
    gold = [[0.4, 0.1, 0, 0, NAN, NAN], [NAN] * 5 + [0], [0.4, 0, 0, 0, NAN, 0], [NAN, 0, NAN, 0, NAN, NAN]]
    matrices = map(np.array, (first, second, gold))
    own, called = both(SegmentCorrelation("pearson", "item"), *matrices, resamples=25)
    assert own.p_value == called.p_value == 22 / 26


@pytest.mark.parametrize("measure", EXCHANGED, ids=str)
def test_draw_by_draw(measure):
    random = np.random.default_rng(5)
    gold = np.round(random.normal(size=(5, 40)))
    first, second = (gold + np.round(random.normal(size=gold.shape), 1) for _ in range(2))
    swap = swaps(gold.shape, 6)
    expected = []
    for row in swap.reshape(-1, *gold.shape):
        mixed, other = np.where(row, second, first), np.where(row, first, second)
        expected.append(measure_value(measure, mixed, gold) - measure_value(measure, other, gold))
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


EXCHANGED_PAIRS_TENTHS = st.integers(-12, 12).map(lambda number: number / 10)
HARD = EXCHANGED_PAIRS_TENTHS | st.sampled_from([-0.0, 5e-324, 1e-310, 1e-17, 1 + 2**-52, 0.1 + 0.2, 1e300, -1e300])
EXCHANGED_PAIRS_SCORES = arrays.arrays(float, (5, 4), elements=HARD)


def mixed_calibration(pairs, first, second, swap):
    return pairs.calibrated(np.where(swap, second, first))[0]


@given(
    first=EXCHANGED_PAIRS_SCORES,
    second=EXCHANGED_PAIRS_SCORES,
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
    found = exchanged_soft_accuracies_limit(first, second, gold, 0.5)(swap)
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
        assert abs(drawn.p_value - limited.p_value) < SoftSystemAccuracy().p_error


def test_without_a_whole_segment_or_a_second_system_nothing_is_defined():
    gold = np.where(np.eye(5, 40, dtype=bool) | (np.arange(40) >= 5), math.nan, GOLD)
    for measure in (SoftSystemAccuracy(), SystemCorrelation()):
        assert math.isnan(perm_both(measure, FIRST, SECOND, gold, resamples=5).p_value)
    assert math.isnan(
        perm_both(SoftSystemAccuracy(), FIRST[:1], SECOND[:1], GOLD[:1], resamples=5, approximately=True).p_value
    )
