"""Baselines in words: no claim beyond the interval of the paired difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metricsmith.records import Agreement, Difference
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.verdict import comparison, few_groups_apart, not_beaten, outdone
from metricsmith.report.render import render_markdown
from metricsmith.stats.resampling.intervals import MEASURED

BLOCKS = {"Length": Agreement(72, 18, 0.1), "Best | single": Agreement(72, 18, 0.36)}


def apart(gap, low=None, high=None, groups=40):
    ends = () if low is None else (low, high)
    return {"Length": Difference(72, groups, 0.3, 0.2, 0.4), "Best | single": Difference(72, groups, gap, *ends)}


@pytest.mark.parametrize(
    ("differences", "says"),
    [
        (
            apart(0.05, -0.02, 0.12),
            "stands .05 above the strongest baseline (Best | single, .36); the difference has the 95\u00a0% interval "
            "−.02 to .12, so that it may be luck.",
        ),
        (apart(0.05, 0.01, 0.09), "interval .01 to .09, so that it is more than luck."),
        (apart(-0.05, -0.09, -0.01), "stands .05 below the strongest baseline (Best | single, .36); the difference"),
        (apart(0.05), "the difference has no interval, so that it may be luck."),
        ({}, "A gap smaller than the intervals may be luck."),
    ],
)
def test_the_strongest_baseline_stands_beside_the_metric_by_the_paired_difference(make_record, differences, says):
    record = make_record(baselines=BLOCKS, differences=differences)
    assert says in comparison(record)
    assert says.replace("|", "\\|").replace("\u00a0", " ") in render_markdown(RunDocument(record))


def test_the_difference_counts_and_not_the_two_figures(make_record):
    """The metric stands at .412 on its rows and the baseline at .36 on its own; on common rows it is behind."""
    record = make_record(baselines=BLOCKS, differences=apart(-0.04, -0.1, 0.02))
    assert outdone(record) == (
        "A baseline does at least as well on the same rows: Best | single, tau-b .36; the difference has the 95\u00a0% "
        "interval −.10 to .02, so that it may be luck."
    )
    assert outdone(replace(record, differences=apart(0.04, -0.02, 0.1))) == ""
    assert outdone(replace(record, differences={})) == ""
    assert outdone(replace(record, baselines={})) == ""


def test_with_few_groups_it_is_said_how_often_such_intervals_held(make_record):
    record = make_record(baselines=BLOCKS, differences=apart(0.05, -0.02, 0.12, groups=10))
    share = int(100 * MEASURED["difference"][10])
    said = f"With 10 groups, intervals of a difference covered at least {share}\u00a0% in simulations."
    assert comparison(record).endswith(said)
    assert few_groups_apart(2).endswith("were not tried in simulations.")
    assert few_groups_apart(30) == ""


def test_nothing_is_said_of_baselines_that_are_beaten_or_undefined():
    assert not_beaten({"a": Difference(9, 9, 0.2, 0.1, 0.3), "b": Difference(9, 9)}) == []


def test_the_differences_stand_in_the_json(make_record):
    content = make_record(baselines=BLOCKS, differences=apart(0.05)).as_dict()["differences"]
    assert content["Best | single"] == {
        "n": 72, "groups": 40, "kendall_tau_b": 0.05, "ci_low": None, "ci_high": None
    }  # fmt: skip
