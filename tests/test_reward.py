"""The reward: what it asks, what it says, and what it does where there is no value."""

from __future__ import annotations

import copy
import logging
import math
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import Metric
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Output, Scale, Status, Task
from metricsmith.rendering import bounded
from metricsmith.reward import Reward
from metricsmith.scoring import CallableMetric
from metricsmith.stats.regression import LinearCombination, ZScore
from stubs import Scripted

TASK = Task("Write.", "quality", Scale(1, 5))
ROW = dspy.Example(id="r1", input="q").with_inputs("input")


class Part(Scripted):
    """A component with a bounded number, whose verdict follows from the output."""

    def __init__(self, name, verdict):
        output = Output(name, low=-10, high=10, description=f"how {name}")
        super().__init__(lambda row, run: verdict(row.output), name, output)


def induced(*verdicts, weights=(0.5, 0.3, 0.2), best=(1.0, 1.0, 1.0)):
    """Components a, b, c whose raw numbers are used as they are (mean 0, deviation 1); intercept 3."""
    names = ("a", "b", "c")[: len(verdicts)]
    columns = tuple(ZScore(mean=0.0, sd=1.0) for _ in names)
    return InducedMetric(
        components=[Part(name, verdict) for name, verdict in zip(names, verdicts, strict=True)],
        combination=LinearCombination(names, tuple(range(len(names))), columns, weights[: len(names)], 3.0),
        task=TASK,
        best=best[: len(names)],
    )


def said(reward, output="text", **more):
    return reward(ROW, dspy.Prediction(output=output), **more)


def fails(output):
    return Status.UNPARSABLE


def warned(caplog):
    return sum(record.name == "metricsmith.reward" for record in caplog.records)


def test_without_failures_the_score_is_the_metrics_own():
    metric = induced(lambda o: 1.0, lambda o: -1.0, lambda o: 2.0)
    # 3 + .5 * 1 - .3 * 1 + .2 * 2 = 3.6 on 1 to 5: (3.6 - 1) / 4 = .65
    assert said(metric.as_reward()).score == pytest.approx(0.65)
    row = dspy.Example(input="q", output="text")
    assert said(metric.as_reward()).score == metric.judge_batch([row])[0].score


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        # a is missing: (-.3 + .4) * 1 / .5 = .2 -> 3.2 -> .55; counted as average it would be 3.1 -> .525
        ((fails, lambda o: -1.0, lambda o: 2.0), 0.55),
        # b is missing: (.5 + .4) * 1 / .7 = 9 / 7 -> (2 + 9 / 7) / 4 = 23 / 28
        ((lambda o: 1.0, fails, lambda o: 2.0), 23 / 28),
        # b and c are missing: .5 * 1 / .5 = 1 -> 4 -> .75
        ((lambda o: 1.0, fails, fails), 0.75),
        # clipped: 3 + .5 * 10 / .5 = 13
        ((lambda o: 10.0, fails, fails), 1.0),
    ],
)
def test_the_weights_of_what_is_there_are_scaled_up(verdicts, score):
    assert said(induced(*verdicts).as_reward()).score == pytest.approx(score)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.integers(0, 2))
def test_a_missing_component_weighs_as_if_it_had_never_been_there(values, missing):
    weights = (0.4, 0.35, 0.25)
    verdicts = [lambda o, value=value: value for value in values]
    verdicts[missing] = fails
    explanation = induced(*verdicts, weights=weights).explain([dspy.Example(output="x")])[0]
    kept = [place for place in range(3) if place != missing]
    share = sum(weights[place] * values[place] for place in kept) / sum(weights[place] for place in kept)
    assert explanation.renormalised == pytest.approx(3 + share * sum(weights))
    assert explanation.missing == pytest.approx(weights[missing])


def test_what_was_left_out_is_said_first_with_its_reason():
    lines = said(induced(lambda o: 1.0, fails, lambda o: 1.0).as_reward()).feedback.splitlines()
    assert lines[0] == "Score 0.75 on a scale from 0 (worst) to 1 (best)."
    assert lines[1] == "Left out of the score, the other weights scaled up: b: no value (planted)"


