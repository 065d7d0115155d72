"""Raters against each other."""

from __future__ import annotations

import math

import pytest

from metricsmith.errors import DataError
from metricsmith.stats.correlation import kendall_tau_b, pearson
from metricsmith.stats.rater_agreement import rater_agreement

# By item, then rater: the ratings of the systems x, y, z.
RATINGS = {
    "s1": {"ann": (0, -1, -5), "bob": (0, -1, -5), "cem": (-5, -1, 0)},
    "s2": {"ann": (0, -2, -5), "bob": (-2, 0, -5)},
    "s3": {"ann": (-1, -1, -1), "bob": (0, -1, -2)},
}


def rows(**changes):
    return [
        {"group": item, "system": system, "rater": rater, "mqm": float(score)} | changes
        for item, by_rater in RATINGS.items()
        for rater, scores in by_rater.items()
        for system, score in zip("xyz", scores, strict=True)
    ]


def test_raters_are_compared_inside_items():
    found = rater_agreement(rows(), "mqm")
    assert [pair.raters for pair in found.pairs] == [("ann", "bob"), ("ann", "cem"), ("bob", "cem")]
    ann_bob, ann_cem, bob_cem = found.pairs
    # s1: 1; s2: two of three pairs agree, (2 - 1) / 3; s3: ann rates all alike.
    assert ann_bob.n == 9
    assert ann_bob.kendall_tau_b.value == pytest.approx((1 + 1 / 3) / 2)
    assert (ann_bob.kendall_tau_b.groups_used, ann_bob.kendall_tau_b.groups_dropped) == (2, 1)
    assert ann_bob.pearson.value == pytest.approx((1 + pearson([0, -2, -5], [-2, 0, -5])) / 2)
    assert (ann_cem.kendall_tau_b.value, ann_cem.n) == (-1, 3)
    # All in one: 1, 1/3, -1, -1, and the item without a value.
    assert found.kendall_tau_b.value == pytest.approx((1 + 1 / 3 - 1 - 1) / 4)
    assert (found.kendall_tau_b.groups_used, found.kendall_tau_b.groups_dropped) == (4, 1)
    assert (found.n, found.items) == (15, 3)
    assert bob_cem.pearson.value == pytest.approx(pearson([0, -1, -5], [-5, -1, 0]))


def test_the_items_are_not_thrown_together():
    # Rater b sees the same order as a in both items, on another level.
    shifted = [
        {"group": item, "system": system, "rater": rater, "mqm": score + shift}
        for item, rater, shift in [("1", "a", 0), ("1", "b", 9), ("2", "a", 0), ("2", "b", -9)]
        for system, score in [("x", 1.0), ("y", 2.0)]
    ]
    assert rater_agreement(shifted, "mqm").kendall_tau_b.value == 1
    assert kendall_tau_b([1, 2, 1, 2], [10, 11, -8, -7]) < 1


def test_rows_without_a_rating_are_skipped_and_names_are_the_callers():
    given = [dict(row, seg=row.pop("group")) for row in rows()]
    given[0]["mqm"] = None
    found = rater_agreement(given, "mqm", item="seg")
    assert found.pairs[0].n == 8
    assert found.n == 13


def test_an_item_that_is_never_defined_is_nan_not_nothing():
    two = [{"group": "1", "system": "x", "rater": rater, "mqm": 0.0} for rater in "ab"]
    found = rater_agreement(two, "mqm")
    assert math.isnan(found.kendall_tau_b.value)
    assert (found.n, found.kendall_tau_b.groups_dropped) == (1, 1)


def test_ratings_that_cannot_be_compared_are_refused():
    single = [row for row in rows() if row["rater"] == "ann"]
    with pytest.raises(DataError, match="no output was rated by two of the 1 raters"):
        rater_agreement(single, "mqm")
    with pytest.raises(DataError, match="row 23: 'ann' rated 'y' on item 's1' before"):
        rater_agreement([*rows(), dict(single[1], rater="dora"), single[1]], "mqm")
    with pytest.raises(DataError, match=r"row 1 has no 'group'"):
        rater_agreement(rows(group=None), "mqm")
    with pytest.raises(DataError, match=r"row 1 has no 'raters' \(did you mean 'rater'"):
        rater_agreement(rows(), "mqm", rater="raters")
