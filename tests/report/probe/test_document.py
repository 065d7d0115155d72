"""Cells and sentences of a probe."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from metricsmith.report.blocks import marked_changes
from metricsmith.report.probe.document import (
    ATTACKS,
    COLUMNS,
    STRATEGIES,
    attack_cells,
    attack_words,
    probe_cost,
    strategy_cells,
    subject_cells,
    subject_remark,
)
from metricsmith.report.probe.record import Attack
from metricsmith.report.probe.verdict import probe_verdict
from metricsmith.stats.resampling import Interval
from probes import BLIND, COLUMN, METRIC, RECORD, STILL, change, share


@pytest.mark.parametrize(
    ("must_fall", "low", "high", "fell", "rose", "verdict"),
    [
        (False, 0.05, 0.15, 0.1, 0.8, "deceived"),
        (False, -0.03, 0.07, 0.4, 0.5, "open"),
        (False, -0.4, 0.4, 0.5, 0.4, "open"),  # a mean below 0 alone proves nothing
        (False, -0.3, -0.1, 0.9, 0.1, "held"),
        (False, -0.24, 0.24, 0.0, 0.0, "held"),  # not one pair rose
        (True, -0.3, -0.1, 0.9, 0.1, "held"),
        (True, -0.07, 0.03, 0.5, 0.4, "open"),
        (True, 0.0, 0.15, 0.2, 0.7, "deceived"),
        (True, -0.24, 0.24, 0.0, 0.0, "deceived"),  # not one pair fell
    ],
)
def test_attacks_have_a_verdict_by_their_interval_or_because_no_pair_moved(must_fall, low, high, fell, rose, verdict):
    pairs = replace(share(fell, 0, 1, tied=1 - fell - rose), risen=rose)
    attack = Attack("a", "", must_fall, change((low + high) / 2, low, high), pairs)
    assert attack.verdict == verdict
    assert attack_words(attack)
    alone = replace(attack, pairs=replace(pairs, groups=1))
    assert alone.verdict == "open"
    assert attack_words(replace(attack, pairs=replace(pairs, n=0))) == "not tried: nothing could be changed so"


def test_a_metric_is_insensitive_unless_more_worse_outputs_fall_than_rise():
    sure, unsure = Interval(0.01, 0.3), Interval(0.0, 0.3)
    assert not replace(METRIC, sensitivity=replace(METRIC.sensitivity, balance=sure)).insensitive
    assert replace(METRIC, sensitivity=replace(METRIC.sensitivity, balance=unsure)).insensitive


def test_insensitive_and_still_metrics_are_remarked_on():
    assert [subject_remark(one) for one in (METRIC, BLIND, STILL)] == ["", "insensitive", "never moves"]
    assert subject_remark(COLUMN).startswith("not probed")
    assert STILL.insensitive
    assert not COLUMN.insensitive


def test_cells_are_as_many_as_columns_and_undefined_ones_are_dashes():
    for one in RECORD.subjects:
        assert len(subject_cells(one)) == len(COLUMNS)
    assert set(subject_cells(COLUMN)) == {"–"}
    assert subject_cells(METRIC)[:3] == (".820", ".740 to .880", "10\N{NO-BREAK SPACE}%")
    for line in RECORD.strategies:
        assert len(strategy_cells(line)) == len(STRATEGIES)
    for attack in RECORD.attacks:
        assert len(attack_cells(attack)) == len(ATTACKS)


def test_changed_words_are_marked_on_both_sides_and_nothing_is_lost():
    before, after = marked_changes("Bring two forms.\nThank you.", "Bring two cats.\nThank you very much.")
    assert plain(before) == "Bring two forms.\nThank you."
    assert plain(after) == "Bring two cats.\nThank you very much."
    assert re.findall("<(?:del|ins)>(.*?)<", before) == ["forms"]
    assert re.findall("<(?:del|ins)>(.*?)<", after) == ["cats", " very much"]
    assert marked_changes("same", "same")[0] == "same"
    assert marked_changes("", "new")[0] == ""


def test_long_texts_are_cut_before_they_are_compared():
    before, _ = marked_changes("word " * 2000, "word " * 2000)
    assert plain(before).endswith("[…]")


def plain(marked):
    return re.sub("<[^>]*>", "", marked)


def test_what_it_cost_is_said():
    assert probe_cost(RECORD).startswith("120 requests to the model (118 estimated), 3 of 100 judgements failed")


def test_the_frame_has_a_line_for_each_metric():
    frame = RECORD.to_pandas()
    assert frame.name.tolist() == [one.name for one in RECORD.subjects]
    metric = frame.iloc[0]
    assert metric.kind == "metric"
    assert (metric.sensitivity, metric.sensitivity_low) == (
        RECORD.metric.sensitivity.value, RECORD.metric.sensitivity.interval.low,
    )  # fmt: skip
    lacking = [one.stability is None for one in RECORD.subjects]
    assert frame.stability.isna().tolist() == frame.stability_low.isna().tolist() == lacking


def test_a_notebook_shows_the_verdict():
    assert probe_verdict(RECORD).sentence in RECORD._repr_html_()
