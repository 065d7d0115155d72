"""The Python of docs/tuning.md runs as it stands, and its figures are those of a kept run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopback import serve
from rater_model import RaterModel, rated_rows

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "tuning.md").read_text("utf-8")
RATED = [(row.input, row.output, int(row.rating)) for row in rated_rows(40, 0)]


def test_the_blocks_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with serve(RaterModel(0)) as server:
        names = {"rated": RATED, "served": server.lm()}
        for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
            exec(compile(block.replace('dspy.LM("openai/gpt-4o-mini")', "served"), "tuning.md", "exec"), names)
        assert not server.wrong
    bound, _, *rest = capsys.readouterr().out.splitlines()
    assert bound == "1000"
    assert "requests: at most 1000, sent" in "\n".join(rest)
    assert (tmp_path / "judge.json").exists()
    assert names["tuned"].examples or not names["tuned"].tuning.replaced


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
