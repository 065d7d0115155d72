"""Character precision, recall and F1: the shared task's rule, where spans without offsets belong, and intervals."""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import character_f1, character_f1_interval, character_terms, locate_spans
from metricsmith.meta_evaluation.spans import character_f1_difference
from metricsmith.records import ErrorSpan

NAN = math.nan
CASES = json.loads((Path(__file__).parents[1] / "golden" / "char_f1.json").read_text("utf-8"))["cases"]
LENGTH = 8
SPAN = st.builds(
    lambda ends, severity: ErrorSpan(severity, start=min(ends), end=max(ends)),
    st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)),
    st.sampled_from(["major", "minor", "Critical"]),
)
SPANS = st.lists(SPAN, max_size=4)
HALTING = settings(max_examples=80, deadline=None)


def spans(*marks):
    return [ErrorSpan(severity, start=start, end=end) for start, end, severity in marks]


def named(*texts):
    return [ErrorSpan("major", text=text) for text in texts]


def terms_slowly(predicted, gold, length):
    """The rule, character by character, with its three branches as the shared task words them."""
    credit = marked = true = 0.0
    for place in range(length + 1):
        sides = []
        for side in (predicted, gold):
            covering = [s for s in side if s.start <= place < max(s.end, s.start + 1)]
            sides.append({"major" if s.severity.lower() != "minor" else "minor" for s in covering})
        found, truth = sides
        marked, true = marked + bool(found), true + bool(truth)
        if found and truth:
            if truth == {"major"}:
                credit += 1 if "major" in found else 0.5
            elif truth == {"minor"}:
                credit += 1 if "minor" in found else 0.5
            else:
                credit += 1
    return credit, marked, true


@pytest.mark.parametrize("case", sorted(CASES))
def test_golden_terms(case):
    golden = CASES[case]
    found = character_terms(spans(*golden["pred"]), spans(*golden["gold"]), golden["length"])
    assert found == (golden["tp"], golden["pred_chars"], golden["gold_chars"])


@given(predicted=SPANS, gold=SPANS)
@HALTING
def test_equal_to_counting_character_by_character(predicted, gold):
    assert character_terms(predicted, gold, LENGTH) == terms_slowly(predicted, gold, LENGTH)


@given(segments=st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=4))
@HALTING
def test_exchanging_sides_exchanges_precision_and_recall(segments):
    predicted, gold = zip(*segments, strict=True)
    texts = ["x" * LENGTH] * len(segments)
    one, other = character_f1(predicted, gold, texts), character_f1(gold, predicted, texts)
    np.testing.assert_array_equal([one.precision, one.recall, one.f1], [other.recall, other.precision, other.f1])
    shuffled = character_f1(predicted[::-1], gold[::-1], texts)
    np.testing.assert_allclose([shuffled.precision, shuffled.f1], [one.precision, one.f1], rtol=1e-12)
    itself = character_f1(gold, gold, texts)
    assert itself.f1 == 1 or not any(gold)


@given(predicted=SPANS, gold=SPANS, severity=st.sampled_from(["major", "minor"]))
@HALTING
def test_marking_the_same_twice_changes_nothing(predicted, gold, severity):
    once = character_terms(predicted, gold, LENGTH)
    assert character_terms(predicted * 2, gold * 3, LENGTH) == once


def test_micro_over_the_corpus_by_hand():
    # Segment 0: gold 0-4 major, predicted 2-6 minor: two common characters of other severity, credit 1, 4 and 4.
    # Segment 1: both without errors. Segment 2: two predicted characters and no gold.
    predicted = [spans((2, 6, "minor")), [], spans((0, 2, "major"))]
    gold = [spans((0, 4, "major")), [], []]
    found = character_f1(predicted, gold, ["abcdefgh", "abc", "ab"])
    assert (found.precision, found.recall, found.f1) == (1 / 6, 1 / 4, pytest.approx(2 / 10))
    assert found.terms.tolist() == [[1, 4, 4], [0, 0, 0], [0, 2, 0]]
    assert found.missing == 0


def test_empty_sides_are_undefined_where_there_is_nothing_to_divide_by():
    nothing = character_f1([[]], [[]], ["text"])
    assert np.isnan([nothing.precision, nothing.recall, nothing.f1]).all()
    silent = character_f1([[]], [spans((0, 2, "minor"))], ["text"])
    assert math.isnan(silent.precision)
    assert (silent.recall, silent.f1) == (0, 0)


def test_a_failed_judgement_is_missing_and_no_clean_segment():
    marked = spans((0, 2, "minor"))
    found = character_f1([None, marked, []], [marked, marked, None], ["text"] * 3)
    assert (found.f1, found.recall, found.missing) == (1, 1, 2)
    assert np.isnan(found.terms[[0, 2]]).all()
    assert character_f1([[], marked], [marked, marked], ["text"] * 2).recall == 0.5


