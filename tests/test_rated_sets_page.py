"""docs/experiments.md, the paper's data sets: the list and the figures are those that it prints."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main
from metricsmith.data import rated_sets

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "experiments.md").read_text("utf-8")
SECTION = TEXT.split("\n## The paper's data sets\n")[1].split("\n## ")[0]
COMMANDS = re.findall(r"^metricsmith (compare [^\n]*)", SECTION, re.MULTILINE)
PRINTED = re.findall(r"```\n(  tau-b.*?)```", SECTION, re.DOTALL)


def run(monkeypatch, command):
    monkeypatch.setattr(sys, "argv", ["metricsmith", *shlex.split(command)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_the_list_of_the_page_is_that_of_the_readers(capsys):
    ((code, listed),) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", SECTION, re.DOTALL)
    exec(compile(code, "experiments.md", "exec"), {})
    assert capsys.readouterr().out == listed


def test_the_table_of_the_page_says_what_was_not_verified():
    rows = re.findall(r"^\| (\S+) \| (.*?) \| (.*?) \| (.*?) \|$", SECTION, re.MULTILINE)
    told = {title: last for title, *_, last in rows if title != "---"}
    assert list(told) == [entry.title for entry in rated_sets()]
    assert [title for title, last in told.items() if last != "–"] == [
        entry.title for entry in rated_sets() if entry.unverified
    ]


@pytest.mark.skipif("METRICSMITH_DATA" not in os.environ, reason="needs the public data: METRICSMITH_DATA")
def test_the_first_command_prints_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simpeval.csv").write_bytes((Path(os.environ["METRICSMITH_DATA"]) / "simpeval.csv").read_bytes())
    assert run(monkeypatch, COMMANDS[0]) == 0
    assert [capsys.readouterr().out.split("simpeval: Best")[0]] == PRINTED


def test_the_second_command_is_understood(tmp_path, monkeypatch, capsys):
    """Its file is not there: that is all that is wrong with it."""
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 2
    assert run(monkeypatch, COMMANDS[1]) == 2
    assert "simpeval.csv" in capsys.readouterr().err
