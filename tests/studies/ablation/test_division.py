"""Test sets and learning rows of a grid: whole groups apart, nested, and blind to the ratings of test rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.studies.ablation import division
from rated import rated_table

FRACTION = 0.3


def drawn(table, seed=0, rows=0, fraction=FRACTION):
    test = division.test_places(table, fraction=fraction, seed=seed)
    return division.learning_places(table, test, rows, seed), test


def with_ratings(table, ratings):
    """The table with these ratings, NaN for none."""
    rows = [
        row.without("rating") if np.isnan(new) else row.copy(rating=float(new))
        for row, new in zip(table.rows, ratings, strict=True)
    ]
    return replace(table, rows=rows, ratings=np.array(ratings, dtype=float))


@given(seed=st.integers(0, 50), sources=st.integers(5, 15), rows=st.integers(0, 20))
def test_no_test_group_stands_among_learning_rows_and_all_are_used(seed, sources, rows):
    table = rated_table(sources=sources)
    learned, test = drawn(table, seed, rows)
    groups = np.array(table.groups)
    assert not set(groups[learned]) & set(groups[test])
    assert len(set(learned)) == len(learned) == (min(rows, len(table) - len(test)) or len(table) - len(test))
    assert set(test) == {place for place in range(len(table)) if groups[place] in set(groups[test])}  # whole groups
    assert list(test) == sorted(test)


def test_rows_with_the_same_words_stand_on_one_side_though_their_groups_differ():
    words = "one long output of at least eight words here"
    cells = [{"output": words if n < 2 else f"output {n} of its own", "group": n, "rating": n % 5} for n in range(12)]
    table = read_table(cells, target="rating")
    for seed in range(10):
        _, test = drawn(table, seed)
        assert len(set(test) & {0, 1}) in (0, 2)


def test_fewer_learning_rows_are_a_prefix_of_more_and_the_test_set_is_the_same():
    table = rated_table()
    most, test = drawn(table, seed=3)
    for rows in (8, 10, 20, 40):
        assert drawn(table, 3, rows)[0].tolist() == most[:rows].tolist()
        assert drawn(table, 3, rows)[1].tolist() == test.tolist()
    assert most.tolist() != sorted(most)  # drawn, not the first ones of the file


def test_seeds_draw_other_test_sets_and_other_learning_rows():
    table = rated_table()
    (one, first), (two, second) = drawn(table, 0, 8), drawn(table, 1, 8)
    assert set(first) != set(second)
    assert set(one) != set(two)
    assert [len(first), len(second)] == [18, 18]  # .3 of 60 rows, in groups of 3


def test_the_order_of_the_file_changes_nothing():
    table = rated_table()
    order = np.random.default_rng(5).permutation(len(table))
    mixed = table.subset(order)
    for one, two in zip(drawn(table, 2, 12), drawn(mixed, 2, 12), strict=True):
        assert {table.ids[place] for place in one} == {mixed.ids[place] for place in two}


def test_rows_without_a_rating_are_neither_learned_from_nor_tested_on():
    table = rated_table()
    ratings = table.ratings.copy()
    ratings[::4] = np.nan
    learned, test = drawn(with_ratings(table, ratings))
    assert sorted([*learned, *test]) == np.flatnonzero(~np.isnan(ratings)).tolist()


def test_ratings_of_test_rows_move_no_row():
    table = rated_table()
    learned, test = drawn(table, 4, 10)
    ratings = table.ratings.copy()
    ratings[test] = np.random.default_rng(0).permutation(ratings[test])
    again, same = drawn(with_ratings(table, ratings), 4, 10)
    assert (again.tolist(), same.tolist()) == (learned.tolist(), test.tolist())


def test_one_group_and_shares_that_leave_a_side_empty_are_refused():
    table = rated_table()
    with pytest.raises(DataError, match="form 1 group, too few"):
        drawn(table.subset([0, 1, 2]))
    with pytest.raises(OptionError, match="above 0 and below 1"):
        drawn(table, fraction=1.0)
