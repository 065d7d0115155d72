"""The Python of docs/validity.md runs as it stands and prints what it says; its links and its picture are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "validity.md").read_text("utf-8")


def test_the_block_runs_and_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block[0], "validity.md", "exec"), {})
    assert capsys.readouterr().out == block[1]
    assert (tmp_path / "probe" / "probe.html").exists()
    assert (tmp_path / "sheet.csv").exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