def test_spans_of_the_source_do_not_count():
    omission = ErrorSpan("major", start=3, end=90, side="source")
    unnamed = ErrorSpan("major", text="nowhere", side="source")
    found = character_f1(
        [[omission, unnamed, *spans((0, 1, "minor"))]], [[*spans((0, 1, "minor")), omission]], ["text"]
    )
    assert found.terms.tolist() == [[1, 1, 1]]
    assert found.unlocated_predicted == 0


def test_ends_beyond_the_text_are_cut():
    assert character_terms(spans((2, 99, "minor")), spans((2, 4, "minor")), 4) == (2, 2, 2)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (ErrorSpan("neutral", start=0, end=1), "severity 'neutral'.*allowed are major, minor and critical"),
        (ErrorSpan("major", text="word"), "'word' has no offsets.*locate_spans"),
        (ErrorSpan("major", start=5, end=6), "5:6 does not lie in a text of 4"),
        (ErrorSpan("major", start=-1, end=-1), "-1:-1"),
        (ErrorSpan("major", start=3, end=2), "3:2"),
    ],
)
def test_spans_that_mark_nothing_sensible_are_refused(span, message):
    with pytest.raises(DataError, match=message):
        character_terms([span], [], 4)
    with pytest.raises(DataError, match=message):
        character_terms([], [span], 4)


def test_sides_of_different_length_are_refused():
    with pytest.raises(DataError, match="1 predictions, 2 gold annotations and 1 texts"):
        character_f1([[]], [[], []], ["a"])


# Where spans without offsets belong


@pytest.mark.parametrize(
    ("policy", "texts", "starts", "unlocated"),
    [
        ("first", ["an", "an", "d"], [0, 0, 2], 0),
        ("successive", ["an", "an", "d"], [0, 4, 2], 0),
        ("successive", ["an", "an", "an"], [0, 4, 4], 0),
        ("all", ["an", "an"], [0, 4, 0, 4], 0),
        ("unique", ["an", "d a"], [2], 1),
        ("successive", ["An", "", "anx"], [], 3),
    ],
)
def test_policies_by_hand(policy, texts, starts, unlocated):
    found = locate_spans(named(*texts), "and an", policy=policy)
    assert [span.start for span in found.spans] == starts
    assert all("and an"[span.start : span.end] == span.text for span in found.spans)
    assert len(found.unlocated) == unlocated


def test_overlapping_occurrences_are_all_found():
    assert [span.start for span in locate_spans(named("aa"), "aaaa", policy="all").spans] == [0, 1, 2]


def test_offsets_are_kept_and_everything_else_of_a_span_too():
    given_span = ErrorSpan("minor", "Fluency", start=4, end=6, text="an")
    found = locate_spans([given_span, ErrorSpan("minor", "Style", text="an", description="why")], "and an")
    assert found.spans == (given_span, ErrorSpan("minor", "Style", 0, 2, "an", description="why"))


def test_unlocated_spans_are_counted_on_either_side_and_mark_nothing():
    found = character_f1([named("text", "gone")], [named("lost", "away", "text")], ["some text"])
    assert (found.unlocated_predicted, found.unlocated_gold, found.f1) == (1, 2, 1)


def test_the_policy_reaches_the_corpus():
    gold = [spans((4, 6, "major"))]
    assert character_f1([named("an")], gold, ["and an"]).f1 == 0
    assert character_f1([named("an")], gold, ["and an"], policy="all").recall == 1
    with pytest.raises(OptionError, match=r"unknown policy 'frist'.*did you mean 'first'"):
        character_f1([named("an")], gold, ["and an"], policy="frist")


# Intervals


def test_intervals_leave_out_groups_of_segments():
    from scipy.stats import t

    random = np.random.default_rng(3)
    gold = random.integers(1, 9, 40).astype(float)
    terms = np.column_stack([gold / 2, gold, gold])
    exact = character_f1_interval(terms)
    assert (exact.low, exact.high) == (0.5, 0.5)
    credit = gold * random.random(40)
    terms = np.column_stack([credit, gold, gold + 3])
    # F1 is twice the credit over both sums; the jackknife's error on Fisher's scale of 2 F1 - 1, written out.
    groups = np.arange(40) % 9
    parts = np.array([2 * kept[0] / (kept[1] + kept[2]) for kept in (terms[groups != g].sum(axis=0) for g in range(9))])
    f1 = 2 * terms.sum(axis=0)[0] / terms.sum(axis=0)[1:].sum()
    error = math.sqrt(8 / 9 * ((parts - parts.mean()) ** 2).sum()) / (2 * f1 * (1 - f1))
    ends = 0.5 + 0.5 * np.tanh(np.arctanh(2 * f1 - 1) + np.array([-1, 1]) * t.ppf(0.975, 8) * error)
    found = character_f1_interval(terms, groups)
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-12)
    # Each row four times under one label is the same evidence: as wide as before. As rows of their own: half.
    single, repeated = character_f1_interval(terms), np.repeat(terms, 4, axis=0)
    together = character_f1_interval(repeated, np.repeat(np.arange(40), 4))
    apart = character_f1_interval(repeated)
    assert (together.low, together.high) == pytest.approx((single.low, single.high), abs=1e-12)
    assert apart.high - apart.low < 0.65 * (together.high - together.low)


