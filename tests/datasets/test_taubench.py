from __future__ import annotations

import json

import dspy
import pandas as pd
import pytest

import metricsmith
from loopback import scripted
from metricsmith.datasets.taubench import DESCRIPTION, SCALE, read_taubench
from metricsmith.errors import DataError, OptionError
from metricsmith.rendering import render_messages
from metricsmith.testing import GivenModel

TASKS = {
    "a": "I want to cancel order 7.",
    "b": "Please book the early train.",
    "c": "What is left on my card?",
    "d": "Send it to my new address.",
    "e": "I lost my password.",
}


def talk(query: str, run: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": query},
        {"role": "assistant", "content": 'Action:\n{"name": "look_up", "arguments": {}}'},
        {"role": "user", "content": "API output: found"},
        {"role": "assistant", "content": "Done. " + "It was a very complicated undertaking indeed. " * run},
    ]


def runs(**changes) -> pd.DataFrame:
    """Four runs of each of five tasks; later runs talk more and are rewarded less."""
    records = [
        {"id": task, "split": "test" if task == "e" else "train", "model": "m", "user_query": query,
         "messages": repr(talk(query, run)), "reward": float(run < 2)}
        for task, query in TASKS.items()
        for run in range(4)
    ]  # fmt: skip
    return pd.DataFrame(records).assign(**changes)


def message(source, error=DataError, **options) -> str:
    with pytest.raises(error) as caught:
        read_taubench(source, **options)
    return str(caught.value)


def with_cell(index: int, cell: object) -> pd.DataFrame:
    cells = runs()["messages"].astype(object).tolist()
    cells[index] = cell
    return runs(messages=pd.Series(cells, dtype=object))


@pytest.mark.parametrize("form", ["python", "json", "lists"])
def test_a_row_is_a_conversation_with_its_reward(form, tmp_path):
    frame, path = runs(), tmp_path / "runs.csv"
    talks = [talk(query, run) for query in TASKS.values() for run in range(4)]
    if form == "lists":
        path = path.with_suffix(".jsonl")
        frame.assign(messages=talks).to_json(path, orient="records", lines=True)
    else:
        frame.assign(messages=[repr(one) if form == "python" else json.dumps(one) for one in talks]).to_csv(path)
    table = read_taubench(path)
    assert table.rows[5].toDict() == {
        "id": "6",
        "group": "b",
        "input": TASKS["b"],
        "output": render_messages(talks[5]),
        "reward": 1.0,
    }
    assert sorted(table.rows[5].inputs().keys()) == ["input", "output"]
    assert (table.task.target, table.task.scale, table.task.description) == ("reward", SCALE, DESCRIPTION)
    assert table.groups == [task for task in TASKS for _ in range(4)]
    assert table.ratings.tolist() == [1.0, 1.0, 0.0, 0.0] * 5


def test_conditions_and_the_description_are_the_callers():
    table = read_taubench(runs(), task="Serve.", where="split!=test", min_rated=16)
    assert (len(table), table.task.description) == (16, "Serve.")
    assert "16 of 20 rows fulfil split!=test" in table.notes
    assert len(read_taubench(with_cell(19, "nonsense"), where=["split=train"])) == 16
    assert len(read_taubench(with_cell(0, "nonsense"), where=["split=test"], min_rated=4)) == 4


def test_columns_that_a_guess_would_take_change_nothing():
    table = read_taubench(runs(prompt="x", output="y", rating=3, group="z"))
    assert (table.columns.inputs, table.columns.output, table.task.target) == (("user_query",), "messages", "reward")
    assert table.groups == read_taubench(runs()).groups


def test_a_task_is_the_group_even_if_it_was_run_once():
    names = [f"t{number}" for number in range(20)]
    table = read_taubench(runs().assign(id=names, user_query=names))  # equal queries would join two tasks
    assert table.groups[:2] == ["t0", "t1"]
    assert table.ids[:2] == ["1", "2"]


def test_a_missing_column_is_named():
    text = message(runs().drop(columns="reward"))
    assert "no column 'reward'" in text
    assert "id, user_query, messages, reward" in text
    assert "read_table" in text
    assert "did you mean 'user query'" in message(runs().rename(columns={"user_query": "user query"}))


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (repr(talk("Hi", 1))[:-9], "cut off"),
        ("Hello", "plain text"),
        ("", "it is empty"),
        ("{'role': 'user'}", "message 1 has neither content nor tool calls"),
        ("['Hi']", "item 1 is a str"),
        ("[{'content': 'Hi'}]", "no role"),
        ("[{'role': 'asistant', 'content': 'Hi'}]", "message 1 is by 'asistant' (did you mean 'assistant'?)"),
    ],
)
def test_a_bad_conversation_is_one_error_that_names_the_row(cell, why):
    text = message(with_cell(6, cell))
    assert "row 7 " in text
    assert "'messages'" in text
    assert why in text
    assert "correct" in text


def test_even_where_most_conversations_are_bad():
    assert "row 1 " in message(runs(messages="Hello"))


@pytest.mark.parametrize("reward", ["won", 7, -0.5])
def test_a_reward_is_a_number_from_0_to_1(reward):
    rewards = runs()["reward"].astype(object).tolist()
    rewards[3] = reward
    assert "row 4 " in message(runs(reward=pd.Series(rewards, dtype=object)))


def test_wrong_options_are_refused():
    assert "at least 21 are needed" in message(runs(), min_rated=21)
    assert "no column 'spilt' (did you mean 'split'?)" in message(runs(), OptionError, where="spilt=train")


SMALL = {"criterion": 3, "rubric": 1}


def induced(table, **generators):
    with GivenModel(scripted) as server, dspy.context(lm=server.lm()):
        optimizer = metricsmith.AutoMetrics(bank="generated", generators=generators or SMALL)
        done = metricsmith.induce(table, optimizer, fraction=0.4)
    return done.record, [prompt for prompt in server.prompts if "[[ ## score ## ]]" in prompt]


def test_generated_judges_read_the_conversations():
    record, judged = induced(read_taubench(runs()))
    # 20 conversations by 4 judges; equal texts would be judged once.
    assert len(judged) == 80
    assert all("\nuser: API output: found\nassistant: Done." in prompt for prompt in judged)
    assert not any("'role'" in prompt for prompt in judged)
    # Five tasks of four runs, none of them on both sides.
    assert (record.test.groups, record.test.n) == (2, 8)
    assert len(record.components) >= 1


def test_recorded_runs_are_read_whole(shared_data):
    table = read_taubench(shared_data / "taubench_train_runs.csv")
    # Counted in the file: 104 runs of 25 tasks, 36 of them with reward 1.
    assert (len(table), len(set(table.groups)), table.ratings.sum()) == (104, 25, 36)
    for row in table.rows:
        assert row.output.startswith("user:")
        assert row.input.splitlines()[0] in row.output


def test_recorded_runs_are_induced_from_by_task(shared_data):
    record, judged = induced(read_taubench(shared_data / "taubench_train_runs.csv"), criterion=2)
    assert len(judged) == 2 * 104
    assert record.train.groups + record.test.groups == 25
    assert record.train.n + record.test.n == 104
