"""The judge that reads the raters' guideline."""

from __future__ import annotations

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.errors import OptionError
from metricsmith.metric import make_row
from metricsmith.programs.judges.raters import GuidelineJudge
from metricsmith.programs.loading import from_state
from metricsmith.records import Scale, Status


def judge(**changes):
    settings = {"measure": "Errors", "guideline": "Count the errors.", "task": "Translate.", "scale": Scale(0, 25)}
    return GuidelineJudge(**{**settings, **changes})


def answering(*scores):
    return DummyLM([{"reasoning": "r", "score": score} for score in scores])


def test_it_answers_on_the_raters_scale_and_in_its_direction():
    fewer_is_better = judge(scale=Scale(0, 10, higher_is_better=False))
    with dspy.context(lm=answering("8", "2.5")):
        first, second = fewer_is_better.judge_batch([make_row("a"), make_row("b")])
    assert (first.raw, first.score) == (8.0, pytest.approx(0.2))
    assert (second.raw, second.score) == (2.5, 0.75)
    assert not fewer_is_better.output.higher_is_better


def test_a_number_off_the_raters_scale_fails():
    with dspy.context(lm=answering("26", "26")):
        (judgement,) = judge().judge_batch([make_row("a")])
    assert (judgement.status, judgement.raw) == (Status.OUT_OF_RANGE, None)


def test_guideline_scale_and_direction_are_shown():
    content = judge(scale=Scale(0, 25, 5, higher_is_better=False)).messages(make_row("OUT"))[-1]["content"]
    assert "Count the errors." in content
    assert "Errors: a number from 0 to 25 in steps of 5; 0 is best" in content


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_guideline_is_refused(text):
    with pytest.raises(OptionError, match="give the text that the raters were given"):
        judge(guideline=text)


def test_the_guideline_is_part_of_state_and_fingerprint():
    again = from_state(judge().to_state())
    assert again.to_state() == judge().to_state()
    assert again.fingerprint() == judge().fingerprint() != judge(guideline="Count twice.").fingerprint()
