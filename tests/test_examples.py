"""Every example runs from start to end."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from metricsmith.datasets import plain_notices
from metricsmith.testing import GivenModel

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
OFFLINE = sorted(set(EXAMPLES.glob("*.py")) - {EXAMPLES / "gepa_reward.py", EXAMPLES / "agent_study.py"})


@pytest.mark.parametrize("path", OFFLINE, ids=lambda path: path.name)
def test_the_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "tau-b" in capsys.readouterr().out


BEST = {row.input: row.references[0] for row in plain_notices.load()[1]}


def writer(prompt):
    """Copies a notice, unless the instruction asks for everyday words; then it writes the reference."""
    if "new_instruction" in prompt:
        return json.dumps({"new_instruction": "Rewrite the notice in short everyday words."})
    notice = next(text for text in BEST if text in prompt)
    return {"rewrite": BEST[notice] if "everyday words" in prompt else notice}


@pytest.mark.parametrize("seed", range(3))
def test_the_induced_reward_raises_itself_on_held_out_rows_within_the_bound(seed, capsys, monkeypatch):
    with GivenModel(writer) as server:
        options = ["--model", "openai/loopback", "--api-base", server.api_base]
        options += ["--api-key", "none", "--max-metric-calls", "30", "--seed", str(seed)]
        monkeypatch.setattr(sys, "argv", ["gepa_reward.py", *options])
        runpy.run_path(str(EXAMPLES / "gepa_reward.py"), run_name="__main__")
    printed = capsys.readouterr().out
    bound, made = (
        int(re.search(pattern, printed)[1]) for pattern in (r"at most (\d+) requests", r"requests made: (\d+)")
    )
    assert 0 < made <= bound
    assert made + 16 == server.requests
    before, after = map(float, re.findall(r"mean reward ([\d.]+) over 8 of 8 rows", printed))
    assert after > before + 0.2
    assert "instruction: Rewrite the notice in short everyday words." in printed
    assert "0 outputs without a reward" in printed
