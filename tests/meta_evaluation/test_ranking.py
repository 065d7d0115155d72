"""Rank tables with significance clusters, and averages over tasks as the paper's tables have them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import (
    SegmentAccuracy,
    SegmentCorrelation,
    TaskAverage,
    average_over_tasks,
    pairwise_accuracy,
    perm_both,
    perm_pairs,
    rank_table,
    segment_correlation,
)
from metricsmith.meta_evaluation.ranking import FEW_METRICS, clusters
from score_matrices import synthetic

NAN = math.nan
pearson = SegmentCorrelation("pearson")
# GEMBA-MQM V2, Table 3 (WMT23 by the rules of WMT24): average; system and segment level of three language pairs.
TABLE_3 = {
    "gembav2-gpt-4.1-mini-rrwa": (0.760, [0.977, 0.597, 0.948, 0.566, 0.920, 0.549]),
    "GEMBA-MQM": (0.754, [0.982, 0.572, 0.947, 0.563, 0.937, 0.522]),
    "MetricX-23-QE-b": (0.753, [0.961, 0.606, 0.939, 0.576, 0.896, 0.539]),
    "XCOMET-Ensemble": (0.751, [0.939, 0.604, 0.936, 0.584, 0.901, 0.543]),
    "MetricX-23-QE-c": (0.750, [0.946, 0.581, 0.930, 0.572, 0.927, 0.545]),
    "XCOMET-XXL": (0.749, [0.938, 0.603, 0.940, 0.575, 0.900, 0.541]),
}


def test_the_averages_and_places_of_the_paper():
    tasks = {str(task): {name: values[task] for name, (_, values) in TABLE_3.items()} for task in range(6)}
    found = average_over_tasks(tasks)
    assert list(found) == list(TABLE_3)
    assert [one.rank for one in found.values()] == [1, 2, 3, 4, 5, 6]
    for name, (average, _) in TABLE_3.items():
        assert found[name].value == pytest.approx(average, abs=7e-4)  # of values with three digits


def test_weights_and_ranks_are_averaged_too():
    tasks = {"a": {"x": 1.0, "y": 0.0, "z": 0.0}, "b": {"x": 0.0, "y": 1.0, "z": 1.0}}
    weighted = average_over_tasks(tasks, weights={"a": 1, "b": 3})
    assert weighted == {"y": TaskAverage(0.75, 1), "z": TaskAverage(0.75, 1), "x": TaskAverage(0.25, 3)}
    ranks = average_over_tasks({"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}, higher_is_better=False)
    assert ranks == {"x": TaskAverage(1, 1), "y": TaskAverage(2.5, 2)}


@pytest.mark.parametrize(
    ("tasks", "weights", "error", "message"),
    [
        ({}, None, DataError, "no tasks"),
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, None, DataError, "a has no value for y"),
        ({"a": {"x": 1.0, "y": NAN}}, None, DataError, "a has no value for y"),
        ({"a": {"x": 1.0}}, {"b": 1}, OptionError, "one number above 0 for each of a"),
        ({"a": {"x": 1.0}}, {"a": 0}, OptionError, "above 0"),
    ],
)
def test_averages_that_cannot_be_taken_are_refused(tasks, weights, error, message):
    with pytest.raises(error, match=message):
        average_over_tasks(tasks, weights=weights)


@pytest.mark.parametrize(
    ("significant", "ranks"),
    [
        ([], [1, 1, 1, 1]),
        ([(0, 1), (1, 2), (2, 3)], [1, 2, 3, 4]),
        ([(0, 3)], [1, 1, 1, 2]),
        # 0 beats 2, which opens a cluster; that 1 beats 3 is then the affair of another cluster.
        ([(0, 2), (1, 3)], [1, 1, 2, 2]),
        ([(0, 1), (0, 2), (0, 3)], [1, 2, 2, 2]),
    ],
)
def testclusters_by_hand(significant, ranks):
    def p_value(*pair):
        return 0.05 if pair in significant else 0.06  # the level itself is significant

    p_values, found = clusters(4, p_value, 0.05, every=True)
    assert found == ranks
    assert np.count_nonzero(np.isnan(p_values)) == 10  # on and below the diagonal
    p_values, found = clusters(4, p_value, 0.05, every=False)
    assert found == ranks


def test_only_tests_that_decide_a_cluster_are_made():
    # 0 beats 2, which opens a cluster: 1 is not held against 2, nor 0 or 1 against 3. 2 beats 3.
    told = []
    p_values, ranks = clusters(
        4, lambda *pair: 0.01 if pair in [(0, 2), (2, 3)] else 0.5, 0.05, every=False, tested=lambda *n: told.append(n)
    )
    assert ranks == [1, 1, 2, 3]
    assert sorted(zip(*np.nonzero(~np.isnan(p_values)), strict=True)) == [(0, 1), (0, 2), (2, 3)]
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_table_ranks_by_value_and_tells_apart_what_differs():
    metric, gold, _ = synthetic("continuous")
    random = np.random.default_rng(4)
    noise = random.normal(size=gold.shape)
    metrics = {"noise": noise, "good": metric, "twin": metric + random.normal(size=gold.shape) * 1e-6}
    table = rank_table(segment_correlation, metrics, gold, resamples=60)
    assert list(table.values)[2] == "noise"
    assert table.ranks == {**dict.fromkeys(list(table.values)[:2], 1), "noise": 2}
    assert table.values["good"] == segment_correlation(metric, gold).value
    first, second = list(table.values)[:2]
    expected = perm_both(segment_correlation, metrics[first], metrics[second], gold, resamples=60).p_value
    assert table.p_values[0, 1] == expected > 0.05
    assert (table.p_values[:2, 2] == 1 / 61).all()
    assert np.isnan(table.p_values[np.tril_indices(3)]).all()
    assert (table.cells, table.missing) == (gold.size, 0)


def test_all_metrics_are_measured_on_the_same_cells():
    metric, gold, _ = synthetic("missing")
    holes = metric.copy()
    holes[0, :12] = NAN
    table = rank_table(pairwise_accuracy, {"holes": holes, "whole": metric}, gold, resamples=5)
    assert table.values["whole"] == table.values["holes"] == pairwise_accuracy(holes, gold).value
    assert table.cells + table.missing == (~np.isnan(gold)).sum()
    assert table.missing == (~np.isnan(gold[0, :12])).sum()
    assert table.ranks == {"whole": 1, "holes": 1}
    assert list(table.values) == ["holes", "whole"]


def test_many_metrics_are_tested_where_it_decides_and_few_throughout():
    metric, gold, _ = synthetic("continuous")
    random = np.random.default_rng(4)
    metrics = {str(place): metric + random.normal(size=gold.shape) * place for place in range(FEW_METRICS + 1)}
    deciding, every = (rank_table(pearson, metrics, gold, resamples=200, tests=tests) for tests in (None, "all"))
    assert deciding.ranks == every.ranks
    assert len(set(every.ranks.values())) > 1
    made = [int(np.count_nonzero(~np.isnan(table.p_values))) for table in (deciding, every)]
    assert made[0] < made[1] == 11 * 10 // 2
    few = dict(list(metrics.items())[:FEW_METRICS])
    assert not np.isnan(rank_table(pearson, few, gold, resamples=20).p_values[np.triu_indices(10, 1)]).any()
    fewer = rank_table(pearson, few, gold, resamples=200, tests="deciding")
    assert np.isnan(fewer.p_values[np.triu_indices(10, 1)]).any()


def test_what_is_exchanged_reaches_the_tests():
    metric, gold, _ = synthetic("continuous")
    metrics = {"a": metric, "b": metric + np.random.default_rng(4).normal(size=gold.shape)}
    tables = {
        swap: rank_table(SegmentAccuracy(), metrics, gold, resamples=99, swap=swap) for swap in ("pairs", "scores")
    }
    first, second = list(tables["pairs"].values)
    both = perm_both(SegmentAccuracy(), metrics[first], metrics[second], gold, resamples=99)
    pairs = perm_pairs(metrics[first], metrics[second], gold, resamples=99)
    assert [table.p_values[0, 1] for table in tables.values()] == [pairs.p_value, both.p_value]
    assert pairs.p_value != both.p_value
    assert rank_table(SegmentAccuracy(), metrics, gold, resamples=99).p_values[0, 1] == pairs.p_value


@pytest.mark.parametrize(
    ("option", "message"),
    [({"swap": "pair"}, "swap='pair' .*did you mean 'pairs'"), ({"tests": "some"}, "allowed are all and deciding")],
)
def test_unknown_options_are_refused(option, message):
    with pytest.raises(OptionError, match=message):
        rank_table(segment_correlation, {"good": [[1, 2]]}, [[1, 2]], **option)


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(DataError, match="no metrics to rank"):
        rank_table(pairwise_accuracy, {}, [[1]])
    with pytest.raises(DataError, match="measure of flat is undefined"):
        rank_table(segment_correlation, {"flat": [[1, 1]], "good": [[1, 2]]}, [[1, 2]])
    with pytest.raises(OptionError, match="level=1"):
        rank_table(segment_correlation, {"good": [[1, 2]]}, [[1, 2]], level=1)
    with pytest.raises(DataError, match="do not match"):
        rank_table(segment_correlation, {"good": [[1, 2, 3]]}, [[1, 2]])
    assert rank_table(segment_correlation, {"good": [[1, 2]]}, [[1, 2]]).ranks == {"good": 1}


def test_tests_are_told_as_they_end():
    told = []
    rng = np.random.default_rng(0)
    gold = rng.normal(size=(3, 6))
    metrics = {name: gold + rng.normal(size=gold.shape) for name in "abc"}
    rank_table(SegmentAccuracy(), metrics, gold, resamples=5, tested=lambda *numbers: told.append(numbers))
    assert told == [(1, 3), (2, 3), (3, 3)]