def test_where_character_f1_has_no_interval():
    two, lone = np.array([[1.0, 2, 4], [1, 2, 4]]), np.array([[0.0, 0, 0], [1, 2, 4], [0, 0, 0]])
    assert math.isnan(character_f1_interval(two).low)
    assert math.isnan(character_f1_interval(lone).low)  # without the second segment no character is marked
    assert math.isnan(character_f1_interval(np.full((5, 3), NAN)).low)
    with pytest.raises(OptionError, match="level 95"):
        character_f1_interval(two, level=95)
    with pytest.raises(DataError, match="1 groups for 2 rows"):
        character_f1_interval(two, ["a"])


def test_intervals_of_the_other_two_and_of_missing_segments():
    terms = np.array([[1.0, 2, 4], [1, 2, 4], [NAN, NAN, NAN], [1, 2, 4]])
    for statistic, value in (("precision", 1 / 2), ("recall", 1 / 4), ("f1", 1 / 3)):
        interval = character_f1_interval(terms, statistic=statistic)
        assert (interval.low, interval.high) == (pytest.approx(value), pytest.approx(value))
    with pytest.raises(OptionError, match="did you mean 'recall'"):
        character_f1_interval(terms, statistic="recal")
    with pytest.raises(DataError, match=r"\(4, 2\) are no \(n, 3\)"):
        character_f1_interval(terms[:, :2])


# Two judges


def difference_by_hand(first, second):
    """F1 is twice the credit over predicted and gold characters."""
    one, other = (np.asarray(terms, dtype=float).sum(axis=0) for terms in (first, second))
    return 2 * one[0] / (one[1] + one[2]) - 2 * other[0] / (other[1] + other[2])


FIRST = np.array([[4.0, 5, 6], [3, 3, 3], [0, 2, 1], [5, 9, 5], [2, 2, 7]])
SECOND = np.array([[1.0, 4, 6], [3, 4, 3], [1, 1, 1], [0, 3, 5], [2, 6, 7]])


def test_the_difference_of_two_judges_by_hand():
    # 2 x 14 / (21 + 22) - 2 x 7 / (18 + 22)
    test, interval = character_f1_difference(FIRST, SECOND, permutations=4000)
    assert test.observed == pytest.approx(28 / 43 - 14 / 40) == pytest.approx(difference_by_hand(FIRST, SECOND))
    swapped = [
        difference_by_hand(np.where(rows, SECOND, FIRST), np.where(rows, FIRST, SECOND))
        for rows in (np.array(swap, dtype=bool)[:, None] for swap in product((0, 1), repeat=5))
    ]
    exact = np.mean([abs(value) >= test.observed - 1e-12 for value in swapped])  # all 32 ways to swap
    assert test.p_value == pytest.approx(exact, abs=0.02)
    assert interval.low < test.observed < interval.high
    # the jackknife written out: each segment left out in turn
    parts = np.array([difference_by_hand(np.delete(FIRST, k, 0), np.delete(SECOND, k, 0)) for k in range(5)])
    error = math.sqrt(4 / 5 * ((parts - parts.mean()) ** 2).sum())
    assert interval.high - interval.low > 2 * error


def test_the_difference_turns_round_with_the_judges():
    test, interval = character_f1_difference(FIRST, SECOND)
    back, other = character_f1_difference(SECOND, FIRST)
    assert (back.observed, back.p_value) == (pytest.approx(-test.observed), test.p_value)
    assert (other.low, other.high) == (pytest.approx(-interval.high), pytest.approx(-interval.low))
    assert character_f1_difference(FIRST, SECOND, seed=0)[0] == test
    same, none = character_f1_difference(FIRST, FIRST)
    assert (same.observed, same.p_value, none.low, none.high) == (0.0, 1.0, 0.0, 0.0)


def test_groups_are_swapped_and_left_out_together():
    groups = ["a", "a", "b", "b", "c"]
    test, interval = character_f1_difference(FIRST, SECOND, groups, permutations=4000)
    own, others = ([terms[:2].sum(axis=0), terms[2:4].sum(axis=0), terms[4]] for terms in (FIRST, SECOND))
    summed, wide = character_f1_difference(own, others, permutations=4000)  # sums of groups are all that counts
    assert test == summed
    assert (interval.low, interval.high) == (pytest.approx(wide.low), pytest.approx(wide.high))


