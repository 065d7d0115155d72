"""A panel's answer, item by item: one bad item never spoils the others."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from metricsmith.programs.judges.panel_answers import Criterion, CriterionResult, criteria_text, labels, read_items
from metricsmith.records import Scale, Status
from metricsmith.signatures.judgement import PanelItem
from panels import item

SCALE = Scale(1, 5, 1)
LIST = TypeAdapter(list[PanelItem])


def read(answer, wanted=("Brevity", "Plain words")):
    return read_items(LIST.validate_python(answer), wanted, SCALE)


def test_each_criterion_gets_its_own_number_whatever_the_order():
    answer = [item("Plain words", 2, "b"), item("Brevity", 5, "a")]
    assert read(answer) == [CriterionResult(5, "a"), CriterionResult(2, "b")]


@pytest.mark.parametrize("name", ["plain words", " Plain  Words\n", "PLAINWORDS"])
def test_names_are_compared_without_case_and_white_space(name):
    assert read([item("Brevity", 1), item(name, 4)])[1].raw == 4


@pytest.mark.parametrize("name", ["Plain word", "Plain words.", "1. Plain words", ""])
def test_a_name_that_differs_in_more_is_another_criterion(name):
    first, second = read([item("Brevity", 1), item(name, 4)])
    assert first.raw == 1
    assert (second.raw, second.status) == (None, Status.UNPARSABLE)
    assert "names 'Plain words' not at all (named are: Brevity" in second.error


def test_a_criterion_named_twice_fails_alone_even_where_both_agree():
    first, second = read([item("Brevity", 3), item("Plain words", 4), item("brevity", 3)])
    assert (first.status, second.raw) == (Status.UNPARSABLE, 4)
    assert "2 times" in first.error


def test_items_about_something_else_are_passed_over():
    assert [verdict.raw for verdict in read([item("Brevity", 1), item("Overall", 5), item("Plain words", 2)])] == [1, 2]


@pytest.mark.parametrize(("score", "raw"), [(1, 1), (5, 5), (3.0, 3), ("4", 4), (" 2 ", 2), ("3.0", 3)])
def test_whole_numbers_on_the_scale_count_however_they_are_written(score, raw):
    assert read([item("Brevity", score)])[0].raw == raw


@pytest.mark.parametrize(
    ("score", "status"),
    [
        (0, Status.OUT_OF_RANGE),
        (6, Status.OUT_OF_RANGE),
        (-3, Status.OUT_OF_RANGE),
        ("85", Status.OUT_OF_RANGE),
        (10**30, Status.UNPARSABLE),
        pytest.param(10**5000, Status.UNPARSABLE, id="5,000 digits"),
        ("9" * 5000, Status.UNPARSABLE),
        (3.7, Status.UNPARSABLE),
        (float("nan"), Status.UNPARSABLE),
        (float("inf"), Status.UNPARSABLE),
        ("nan", Status.UNPARSABLE),
        ("4/5", Status.UNPARSABLE),
        ("four", Status.UNPARSABLE),
        ("", Status.UNPARSABLE),
        (None, Status.UNPARSABLE),
        (True, Status.UNPARSABLE),
        ([4], Status.UNPARSABLE),
        ({"value": 4}, Status.UNPARSABLE),
    ],
)
def test_anything_else_is_no_number_and_spoils_nothing(score, status):
    first, second = read([item("Brevity", score), item("Plain words", 4)])
    assert (first.raw, first.status, second.raw) == (None, status, 4)
    assert "'Brevity'" in first.error


@pytest.mark.parametrize("broken", ["Plain words: 4", None, 4, [], {}, {"score": 4}, {"name": "Plain words"}])
def test_an_item_of_the_wrong_shape_leaves_the_others_alone(broken):
    first, second = read([item("Brevity", 2), broken])
    assert (first.raw, second.status) == (2, Status.UNPARSABLE)


def test_a_missing_or_odd_reason_does_not_cost_the_number():
    answer = [{"criterion": "Brevity", "score": 2}, item("Plain words", 3, ["a", "b"])]
    assert [(verdict.raw, verdict.reason) for verdict in read(answer)] == [(2, ""), (3, "['a', 'b']")]


def test_labels_that_read_alike_are_numbered():
    assert labels(["Brevity", "brevity", "BRE VITY", "Brevity (2)"]) == [
        "Brevity", "brevity (2)", "BRE VITY (3)", "Brevity (2) (2)",
    ]  # fmt: skip


def test_criteria_stand_on_lines_of_their_own_with_their_levels():
    text = criteria_text([Criterion("A", "a."), Criterion("B", "b.", ("bad", "good"))])
    assert text == "criterion: A\nmeaning: a.\n\ncriterion: B\nmeaning: b.\nlevel 1: bad\nlevel 2: good"


def test_an_error_repeats_no_endless_answer():
    verdicts = read([item("x" * 10_000, "y" * 10_000), item("Brevity", "y" * 10_000)])
    assert max(len(verdict.error) for verdict in verdicts) < 200
