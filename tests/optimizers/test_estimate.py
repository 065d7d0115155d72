"""What a run will ask, counted by hand."""

from __future__ import annotations

import pytest

from metricsmith.metric import make_row
from metricsmith.optimizers.estimate import Load, estimate
from metricsmith.scoring.models import price
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
