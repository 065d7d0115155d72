"""The agent's study: what the loopback agent, reflector and judge may know, and what GEPA makes of each reward."""

from __future__ import annotations

import json
import math
import runpy
import sys
import time
from collections import Counter
from pathlib import Path

import dspy
import numpy as np
import pytest
from agent_reward.agent import ServiceAgent, do_nothing, transfer_at_once
from agent_reward.loop import FAULTLESS, examples, optimised, played, rows, verified, without_words
from agent_reward.loopback import controls, loopback, read_transcript
from agent_reward.policy import POLICY, RULES, broken
from agent_reward.scripted import run_steps, steps
from agent_reward.study import BASE, FLOORS, INDUCED, VERIFIED, run_study, write_study
from agent_reward.tasks import tasks
from agent_reward.world import ServiceSession, ServiceWorld
from dspy.teleprompt.gepa import InstructionProposer

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import row_text
from metricsmith.testing import GivenModel

WORLD = ServiceWorld()
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SINGLE = [f"train-{number:02d}" for number in range(1, 7)]  # each is decided by one rule, another one each
pytestmark = pytest.mark.usefixtures("quiet_dspy")


@pytest.fixture
def quiet_dspy():
    """GEPA logs every prompt."""
    dspy.disable_logging()
    yield
    dspy.enable_logging()


@pytest.fixture
def lm():
    with loopback() as lm, dspy.context(lm=lm):
        yield lm


def small():
    """Six tasks with a rule each and two without to learn from; three with a rule and one without to test on."""
    world = ServiceWorld()
    world.tasks = {"train": ("train-13", *SINGLE, "train-14"), "test": ("test-13", "test-04", "test-05", "test-06")}
    return world


def test_the_agent_obeys_exactly_the_rules_that_it_was_told(lm):
    assert [tasks()[task].rules for task in SINGLE] == [(rule,) for rule in RULES]
    for rule, task in zip(RULES, SINGLE, strict=True):
        without = "\n".join(sentence for other, sentence in RULES.items() if other != rule)
        told, untold = (
            ServiceAgent(WORLD, told=text)(task=task).episode for text in (RULES[rule], without)
        )  # fmt: skip
        assert (told.reward, told.lacks) == (1.0, ())
        assert untold.reward == 0.0
        assert untold.lacks[0] == f"{rule}: {RULES[rule]}"


def test_with_the_whole_policy_every_test_task_is_served_in_threads_as_one_by_one(lm):
    agent = ServiceAgent(WORLD, told=POLICY)
    side_by_side = played(agent, WORLD.tasks["test"], [0], threads=8)
    assert [episode.reward for episode in side_by_side] == [1.0] * 20
    for episode in side_by_side[::5]:
        session = WORLD.start(episode.task)
        run_steps(session, steps(tasks()[episode.task], RULES))
        assert session.close() == episode


@pytest.mark.parametrize("adapter", [None, dspy.JSONAdapter(), dspy.XMLAdapter()])
def test_a_trajectory_is_written_as_dspy_writes_it_without_parsing_source(adapter, monkeypatch):
    react = ServiceAgent(ServiceWorld()).react
    trajectory = {"thought_0": "First.\nThen.", "tool_name_0": "say", "tool_args_0": {"text": "x"}, "observation_0": 1}
    with dspy.context(adapter=adapter):
        expected = dspy.ReAct._format_trajectory(react, trajectory)
        monkeypatch.setattr("ast.parse", None)
        assert react._format_trajectory(trajectory) == expected
        assert "tool_args_0" in str(expected)


def test_the_trace_shows_one_predictor_which_the_program_owns(lm):
    agent = ServiceAgent(WORLD)
    assert [name for name, _ in agent.named_predictors()] == ["react.react"]
    with dspy.context(trace=[]):
        agent(task="train-13")
        assert {id(step[0]) for step in dspy.settings.trace} == {id(agent.react.react)}
    assert list(agent.react.tools) == ["finish"]


