"""docs/judge_validation.md: its Python and its commands run in order and print what the page says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "judge_validation.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"```(python)?\n(.*?)```(?:\n\n```\n((?!metricsmith).*?)```)?", TEXT, re.DOTALL)
OWN = re.compile(r"report:|note:|metricsmith \d")  # lines that name places, columns and versions


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, shown = {}, 0
    for python, block, output in BLOCKS:
        if python:
            exec(compile(block, "judge_validation.md", "exec"), names)
        else:
            monkeypatch.setattr(sys, "argv", shlex.split(block))
            with pytest.raises(SystemExit) as end:
                main()
            assert not end.value.code, block
        printed = [line for line in capsys.readouterr().out.splitlines() if not OWN.match(line)]
        if output:
            shown += 1
            assert printed == output.splitlines()
    assert (len(BLOCKS), shown) == (5, 4)
    assert sorted(path.name for path in (tmp_path / "sets").iterdir()) == [
        "validate.html", "validate.json", "validate.md",
    ]  # fmt: skip
