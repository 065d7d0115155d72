"""Measures of agreement with many judges at once: libraries, symmetries, weights, and the bias of sampled judges."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from sklearn import metrics

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.measures import (
    MEASURES,
    RatingMeasure,
    Sides,
    as_loss,
    downstream_measures,
    judge_agreement,
    rating_measures,
    weighted_values,
)
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.simulate import simulate
from metricsmith.rating_model.vectors import Decision, RatingVectors

some = settings(max_examples=40, deadline=None)
THREE = ResponseSets.every(("a", "b", "c"))
NAMES = list(MEASURES)


def drawn(seed, items=12, judges=3, sharpness=1.0):
    """People and judges whose choices and sets have nothing to do with each other, some of them whole answers."""
    rng = np.random.default_rng(seed)

    def side(*shape):
        choices, sets = rng.dirichlet(np.full(3, sharpness), shape), rng.dirichlet(np.full(7, sharpness), shape)
        sure = rng.random(shape) < 0.2
        choices[sure] = np.eye(3)[rng.integers(0, 3, sure.sum())]
        return RatingVectors.of_population(THREE, choices, sets)

    return side(items), side(judges, items)


def of_library(human, judge, threshold):
    """Each measure that a library has, of one judge, as its user would write it."""
    p, r = human.choices, judge.choices
    a, b = p.argmax(axis=1), r.argmax(axis=1)
    omega, own = human.endorsements, judge.endorsements
    held, named = (omega >= threshold).astype(int), (own >= threshold).astype(int)
    pair = {"labels": [0, 1, 2]}
    floor = np.maximum(r, 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of sets without an option
        return {
            "hit_rate": metrics.accuracy_score(a, b),
            "cohen_kappa": metrics.cohen_kappa_score(a, b, **pair),
            "linear_kappa": metrics.cohen_kappa_score(a, b, weights="linear", **pair),
            "weighted_kappa": metrics.cohen_kappa_score(a, b, weights="quadratic", **pair),
            "kl_human_judge": entropy(p, floor, axis=1).mean(),
            "kl_judge_human": entropy(r, np.maximum(p, 1e-10), axis=1).mean(),
            "log_score": -np.mean([metrics.log_loss([0, 1, 2], [floor[i]] * 3, sample_weight=p[i]) for i in range(12)]),
            "cross_entropy_human_judge": (entropy(p, axis=1) + entropy(p, floor, axis=1)).mean(),
            "cross_entropy_judge_human": (entropy(r, axis=1) + entropy(r, np.maximum(p, 1e-10), axis=1)).mean(),
            "js_distance": jensenshannon(p, r, axis=1).mean(),
            "js_divergence": (jensenshannon(p, r, axis=1) ** 2).mean(),
            "squared_error_choices": 3 * metrics.mean_squared_error(p, r),
            "squared_error_modes": 3 * metrics.mean_squared_error(np.eye(3)[a], np.eye(3)[b]),
            "squared_error_sets": 3 * metrics.mean_squared_error(omega, own),
            "precision": metrics.precision_score(held, named, average="micro", zero_division=math.nan),
            "recall": metrics.recall_score(held, named, average="micro", zero_division=math.nan),
            "macro_precision": metrics.precision_score(held, named, average="samples", zero_division=math.nan),
            "macro_recall": metrics.recall_score(held, named, average="samples", zero_division=math.nan),
            "binary_cross_entropy": metrics.log_loss(held.ravel(), np.clip(own.ravel(), 1e-10, 1), labels=[0, 1]),
        }


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.5, 0.7]))
def test_measures_are_those_of_scikit_learn_and_scipy(seed, threshold):
    human, judges = drawn(seed)
    found = dict(zip(NAMES, judge_agreement(human, judges, threshold=threshold, ties="first"), strict=True))
    for place in range(3):
        one = replace(judges, choices=judges.choices[place], sets=judges.sets[place])
        for name, expected in of_library(human, one, threshold).items():
            near = 1e-6 if name in ("kl_judge_human", "js_distance", "binary_cross_entropy", "log_score") else 1e-8
            assert found[name][place] == pytest.approx(expected, abs=near, nan_ok=True), name


def test_brier_score_is_the_expected_squared_distance_from_one_rater():
    human, judges = drawn(0)
    direct = sum(
        human.choices[:, option] * ((judges.choices - np.eye(3)[option]) ** 2).sum(axis=-1) for option in range(3)
    ).mean(axis=-1)
    assert judge_agreement(human, judges, ["brier_score"])[0] == pytest.approx(direct)


@some
@given(st.integers(0, 2**32 - 1))
def test_neither_the_order_of_items_nor_of_options_matters(seed):
    human, judges = drawn(seed)
    before = judge_agreement(human, judges)
    rng = np.random.default_rng(seed)
    order = rng.permutation(12)
    moved = [replace(one, choices=one.choices[..., order, :], sets=one.sets[..., order, :]) for one in (human, judges)]
    assert judge_agreement(*moved) == pytest.approx(before, abs=1e-10, nan_ok=True)
    names = rng.permutation(3)
    options = tuple("abc"[place] for place in names)
    other = ResponseSets(options, THREE.sets)
    renamed = [RatingVectors.of_population(other, one.choices[..., names], one.sets) for one in (human, judges)]
    ordinal = [NAMES.index(name) for name in ("linear_kappa", "weighted_kappa")]  # these know an order of options
    after = judge_agreement(*renamed)
    same = np.delete(np.arange(len(NAMES)), ordinal)
    assert after[same] == pytest.approx(before[same], abs=1e-10, nan_ok=True)


@some
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any), st.integers(0, 2**32 - 1))
def test_weights_are_repeated_items(weights, seed):
    human, judges = drawn(seed)
    decision = Decision(("a", "b"), 0.6)
    measures = [*rating_measures(), *downstream_measures(decision)]
    rows = np.repeat(np.arange(12), weights)
    repeated = [
        RatingVectors.of_population(THREE, one.choices[..., rows, :], one.sets[..., rows, :]) for one in (human, judges)
    ]
    found = weighted_values(measures, Sides(human, judges), [weights, np.ones(12)])
    assert found[:, 0] == pytest.approx(weighted_values(measures, Sides(*repeated))[:, 0], abs=1e-10, nan_ok=True)
    assert found[:, 1] == pytest.approx(weighted_values(measures, Sides(human, judges))[:, 0], abs=1e-10, nan_ok=True)


def test_missing_items_are_left_out_for_each_judge_alone():
    human, judges = drawn(3)
    choices, sets = judges.choices.copy(), judges.sets.copy()
    choices[1, 4:], sets[1, 4:] = math.nan, math.nan
    choices[2], sets[2] = math.nan, math.nan
    found = judge_agreement(human, replace(judges, choices=choices, sets=sets))
    first = [
        replace(one, choices=one.choices[..., :4, :], sets=one.sets[..., :4, :],
                choice_noise=one.choice_noise[..., :4], endorsement_noise=one.endorsement_noise[..., :4])
        for one in (human, judges)
    ]  # fmt: skip
    assert found[:, 0] == pytest.approx(judge_agreement(human, judges)[:, 0], nan_ok=True)
    assert found[:, 1] == pytest.approx(judge_agreement(*first)[:, 1], nan_ok=True)
    assert np.isnan(found[:, 2]).all()


@pytest.mark.parametrize("ratings", [2, 5])
def test_what_sampling_a_judge_adds_to_its_squared_error_is_taken_off(ratings):
    """The mean over many draws is the population's error; without the correction a sampled judge looks worse."""
    truth = simulate(THREE, items=4, judges=1, seed=5, spread=(0.2, 0.2))
    human, judge = truth.human, truth.judges
    rng = np.random.default_rng(0)
    draws = 1500
    picks = [rng.multinomial(1, np.tile(judge.sets[0, item], (draws, ratings, 1))).argmax(-1) for item in range(4)]
    sampled = []
    for draw in range(draws):
        rows = [
            (item, number, sorted(THREE.sets[picks[item][draw, number]]))
            for item in range(4)
            for number in range(ratings)
        ]
        sampled.append(RatingVectors.of_ratings(THREE, sets=Ratings.from_rows(rows, THREE.options, sets=True)))
    stack = RatingVectors.stack(sampled)
    for name in ("squared_error_sets", "squared_error_choices", "brier_score"):
        exact = judge_agreement(human, judge, [name])[0, 0]
        if name != "squared_error_sets":  # choices follow from the sets by equal shares
            even = THREE.membership / THREE.membership.sum(axis=0)
            exact = judge_agreement(human, replace(judge, choices=judge.sets @ even.T), [name])[0, 0]
        corrected, plain = (judge_agreement(human, stack, [name], unbiased=flag)[0] for flag in (True, False))
        error = corrected.std() / math.sqrt(draws)
        assert abs(corrected.mean() - exact) < 4 * error
        assert plain.mean() - exact > 8 * error


