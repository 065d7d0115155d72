"""The choice of a judge under other assumptions: beta and threshold, open response sets, raters, another sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import OptionError
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.selection import optimism, select_judge
from metricsmith.rating_model.vectors import Decision, RatingVectors

OPTIONS = ("yes", "no")
OPEN = ResponseSets.of(OPTIONS, [["yes"], ["no"], ["yes", "no"]])
CLOSED = ResponseSets.single(OPTIONS)
YES = Decision(("yes",), 0.5)


def counted(yes, ratings=10):
    """Forced choices: how many of so many ratings of each item say yes."""
    return Ratings.from_counts([[count, ratings - count] for count in yes], OPTIONS)


def hard(answers, sets=CLOSED):
    yes = np.asarray(answers, dtype=float)
    return RatingVectors.of_population(sets, np.stack([yes, 1 - yes], axis=-1))


def select(human, judges, **changes):
    given = {"response_sets": OPEN, "decision": YES, "measures": ["hit_rate"], "draws": 100} | changes
    return select_judge(human, {f"j{place}": judge for place, judge in enumerate(judges)}, **given)


def test_the_sweep_gives_people_and_judges_the_same_beta():
    # Omega of yes is O + beta (1 - O). People: .4 on 20 items, .1 on 20; j0 is their copy, j1 says .3 and .3.
    people = [4] * 20 + [1] * 20
    found = select(
        counted(people), [counted(people), counted([3] * 40)], betas=np.array([0, 0.2, 0.4]), thresholds=[0.5]
    )
    assert [cell.value for cell in found.sweep] == [1.0, 1.0, 1.0]
    # Beta 0: nothing is positive. .2: people's .52 is, .28 is not. .4: .64 is, .46 is not; j1's .58 is everywhere.
    assert [cell.prevalence for cell in found.sweep] == [0.0, 0.5, 0.5]
    assert [cell.best for cell in found.sweep] == ["", "j0", "j0"]  # where nothing is positive all judges are alike
    assert all(cell.picks["hit_rate"] == ("j0", 1.0) for cell in found.sweep)
    assert [(cell.beta, cell.threshold) for cell in found.sweep] == [(0, 0.5), (0.2, 0.5), (0.4, 0.5)]


def test_the_sweep_shows_where_the_choice_flips():
    # At beta 0 people's .4 is below .5: j0 (.2) is right and j1 (.7) wrong. At beta .2 people reach .52: j1 is right.
    human, judges = counted([4] * 30), [counted([2] * 30), counted([7] * 30)]
    found = select(human, judges, betas=[0, 0.2], thresholds=[0.3, 0.5])
    cells = {(cell.beta, cell.threshold): (cell.best, cell.value) for cell in found.sweep}
    assert cells == {(0, 0.3): ("j1", 1.0), (0, 0.5): ("j0", 1.0), (0.2, 0.3): ("", 1.0), (0.2, 0.5): ("j1", 1.0)}
    assert (found.pick, found.verdict) == ("j0", "depends")
    assert any("best judge in use for 1 of 3 pairs" in reason for reason in found.reasons)
    assert "at beta 0 and threshold 0.3 it is j1" in " ".join(found.reasons)


def test_of_judges_equally_good_downstream_the_chosen_one_is_named():
    # Two are right at every threshold, and j1 is nearer by squared error; j2 never is.
    human, judges = counted([8] * 30), [counted([10] * 30), counted([8] * 30), counted([0] * 30)]
    found = select(human, judges, by="squared_error_sets", thresholds=[0.3, 0.5], response_sets=CLOSED)
    assert found.pick == "j1"
    assert {cell.best for cell in found.sweep} == {"j1"}


def test_a_lead_is_robust_only_where_it_keeps_its_sign():
    # People always choose yes, so do j0's ratings; j1 always says no, and could have meant yes as well.
    people = [10] * 20 + [0] * 20
    judges = [people, [0] * 40, [10] * 30 + [0] * 10]
    open_sets = select(counted(people), [counted(one) for one in judges])
    leads = {rival.judge: rival for rival in open_sets.rivals}
    # Items with yes: people and j0 are positive whatever they meant; j1 is negative or not. Items with no are open on
    # all sides: people, j0 and j1 may mean yes as well, so each item's difference is -1 to 1.
    assert (leads["j1"].low, leads["j1"].high) == (-0.5, 1.0)
    assert not leads["j1"].robust
    assert open_sets.verdict == "depends"
    assert "depending on the response sets behind them" in " ".join(open_sets.reasons)
    closed = select(counted(people), [counted(one) for one in judges], response_sets=CLOSED)
    leads = {rival.judge: rival for rival in closed.rivals}
    assert [(rival.low, rival.high, rival.robust) for rival in leads.values()] == [(0.5, 0.5, True), (0.25, 0.25, True)]
    assert closed.verdict == "chosen"
    assert not any("response sets" in reason for reason in closed.reasons)


def test_a_lead_that_no_response_set_can_turn_is_said_to_be_so():
    # 30 choices of yes, and 10 of no that may hide yes, from people and j0; j1 is known to mean no alone.
    both, no = counted([10] * 30 + [0] * 10), RatingVectors.of_population(OPEN, [[0, 1]] * 40, [[0, 1, 0]] * 40)
    found = select(both, [both, no])
    assert (found.rivals[0].low, found.rivals[0].high) == (0.5, 1.0)  # (30 - 10) / 40 and (30 + 10) / 40
    assert found.verdict == "chosen"
    assert "its lead keeps its sign whatever response sets lie behind the choices" in found.reasons


@pytest.mark.parametrize("by", ["squared_error_sets", "decision_consistency"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_the_lead_lies_within_its_bounds_for_judges_with_few_ratings(by, beta):
    rng = np.random.default_rng(5)
    human = counted(rng.integers(0, 11, 30))
    judges = [counted(rng.integers(0, m + 1, 30), m) for m in (2, 5, 20)]
    sets = Ratings.from_rows(
        [(item, rater, [OPTIONS[(item + rater) % 2]]) for item in range(30) for rater in range(3)], OPTIONS, sets=True
    )
    for rival in select(human, [*judges, sets], by=by, beta=beta).rivals:
        assert rival.low - 1e-9 <= rival.lead <= rival.high + 1e-9
    closed = select(human, judges, by=by, response_sets=CLOSED)
    for rival in closed.rivals:
        assert (rival.low, rival.high) == pytest.approx((rival.lead, rival.lead))


def test_a_target_that_decisions_are_taken_by_has_no_bounds_and_is_not_drawn():
    rng = np.random.default_rng(6)
    human, target = counted(rng.integers(0, 4, 40), 3), hard(rng.random(40) < 0.5)
    judges = [hard(rng.random(40) < 0.5) for _ in range(2)]
    plain, drawn = (
        select(human, judges, target=target, response_sets=CLOSED, raters=raters, seed=1) for raters in (False, True)
    )
    assert all(np.isnan(rival.low) for rival in plain.rivals)
    assert plain.result("decision_consistency") == drawn.result("decision_consistency")
    assert plain.result("hit_rate") != drawn.result("hit_rate")


def test_raters_are_drawn_with_the_items():
    rng = np.random.default_rng(7)
    truth = rng.random(60)
    human = counted(rng.binomial(3, truth), 3)
    judges = [hard(truth + rng.normal(0, spread, 60) > 0.5) for spread in (0.1, 0.2)]
    plain, drawn = (select(human, judges, response_sets=CLOSED, raters=raters, draws=400) for raters in (False, True))
    for one, other in zip(plain.results, drawn.results, strict=True):
        assert [figure.value for figure in one.figures] == [figure.value for figure in other.figures]
        assert [figure.interval for figure in one.figures] == [figure.interval for figure in other.figures]
    for name in ("hit_rate", "decision_consistency"):
        figures = plain.result(name).figures, drawn.result(name).figures
        assert max(f.best for f in figures[1]) != max(f.best for f in figures[0])
        own = next(f for f in figures[1] if f.judge == drawn.result(name).pick)
        assert drawn.result(name).corrected <= own.value  # other raters agree less, which is not the choice's doing


def test_one_rating_of_each_item_leaves_no_raters_to_draw():
    rng = np.random.default_rng(8)
    human = counted(rng.integers(0, 2, 30), 1)
    judges = [hard(rng.random(30) < 0.5) for _ in range(2)]
    plain, drawn = (select(human, judges, response_sets=CLOSED, raters=raters) for raters in (False, True))
    assert plain.results == drawn.results
    assert any("30 of 30 items have one human rating" in note for note in plain.notes)


def test_a_bias_is_corrected_by_its_size():
    rng = np.random.default_rng(9)
    people = rng.random(50) < 0.5
    judges = [people ^ (rng.random(50) < 0.3) for _ in range(6)]
    result = select(hard(people), list(map(hard, judges)), response_sets=CLOSED).result("prevalence_bias")
    own = next(figure for figure in result.figures if figure.judge == result.pick)
    assert abs(own.value) == min(abs(figure.value) for figure in result.figures)
    assert result.corrected > abs(own.value)


@pytest.mark.parametrize("judges", [2, 5, 20])
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test_the_correction_removes_what_choosing_adds(judges, spread):
    # Values of judges whose truth spreads by so many standard errors; naive is what the pick looks better by.
    rng = np.random.default_rng(judges)
    naive, left = np.empty(600), np.empty(600)
    for run in range(600):
        truth = rng.normal(0, spread, judges)
        lost = truth + rng.normal(0, 1, judges)
        pick = lost.argmin()
        naive[run] = truth[pick] - lost[pick]
        left[run] = naive[run] - optimism(lost, lost + rng.normal(0, 1, (200, judges)))
    assert naive.mean() > 0.15
    assert abs(left.mean()) < 0.2 * naive.mean() + 0.08


def test_judges_that_are_alike_far_apart_or_alone_need_no_correction():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(100, 1))
    assert optimism(np.zeros(3), common + np.zeros(3)) == pytest.approx(0.0, abs=0.3)
    assert optimism(np.array([0.0, 50.0]), np.array([0.0, 50.0]) + rng.normal(size=(100, 2))) == pytest.approx(
        0, abs=0.01
    )
    assert optimism(np.array([0.0, np.nan]), np.zeros((5, 2))) == 0.0
    assert np.isnan(optimism(np.zeros(2), np.full((5, 2), np.nan)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_the_correction_moves_with_the_scale_and_not_with_the_level(seed, shift, scale):
    rng = np.random.default_rng(seed)
    lost = rng.normal(size=4)
    drawn = lost + rng.normal(size=(50, 4))
    own = optimism(lost, drawn)
    assert own >= 0
    assert optimism(lost * scale + shift, drawn * scale + shift) == pytest.approx(own * scale, abs=1e-9)
    assert optimism(lost, drawn + shift) == pytest.approx(own, abs=1e-9)


def test_two_equal_judges_are_seldom_told_apart_and_the_pick_is_not_flattered():
    chosen, naive, left = 0, [], []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        people = rng.random(60) < 0.4
        judges = [hard(people ^ (rng.random(60) < 0.2)) for _ in range(2 + 3 * (seed % 2))]
        found = select(hard(people), judges, response_sets=CLOSED, measures=[], seed=seed)
        chosen += found.verdict == "chosen"
        result = found.result("decision_consistency")
        own = next(figure.value for figure in result.figures if figure.judge == found.pick)
        naive.append(own - 0.8)
        left.append(result.corrected - 0.8)
    assert chosen <= 10
    assert np.mean(naive) > 0.03
    assert abs(np.mean(left)) < 0.4 * np.mean(naive)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_values_lie_inside_their_intervals_and_bounds_on_any_small_data(seed):
    rng = np.random.default_rng(seed)
    options = ("a", "b", "c")

    def ratings(sets):
        given = [[option for option in options if rng.random() < 0.5] or ["a"] for _ in range(24)]
        rows = [(place // 3, place % 3, answer if sets else answer[-1]) for place, answer in enumerate(given)]
        return Ratings.from_rows([(*row[:2], None) if rng.random() < 0.1 else row for row in rows], options, sets=sets)

    def side():
        kind = rng.integers(3)
        return ratings(kind == 1) if kind < 2 else (ratings(False), ratings(True))

    decision = Decision(
        ("a", "b")[: rng.integers(1, 3)], rng.choice([0.3, 0.5, 1.0]), rng.choice(["any", "max", "sum"])
    )
    found = select(
        side(), [side() for _ in range(3)], response_sets=ResponseSets.every(options), decision=decision, draws=20,
        beta=0.3, measures=None, by=rng.choice(["squared_error_sets", "decision_consistency", "hit_rate"]),
    )  # fmt: skip
    for result in found.results:
        for figure in result.figures:
            assert not figure.interval.low > figure.value + 1e-9
            assert not figure.interval.high < figure.value - 1e-9
    for rival in found.rivals:
        for low, high in ((rival.low, rival.high), (rival.interval.low, rival.interval.high)):
            assert not low > rival.lead + 1e-9
            assert not high < rival.lead - 1e-9


def test_without_response_sets_choices_are_whole_opinions_that_nobody_declared_and_vectors_have_theirs():
    human, judges = counted([8] * 30 + [2] * 30), {"right": counted([8] * 30 + [2] * 30), "wrong": counted([1] * 60)}
    found = select_judge(human, judges, decision=Decision(("yes",)), draws=50)
    assert (found.pick, found.verdict, found.declared, found.sets_known) == ("right", "depends", False, False)
    declared = select_judge(human, judges, decision=Decision(("yes",)), draws=50, response_sets=CLOSED)
    assert (declared.verdict, declared.declared) == ("chosen", True)
    known = {name: RatingVectors.of_ratings(CLOSED, one) for name, one in judges.items()}
    found = select_judge(RatingVectors.of_ratings(CLOSED, human), known, decision=Decision(("yes",)), draws=50)
    assert (found.verdict, found.declared, found.sets_known) == ("chosen", True, True)
    with pytest.raises(OptionError, match="ratings of people are a list"):
        select_judge([("a", "r", "yes")], judges)
