"""Pairs shown in both orders."""

from __future__ import annotations

import dspy
import pytest

from metricsmith.errors import DataError, JudgementFailed
from metricsmith.metric import make_row
from metricsmith.studies.probing.run import probe_position

PAIRS = [(make_row("long " * n, input=f"i{n}"), make_row("short", input=f"i{n}")) for n in range(2, 12)]


def longer(first, second):
    return float(len(first.output) > len(second.output))


def test_a_judge_that_reads_is_fair_and_one_that_takes_the_first_is_not():
    fair, first = probe_position(longer, PAIRS), probe_position(lambda first, second: 1.0, PAIRS)
    assert (fair.value, fair.consistent, fair.groups) == (0.0, 1.0, 10)
    assert (first.value, first.consistent) == (0.5, 0.0)


def test_failures_are_missing_and_bugs_are_raised():
    def sometimes(first, second):
        if first.output == "long " * 5:
            raise JudgementFailed("no")
        return longer(first, second)

    assert probe_position(sometimes, PAIRS).missing == 1
    with pytest.raises(ZeroDivisionError):
        probe_position(lambda first, second: 1 / 0, PAIRS)


def test_the_model_is_handed_on():
    class Silent(dspy.BaseLM):
        def __init__(self):
            super().__init__(model="silent")

    lm = Silent()
    seen = []
    probe_position(lambda first, second: float(bool(seen.append(dspy.settings.lm))), PAIRS[:2], lm=lm)
    assert seen == [lm] * 4


def test_wrong_input_is_refused():
    with pytest.raises(DataError, match="no pairs"):
        probe_position(longer, [])
    with pytest.raises(DataError, match="not in"):
        probe_position(lambda first, second: 3.0, PAIRS)
