"""Bounds over everything that forced choices leave open, against scipy's linear programmes and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from metricsmith.rating_model.bounds import (
    consistency_difference_bounds,
    linear_bounds,
    set_range,
    squared_error_difference_bounds,
)
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors

SETS = ResponseSets.every(("a", "b", "c"))
SOME = ResponseSets.of(("a", "b", "c"), [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"]])
N = 5


def random_vectors(rng, sets=SETS, n=N):
    return RatingVectors.of_population(sets, rng.dirichlet(np.ones(3), n), rng.dirichlet(np.ones(len(sets.sets)), n))


def corners(vectors):
    """Omega and theta for every way to put the whole mass of each choice on one set that holds it."""
    sets = vectors.response_sets
    for held in itertools.product(*(np.flatnonzero(row) for row in sets.membership)):
        theta = np.zeros((len(vectors.choices), len(sets.sets)))
        for option, place in enumerate(held):
            theta[:, place] += vectors.choices[:, option]
        yield RatingVectors.of_population(sets, vectors.choices, theta)


def extremes(human, first, second, known, gap):
    """The mean over items of the least and largest gap at any corner of each side."""
    sides = [[one] if fixed else list(corners(one)) for one, fixed in zip((human, first, second), known, strict=True)]
    found = np.array([gap(*combination) for combination in itertools.product(*sides)])
    return found.min(axis=0).mean(), found.max(axis=0).mean()


@pytest.mark.parametrize("sets", [SETS, SOME])
@pytest.mark.parametrize("seed", range(3))
def test_a_linear_function_is_bounded_as_by_linear_programmes(sets, seed):
    rng = np.random.default_rng(seed)
    shares, cost = rng.dirichlet(np.ones(3), N), rng.normal(size=(N, len(sets.sets)))
    low, high = linear_bounds(sets, shares, cost)
    pairs = [(held, option) for option, row in enumerate(sets.membership) for held in np.flatnonzero(row)]
    equal = np.array([[option == wanted for _, option in pairs] for wanted in range(3)], dtype=float)
    for item in range(N):
        costs = np.array([cost[item, held] for held, _ in pairs])
        least, largest = (linprog(sign * costs, A_eq=equal, b_eq=shares[item]).fun for sign in (1, -1))
        assert (low[item], high[item]) == pytest.approx((least, -largest), abs=1e-9)


def test_omega_is_open_from_the_share_that_chose_an_option_to_all_who_could_endorse_it():
    two = ResponseSets.every(("a", "b"))
    low, high = linear_bounds(two, [[0.4, 0.6]], two.membership[0])
    assert (low[0], high[0]) == (0.4, 1.0)
    alone = ResponseSets.single(("a", "b"))
    assert [end[0] for end in linear_bounds(alone, [[0.4, 0.6]], alone.membership[0])] == [0.4, 0.4]


def test_missing_items_and_choices_without_a_set_are_nan():
    lone = ResponseSets.of(("a", "b"), [["a"]])
    for end in linear_bounds(lone, [[1.0, 0.0], [0.5, 0.5], [math.nan, math.nan]], [1.0]):
        assert end[0] == 1.0
        assert np.isnan(end[1:]).all()


@pytest.mark.parametrize(
    "known", [(False, True, True), (False, False, False), (True, False, True), (False, True, False)]
)
@pytest.mark.parametrize(
    "decision", [Decision(("a",), 0.5), Decision(("a", "c"), 0.6), Decision(("a", "b"), 0.9, "sum")]
)
def test_the_difference_of_consistencies_is_bounded_as_by_brute_force(known, decision):
    def gap(*sides):
        people, one, other = (decision.of(side) for side in sides)
        return (people == one).astype(float) - (people == other)

    rng = np.random.default_rng(2)
    sides = [random_vectors(rng, SETS if sum(known) > 1 else SOME) for _ in range(3)]
    ranges = [set_range(side, decision, known=fixed) for side, fixed in zip(sides, known, strict=True)]
    assert consistency_difference_bounds(*ranges) == pytest.approx(extremes(*sides, known, gap))


def test_the_largest_of_several_options_gives_outer_bounds():
    decision = Decision(("a", "b"), 0.5, "max")
    rng = np.random.default_rng(3)
    for _ in range(20):
        side = random_vectors(rng)
        found = np.array([decision.of(corner) for corner in corners(side)])
        reach = set_range(side, decision, known=False)
        assert (reach.decided_low <= found.min(axis=0)).all()
        np.testing.assert_array_equal(reach.decided_high, found.max(axis=0))


def squared_gap(human, one, other):
    omegas = [side.endorsements for side in (human, one, other)]
    return ((omegas[0] - omegas[1]) ** 2).sum(axis=1) - ((omegas[0] - omegas[2]) ** 2).sum(axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", list(itertools.product([True, False], repeat=3)))
def test_the_difference_of_squared_errors_lies_within_its_bounds_which_are_exact_for_known_judges(known, seed):
    rng = np.random.default_rng(seed)
    sides = [random_vectors(rng, SOME) for _ in range(3)]
    ranges = [set_range(side, None, known=fixed) for side, fixed in zip(sides, known, strict=True)]
    low, high = squared_error_difference_bounds(*ranges)
    least, largest = extremes(*sides, known, squared_gap)
    assert low <= least + 1e-12
    assert high >= largest - 1e-12
    if known[1:] == (True, True):
        assert (low, high) == pytest.approx((least, largest))
    mirrored = squared_error_difference_bounds(ranges[0], ranges[2], ranges[1])
    assert mirrored == pytest.approx((-high, -low))


def test_the_bounds_of_squared_errors_are_exact_where_options_range_by_themselves():
    # With two options each Omega ranges from its share to 1, whatever the other does: a grid finds the largest gap.
    two = ResponseSets.of(("a", "b"), [["a"], ["b"], ["a", "b"]])
    sides = [RatingVectors.of_population(two, [[share, 1 - share]]) for share in (0.2, 0.5, 0.9)]
    ranges = [set_range(side, None, known=False) for side in sides]
    grid = np.linspace(0, 1, 101)

    def omegas(share):  # all of those that the choice leaves open: a beside b, and b beside a
        return [np.array([share + (1 - share) * x, 1 - share + share * y]) for x in grid[::10] for y in grid[::10]]

    people, one, other = (np.array(omegas(share)) for share in (0.2, 0.5, 0.9))
    far = ((people[:, None] - one) ** 2).sum(axis=2).max(axis=1)
    near = ((people[:, None] - other) ** 2).sum(axis=2).min(axis=1)
    assert squared_error_difference_bounds(*ranges)[1] == pytest.approx((far - near).max(), abs=1e-9)
    assert squared_error_difference_bounds(*ranges)[1] >= (far - near).max() - 1e-12


def test_items_missing_on_any_side_are_left_out():
    decision = Decision(("a",), 0.5)
    rng = np.random.default_rng(4)
    sides = [random_vectors(rng) for _ in range(3)]
    for place, side in enumerate(sides):
        side.choices[place] = side.sets[place] = math.nan
    left = [side.at([3, 4]) for side in sides]
    for known in (True, False):
        gaps, fewer = ([set_range(side, decision, known=known) for side in some] for some in (sides, left))
        assert consistency_difference_bounds(*gaps) == consistency_difference_bounds(*fewer)
        assert squared_error_difference_bounds(*gaps) == pytest.approx(squared_error_difference_bounds(*fewer))
    sides[0].choices[:] = sides[0].sets[:] = math.nan
    nothing = [set_range(side, decision, known=False) for side in sides]
    assert np.isnan([consistency_difference_bounds(*nothing), squared_error_difference_bounds(*nothing)]).all()