def test_a_transcript_is_read_as_it_was_written():
    for task in (*WORLD.tasks["train"], *WORLD.tasks["test"]):
        for obeyed in (RULES, ()):
            session = WORLD.start(task)
            run_steps(session, steps(tasks()[task], obeyed))
            episode = session.close()
            read = read_transcript(row_text(rows([episode])[0]).output)
            assert read.messages == episode.messages
            assert [dict(call.arguments) for call in read.calls] == [dict(call.arguments) for call in episode.calls]
            assert broken(read) == broken(episode)


@pytest.mark.parametrize(
    ("feedback", "added"),
    [
        ([f"once: {RULES['once']}", f"number: {RULES['number']}", f"number: {RULES['number']}"], "number"),
        ([f"identity: {RULES['identity']}", FAULTLESS], None),  # stands in the instruction already
        ([RULES["refund"]], None),  # a sentence of the policy that is no breach
        (["", ""], None),
    ],
)
def test_the_reflector_adds_one_rule_whose_breach_it_was_told_of(lm, feedback, added):
    before = f"Serve the customer.\n{RULES['identity']}"
    shown = [{"Inputs": {"opening": "Hello."}, "Generated Outputs": {}, "Feedback": text} for text in feedback]
    after = InstructionProposer()({"agent": before}, {"agent": shown}, ["agent"])["agent"]
    assert after == (f"{before}\n{RULES[added]}" if added else before)


def test_a_control_judges_every_task_as_another_one():
    shuffled, _ = controls(WORLD)["control: rewards of other tasks"]
    assert set(shuffled.judged_as) == set(shuffled.judged_as.values()) == set(WORLD.tasks["train"])
    assert all(task != other for task, other in shuffled.judged_as.items())


def test_the_floors_earn_one_test_task_in_twenty_each():
    for floor in (do_nothing, transfer_at_once):
        assert sum(floor(WORLD.start(task)).reward for task in WORLD.tasks["test"]) == 1


def test_the_verifiable_reward_has_the_faults_as_its_words(lm):
    example = examples(WORLD, "train")[0]
    pred = ServiceAgent(WORLD)(**example.inputs())
    assert verified(example, pred).toDict() == {"score": 0.0, "feedback": f"identity: {RULES['identity']}"}
    assert without_words(example, pred, None, "react.react").toDict() == {"score": 0.0, "feedback": ""}


def test_without_words_gepa_learns_nothing_and_with_them_it_learns_rules(lm):
    learned = {}
    for reward in (without_words, verified):
        tuned = optimised(ServiceAgent(small()), reward, small(), lm=lm, budget=40)
        instruction = tuned.react.react.signature.instructions
        learned[reward] = sum(sentence in instruction for sentence in RULES.values())
        assert tuned.detailed_results.total_metric_calls <= 40 - 1 + 6 + 4  # as gepa_bound has it
    assert learned[without_words] == 0
    assert learned[verified] >= 2


def test_a_model_that_does_not_answer_is_counted_and_never_a_tested_reward():
    failed = []
    with GivenModel(lambda prompt: 400) as model, dspy.context(lm=model.lm(num_retries=0)):
        agent = ServiceAgent(WORLD, on_failure=failed.append)
        with pytest.raises(dspy.LMError):
            played(agent, ["train-13"], [0])
        assert len(failed) == 1
        with pytest.raises(dspy.LMError):
            agent.deepcopy()(task="train-13")
    assert len(failed) == 2  # optimisers copy programs


def test_an_episode_that_cannot_be_judged_is_counted(lm, monkeypatch):
    failed = []
    agent = ServiceAgent(WORLD, on_failure=failed.append)

    def close(session):
        raise DataError("no judge")

    monkeypatch.setattr(ServiceSession, "close", close)
    with pytest.raises(DataError, match="no judge") as raised:
        agent(task="train-13")
    assert failed == [raised.value]


