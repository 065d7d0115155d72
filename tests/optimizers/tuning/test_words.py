"""Feedback for a model that writes instructions."""

from __future__ import annotations

import dspy

from metricsmith.metric import make_row
from metricsmith.optimizers.objectives import OBJECTIVES
from metricsmith.optimizers.tuning.words import Said, advice

TAU = OBJECTIVES["kendall_tau_b"]


def peer(name, rating, value):
    return make_row(f"text of {name}", rating=rating), rating, value


def said(**changes):
    settings = {"row": make_row("own", reason="Clear."), "rating": 3.0, "value": 4.0, "prediction": dspy.Prediction()}
    return Said(**{**settings, **changes})


def test_of_the_peers_on_the_wrong_side_the_one_with_the_most_different_rating_is_shown():
    # Those with the same rating count for neither; of the other four, two stand on the wrong side.
    peers = [
        peer("equal", 3.0, 1.0), peer("below", 1.0, 2.0), peer("near", 4.0, 3.5), peer("far", 5.0, 3.0),
        peer("above", 5.0, 5.0),
    ]  # fmt: skip
    told = advice(said(), peers, TAU)
    assert "The raters gave 3 and said: Clear." in told
    assert "Of 4 other works with another rating, 2 stand on the wrong side of it." in told
    assert "The raters gave the following work 5, which is higher; the judge gave it less (3).\n" in told
    assert "text of far" in told
    assert not any(f"text of {name}" in told for name in ("equal", "below", "near", "above"))


def test_numbers_of_a_judge_that_counts_the_other_way_round_are_told_as_it_gave_them():
    told = advice(said(value=-4.0, sign=-1.0), [peer("far", 5.0, -4.5)], TAU)
    assert "The judge gave 4." in told
    assert "the judge gave it less (4.5)" in told
