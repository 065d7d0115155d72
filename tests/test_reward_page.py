"""docs/reward.md: its code runs, in order, and its figures are those of the simulation."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import dspy
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.datasets import plain_notices
from metricsmith.programs.induced import InducedMetric
from metricsmith.stats.regression import LinearCombination, ZScore
from metricsmith.testing import GivenModel

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "reward.md").read_text("utf-8")
ROWS = list({row.group: row for row in plain_notices.load()[1]}.values())[:9]
EXAMPLES = [
    dspy.Example(id=row.group, notice=row.input, references=row.references).with_inputs("notice") for row in ROWS
]


def answer(prompt):
    if "new_instruction" in prompt:
        return json.dumps({"new_instruction": "Rewrite the notice in everyday words."})
    row = next(row for row in ROWS if row.input in prompt)
    return {"reasoning": "r", "rewrite": row.references[0] if "everyday words" in prompt else row.input}


@pytest.fixture
def metric_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = [default_bank().get("sari"), default_bank().get("fkgl")]
    InducedMetric(
        components=parts,
        combination=LinearCombination(
            tuple(part.name for part in parts), (0, 1), (ZScore(40.0, 20.0), ZScore(9.0, 3.0)), (0.5, -0.5), 3.0
        ),
        task=plain_notices.TASK,
        best=[1.0, 1.0],
    ).save(tmp_path / "metric.json")


def test_the_code_of_the_page_runs(metric_file, tmp_path, capsys):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with GivenModel(answer) as server:
        names = {
            "lm": server.lm(num_retries=0),
            "trainset": EXAMPLES[:3],
            "valset": EXAMPLES[3:6],
            "heldout": EXAMPLES[6:],
            "ask_somebody": lambda notice, rewrite: 4,
        }
        for block in blocks:
            exec(compile(block, "reward.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "at most" in printed
    assert "over 3 of 3 rows" in printed
    assert ROWS[0].input in printed or ROWS[0].references[0] in printed
    assert 'assistant calls find {"id": 7}' in printed
    assert "0 outputs without a reward" in printed
    assert "By step" in printed
    assert "<svg" in (tmp_path / "gap.html").read_text("utf-8")


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()


@pytest.mark.parametrize("regression", ["pls", "ridge"])
def test_the_figures_of_the_page_are_those_of_the_simulation(regression, tmp_path):
    monitor = runpy.run_path(str(ROOT / "benchmarks" / "goodhart.py"))["optimise"](0, regression)
    last = monitor.gaps()[-1]
    said = f"by step {last.at:g} the reward changed by {last.reward_change:+.2f}".replace("+0.", "+.")
    assert said in TEXT
    assert f"by {last.reward_change - last.gap:+.2f}".replace("+0.", "+.") in TEXT[TEXT.index(said) :]
    if regression == "pls":
        assert monitor.best().at == 4
        monitor.write(tmp_path / "goodhart.svg")
        drawn = (ROOT / "docs" / "figures" / "goodhart.svg").read_text("utf-8")
        assert (tmp_path / "goodhart.svg").read_text("utf-8") == drawn