def test_the_study_in_small(lm, tmp_path):
    study = run_study(small(), lm, trials=2, budget=46)
    lines = {line.name: line for line in study.lines}
    assert list(lines) == [*FLOORS, BASE, VERIFIED, INDUCED]
    assert lines[BASE].mean == 0.25  # the task of four that no rule decides
    assert lines[VERIFIED].mean > 0.25
    assert math.isnan(lines[BASE].p)
    assert 16 < lines[INDUCED].rollouts <= 46 - 1 + 6 + 4
    assert lines[VERIFIED].rollouts <= 46 - 1 + 6 + 4
    assert [line.failed for line in study.lines] == [0] * 5
    first, *others = (abs(measure.kendall_tau_b) for measure in study.measures)
    assert first == pytest.approx(np.nanmax(others))  # on four tasks as good as the best line of code, the turns
    gaps = study.monitor.gaps()
    assert gaps[0].reference == 0.25
    printed = write_study(study, tmp_path)
    assert "induced metric" in printed
    assert np.shape(json.loads((tmp_path / "agent.json").read_text())["lines"][0]["rewards"]) == (4, 2)
    assert f"- {RULES['identity']}" in (tmp_path / "agent.md").read_text("utf-8")
    assert (tmp_path / "reward.html").exists() == (len(gaps) > 1)


@pytest.mark.parametrize(("trials", "budget"), [(0, 135), (5, 60)])
def test_a_study_without_trials_or_rollouts_says_how_many_it_needs(trials, budget):
    with pytest.raises(OptionError, match="more than 60 rollouts, 40 of which are rated"):
        run_study(WORLD, None, trials=trials, budget=budget)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--offline", "--model", "m"],
        ["--offline", "--tau-bench", "folder"],
        ["--model", "m", "--tau-tasks", "file"],
    ],
)
def test_the_launcher_refuses_options_that_do_not_go_together(options, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["agent_study.py", *options])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(EXAMPLES / "agent_study.py"), run_name="__main__")
    assert "--model" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_loop_offline(monkeypatch, capsys, tmp_path):
    """The base earns .4, the ceiling of 1 is reached in 150 rollouts, controls are no better than the base."""
    monkeypatch.setattr(sys, "argv", ["agent_study.py", "--offline", "--out", str(tmp_path)])
    started, start = Counter(), ServiceWorld.start
    monkeypatch.setattr(
        ServiceWorld, "start", lambda world, task, seed=0: started.update([task[:5]]) or start(world, task, seed)
    )
    began = time.process_time()
    runpy.run_path(str(EXAMPLES / "agent_study.py"), run_name="__main__")
    table, _, report = capsys.readouterr().out.partition("\nreport: ")
    assert time.process_time() - began < 180
    assert report.endswith("agent.md\n")
    assert f"--offline\n{table}" in (EXAMPLES.parent / "docs" / "experiments.md").read_text("utf-8")
    written = json.loads((tmp_path / "agent.json").read_text())
    lines = {line["name"]: line for line in written["lines"]}
    programs = [line for line in lines.values() if line["instruction"]]
    rollouts = sum(line["rollouts"] for line in lines.values())
    assert started["train"] == rollouts + len(programs)  # each program looks at one session's tools
    assert started["test-"] == 20 * 5 * len(lines) + 20 * len(written["gaps"])  # trials, and the monitor's programs
    mean = {name: float(np.mean(line["rewards"])) for name, line in lines.items()}
    assert np.shape(lines[BASE]["rewards"]) == (20, 5)
    assert mean[BASE] == 0.4
    assert mean[VERIFIED] == 1.0
    assert mean[INDUCED] > 0.6
    assert lines[INDUCED]["p"] < 0.05
    assert all(line["rollouts"] <= 150 for line in lines.values())
    for control in controls(WORLD):
        assert lines[control]["p"] == 1.0
        assert mean[control] == 0.4
