"""Tokens a row of a panel's joint request and of single requests."""

from __future__ import annotations

import pytest

from metricsmith.metric import make_row
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.judges.panel import tokens_per_row
from panels import panel


def rows(count):
    return [make_row(f"Words {'word ' * number}{number}.", input=f"source {number}") for number in range(count)]


def test_tokens_a_row_are_those_of_the_prompts_both_ways():
    made, one = panel(), rows(1)
    tokens = tokens_per_row(made, one)

    def size(asker):
        return sum(estimate_tokens(message["content"]) for message in asker.messages(one[0]))

    assert (tokens.criteria, tokens.joint) == (3, size(made))
    assert tokens.single == sum(size(judge) for judge in made.judges)
    assert tokens.single > 2 * tokens.joint  # the instruction and the row are paid for three times


def test_tokens_of_many_rows_are_the_mean_over_rows_spread_evenly():
    made = panel()
    two = tokens_per_row(made, rows(2))
    parts = [tokens_per_row(made, [row]) for row in rows(2)]
    assert two.joint == pytest.approx((parts[0].joint + parts[1].joint) / 2)
    lengthening = [make_row("x" * 4 * number) for number in range(500)]
    spread = tokens_per_row(made, lengthening).joint - tokens_per_row(made, lengthening[:1]).joint
    assert spread == pytest.approx(245, abs=20)  # every tenth row: lengths 0, 10, ... 490, mean 245


def test_tokens_without_rows_are_unknown():
    assert tokens_per_row(panel(), []).joint != tokens_per_row(panel(), []).joint
