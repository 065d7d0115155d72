"""Pairwise accuracy and acc-t: the public tool's numbers, slow counts, and what must hold for any scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import PairwiseAccuracy, SegmentAccuracy, pairwise, pairwise_accuracy, perm_pairs
from metricsmith.meta_evaluation.pairwise import GoldPairs
from score_matrices import BY, SYNTHETIC, accuracy_slowly, en_de, synthetic

NAN = math.nan
CALIBRATED = {"item": "item", "system": "sys"}
EIGHTHS = st.integers(-16, 16).map(lambda number: number / 8)
SCORES = arrays.arrays(float, (4, 5), elements=EIGHTHS)
GAPPED = arrays.arrays(float, (4, 5), elements=EIGHTHS | st.just(NAN))
GROUPING = st.sampled_from(sorted(BY))
HALTING = settings(max_examples=60, deadline=None)


@pytest.mark.parametrize("case", sorted(SYNTHETIC))
@pytest.mark.parametrize("by", sorted(BY))
def test_golden_accuracy_without_a_threshold(case, by):
    metric, gold, expected = synthetic(case)
    value, _, used = expected[f"accuracy_eps0/{BY[by]}"]
    found = pairwise_accuracy(metric, gold, by=by, epsilon=0)
    assert (found.value, found.groups_used, found.epsilon) == (pytest.approx(value, abs=1e-12), used, 0)


@pytest.mark.parametrize("case", sorted(SYNTHETIC))
@pytest.mark.parametrize("by", sorted(CALIBRATED))
def test_golden_calibration(case, by):
    metric, gold, expected = synthetic(case)
    found = pairwise_accuracy(metric, gold, by=by)
    assert found.value == pytest.approx(expected[f"acc_t/{CALIBRATED[by]}"]["accuracy"], abs=1e-12)
    assert found.epsilon == expected[f"acc_t/{CALIBRATED[by]}"]["epsilon"]  # to the last bit


def test_golden_accuracies_of_raters(shared_golden):
    for name, (metric, gold, expected) in en_de(shared_golden).items():
        if "perm_both" in name:
            continue
        for by, theirs in CALIBRATED.items():
            found = pairwise_accuracy(metric, gold, by=by)
            assert [found.value, found.epsilon] == [
                pytest.approx(expected[f"acc-t/{theirs}"][0], abs=1e-12), expected[f"acc-t/{theirs}"][1],
            ], (name, by)  # fmt: skip
        for by, theirs in BY.items():
            value, _, used = expected[f"acc23_eps0/{theirs}"]
            found = pairwise_accuracy(metric, gold, by=by, epsilon=0)
            assert (found.value, found.groups_used) == (pytest.approx(value, abs=1e-12), used), (name, by)


def test_by_hand():
    # Segment 0, gold 0 0 5, metric 1 1.5 3: differences .5 (tied in gold), 2 and 1.5 (in order).
    # Segment 1, gold 1 2 3, metric 3 1 2: differences 2 and 1 (wrong), 1 (in order).
    metric, gold = [[1, 3], [1.5, 1], [3, 2]], [[0, 1], [0, 2], [5, 3]]
    # epsilon 0: (2/3 + 1/3) / 2; .5: the gold tie is found, (3/3 + 1/3) / 2; from 1 on less.
    assert pairwise_accuracy(metric, gold, epsilon=0).value == pytest.approx(1 / 2)
    assert pairwise_accuracy(metric, gold) == PairwiseAccuracy(pytest.approx(2 / 3), 0.5, 2, 0, 6, 1)
    assert pairwise_accuracy(metric, gold, epsilon=1).value == pytest.approx(1 / 2)


@given(metric=GAPPED, gold=GAPPED, by=GROUPING, epsilon=st.sampled_from([0.0, 0.125, 0.5, 1.0]))
@HALTING
def test_equal_to_counting_pair_by_pair(metric, gold, by, epsilon):
    found = pairwise_accuracy(metric, gold, by=by, epsilon=epsilon)
    assert found.value == pytest.approx(accuracy_slowly(metric, gold, by, epsilon), abs=1e-12, nan_ok=True)


@given(metric=GAPPED, gold=GAPPED, by=GROUPING)
@HALTING
def test_the_threshold_is_the_smallest_of_the_best(metric, gold, by):
    found = pairwise_accuracy(metric, gold, by=by)
    if math.isnan(found.value):
        assert math.isnan(found.epsilon)
        return
    candidates = {step / 8: accuracy_slowly(metric, gold, by, step / 8) for step in range(33)}
    best = max(candidates.values())
    assert found.value == pytest.approx(best, abs=1e-12)
    assert found.epsilon == min(step for step, value in candidates.items() if value >= best - 1e-9)


@given(metric=SCORES, gold=SCORES, order=st.permutations(range(4)), columns=st.permutations(range(5)), by=GROUPING)
@HALTING
def test_the_order_of_systems_and_segments_does_not_matter(metric, gold, order, columns, by):
    moved = pairwise_accuracy(metric[order][:, columns], gold[order][:, columns], by=by)
    found = pairwise_accuracy(metric, gold, by=by)
    assert (moved.value, moved.epsilon) == (pytest.approx(found.value, abs=1e-12), found.epsilon)


@given(metric=SCORES, gold=SCORES, by=GROUPING)
@HALTING
def test_without_a_threshold_it_is_symmetric_and_blind_to_monotone_maps(metric, gold, by):
    value = pairwise_accuracy(metric, gold, by=by, epsilon=0).value
    for other in ((gold, metric), (np.exp(metric), gold), (metric, gold**3)):
        assert pairwise_accuracy(*other, by=by, epsilon=0).value == pytest.approx(value, abs=1e-12)


@given(metric=SCORES, gold=SCORES, by=GROUPING, scale=st.sampled_from([0.25, 2.0, 64.0]))
@HALTING
def test_the_calibrated_one_follows_scale_and_is_never_worse(metric, gold, by, scale):
    found = pairwise_accuracy(metric, gold, by=by)
    scaled = pairwise_accuracy(metric * scale + 1, gold, by=by)
    assert (scaled.value, scaled.epsilon) == (pytest.approx(found.value, abs=1e-12), found.epsilon * scale)
    assert found.value >= pairwise_accuracy(metric, gold, by=by, epsilon=0).value - 1e-12
    assert found.value >= found.gold_ties / found.pairs - 1e-12  # what a threshold beyond all differences gives


@given(gold=SCORES, by=GROUPING)
@HALTING
def test_gold_itself_is_right_and_a_constant_finds_the_gold_ties(gold, by):
    assert pairwise_accuracy(gold, gold, by=by).value == pytest.approx(1)
    assert pairwise_accuracy(gold, gold, by=by).epsilon == 0
    constant = pairwise_accuracy(np.ones_like(gold), gold, by=by)
    assert constant.value == pytest.approx(constant.gold_ties / constant.pairs)


def test_one_threshold_serves_all_groups():
    # Segment 0 would like .5 (its gold is tied), segments 1 and 2 need their .5 apart.
    metric, gold = [[0, 0, 0], [0.5, 0.5, 0.5]], [[1, 1, 1], [1, 2, 2]]
    assert pairwise_accuracy(metric, gold) == PairwiseAccuracy(pytest.approx(2 / 3), 0.0, 3, 0, 3, 1)


def test_groups_count_once_whatever_their_size():
    # Segment 0 has three pairs, all right; segment 1 one pair, wrong.
    metric, gold = [[1, 1], [2, 2], [3, NAN]], [[1, 2], [2, 1], [3, 3]]
    assert pairwise_accuracy(metric, gold, epsilon=0) == PairwiseAccuracy(0.5, 0, 2, 0, 4, 0)


def test_segments_without_two_scores_are_dropped_and_counted():
    found = pairwise_accuracy([[1, 1, 1], [2, NAN, 2]], [[1, 1, NAN], [2, 2, NAN]])
    assert (found.value, found.groups_used, found.groups_dropped) == (1, 1, 2)
    nothing = pairwise_accuracy([[1.0, 2.0]], [[1.0, 2.0]])
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.epsilon)
    assert (nothing.groups_used, nothing.groups_dropped) == (0, 2)


def test_rounded_differences_are_free_of_float_noise():
    # .1 + .2 and .3 are one score; as floats they differ by 6e-17 and so do differences between them.
    noisy, clean = 0.1 + 0.2, 0.3
    metric, gold = [[noisy, 0.0], [clean, 1.0]], [[-clean, 0.0], [-noisy, 1.0]]
    assert pairwise_accuracy(metric, gold, epsilon=0).value == 1  # the noise is in the same order on both sides
    reverse = [[clean, 0.0], [noisy, 1.0]]
    assert pairwise_accuracy(reverse, gold, epsilon=0).value == 0.5
    rounded = pairwise_accuracy(reverse, gold, epsilon=0, decimals=6)
    assert (rounded.value, rounded.gold_ties) == (1, 1)


def test_rounded_thresholds_are_not_split_by_float_noise():
    # Steps of .1 + .2 - .3 size split the distance .2 into .2 and .19999999999999996; rounded they are one candidate.
    metric = [[1.0, 0.0, 0.0], [1.2, 0.2, 5.0]]
    gold = [[0, 0, 0], [0, 0, 1]]
    assert pairwise_accuracy(metric, gold).epsilon == 0.2
    assert pairwise_accuracy([[1.0], [1.2]], [[0], [0]]).epsilon == 1.2 - 1.0 != 0.2
    assert pairwise_accuracy([[1.0], [1.2]], [[0], [0]], decimals=6).epsilon == 0.2


@pytest.mark.parametrize("epsilon", [-0.1, NAN, math.inf])
def test_a_threshold_without_meaning_is_refused(epsilon):
    with pytest.raises(OptionError, match="at least 0, or None"):
        pairwise_accuracy([[1], [2]], [[1], [2]], epsilon=epsilon)


def test_too_many_pairs_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(pairwise, "MOST_PAIRS", 14)
    scores = np.zeros((2, 3))
    with pytest.raises(DataError, match="more than 14 pairs: group by item or by system"):
        pairwise_accuracy(scores, scores, by="none")  # 6 cells, 15 pairs
    assert pairwise_accuracy(scores, scores, by="system").pairs == 6


TENTHS = st.integers(-12, 12).map(lambda number: number / 10)
SPECIAL = [0.0, -0.0, 5e-324, 1e-310, 1e-17, 1.0, 1 + 2**-52, 0.1 + 0.2, 1e300, -1e300, 2.0**-60]
HARD = TENTHS | st.sampled_from(SPECIAL)
DECIMALS = st.sampled_from([None, 1])


def tried_out(metric, gold, decimals):
    """Every candidate on every pair of whole groups, counted in whole numbers."""
    pairs = [
        tuple(side[one] - side[other] if decimals is None else np.round(side[one] - side[other], decimals)
              for side in (x, y))
        for x, y in zip(metric, gold, strict=True) if not math.isnan(y[0])
        for one, other in itertools.combinations(range(len(x)), 2)
    ]  # fmt: skip
    candidates = sorted({0.0, *(abs(apart) for apart, _ in pairs)})
    right = [
        sum((abs(apart) <= epsilon) if wanted == 0 else (abs(apart) > epsilon and apart * wanted > 0)
            for apart, wanted in pairs)
        for epsilon in candidates
    ]  # fmt: skip
    size = gold.shape[1] * (gold.shape[1] - 1) // 2
    return max(right) / size / (len(pairs) // size), candidates[right.index(max(right))]


@given(
    metric=arrays.arrays(float, (5, 4), elements=HARD),
    gold=arrays.arrays(float, (5, 4), elements=st.integers(0, 3).map(float)),
    empty=st.sets(st.integers(0, 3)),
    decimals=DECIMALS,
)
@settings(max_examples=200, deadline=None)
def test_the_same_value_and_threshold_as_trying_all(metric, gold, empty, decimals):
    metric[list(empty)] = gold[list(empty)] = math.nan
    assert GoldPairs(gold, decimals).calibrated(metric) == tried_out(metric, gold, decimals)


@pytest.mark.parametrize("digits", [0, 1, None])
def test_the_same_with_more_thresholds_than_are_looked_at_one_by_one(digits):
    random = np.random.default_rng(4)
    gold = np.round(random.normal(size=(40, 6)))
    metric = gold + random.normal(size=gold.shape)
    metric = metric if digits is None else np.round(metric, digits)
    assert GoldPairs(gold).calibrated(metric) == tried_out(metric, gold, None)


@given(gold=arrays.arrays(float, (4, 5), elements=TENTHS | st.just(math.nan)), decimals=DECIMALS)
def test_gold_has_all_pairs_tied_or_in_its_own_order(gold, decimals):
    pairs = GoldPairs(gold, decimals)
    tied, untied = pairs.distances(gold)
    assert (tied == 0).all()
    assert (untied > 0).all()
    groups = np.concatenate([pairs.tied_groups, pairs.untied_groups])
    assert np.bincount(groups, minlength=4).tolist() == pairs.sizes.tolist()


@given(
    metric=arrays.arrays(float, (4, 5), elements=HARD),
    gold=arrays.arrays(float, (4, 5), elements=TENTHS | st.just(math.nan)),
    decimals=DECIMALS,
)
def test_distances_are_those_of_all_pairs(metric, gold, decimals):
    metric[np.isnan(gold)] = math.nan
    pairs = GoldPairs(gold, decimals)
    expected = []
    for group, (x, y) in enumerate(zip(metric, gold, strict=True)):
        for one, other in itertools.combinations(range(5), 2):
            apart, wanted = x[one] - x[other], y[one] - y[other]
            if decimals is not None:
                apart, wanted = np.round([apart, wanted], decimals)
            if not math.isnan(wanted):
                expected.append((wanted == 0, group, abs(apart) if wanted == 0 else apart * np.sign(wanted)))
    tied, untied = pairs.distances(metric)
    found = [
        *((True, group, apart) for group, apart in zip(pairs.tied_groups, tied, strict=True)),
        *((False, group, apart) for group, apart in zip(pairs.untied_groups, untied, strict=True)),
    ]
    assert sorted(found) == sorted(expected)


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
    assert SegmentAccuracy().pairs_exchanged(*given).test("greater") == perm_pairs(
        FIRST, SECOND, GOLD, resamples=30, seed=4
    )
    assert SegmentAccuracy("none", decimals=1).pairs_exchanged(*given).test("greater") == perm_pairs(
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


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_cell_that_one_of_two_metrics_lacks_takes_no_part_for_either(lacking):
    rng = np.random.default_rng(4)
    first, second, gold = rng.integers(0, 4, (3, 4, 6)).astype(float)
    alone = [first.copy(), second.copy()]
    alone[lacking][1, 2] = NAN
    first[1, 2] = second[1, 2] = gold[1, 2] = NAN
    expected = perm_pairs(first, second, gold, resamples=50)
    assert perm_pairs(*alone, np.where(np.isnan(gold), 2.0, gold), resamples=50) == expected
