"""Evaluation steps written by a model: numbering taken off, counts checked."""

from __future__ import annotations

import asyncio

import dspy
import pytest

from metricsmith.errors import JudgementFailed
from metricsmith.programs.generators.rubrics import StepsGenerator
from metricsmith.testing import GivenModel


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (["Look.", "Weigh."], ["Look.", "Weigh."]),
        (["1. Look.", "2) Weigh.", "Step 3: Decide.", "- End."], ["Look.", "Weigh.", "Decide.", "End."]),
        (["Look.", " ", "3 words are few."], ["Look.", "3 words are few."]),
    ],
)
def test_steps_come_without_numbering(written, kept):
    with GivenModel(lambda prompt: {"steps": written}) as server, dspy.context(lm=server.lm()):
        assert StepsGenerator()(task="t", criterion="c").steps == kept
        assert asyncio.run(StepsGenerator().acall(task="t", criterion="c")).steps == kept


@pytest.mark.parametrize("written", [[], [" ", "1. "], ["x"] * 13])
def test_no_steps_and_too_many_are_a_failure(written):
    with GivenModel(lambda prompt: {"steps": written}) as server, dspy.context(lm=server.lm()):
        with pytest.raises(JudgementFailed, match="1 to 12 are usable"):
            StepsGenerator()(task="t", criterion="c")
