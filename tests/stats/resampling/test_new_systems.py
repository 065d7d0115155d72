"""Kendall's tau-b on rows of systems that no fit has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling.new_systems import SystemsFold, leave_systems_out


def held_out(refit, systems=6, prompts=5, seed=0):
    """Rows of every prompt and system on both sides, ratings drawn."""
    random = np.random.default_rng(seed)
    prompt, system = (codes.ravel() for codes in np.indices((prompts, systems)))
    return SystemsFold(system, random.normal(size=system.size), system, prompt, refit)


def test_no_pair_is_ranked_by_a_fit_that_saw_a_system_of_it():
    luck = np.random.default_rng(1).normal(size=30)
    side = held_out(None)

    def memorises(kept):
        own = 1000 * side.learned[kept].sum()  # no two fits agree on the level
        return own + np.where(np.isin(side.systems, side.learned[kept]), 100 * side.ratings, luck)

    found = leave_systems_out([replace(side, refit=memorises)])
    assert found.kendall_tau_b == kendall_tau_b(luck, side.ratings)
    np.testing.assert_array_equal(
        found.refitted,
        [kendall_tau_b(luck[side.systems != s], side.ratings[side.systems != s]) for s in range(6)],
    )


def test_a_row_of_no_system_is_learned_from_in_every_fit():
    seen = []
    side = held_out(lambda kept: seen.append(kept) or np.arange(30.0))
    leave_systems_out([replace(side, learned=np.append(side.learned, -1))])
    assert all(kept[-1] for kept in seen)


@pytest.mark.parametrize(("systems", "fits", "fewest"), [(6, 41, 3), (17, 92, 10)])
def test_many_systems_are_left_out_in_eight_blocks(systems, fits, fewest):
    # 6 + 15 + 20 and 8 + 28 + 56 sets of one to three. Three of six leave 3; blocks of 3, 2 and 2 of 17 leave 10.
    seen = []
    side = held_out(lambda kept: seen.append(np.unique(side.learned[kept]).size) or np.zeros(5 * systems), systems)
    leave_systems_out([side])
    assert (len(seen), min(seen)) == (fits, fewest)


def test_pairs_of_two_folds_do_not_count():
    # Inside folds everything is in order; across folds nothing is.
    sides = [held_out(None, seed=0), held_out(None, seed=1)]
    sides = [
        replace(side, groups=side.groups + 5 * number, refit=lambda kept, side=side, k=number: side.ratings - 100 * k)
        for number, side in enumerate(sides)
    ]
    sides[1] = replace(sides[1], ratings=sides[1].ratings + 100, refit=lambda kept: sides[1].ratings - 500)
    assert leave_systems_out(sides).kendall_tau_b == 1
