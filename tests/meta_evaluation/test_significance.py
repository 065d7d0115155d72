"""PERM-BOTH and chance floors: the public tool's numbers and exact enumerations of small cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import (
    SegmentAccuracy,
    chance_floor,
    pairwise_accuracy,
    perm_both,
    perm_pairs,
    segment_correlation,
    soft_pairwise_accuracy,
    system_pairwise_accuracy,
)
from metricsmith.meta_evaluation.significance import better_draws, chance_floors
from metricsmith.stats.resampling import permutation_null
from score_matrices import en_de, synthetic

NAN = math.nan


def pearson(metric, gold):
    return segment_correlation(metric, gold, correlation="pearson")


def untied(metric, gold):
    return pairwise_accuracy(metric, gold, epsilon=0)


MEASURES = {"pearsonr/none": pearson, "kendalltau/none": segment_correlation, "KendallVariants/item": untied}


def standard(values):
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("pair", ["m1_vs_m2", "syn4_vs_syn2"])
def test_golden_perm_both(shared_golden, measure, pair):
    found = en_de(shared_golden)
    golden = found[f"ende/perm_both/{pair}/{measure}"][2]
    names = {"m1_vs_m2": ("gold0_metric2", "gold0_metric1"), "syn4_vs_syn2": ("gold0_syn2", "gold0_syn4")}[pair]
    (better, gold, _), (worse, _, _) = (found[f"ende/wmt/{name}"] for name in names)
    resamples = 300
    test = perm_both(MEASURES[measure], better, worse, gold, resamples=resamples)
    assert test.observed == pytest.approx(golden["delta"], abs=1e-12)
    reached = test.p_value * (resamples + 1) - 1
    spread = math.sqrt(max(golden["p"] * (1 - golden["p"]), 1e-3) * (1 / resamples + 1 / golden["k"]))
    assert abs(reached / resamples - golden["p"]) < 4 * spread


def test_equal_to_enumerating_all_exchanges():
    random = np.random.default_rng(11)
    gold = random.normal(size=(2, 5))
    first, second = gold + random.normal(size=(2, 2, 5)) * [[[0.8]], [[1.2]]]
    a, b = standard(first), standard(second)
    observed = pearson(a, gold).value - pearson(b, gold).value
    reached = []
    for bits in itertools.product([False, True], repeat=10):
        swap = np.array(bits).reshape(2, 5)
        reached.append(
            pearson(np.where(swap, b, a), gold).value - pearson(np.where(swap, a, b), gold).value >= observed - 1e-12
        )
    exact = np.mean(reached)
    assert 0.05 < exact < 0.95
    test = perm_both(pearson, first, second, gold, resamples=1500)
    assert test.observed == pytest.approx(observed, abs=1e-12)
    assert abs(test.p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 1500)


def test_the_test_is_one_sided():
    metric, gold, _ = synthetic("continuous")
    noise = np.random.default_rng(0).normal(size=gold.shape)
    assert perm_both(untied, metric, noise, gold, resamples=99).p_value == 1 / 100
    assert perm_both(untied, noise, metric, gold, resamples=99).p_value == 1
    assert perm_both(untied, metric, metric, gold, resamples=99).p_value == 1


@pytest.mark.parametrize("measure", [pairwise_accuracy, segment_correlation, system_pairwise_accuracy])
def test_any_measure_will_do(measure):
    metric, gold, _ = synthetic("missing")
    noisy = metric + np.random.default_rng(1).normal(size=gold.shape) * 4
    test = perm_both(measure, metric, noisy, gold, resamples=20)
    a, b = (np.where(np.isnan(gold), NAN, scores) for scores in (metric, noisy))
    assert test.observed == pytest.approx(measure(a, gold).value - measure(b, gold).value, abs=1e-9)
    assert 1 / 21 <= test.p_value <= 1


def test_soft_accuracy_and_plain_functions_are_measures_too():
    metric, gold, _ = synthetic("coarse")
    noise = np.random.default_rng(1).normal(size=gold.shape)
    soft = perm_both(lambda m, g: soft_pairwise_accuracy(m, g, draws=50), metric, noise, gold, resamples=20)
    assert soft.observed > 0
    assert perm_both(lambda m, g: -np.nanmean((m - g) ** 2), metric, noise, gold, resamples=20).draws == 20


def test_the_metrics_are_brought_to_one_scale_unless_told_otherwise():
    metric, gold, _ = synthetic("continuous")
    wide = perm_both(pearson, metric * 100 + 3, metric + 1, gold, resamples=50)
    assert wide.observed == pytest.approx(0, abs=1e-12)
    seen = []
    perm_both(lambda m, g: seen.append(m) or 0.0, metric, metric, gold, resamples=1, standardize=False)
    np.testing.assert_array_equal(seen[0], metric)


def test_cells_that_one_of_the_three_lacks_take_no_part():
    seen = []
    perm_both(
        lambda m, g: seen.append((m, g)) or 0.0,
        [[1, NAN, 3], [4, 5, 6]], [[1, 2, NAN], [4, 5, 6]], [[1, 2, 3], [NAN, 5, 6]], resamples=3,
    )  # fmt: skip
    for metric, gold in seen:
        expected = [[False, True, True], [True, False, False]]
        assert [np.isnan(metric).tolist(), np.isnan(gold).tolist()] == [expected, expected]


def test_segments_of_a_group_are_exchanged_together():
    # Two documents of two segments each; the first metric is 0 everywhere, the second 1 (not standardised).
    seen = []
    perm_both(
        lambda m, g: seen.append(m) or 0.0, np.zeros((2, 4)), np.ones((2, 4)), np.zeros((2, 4)),
        groups=["a", "b", "a", "b"], resamples=40, standardize=False,
    )  # fmt: skip
    patterns = {tuple(m.ravel()) for m in seen}
    assert patterns == {(a, b, a, b) * 2 for a in (0.0, 1.0) for b in (0.0, 1.0)}
    with pytest.raises(DataError, match="3 groups for 4 segments"):
        perm_both(pearson, np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 4)), groups=["a", "b", "c"])


def test_without_a_common_cell_nothing_is_defined():
    nothing = np.full((2, 3), NAN)
    test = perm_both(untied, nothing, nothing, nothing, resamples=5)
    assert math.isnan(test.observed)
    assert math.isnan(test.p_value)
    assert test.undefined == 5
    assert math.isnan(chance_floor(untied, nothing, nothing, by="item", permutations=5).mean)


def test_no_resamples_are_refused():
    with pytest.raises(OptionError, match="at least 1"):
        perm_both(pearson, [[1, 2]], [[1, 2]], [[1, 2]], resamples=0)


# The test of a rank table


def better_test(*arguments, **options):
    return better_draws(*arguments, **options).test("greater")


def noisy(spread, seed):
    return GOLD + np.random.default_rng(seed).normal(0, spread, GOLD.shape)


GOLD = np.random.default_rng(0).integers(-4, 1, (6, 40)).astype(float)
TEST = {"swap": "pairs", "resamples": 300, "seed": 2}


def test_accuracies_that_calibrate_exchange_pairs_unless_scores_are_asked_for():
    first, second, acc = noisy(1, 1), noisy(1.2, 2), SegmentAccuracy()
    pairs = perm_pairs(first, second, GOLD, resamples=300, seed=2)
    scores = perm_both(acc, first, second, GOLD, resamples=300, seed=2)
    assert pairs.p_value != scores.p_value
    assert better_test(acc, first, second, GOLD, **TEST) == pairs
    assert better_test(acc, first, second, GOLD, **TEST, deciding=0.05) == pairs
    assert better_test(acc, first, second, GOLD, **{**TEST, "swap": "scores"}) == scores
    for other in (SegmentAccuracy(epsilon=0.0), pearson):
        expected = perm_both(other, first, second, GOLD, resamples=300, seed=2)
        assert better_test(other, first, second, GOLD, **TEST) == expected


def test_deciding_tests_end_early_by_the_level():
    first, second = noisy(1, 1), noisy(6, 2)
    assert better_test(untied, first, second, GOLD, **TEST).draws == 300
    assert better_test(untied, first, second, GOLD, **TEST, deciding=0.05).draws == 100
    # The other way round every draw reaches the difference: above .5, but no share is above 10 times .3.
    assert better_test(untied, second, first, GOLD, **TEST, deciding=0.05).draws == 100
    assert better_test(untied, second, first, GOLD, **TEST, deciding=0.3).draws == 300


class Rough:
    """A measure whose approximation is off by so much."""

    p_error = 0.03

    def __init__(self, p_value):
        self.asked = []
        self.p_value = p_value

    def __call__(self, metric, gold):
        return pearson(metric, gold).value

    def ways(self, name):
        def draws(swap):
            self.asked.append(name)
            # The observed difference is 0; this share of draws reaches it.
            return np.where(np.arange(len(swap)) < self.p_value * len(swap), 1.0, -1.0) * swap.any(axis=1)

        return draws

    def approximated(self, first, second, gold):
        return self.ways("approximated")

    def exchanged(self, first, second, gold):
        return self.ways("exchanged")


@pytest.mark.parametrize(("p_value", "draws_anew"), [(0.1, False), (0.3, False), (0.06, True), (0.04, True)])
def test_an_approximation_counts_where_it_is_far_from_the_level(p_value, draws_anew):
    measure = Rough(p_value)
    better_draws(measure, noisy(1, 1), noisy(1, 2), GOLD, **TEST, deciding=0.05)
    assert ("exchanged" in measure.asked) == draws_anew
    assert measure.asked[0] == "approximated"
    measure = Rough(p_value)
    better_draws(measure, noisy(1, 1), noisy(1, 2), GOLD, **TEST)
    assert set(measure.asked) == {"exchanged"}


# Chance


def test_floors_of_raters(shared_golden):
    # Random metrics had .390 to .407 here, a constant .205 (measured beside the golden numbers).
    metric, gold, _ = en_de(shared_golden)["ende/wmt/gold0_metric1"]
    noise = np.random.default_rng(0).normal(size=gold.shape)
    floor = chance_floor(pairwise_accuracy, noise, gold, permutations=60)
    assert 0.37 < floor.low < 0.39 < floor.mean < 0.407 < floor.high < 0.43
    constant = chance_floor(pairwise_accuracy, np.ones_like(gold), gold, permutations=5)
    assert constant.mean == pytest.approx(0.205, abs=1e-3)
    found = chance_floor(pairwise_accuracy, metric, gold, permutations=60)
    assert found.observed == pytest.approx(0.58483, abs=1e-5)
    assert found.p_value == 1 / 61


def test_worse_than_chance_is_not_better_than_chance():
    metric, gold, _ = synthetic("continuous")
    assert chance_floor(segment_correlation, -metric, gold, permutations=50).p_value == 1


def test_the_floor_of_a_correlation_is_zero_and_of_pairs_of_systems_a_half():
    metric, gold, _ = synthetic("coarse")
    floor = chance_floor(segment_correlation, metric, gold, permutations=200)
    assert floor.mean == pytest.approx(0, abs=0.02)
    assert floor.low < 0 < floor.high < floor.observed
    continuous = np.random.default_rng(2).normal(size=gold.shape)
    assert chance_floor(system_pairwise_accuracy, continuous, gold).mean == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("by", ["none", "item", "system"])
def test_what_changes_places(by):
    metric, gold = np.arange(12.0).reshape(3, 4), -np.arange(12.0).reshape(3, 4)
    seen = []
    chance_floor(lambda m, g: seen.append((m, g)) or 0.0, metric, gold, by=by, permutations=20)
    assert all((g == gold).all() for _, g in seen)
    drawn = [m for m, _ in seen if (m != metric).any()]
    assert len(drawn) >= 19
    assert all(sorted(m.ravel()) == sorted(metric.ravel()) for m in drawn)
    columns = {tuple(sorted(column)) for column in metric.T}
    rows = {tuple(row) for row in metric}
    assert all({tuple(sorted(column)) for column in m.T} == columns for m in drawn) == (by == "item")
    assert all({tuple(sorted(row)) for row in m} == rows for m in drawn) == (by == "system")


def test_missing_cells_stay_where_they_are_and_undefined_values_are_counted():
    metric, gold = [[1, NAN, 3], [4, 5, 6]], [[1, 2, 3], [NAN, 5, 6]]
    seen = []
    floor = chance_floor(lambda m, g: seen.append(m) or NAN, metric, gold, permutations=7)
    assert all(np.isnan(m).tolist() == [[False, True, False], [True, False, False]] for m in seen)
    assert (floor.draws, floor.undefined) == (0, 7)
    assert math.isnan(floor.mean)
    assert math.isnan(floor.p_value)


@pytest.mark.parametrize("by", ["none", "item", "system"])
def test_metrics_that_share_permutations_have_the_floors_that_each_has_alone(by):
    gold = np.where(np.arange(GOLD.size).reshape(GOLD.shape) % 7 == 3, NAN, GOLD)
    metrics = [noisy(spread, spread) for spread in (1, 2, 5)]
    for measure in (SegmentAccuracy(), MEASURES["kendalltau/none"]):  # with and without a way to share gold's work
        together = chance_floors(measure, metrics, gold, by=by, permutations=30, seed=6)
        assert together == [chance_floor(measure, one, gold, by=by, permutations=30, seed=6) for one in metrics]
        assert len({floor.mean for floor in together}) == 3


def test_floors_of_several_metrics_rest_on_the_cells_that_all_have():
    full, gaps = noisy(1, 1), noisy(2, 2)
    gaps[1, 4] = NAN
    found = chance_floors(pearson, [full, gaps], GOLD, permutations=9)[0]
    common = np.where(np.isnan(gaps), NAN, GOLD)
    assert found == chance_floor(pearson, full, common, permutations=9) != chance_floor(pearson, full, GOLD)
    with pytest.raises(OptionError, match="at least 1"):
        chance_floors(pearson, [full], GOLD, permutations=0)


def test_the_draws_of_a_floor_are_those_of_the_permutation_test():
    metric, chosen = noisy(1, 1), np.arange(GOLD.size)
    seen = []
    chance_floor(lambda m, g: seen.append(m.ravel()) or 0.0, metric, GOLD, permutations=12, seed=8)
    expected = []
    permutation_null(lambda x, y: expected.append(metric.ravel()[y.astype(int)]) or 0.0, chosen, chosen,
                     permutations=12, seed=8)  # fmt: skip
    np.testing.assert_array_equal(seen[1:], expected)  # the first one is the metric as it is


def test_an_unknown_grouping_is_refused():
    with pytest.raises(OptionError, match="unknown grouping 'segment'"):
        chance_floor(pearson, [[1, 2]], [[1, 2]], by="segment")


def test_a_share_at_the_bound_decides_nothing():
    class Fixed:
        def __call__(self, metric, gold):
            return 0.0

        def exchanged(self, first, second, gold):
            return lambda swap: np.where(np.arange(len(swap)) % 100 < 2, 1.0, -1.0)

    settings = {"swap": "scores", "resamples": 500, "seed": 0, "deciding": 0.05}
    cells = np.arange(12.0).reshape(3, 4)
    assert better_draws(Fixed(), cells, cells, cells, **settings).draws.size == 500  # .02 is not below .02
