"""The Python of docs/code_metrics.md runs from a file as it stands and prints what is shown; its figures are ours."""

from __future__ import annotations

import re
import runpy
from dataclasses import asdict
from pathlib import Path

from metricsmith.sandbox.contract import LIMITS
from metricsmith.sandbox.subset import LARGEST_SOURCE, MODULES

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "code_metrics.md").read_text("utf-8")


def test_the_example_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], "utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out == re.search(r"```\n\n```\n(.*?)```", TEXT, re.DOTALL)[1]


def test_the_page_names_the_modules_and_limits_that_hold():
    allowed = re.search(r"The modules (.*?), and ([\d,]+) bytes", TEXT)
    assert tuple(re.findall(r"`(\w+)`", allowed[1])) == MODULES
    assert int(allowed[2].replace(",", "")) == LARGEST_SOURCE
    said = dict(re.findall(r"^\| `(\w+)`: .* \| ([\d.,]+) \|$", TEXT, re.M))
    shown = {name: float(value.replace(",", "")) for name, value in said.items()}
    assert {name: shown[name] for name in asdict(LIMITS)} == asdict(LIMITS)
