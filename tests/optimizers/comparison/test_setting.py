"""The sides of a comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.comparison.setting import divide


def table(groups=20, each=3, seed=0):
    random = np.random.default_rng(seed)
    lines = [
        {"text": f"text {group} {number}", "group": f"g{group}", "rating": float(random.integers(1, 6))}
        for group in range(groups)
        for number in range(each)
    ]
    return read_table(pd.DataFrame(lines), target="rating", output="text", group="group", scale="1:5")


def sides(**options):
    rows = table(options.pop("groups", 20))
    return divide(rows, rows.task, **{"fraction": 0.3, "validation": 0.2, "seed": 0, **options})


def test_the_shares_are_those_of_the_paper():
    parts = sides()
    assert [len(side) for side in (parts.train, parts.validation, parts.test)] == [30, 12, 18]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.4), st.floats(0.1, 0.4), st.integers(6, 20))
def test_no_group_stands_on_two_sides_and_no_row_is_lost(seed, fraction, validation, groups):
    parts = sides(seed=seed, fraction=fraction, validation=validation, groups=groups)
    three = [set(side.groups) for side in (parts.train, parts.validation, parts.test)]
    assert all(three)
    assert sum(map(len, three)) == len(set.union(*three)) == groups
    assert sum(len(side) for side in (parts.train, parts.validation, parts.test)) == 3 * groups


def test_the_seed_decides():
    assert sides(seed=1).test.groups == sides(seed=1).test.groups != sides(seed=2).test.groups


@pytest.mark.parametrize(("fraction", "validation"), [(0, 0.2), (0.3, 0), (0.5, 0.5), (float("nan"), 0.2)])
def test_impossible_shares_are_refused(fraction, validation):
    with pytest.raises(OptionError, match="both must be above 0"):
        sides(fraction=fraction, validation=validation)


def test_three_groups_are_needed():
    with pytest.raises(DataError, match=r"2 groups.*--group"):
        divide(table(2, 5), table().task, fraction=0.3, validation=0.2, seed=0)
