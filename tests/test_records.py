"""The records: what they refuse, and the two maps to [0, 1]."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import OptionError
from metricsmith.records import ErrorSpan, Judgement, MetricCard, Output, Scale, Status, Usage

finite = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-math.inf, 0)])
def test_a_scale_needs_two_finite_ends_in_order(low, high):
    with pytest.raises(OptionError, match="both ends must be finite and low < high"):
        Scale(low, high)


@pytest.mark.parametrize("step", [0, -1, 5, math.nan])
def test_a_step_must_fit_into_its_scale(step):
    with pytest.raises(OptionError, match="step"):
        Scale(1, 5, step)


def test_a_step_may_span_the_whole_scale():
    assert Scale(0, 1, 1).step == 1


@pytest.mark.parametrize(
    ("value", "inside"),
    [(1, True), (5, True), (3.3, True), (0.999, False), (5.001, False), (math.nan, False), (math.inf, False)],
)
def test_both_ends_belong_to_a_scale_and_nothing_infinite_does(value, inside):
    assert Scale(1, 5).contains(value) is inside


@pytest.mark.parametrize(("raw", "up", "down"), [(1, 0, 1), (2, 0.25, 0.75), (5, 1, 0), (7, 1, 0), (-3, 0, 1)])
def test_the_unit_is_the_clipped_share_turned_round_where_lower_is_better(raw, up, down):
    assert Scale(1, 5).unit(raw) == up
    assert Scale(1, 5, higher_is_better=False).unit(raw) == down


def test_the_unit_of_nan_is_nan():
    assert math.isnan(Scale(1, 5).unit(math.nan))


def test_usages_add_up_part_by_part():
    total = Usage(1, 10, 100, 0.5, 2.0) + Usage(2, 20, 200, 0.25, 3.0)
    assert total == Usage(3, 30, 300, 0.75, 5.0)


def test_an_unknown_cost_is_not_nothing():
    assert (Usage(1) + Usage(1)).cost is None
    assert (Usage() + Usage(cost=0.0)).cost == 0.0


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (Status.OK, None),
        (Status.OK, math.nan),
        (Status.OK, math.inf),
        (Status.REFUSED, 0.0),
        (Status.SKIPPED, 3.0),
    ],
)
def test_only_a_good_judgement_carries_a_number_and_it_always_does(status, raw):
    with pytest.raises(ValueError, match="cannot have raw"):
        Judgement("m", raw=raw, status=status)


def test_a_bounded_output_maps_linearly_and_clips():
    output = Output("x", 10, 30)
    assert [output.score(raw) for raw in (10, 15, 30, 40, 0)] == [0, 0.25, 1, 1, 0]


def test_an_output_open_above_scores_half_at_half_above_its_lower_end():
    # (raw - low) / (raw - low + half) with low = 2 and half = 10: 0/10, 10/20, 30/40.
    output = Output("x", low=2, high=None, half=10)
    assert [output.score(raw) for raw in (2, 12, 32)] == [0, 0.5, 0.75]
    assert output.score(-5) == 0


def test_an_output_open_below_is_centred_on_zero():
    # .5 + .5 raw / (|raw| + 4): 0 -> .5, 4 -> .75, -12 -> .5 - .375.
    output = Output("x", low=None, high=None, half=4)
    assert [output.score(raw) for raw in (0, 4, -12)] == [0.5, 0.75, 0.125]


def test_an_output_open_below_with_an_upper_end_scores_one_there_and_half_at_half_below():
    # half / (half + high - raw) with high = 0 and half = 5: 5/5, 5/10, 5/20.
    output = Output("x", low=None, high=0, half=5)
    assert [output.score(raw) for raw in (0, -5, -15)] == [1, 0.5, 0.25]
    assert output.score(3) == 1


OPEN_BELOW = {"low": None, "high": 0, "half": 7}


@pytest.mark.parametrize(
    "ends", [{}, {"low": 0, "high": None, "half": 7}, {"low": None, "high": None, "half": 7}, OPEN_BELOW]
)
@given(one=finite, other=finite)
@settings(deadline=None, max_examples=50)
def test_scores_stay_in_the_unit_interval_and_rise_with_what_is_better(ends, one, other):
    up, down = Output("x", **ends), Output("x", **ends, higher_is_better=False)
    low, high = sorted((one, other))
    assert 0 <= up.score(low) <= up.score(high) <= 1
    assert 1 >= down.score(low) >= down.score(high) >= 0
    assert down.score(one) == 1 - up.score(one)


@pytest.mark.parametrize("half", [None, 0, -1])
@pytest.mark.parametrize("ends", [{"low": None}, {"high": None}])
def test_an_open_end_needs_a_half(ends, half):
    with pytest.raises(ValueError, match="needs half > 0"):
        Output("x", **ends, half=half)


def test_a_card_finds_its_outputs_and_shows_every_section():
    card = MetricCard(
        "Name", "bank", "Sum.", "a + b", (Output("x", high=None, half=1, higher_is_better=False),),
        needs=("references",), limits=("one", "two"), papers=("P",),
    )  # fmt: skip
    assert card.output("x").half == 1
    with pytest.raises(KeyError):
        card.output("y")
    text = card.to_markdown()
    assert "| `x` | 0 to inf | lower |" in text
    assert "- **Needs**: references" in text
    assert "- **Known limits**: one; two" in text
    assert "Best for" not in text


def test_an_error_span_may_know_its_text_alone():
    span = ErrorSpan("Major", text="word")
    assert (span.start, span.end, span.side) == (None, None, "target")
    assert ErrorSpan("Major", text="word") == span
    with pytest.raises(AttributeError):
        span.start = 3


def test_an_error_span_says_which_text_it_marks():
    span = ErrorSpan("major", "accuracy/omission", 3, 7, "word", side="source")
    assert (span.severity, span.side, span.text) == ("major", "source", "word")
    assert ErrorSpan("minor") == ErrorSpan("minor", "", None, None, "", "target", "")
    with pytest.raises(AttributeError):
        span.severity = "minor"
