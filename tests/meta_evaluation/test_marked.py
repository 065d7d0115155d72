"""Errors that judges mark beside people's: sums over ratings, gaps, order, tests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.meta_evaluation.marked import MarkedRows, evaluate_marks
from metricsmith.meta_evaluation.spans import character_f1, character_f1_difference, character_f1_interval
from metricsmith.records import ErrorSpan

TEXT = "abcdefghij"


def mark(start, end, severity="major"):
    return (ErrorSpan(severity, start=start, end=end, text=TEXT[start:end]),)


def rows(judges, gold, documents=None):
    n = len(gold)
    documents = tuple(map(str, range(n)) if documents is None else documents)
    return MarkedRows(judges, tuple(gold), (TEXT,) * n, documents, tuple(str(place // 2) for place in range(n)))


def test_figures_by_hand():
    """Rating 1: 4 marked, 4 gold, 2 shared of one severity. Rating 2: 2 marked, 4 gold, 2 shared of two: half."""
    found = evaluate_marks(rows({"mine": [mark(0, 4), mark(0, 2, "minor")]}, [mark(2, 6), mark(0, 4)]))
    (judge,) = found.judges
    assert (judge.precision, judge.recall, judge.f1) == pytest.approx((3 / 6, 3 / 8, 6 / 14))
    assert (found.ratings, found.missing, found.documents, found.comparisons) == (2, 0, 2, ())


def test_an_output_that_one_judge_lacks_counts_for_none():
    gold = [mark(0, 4), mark(0, 4), mark(0, 4)]
    found = evaluate_marks(rows({"a": [mark(0, 4), mark(5, 9), ()], "b": [mark(0, 2), None, mark(0, 4)]}, gold))
    assert (found.ratings, found.missing) == (2, 1)
    values = {one.name: one.f1 for one in found.judges}
    assert values == pytest.approx({"a": 8 / 12, "b": 12 / 14})
    assert [one.name for one in found.judges] == ["b", "a"]
    assert (found.comparisons[0].best, found.comparisons[0].other) == ("b", "a")


def test_an_output_that_nobody_rated_does_not_count():
    found = evaluate_marks(rows({"a": [mark(0, 4), mark(5, 9), None]}, [mark(0, 4), None, None]))
    assert (found.ratings, found.missing, found.documents) == (1, 0, 1)
    assert found.judges[0].f1 == 1


def test_without_documents_segments_stand_for_them():
    random = np.random.default_rng(4)
    gold = [mark(int(at), int(at) + 3) for at in random.integers(0, 7, 40)]
    judges = {name: [mark(int(at), int(at) + 4) for at in random.integers(0, 6, 40)] for name in ("a", "b")}
    blank = evaluate_marks(rows(judges, gold, [""] * 40), permutations=50)
    by_segment = evaluate_marks(rows(judges, gold, [str(place // 2) for place in range(40)]), permutations=50)
    assert (blank.documents, by_segment.documents) == (0, 20)
    assert (blank.judges, blank.comparisons) == (by_segment.judges, by_segment.comparisons)


def test_intervals_and_tests_are_those_of_spans_by_document():
    random = np.random.default_rng(3)
    gold = [mark(int(at), int(at) + 3) for at in random.integers(0, 7, 40)]
    judges = {
        name: [mark(int(at), int(at) + width) for at in random.integers(0, 10 - width, 40)]
        for name, width in (("narrow", 2), ("wide", 6))
    }
    documents = [f"d{place // 4}" for place in range(40)]
    found = evaluate_marks(rows(judges, gold, documents), permutations=99, seed=5)
    terms = {name: character_f1(marks, gold, [TEXT] * 40).terms for name, marks in judges.items()}
    for one in found.judges:
        assert one.recall_interval == character_f1_interval(terms[one.name], documents, statistic="recall")
    pair = found.comparisons[0]
    test, interval = character_f1_difference(terms[pair.best], terms[pair.other], documents, permutations=99, seed=5)
    assert (pair.p_value, pair.interval) == (test.p_value, interval)
    assert pair.difference == pytest.approx(found.judges[0].f1 - found.judges[1].f1)


def test_nothing_marked_on_either_side_is_undefined_and_nobody_judged_is_no_judge():
    (judge,) = evaluate_marks(rows({"a": [(), ()]}, [(), ()])).judges
    assert math.isnan(judge.f1)
    nothing = evaluate_marks(rows({"a": [None, None]}, [mark(0, 2), ()]))
    assert (nothing.judges, nothing.ratings, nothing.missing) == ((), 0, 2)


def test_words_that_do_not_stand_in_the_text_are_counted():
    stray = (ErrorSpan("major", text="xyz"),)
    assert evaluate_marks(rows({"a": [stray, mark(0, 2)]}, [mark(0, 2)] * 2)).judges[0].unlocated == 1
