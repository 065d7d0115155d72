"""A criterion judge on a scale of the caller's: what it asks, which answers count, and what its file holds."""

from __future__ import annotations

import dspy
import pytest
from dspy.utils import DummyLM

from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.optimizers.candidates import _seated
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.loading import load
from metricsmith.records import Scale, Status, Task

WORDS = {"criterion": "Plain words", "meaning": "Short.", "task": "Rewrite notices."}


def judge(scale=None, **changes):
    return CriterionJudge(**WORDS, **changes, **({} if scale is None else {"scale": scale}))


def answers(*scores):
    return DummyLM([{"reasoning": "r", "score": str(score)} for score in scores])


@pytest.mark.parametrize("scale", ["1:5", "1:5:1", Scale(1, 5), Scale(1, 5, 1), {"low": 1, "high": 5}])
def test_one_to_five_is_the_judge_without_a_scale(scale):
    assert judge(scale).to_state() == judge().to_state()
    assert judge(scale).fingerprint() == judge().fingerprint()


@pytest.mark.parametrize(
    ("scale", "asked", "words"),
    [
        ("0:10", Scale(0, 10, 1), "a whole number from 0 to 10; 0 is worst, 10 is best"),
        ("1:5:.5", Scale(1, 5, 0.5), "a number from 1 to 5 in steps of 0.5; 1 is worst, 5 is best"),
        ("0:100", Scale(0, 100), "a number from 0 to 100; 0 is worst, 100 is best"),
        (Scale(0, 3, 1, False), Scale(0, 3, 1, False), "a whole number from 0 to 3; 3 is worst, 0 is best"),
    ],
)
def test_the_scale_is_what_the_model_is_asked_for(scale, asked, words):
    made = judge(scale)
    assert made.scale == asked
    assert (made.output.low, made.output.high, made.output.higher_is_better) == (
        asked.low, asked.high, asked.higher_is_better,
    )  # fmt: skip
    prompt = str(made.messages(make_row("text")))
    assert words in prompt
    assert "from 1 to 5, digits" not in prompt
    assert f"from {asked}" in made.card.summary


@pytest.mark.parametrize(
    ("scale", "given", "raw", "score"), [("0:10", 7, 7, 0.7), ("1:5:.5", 3.5, 3.5, 0.625), ("0:100", 62.5, 62.5, 0.625),
                                         ("0:1:.1", 0.3, 0.3, 0.3), (Scale(0, 3, 1, False), 3, 3, 0.0)]
)  # fmt: skip
def test_a_number_on_a_point_counts(scale, given, raw, score):
    with dspy.context(lm=answers(given)):
        found = judge(scale)("text")
    assert (found.raw, found.score) == (pytest.approx(raw), pytest.approx(score))


@pytest.mark.parametrize(("scale", "given"), [("0:10", 11), ("0:10", 7.5), ("1:5:.5", 3.25), ("0:100", -1)])
def test_a_number_between_or_beyond_the_points_is_out_of_range(scale, given):
    with dspy.context(lm=answers(given)), pytest.raises(JudgementFailed, match="not on the scale") as caught:
        judge(scale)("text")
    assert caught.value.status == Status.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("scale", "says"),
    [
        ("five", "scale 'five' is not of the form LOW:HIGH"),
        (5, "scale 5 is not of the form LOW:HIGH"),
        ("5:1", "low < high"),
        ("-1.7:1.2", r"scale='-1.7:1.2' is none that a model can be asked on; allowed are 0:1, 0:100, and 2 to 11"),
        ("0:10:.5", "scale='0:10:.5' is none that"),
        ("1:5:3", "scale='1:5:3' is none that"),
    ],
)
def test_a_scale_that_no_model_can_be_asked_on_is_refused_with_those_that_can(scale, says):
    with pytest.raises(OptionError, match=says):
        judge(scale)


def test_the_file_holds_the_scale_and_a_judge_of_another_one_does_not_take_it(tmp_path):
    made = judge("0:10").with_examples([make_row("shown")], [7])
    made.save(tmp_path / "judge.json")
    loaded = load(tmp_path / "judge.json")
    assert (loaded.scale, loaded.fingerprint()) == (Scale(0, 10, 1), made.fingerprint())
    with dspy.context(lm=answers(7)):
        assert loaded("text").score == 0.7
    for built, other in ((judge(), made), (judge("0:10"), judge())):
        built.load_state(other.dump_state())
        with dspy.context(lm=answers(4)), pytest.raises(StateError, match="this judge was built for another"):
            built("text")


def test_a_judge_on_a_scale_of_its_own_is_asked_alone():
    with pytest.raises(OptionError, match="plain_words is asked from 0 to 10, and a panel from 1 to 5"):
        Panel([judge("0:10")])
    alone, seated = judge("0:10"), judge(name="other")
    kept = _seated([alone, seated], Task("t", "rating", Scale(1, 5)))
    assert kept[0] is alone
    assert isinstance(kept[1], PanelMember)


def test_judges_in_the_raters_place_and_g_eval_take_a_scale_as_text_too():
    raters = {"measure": "Plain words", "task": "Rewrite notices."}
    assert ExampleJudge(**raters, scale="1:7:1").rating_scale == Scale(1, 7, 1)
    assert GuidelineJudge(**raters, guideline="Look.", scale="1:7").scale == Scale(1, 7, 1)
    assert GEval(**WORDS, steps=["Look."], mode="stated", scale="0:10:1").scale == Scale(0, 10, 1)
