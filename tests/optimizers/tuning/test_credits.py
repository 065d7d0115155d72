"""The credit of a row: its peers, and which judgements may become demonstrations."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from metricsmith.metric import content_hash, make_row
from metricsmith.model_calls.limits import Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.optimizers.objectives import OBJECTIVES
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.tuning.credits import (
    CreditMetric,
    Credits,
    JudgedRow,
    PredictionReader,
    feedback_on,
    pick_peers,
)
from metricsmith.optimizers.tuning.student import CandidateJudgement, JudgementTable
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status

JUDGE = CriterionJudge(criterion="Quality", meaning="Good.", task="Write.")
LEARN = [make_row(f"learn {n}", input=f"l{n}", rating=float(1 + n)) for n in range(4)]
SELECT = [make_row(f"select {n}", input=f"s{n}", rating=float(1 + n)) for n in range(4)]


def credits_of(objective, values):
    """Credits for a judge that gave `values`, and its predictions of the learning rows."""
    table = JudgementTable(RateLimiter(Concurrency()), None)
    learn, select = RatedRows.of(LEARN, "rating"), RatedRows.of(SELECT, "rating")
    credits = Credits(table, OBJECTIVES[objective], PredictionReader(), learn, select)
    candidate = table.candidate(JUDGE, {})
    judgements = [CandidateJudgement(dspy.Prediction(raw=value), Status.OK) for value in values]
    for row, judgement in zip(LEARN, judgements, strict=True):
        table._known[candidate, content_hash(dict(row.inputs().items()))] = judgement
    return credits, [dspy.Prediction(candidate=candidate, judgement=judgement) for judgement in judgements]


def credit_of(objective, values, place):
    """The credit, feedback and goodness of a learning row when the judge gave `values`."""
    credits, predictions = credits_of(objective, values)
    return credits.credit(LEARN[place], predictions[place])


def test_a_near_miss_is_no_demonstration_where_labels_count():
    credit, _, good = credit_of("quadratic_kappa", [2, 2, 3, 4], 0)
    assert credit == pytest.approx(1 - 1 / 16)
    assert not good
    assert credit_of("quadratic_kappa", [1, 2, 3, 4], 0)[2]


@pytest.mark.parametrize(("objective", "good"), [("spearman", True), ("kendall_tau_b", False)])
def test_where_order_counts_a_demonstration_reaches_the_objectives_bar(objective, good):
    # In order with two of three peers: 2/3 by either, above the bar of .6 for spearman and below tau-b's .75.
    assert credit_of(objective, [2, 1, 3, 4], 0)[::2] == (pytest.approx(2 / 3), good)


def test_a_candidate_is_complete_when_every_selection_row_was_asked():
    credits, predictions = credits_of("kendall_tau_b", [1, 2, 3, 4])
    candidate = predictions[0].candidate
    for row in SELECT:
        assert not credits.complete(candidate)
        credits.table._known[candidate, content_hash(dict(row.inputs().items()))] = predictions[0].judgement
    assert credits.complete(candidate)


def test_peers_are_of_different_groups_as_far_as_these_go():
    rows = [make_row(f"{n}", input=f"{n}", rating=float(n % 4), group=f"g{n // 4}") for n in range(32)]
    for seed in range(5):
        places = pick_peers(RatedRows.of(rows, "rating"), 4, seed)
        assert [len({key(place) for place in places}) for key in (lambda n: n % 4, lambda n: n // 4)] == [4, 4]
    assert len(pick_peers(RatedRows.of(rows[:4], "rating"), 8, 0)) == 4  # one group alone


def test_the_peers_that_are_counted_are_those_of_the_side_with_more():
    for learn, select in ((LEARN, SELECT[:2]), (LEARN[:2], SELECT)):
        sides = (RatedRows.of(rows, "rating") for rows in (learn, select))
        credits = Credits(
            JudgementTable(RateLimiter(Concurrency()), None), OBJECTIVES["kendall_tau_b"], PredictionReader(), *sides
        )
        assert credits.most_peers == 4


def test_a_row_is_not_its_own_peer():
    # Among three others the lowest of four stands at -1/2 twice: 1/2 + 2 x 1/4. With itself it would be at -3/8.
    assert credit_of("spearman", [1, 2, 3, 4], 0)[0] == pytest.approx(1.0)
    assert np.isclose(credit_of("spearman", [4, 2, 3, 1], 0)[0], 0.0)


def test_while_demonstrations_are_bootstrapped_the_metric_is_a_bool():
    credits, predictions = credits_of("kendall_tau_b", [4, 2, 3, 1])
    metric = CreditMetric(credits)
    assert metric(LEARN[0], predictions[0], trace=[]) is False
    credits, predictions = credits_of("kendall_tau_b", [1, 2, 3, 4])
    metric = CreditMetric(credits)
    assert metric(LEARN[0], predictions[0], trace=[]) is True
    found = metric(LEARN[0], predictions[0], None, "judge", [])
    assert (found.score, bool(found.feedback)) == (1.0, True)


def test_a_failed_call_is_worth_nothing_and_no_demonstration():
    credits, predictions = credits_of("kendall_tau_b", [1, 2, 3, 4])
    failed = dspy.Prediction(
        candidate=predictions[0].candidate, judgement=CandidateJudgement(None, Status.REFUSED, "no")
    )
    assert CreditMetric(credits)(LEARN[0], failed, trace=[]) is False
    assert CreditMetric(credits)(LEARN[0], failed).score == 0.0


TAU = OBJECTIVES["kendall_tau_b"]


def peer(name, rating, value):
    return make_row(f"text of {name}", rating=rating), rating, value


def judged_row(**changes):
    settings = {"row": make_row("own", reason="Clear."), "rating": 3.0, "value": 4.0, "prediction": dspy.Prediction()}
    return JudgedRow(**{**settings, **changes})


def test_of_the_peers_on_the_wrong_side_the_one_with_the_most_different_rating_is_shown():
    # Those with the same rating count for neither; of the other four, two stand on the wrong side.
    peers = [
        peer("equal", 3.0, 1.0), peer("below", 1.0, 2.0), peer("near", 4.0, 3.5), peer("far", 5.0, 3.0),
        peer("above", 5.0, 5.0),
    ]  # fmt: skip
    told = feedback_on(judged_row(), peers, TAU)
    assert "The raters gave 3 and said: Clear." in told
    assert "Of 4 other works with another rating, 2 stand on the wrong side of it." in told
    assert "The raters gave the following work 5, which is higher; the judge gave it less (3).\n" in told
    assert "text of far" in told
    assert not any(f"text of {name}" in told for name in ("equal", "below", "near", "above"))


def test_numbers_of_a_judge_that_counts_the_other_way_round_are_told_as_it_gave_them():
    told = feedback_on(judged_row(value=-4.0, sign=-1.0), [peer("far", 5.0, -4.5)], TAU)
    assert "The judge gave 4." in told
    assert "the judge gave it less (4.5)" in told
