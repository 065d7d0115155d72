"""Columns that go with ratings beyond chance: groups count, and so does the number of columns."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.optimizers.screening import LEVEL, beyond_chance, could_pass
from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import permutation_test

RANDOM = np.random.default_rng(0)
RATINGS = RANDOM.normal(size=40)
ALONE = [str(place) for place in range(40)]
PLANTED = RATINGS + RANDOM.normal(0, 0.3, 40)


def test_a_planted_column_passes_and_one_that_falls_or_is_of_chance_does_not():
    missing = np.where(np.arange(40) < 4, np.nan, PLANTED)
    columns = [PLANTED, -PLANTED, missing, RANDOM.normal(size=40), np.ones(40)]
    assert beyond_chance(columns, RATINGS, ALONE).tolist() == [True, False, True, False, False]
    assert beyond_chance([], RATINGS, ALONE).tolist() == []


def test_a_weak_column_passes_alone_and_not_among_many():
    weak = 0.45 * RATINGS + np.random.default_rng(4).normal(size=40)
    p = permutation_test(batch_kendall_tau_b, weak, RATINGS, ALONE, batched=True).p_value
    assert LEVEL / 10 < p < LEVEL
    noise = list(np.random.default_rng(2).normal(size=(30, 40)))
    assert beyond_chance([weak], RATINGS, ALONE).all()
    assert not beyond_chance([weak, *noise], RATINGS, ALONE)[0]


def test_the_seed_draws_and_one_seed_repeats():
    close = 0.3 * RATINGS + np.random.default_rng(57).normal(size=40)  # p-values of .058 and .049
    passed = [bool(beyond_chance([close], RATINGS, ALONE, seed=seed)[0]) for seed in (0, 1, 0, 1)]
    assert passed == [False, True, False, True]


def test_with_many_columns_there_are_draws_enough_for_a_planted_one():
    noise = list(np.random.default_rng(1).normal(size=(99, 40)))
    assert beyond_chance([PLANTED, *noise], RATINGS, ALONE)[0]


def test_rows_of_one_group_are_no_evidence_of_their_own():
    # Six groups of eight equal rows: as rows they agree beyond doubt, as groups they do not.
    levels, groups = np.arange(6.0), np.repeat(list("abcdef"), 8).tolist()
    column = np.repeat(levels[[1, 0, 2, 4, 3, 5]][[0, 1, 3, 2, 5, 4]], 8)
    ratings = np.repeat(levels, 8)
    assert beyond_chance([column], ratings, [str(n) for n in range(48)]).all()
    assert not beyond_chance([column], ratings, groups).any()


def test_few_rows_or_groups_are_known_to_let_nothing_through():
    def passes(tests, sizes):
        names = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
        ratings = np.array([float(name) for name in names])
        noise = list(np.random.default_rng(0).normal(size=(tests - 1, len(names))))
        found = beyond_chance([ratings, *noise], ratings, names)[0]
        assert found == could_pass(tests, ratings, names)
        return found

    assert passes(1, [6] * 5)  # of 120 orders the perfect one: p = 1/120
    assert not passes(8, [6] * 5)
    assert passes(8, [6] * 8)
    assert not passes(1, [10] * 3)
    assert not passes(1, [1] * 4)
    assert not could_pass(1, np.ones(30), ALONE[:30])
    assert not could_pass(1, np.array([]), [])
    assert beyond_chance([np.array([])], np.array([]), []).tolist() == [False]


@pytest.mark.slow
def test_any_of_twenty_columns_of_chance_passes_in_one_run_of_twenty():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), 5).astype(str).tolist()
    passed = 0
    for run in range(60):
        level = random.normal(size=(21, 12)).repeat(5, axis=1)  # both sides have levels of their groups
        table = level + random.normal(size=(21, 60))
        passed += bool(beyond_chance(list(table[1:]), table[0], groups, seed=run).any())
    assert passed <= 9  # 5 % of 60 are 3, and more than 9 come once in a thousand times
