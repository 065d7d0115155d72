"""Sentences on the small metric beside the full one, and on weights against a component's own agreement."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from metricsmith.report.induction.components import choice_stability, direction, loss, small_model, suppressors
from metricsmith.stats.agreement import Difference


def component(name, weight, tau):
    return SimpleNamespace(name=name, weight=weight, tau_train=tau)


def test_a_loss_is_said_with_its_rows_and_its_interval():
    assert loss(Difference(90, 30, -0.0123, -0.035, 0.01)) == (
        "On the same 90 held-out rows the small metric loses .012 of tau-b against the full model "
        "(95\u00a0% interval −.010 to .035)."
    )


def test_a_gain_is_called_one_and_no_interval_is_invented():
    assert "gains .020 of tau-b" in loss(Difference(60, 20, 0.02))
    assert "interval" not in loss(Difference(60, 20, 0.02))
    assert "(95\u00a0% interval −.010 to .050)" in loss(Difference(60, 20, 0.02, -0.01, 0.05))


@pytest.mark.parametrize("difference", [0.0, -0.0004, 0.0004])
def test_a_difference_that_rounds_to_nothing_is_no_loss(difference):
    assert loss(Difference(90, 30, difference, -0.01, 0.02)) == (
        "On the same 90 held-out rows the small metric's tau-b is within .0005 of the full model's "
        "(95\u00a0% interval of the loss −.020 to .010)."
    )


@pytest.mark.parametrize("found", [None, Difference(0, 0)])
def test_without_a_difference_nothing_is_said(found):
    assert loss(found) == ""


def test_a_weight_against_the_components_own_agreement_is_no_effect_of_that_quality():
    """Twice the null standard error of tau on 60 rows is 2 sqrt(2 (125) / (9 x 60 x 59)) = .177."""
    parts = [component("chrf", 1.0, 0.3), component("parent", 2.0, -0.056), component("ter", -0.5, 0.2)]
    said = suppressors(parts, 60)
    assert "parent (alone tau-b −.06, near enough to 0 for either sign by chance)" in said
    assert "ter (alone tau-b +.20):" in said
    assert "suppressor" in said
    assert "no effect of that quality" in said
    assert "chrf" not in said


def test_equal_signs_zero_and_undefined_taus_are_no_suppressors():
    parts = [component("a", -1.0, -0.3), component("b", 1.0, 0.0), component("c", 1.0, math.nan)]
    assert suppressors(parts, 60) == ""


@pytest.mark.parametrize("shares", [(0.9, 0.3), (math.nan, math.nan), (0.5,)])
def test_an_unstable_choice_is_not_sold_as_the_criteria(make_record, shares):
    made = make_record().components
    chosen = [replace(item, selected_share=share) for item, share in zip(made, shares, strict=False)]
    assert "not as the criteria that the raters apply" in choice_stability(chosen)


def test_a_steady_choice_is_called_steady_and_no_more(make_record):
    text = choice_stability([replace(make_record().components[0], selected_share=0.95)])
    assert "95\u00a0%" in text
    assert "does not show that raters look at it" in text


def test_direction_in_words(make_record):
    lowered = replace(make_record().components[0], direction="-")
    assert direction(lowered) == "more of it lowers the prediction"
    assert direction(replace(lowered, direction="+")) == "more of it raises the prediction"


def test_fidelity_is_silent_when_nothing_was_left_out(make_record):
    assert small_model(make_record(fidelity=math.nan, clipped_share=0.0)) == ""
    assert ".978" in small_model(make_record(clipped_share=0.0))
    assert "2\u00a0% of the predictions" in small_model(make_record())


def test_every_kind_of_metric_has_a_name_in_words():
    from metricsmith.programs.kinds import METRICS
    from metricsmith.report.induction.components import KINDS

    assert set(METRICS) - {"repeated"} <= set(KINDS)  # repeated runs keep the kind of what they repeat
