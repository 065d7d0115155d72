"""tau-bench by path: its tools in a process, its customer by our model, and its reward, on a checkout of our own."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dspy
import pandas as pd
import pytest
from agent_reward.agent import ServiceAgent
from agent_reward.taubench import TauBench

from metricsmith.data import read_taubench
from metricsmith.errors import DataError, NeedsError, OptionError
from metricsmith.testing import GivenModel
from taubench_checkout import make_checkout

MOVE = {"seat": "A1", "row": 7, "cabin": "box"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def bench(folder):
    return TauBench(folder, timeout=20)


def customer(*turns):
    """A model that says these turns and then ends the conversation."""
    return GivenModel([{"turn": turn, "ended": number == len(turns)} for number, turn in enumerate(turns, 1)])


def test_the_tasks_come_from_the_checkout(bench):
    assert bench.tasks == {"train": ("0",), "test": ("1", "2")}
    assert bench.policy == "Be fair to every guest.\n"
    assert bench.stories["1"].startswith("You are Ben")


def test_doing_nothing_earns_the_reward_of_the_free_tasks_alone_and_asks_nobody(bench):
    """Task 1 has no gold action but one that fails and the transfer, which is not replayed."""
    assert bench.free == ("1",)
    assert [bench.start(task).close().reward for task in bench.stories] == [0, 1, 0]


def test_the_gold_actions_earn_the_reward(bench):
    session = bench.start("0")
    assert session.tools["move"](**MOVE) == "moved"
    episode = session.close()
    assert (episode.reward, episode.lacks) == (1, ())
    assert bench.start("0").close().lacks == ("The database at the end is not the one that the right calls lead to.",)


def test_outputs_are_told_as_the_benchmark_finds_them(bench):
    """In the text of one turn, commas aside: 1400 stands in 21,400 too. A call is no turn to the customer."""
    rewards = {}
    for text in ("It was 21,400 in all.", "It was 14 and 00.", 'Action:\n{"name": "x", "arguments": "1400"}'):
        session = bench.start("2")
        session.tools["refund"](amount=50, seats=["A1"])
        with customer("Hello", "Bye") as model, dspy.context(lm=model.lm()):
            session.say(text)
        episode = session.close()
        rewards[text] = episode.reward
        assert episode.lacks == (() if episode.reward else ("The customer was not told 1400.",))
    assert list(rewards.values()) == [1, 0, 0]


def test_whole_numbers_stay_whole_on_their_way_through_dspy(bench):
    """50.0 is another state of the database than 50, in the benchmark's hash as in ours."""
    for amount, reward in ((50, 1), (50.0, 0)):
        session = bench.start("2")
        session.tools["refund"](amount=amount, seats=["A1"])
        with customer("Hello", "Bye") as model, dspy.context(lm=model.lm()):
            session.say("1400")
        assert session.close().reward == reward


def test_corrected_tasks_of_the_later_benchmark_replace_those_of_the_checkout(folder, tmp_path):
    """The fields of tau2-bench's tasks.json (data/tau2/domains/airline), with a task of our own in them."""
    told = {"reason_for_call": "You want 5 back.", "known_info": "You are Dee.\n", "unknown_info": None}
    action = {"action_id": "0_0", "name": "refund", "arguments": {"amount": 5, "seats": []}, "info": None}
    criteria = {"actions": [action], "communicate_info": ["5"], "reward_basis": ["DB", "COMMUNICATE"]}
    scenario = {"persona": None, "instructions": {**told, "task_instructions": "Be brief."}}
    (tmp_path / "tasks.json").write_text(
        json.dumps([{"id": "0", "user_scenario": scenario, "evaluation_criteria": criteria}]), "utf-8"
    )
    bench = TauBench(folder, tasks=tmp_path / "tasks.json")
    assert bench.stories == {"0": "You are Dee.\n\nYou want 5 back.\n\nBe brief."}
    session = bench.start("0")
    session.tools["refund"](amount=5, seats=[])
    assert session.close().lacks == ("The customer was not told 5.",)


def test_tools_have_the_schemas_of_the_benchmark(bench):
    session = bench.start("0")
    move, look_up = session.tools["move"], session.tools["look_up"]
    assert move.args["row"] == {"type": "integer"}
    assert move.args["cabin"]["enum"] == ["pit", "box"]
    assert look_up.desc == "Look up a seat."
    assert "Such as A1." in str(look_up)
    session.close()


def test_wrong_calls_are_answered_and_change_nothing(bench):
    session = bench.start("1")
    assert session.tools["look_up"](seat="A9") == "Error: 'A9'"
    assert session.tools["look_up"](seat="A1") == "[1, 'pit']"  # which also prints, past the protocol
    assert "unexpected keyword" in session.tools["look_up"](place="A1")
    assert session.tools["look_up"](seat=["A1"]) == "Error: unhashable type: 'list'"  # past the schema, to the tool
    episode = session.close()
    assert episode.reward == 1
    assert [call.arguments for call in episode.calls][2:] == [{"place": "A1"}, {"seat": ["A1"]}]


