"""The clinic finds what was planted: policies, errors of the judge, noise of the raters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import rankdata

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.clinic import KINDS, disagreement_clinic, split_raters
from metricsmith.rating_model.ratings import Ratings

OPTIONS = ("no", "yes")


def ratings_of(table, options=OPTIONS):
    """Ratings of a table (items, raters) of places, -1 where there is none."""
    rows = [
        (item, f"r{rater}", options[place] if place >= 0 else None)
        for item, row in enumerate(table)
        for rater, place in enumerate(row)
    ]
    return Ratings.from_rows(rows, options)


def simulated(seed, items=80, noise=(0.1,) * 10, others=4, clause=0.2, missing=0.0, size=2, one_way=False):
    """Choices of raters of whom the last `others` follow a second policy, the clause's items, and a judge's answers.

    The second policy differs on a share `clause` of the items (with `one_way` on those only whose answer is yes). The
    judge follows the first and errs on .15 of the items.
    """
    random = np.random.default_rng(seed)
    first = random.integers(0, size, items)
    decides = random.random(items) < clause
    if one_way:
        decides &= first == 1
    second = np.where(decides, (first + 1) % size, first)
    raters = len(noise)
    meant = np.where(np.arange(raters) < raters - others, first[:, None], second[:, None])
    wrong = (meant + random.integers(1, size, meant.shape)) % size
    table = np.where(random.random(meant.shape) < noise, wrong, meant)
    table[random.random(meant.shape) < missing] = -1
    judge = np.where(random.random(items) < 0.15, (first + 1) % size, first)
    return table, decides, judge


def area_under_curve(scores, positive):
    ranks, count = rankdata(scores), positive.sum()
    return (ranks[positive].sum() - count * (count + 1) / 2) / (count * (~positive).sum())


UNEQUAL = tuple(np.linspace(0.05, 0.25, 12))
TWO_POLICIES = {
    "ten raters": {},
    "one in three": {"noise": (0.1,) * 15, "others": 5, "items": 100},
    "missing cells": {"noise": (0.1,) * 16, "others": 8, "missing": 0.3, "items": 100},
    "unequal noise": {"noise": UNEQUAL, "others": 5, "items": 100},
    "twenty noisy raters": {"noise": (0.2,) * 20, "others": 10, "items": 120},
    "three options": {"noise": (0.15,) * 12, "others": 5, "size": 3},
    "one way": {"noise": (0.1,) * 12, "others": 5, "clause": 0.4, "one_way": True, "items": 100},
}


@pytest.mark.parametrize(
    ("design", "seeds"),
    [
        pytest.param(next(iter(TWO_POLICIES.values())), 5, id="in short"),
        *(pytest.param(design, 20, id=name, marks=pytest.mark.slow) for name, design in TWO_POLICIES.items()),
    ],
)
def test_items_that_a_clause_decides_are_listed_first(design, seeds):
    first, found, areas = [], 0, []
    for seed in range(seeds):
        table, decides, judge = simulated(seed, **design)
        clinic = disagreement_clinic(
            ratings_of(table, tuple("abc")[: design.get("size", 2)]), ratings_of_judge(judge, design)
        )
        areas.append(area_under_curve(clinic.split.differs, decides))
        policy = [case.item for case in clinic.cases if case.kind == "unstated policy"]
        found += clinic.split.found
        assert bool(policy) <= clinic.split.found
        first += decides[policy].tolist()
        assert [case.item for case in clinic.cases[: len(policy)]] == policy
    assert np.mean(first) >= 0.8
    assert np.mean(areas) >= 0.9
    assert found >= 0.75 * seeds


def ratings_of_judge(judge, design=None):
    options = tuple("abc")[: design.get("size", 2)] if design is not None else OPTIONS
    return ratings_of(judge[:, None], options)


def one_policy(seed):
    """Raters of one policy; every other seed with unequal noise, every third with items that nobody can decide."""
    random = np.random.default_rng(seed)
    raters, items = int(random.integers(6, 21)), int(random.integers(40, 121))
    noise = random.uniform(0.05, 0.25, raters) if seed % 2 else np.full(raters, random.uniform(0.05, 0.25))
    truth = random.random(items) < random.choice([0.5, 0.8])
    wrong = random.random((items, raters)) < noise
    if seed % 3 == 0:
        wrong[: items // 10] = random.random((items // 10, raters)) < 0.5
    table = (truth[:, None] ^ wrong).astype(int)
    table[random.random(table.shape) < random.choice([0.0, 0.2, 0.4])] = -1
    return ratings_of(table)


def test_one_policy_is_seldom_taken_for_two():
    assert sum(split_raters(one_policy(seed), seed=seed).found for seed in range(12)) <= 1


@pytest.mark.slow
def test_one_policy_is_taken_for_two_in_at_most_a_twentieth_of_the_runs():
    runs = [split_raters(one_policy(seed), seed=seed) for seed in range(400)]
    assert np.mean([run.found for run in runs]) <= 0.05
    assert 0.03 <= np.mean([run.p_value <= 0.1 for run in runs]) <= 0.15


def test_groups_and_consistency_are_those_of_the_policies():
    table, _, _ = simulated(1, items=200, noise=(0.05, 0.05, 0.05, 0.05, 0.2, 0.05, 0.05, 0.2), others=3)
    split = split_raters(ratings_of(table))
    assert split.found
    assert split.groups == (("r0", "r1", "r2", "r3", "r4"), ("r5", "r6", "r7"))
    # The rater with noise .2 agrees with a mode that is almost always right in .8, the others in .95.
    np.testing.assert_allclose(split.consistency[[0, 4]], [0.95, 0.8], atol=0.06)


def test_errors_of_the_judge_and_noise_of_raters_are_told_apart_by_support():
    table = np.ones((12, 5), dtype=int)
    table[1, 0] = table[2, :2] = 0
    judge = np.ones(12, dtype=int)
    judge[:4] = 0
    judge[3] = 1
    clinic = disagreement_clinic(ratings_of(table), ratings_of_judge(judge))
    assert [(case.item, case.kind, case.strength) for case in clinic.cases] == [
        (0, "judge error", 1.0), (1, "judge error", 0.8), (2, "rater noise", 0.4),
    ]  # fmt: skip
    case = clinic.cases[2]
    assert case.judge == "no"
    assert case.raters == (("yes", ("r2", "r3", "r4")), ("no", ("r0", "r1")))
    assert case.reason == "2 of 5 raters said 'no', as the judge did"
    assert (clinic.items, clinic.left_out) == (12, 0)
    assert not clinic.split.found


def test_a_tie_on_either_side_that_holds_the_others_option_is_no_difference_and_is_counted():
    people = ratings_of(np.array([[0, 1], [1, 1], [0, 1]]))  # the judge: no; no and yes alike; no and yes alike
    clinic = disagreement_clinic(people, ratings_of(np.array([[0, 0], [0, 1], [0, 1]])))
    assert (clinic.cases, clinic.ties) == ((), 3)
    assert math.isnan(clinic.split.p_value)


def test_a_judge_differs_by_its_most_frequent_answer_alone():
    people = ratings_of(np.ones((2, 4), dtype=int))  # the judge: yes in 5 of 8 answers; no in 5 of 8
    clinic = disagreement_clinic(people, ratings_of(np.array([[1] * 5 + [0] * 3, [0] * 5 + [1] * 3])))
    assert [case.item for case in clinic.cases] == [1]
    assert clinic.cases[0].reason == "0 of 4 raters said 'no', as the judge did in 5 of 8 answers"
    assert clinic.ties == 0


def test_a_judge_of_two_minds_is_held_to_the_option_that_the_fewest_raters_chose():
    people = ratings_of(np.array([[2, 2, 2, 1]]), tuple("abc"))
    for answers in ([0, 1], [1, 0]):
        case = disagreement_clinic(people, ratings_of(np.array([answers]), tuple("abc"))).cases[0]
        assert (case.judge, case.kind) == ("a", "judge error")


def test_one_rating_tells_no_error_of_either_side():
    clinic = disagreement_clinic(ratings_of(np.array([[0], [1]])), ratings_of(np.array([[1, 1, 0], [1, 1, 1]])))
    assert [(case.item, case.kind) for case in clinic.cases] == [(0, "one rating")]
    assert clinic.cases[0].reason == "the one rater said otherwise than the judge in 2 of 3 answers"


def test_counts_are_looked_at_without_a_split():
    # Seven raters of one policy; numbered in the order of options within items they seemed to follow two.
    random = np.random.default_rng(0)
    yes = random.binomial(7, random.choice([0.2, 0.5, 0.8], 120))
    counts = Ratings.from_counts(np.column_stack([7 - yes, yes]), OPTIONS)
    judge = ratings_of_judge(random.integers(0, 2, 120))
    clinic = disagreement_clinic(counts, judge)
    assert clinic.split is None
    assert {case.kind for case in clinic.cases} == {"judge error", "rater noise"}
    assert len(clinic.cases) == ((yes > 3) != (judge.chosen == 1)).sum()
    with pytest.raises(DataError, match="two policies needs to know who rated, which counts do not say: give each"):
        split_raters(counts)
    with pytest.raises(DataError, match="two policies needs to know who rated"):
        split_raters(counts.of_items(counts.items[:9]).collapsed(["yes"]))


def test_a_policy_case_says_who_chose_what_by_group():
    table, decides, judge = simulated(0, items=60, noise=(0.0,) * 6 + (0.02,) * 4)
    cases = disagreement_clinic(ratings_of(table), ratings_of_judge(judge)).cases
    policy = [case for case in cases if case.kind == "unstated policy"]
    assert {case.item for case in policy} == set(np.flatnonzero(decides))
    assert policy[0].reason.startswith("of 6 raters of the first group 6 said '")
    assert "; of 4 raters of the second group 4 said '" in policy[0].reason
    assert all(case.strength >= 0.5 for case in policy)
    order = [KINDS.index(case.kind) for case in cases]
    assert order == sorted(order)


def test_the_order_of_options_items_and_raters_decides_nothing():
    table, _, _ = simulated(4, items=200, noise=(0.02,) * 10)
    split = split_raters(ratings_of(table))
    other = split_raters(ratings_of(1 - table[:, ::-1]))
    assert {frozenset(group) for group in split.groups} == {
        frozenset(f"r{9 - int(name[1:])}" for name in group) for group in other.groups
    }
    np.testing.assert_allclose(split.differs, other.differs, atol=1e-9)


def test_items_that_one_side_lacks_are_left_out_and_counted():
    table = np.array([[0, 0, 0], [0, 0, 0], [-1, -1, -1], [0, 0, 1]])
    judge = np.array([1, -1, 1, 0])
    clinic = disagreement_clinic(ratings_of(table), ratings_of_judge(judge))
    assert [case.item for case in clinic.cases] == [0]
    assert (clinic.items, clinic.left_out) == (2, 2)


def test_wrong_arguments_are_refused():
    people, judge = ratings_of(np.ones((5, 5), dtype=int)), ratings_of_judge(np.ones(5, dtype=int))
    with pytest.raises(DataError, match="the judge"):
        disagreement_clinic(people, ratings_of(np.ones((5, 1), dtype=int), ("no", "maybe")))
    with pytest.raises(DataError, match="no item"):
        disagreement_clinic(people, Ratings.from_rows([("x", "j", "yes")], OPTIONS))
    with pytest.raises(OptionError, match="support 0"):
        disagreement_clinic(people, judge, support=0.0)
    with pytest.raises(OptionError, match=r"99 draws cannot reach p = 0\.001: give at least 999"):
        split_raters(people, level=0.999, draws=99)
    with pytest.raises(OptionError, match="response sets"):
        split_raters(Ratings.from_rows([(0, 0, ["yes"])], OPTIONS, sets=True))
