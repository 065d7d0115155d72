"""The map of the docs names every page once, and the tutorial's steps run and print what it shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

DOCS = Path(__file__).resolve().parents[1] / "docs"
INDEX = (DOCS / "index.md").read_text("utf-8")
TUTORIAL = (DOCS / "tutorial.md").read_text("utf-8")
LINKS = {
    (page.name, link)
    for page in DOCS.glob("*.md")
    for link in re.findall(r"\]\(([^)#]+\.md)(?:#[^)]*)?\)", page.read_text("utf-8"))
}


def test_every_page_stands_once_in_the_index():
    pages = sorted(page.name for page in DOCS.glob("*.md") if page.name != "index.md")
    assert sorted(re.findall(r"\]\(([^)]+)\)", INDEX)) == pages


@pytest.mark.parametrize(("page", "link"), sorted(LINKS))
def test_links_between_pages_lead_somewhere(page, link):
    assert (DOCS / link).exists()


def test_the_tutorial_runs_step_by_step_and_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    names, printed, shown = {}, [], 0
    for kind, block in re.findall(r"```(\w*)\n(.*?)```", TUTORIAL, re.DOTALL):
        if kind == "python":
            exec(compile(block, "tutorial.md", "exec"), names)
        elif kind == "sh":
            monkeypatch.setattr(sys, "argv", shlex.split(block))
            with pytest.raises(SystemExit) as end:
                main()
            assert not end.value.code, block
        else:
            assert printed == block.splitlines()
            shown += 1
        out, err = capsys.readouterr()
        lines = (out or err).replace("\xa0", " ").splitlines()
        printed = [line for line in lines if not line.startswith(("metricsmith ", "note: "))]
        if "probe" in block:
            assert next(line for line in printed if "worse outputs score lower" in line) in TUTORIAL
    assert shown == 4
    assert "nothing was sent" in printed[-1]