def test_a_transfer_ends_the_conversation(bench):
    session = bench.start("0")
    assert session.tools["transfer_to_human_agents"](summary="gone") == "handed over"
    assert session.over
    assert session.tools["move"](**MOVE) == "Error: the conversation is over"
    assert session.say("Hello?") == ""
    assert session.close().reward == 0


def test_the_customer_is_a_model_that_hears_no_calls_and_the_episode_is_a_recorded_run(bench):
    session = bench.start("0", seed=3)
    with customer("Move me to row 7.", "A box, please.", "Thanks.") as model, dspy.context(lm=model.lm()):
        assert session.opening == "Move me to row 7."
        session.tools["look_up"](seat="A1")
        assert session.say("Pit or box?") == "A box, please."
        assert not session.over
        session.tools["move"](**MOVE)
        session.say("Done.")
        assert session.over
        assert session.say("Still there?") == ""
        prompts = [str(body["messages"]) for body in model.bodies]
    assert len(prompts) == 3
    assert "You are Ada" in prompts[0]
    assert "Pit or box?" in prompts[2]
    assert not any("look_up" in prompt or "Action:" in prompt for prompt in prompts)
    assert model.bodies[0]["temperature"] == 1.0
    episode = session.close()
    assert [message["role"] for message in episode.messages] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [call.tool for call in episode.calls] == ["look_up", "move"]
    runs = [
        {"id": episode.task, "user_query": session.opening, "messages": list(episode.messages), "reward": reward}
        for reward in (episode.reward, 0.0) * 4
    ]
    table = read_taubench(pd.DataFrame(runs))
    assert '{"name": "move"' in table.rows[0].output


def test_calls_see_what_earlier_ones_did_and_sessions_share_no_database(bench):
    first, second = bench.start("0"), bench.start("0")
    first.tools["move"](**MOVE)
    assert [one.tools["look_up"](seat="A1") for one in (first, second)] == ["[7, 'box']", "[1, 'pit']"]
    assert [first.close().reward, second.close().reward] == [1, 0]


def test_the_process_sees_no_key_and_leaves_nothing_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    folder = make_checkout(tmp_path)
    before = sorted(folder.rglob("*"))
    session = TauBench(folder).start("0")
    seen = session.tools["sees"]().split()
    session.close()
    assert set(seen) <= {"PATH", "LD_LIBRARY_PATH", "LC_CTYPE"}
    assert sorted(folder.rglob("*")) == before


def test_a_process_that_ends_is_an_error_with_its_last_words(bench):
    for code in (3, 0):
        session = bench.start("0")
        with pytest.raises(DataError, match=r"ended when asked to call\. Its last words: .*the floor is wet"):
            session.tools["fall"](code=code)
        with pytest.raises(DataError, match="ended when asked to judge"):
            session.close()


def test_a_process_that_takes_too_long_is_an_error_and_gone_with_what_it_started(folder):
    """Had the sleeper lived on, its hold on stderr would have kept us for a minute."""
    began, impatient = time.monotonic(), TauBench(folder, timeout=1.5).start("0")
    with pytest.raises(DataError, match=r"took over 1.5 s when asked to call\. Its last words: good night"):
        impatient.tools["sleep"]()
    assert impatient.tools["look_up"](seat="A1") == "Error: the conversation is over"  # the hang is not replayed
    with pytest.raises(DataError):
        impatient.close()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("step", "error"), [(("say", {"text": "Good day."}), dspy.LMError), (("fall", {}), DataError)])
def test_a_conversation_that_breaks_off_is_counted_and_never_a_reward(bench, step, error):
    """The customer opens and then answers no more, or a tool ends the benchmark's process."""
    turns = iter([{"turn": "Move me to row 7.", "ended": False}])

    def answered(prompt):
        if "ended" in prompt.rpartition("Respond with")[2]:
            return next(turns, 400)
        tool, arguments = ("finish", {}) if "[[ ## observation_0 ## ]]" in prompt else step
        return {"next_thought": "So be it.", "next_tool_name": tool, "next_tool_args": arguments}

    failed = []
    with GivenModel(answered) as model, dspy.context(lm=model.lm(num_retries=0)):
        with pytest.raises(error) as raised:
            ServiceAgent(bench, on_failure=failed.append)(task="0")
    assert failed == [raised.value]


def test_corrected_tasks_that_the_tools_of_the_checkout_cannot_serve_are_left_out(folder, tmp_path):
    """Their gold would be the database as it was, and doing nothing earn the reward."""
    gold = [("fly", {}), ("move", {**MOVE, "aisle": 1}), ("look_up", {"seat": "A9"}), ("move", MOVE), ("look_up", {})]
    tasks = [
        {
            "user_scenario": {"instructions": {"reason_for_call": f"Wish {place}."}},
            "evaluation_criteria": {"actions": [{"name": name, "arguments": arguments}], "communicate_info": []},
        }
        for place, (name, arguments) in enumerate([*gold, ("transfer_to_human_agents", {"summary": "no"})])
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), "utf-8")
    bench = TauBench(folder, tasks=tmp_path / "tasks.json")
    assert bench.left_out["0"] == "Unknown action fly"
    assert bench.left_out["2"] == "Error: 'A9'"
    assert set(bench.left_out) == {"0", "2", "4"}
    assert bench.tasks == {"train": ("1",), "test": ("3", "5")}
    assert bench.free == ("5",)
    with pytest.raises(OptionError, match="there is no task '2': give one of 1, 3, 5"):
        bench.start("2")


