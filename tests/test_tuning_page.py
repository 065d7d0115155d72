"""The Python of docs/tuning.md runs as it stands, and its figures are those of a kept run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import metricsmith
from loopback import serve
from metricsmith.testing import GivenModel
from rater_model import RaterModel, rated_rows

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "tuning.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
RATED = [(row.input, row.output, int(row.rating)) for row in rated_rows(40, 0)]


def test_the_blocks_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with serve(RaterModel(0)) as server:
        names = {"rated": RATED, "served": server.lm()}
        for block in (block for block in BLOCKS if "ChoiceJudge" not in block):
            exec(compile(block.replace('dspy.LM("openai/gpt-4o-mini")', "served"), "tuning.md", "exec"), names)
        assert not server.wrong
    bound, _, *rest = capsys.readouterr().out.splitlines()
    assert bound == "1000"
    assert " requests of 1,000 at most" in "\n".join(rest)
    assert (tmp_path / "judge.json").exists()
    assert (tmp_path / "tuned" / "tuning.html").exists()
    assert names["tuned"].examples or not names["tuned"].tuning.replaced


def test_the_block_on_options_runs(capsys):
    (block,) = [block for block in BLOCKS if "ChoiceJudge" in block]
    voted = [(f"letter {n}", f"reply {n}", ["rude", "polite"][: n % 2 + 1]) for n in range(16)]

    def answer(prompt):
        return {"new_instruction": "Look."} if "new_instruction" in prompt else {"reasoning": "r", "choice": "rude"}

    with GivenModel(answer) as model:
        exec(compile(block, "tuning.md", "exec"), {"ms": metricsmith, "voted": voted, "lm": model.lm()})
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "8 rows to learn from, 8 to select by in 8 groups."
    assert any("choice_kappa, before, not searched by" in line for line in printed)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
