"""What a run will ask, counted by hand."""

from __future__ import annotations

import pytest

from metricsmith.metric import make_row
from metricsmith.optimizers.estimate import Load, estimate
from metricsmith.scoring.prices import price
from planted import TASK, planted_rows

ROWS = planted_rows(sources=4)
COUNTS = {"criterion": 2, "rubric": 1}


def estimated(load, rows=ROWS, counts=COUNTS, model="unknown/model"):
    return estimate(rows, TASK, counts, load, model)


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        # Every pass: one request for all axes and one per rubric. Every judged row: one per judge.
        (Load(passes=1, judged_rows=10), 1 * (1 + 1) + 10 * 3),
        (Load(passes=4, judged_rows=40), 4 * (1 + 1) + 40 * 3),
        # A ranking is one request more per pass.
        (Load(passes=4, judged_rows=40, ranked_cards=50), 4 * (1 + 1 + 1) + 40 * 3),
    ],
)
def test_requests_are_axes_rubrics_rankings_and_judgements(load, requests):
    assert estimated(load).requests == requests


def test_criterion_judges_take_no_request_of_their_own():
    assert estimated(Load(1, 0), counts={"criterion": 7}).requests == 1
    assert estimated(Load(1, 0), counts={"rubric": 7}).requests == 8


def test_geval_judges_take_one_request_each_for_their_steps_and_no_seat_on_a_panel():
    assert estimated(Load(1, 0), counts={"geval": 7}).requests == 8
    assert estimated(Load(1, 10), counts={"geval": 2}).requests == 1 + 2 + 20
    # One for the axes, one for the rubric, two for steps; ten rows on the panel, and ten for each G-Eval judge.
    mixed = {"criterion": 2, "rubric": 1, "geval": 2}
    assert estimated(Load(1, 10, panel=True), counts=mixed).requests == 1 + 1 + 2 + 10 + 20
    assert estimated(Load(1, 10, panel=True), counts={"criterion": 2, "geval": 0}).requests == 1 + 10
    plain, described = (estimated(Load(1, 100, panel=True), counts={name: 1}) for name in ("criterion", "rubric"))
    assert described.prompt_tokens > plain.prompt_tokens + 100 * 200  # every row's prompt holds the rubric
    alone = estimated(Load(1, 10), counts={"geval": 2})
    assert estimated(Load(1, 10, panel=True), counts={"geval": 2}) == alone


def test_tokens_grow_with_passes_rows_and_length():
    base = estimated(Load(1, 10))
    double = estimated(Load(2, 20))
    assert double.prompt_tokens == pytest.approx(2 * base.prompt_tokens, abs=2)
    assert double.completion_tokens == 2 * base.completion_tokens
    assert estimated(Load(2, 10)).prompt_tokens > base.prompt_tokens
    assert estimated(Load(1, 11)).prompt_tokens > base.prompt_tokens
    long = [make_row(row.output * 9, input=row.input, rating=row["rating"]) for row in ROWS]
    assert estimated(Load(1, 10), rows=long).prompt_tokens > base.prompt_tokens


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert estimated(Load(1, 10)).cost is None


def test_the_cost_is_that_of_the_estimated_tokens():
    usage = estimated(Load(1, 10), model="openai/gpt-4o-mini")
    assert usage.cost == price("gpt-4o-mini", usage.prompt_tokens, usage.completion_tokens)