def test_sampled_forced_choices_are_corrected_too():
    human = RatingVectors.of_population(ResponseSets.single(("a", "b")), [[0.7, 0.3]])
    rng = np.random.default_rng(1)
    counts = rng.multinomial(3, [0.6, 0.4], 4000)
    judges = RatingVectors.of_ratings(human.response_sets, Ratings.from_counts(counts, ("a", "b")))
    stack = replace(
        judges, choices=judges.choices[:, None], sets=judges.sets[:, None],
        choice_noise=judges.choice_noise[:, None], endorsement_noise=judges.endorsement_noise[:, None],
    )  # fmt: skip
    # .1^2 + .1^2 of the populations; three draws add 2 * .24 / 3 = .16.
    for name in ("squared_error_choices", "squared_error_sets"):
        assert judge_agreement(human, stack, [name])[0].mean() == pytest.approx(0.02, abs=0.015)
        assert judge_agreement(human, stack, [name], unbiased=False)[0].mean() == pytest.approx(0.18, abs=0.015)


def test_random_ties_are_seeded_and_expected_ones_are_their_mean():
    sets = ResponseSets.single(("a", "b"))
    human = RatingVectors.of_population(sets, np.full((400, 2), 0.5))
    judge = RatingVectors.of_population(sets, np.full((1, 400, 2), 0.5))
    random = [judge_agreement(human, judge, ["hit_rate"], ties="random", seed=seed)[0, 0] for seed in (1, 1, 7)]
    assert random[0] == random[1] != random[2]
    assert random[0] == pytest.approx(0.5, abs=0.1)
    expected = judge_agreement(human, judge, ["hit_rate", "squared_error_modes"], ties="expected")[:, 0]
    assert expected.tolist() == [0.5, 1.0]
    assert judge_agreement(human, judge, ["squared_error_modes"], ties="split")[0, 0] == 0.0
    assert judge_agreement(human, judge, ["hit_rate"], ties="first")[0, 0] == 1.0


