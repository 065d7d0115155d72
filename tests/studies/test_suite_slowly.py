"""A suite's table held against a slow computation that knows the definitions alone, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.datasets.suite_roots import read_suite
from metricsmith.meta_evaluation.averaging import task_seed
from metricsmith.studies.suite import evaluate_suite
from slow_suite import SlowSuite, accuracy_with_ties, p_value
from suite_roots import write_root

KINDS = ("wmt24", "wmt23")


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """The planted root, what the library found there, and what the slow computation did."""
    planted = write_root(tmp_path_factory.mktemp(request.param), kind=request.param, systems=5, segments=30)
    suite = planted.suite
    found = evaluate_suite(suite, read_suite(planted.root, suite))
    slow = SlowSuite(planted.root, suite, [task_seed(0, task.name) for task in suite.tasks])
    return planted, found, slow


def test_systems_and_metrics_that_count_are_those_of_the_rules(both):
    planted, found, slow = both
    for pair in planted.suite.pairs:
        lines = [line for line in found.left_out if line.pair == pair]
        assert tuple(slow.pairs[pair].systems) == planted.systems[pair]
        assert {line.name for line in lines if line.kind == "system"} == slow.pairs[pair].left_out
        assert slow.pairs[pair].left_out == planted.left_out[pair][0]
        assert slow.pairs[pair].unused == planted.left_out[pair][1]
    for column in found.columns:
        systems = [(pair, name) for pair in column.pairs for name in slow.pairs[pair].systems]
        assert len(column.systems) == len(systems)
        assert all(name in shown for (_, name), shown in zip(systems, column.systems, strict=True))


def test_every_value_is_the_slow_one(both):
    _, found, slow = both
    assert [column.name for column in found.columns] == list(slow.tasks)
    for column in found.columns:
        task = slow.tasks[column.name]
        assert {one.name for one in column.result.metrics} == set(task.values)
        for one in column.result.metrics:
            assert one.value == pytest.approx(task.values[one.name], abs=1e-12), (column.name, one.name)
            if column.measure == "acc-t":
                assert one.epsilon == accuracy_with_ties(task.metrics[one.name], task.gold)[1]
        assert column.weight == pytest.approx(slow.weights[column.name], abs=1e-12)
        assert column.bounds == tuple(task.bounds)


def test_every_cluster_and_p_value_of_a_task_is_the_slow_one(both):
    _, found, slow = both
    tests = 0
    for column in found.columns:
        names = [one.name for one in column.result.metrics]
        assert {one.name: one.rank for one in column.result.metrics} == slow.task_ranks(column.name)
        for row, column_p in enumerate(column.result.p_values):
            for place in np.flatnonzero(~np.isnan(column_p)):
                drawn = slow.tasks[column.name].draws(names[row], names[place])
                assert column_p[place] == pytest.approx(p_value(*drawn), abs=1e-12), (column.name, names[row])
                tests += 1
    assert tests > 3 * len(found.columns)


def test_averages_and_their_clusters_are_the_slow_ones(both):
    planted, found, slow = both
    assert [one.name for one in found.averages] == slow.order
    assert "Dahlia" not in slow.order  # absent in one pair
    for one in found.averages:
        assert one.value == pytest.approx(slow.averages[one.name], abs=1e-12)
    assert {one.name: one.rank for one in found.averages} == slow.average_ranks()
    tests = 0
    for row, line in enumerate(found.p_values):
        for place, p in enumerate(line):
            if not math.isnan(p):
                assert p == pytest.approx(slow.average_p(slow.order[row], slow.order[place]), abs=1e-12)
                tests += 1
    assert tests >= len(slow.order) - 1
    assert slow.order[0] == planted.order[0]


@pytest.mark.slow
def test_a_root_of_metrics_that_are_hard_to_tell_apart_has_the_slow_clusters_too(tmp_path):
    """P-values near the level, where tests go on to the end and SPA's own draws are made."""
    noises = {"Aster": 1.0, "Briar-2": 1.05, "Clover_q": 1.15, "Elder": 1.3, "x.seg.s[noref]": 1.6}
    planted = write_root(tmp_path, seed=4, systems=8, segments=40, noises=noises)
    suite = planted.suite
    found = evaluate_suite(suite, read_suite(planted.root, suite))
    slow = SlowSuite(planted.root, suite, [task_seed(0, task.name) for task in suite.tasks])
    for column in found.columns:
        assert {one.name: one.rank for one in column.result.metrics} == slow.task_ranks(column.name), column.name
    ranks = slow.average_ranks()
    assert {one.name: one.rank for one in found.averages} == ranks
    assert 1 < max(ranks.values()) < len(ranks)
    drawn = [draws.size for task in slow.tasks.values() for _, draws in task._draws.values()]
    assert any(100 < size < 1000 for size in drawn)
