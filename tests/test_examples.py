"""Every example runs from start to end."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "tau-b" in capsys.readouterr().out
