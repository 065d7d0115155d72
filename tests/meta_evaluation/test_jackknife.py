"""Intervals of measures: leaving out parts quickly is leaving them out, and what the ends stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import (
    MEASURES,
    SegmentAccuracy,
    SegmentCorrelation,
    SoftSystemAccuracy,
    SystemAccuracy,
    SystemCorrelation,
    measure_interval,
    segment_correlation,
)
from metricsmith.meta_evaluation.jackknife import concordance_by_cell, jackknifed_values
from metricsmith.stats.resampling import correlation_interval
from score_matrices import synthetic

NAN = math.nan
EIGHTHS = st.integers(-12, 12).map(lambda number: number / 8)
GAPPED = arrays.arrays(float, (3, 7), elements=EIGHTHS | st.just(NAN))
PARTS = arrays.arrays(np.int64, 7, elements=st.integers(0, 3))
JACKKNIFED = {
    **{name: measure for name, measure in MEASURES.items() if name not in ("spa", "system-accuracy")},
    "acc-t by system": SegmentAccuracy("system"),
    "acc-t rounded": SegmentAccuracy(decimals=0),
    "acc at .25": SegmentAccuracy(epsilon=0.25),
    "tau-b by system": SegmentCorrelation(by="system"),
}


@pytest.mark.parametrize("name", JACKKNIFED)
@example(metric=np.full((3, 7), NAN), gold=np.full((3, 7), NAN), parts=np.arange(7))
@example(metric=np.eye(3, 7), gold=np.where(np.eye(3, 7, 1), NAN, 1.0), parts=np.array([0, 0, 0, 1, 1, 2, 2]))
@given(metric=GAPPED, gold=GAPPED, parts=PARTS)
@settings(max_examples=40, deadline=None)
def test_without_a_part_is_the_measure_of_the_rest(name, metric, gold, parts):
    measure = JACKKNIFED[name]
    gold = np.where(np.isnan(metric), NAN, gold)
    metric = np.where(np.isnan(gold), NAN, metric)
    if getattr(measure, "whole_segments", False):
        whole = ~np.isnan(gold).any(axis=0)
        metric, gold, parts = metric[:, whole], gold[:, whole], parts[whole]
    parts = np.unique(parts, return_inverse=True)[1]
    if not parts.size:
        return
    expected = jackknifed_values(measure, metric, gold, parts)
    np.testing.assert_allclose(measure.left_out(metric, gold, parts), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("correlation", ["pearson", "spearman", "kendall_tau_b"])
def test_system_means_that_differ_by_rounding_alone_have_no_correlation(correlation):
    measure = SystemCorrelation(correlation)
    metric = np.array([[0.1, 0.2, 0.3, 1], [0.3, 0.2, 0.1, 2], [0.2, 0.2, 0.2, 3]])
    gold = np.array([[1.0, 2, 3, 4], [3, 4, 5, 6], [5, 6, 7, 9]])
    assert math.isnan(measure(metric[:, :3], gold[:, :3]))
    assert np.isnan(measure.left_out(metric, gold, np.array([0, 0, 0, 1]))).tolist() == [False, True]
    assert np.isnan(measure.left_out(metric[:, :3], gold[:, :3], np.arange(3))).tolist() == [False, True, False]


def test_a_part_takes_its_pairs_from_the_threshold_that_they_stand_at():
    # Both metric differences are .5. Segment 0 is tied in gold and wants that threshold, segment 1 is in order and
    # loses by it. Without 1 it is found, without 0 it is not wanted.
    metric, gold = np.array([[0, 0], [0.5, 0.5]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    assert SegmentAccuracy().left_out(metric, gold, np.array([0, 1])).tolist() == [1, 1]


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_concordance_of_each_cell_is_counted_pair_by_pair(pairs):
    x, y = (np.unique(side, return_inverse=True)[1] for side in np.array(pairs, dtype=int).reshape(-1, 2).T)
    expected = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1)
    np.testing.assert_array_equal(concordance_by_cell(x, y), expected)


def test_soft_accuracy_without_a_part_is_the_limit_of_many_draws():
    random = np.random.default_rng(3)
    gold = random.normal(size=(4, 60)) + np.linspace(0, 0.5, 4)[:, None]
    metric = gold + random.normal(size=(4, 60))
    parts = np.arange(60) % 5
    found = SoftSystemAccuracy().left_out(metric, gold, parts)
    drawn = jackknifed_values(SoftSystemAccuracy(draws=40_000), metric, gold, parts)
    np.testing.assert_allclose(found, drawn, atol=0.006)  # Monte Carlo, and 48 segments for infinitely many
    constant = np.ones_like(metric)
    for ties in ("half", "full"):
        few = SoftSystemAccuracy(40_000, ties=ties)
        np.testing.assert_allclose(
            few.left_out(constant, gold, parts), jackknifed_values(few, constant, gold, parts), atol=0.006
        )


def test_pooled_correlations_have_the_interval_of_rows_in_groups():
    metric, gold, _ = synthetic("missing")
    documents = [f"document {segment // 3}" for segment in range(gold.shape[1])]
    rows = documents * len(gold)
    for name in ("tau-b", "pearson", "spearman"):
        measure = MEASURES[name]
        found = measure_interval(measure, metric, gold, documents)
        plain = correlation_interval(
            lambda x, y, kind=measure.correlation: segment_correlation([x], [y], correlation=kind).value,
            metric.ravel(), gold.ravel(), rows,
        )  # fmt: skip
        assert (found.low, found.high) == (pytest.approx(plain.low, abs=1e-10), pytest.approx(plain.high, abs=1e-10))
        assert (found.draws, found.level) == (plain.draws, 0.95)


def test_by_hand():
    # Two systems; accuracies of the segments at 0: 1 0 1 1, mean .75. Without each: 2/3, 1, 2/3, 2/3, variance 1/48,
    # so that the squared error is 3/48; t of three degrees of freedom is 3.182446.
    metric, gold = [[1, 1, 1, 1], [2, 2, 2, 2]], [[0, 0, 0, 0], [1, -1, 1, 1]]
    half = 3.182446305284263 * math.sqrt(3 / 48)
    plain = measure_interval(lambda m, g: SegmentAccuracy(epsilon=0)(m, g), metric, gold)
    assert (plain.low, plain.high) == (pytest.approx(0.75 - half), pytest.approx(0.75 + half))
    # In log odds: log 3, the error over .75 * .25.
    scaled = measure_interval(SegmentAccuracy(epsilon=0), metric, gold)
    for end, sign in ((scaled.low, -1), (scaled.high, 1)):
        assert math.log(end / (1 - end)) == pytest.approx(math.log(3) + sign * half / (0.75 * 0.25))
    asked = measure_interval(lambda m, g: SegmentAccuracy(epsilon=0)(m, g), metric, gold, bounds=(0, 1))
    assert (asked.low, asked.high) == (pytest.approx(scaled.low), pytest.approx(scaled.high))


def test_system_accuracy_is_drawn_again():
    # Segment differences of two systems: gold 1 throughout, metric 1 or -3 in one of four; the order turns where the
    # odd one is drawn twice or more of four times, and ties (not the gold order) where it is drawn once.
    metric, gold = [[1, 1, 1, -3], [0, 0, 0, 0]], [[1, 1, 1, 1], [0, 0, 0, 0]]
    times = np.array([[1, 1, 1, 1], [2, 1, 1, 0], [1, 1, 0, 2], [4, 0, 0, 0]])
    arrays_ = np.array(metric, float), np.array(gold, float)
    assert SystemAccuracy().redrawn(*arrays_, np.arange(4), times).tolist() == [0, 1, 0, 1]
    assert SystemAccuracy().redrawn(*arrays_, np.array([0, 0, 1, 1]), np.array([[2, 0], [0, 2]])).tolist() == [1, 0]
    twice = [np.tile(side, (2, 1)) for side in arrays_]
    assert SystemAccuracy((2, 2)).redrawn(*twice, np.arange(4), times).tolist() == [0, 1, 0, 1]
    assert np.isnan(SystemAccuracy((1, 1)).redrawn(*arrays_, np.arange(4), times)).all()
    found = measure_interval(SystemAccuracy(), metric, gold, resamples=50, seed=1)
    assert (found.low, found.high, found.draws) == (0, 1, 50)
    assert found == measure_interval(SystemAccuracy(), metric, gold, resamples=50, seed=1)
    # Without the odd one, (3/4)^4 = .32 of draws, the value is 1, else 0: so are the middle 20 % of draws.
    narrow = measure_interval(SystemAccuracy(), metric, gold, level=0.2, resamples=50, seed=1)
    assert (narrow.low, narrow.high, narrow.level) == (0, 0, 0.2)
    few = {measure_interval(SystemAccuracy(), metric, gold, resamples=2, seed=seed) for seed in range(9)}
    assert len(few) > 1


TENTHS = st.integers(-9, 9).map(lambda number: number / 10)


@given(
    scores=arrays.arrays(float, (2, 4, 5), elements=TENTHS),
    parts=st.permutations([0, 0, 1, 2, 2]),
    times=st.sampled_from([(1, 1, 1), (0, 2, 1), (3, 0, 0), (0, 1, 2)]),
)
def test_system_accuracy_of_parts_drawn_so_many_times_is_that_of_their_segments(scores, parts, times):
    drawn = [segment for segment, part in enumerate(parts) for _ in range(times[part])]
    found = SystemAccuracy().redrawn(*scores, np.array(parts), np.array([times]))
    assert found[0] == pytest.approx(SystemAccuracy()(*scores[:, :, drawn]).value, abs=1e-12)


@pytest.mark.parametrize("name", ["spa", "system-accuracy", "system-pearson"])
def test_measures_of_systems_rest_on_whole_segments(name):
    random = np.random.default_rng(6)
    gold = random.normal(size=(4, 20))
    metric = gold + random.normal(size=gold.shape)
    documents = np.arange(20) // 2
    gapped = metric.copy()
    gapped[0, 2:5] = NAN  # all of document 1, half of document 2
    whole = ~np.isnan(gapped[0])
    found = measure_interval(MEASURES[name], gapped, gold, documents)
    assert found == measure_interval(MEASURES[name], metric[:, whole], gold[:, whole], documents[whole])
    assert found.draws == (1000 if name == "system-accuracy" else 9)
    few = measure_interval(MEASURES[name], metric[:, :6], gold[:, :6], documents[:6] // 2)
    assert math.isnan(few.low)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_all_measures_have_intervals_around_their_value(name):
    metric, gold, _ = synthetic("missing")
    measure = MEASURES[name]
    found = measure(metric, gold)
    interval = measure_interval(measure, metric, gold)
    assert interval.low <= getattr(found, "value", found) <= interval.high
    assert interval.low < interval.high
    low, high = measure.bounds
    assert low <= interval.low <= interval.high <= high
    grouped = measure_interval(measure, metric, gold, np.arange(gold.shape[1]) // 2, level=0.5)
    assert grouped.high - grouped.low < interval.high - interval.low
    if name != "system-accuracy":
        whole = getattr(measure, "whole_segments", False)
        present = ~np.isnan(metric * gold)
        assert interval.draws == np.count_nonzero(present.all(axis=0) if whole else present.any(axis=0))


def test_what_has_no_interval():
    metric, gold = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2)
    few = measure_interval(MEASURES["pearson"], metric, gold)
    assert math.isnan(few.low)
    assert few.draws == 0
    # Without segment 0 the rest is constant.
    rest = measure_interval(MEASURES["pearson"], [[1, 5, 5, 5], [2, 5, 5, 5]], np.arange(8).reshape(2, 4))
    assert (math.isnan(rest.high), rest.draws, rest.undefined) == (True, 3, 1)
    perfect = np.random.default_rng(0).normal(size=(3, 9))
    same = measure_interval(MEASURES["acc-t"], perfect, perfect)
    assert (same.low, same.high) == (1, 1)
    nothing = np.full((3, 4), NAN)
    assert all(math.isnan(measure_interval(measure, nothing, nothing).low) for measure in MEASURES.values())


def test_more_than_a_thousand_groups_are_left_out_several_at_a_time():
    random = np.random.default_rng(0)
    gold = random.normal(size=(2, 1003))
    metric = gold + random.normal(size=gold.shape)
    found = measure_interval(MEASURES["acc"], metric, gold)
    paired = measure_interval(MEASURES["acc"], metric, gold, np.arange(1003) % 1000)
    assert found == paired
    assert found.draws == 1000


def test_wrong_requests_are_refused():
    scores = np.arange(12.0).reshape(3, 4)
    with pytest.raises(DataError, match="3 groups for 4 segments: give one group label per segment"):
        measure_interval(MEASURES["acc-t"], scores, scores, ["a", "b", "c"])
    with pytest.raises(DataError, match="no group"):
        measure_interval(MEASURES["acc-t"], scores, scores, ["a", "b", "c", None])
    with pytest.raises(OptionError, match="level 2"):
        measure_interval(MEASURES["acc-t"], scores, scores, level=2)
    with pytest.raises(OptionError, match=r"bounds \(1, 0\) are not in order"):
        measure_interval(MEASURES["acc-t"], scores, scores[::-1], bounds=(1, 0))
    with pytest.raises(OptionError, match="at least 1"):
        measure_interval(MEASURES["system-accuracy"], scores, scores, resamples=0)
