"""Correlations inside groups against the public tool's numbers, and score matrices that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import CORRELATIONS, complete_segments, segment_correlation, system_means
from metricsmith.stats.correlation import GroupedCorrelation, grouped_correlation, kendall_tau_b, pearson
from score_matrices import BY, SYNTHETIC, en_de, synthetic

NAN = math.nan
COLUMNS = {"kendall_tau_b": "kendall_b", "pearson": "pearson", "spearman": "spearman"}  # names in mt_ende.json
SCORES = arrays.arrays(float, (4, 5), elements=st.integers(-3, 3).map(float))


@pytest.mark.parametrize("case", sorted(SYNTHETIC))
@pytest.mark.parametrize("correlation", sorted(CORRELATIONS))
@pytest.mark.parametrize("by", sorted(BY))
def test_golden_correlations(case, correlation, by):
    metric, gold, expected = synthetic(case)
    value, _, used = expected[f"{correlation}/{BY[by]}"]
    found = segment_correlation(metric, gold, correlation=correlation, by=by)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.groups_used == used
    assert found.groups_used + found.groups_dropped == {"none": 1, "item": gold.shape[1], "system": len(gold)}[by]


@pytest.mark.parametrize("correlation", sorted(COLUMNS))
@pytest.mark.parametrize("by", sorted(BY))
def test_golden_correlations_of_raters(shared_golden, correlation, by):
    for name, (metric, gold, expected) in en_de(shared_golden).items():
        if "perm_both" not in name:
            value, _, used = expected[f"{COLUMNS[correlation]}/{BY[by]}"]
            found = segment_correlation(metric, gold, correlation=correlation, by=by)
            assert (found.value, found.groups_used) == (pytest.approx(value, abs=1e-12), used), name


def test_golden_system_means(shared_golden):
    metric, gold, expected = en_de(shared_golden)["ende/wmt/gold0_metric1"]
    means = system_means(metric, gold)
    np.testing.assert_allclose(means[0], expected["sys_metric_means"], rtol=1e-11)
    np.testing.assert_allclose(means[1], expected["sys_gold_means"], rtol=1e-11)
    assert pearson(*means) == pytest.approx(expected["sys_pearson"], abs=1e-12)
    assert kendall_tau_b(*means) == pytest.approx(expected["sys_kendall"], abs=1e-12)


@given(metric=SCORES, gold=SCORES, missing=arrays.arrays(bool, (4, 5)), by=st.sampled_from(sorted(BY)))
@settings(max_examples=60, deadline=None)
def test_equal_to_the_correlation_of_each_group(metric, gold, missing, by):
    gold = np.where(missing, NAN, gold)
    labels = {
        "none": np.zeros((4, 5)), "item": np.tile(np.arange(5), (4, 1)), "system": np.tile(np.arange(4)[:, None], 5),
    }[by]  # fmt: skip
    expected = grouped_correlation(kendall_tau_b, metric.ravel(), gold.ravel(), labels.ravel().tolist())
    found = segment_correlation(metric, gold, by=by)
    assert (found.groups_used, found.groups_dropped) == (expected.groups_used, expected.groups_dropped)
    assert found.value == pytest.approx(expected.value, abs=1e-12, nan_ok=True)


@given(metric=SCORES, gold=SCORES, order=st.permutations(range(4)), by=st.sampled_from(sorted(BY)))
@settings(max_examples=40, deadline=None)
def test_symmetric_and_blind_to_the_order_of_systems_and_to_monotone_maps(metric, gold, order, by):
    found = segment_correlation(metric, gold, by=by)
    for other in (
        segment_correlation(gold, metric, by=by),
        segment_correlation(metric[order], gold[order], by=by),
        segment_correlation(np.exp(metric), gold, by=by),
    ):
        assert other.value == pytest.approx(found.value, abs=1e-12, nan_ok=True)
        assert other.groups_used == found.groups_used


def test_a_group_that_is_constant_or_too_small_is_dropped_and_counted():
    # Segment 0: same order; 1: constant metric; 2: one cell; 3: nothing.
    metric = [[1, 5, 2, 0], [2, 5, 3, 0]]
    gold = [[1, 1, 0, NAN], [2, 2, NAN, NAN]]
    assert segment_correlation(metric, gold, by="item") == GroupedCorrelation(1.0, 1, 3)
    assert math.isnan(segment_correlation([[1, 1]], [[1, 2]]).value)


@pytest.mark.parametrize("correlation", sorted(CORRELATIONS))
@pytest.mark.parametrize(("by", "groups"), [("none", 1), ("item", 0), ("system", 3)])
def test_no_segments_have_no_correlation(correlation, by, groups):
    found = segment_correlation(np.empty((3, 0)), np.empty((3, 0)), correlation=correlation, by=by)
    assert math.isnan(found.value)
    assert (found.groups_used, found.groups_dropped) == (0, groups)


def test_a_missing_metric_score_is_left_out_and_never_zero():
    assert segment_correlation([[1, 2, 3, None]], [[1, 2, 3, -100]]).value == 1
    assert segment_correlation([[1, 2, 3, 0]], [[1, 2, 3, -100]]).value == 1  # 0 is a score like any other
    assert segment_correlation([[1, 2, 3, 9]], [[1, 2, 3, -100]]).value == 0


def test_equal_system_means_are_equal():
    tenths = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
    assert len(set(tenths.mean(axis=1).tolist())) > 1
    for scale in (1, 1e-300, -1e300):
        assert len(set(system_means(tenths * scale, tenths)[0].tolist())) == 1
    means = system_means(tenths + np.array([[0], [1e-9], [0]]), tenths)[0]
    assert means.tolist() == pytest.approx([0.2, 0.2 + 1e-9, 0.2], abs=1e-12)
    assert means[1] > means[0] == means[2]


def test_system_means_rest_on_the_segments_that_all_systems_have():
    # Over all cells the first system's gold mean would be -4 and the second's -2.
    metric, gold = [[1, 2, 3], [4, 5, 6]], [[-1, -1, -10], [-2, -2, NAN]]
    assert [side.tolist() for side in system_means(metric, gold)] == [[1.5, 4.5], [-1, -2]]
    assert [side.tolist() for side in complete_segments(metric, gold)] == [[[1, 2], [4, 5]], [[-1, -1], [-2, -2]]]
    assert np.isnan(system_means([[NAN]], [[1]])).all()


def test_the_scores_given_stay_untouched():
    metric, gold = np.array([[1.0, 2.0]]), np.array([[NAN, 1.0]])
    segment_correlation(metric, gold)
    assert metric[0, 0] == 1


@pytest.mark.parametrize(
    ("metric", "gold", "message"),
    [
        ([[1, 2]], [[1], [2]], r"\(1, 2\) do not match gold scores of shape \(2, 1\)"),
        ([1, 2], [1, 2], "two matrices"),
        ([[1, math.inf]], [[1, 2]], "infinite"),
        ([["good"]], [[1]], "must be numbers"),
    ],
)
def test_what_are_no_two_matrices_is_refused(metric, gold, message):
    with pytest.raises(DataError, match=message):
        segment_correlation(metric, gold)


def test_unknown_options_are_refused_with_the_nearest_name():
    with pytest.raises(OptionError, match="did you mean 'kendall_tau_b'"):
        segment_correlation([[1, 2]], [[1, 2]], correlation="kendall_tau")
    with pytest.raises(OptionError, match=r"unknown grouping 'sys'.*known are none, item, system"):
        segment_correlation([[1, 2]], [[1, 2]], by="sys")
