"""The choice of a judge: values, draws, what a pick costs, the sweep, and what choices leave open."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.measures import judge_agreement
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.selection import select_judge
from metricsmith.rating_model.vectors import Decision, RatingVectors
from metricsmith.stats.resampling import bootstrap_weights, group_mean_interval, jackknife_interval, share_interval

TWO = ResponseSets.single(("yes", "no"))
OPEN = ResponseSets.of(("yes", "no"), [["yes"], ["no"], ["yes", "no"]])
YES = Decision(("yes",), 0.5)
CORE = ["hit_rate", "cohen_kappa", "squared_error_sets"]


def hard(answers, sets=TWO):
    """Vectors of one answer per item, 1 for yes."""
    yes = np.asarray(answers, dtype=float)
    return RatingVectors.of_population(sets, np.stack([yes, 1 - yes], axis=-1))


def soft(shares):
    """Shares of the sets yes, no, and both; half of those who mean both choose yes."""
    theta = np.asarray(shares, dtype=float)
    return RatingVectors.of_population(OPEN, theta @ [[1, 0], [0, 1], [0.5, 0.5]], theta)


def noisy(n=40, wrong=(0.1, 0.25, 0.3), seed=0):
    rng = np.random.default_rng(seed)
    people = rng.random(n) < 0.4
    return people, [people ^ (rng.random(n) < share) for share in wrong]


def select(people, judges, **settings):
    given = {"response_sets": TWO, "decision": YES, "measures": CORE, "draws": 200} | settings
    return select_judge(people, {f"j{place}": judge for place, judge in enumerate(judges)}, **given)


@pytest.fixture(scope="module")
def usual():
    people, judges = noisy()
    groups = (np.arange(40) // 4).tolist()
    return people, judges, groups, select(hard(people), list(map(hard, judges)), groups=groups, seed=3)


def test_each_kind_of_figure_has_the_interval_that_it_has_everywhere(usual):
    people, judges, groups, found = usual
    right = np.array(judges) == people
    sides = hard(people), RatingVectors.stack(list(map(hard, judges)))
    for place in range(3):
        by = {result.name: result.figures[place] for result in found.results}
        assert by["hit_rate"].interval == share_interval(right[place], groups)
        assert by["decision_consistency"].interval == share_interval(right[place], groups)
        error = group_mean_interval(2.0 * ~right[place], groups)
        assert (by["squared_error_sets"].interval.low, by["squared_error_sets"].interval.high) == pytest.approx(
            (error.low, error.high)
        )
        without = [np.flatnonzero(np.array(groups) != group) for group in range(10)]
        kappas = [judge_agreement(sides[0].at(rows), sides[1].at(rows), ["cohen_kappa"])[0, place] for rows in without]
        kappa = jackknife_interval(by["cohen_kappa"].value, kappas, bounds=(-1.0, 1.0))
        assert by["cohen_kappa"].interval.low == pytest.approx(kappa.low)
        assert by["cohen_kappa"].interval.high == pytest.approx(kappa.high)
    assert (found.items, found.groups) == (40, 10)


def test_a_mean_of_shares_gets_the_interval_of_a_mean():
    rng = np.random.default_rng(0)
    people, judges = soft(rng.dirichlet([2, 2, 2], 60)), [soft(rng.dirichlet([2, 2, 2], 60)) for _ in range(2)]
    found = select(people, judges, response_sets=OPEN, measures=["expected_coverage"])
    terms = (people.endorsements * judges[0].modes()).sum(axis=1)
    expected = group_mean_interval(terms, bounds=(0.0, 1.0))
    assert found.results[0].figures[0].interval.low == pytest.approx(expected.low)
    assert found.results[0].figures[0].interval.high == pytest.approx(expected.high)


def test_a_lead_is_paired_and_leaves_out_groups(usual):
    people, judges, groups, found = usual
    right = np.array(judges) == people
    assert found.pick == "j0"
    for rival in found.rivals:
        gap = right[0].astype(float) - right[int(rival.judge[1])]
        assert rival.lead == pytest.approx(gap.mean())
        assert rival.interval == group_mean_interval(gap, groups, bounds=(-1.0, 1.0))


@pytest.mark.parametrize("by", ["cohen_kappa", "prevalence_bias"])
def test_a_lead_by_another_measure_leaves_out_groups(usual, by):
    people, judges, groups, _ = usual
    found = select(hard(people), list(map(hard, judges)), groups=groups, by=by)

    def lost(rows):
        if by == "prevalence_bias":
            return [abs(judge[rows].mean() - people[rows].mean()) for judge in judges]
        return -judge_agreement(hard(people[rows]), RatingVectors.stack([hard(one[rows]) for one in judges]), [by])[0]

    everything, own = np.array(lost(np.arange(40))), int(found.pick[1])
    assert everything[own] == everything.min()
    without = np.array([lost(np.flatnonzero(np.array(groups) != group)) for group in range(10)])
    for rival in found.rivals:
        gaps = without[:, int(rival.judge[1])] - without[:, own]
        expected = jackknife_interval(everything[int(rival.judge[1])] - everything[own], gaps)
        assert (rival.interval.low, rival.interval.high) == pytest.approx((expected.low, expected.high))


def test_draws_are_joint_and_paired_as_if_the_rows_had_been_drawn(usual):
    people, judges, groups, found = usual
    drawn = bootstrap_weights(groups, 200, 3).astype(int)
    best, regret = np.zeros(3), 0.0
    use = np.array([np.mean(judge == people) for judge in judges])
    for row in drawn:
        rows = np.repeat(np.arange(40), row)
        kappas = judge_agreement(
            hard(people[rows]), RatingVectors.stack([hard(one[rows]) for one in judges]), ["cohen_kappa"]
        )[0]
        winners = kappas >= kappas.max() - 1e-12
        best += winners / winners.sum()
        regret += use.max() - use[winners].mean()
    result = found.result("cohen_kappa")
    assert [figure.best for figure in result.figures] == pytest.approx(best / 200)
    assert result.expected_regret == pytest.approx(regret / 200)


def test_equal_judges_share_every_draw_and_the_first_is_taken_but_not_chosen():
    people, judges = noisy()
    found = select(hard(people), [hard(judges[0])] * 2 + [hard(~people)])
    assert (found.pick, found.verdict) == ("j0", "undecided")
    for result in found.results:
        first, second, wrong = (figure.best for figure in result.figures)
        assert first == second == pytest.approx((1 - wrong) / 2)
        assert wrong == 0 or result.name == "prevalence_bias"
    assert found.rivals[0].lead == 0
    assert not found.rivals[0].robust


def test_the_pick_downstream_costs_what_the_best_judge_has_more():
    # j0 misses 2 of 10 yes, j1 calls 5 of 30 no yes, j2 is always wrong.
    people = np.arange(40) < 10
    judges = [people.copy(), people.copy(), ~people]
    judges[0][:2], judges[1][10:15] = False, True
    found = select(hard(people), list(map(hard, judges)), measures=["hit_rate"])
    hits = found.result("hit_rate")
    assert (hits.pick, hits.downstream, hits.regret) == ("j0", 0.95, 0.0)
    assert hits.regret_interval.low == 0.0
    gap = (judges[1] == people).astype(float) - (judges[0] == people)
    assert hits.regret_interval.high == pytest.approx(group_mean_interval(gap, bounds=(-1.0, 1.0)).high)


def test_a_sure_regret_is_named_and_its_interval_is_above_0():
    # Omega of yes: people .6, j0 .6, j1 .45. Choices of yes: .3, .45 and .225, so that j1 looks closer.
    people = soft([[0.0, 0.4, 0.6]] * 30)
    close, far = soft([[0.3, 0.4, 0.3]] * 30), soft([[0.0, 0.55, 0.45]] * 30)
    found = select(people, [close, far], response_sets=OPEN, measures=["squared_error_choices", "squared_error_sets"])
    result = found.result("squared_error_choices")
    assert (result.pick, result.regret) == ("j1", 1.0)
    assert result.regret_interval.low > 0
    assert found.pick == "j0"
    assert any("choosing by squared error choices would have taken j1" in reason for reason in found.reasons)


def test_the_rank_correlation_is_scipys_and_its_interval_never_a_point():
    people, judges = noisy(wrong=(0.1, 0.2, 0.3, 0.4))
    found = select(hard(people), list(map(hard, judges)))
    kappas, use = found.result("cohen_kappa"), found.result("decision_consistency")
    expected = spearmanr([figure.value for figure in kappas.figures], [figure.value for figure in use.figures])
    assert kappas.rank_correlation == pytest.approx(expected.statistic)
    errors = found.result("squared_error_sets")  # here a function of consistency: lower errors, higher consistency
    assert errors.rank_correlation == pytest.approx(1.0)
    bias = found.result("prevalence_bias")
    assert bias.rank_interval.low < bias.rank_correlation <= bias.rank_interval.high <= 1
    assert bias.rank_interval.draws == 200


def test_a_judge_without_a_value_spoils_nothing():
    # j1 endorses nothing at a threshold of .6, j2 one item only: precision is undefined, always or in some draws.
    rng = np.random.default_rng(1)
    people = rng.random(30) < 0.5
    even = np.full(30, 0.5)
    once = even.copy()
    once[0] = 1.0
    judges = [hard(people ^ (rng.random(30) < 0.2)), hard(even), hard(once)]
    found = select(hard(people), judges, decision=Decision(("yes",), 0.6), measures=["precision", "macro_precision"])
    for name in ("precision", "macro_precision"):
        result = found.result(name)
        assert math.isnan(result.figures[1].value)
        assert math.isnan(result.figures[1].interval.low)
        assert result.figures[1].best == 0
        assert math.isfinite(result.corrected)
        assert result.corrected <= next(one.value for one in result.figures if one.judge == result.pick)
    assert sum(figure.best for figure in result.figures) == pytest.approx(1.0)


def test_a_measure_that_no_judge_has_is_nan_throughout_or_an_error():
    people = hard(np.full(20, 0.5))
    found = select(people, [people, people], decision=Decision(("yes",), 0.6), measures=["precision", "hit_rate"])
    result = found.results[0]
    assert result.pick == ""
    assert all(math.isnan(figure.value) and math.isnan(figure.best) for figure in result.figures)
    assert math.isnan(result.corrected + result.regret + result.rank_correlation)
    with pytest.raises(DataError, match="no judge has a value of precision"):
        select(people, [people, people], decision=Decision(("yes",), 0.6), by="precision")


def test_shares_a_rounding_error_outside_their_bounds_are_no_bad_data():
    sets = ResponseSets.of(("yes", "no"), [["yes"], ["yes", "no"]])
    theta = np.random.default_rng(0).dirichlet([1, 1], 200)
    theta[:, 1] += 1e-9  # sums of 1.000000001 are still distributions
    sides = RatingVectors.of_population(sets, np.tile([1.0, 0.0], (200, 1)), theta)
    found = select(sides, [sides, sides], response_sets=sets, measures=["expected_coverage"])
    assert found.results[0].figures[0].interval.high <= 1


def test_what_makes_no_sense_is_refused():
    people, judges = noisy(12)
    given = hard(people), list(map(hard, judges))
    with pytest.raises(OptionError, match="decision_consistency needs a decision"):
        select(*given, decision=None, by="decision_consistency")
    with pytest.raises(OptionError, match=r"unknown measure 'hitrate'.*did you mean 'hit_rate'"):
        select(*given, by="hitrate")
    with pytest.raises(OptionError, match="level 95"):
        select(*given, level=95)
    with pytest.raises(OptionError, match="0 resamples"):
        select(*given, draws=0)
    with pytest.raises(OptionError, match="no raters to draw"):
        select(*given, raters=True)


def test_a_selection_is_plain_data_and_repeats_itself(usual):
    people, judges, groups, found = usual
    again = select(hard(people), list(map(hard, judges)), groups=groups, seed=3)
    assert json.dumps(again.as_dict()) == json.dumps(found.as_dict())
    assert found.settings["response_sets"] == [["yes"], ["no"]]
    without = select(hard(people), list(map(hard, judges)), decision=None)
    assert (without.by, without.sweep) == ("squared_error_sets", ())
    assert math.isnan(without.results[0].regret)


def test_ratings_name_items_raters_and_groups():
    rows = [(f"i{item}", rater, ("yes", "no")[(item + rater) % 3 == 0]) for item in range(12) for rater in range(3)]
    human = Ratings.from_rows(rows, ("yes", "no"), groups={f"i{item}": item % 4 for item in range(12)})
    found = select(human, [human, Ratings.from_rows(rows[:-1], ("yes", "no"))], measures=["hit_rate"])
    assert (found.items, found.groups) == (12, 4)
    with pytest.raises(DataError, match="choices have options"):
        select(human, [human, Ratings.from_rows(rows, ("no", "yes"))])
