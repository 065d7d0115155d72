"""docs/mqm.md: its commands, run with a scripted stand-in for the model, print what the page says; its links work."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main
from metricsmith.testing import GivenModel
from reviser import FOLDER, Assessor, Reviser

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "mqm.md"
TEXT = PAGE.read_text("utf-8")
OWN = re.compile(r"^(\d+ requests|report:|metricsmith \d)|^estimated:")  # lines that name times and places


def printed(capsys, monkeypatch, command, *options):
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    return [line for line in capsys.readouterr().out.splitlines() if not OWN.match(line)]


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python)?\n(.*?)```", TEXT, re.DOTALL)
    judge, judged, python, evaluate, evaluated, spans, f1, assess, assessed = [block for _, block in blocks]
    with GivenModel(Reviser()) as server:
        place = server.api_base
        assert printed(capsys, monkeypatch, judge, "--api-base", place) == judged.splitlines()
        used = python.replace('dspy.LM("openai/gpt-4.1-mini")', "lm")
        exec(compile(used, "mqm.md", "exec"), {"lm": server.lm()})
    assert printed(capsys, monkeypatch, evaluate) == evaluated.splitlines()
    exec(compile(spans, "mqm.md", "exec"), {})
    assert capsys.readouterr().out == f1
    with GivenModel(Assessor()) as server:
        assert printed(capsys, monkeypatch, assess, "--api-base", server.api_base) == assessed.splitlines()
    for folder in ("judged", "judged-in-python", "assessed"):
        assert (tmp_path / folder / "mqm.html").exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (PAGE.parent / link).exists()
