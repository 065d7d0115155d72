"""Errors that several annotations of one translation have in common."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.mqm import SEVERITIES, shared_errors
from metricsmith.records import ErrorSpan


def error(start, end, severity="major", category="accuracy/mistranslation", side="target", text="words"):
    return ErrorSpan(severity, category, start, end, text, side)


def found(annotations, **options):
    return [(one.span.start, one.span.end, one.found) for one in shared_errors(annotations, **options)]


def test_half_is_enough_and_less_is_not():
    one, other = error(0, 4), error(10, 14)
    assert found([[one], [one], [], []]) == [(0, 4, 2)]
    assert found([[one], [], [], []]) == []
    assert found([[one], [one, other], [other], [], []]) == []  # 2 of 5
    assert found([[one, other], [one, other], [other]]) == [(10, 14, 3), (0, 4, 2)]


def test_two_errors_on_the_same_words_keep_their_categories_apart():
    def run(meaning, grammar):
        return [error(0, 5, meaning), error(0, 5, grammar, "fluency/grammar")]

    annotations = [run("major", "minor"), run("minor", "major")[::-1], run("minor", "minor")]
    shared = [(one.span.severity, one.span.category, one.found) for one in shared_errors(annotations)]
    assert sorted(shared) == [("minor", "accuracy/mistranslation", 3), ("minor", "fluency/grammar", 3)]


def test_share_sets_the_bound():
    one = error(0, 4)
    runs = [[one]] * 7 + [[]] * 3
    assert found(runs, share=0.7) == [(0, 4, 7)]
    assert found(runs, share=0.71) == []
    assert found([[one], *[[]] * 9], share=0.1) == [(0, 4, 1)]
    assert 0.56 * 25 > 14  # by rounding alone
    assert found([[one]] * 14 + [[]] * 11, share=0.56) == [(0, 4, 14)]


def test_of_two_markings_that_agree_equally_well_the_shorter_is_told():
    for annotations in ([[error(0, 8)], [error(0, 4)]], [[error(0, 4)], [error(0, 8)]]):
        assert found(annotations) == [(0, 4, 2)]


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan")])
def test_a_share_out_of_range(share):
    with pytest.raises(OptionError, match="share="):
        shared_errors([[error(0, 1)]], share=share)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (error(0, 10), True),
        (error(5, 10, category="style/awkward"), True),  # half of the characters
        (error(6, 10, category="style/awkward"), False),  # .4 of them, another category
        (error(9, 30, category="accuracy/omission"), True),  # one character, the same category
        (error(10, 20), False),  # touches only
        (error(0, 10, side="source"), False),
        (error(None, None), False),  # has no place
        (error(4, 4), True),  # a place inside
        (error(10, 10), False),  # a place behind
    ],
)
def test_which_errors_are_the_same(other, same):
    assert len(shared_errors([[error(0, 10)], [other]], share=1)) == same


def test_errors_without_a_place_are_told_apart_by_their_whole_category():
    omission, addition = (error(None, None, category=f"accuracy/{kind}") for kind in ("omission", "addition"))
    assert len(shared_errors([[omission], [error(None, None, category="Accuracy/Omission")]], share=1)) == 1
    assert shared_errors([[omission], [addition]], share=1) == ()


def test_the_severity_is_that_of_most_and_the_lighter_of_equals():
    grave, light = error(0, 4, "critical"), error(0, 4, "minor")
    (one,) = shared_errors([[grave], [grave], [light]])
    assert (one.span.severity, one.found) == ("critical", 3)
    (one,) = shared_errors([[grave], [light]])
    assert one.span.severity == "minor"


def test_the_marking_is_the_one_that_most_agree_with():
    (one,) = shared_errors([[error(0, 20)], [error(2, 12)], [error(3, 12)], [error(2, 11)]])
    assert (one.span.start, one.span.end) == (2, 12)


def test_an_annotation_counts_once_for_each_error():
    twice = [error(0, 4), error(0, 4)]
    assert found([twice, [error(0, 4)], []]) == [(0, 4, 2)]
    assert found([twice, twice]) == [(0, 4, 2), (0, 4, 2)]


def test_worst_first_then_most_frequent_then_by_place():
    runs = [
        [error(0, 2, "minor"), error(10, 12, "critical"), error(20, 22, "minor"), error(30, 32, "minor")],
        [error(0, 2, "minor"), error(10, 12, "critical"), error(20, 22, "minor"), error(30, 32, "minor")],
        [error(20, 22, "minor")],
    ]
    assert [one.span.start for one in shared_errors(runs)] == [10, 20, 0, 30]


def test_nothing_to_share():
    assert shared_errors([]) == ()
    assert shared_errors([[], []]) == ()


def test_an_unknown_severity():
    with pytest.raises(DataError, match="severity 'grave'"):
        shared_errors([[error(0, 1, "grave")]])


spans = st.builds(
    lambda start, length, severity, category, side: error(start, start + length, severity, category, side),
    st.integers(0, 12), st.integers(0, 6), st.sampled_from(SEVERITIES), st.sampled_from(["a/b", "a/c", "d"]),
    st.sampled_from(["source", "target"]),
)  # fmt: skip
annotations = st.lists(st.lists(spans, max_size=4), max_size=5)


@settings(max_examples=150, deadline=None)
@given(annotations, st.sampled_from([0.2, 0.5, 1.0]))
def test_what_is_shared_is_bounded_and_comes_from_the_annotations(runs, share):
    shared = shared_errors(runs, share=share)
    given_spans = [span for run in runs for span in run]
    for one in shared:
        assert share * len(runs) - 1e-9 <= one.found <= len(runs)
        assert one.span in given_spans
    assert sum(one.found for one in shared) <= len(given_spans)
    grave = [SEVERITIES.index(one.span.severity) for one in shared]
    assert grave == sorted(grave)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(spans, max_size=2), max_size=4))
def test_errors_far_apart_are_shared_whatever_the_order(runs):
    """If errors of different clusters never touch, no order of the annotations changes what is found how often."""
    apart = [
        [error(100 * place + (span.start or 0) % 3, 100 * place + 50, span.severity) for place, span in enumerate(run)]
        for run in runs
    ]
    outcomes = {
        tuple((one.span.severity, one.found) for one in shared_errors(list(order)))
        for order in itertools.permutations(apart)
    }
    assert len(outcomes) == 1
