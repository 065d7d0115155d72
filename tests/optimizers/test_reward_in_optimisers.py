"""DSPy's Evaluate and optimisers run with a reward; the server counts what they ask."""

from __future__ import annotations

import json
import logging
import warnings

import dspy
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Scale, Task
from metricsmith.stats.regression import LinearCombination, ZScore
from metricsmith.testing import GivenModel

ROWS = [dspy.Example(id=f"n{n}", notice=f"notice {n}").with_inputs("notice") for n in range(8)]
JUDGE = CriterionJudge(criterion="Brevity", meaning="The output is short.", task="Write.")
FIELDS = {"input": "notice", "output": "rewrite"}


class Writer(dspy.Module):
    def __init__(self):
        super().__init__()
        self.write = dspy.Predict(dspy.Signature("notice -> rewrite", "Rewrite the notice."))

    def forward(self, notice):
        return self.write(notice=notice)


def induced():
    """A judge (mean 3, deviation 1) and a bank metric; 3 + .8 judge - .2 grade level."""
    grade = default_bank().get("fkgl")
    return InducedMetric(
        components=[JUDGE, grade],
        combination=LinearCombination(
            ("brevity", grade.name), (0, 1), (ZScore(3.0, 1.0), ZScore(5.0, 5.0)), (0.8, -0.2), 3.0
        ),
        task=Task("Write.", "quality", Scale(1, 5)),
        best=[1.6, 0.2],
    )


def judged(prompt):
    return "## score ##" in prompt.rsplit("Respond with", 1)[-1]


def answer(prompt):
    asked = prompt.rsplit("Respond with", 1)[-1]
    if "new_instruction" in prompt:
        return json.dumps({"new_instruction": "Rewrite the notice in short words."})
    if judged(prompt):
        if "notice 3" in prompt.rsplit("[[ ## output ## ]]", 1)[-1]:
            return {"reasoning": "no idea", "score": "many"} if answer.broken else {"reasoning": "fine", "score": "4"}
        short = "short" in prompt.rsplit("[[ ## output ## ]]", 1)[-1]
        return {"reasoning": "short enough" if short else "too long-winded", "score": "5" if short else "2"}
    if "proposed_instruction" in asked:
        return {"proposed_instruction": "Rewrite the notice in short words."}
    if "`rewrite`" in asked or "## rewrite ##" in asked:
        number = prompt.rsplit("notice ", 1)[-1].split()[0]
        return {"rewrite": f"{'short' if 'short words' in prompt else 'long'} notice {number}"}
    names = ("observations", "summary", "program_description", "module_description", "discussion", "module_advice")
    fields = {name: "COMPLETE" for name in names if f"{name}" in asked}
    if "module_advice" in fields:
        fields["module_advice"] = {"write": "Use short words."}
    return fields or {"text": "nothing"}


answer.broken = False


@pytest.fixture(params=["induced", "judge", "induced itself"])
def reward(request):
    made = (JUDGE if request.param == "judge" else induced()).deepcopy()
    if request.param != "induced itself":
        return made.as_reward(**FIELDS)
    made.settings.values["reading"] = {"inputs": ["notice"], "output": "rewrite"}  # as a table's columns were called
    reward = made.as_reward()
    made._ledger = reward._ledger
    return reward


@pytest.fixture
def metric(reward):
    """The metric that DSPy is handed: the reward, or the metric itself."""
    return reward if reward.fields else reward.metric


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(answer, "broken", False)
    with GivenModel(answer) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        with dspy.context(lm=running.lm(num_retries=0)):
            yield running


def judgements(server):
    return [prompt for prompt in server.prompts if judged(prompt) and "new_instruction" not in prompt]


def evaluate(metric):
    return dspy.Evaluate(devset=ROWS, metric=metric, num_threads=3, display_progress=False)


def test_evaluate_takes_it_and_asks_once_for_each_output(metric, reward, server):
    first, again = evaluate(metric)(Writer()), evaluate(metric)(Writer())
    assert first.score == again.score
    assert 0 < first.score < 100
    assert len(judgements(server)) == len(ROWS)
    assert reward.failures == ()


