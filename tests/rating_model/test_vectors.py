"""Rating vectors, their aggregations, and decisions by them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors, hard

TWO = ResponseSets.every(("a", "b"))
CHOICES = Ratings.from_rows([("x", 1, "a"), ("x", 2, "b"), ("x", 3, "b"), ("y", 1, None)], ("a", "b"))
SETS = Ratings.from_rows([("x", 1, ["a"]), ("x", 2, ["a", "b"]), ("y", 1, None)], ("a", "b"), sets=True)


def test_sets_follow_from_choices_by_beta():
    # A third of the ratings is a; of the others .4 would have endorsed a as well.
    made = RatingVectors.of_ratings(TWO, CHOICES, beta={"a": 0.4})
    assert made.choices[0] == pytest.approx([1 / 3, 2 / 3])
    assert made.sets[0] == pytest.approx([1 / 3, 0.4, 0.8 / 3])
    assert made.endorsements[0] == pytest.approx([0.6, 2 / 3])
    plain = RatingVectors.of_ratings(TWO, CHOICES)
    assert plain.endorsements[0] == pytest.approx(plain.choices[0])


def test_choices_follow_from_sets_by_equal_shares_or_by_f():
    made = RatingVectors.of_ratings(TWO, sets=SETS)
    assert made.sets[0].tolist() == [0.5, 0.0, 0.5]
    assert made.choices[0].tolist() == [0.75, 0.25]
    other = RatingVectors.of_ratings(TWO, sets=SETS, forced_choice=[[1, 0, 0], [0, 1, 1]])
    assert other.choices[0].tolist() == [0.5, 0.5]


def test_both_kinds_of_ratings_stand_for_themselves():
    made = RatingVectors.of_ratings(TWO, CHOICES, SETS)
    assert made.choices[0] == pytest.approx([1 / 3, 2 / 3])
    assert made.sets[0].tolist() == [0.5, 0.0, 0.5]


def test_an_item_without_ratings_is_missing_throughout():
    for made in (RatingVectors.of_ratings(TWO, CHOICES, beta={"a": 0.4}), RatingVectors.of_ratings(TWO, sets=SETS)):
        for values in (made.choices, made.sets, made.endorsements, made.modes(), made.endorsed(0.5)):
            assert np.isnan(values[1]).all()
        assert math.isnan(Decision(("a",)).of(made)[1])


def test_the_noise_of_few_ratings_is_that_of_their_mean():
    # Choices (1/3, 2/3) of three: sum p (1 - p) / 2 = 2/9. Sets of two: Omega (1, .5): .25 / 1.
    both = RatingVectors.of_ratings(TWO, CHOICES, SETS)
    assert both.choice_noise[0] == pytest.approx(2 / 9)
    assert both.endorsement_noise[0] == pytest.approx(0.25)
    # Choices by equal shares are (1, 0) and (.5, .5): variance .0625 each, over 1.
    assert RatingVectors.of_ratings(TWO, sets=SETS).choice_noise[0] == pytest.approx(0.125)
    # Omega by beta .4 is (1, 0) for a and (.4, 1) for b: variance of the first .6^2 * 2/9, of the second 2/9, over 2.
    assert RatingVectors.of_ratings(TWO, CHOICES, beta={"a": 0.4}).endorsement_noise[0] == pytest.approx(1.36 / 9)
    assert math.isnan(RatingVectors.of_ratings(TWO, Ratings.from_counts([[1, 0]], ("a", "b"))).choice_noise[0])


def test_a_decision_by_each_rule():
    sets = ResponseSets.every(("a", "b", "c"))
    shares = np.array([[0.2, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1]])  # a, b, c, ab, ac, bc, abc
    made = RatingVectors.of_population(sets, [[0.4, 0.4, 0.2]], shares)
    assert made.endorsements[0] == pytest.approx([0.5, 0.6, 0.4])
    for rule, share in (("any", 0.9), ("max", 0.6), ("sum", 1.1)):
        assert Decision(("a", "b"), 0.5, rule).shares(made)[0] == pytest.approx(share)
    assert Decision(("a",), 0.5).of(made)[0] == 1.0
    assert Decision(("a",), 0.5, strict=True).of(made)[0] == 0.0
    assert made.endorsed(0.5)[0].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("arguments", [((),), ("a",), (("a",), 0.0), (("a",), 1.1), (("a",), 0.5, "mean")])
def test_a_decision_refuses_what_it_cannot_be_taken_by(arguments):
    with pytest.raises(OptionError):
        Decision(*arguments)


def test_a_positive_option_has_to_be_declared():
    made = RatingVectors.of_population(TWO, [[0.5, 0.5]])
    for rule in ("any", "max"):
        with pytest.raises(OptionError, match="'q' is no option"):
            Decision(("q",), 0.5, rule).of(made)


def test_ties_are_broken_as_asked():
    rows = [[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]]
    assert hard(rows).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert hard(rows, "first").tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    drawn = np.stack([hard(rows, "random", seed) for seed in range(200)])
    assert drawn[:, 0].mean(axis=0) == pytest.approx([0.5, 0.5, 0.0], abs=0.1)
    assert (drawn[:, 1] == [0.0, 0.0, 1.0]).all()
    with pytest.raises(OptionError, match="split or expected"):
        hard(rows, "last")


def test_judges_are_stacked_if_they_fit():
    one = RatingVectors.of_ratings(TWO, CHOICES)
    assert RatingVectors.stack([one, one]).choices.shape == (2, 2, 2)
    with pytest.raises(DataError, match="different items"):
        RatingVectors.stack([one, replace(one, choices=one.choices[:1])])
    with pytest.raises(DataError, match="differ in options"):
        RatingVectors.stack([one, RatingVectors.of_population(ResponseSets.single(("a", "b")), [[0.5, 0.5]])])


def test_ratings_in_the_wrong_place_are_refused():
    with pytest.raises(OptionError, match="at least one of them"):
        RatingVectors.of_ratings(TWO)
    for wrong in ({"choices": SETS}, {"sets": CHOICES}):
        with pytest.raises(OptionError, match="each other's place"):
            RatingVectors.of_ratings(TWO, **wrong)
    with pytest.raises(DataError, match="align them by of_items"):
        RatingVectors.of_ratings(TWO, CHOICES, SETS.of_items(["x"]))


def test_options_in_another_order_are_refused_and_not_swapped():
    turned = Ratings.from_counts([[1, 2]], ("b", "a"))
    with pytest.raises(DataError, match=r"choices have options \('b', 'a'\), response sets \('a', 'b'\)"):
        RatingVectors.of_ratings(TWO, turned)


def test_response_sets_need_no_set_for_each_single_option():
    sets = ResponseSets.of(("a", "b"), [["a"], ["a", "b"]])
    assert RatingVectors.of_ratings(sets, sets=SETS).sets[0].tolist() == [0.5, 0.5]
    with pytest.raises(OptionError, match=r"\['b'\], which is not admissible"):
        RatingVectors.of_ratings(sets, CHOICES)
    assert RatingVectors.of_ratings(sets, CHOICES, beta={"a": 1.0}).sets[0] == pytest.approx([1 / 3, 2 / 3])


def test_a_rating_that_is_no_admissible_set_is_named():
    with pytest.raises(DataError, match=r"item 'x' was rated \['a', 'b'\], which is no admissible response set"):
        RatingVectors.of_ratings(ResponseSets.single(("a", "b")), sets=SETS)


def test_rows_that_are_no_distributions_are_refused():
    with pytest.raises(DataError, match=r"choices: 1 are no distributions, the first at \(1,\) sums to 0.9"):
        RatingVectors.of_population(TWO, [[0.5, 0.5], [0.5, 0.4]])
    with pytest.raises(DataError, match="response sets: 1 are no distributions"):
        RatingVectors.of_population(TWO, [[0.5, 0.5]], [[0.7, 0.7, -0.4]])
    with pytest.raises(DataError, match="do not fit 2 options and 3 sets"):
        RatingVectors.of_population(TWO, [[0.5, 0.5]], [[0.5, 0.5]])


@pytest.mark.parametrize("kind", ["choices", "sets", "by beta"])
def test_the_noise_is_how_much_a_squared_distance_is_too_large_by(kind):
    rng = np.random.default_rng(0)
    theta, m, n = np.array([0.5, 0.2, 0.3]), 3, 20000
    of_sets = rng.choice(3, size=(n, m), p=theta)
    if kind == "sets":
        rows = [(item, rater, TWO.sets[of_sets[item, rater]]) for item in range(n) for rater in range(m)]
        made, truth = RatingVectors.of_ratings(TWO, sets=Ratings.from_rows(rows, ("a", "b"), sets=True)), theta
        choices = theta @ [[1, 0], [0, 1], [0.5, 0.5]]
    else:
        beta = {"a": 0.4} if kind == "by beta" else {}
        choices = np.array([0.65, 0.35])
        drawn = rng.binomial(m, choices[0], n)
        made = RatingVectors.of_ratings(
            TWO, Ratings.from_counts(np.stack([drawn, m - drawn], axis=1), ("a", "b")), beta=beta
        )
        truth = RatingVectors.of_ratings(TWO, Ratings.from_counts([[65, 35]], ("a", "b")), beta=beta).sets[0]
    omega = TWO.membership @ truth
    for values, expected, noise in (
        (made.choices, choices, made.choice_noise),
        (made.endorsements, omega, made.endorsement_noise),
    ):
        error = ((values - expected) ** 2).sum(axis=1)
        assert noise.mean() == pytest.approx(error.mean(), rel=0.1)


def test_reverse_and_forward_matrices_that_give_no_distributions_are_refused():
    for wrong, match in ((np.eye(2), r"must be \(3, 2\)"), (np.ones((3, 2)), "no distributions")):
        with pytest.raises(DataError, match=match):
            RatingVectors.of_ratings(TWO, CHOICES, reverse_choice=wrong)
    for wrong, match in ((np.eye(2), r"must be \(2, 3\)"), (np.ones((2, 3)), "no distributions")):
        with pytest.raises(DataError, match=match):
            RatingVectors.of_ratings(TWO, sets=SETS, forced_choice=wrong)
    with pytest.raises(DataError, match="no judges"):
        RatingVectors.stack([])


def test_a_positive_option_counts_once():
    with pytest.raises(OptionError, match="give each once"):
        Decision(("a", "a"), rule="sum")


@pytest.mark.parametrize("threshold", [0, 1.5, math.nan, "half"])
def test_a_threshold_that_is_no_share_is_named(threshold):
    with pytest.raises(OptionError, match=rf"threshold {threshold} is not in \(0, 1\]"):
        Decision(("yes",), threshold)
