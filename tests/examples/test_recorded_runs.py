"""The figures on recorded runs of tau-bench, remade from the file that METRICSMITH_DATA holds."""

from __future__ import annotations

import ast
import math
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from agent_reward import recorded

from metricsmith import score
from metricsmith.bank.base import numbers_kept
from metricsmith.bank.code import CodeMetric
from metricsmith.data import read_taubench

WRITING = ("book_reservation", "cancel_reservation", "send_certificate", "update_reservation_")


@pytest.fixture(scope="module")
def path(shared_data):
    return shared_data / "taubench_train_runs.csv"


@pytest.fixture(scope="module")
def runs(path):
    return read_taubench(path)


def test_counts_in_the_text_are_those_of_the_calls_in_the_agents_turns(path, runs):
    """Customers and the benchmark's answers add none, though answers hold names too."""
    for row, cell in zip(runs.rows, pd.read_csv(path)["messages"], strict=True):
        turns = [message["content"] for message in ast.literal_eval(cell) if message["role"] == "assistant"]
        names = [re.search(r'"name": "(\w+)"', turn)[1] for turn in turns if turn.startswith("Action:")]
        assert recorded.calls(row.output) == len(names)
        assert recorded.transfers(row.output) == names.count("transfer_to_human_agents")
        assert recorded.turns(row.output) == len(turns)
        assert recorded.writing_calls(row.output) == sum(name.startswith(WRITING) for name in names)


def test_the_agreement_of_counts_with_the_reward_is_remade(runs):
    """Leave one task out and Student's t, by SciPy's tau-b and quantile; the figures of the page, on this file."""
    found = recorded.agreement(runs)
    tasks, rewards = np.array([row.group for row in runs.rows]), np.array([row.reward for row in runs.rows])
    for (one, plain), of in zip(found, recorded.BASELINES.values(), strict=True):
        counts, names = np.array([of(row.output) for row in runs.rows]), sorted(set(tasks))
        left = [scipy.stats.kendalltau(counts[tasks != name], rewards[tasks != name])[0] for name in names]
        error = math.sqrt((len(names) - 1) * np.var(left))
        half = scipy.stats.t.ppf(0.975, len(names) - 1) * error
        whole = scipy.stats.kendalltau(counts, rewards)[0]
        assert (one.kendall_tau_b, plain.low, plain.high) == pytest.approx((whole, whole - half, whole + half))
    rounded = {
        one.name: (round(one.kendall_tau_b, 3), round(plain.low, 2), round(plain.high, 2)) for one, plain in found
    }
    assert rounded == {
        "calls of transfer_to_human": (0.449, 0.24, 0.66),
        "no writing call": (0.379, 0.10, 0.66),
        "fewer writing calls": (0.300, 0.01, 0.59),
    }


def test_seven_runs_were_rewarded_without_the_writing_call_that_their_task_needs(runs):
    assert len(recorded.unexplained(runs)) == 7
    assert set(recorded.unexplained(runs)) == {"1", "3", "5", "9", "14", "16"}
    assert len(recorded.FREE) == 7


def test_counts_are_code_that_the_sandbox_runs_to_the_same_numbers(runs):
    metrics = [CodeMetric.from_function(function) for function in recorded.COUNTS]
    values = score(metrics, runs.rows[:20], progress=False).run()
    assert values.tolist() == [[function(row.output) for function in recorded.COUNTS] for row in runs.rows[:20]]


def test_the_rewards_of_the_tasks_held_back_change_no_number(runs):
    groups = np.array([row.group for row in runs.rows])
    held = recorded._held_back(groups, seed=0)
    assert not set(groups[held]) & set(groups[~held])
    assert len(set(groups[~held])) == 12
    own = tuple(map(CodeMetric.from_function, recorded.COUNTS))
    with numbers_kept():
        first = recorded._predictions(runs, held, own, 0)
        for place in np.flatnonzero(held):
            runs.rows[place].reward = 1 - runs.rows[place].reward
        again = recorded._predictions(runs, held, own, 0)
        for place in np.flatnonzero(held):
            runs.rows[place].reward = 1 - runs.rows[place].reward
    assert np.isnan(first[~held]).all()
    np.testing.assert_array_equal(first, again)


def test_a_count_is_chosen_with_its_sign_from_the_tasks_learned_from_alone(runs):
    tasks, rewards = np.array([row.group for row in runs.rows]), np.array([row.reward for row in runs.rows])
    learned = ~recorded._held_back(tasks, seed=3)
    chosen = recorded._chosen(runs, learned)
    counts = [np.array([of(row.output) for row in runs.rows]) for of in recorded.COUNTS]
    taus = [scipy.stats.kendalltau(one[learned], rewards[learned])[0] for one in counts]
    assert scipy.stats.kendalltau(chosen[learned], rewards[learned])[0] == pytest.approx(max(map(abs, taus)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded, "_rewards", lambda _: np.where(learned, rewards, 1 - rewards))
        np.testing.assert_array_equal(recorded._chosen(runs, learned), chosen)


@pytest.mark.slow
def test_the_page_shows_what_the_program_prints(path, monkeypatch, capsys):
    """The metrics that are induced from twelve tasks in 20 splits, and all else; a minute."""
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text("utf-8")
    (shown,) = re.findall(r"\$ python examples/agent_study.py --recorded [^\n]*\n(.*?)```", page, re.DOTALL)
    monkeypatch.setattr(sys, "argv", ["agent_study.py", "--recorded", str(path)])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "agent_study.py"), run_name="__main__")
    assert capsys.readouterr().out == shown
