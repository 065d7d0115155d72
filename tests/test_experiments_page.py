"""docs/experiments.md: its code and its commands run and print what it says, section by section."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from metricsmith.cli import main
from metricsmith.studies.ablation.grid import PRESETS, Setting, preset

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "experiments.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n:]*)[^\n]*\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
GRIDS = SECTIONS["Grids"]


def blocks(section, language):
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def printed_by(monkeypatch, capsys, command):
    """Run a command to its end; what it prints."""
    monkeypatch.setattr(sys, "argv", ["metricsmith", *shlex.split(command)])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out


def test_the_example_of_a_grid_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (grid,) = blocks(GRIDS, "toml")
    Path("grid.toml").write_text(grid, "utf-8")
    (code,) = blocks(GRIDS, "python")
    exec(compile(code, "experiments.md", "exec"), {})
    commands = re.findall(r"```\n\$ metricsmith ([^\n]*)\n(.*?)```", GRIDS, re.DOTALL)
    assert len(commands) == 2
    for command, told in commands:
        printed = printed_by(monkeypatch, capsys, command)
        assert re.sub(r"took [^.]*\.", "", printed) == re.sub(r"took [^.]*\.", "", told)
    written = sorted(path.name for path in Path("grid").iterdir())
    assert written == ["ablation.html", "ablation.json", "ablation.md", "cells.jsonl"]
    assert all(f"`{name}`" in GRIDS for name in written)


def test_the_page_names_every_preset_and_every_key_of_a_setting():
    assert re.findall(r"^\| `(table\d|figure\d)` \|", GRIDS, re.MULTILINE) == ["table3", "figure4", "table8", "table6"]
    assert set(PRESETS) == {"table3", "figure4", "table8", "table6"}
    keys = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", GRIDS, re.MULTILINE)))
    assert set(keys) - set(PRESETS) == set(Setting.__dataclass_fields__)


def test_what_the_page_says_of_the_presets_holds():
    rows = {setting.rows for part in preset("figure4").parts for setting in part.settings}
    assert (min(rows), max(rows)) == (5, 640)
    assert "5 to 640 learning rows" in GRIDS
    measures = {name: preset(name).measure for name in PRESETS}
    assert measures == {"table3": "metric", "figure4": "metric", "table8": "candidates", "table6": "retrieval"}


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
