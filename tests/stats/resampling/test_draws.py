"""Bootstrap samples as rows, for statistics that need a refit, and as weights of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.resampling import bootstrap_weights, left_out_weights, resampled_rows
from metricsmith.stats.resampling.draws import aligned_rows


def test_samples_hold_whole_groups_as_many_as_there_are():
    groups = np.array(["a", "b", "a", "c", "c", "c"])
    samples = resampled_rows(groups, 200, seed=1)
    assert len(samples) == 200
    for rows in samples:
        counts = np.bincount(rows, minlength=6)
        assert counts[0] == counts[2]
        assert counts[3] == counts[4] == counts[5]
        assert counts[0] + counts[1] + counts[3] == 3
    assert len({tuple(rows) for rows in samples}) > 10


def test_the_seed_decides_the_samples():
    first, again, other = (resampled_rows(range(9), 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_sample_is_an_error():
    with pytest.raises(OptionError, match="0 resamples"):
        resampled_rows(range(3), 0)


def test_columns_and_groups_that_do_not_fit_are_errors():
    with pytest.raises(DataError, match="not aligned"):
        aligned_rows([[1, 2], [1, 2, 3]], None)
    with pytest.raises(DataError, match="1 groups for 2 rows"):
        aligned_rows([[1, 2]], ["a"])
    for label in (None, math.nan):
        with pytest.raises(DataError, match="row 1 has no group"):
            aligned_rows([[1, 2]], ["a", label])


def test_weights_are_whole_groups_drawn_with_replacement():
    groups = ["a", "b", "a", "c", "c", "c"]
    weights = bootstrap_weights(groups, 4000, seed=1)
    assert weights.shape == (4000, 6)
    a, b, c = weights[:, 0], weights[:, 1], weights[:, 3]
    np.testing.assert_array_equal(weights, np.stack([a, b, a, c, c, c], axis=1))
    assert (a + b + c == 3).all()
    # Each group's count is binomial (3, 1/3): mean 1, variance 2/3, and covariance -1/3 with another's.
    for one in (a, b, c):
        assert one.mean() == pytest.approx(1, abs=0.05)
        assert one.var() == pytest.approx(2 / 3, abs=0.05)
    assert np.cov(a, b)[0, 1] == pytest.approx(-1 / 3, abs=0.05)


def test_weights_and_rows_give_a_mean_the_same_spread():
    values, groups = np.random.default_rng(0).normal(size=30), np.arange(30) // 3
    weights = bootstrap_weights(groups, 3000)
    rows = resampled_rows(groups, 3000)
    spread = np.std(weights @ values / 30)
    assert spread == pytest.approx(np.std([values[picked].mean() for picked in rows]), rel=0.07)


def test_the_seed_decides_the_weights_and_no_draw_is_an_error():
    first, again, other = (bootstrap_weights(range(9), 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(OptionError, match="0 resamples"):
        bootstrap_weights(range(3), 0)


def test_each_group_is_left_out_once():
    assert left_out_weights(["a", "b", "a"], 10).tolist() == [[0, 1, 0], [1, 0, 1]]
    # Seven groups in three parts: 0, 3 and 6; 1 and 4; 2 and 5.
    parts = left_out_weights(range(7), 3)
    assert parts.tolist() == [[0, 1, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1, 1], [1, 1, 0, 1, 1, 0, 1]]


@pytest.mark.parametrize(
    "weigh", [lambda groups: bootstrap_weights(groups, 2), lambda groups: left_out_weights(groups, 9)]
)
def test_weights_need_a_group_for_each_row(weigh):
    with pytest.raises(DataError, match="row 1 has no group"):
        weigh(["a", None])
