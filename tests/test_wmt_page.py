"""docs/wmt.md: its code and its commands run and print what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main
from metricsmith.meta_evaluation.wmt_suites import SUITES

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "wmt.md").read_text("utf-8")


def run(monkeypatch, command):
    monkeypatch.setattr(sys, "argv", ["metricsmith", *shlex.split(command)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_the_example_runs_and_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block, "wmt.md", "exec"), {})
    commands = re.findall(r"```\n\$ metricsmith ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)
    assert len(commands) == 2
    for command, printed in commands:
        assert run(monkeypatch, command) == 0
        assert capsys.readouterr().out == printed
    written = sorted(path.name for path in Path("table").iterdir())
    assert written == ["suite.html", "suite.json", "suite.md", "suite.tex", "suite.tsv", "suite_kept.jsonl"]
    assert all(f"`{name}`" in TEXT for name in written)
    # What was joined changes nothing: the table alone, without what says where files lie.
    alone = re.sub(r" --(join|out) \S+", "", commands[1][0])
    assert run(monkeypatch, alone) == 0
    assert capsys.readouterr().out == re.sub(r"report: .*\n", "", commands[1][1])


def test_the_commands_of_the_real_suites_are_understood(tmp_path, monkeypatch, capsys):
    """Their folder is not there: that is all that is wrong with them."""
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^metricsmith (meta-eval [^\n]*)", TEXT, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert run(monkeypatch, command) == 2
        assert re.search("mt-metrics-eval-v2|table/suite.json", capsys.readouterr().err)


def test_the_page_lists_the_suites_that_there_are():
    assert re.findall(r"^\| `(wmt[^`]*)` \|", TEXT, re.MULTILINE) == list(SUITES)
    assert SUITES["wmt25"].pairs.keys() >= {"ja-zh_CN", "en-ko_KR"}
    assert len(SUITES["wmt25"].pairs) == 16


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
