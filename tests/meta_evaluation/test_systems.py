"""Pairs of systems, hard and soft: the public tool's numbers, exact enumerations, and what must always hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import (
    SystemPairwiseAccuracy,
    soft_pairwise_accuracy,
    system_p_values,
    system_pairwise_accuracy,
)
from score_matrices import SYNTHETIC, en_de, synthetic

NAN = math.nan
COMPLETE = sorted(case for case in SYNTHETIC if "soft_pairwise_accuracy" in SYNTHETIC[case]["expected"])
EIGHTHS = st.integers(-16, 16).map(lambda number: number / 8)
SCORES = arrays.arrays(float, (4, 6), elements=EIGHTHS)


def tool_signs(segments):
    """The sign vectors that mt-metrics-eval draws: seed 4, single precision."""
    drawn = np.random.default_rng(4).random((1000, segments), dtype=np.float32)
    return np.rint(drawn) * 2.0 - 1.0


def tool_spa(metric, gold):
    signs = tool_signs(gold.shape[1])
    gap = system_p_values(gold, signs, ties="full") - system_p_values(metric, signs, ties="full")
    return 1 - np.nanmean(np.abs(gap))


def all_signs(segments):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=segments)))


# System pairs


@pytest.mark.parametrize("case", COMPLETE)
def test_golden_system_pairs(case):
    metric, gold, expected = synthetic(case)
    found = system_pairwise_accuracy(metric, gold)
    assert found.value == pytest.approx(expected["system_pairwise_accuracy"], abs=1e-12)
    assert (found.segments, found.segments_dropped) == (gold.shape[1], 0)


def test_system_pairs_by_hand():
    # Means of the complete segments 0 and 1: metric 1, 2, 3, 3; gold 1, 2, 2, 2. Pairs with the first are right,
    # (1, 2) and (1, 3) are tied in gold only, (2, 3) is tied on both sides.
    metric = [[1, 1, 9], [2, 2, 0], [3, 3, 0], [2, 4, 0]]
    gold = [[1, 1, NAN], [2, 2, 0], [3, 1, 0], [2, 2, 0]]
    assert system_pairwise_accuracy(metric, gold) == SystemPairwiseAccuracy(4 / 6, 4, 6, 2, 1)


def test_system_scores_are_a_matrix_with_one_column():
    assert system_pairwise_accuracy([[1], [2], [3]], [[1], [3], [2]]).value == pytest.approx(2 / 3)


def test_system_pairs_of_language_pairs_are_added_up_and_none_crosses_them():
    # Three systems, of whose pairs the metric has one the other way round, and two that it ties: 2 of 3 + 0 of 1. The
    # metric's level in the second language pair would decide pairs across.
    metric, gold = [[3], [1], [2], [9], [9]], [[3], [2], [1], [2], [1]]
    found = system_pairwise_accuracy(metric, gold, sizes=(3, 2))
    assert (found.agreeing, found.pairs, found.value) == (2, 4, 0.5)
    parts = [system_pairwise_accuracy(metric[rows], gold[rows]) for rows in (slice(3), slice(3, 5))]
    assert sum(part.agreeing for part in parts) / sum(part.pairs for part in parts) == found.value
    assert system_pairwise_accuracy(metric, gold, sizes=(5,)) == system_pairwise_accuracy(metric, gold)
    assert math.isnan(system_pairwise_accuracy(metric, gold, sizes=(1,) * 5).value)
    with pytest.raises(DataError, match="language pairs of 3, 3 systems are not 5"):
        system_pairwise_accuracy(metric, gold, sizes=(3, 3))


def test_means_that_differ_by_rounding_alone_are_tied():
    assert sum([0.1, 0.2, 0.3]) != sum([0.3, 0.2, 0.1])
    scores = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]
    assert system_pairwise_accuracy(scores, [[1, 1, 1], [1, 1, 1]]).value == 1
    assert system_pairwise_accuracy(scores, [[1, 1, 1], [1, 1, 1.001]]).value == 0


@given(metric=SCORES, gold=SCORES, order=st.permutations(range(4)))
@settings(max_examples=50, deadline=None)
def test_system_pairs_are_symmetric_and_blind_to_order_and_scale(metric, gold, order):
    value = system_pairwise_accuracy(metric, gold).value
    assert system_pairwise_accuracy(gold, metric).value == value
    assert system_pairwise_accuracy(metric[order], gold[order]).value == value
    assert system_pairwise_accuracy(metric * 4 - 2, gold).value == value
    assert system_pairwise_accuracy(gold, gold).value == 1


# Soft pairwise accuracy


@pytest.mark.parametrize("case", COMPLETE)
def test_golden_soft_accuracy(case):
    metric, gold, expected = synthetic(case)
    golden = expected["soft_pairwise_accuracy"]
    assert tool_spa(metric, gold) == pytest.approx(golden, abs=1e-12)  # its draws, its ties: its very number
    found = soft_pairwise_accuracy(metric, gold, ties="full")
    assert abs(found.value - golden) < 4 * math.hypot(found.error, found.error)  # both are Monte Carlo
    assert abs(soft_pairwise_accuracy(metric, gold).value - golden) < 4 * math.hypot(found.error, found.error)


def test_golden_soft_and_hard_accuracies_of_raters(shared_golden):
    for name, (metric, gold, expected) in en_de(shared_golden).items():
        if "pce" not in expected:
            continue
        # Their single precision lets float noise decide some ties of sums of tenths.
        assert tool_spa(metric, gold) == pytest.approx(expected["pce"], abs=5e-4), name
        found = soft_pairwise_accuracy(metric, gold)
        assert abs(found.value - expected["pce"]) < 4 * math.hypot(found.error, found.error), name
        hard = system_pairwise_accuracy(metric, gold)
        assert hard.value == pytest.approx(expected["sys_pairwise_accuracy"], abs=1e-12), name


def test_p_values_by_hand():
    # Differences of the two systems, 2 and 1: sums 3, 1, -1, -3 over all signs; observed 3, reached by one in four.
    p = system_p_values([[2, 1], [0, 0]], all_signs(2), ties="full")
    assert p[0, 1] == 1 / 4
    assert system_p_values([[0, 0], [2, 1]], all_signs(2), ties="full")[0, 1] == 1  # -3 is reached by all
    assert system_p_values([[2, 1], [0, 0]], all_signs(2))[0, 1] == 1 / 8
    assert np.isnan(p[np.tril_indices(2)]).all()


def test_draws_approach_the_enumeration():
    random = np.random.default_rng(5)
    metric, gold = random.normal(size=(2, 3, 8))
    gap = system_p_values(gold, all_signs(8)) - system_p_values(metric, all_signs(8))
    found = soft_pairwise_accuracy(metric, gold, draws=20_000)
    assert abs(found.value - (1 - np.nanmean(np.abs(gap)))) < 4 * found.error
    assert found.error < 0.01


def test_the_error_is_the_spread_over_seeds():
    random = np.random.default_rng(3)
    gold = random.normal(size=(5, 60)) + np.arange(5)[:, None] / 8
    metric = gold + random.normal(size=gold.shape)
    found = [soft_pairwise_accuracy(metric, gold, draws=400, seed=seed) for seed in range(60)]
    spread = np.std([one.value for one in found], ddof=1)
    assert 0.7 < np.mean([one.error for one in found]) / spread < 1.4


def test_the_error_is_that_of_the_jackknife_over_twenty_blocks():
    random = np.random.default_rng(3)
    metric, gold = random.normal(size=(2, 4, 9))
    signs = np.where(np.random.default_rng(7).random((20, 9)) < 0.5, -1.0, 1.0)  # one draw a block
    left_out = []
    for draw in range(20):
        gap = [system_p_values(scores, np.delete(signs, draw, axis=0)) for scores in (metric, gold)]
        left_out.append(1 - np.nanmean(np.abs(gap[0] - gap[1])))
    found = soft_pairwise_accuracy(metric, gold, draws=20, seed=7)
    assert found.error == pytest.approx(math.sqrt(19 * np.var(left_out)), rel=1e-9)


@given(metric=SCORES, gold=SCORES, order=st.permutations(range(4)))
@settings(max_examples=50, deadline=None)
def test_soft_accuracy_is_symmetric_and_blind_to_the_order_of_systems_ties_included(metric, gold, order):
    value = soft_pairwise_accuracy(metric, gold, draws=50).value
    assert 0 <= value <= 1
    assert soft_pairwise_accuracy(gold, metric, draws=50).value == pytest.approx(value, abs=1e-12)
    assert soft_pairwise_accuracy(metric[order], gold[order], draws=50).value == pytest.approx(value, abs=1e-12)
    assert soft_pairwise_accuracy(metric * 8, gold, draws=50).value == pytest.approx(value, abs=1e-12)
    assert soft_pairwise_accuracy(gold, gold, draws=50).value == 1


def test_a_constant_metric_is_undecided_and_under_the_tools_rule_depends_on_the_order():
    # Gold is sure: every system beats the next in each of ten segments, p about 2 ** -10.
    gold = np.tile([[3.0], [2.0], [1.0]], 10)
    constant = np.ones_like(gold)
    assert soft_pairwise_accuracy(constant, gold).value == pytest.approx(0.5, abs=0.01)
    assert soft_pairwise_accuracy(constant, gold, ties="full").value == pytest.approx(0, abs=0.01)
    assert soft_pairwise_accuracy(constant, gold[::-1], ties="full").value == 1


def test_a_segment_without_gold_is_dropped_for_all_systems():
    metric, gold, _ = synthetic("continuous")
    holes = gold.copy()
    holes[2, [1, 7]] = NAN
    holes[4, 7] = NAN
    kept = np.setdiff1d(np.arange(gold.shape[1]), [1, 7])
    found = soft_pairwise_accuracy(metric, holes)
    assert found == soft_pairwise_accuracy(metric[:, kept], gold[:, kept]).__class__(
        found.value, found.error, 15, len(kept), 2
    )
    assert found.value == soft_pairwise_accuracy(metric[:, kept], gold[:, kept]).value


def test_what_has_no_pairs_has_no_accuracy():
    for found in (soft_pairwise_accuracy([[1, 2]], [[1, 2]]), soft_pairwise_accuracy([[NAN], [1]], [[1], [2]])):
        assert math.isnan(found.value)
        assert found.pairs == 0
    assert math.isnan(system_pairwise_accuracy([[NAN], [1]], [[1], [2]]).value)
    assert system_pairwise_accuracy([[NAN], [1]], [[1], [2]]).segments_dropped == 1


def test_seeds_decide_and_few_draws_have_no_error():
    metric, gold, _ = synthetic("continuous")
    assert soft_pairwise_accuracy(metric, gold) == soft_pairwise_accuracy(metric, gold)
    assert soft_pairwise_accuracy(metric, gold, seed=1).value != soft_pairwise_accuracy(metric, gold).value
    assert math.isnan(soft_pairwise_accuracy(metric, gold, draws=19).error)
    assert soft_pairwise_accuracy(metric, gold, draws=20).error > 0


def test_wrong_options_and_scores_are_refused():
    with pytest.raises(OptionError, match="0 draws: at least 1"):
        soft_pairwise_accuracy([[1], [2]], [[1], [2]], draws=0)
    with pytest.raises(OptionError, match="ties='mid'; allowed are half and full"):
        soft_pairwise_accuracy([[1], [2]], [[1], [2]], ties="mid")
    with pytest.raises(DataError, match="a score is missing"):
        system_p_values([[1, NAN], [2, 3]], [[1, 1]])
    with pytest.raises(DataError, match=r"\(1, 1\) do not match 2 segments"):
        system_p_values([[1, 1], [2, 3]], [[1]])