def test_what_is_missing_is_said(bench, folder, tmp_path):
    with pytest.raises(NeedsError, match=r"no checkout of tau-bench.*git clone"):
        TauBench(tmp_path)
    with pytest.raises(NeedsError, match=r"no-such-python.*an environment that has pydantic"):
        TauBench(folder, "no-such-python")
    with pytest.raises(OptionError, match="there is no task '3': give one of 0, 1, 2"):
        bench.start("3")
    broken = make_checkout(tmp_path)
    (broken / "tau_bench" / "types.py").write_text("import not_installed_here", "utf-8")
    with pytest.raises(DataError, match=r"No module named 'not_installed_here'.*Install what it lacks"):
        TauBench(broken)


def test_the_block_of_the_page_runs_in_the_folder_that_the_page_names(tmp_path):
    make_checkout(tmp_path / "tau-bench")
    root, there = Path(__file__).parents[2], tmp_path / "examples"
    shutil.copytree(root / "examples" / "agent_reward", there / "agent_reward")
    page = (root / "docs" / "experiments.md").read_text("utf-8")
    (block,) = re.findall(r"in `examples/`:\n\n```python\n(from agent_reward.taubench .*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=there, capture_output=True, text=True, check=True)
    assert done.stdout == "doing nothing earns the reward in 1 of 3 tasks: 1\n"


RULE = "Seat every guest in the row that was asked for."


def played(prompt):
    """Customer, agent, reflector and judge; until it is told the rule, the agent gives even rows to nobody."""
    asked = prompt.rpartition("Respond with")[2]
    if "next_tool_name" in asked:
        row = int(re.findall(r"Move me to row (\d+)", prompt)[-1])
        step = ("move", {**MOVE, "row": row if RULE in prompt or row % 2 else 1})
        tool, arguments = ("finish", {}) if "[[ ## observation_0 ## ]]" in prompt else step
        return {"next_thought": "So be it.", "next_tool_name": tool, "next_tool_args": arguments}
    if "new_instruction" in asked:
        faults = ("The database at the end is not the one", "By the row.")  # of the verifiable and the induced reward
        return json.dumps({"new_instruction": RULE if any(fault in prompt for fault in faults) else "Serve."})
    if "axes" in asked:
        return {"axes": [{"name": name, "meaning": f"The agent is {name}."} for name in ("right", "kind", "short")]}
    if "ended" in asked:
        return {"turn": f"Move me to {re.search(r'to (row .*?),', prompt)[1]}.", "ended": False}
    wanted, moved = re.findall(r"Move me to row (\d+)", prompt)[-1], re.findall(r'"row": (\d+)', prompt)[-1]
    return {"reasoning": "By the row.", "score": 5 if wanted == moved or "right" not in prompt else 1}


def test_the_whole_study_runs_on_a_checkout_with_corrected_tasks(folder, tmp_path, monkeypatch, capsys):
    """Ten tasks; the agent serves odd rows from the start, and learns the rest from either reward."""
    tasks = []
    for row in range(2, 12):
        told = {"reason_for_call": f"You want seat A1 moved to row {row}, in a box.", "task_instructions": ""}
        criteria = {"actions": [{"name": "move", "arguments": {**MOVE, "row": row}}], "communicate_info": []}
        tasks.append({"user_scenario": {"instructions": told}, "evaluation_criteria": criteria})
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), "utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with GivenModel(played) as model:
        where = ["--tau-bench", folder, "--tau-python", sys.executable, "--tau-tasks", tmp_path / "tasks.json"]
        options = ["--model", "openai/loopback", "--api-base", model.api_base, "--trials", 1, "--rollouts", 20]
        monkeypatch.setattr(sys, "argv", ["agent_study.py", *map(str, [*where, *options, "--out", tmp_path])])
        runpy.run_path(str(Path(__file__).parents[2] / "examples" / "agent_study.py"), run_name="__main__")
    assert capsys.readouterr().out.endswith("agent.md\n")
    lines = {line["name"]: line for line in json.loads((tmp_path / "agent.json").read_text())["lines"]}
    mean = {name: sum(map(sum, line["rewards"])) / 5 for name, line in lines.items()}
    assert mean == {
        "do nothing": 0, "transfer at once": 0, "base agent": 0.6, "GEPA, verifiable reward": 1.0,
        "GEPA, induced reward": 1.0,
    }  # fmt: skip
    assert all(line["failed"] == 0 for line in lines.values())
    assert "Be fair to every guest." in lines["base agent"]["instruction"]
