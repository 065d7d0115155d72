"""The agreement of people, in words that all reports share."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.verdict import run_ceiling
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.render import render_html, render_markdown
from metricsmith.stats.ceiling import RaterCeiling

FOUND = RaterCeiling(
    agreement=0.41, agreement_low=0.25, agreement_high=0.55, ceiling=0.64, low=0.52, high=0.75, tied=0.64, outputs=60,
    twice=58, raters=2, ratings=118, groups=20,
)  # fmt: skip
SENTENCE = "Two people agree .41 with each other; no metric can be expected above about .64 (.52 to .75) here."


def test_the_ceiling_follows_from_how_two_people_agree():
    lines = ceiling_lines(FOUND, {"the metric": 0.3})
    assert lines == [
        SENTENCE,
        "The first is tau-b of one person's ratings with another's, on 58 outputs (.25 to .55); the second is the "
        "tau-b that what raters have in common would reach with their average (118 ratings of 60 outputs by 2 people).",
    ]


def test_a_metric_with_few_levels_may_come_further_where_people_tie():
    lines = ceiling_lines(replace(FOUND, tied=0.67), {"a": 0.65, "b": 0.6})
    assert lines[2:] == ["Only a metric with few levels, tied where people's average is tied, could come to .67."]


def test_a_metric_above_the_ceiling_is_not_called_better_than_people():
    lines = ceiling_lines(FOUND, {"the metric": 0.7, "length": 0.2, "undefined": float("nan")})
    assert lines[2:] == [
        "Above it: the metric .70. That is not better than people: the ceiling and the figure are estimates, and "
        "raters may share what has nothing to do with quality."
    ]


def test_interchangeable_raters_are_named_as_such():
    assert "count as interchangeable" in ceiling_lines(replace(FOUND, interchangeable=True), {})[1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"withheld": "single"}, "No output was rated by two people, so that it is not known how people agree."),
        ({"withheld": "few", "twice": 1},
         "Two people or more rated 1 of 60 outputs, and how people agree takes 20."),
        ({"withheld": "alike"},
         "How people agree is undefined on 58 outputs that two people or more rated: someone gave all of them the "
         "same rating."),
        ({"withheld": "groups", "groups": 2},
         "Two people agree .41 with each other on 58 outputs that two people or more rated, without an interval: they "
         "come from 2 groups, or one group decides alone."),
        ({"withheld": "chance", "agreement": 0.12, "agreement_low": -0.05, "agreement_high": 0.28},
         "Two people agree .12 with each other (−.05 to .28) on 58 outputs that two people or more rated: not clearly "
         "above 0."),
    ],
)  # fmt: skip
def test_a_ceiling_that_is_withheld_gives_its_reason(changes, sentence):
    assert ceiling_lines(replace(FOUND, **changes), {"the metric": 0.9}) == [
        f"{sentence} No ceiling for a metric is given."
    ]


def test_without_raters_there_is_nothing_to_say(make_record):
    record = make_record()
    assert run_ceiling(record) == []
    assert "raters" not in record.as_dict()
    assert "Two people" not in render_html(RunDocument(record)) + render_markdown(RunDocument(record))


def test_the_report_shows_it_and_keeps_it_as_data(make_record):
    record = make_record(raters=FOUND)
    assert SENTENCE in render_html(RunDocument(record))
    assert SENTENCE in render_markdown(RunDocument(record))
    assert json.loads(json.dumps(record.as_dict()))["raters"]["ceiling"] == 0.64


def test_the_headline_and_the_baselines_are_held_against_it(make_record):
    record = make_record(raters=replace(FOUND, ceiling=0.1, tied=0.12))
    assert f"the induced metric {f'{record.headline.kendall_tau_b:.2f}'.removeprefix('0')}" in run_ceiling(record)[3]