def test_segments_that_are_missing_in_one_take_no_part():
    gap = np.full((1, 3), NAN)
    test, interval = character_f1_difference(np.vstack([FIRST, gap]), np.vstack([SECOND, FIRST[:1]]))
    assert (test, interval) == character_f1_difference(FIRST, SECOND)


def test_judges_that_cannot_be_compared():
    with pytest.raises(DataError, match=r"\(5, 2\) are no \(n, 3\): give CharacterF1\.terms"):
        character_f1_difference(FIRST[:, :2], SECOND)
    with pytest.raises(DataError):
        character_f1_difference(FIRST, SECOND[:4])
    with pytest.raises(OptionError, match="level 95"):
        character_f1_difference(FIRST, SECOND, level=95)
    with pytest.raises(OptionError, match="0 resamples"):
        character_f1_difference(FIRST, SECOND, permutations=0)
    test, interval = character_f1_difference(np.full((3, 3), NAN), SECOND[:3])
    assert math.isnan(test.p_value)
    assert math.isnan(interval.low)


def equals(seed, documents=12, segments=8, lead=0.0):
    """Terms of two judges by segment of documents; both find more in easy documents, and one more if it leads."""
    random = np.random.default_rng(seed)
    easy = np.repeat(random.normal(0, 0.6, documents), segments)
    gold = random.poisson(30, easy.size)
    terms = []
    for more in (lead, 0.0):
        predicted = random.poisson(25, easy.size)
        share = 1 / (1 + np.exp(-(easy + more + random.normal(0, 0.5, easy.size))))
        terms.append(np.column_stack([np.minimum(gold, predicted) * share, predicted, gold]))
    return *terms, np.repeat(np.arange(documents), segments)


def rejected(simulations, lead=0.0, by_document=True):
    """The share of simulations with p below .05, and of intervals that hold 0."""
    hits = held = 0
    for seed in range(simulations):
        first, second, documents = equals(seed, lead=lead)
        test, interval = character_f1_difference(
            first, second, documents if by_document else None, permutations=199, seed=seed
        )
        hits, held = hits + (test.p_value < 0.05), held + (interval.low <= 0 <= interval.high)
    return hits / simulations, held / simulations


def test_equal_judges_are_seldom_told_apart_and_unequal_ones_are():
    hits, held = rejected(40)
    assert hits <= 0.15  # .05 is meant; more than 6 of 40 come once in three thousand times
    assert held >= 0.82
    hits, held = rejected(20, lead=0.5)
    assert hits >= 0.9
    assert held <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("by_document", [True, False], ids=["by document", "by segment"])
def test_level_and_coverage_of_the_difference(by_document):
    hits, held = rejected(600, by_document=by_document)
    assert 0.03 <= hits <= 0.075  # .05, and two to three standard errors of .009
    assert 0.925 <= held <= 0.975


# Raters


@pytest.fixture(scope="module")
def ratings(shared_data):
    """Spans by slot of raters, and texts, of the WMT23 side-by-side ratings."""
    found = defaultdict(dict)
    with gzip.open(shared_data / "wmt23_sxs_ende.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            marks = [
                ErrorSpan(e["severity"], e["category"], e["start"], e["end"], e["span"], e["side"])
                for e in row["errors"]
            ]
            found[row["system"], row["segment_id"]][row["slot"]] = (marks, row["target"])
    cells = list(found.values())
    return [[cell[slot][0] for cell in cells] for slot in range(3)], [cell[0][1] for cell in cells]


@pytest.mark.parametrize(("first", "second", "f1"), [(0, 1, 0.2690), (0, 2, 0.3011), (1, 2, 0.2828)])
def test_agreement_of_raters(ratings, first, second, f1):
    # Measured with a bit-mask and a character loop, both independent of this code.
    slots, texts = ratings
    assert character_f1(slots[first], slots[second], texts).f1 == pytest.approx(f1, abs=5e-5)


@pytest.mark.parametrize(("policy", "f1"), [("first", 0.9709), ("all", 0.9432)])
def test_gold_through_its_texts(ratings, policy, f1):
    slots, texts = ratings
    truth = [marks for slot in slots for marks in slot]
    bare = [[replace(span, start=None, end=None) for span in marks] for marks in truth]
    found = character_f1(bare, truth, texts * 3, policy=policy)
    assert found.f1 == pytest.approx(f1, abs=1e-4)
    assert found.unlocated_predicted == 1
    assert character_f1(bare, truth, texts * 3).f1 > found.f1  # successive occurrences do best
