"""The Python of docs/own_metrics.md runs as it stands and prints what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import dspy
import pytest

import metricsmith
from metricsmith.testing import GivenModel
from rater_model import RaterModel, rated_rows

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "own_metrics.md").read_text("utf-8")
FIRST, SECOND = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_first_block_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(FIRST, "own_metrics.md", "exec"), {})
    assert capsys.readouterr().out == re.search(r"```\n\n```\n(.*?)```", TEXT, re.DOTALL)[1]


def test_a_judge_tuned_on_half_of_the_rows_is_weighed_by_the_other():
    rated = [(row.input, row.output, int(row.rating)) for row in rated_rows(80, 0)]
    with GivenModel(RaterModel(0)) as server:
        names = {"rated": rated, "served": server.lm(), "metricsmith": metricsmith, "dspy": dspy}
        code = SECOND.replace('dspy.LM("openai/gpt-4o-mini")', "served")
        exec(compile(code, "own_metrics.md", "exec"), names)
    record = names["induced"].record
    assert not any("left out" in warning for warning in record.warnings)
    assert (
        any(note.startswith("40 rated rows are learned from") for note in record.notes)
        == names["tuned"].tuning.replaced
    )


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
