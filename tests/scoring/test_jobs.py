"""A job's cost stands with a judgement that was wanted."""

from __future__ import annotations

import dspy

from metricsmith.records import Judgement, Usage
from metricsmith.scoring.jobs import Done, Job


def test_what_an_unwanted_part_cost_goes_to_the_first_that_was_wanted():
    judged = [[Judgement("a", 1.0, 1.0, usage=Usage(1, 10))], [Judgement("b", 2.0, 1.0, usage=Usage(0, 0))]]
    wanted = Job(object(), (), dspy.Example(output="text"), (0,), 7, ((None,), (3,)))
    ((place, row, judgement),) = Done(wanted, judged).placed()
    assert (place, row, judgement.metric) == (3, 7, "b")
    assert judgement.usage == Usage(1, 10)
