"""Figures of compared methods: common rows, intervals that leave out groups, paired differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.optimizers.splits import RatedRows
from metricsmith.report.comparison.record import MethodResult
from metricsmith.stats.agreement import paired_agreement
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.studies.comparison.methods import Predicted
from metricsmith.studies.comparison.run import common_rows, with_agreement, with_difference

NAN = math.nan
RATINGS = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 6)
TEST = RatedRows.of([make_row("o", rating=r, group=f"g{n // 3}") for n, r in enumerate(RATINGS.tolist())], "rating")


def predicted(seeds=2, seed=0):
    return RATINGS + np.random.default_rng(seed).normal(0, 2, (seeds, 30))


def line(values):
    return with_agreement(MethodResult("m", "M", False), [Predicted(row) for row in values], values, TEST)


def test_methods_are_measured_on_the_rows_that_all_of_them_predict_in_every_seed():
    first, second = predicted(), predicted(seed=1)
    first[0, 0], second[1, 29] = NAN, NAN
    shared = common_rows({"a": first, "b": second})
    for values, whole in zip(shared.values(), (first, second), strict=True):
        assert np.isnan(values[:, [0, 29]]).all()
        np.testing.assert_array_equal(values[:, 1:29], whole[:, 1:29])
    found = with_agreement(MethodResult("a", "A", False), [Predicted(row) for row in first], shared["a"], TEST)
    assert found.n == 28
    assert found.taus == tuple(kendall_tau_b(row[1:29], RATINGS[1:29]) for row in first)
    assert found.remarks == (
        "1 of 30 test rows lack a prediction in some seed",
        "measured on 28 of 30 test rows: on the others another method has no prediction",
    )


@pytest.mark.parametrize(("missing", "narrows"), [(15, True), (16, False), (30, False)])
def test_a_method_that_lacks_most_rows_takes_none_from_the_others(missing, narrows):
    whole, sparse = predicted(), predicted(seed=1)
    sparse[0, :missing] = NAN
    shared = common_rows({"whole": whole, "sparse": sparse})
    assert np.isnan(shared["whole"]).all(axis=0).sum() == (missing if narrows else 0)
    assert np.isnan(shared["sparse"]).all(axis=0).sum() == missing
    if missing == 30:
        assert math.isnan(line(shared["sparse"]).tau)


def test_the_difference_of_one_run_is_that_of_the_induction_report():
    first, second = predicted(1), predicted(1, seed=1)
    found = with_difference(line(second), first, second, TEST, 0)
    block = paired_agreement(first[0], second[0], RATINGS, TEST.groups)
    assert found.difference == pytest.approx(block.kendall_tau_b)
    assert (found.difference_interval.low, found.difference_interval.high) == (block.ci_low, block.ci_high)


def test_the_spread_over_seeds_does_not_leave_the_range_of_a_correlation():
    """Two runs at 1 and -1: Student's t with one degree of freedom reaches 12.7 to either side."""
    found = line(np.array([RATINGS, -RATINGS]))
    assert (found.over_seeds.low, found.over_seeds.high) == (-1, 1)
    assert found.over_both.low < -0.9 < 0.9 < found.over_both.high