def test_gepa_improves_a_program_and_its_feedback_calls_send_nothing(metric, reward, server):
    optimizer = dspy.GEPA(metric=metric, max_metric_calls=30, reflection_lm=dspy.settings.lm, num_threads=2, seed=0)
    tuned = optimizer.compile(Writer(), trainset=ROWS[:4], valset=ROWS[4:])
    assert tuned.write.signature.instructions == "Rewrite the notice in short words."
    asked = judgements(server)
    # 8 notices in 2 forms at most: whatever GEPA asked more often came from memory.
    assert len(asked) == len(set(asked)) <= 16
    assert reward._ledger.calls > 30
    told = next(prompt for prompt in server.prompts if "examples_with_feedback" in prompt)
    assert "too long-winded" in told
    assert "This is about the step 'write' of the program, which gave:" in told
    assert reward.check(tuned, ROWS).raise_for_failures().score > reward.check(Writer(), ROWS).score


def test_mipro_takes_it(metric, reward, server):
    optimizer = dspy.MIPROv2(
        metric=metric, auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=0,
        prompt_model=dspy.settings.lm, num_threads=2,
    )  # fmt: skip
    tuned = optimizer.compile(Writer(), trainset=ROWS[:4], valset=ROWS[4:], num_trials=2, minibatch=False)
    assert reward.check(tuned, ROWS).raise_for_failures().score >= reward.check(Writer(), ROWS).score
    assert len(judgements(server)) == len(set(judgements(server)))


def test_simba_takes_it(metric, reward, server):
    optimizer = dspy.SIMBA(metric=metric, bsize=4, num_candidates=2, max_steps=1, max_demos=1, num_threads=2)
    tuned = optimizer.compile(Writer(), trainset=ROWS, seed=0)
    assert reward.failures == ()
    assert reward.check(tuned, ROWS).raise_for_failures().score >= reward.check(Writer(), ROWS).score


def test_bootstrap_few_shot_keeps_only_what_passes_the_bar(metric, reward, server):
    tuned = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=2, max_labeled_demos=0).compile(
        Writer(), trainset=ROWS
    )
    assert all("notice 3" in demo.rewrite for demo in tuned.write.demos)
    reward.success_at = 0.1
    tuned = dspy.BootstrapFewShot(metric=reward, max_bootstrapped_demos=2, max_labeled_demos=0).compile(
        Writer(), trainset=ROWS
    )
    assert [sorted(demo.keys()) for demo in tuned.write.demos] == [["augmented", "notice", "rewrite"]] * 2


def test_failed_rows_are_listed_logged_and_kept_out_of_the_check(server, monkeypatch, caplog):
    monkeypatch.setattr(answer, "broken", True)
    reward = JUDGE.deepcopy().as_reward(**FIELDS)
    optimizer = dspy.GEPA(metric=reward, max_metric_calls=20, reflection_lm=dspy.settings.lm, num_threads=2)
    with caplog.at_level(logging.WARNING, "metricsmith"):
        tuned = optimizer.compile(Writer(), trainset=ROWS[:4], valset=ROWS[4:])
    assert {failure.row.id for failure in reward.failures} == {"n3"}
    assert "no reward for row n3" in caplog.text
    checked = reward.check(tuned, ROWS)
    assert [outcome.row.id for outcome in checked.failures] == ["n3"]
    booked = evaluate(reward)(tuned).score / 100
    assert checked.score == pytest.approx(booked * 8 / 7, abs=1e-3)


def test_a_failed_row_does_not_take_the_whole_proposal_with_it(server, monkeypatch):
    monkeypatch.setattr(answer, "broken", True)
    reward = JUDGE.deepcopy().as_reward(**FIELDS)
    optimizer = dspy.GEPA(
        metric=reward, max_metric_calls=12, reflection_lm=dspy.settings.lm, reflection_minibatch_size=4, num_threads=2
    )
    optimizer.compile(Writer(), trainset=ROWS[:4], valset=ROWS[4:])
    told = [prompt for prompt in server.prompts if "examples_with_feedback" in prompt]
    assert told
    assert all("notice 3" not in prompt and prompt.count("too long-winded") == 3 for prompt in told[:1])