def test_the_people_that_decisions_are_taken_by_may_be_others_than_those_of_agreement():
    truth = simulate(THREE, items=40, judges=2, error=0.4, skew=2.0, spread=(0.0, 0.0), seed=2)
    measures = downstream_measures(Decision(("a",), 0.5))
    own, other = (Sides(truth.human, truth.judges, target) for target in (truth.target, None))
    assert weighted_values(measures, own)[:, 0, 0].tolist() == [1.0, 0.0]  # the judges are the people without errors
    assert weighted_values(measures, other)[0, 0, 0] < 1.0


def test_a_loss_is_lower_for_the_better_judge():
    bias = downstream_measures(Decision(("a",)))[1]
    assert as_loss(bias, np.array([-0.2, 0.1])).tolist() == [0.2, 0.1]
    assert as_loss(MEASURES["hit_rate"], np.array([0.2])).tolist() == [-0.2]
    assert as_loss(MEASURES["js_distance"], np.array([0.2])).tolist() == [0.2]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=NAMES)
def test_every_measure_is_best_of_a_judge_equal_to_the_people_and_within_its_bounds(measure: RatingMeasure):
    human, judges = drawn(11, judges=30)
    same = replace(judges, choices=judges.choices.copy(), sets=judges.sets.copy())
    same.choices[0], same.sets[0] = human.choices, human.sets
    values = judge_agreement(human, same, [measure.name])[0]
    if measure.bounds is not None:
        assert np.nanmin(values) >= measure.bounds[0] - 1e-12
        assert np.nanmax(values) <= measure.bounds[1] + 1e-12
    if measure.name not in ("predictive_efficiency", "cross_entropy_judge_human", "coverage", "expected_coverage"):
        assert (
            as_loss(measure, values)[0] <= np.nanmin(as_loss(measure, values)) + 1e-12
        )  # those four reward other things


def test_what_does_not_fit_is_refused():
    human, judges = drawn(0)
    with pytest.raises(OptionError, match="did you mean 'hit_rate'"):
        rating_measures(["hit_rat"])
    with pytest.raises(DataError, match="do not fit"):
        Sides(human, human)
    with pytest.raises(DataError, match="do not fit"):
        Sides(drawn(0, items=5)[0], judges)


def test_sides_without_items_of_other_sets_or_with_odd_settings_are_refused():
    human, judges = drawn(0)
    other = RatingVectors.of_population(ResponseSets.every(("c", "b", "a")), human.choices, human.sets)
    for pair in (
        (human.at(np.zeros(12, dtype=bool)), judges.at(np.zeros(12, dtype=bool))),
        (human, judges, other),
        (human, judges, human.at([0])),
    ):
        with pytest.raises(DataError, match="do not fit"):
            Sides(*pair)
    for wrong in ({"threshold": math.nan}, {"threshold": 2.0}, {"epsilon": 0.0}):
        with pytest.raises(OptionError, match="threshold"):
            Sides(human, judges, **wrong)
    for weights in (np.ones((1, 3)), np.full((1, 12), -1.0), np.full((1, 12), math.nan)):
        with pytest.raises(DataError, match=r"give \(draws, 12\)"):
            weighted_values(rating_measures(["hit_rate"]), Sides(human, judges), weights)
