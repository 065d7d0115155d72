"""The Python of README and docs prints what they say it prints, and the README's links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/calibration.md"])
def test_the_first_example_prints_what_is_shown(name, tmp_path, monkeypatch):
    text = (ROOT / name).read_text("utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), {})
    assert printed.getvalue() == shown


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()


def test_the_bank_is_as_large_as_it_says():
    from metricsmith.bank.catalogue import default_bank

    families, outputs = map(int, re.search(r"bank of (\d+) metric families \((\d+) outputs\)", TEXT).groups())
    assert (families, outputs) == (len(default_bank().families), len(default_bank().metrics()))
