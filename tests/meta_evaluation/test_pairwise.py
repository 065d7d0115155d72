"""Pairwise accuracy and acc-t: the public tool's numbers, slow counts, and what must hold for any scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import PairwiseAccuracy, pairs, pairwise_accuracy
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
    monkeypatch.setattr(pairs, "MOST_PAIRS", 14)
    scores = np.zeros((2, 3))
    with pytest.raises(DataError, match="more than 14 pairs: group by item or by system"):
        pairwise_accuracy(scores, scores, by="none")  # 6 cells, 15 pairs
    assert pairwise_accuracy(scores, scores, by="system").pairs == 6
