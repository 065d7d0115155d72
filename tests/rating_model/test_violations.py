"""Pairs of judgements that two measures order in opposite ways."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.errors import OptionError
from metricsmith.rating_model.measures import MEASURES, Sides, as_loss, downstream_measures
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors
from metricsmith.rating_model.violations import MOST_CELLS, rank_violations

THREE = ResponseSets.single(("a", "b", "c"))
# Appendix C, example 1, repaired: w takes another mode than the people, and diverges less.
PEOPLE = RatingVectors.of_population(THREE, [[0.5, 0.4, 0.1]])
JUDGES = RatingVectors.of_population(THREE, [[[0.8, 0.1, 0.1]], [[0.43, 0.47, 0.10]]])


def test_appendix_c_is_found():
    found = rank_violations(
        MEASURES["hit_rate"], MEASURES["kl_human_judge"], Sides(PEOPLE, JUDGES), ["z", "w"], ["one"]
    )
    (pair,) = found
    assert (pair.better, pair.worse) == (("z", "one"), ("w", "one"))
    assert pair.first == (1.0, 0.0)
    assert pair.second[0] > pair.second[1] > 0


def random_sides(n=40, judges=3):
    rng = np.random.default_rng(0)
    sets = ResponseSets.every(("a", "b"))

    def side(shape):
        return RatingVectors.of_population(sets, rng.dirichlet([1, 1], shape), rng.dirichlet([1, 1, 1], shape))

    return Sides(side(n), side((judges, n)))


def test_every_pair_is_opposite_and_no_judgement_stands_in_two():
    sides = random_sides()
    names, items = ["x", "y", "z"], [str(item) for item in range(40)]
    first, second = MEASURES["js_divergence"], MEASURES["squared_error_sets"]
    found = rank_violations(first, second, sides, names, items, most=8)
    assert len(found) == 8
    cells = [cell for pair in found for cell in (pair.better, pair.worse)]
    assert len(set(cells)) == 16
    for pair in found:
        for measure, values, sign in ((first, pair.first, 1), (second, pair.second, -1)):
            lost = as_loss(measure, np.array(values))
            assert sign * (lost[1] - lost[0]) > 0
            terms = measure.terms(sides)
            places = [(names.index(judge), items.index(item)) for judge, item in (pair.better, pair.worse)]
            assert values == pytest.approx([terms[place] for place in places])


def test_a_monotone_transformation_has_no_violation():
    sides, names = random_sides(), ["x", "y", "z"]
    items = [str(item) for item in range(40)]
    for one, other in (("js_divergence", "js_distance"), ("hit_rate", "squared_error_modes"), ("hit_rate", "hit_rate")):
        assert rank_violations(MEASURES[one], MEASURES[other], sides, names, items) == []


def test_a_bias_counts_by_its_size():
    # x is as wrong upward as y is downward: neither is better by bias, so consistency cannot order them otherwise.
    two = ResponseSets.single(("a", "b"))
    people = RatingVectors.of_population(two, [[1.0, 0.0], [0.0, 1.0]])
    judges = RatingVectors.of_population(two, [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    consistency, bias = downstream_measures(Decision(("a",)))
    assert rank_violations(consistency, bias, Sides(people, judges), ["x", "y"], ["1", "2"]) == []


def test_measures_without_a_number_per_item_and_missing_items_give_none():
    sides = Sides(PEOPLE, JUDGES)
    assert rank_violations(MEASURES["cohen_kappa"], MEASURES["hit_rate"], sides, ["z", "w"], ["one"]) == []
    nothing = RatingVectors.of_population(THREE, [[np.nan] * 3])
    sides = Sides(nothing, JUDGES)
    assert rank_violations(MEASURES["hit_rate"], MEASURES["kl_human_judge"], sides, ["z", "w"], ["one"]) == []
    with pytest.raises(OptionError, match="1 judges and 1 items do not fit"):
        rank_violations(MEASURES["hit_rate"], MEASURES["kl_human_judge"], sides, ["z"], ["one"])


def test_a_judgement_that_one_measure_lacks_is_left_out():
    # On item 1 the judge endorses nothing at a threshold of .6, so that its precision is undefined, and is right.
    two = ResponseSets.single(("a", "b"))
    people = RatingVectors.of_population(two, [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    judge = RatingVectors.of_population(two, [[[0.7, 0.3], [0.55, 0.45], [0.0, 1.0]]])
    sides = Sides(people, judge, threshold=0.6)
    precision, divergence = MEASURES["macro_precision"], MEASURES["js_divergence"]
    for pair in ((precision, divergence), (divergence, precision)):
        assert rank_violations(*pair, sides, ["x"], ["0", "1", "2"]) == []


def test_of_many_judgements_evenly_spaced_ones_are_compared():
    n = MOST_CELLS
    sides = random_sides(n, 2)
    found = rank_violations(
        MEASURES["js_divergence"], MEASURES["squared_error_sets"], sides, ["x", "y"], [str(i) for i in range(n)]
    )
    assert len(found) == 5
    assert all(int(item) % 2 == 0 for pair in found for _, item in (pair.better, pair.worse))
