"""docs/distillation.md: its example prints what the page says, and its tables have the benchmark's lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmark import loaded

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "distillation.md").read_text("utf-8")


def test_the_example_runs_and_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code, said), *_ = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "distillation.md", "exec"), {})
    assert capsys.readouterr().out == said
    assert {one.name for one in (tmp_path / "distilled").iterdir()} == {
        "metric.json", "distillation.html", "distillation.md", "distillation.json"
    }  # fmt: skip


def lines(head):
    table = TEXT.split(f"| {head} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_share_lies_in_its_interval_and_is_the_ratio_of_both_taus():
    for _, _, paid, free, _, share, _ in lines("data"):
        kept, low, high = (int(number) for number in re.findall(r"(\d+) %", share))
        assert low < kept < high
        assert kept == pytest.approx(100 * float(free) / float(paid), abs=0.7)


def test_the_page_has_a_line_for_every_case_and_intervals_hold_the_truth():
    found = lines("kept")
    assert [line[0] for line in found] == list(loaded("distillation").CASES)
    assert min(float(cell.split()[0]) for line in found for cell in line[2:]) >= 92
