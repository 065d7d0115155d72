"""Bootstrap samples as row indices, for statistics that need a refit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.stats.resampling import resampled_rows
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
