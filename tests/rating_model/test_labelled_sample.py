"""Labelled and unlabelled rows, aligned: what is left out, joined or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.corrected import prediction_powered_mean
from metricsmith.rating_model.labelled_sample import LabelledSample

NAN = math.nan


def test_rows_without_a_number_are_left_out_and_counted():
    sample = LabelledSample.of([1, NAN, 3, 4], [1, 2, NAN, 4], [5, NAN, NAN], groups="abcd", unlabelled_groups="dxy")
    assert sample.ratings.tolist() == [1, 4]
    assert sample.unlabelled.tolist() == [5]
    assert (sample.missing, sample.unlabelled_missing) == (2, 2)
    assert sample.groups.tolist()[1:] == sample.unlabelled_groups.tolist()  # d on both sides is one group


def test_without_labels_each_row_is_a_group_of_its_own():
    sample = LabelledSample.of([1, 2, 3], [1, 2, 3], [1, 2])
    assert sample.groups.tolist() == [0, 1, 2]
    assert sample.unlabelled_groups.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"strata": "ab"}, OptionError, "go together"),
        ({"difference": ("a", "b")}, OptionError, "difference= needs them"),
        ({"ratings": [1, NAN]}, DataError, "1 labelled groups and 2 unlabelled rows have numbers"),
        ({"unlabelled": [NAN, NAN]}, DataError, "2 labelled groups and 0 unlabelled rows have numbers"),
        ({"ratings": [1, 2, 3]}, DataError, "not aligned"),
        ({"unlabelled": [math.inf, 2]}, DataError, "1 numbers are infinite"),
        ({"predictions": [-math.inf, 2]}, DataError, "1 numbers are infinite"),
        ({"groups": "a"}, DataError, "3 groups for 4 rows"),
        ({"strata": "aa", "unlabelled_strata": "bb"}, DataError, "0 unlabelled rows of 'a' have numbers"),
        ({"strata": "ab", "unlabelled_strata": "aa"}, DataError, "1 labelled groups and 2 unlabelled rows of 'a'"),
    ],
)
def test_sets_that_cannot_be_aligned_are_refused(change, error, said):
    given = {"ratings": [1, 2], "predictions": [1, 2], "unlabelled": [1, 2], **change}
    arrays = [given.pop(name) for name in ("ratings", "predictions", "unlabelled")]
    with pytest.raises(error, match=said):
        LabelledSample.of(*arrays, **given)


def test_a_group_on_both_sides_is_one_of_a_kind():
    """The judge's level of a group cancels where its other rows are unlabelled, and the interval is narrower."""
    random = np.random.default_rng(0)
    level = np.repeat(3 * random.normal(size=20), 6).reshape(20, 6)
    f = level + random.normal(size=level.shape)
    y = f[:, :2] + random.normal(size=(20, 2))
    groups, others = np.repeat(np.arange(20), 2), np.repeat(np.arange(20), 4)
    widths = []
    for shift in (0, 20):
        sample = LabelledSample.of(
            y.ravel(), f[:, :2].ravel(), f[:, 2:].ravel(), groups=groups, unlabelled_groups=others + shift
        )
        found = prediction_powered_mean(sample, lam=1.0)
        # both by hand: y - f has no level; the mean of f has one of 3 / sqrt(20), which the ratings share
        widths.append(found.high - found.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


def test_strata_with_groups_of_their_own_have_their_own_degrees_of_freedom():
    """The squared width over strata is the sum of those of separate means, up to the quantile of Student's t."""
    from scipy.special import stdtrit

    y = np.tile([1.0, 2, -1, -2, 1, -1, 4, -4], 2)  # no skewness
    sample = LabelledSample.of(y, y, np.zeros(40), strata="a" * 8 + "b" * 8, unlabelled_strata="a" * 30 + "b" * 10)
    found = prediction_powered_mean(sample, lam=0.0)
    variance = y[:8].var(ddof=1) / 8 * (0.75**2 + 0.25**2)
    assert (found.high - found.low) / 2 == pytest.approx(stdtrit(15, 0.975) * math.sqrt(variance))
