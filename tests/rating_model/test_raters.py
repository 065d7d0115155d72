"""Majority and Dawid-Skene: equal to crowd-kit, right where the truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.raters import dawid_skene, majority
from metricsmith.rating_model.ratings import Ratings

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "raters.json").read_text("utf-8"))
OPTIONS = ("a", "b", "c")


def ratings_of(table, options=OPTIONS):
    rows = [
        (item, rater, None if place is None else options[place])
        for item, row in enumerate(table)
        for rater, place in enumerate(row)
    ]
    return Ratings.from_rows(rows, options)


def simulated(seed, items, accuracy, per_item=None, size=3):
    """A table of choices and the true options; a wrong choice is any of the others."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, size, items)
    wrong = (truth[:, None] + random.integers(1, size, (items, len(accuracy)))) % size
    table = np.where(random.random(wrong.shape) < accuracy, truth[:, None], wrong).tolist()
    if per_item is not None:
        for row in table:
            for rater in random.permutation(len(accuracy))[per_item:]:
                row[rater] = None
    return table, truth


def test_unsmoothed_dawid_skene_equals_crowd_kit():
    found = dawid_skene(ratings_of(GOLDEN["ratings"]), smoothing=0.0)
    np.testing.assert_allclose(found.posterior, GOLDEN["dawid_skene"]["proba"], atol=1e-4)
    assert found.posterior.argmax(axis=1).tolist() == GOLDEN["dawid_skene"]["labels"]
    assert found.converged
    assert found.switched == ()


def test_majority_equals_crowd_kit():
    votes = majority(ratings_of(GOLDEN["ratings"]))
    assert votes.argmax(axis=1).tolist() == GOLDEN["dawid_skene"]["majority"]


def test_tied_options_share_the_vote_or_are_chosen_by_the_rule_named():
    ratings = ratings_of([[0, 1], [2, 2], [None, None]])
    np.testing.assert_array_equal(majority(ratings), [[0.5, 0.5, 0], [0, 0, 1], [math.nan] * 3])
    np.testing.assert_array_equal(majority(ratings, ties="first")[0], [1, 0, 0])
    assert {int(majority(ratings, ties="random", seed=seed)[0].argmax()) for seed in range(20)} == {0, 1}


def test_one_step_by_hand():
    # Votes (1, 1), (1, 0), (0, 0): shares of a are 0, 1/2, 1. First rater: given a, true a 1 of 1.5; given b, true a
    # .5, true b 1.5 of 1.5. Prior of a: 1/2. Second rater: given a: true a 1.5, true b .5; given b: true a 0, b 1.
    ratings = ratings_of([[1, 1], [1, 0], [0, 0]], ("a", "b"))
    found = dawid_skene(ratings, smoothing=0.0, iterations=1)
    np.testing.assert_allclose(found.confusion[0], [[2 / 3, 1 / 3], [0, 1]])
    np.testing.assert_allclose(found.confusion[1], [[1, 0], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(found.prior, [0.5, 0.5])
    # Second item, (b, a): 1/3 x 1 beside 1 x 1/3.
    np.testing.assert_allclose(found.posterior[1], [0.5, 0.5])
    assert not found.converged
    assert found.iterations == 1


def test_errors_priors_and_true_options_are_recovered():
    accuracy = np.array([0.95, 0.9, 0.8, 0.6, 0.4])
    table, truth = simulated(0, 3000, accuracy)
    found = dawid_skene(ratings_of(table))
    diagonal = found.confusion.diagonal(axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal, np.repeat(accuracy[:, None], 3, axis=1), atol=0.04)
    np.testing.assert_allclose(found.prior, 1 / 3, atol=0.03)
    best, votes = (answer.argmax(axis=1) == truth for answer in (found.posterior, majority(ratings_of(table))))
    assert best.mean() > votes.mean() + 0.01


def test_smoothing_keeps_raters_with_three_ratings_from_being_believed():
    def right(smoothing):
        shares = []
        for seed in range(10):
            table, truth = simulated(seed, 60, np.random.default_rng(seed).uniform(0.4, 0.95, 100), per_item=5)
            found = dawid_skene(ratings_of(table), smoothing=smoothing)
            shares.append((found.posterior.argmax(axis=1) == truth).mean())
        return np.mean(shares)

    assert right(2.0) > right(0.0) + 0.05


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), smoothing=st.sampled_from([0.0, 0.5, 2.0]))
def test_results_are_distributions_and_follow_the_options(seed, smoothing):
    random = np.random.default_rng(seed)
    table = [[None if random.random() < 0.4 else int(random.integers(3)) for _ in range(4)] for _ in range(8)]
    table[0][0] = 0
    found = dawid_skene(ratings_of(table), smoothing=smoothing, iterations=5)
    rated = [any(place is not None for place in row) for row in table]
    np.testing.assert_allclose(found.posterior[rated].sum(axis=1), 1)
    assert np.isnan(found.posterior[~np.array(rated)]).all()
    assert found.prior.sum() == pytest.approx(1)
    known = ~np.isnan(found.confusion).any(axis=2)
    np.testing.assert_allclose(found.confusion[known].sum(axis=1), 1)
    turned = [[None if place is None else (place + 1) % 3 for place in row] for row in table]
    other = dawid_skene(ratings_of(turned), smoothing=smoothing, iterations=5)
    np.testing.assert_allclose(np.roll(found.posterior, 1, axis=1), other.posterior, atol=1e-6)


def test_the_likelihood_never_falls_without_smoothing():
    table, _ = simulated(3, 40, np.array([0.9, 0.7, 0.5, 0.4]), per_item=3)
    ratings = ratings_of(table)
    steps = [dawid_skene(ratings, smoothing=0.0, iterations=count).log_likelihood for count in range(1, 20)]
    assert np.all(np.diff(steps) >= -1e-9)


def test_a_class_that_raters_call_otherwise_is_named():
    # Where a holds, four raters of five say b: the votes start the class under the name of b, and a is left to few.
    table = [[0, 1, 1, 1, 1]] * 3 + [[0, 2, 2, 2, 2]] * 3 + [[0, 0, 0, 1, 1]] * 2
    assert "a" in dawid_skene(ratings_of(table), smoothing=5.0, iterations=1).switched


def test_raters_and_items_without_ratings_are_nan():
    found = dawid_skene(ratings_of([[0, None], [None, None]]))
    assert np.isnan(found.confusion[1]).all()
    assert np.isnan(found.posterior[1]).all()
    assert found.posterior[0].argmax() == 0


def test_wrong_arguments_are_refused():
    with pytest.raises(DataError, match="no ratings"):
        dawid_skene(ratings_of([[None]]))
    for wrong in ({"smoothing": -1}, {"smoothing": math.nan}, {"tolerance": math.nan}, {"iterations": 0}):
        with pytest.raises(OptionError, match="give at least 0, 0 and 1"):
            dawid_skene(ratings_of([[0]]), **wrong)
    with pytest.raises(DataError, match="Dawid and Skene needs to know who rated, which counts do not say"):
        dawid_skene(Ratings.from_counts([[2, 1, 0]], OPTIONS))
    with pytest.raises(OptionError, match="response sets"):
        dawid_skene(Ratings.from_rows([(0, 0, ["a", "b"])], OPTIONS, sets=True))