def test_the_costliest_component_comes_first_and_one_without_loss_not_at_all():
    # Costs against a best contribution of 1: a 1 - .5 = .5, b 1 + .3 = 1.3, c 0 since 1 - .2 * 5 = 0.
    lines = said(induced(lambda o: 1.0, lambda o: -1.0, lambda o: 5.0).as_reward()).feedback.splitlines()
    assert [line.split(" ")[0] for line in lines[1:]] == ["b", "a"]
    assert "1.30 rating points behind" in lines[1]


def test_where_nothing_is_lost_it_says_so():
    assert "No component" not in said(induced(lambda o: 1.9).as_reward()).feedback
    assert said(induced(lambda o: 2.0).as_reward()).feedback.endswith("No component sees a loss.")


def test_too_little_weight_raises_with_the_models_status_and_lists_the_row(caplog):
    reward = induced(lambda o: 1.0, fails, fails, weights=(0.4, 0.4, 0.2)).as_reward()
    with caplog.at_level(logging.WARNING), pytest.raises(JudgementFailed, match=r"only 40% .* 50% is needed") as caught:
        said(reward)
    assert caught.value.status == Status.UNPARSABLE
    (failure,) = reward.failures
    assert (failure.row, failure.output, failure.status, failure.times) == (ROW, "text", "unparsable", 1)
    assert "no reward for row r1" in caplog.text
    assert "row r1: induced: only 40%" in reward.report()


def test_exactly_the_least_weight_is_enough_and_the_share_is_an_option():
    verdicts = (lambda o: 1.0, fails, fails)
    assert said(induced(*verdicts).as_reward()).score == pytest.approx(0.75)
    with pytest.raises(JudgementFailed):
        said(induced(*verdicts).as_reward(least_weight=0.6))
    assert said(induced(*verdicts, weights=(0.3, 0.5, 0.2)).as_reward(least_weight=0.2)).score == pytest.approx(
        (2 + 1) / 4
    )


def test_nothing_at_all_is_a_failure_whatever_the_least_weight():
    with pytest.raises(JudgementFailed, match="only 0%"):
        said(induced(fails, fails).as_reward(least_weight=0.01))


def test_a_failure_is_tried_again_by_a_scoring_call_and_not_by_a_feedback_call(caplog):
    metric = induced(fails)
    reward = metric.as_reward()
    for _ in range(2):
        with pytest.raises(JudgementFailed):
            said(reward)
    assert (len(metric.components[0].asked), reward.failures[0].times) == (2, 2)
    told = said(reward, trace=[], pred_name="write", pred_trace=[])
    assert (told.score, len(metric.components[0].asked), reward.failures[0].times) == (None, 2, 2)
    assert "could not be judged, so nothing is known" in told.feedback
    assert warned(caplog) == 1


def test_an_output_that_cannot_be_read_is_listed_too():
    reward = induced(lambda o: 1.0).as_reward(output="answer")
    with pytest.raises(DataError, match="no field 'answer'"):
        said(reward)
    assert [(failure.status, failure.output) for failure in reward.failures] == [("DataError", "")]


def test_a_program_that_gave_nothing_is_no_reason_to_judge_the_gold_output():
    reward = induced(lambda o: 1.0).as_reward()
    with pytest.raises(JudgementFailed, match="gave no output"):
        reward(dspy.Example(input="q", output="gold"), None)
    assert len(reward.failures) == 1


def test_bootstrapping_gets_a_bool_with_the_bar_reached_by_equality():
    reward = induced(lambda o: 0.0).as_reward(success_at=0.5)
    assert said(reward, trace=[]) is True
    assert said(induced(lambda o: -0.1).as_reward(success_at=0.5), trace=[]) is False


def test_a_predictors_turn_is_named_with_what_it_gave():
    given = dspy.Prediction(plan="first\nsecond", reasoning="r")
    told = said(induced(lambda o: 0.0).as_reward(), trace=[], pred_name="plan", pred_trace=[(None, {}, given)])
    lines = told.feedback.splitlines()
    assert lines[1:6] == [
        "This is about the step 'plan' of the program, which gave:", "plan:", "  first", "  second", "reasoning: r",
    ]  # fmt: skip
    assert told.score == 0.5
    assert lines[6].startswith("a = 0")


