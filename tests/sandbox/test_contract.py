"""Limits: their bounds, and the lower of two."""

from __future__ import annotations

import math

import pytest

from metricsmith.sandbox.contract import Limits


@pytest.mark.parametrize("name", ["row_seconds", "seconds", "megabytes", "printed_bytes", "output_bytes"])
@pytest.mark.parametrize("value", [-1, math.inf, math.nan, 1e13, 10**400, True, "1", None])
def test_a_limit_is_a_finite_number(name, value):
    with pytest.raises(ValueError, match=f"{name}=.* must be a"):
        Limits(**{name: value})


def test_times_and_memory_are_above_0_and_bytes_may_be_0():
    assert Limits(printed_bytes=0, output_bytes=0).output_bytes == 0
    for name in ("row_seconds", "seconds", "megabytes"):
        with pytest.raises(ValueError, match=f"{name}=0 must be a finite number from 0.001"):
            Limits(**{name: 0})
    with pytest.raises(ValueError, match=r"output_bytes=1.5 must be a whole number from 0"):
        Limits(output_bytes=1.5)


def test_the_lower_of_two_limits_is_taken_one_by_one():
    mine, theirs = Limits(row_seconds=1, seconds=2), Limits(row_seconds=0.1, seconds=9, megabytes=1, output_bytes=5)
    assert mine.lower(theirs) == Limits(row_seconds=0.1, seconds=2, megabytes=1, output_bytes=5)
    assert mine.lower(theirs) == theirs.lower(mine)
