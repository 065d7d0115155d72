"""docs/meta_evaluation.md: its code and its command run and print what it says; so do the figures on WMT23."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main
from metricsmith.datasets.score_matrices import read_score_matrices
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.formats import interval, statistic
from metricsmith.report.meta_evaluation.record import meta_evaluate
from score_tables import write

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "meta_evaluation.md").read_text("utf-8")


def test_the_example_runs_and_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block, "meta_evaluation.md", "exec"), {})
    ((command, printed),) = re.findall(r"```\n\$ metricsmith ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.setattr(sys, "argv", ["metricsmith", *shlex.split(command)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out == printed


def test_the_other_commands_are_understood(monkeypatch, capsys, tmp_path):
    """Their files are not there: that is all that is wrong with them."""
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^metricsmith (meta-eval [^\n#]*)", TEXT, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["metricsmith", *shlex.split(command)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        assert "no such file" in capsys.readouterr().err


def test_the_figures_of_raters_on_wmt23_are_those_of_the_page(shared_data, tmp_path):
    gold = shared_data / "wmt23_sxs_ende.jsonl.gz"
    rows = [
        {"system": row.system, "segment": row.segment, "one": row.mqm}
        for row in read_wmt_mqm(gold).rows
        if not row.slot
    ]
    read = read_score_matrices(write(tmp_path / "one.csv", rows), gold)
    record = meta_evaluate(
        read.metrics, read.gold, systems=read.systems, raters=read.raters, documents=read.documents, resamples=1
    )
    for slot in range(3):
        cells = [f"slot {slot}"]
        for task in record.tasks:
            one = task.raters[slot]
            ends = interval(one.interval.low, one.interval.high)
            cells += [statistic(one.value), ends, statistic(one.chance.mean)]
        assert f"| {' | '.join(cells)} |" in TEXT


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
