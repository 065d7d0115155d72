"""Rows that are picked out of a record, and their order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.records import Scale, Usage
from metricsmith.report.induction.components import cards, weight_width
from metricsmith.report.induction.costs import run_costs
from metricsmith.report.induction.record import RowRecord
from metricsmith.report.induction.rows import disagreements, rated_rows, reliability_bins, reliability_sentence
from metricsmith.report.induction.verdict import interval_outlook
from metricsmith.report.plots.reliability import Bin
from metricsmith.stats.agreement import Agreement


def row(name, rating, prediction, split="test", **more):
    return RowRecord(name, name, split, rating, prediction, **more)


def test_rows_without_both_numbers_are_left_out(make_record):
    data = (row("a", 1.0, 2.0), row("b", None, 2.0), row("c", 1.0, None), row("d", 1.0, math.nan))
    assert [item[0].id for item in rated_rows(make_record(data=data))] == ["a"]


def test_held_out_rows_come_first_then_the_widest_gaps(make_record):
    data = (
        row("fits", 3.0, 3.0), row("near", 3.0, 3.5), row("far", 5.0, 2.0),
        row("seen", 5.0, 0.0, "train"), row("also near", 3.0, 2.5),
    )  # fmt: skip
    found = disagreements(make_record(data=data))
    assert [case.row.id for case in found] == ["far", "near", "also near", "seen"]
    assert [case.held_out for case in found] == [True, True, True, False]
    assert found[0].gap == -3.0
    assert [case.row.id for case in disagreements(make_record(data=data), most=2)] == ["far", "near"]


def test_starting_point_and_contributions_add_up_to_the_prediction(make_record):
    added = {"a": 0.5, "b": -1.0, "gone": math.nan}
    case = disagreements(make_record(data=(row("x", 1.0, 3.0, contributions=added),)))[0]
    assert [name for name, _ in case.contributions] == ["b", "a", "gone"]
    assert case.start == pytest.approx(3.5)


def test_many_contributions_are_summed_behind_the_largest(make_record):
    added = {f"c{k}": 1.0 / (k + 1) for k in range(13)}
    case = disagreements(make_record(data=(row("x", 1.0, 3.0, contributions=added),)))[0]
    assert (len(case.contributions), case.others) == (10, 3)
    assert case.rest == pytest.approx(1 / 11 + 1 / 12 + 1 / 13)


def test_the_outlook_shrinks_each_side_with_the_root_of_the_groups():
    now, twice, four = interval_outlook(Agreement(80, 20, 0.4, 0.2, 0.5))
    assert (now.low, now.high, now.groups) == (pytest.approx(0.2), pytest.approx(0.5), 20)
    assert twice.half_width == pytest.approx(now.half_width / math.sqrt(2))
    assert (four.low, four.high, four.groups) == (pytest.approx(0.3), pytest.approx(0.45), 80)


def test_without_an_interval_there_is_no_outlook():
    assert interval_outlook(Agreement(80, 20, 0.4)) == []


def test_costs_stand_beside_their_estimate_and_unknown_ones_are_dashes(make_record):
    lines = {line.name: (line.estimated, line.actual) for line in run_costs(make_record())}
    assert lines["Requests to the model"] == ("3,608", "3,612")
    assert lines["Cost"] == ("$0.55", "$0.53")
    assert lines["Time"] == ("–", "5 min 41 s")
    bare = {line.name: (line.estimated, line.actual) for line in run_costs(make_record(usage={"requests": 0}))}
    assert bare["Requests to the model"] == ("–", "0")
    assert bare["Cost"] == ("–", "–")
    priceless = make_record(usage={"cost": None, "estimated": Usage(3)})
    assert {line.name: line.estimated for line in run_costs(priceless)}["Cost"] == "–"


def test_components_of_one_family_share_a_card(make_record):
    first, second, *_ = make_record().components
    twin = replace(second, name="twin")
    found = cards(make_record(components=(first, second, twin)))
    assert [[item.name for item in described] for _, described in found] == [
        [first.name], [second.name, "twin"],
    ]  # fmt: skip


def test_small_weights_get_the_decimals_they_need(make_record):
    parts = make_record().components
    assert weight_width(make_record()) == 4
    assert weight_width(make_record(components=(replace(parts[0], weight=-0.02),))) == pytest.approx(0.2)
    assert weight_width(make_record(components=())) == 4


def test_only_held_out_rows_stand_in_the_reliability_bins(make_record):
    record = make_record()
    held_out = [row for row in record.data if row.split == "test"]
    found = reliability_bins(record)
    assert sum(part.n for part in found) == len(held_out) == 72
    assert len(found) == 7
    assert sum(part.groups for part in found) < 72  # four rows to a group
    everything = reliability_bins(make_record(evaluation="cv"))
    assert sum(part.n for part in everything) == 232
    assert reliability_bins(make_record(evaluation="train_only")) == []


def part(prediction, low, high):
    return Bin(12, 12, prediction - 0.1, prediction + 0.1, prediction, (low + high) / 2, low, high)


UP, DOWN = Scale(1, 5, 1), Scale(1, 5, 1, higher_is_better=False)


def test_bins_in_order_show_no_place_where_the_metric_is_off():
    assert reliability_sentence([part(2, 1, 3), part(3, 2, 4)], UP) == (
        "In all 2 bins the mean prediction lies inside the 95\u00a0% interval of the mean rating: "
        "these rows show no place where the metric is too generous or too strict."
    )
    assert reliability_sentence([part(2, 1, 3)], UP).startswith("In the only bin the mean prediction lies inside the")


def test_every_bin_that_is_off_is_named_with_its_numbers():
    assert reliability_sentence([part(2, 2.5, 3.5), part(3, 2, 4), part(4.5, 3, 4)], UP) == (
        "In 2 of 3 bins the mean prediction lies outside the 95\u00a0% interval of the mean rating; the metric is "
        "too strict where it predicts 1.90 to 2.10 (2.00 on average, and the raters gave 3.00); "
        "too generous where it predicts 4.40 to 4.60 (4.50 on average, and the raters gave 3.50). "
        "One bin in twenty lies outside by chance alone."
    )
    assert reliability_sentence([part(2, 2.5, 3.5)], UP).startswith(
        "In the only bin the mean prediction lies outside the"
    )


def test_a_bin_of_one_prediction_is_named_by_it():
    said = reliability_sentence([Bin(12, 12, 4, 4, 4, 3.2, 3, 3.4)], UP)
    assert "too generous where it predicts 4.00 (the raters gave 3.20 on average)" in said


def test_generous_and_strict_change_places_where_lower_is_better():
    assert "the metric is too strict where it predicts 4.40" in reliability_sentence(
        [part(4.5, 3, 4), part(2, 1, 3)], DOWN
    )


def test_without_intervals_nothing_is_said():
    assert reliability_sentence([], UP) == reliability_sentence([part(2, math.nan, math.nan)], UP) == ""