def test_a_long_turn_leaves_room_for_the_reasons():
    given = dspy.Prediction(plan="word " * 1000)
    reward = induced(lambda o: 0.0).as_reward(feedback_chars=400)
    told = said(reward, trace=[], pred_name="plan", pred_trace=[(None, {}, given)]).feedback
    assert "a = 0" in told
    assert len(told) <= 400


@given(st.text(alphabet="ab \n", max_size=300), st.integers(100, 200))
def test_bounded_never_exceeds_its_limit_and_cuts_at_word_ends(text, limit):
    short = bounded(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        kept, count, total = *short.rsplit(" [cut: ", 1)[:1], *short.rsplit(" [cut: ", 1)[1].split()[0:3:2]
        assert text.startswith(kept)
        assert (int(count), int(total)) == (len(kept), len(text))
        if " " in text[:60] or "\n" in text[:60]:
            assert text[len(kept)] in " \n"


def test_the_judges_words_are_bounded():
    metric = Scripted(lambda row, run: 1.0)
    metric._judge = lambda row, run: Scripted._judge(metric, dspy.Example(row, id="word " * 999), run)
    reward = Reward(metric, feedback_chars=150)
    feedback = said(reward).feedback
    assert len(feedback) <= 150
    assert feedback.endswith("characters]")


@pytest.mark.parametrize("options", [{"feedback_chars": 99}, {"least_weight": 0}, {"success_at": 1.1}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        induced(lambda o: 1.0).as_reward(**options)


def test_equal_outputs_of_a_row_are_judged_once_by_many_threads_and_in_copies():
    metric = induced(lambda o: 1.0)
    reward = metric.as_reward()
    with ThreadPoolExecutor(8) as pool:
        assert {verdict.score for verdict in pool.map(said, [reward] * 40)} == {0.875 - 0.25}
    assert len(metric.components[0].asked) == 1
    assert said(copy.copy(reward)).score == 0.625
    assert len(metric.components[0].asked) == 1
    said(reward, "another text")
    assert len(metric.components[0].asked) == 2
    assert reward.report().startswith("42 calls, 2 judged, 0 outputs without a reward")


def test_what_fails_in_a_deep_copy_is_listed_in_the_original():
    reward = Reward(CallableMetric(lambda row, pred: None, name="none", version="1"))
    with pytest.raises(JudgementFailed):
        said(copy.deepcopy(reward))
    assert len(reward.failures) == 1


def test_only_so_many_failed_rows_are_named_in_the_log(caplog):
    reward = induced(fails).as_reward()
    for number in range(101):
        with pytest.raises(JudgementFailed):
            said(reward, f"text {number}")
    assert len(reward.failures) == 101
    assert warned(caplog) == 11


def test_the_model_is_injected_and_the_programs_trace_left_alone():
    judge = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")
    lm = dspy.utils.DummyLM([{"reasoning": "short", "score": "4"}])
    trace = []
    with dspy.context(trace=trace, lm=None):
        verdict = said(judge.as_reward(lm=lm))
    assert (verdict.score, trace) == (0.75, [])
    assert verdict.feedback == "Score 0.75 on a scale from 0 (worst) to 1 (best).\nshort"


JUDGE = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")
METRICS = [
    JUDGE,
    Repeated(JUDGE, runs=3),
    Panel([JUDGE, CriterionJudge(criterion="Tone", meaning="Kind.", task="Write.")]).members()[0],
    default_bank().get("fkgl"),
    ColumnMetric("good"),
    CallableMetric(lambda row, pred: len(pred.output), name="length"),
    induced(lambda o: 1.0),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
def test_every_metric_with_as_metric_has_as_reward(metric):
    assert isinstance(metric, Metric)
    reward = metric.as_reward(input="question", output=("title", "body"), success_at=0.7)
    assert isinstance(reward, Reward)
    assert (reward.metric, reward.success_at, reward.fields["output"]) == (metric, 0.7, ("title", "body"))


def test_outputs_of_several_fields_and_of_agents_reach_the_metric_as_text():
    seen = []
    metric = induced(lambda o: seen.append(o) or 1.0)
    metric.as_reward(output=("title", "tags"))(ROW, dspy.Prediction(title="Storm", tags=["wind"]))
    trajectory = {"thought_0": "t", "tool_name_0": "finish", "tool_args_0": {}, "observation_0": "Completed."}
    metric.as_reward(output=["trajectory", "answer"])(ROW, dspy.Prediction(trajectory=trajectory, answer="a"))
    metric.as_reward()(ROW, [{"role": "assistant", "content": "Hi"}])
    assert seen == [
        "title: Storm\ntags:\n  - wind",
        'trajectory:\n  step 1 thought: t\n  step 1 calls finish {}\n  step 1 observation: Completed.\nanswer: a',
        "assistant: Hi",
    ]  # fmt: skip


def test_several_input_fields_are_shown_together():
    judge = CallableMetric(lambda row, pred: float(row.input == "question: q\npassage: p"), name="joined")
    reward = judge.as_reward(input=("question", "passage"))
    row = dspy.Example(question="q", passage="p")
    assert reward(row, "out").score == judge.output.score(1.0)


def test_a_function_sees_the_whole_example_with_the_new_output():
    function = CallableMetric(lambda row, pred: float(row.gold == pred.output), name="exact", version="1")
    reward = function.as_reward()
    right, wrong = (dspy.Example(input="q", gold=gold) for gold in ("yes", "no"))
    assert reward(right, "yes").score > reward(wrong, "yes").score


def test_a_function_inside_an_induced_metric_sees_the_whole_example_too():
    function = CallableMetric(lambda row, pred: float(row.gold == pred.output), name="exact", version="1")
    metric = induced(lambda o: 0.0)
    metric.components[0] = function
    metric.settings.values["combination"]["columns"][0]["name"] = "exact"
    right, wrong = (dspy.Example(input="q", gold=gold) for gold in ("yes", "no"))
    assert metric.as_reward()(right, "yes").score > metric.as_reward()(wrong, "yes").score


def test_the_columns_of_the_examples_own_output_say_nothing_of_a_new_one():
    with pytest.raises(JudgementFailed, match="no number in column 'good'"):
        ColumnMetric("good").as_reward()(dspy.Example(output="old", columns={"good": 3.0}), "new")


def program(**inputs):
    if inputs["input"] == "crash":
        raise ZeroDivisionError("by design")
    return dspy.Prediction(output=inputs["input"])


def test_a_check_keeps_failures_out_of_the_mean_and_names_them(caplog):
    reward = induced(lambda o: fails(o) if o == "bad" else float(len(o))).as_reward()
    rows = [dspy.Example(id=text, input=text).with_inputs("input") for text in ("a", "bad", "crash", "aaa")]
    checked = reward.check(program, rows, num_threads=2)
    # a: 3 + .5 -> .625; aaa: 3 + 1.5 -> .875
    assert checked.score == pytest.approx(0.75)
    assert [outcome.row.id for outcome in checked.outcomes] == ["a", "bad", "crash", "aaa"]
    assert [outcome.row.id for outcome in checked.failures] == ["bad", "crash"]
    assert "mean reward .750 over 2 of 4 rows; 2 without a reward" in caplog.text
    with pytest.raises(JudgementFailed, match="row crash: the program failed: ZeroDivisionError: by design"):
        checked.raise_for_failures()


def test_a_check_without_failures_is_handed_on_and_asks_nothing_twice(caplog):
    metric = induced(lambda o: 1.0)
    reward = metric.as_reward()
    rows = [dspy.Example(input="a").with_inputs("input")]
    reward(rows[0], dspy.Prediction(output="a"))
    assert reward.check(program, rows).raise_for_failures().score == 0.625
    assert len(metric.components[0].asked) == 1
    assert caplog.text == ""
    assert math.isnan(reward.check(program, []).score)
