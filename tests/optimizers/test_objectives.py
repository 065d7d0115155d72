"""Credits add up to the statistics that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import OptionError
from metricsmith.optimizers.objectives import OBJECTIVES, Case, Objective, mean_of, objective
from metricsmith.stats.agreement import balanced_accuracy, cohen_kappa, concordance_index, f1, quadratic_kappa
from metricsmith.stats.correlation import kendall_tau_b, pearson, spearman

NUMBERS = sorted(name for name, goal in OBJECTIVES.items() if goal.answers == "number")
LEVELS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=4, max_size=40)


def mean_credit(goal, x, y, *, start=0.0, span=4.0):
    """The mean credit when all other rows are peers."""
    return float(np.mean([credit(goal, x, y, row, start=start, span=span) for row in range(len(x))]))


def credit(goal, x, y, row, *, start=0.0, span=4.0):
    others = np.arange(len(x)) != row
    return goal.credit(Case(x[row], y[row], x[others], y[others], y, span, start))


def columns(pairs):
    x, y = np.array(pairs, dtype=float).T
    return x, y


@settings(deadline=None)
@given(st.permutations(range(12)))
def test_concordance_is_tau_without_ties(order):
    x, y = np.array(order, dtype=float), np.arange(12.0)
    assert mean_credit(OBJECTIVES["kendall_tau_b"], x, y) == pytest.approx((kendall_tau_b(x, y) + 1) / 2)


@settings(deadline=None)
@given(LEVELS)
def test_the_pairs_behind_concordance_are_those_of_pairwise_accuracy(pairs):
    x, y = columns(pairs)
    weights = np.array([(y != rating).sum() for rating in y], dtype=float)
    if not weights.any():
        return
    credits = [credit(OBJECTIVES["pairwise_accuracy"], x, y, row) for row in range(len(x))]
    assert float(np.average(credits, weights=weights)) == pytest.approx(concordance_index(x, y))


@settings(deadline=None)
@given(st.permutations(range(30)))
def test_rank_products_are_spearman_for_many_rows(order):
    x, y = np.array(order, dtype=float), np.arange(30.0)
    # u = (2 rank - n - 1) / (2 (n - 1)): the mean of u v is rho / 12 times (n + 1) / (n - 1).
    assert mean_credit(OBJECTIVES["spearman"], x, y) == pytest.approx(0.5 + spearman(x, y) / 6 * 31 / 29)


def test_score_products_are_pearson():
    random = np.random.default_rng(0)
    y = random.uniform(size=40)  # no product of standard scores is beyond 4, where credits are cut
    x = 0.5 * y + random.uniform(size=40)
    assert mean_credit(OBJECTIVES["pearson"], x, y) == pytest.approx(0.5 + pearson(x, y) / 8)


@settings(deadline=None)
@given(LEVELS)
def test_agreement_beyond_chance_is_the_numerator_of_kappa(pairs):
    x, y = columns(pairs)
    observed = float((x == y).mean())
    chance = sum(float((x == label).mean() * (y == label).mean()) for label in range(1, 6))
    assert mean_credit(OBJECTIVES["kappa"], x, y) == pytest.approx(0.5 + (observed - chance) / 2)
    if chance < 1:
        assert cohen_kappa(x, y) == pytest.approx((observed - chance) / (1 - chance), nan_ok=True)


@settings(deadline=None)
@given(LEVELS)
def test_closeness_is_the_observed_distance_of_quadratic_kappa(pairs):
    x, y = columns(pairs)
    apart = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    if apart:
        distance = 16 * (1 - mean_credit(OBJECTIVES["quadratic_kappa"], x, y))
        assert quadratic_kappa(x, y) == pytest.approx(1 - distance / apart, abs=1e-9)


@settings(deadline=None)
@given(LEVELS)
def test_balanced_hits_are_balanced_accuracy_times_a_constant(pairs):
    x, y = columns(pairs)
    sizes = np.unique(y, return_counts=True)[1]
    if sizes.size > 1:
        constant = sizes.size * sizes.min() / len(y)
        assert mean_credit(OBJECTIVES["balanced_accuracy"], x, y) == pytest.approx(balanced_accuracy(x, y) * constant)


def test_the_part_of_a_row_in_f1_by_hand():
    # Ratings 1, 1, 2: label 2 is the rarest. Before tuning F = .4.
    y = np.array([1.0, 1.0, 2.0])
    goal = OBJECTIVES["f1"]

    def part(value, rating):
        return goal.credit(Case(value, rating, y[:0], y[:0], y, 1.0, 0.4))

    assert part(2, 2) == pytest.approx(1.0)  # .4 + .6 x 1
    assert part(1, 1) == pytest.approx(0.7)  # .4 + .6 x 1/2
    assert part(1, 2) == pytest.approx(0.4 * (1 - 0.75))  # false for both: (1 + 1/2) / 2
    assert part(3, 2) == pytest.approx(0.0)  # a label that nobody gives weighs as the rarest


def test_f1_gains_are_above_the_start_exactly_where_f1_is_for_balanced_labels():
    random = np.random.default_rng(1)
    y = np.repeat([1.0, 2.0], 20)
    for flips in (2, 5, 10):
        x = y.copy()
        wrong = np.concatenate([random.choice(20, flips, replace=False), 20 + random.choice(20, flips, replace=False)])
        x[wrong] = 3 - x[wrong]
        reached = f1(x, y)
        assert mean_credit(OBJECTIVES["f1"], x, y, start=reached) == pytest.approx(reached)
        assert mean_credit(OBJECTIVES["f1"], x, y, start=reached - 0.1) > reached - 0.1
        assert mean_credit(OBJECTIVES["f1"], x, y, start=reached + 0.1) < reached + 0.1


@settings(deadline=None)
@given(st.sampled_from(NUMBERS), LEVELS, st.floats(0, 1))
def test_credits_lie_in_the_unit_interval(name, pairs, start):
    x, y = columns(pairs)
    for row in range(len(x)):
        assert 0 <= credit(OBJECTIVES[name], x, y, row, start=start) <= 1


@pytest.mark.parametrize("name", ["kendall_tau_b", "spearman", "pearson", "pairwise_accuracy"])
def test_rank_objectives_do_not_mind_another_part_of_the_scale(name):
    random = np.random.default_rng(2)
    y = random.integers(1, 6, 30).astype(float)
    x = np.clip(y + random.integers(-1, 2, 30), 1, 5)
    assert mean_credit(OBJECTIVES[name], x, y) == pytest.approx(mean_credit(OBJECTIVES[name], 10 + 2 * x, y))
    assert mean_credit(OBJECTIVES["quadratic_kappa"], x, y) > mean_credit(OBJECTIVES["quadratic_kappa"], x + 1, y)


def test_a_constant_judge_gets_no_credit_beyond_chance():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    for name in ("kendall_tau_b", "spearman", "pearson", "pairwise_accuracy"):
        assert mean_credit(OBJECTIVES[name], np.full(4, 3.0), y) == 0.5


def test_a_function_is_an_objective_whose_credit_is_its_value_among_the_peers():
    def share_of_hits(predictions, ratings):
        return float((predictions == ratings).mean())

    goal = objective(share_of_hits)
    assert (goal.name, goal.peers) == ("share_of_hits", True)
    case = Case(1.0, 1.0, np.array([2.0]), np.array([3.0]), np.array([1.0, 3.0]), 4.0, 0.0)
    assert goal.credit(case) == pytest.approx(0.75)  # one of two hits is .5, and (.5 + 1) / 2
    undefined = objective(lambda predictions, ratings: float("nan"))
    assert undefined.credit(case) == 0.0


def test_a_mean_is_its_own_credit():
    goal = mean_of("yield")
    assert goal.statistic(np.array([0.2, 0.4]), np.zeros(2)) == pytest.approx(0.3)
    assert goal.credit(Case(0.7, 0.0, np.zeros(0), np.zeros(0), np.zeros(2), 1.0, 0.0)) == 0.7


def test_names_and_objectives_are_read_and_anything_else_is_refused():
    assert objective("spearman") is OBJECTIVES["spearman"]
    own = Objective("own", kendall_tau_b, lambda case: 0.5)
    assert objective(own) is own
    with pytest.raises(OptionError, match="did you mean 'kendall_tau_b'"):
        objective("kendall_tau")
    with pytest.raises(OptionError, match="or a function"):
        objective(3)
