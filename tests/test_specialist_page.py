"""docs/specialist.md: its commands and its Python, run with a stand-in for the model, print what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from loopback import serve
from metricsmith.cli import main
from metricsmith.datasets.history import History
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.meta_evaluation import character_f1
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.specialist.choosing import ExamplePolicy
from reviser import FOLDER, Reviser

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "specialist.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"```(python)?\n(.*?)```(?:\n\n```\n((?!metricsmith).*?)```)?", TEXT, re.DOTALL)
OWN = re.compile(r"report:|metricsmith \d|metricsmith:\d")  # lines that name places and versions


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names, shown = {}, 0
    with serve(Reviser()) as server:
        names["lm"] = server.lm()
        for python, block, output in BLOCKS:
            if python:
                used = block.replace('dspy.LM("openai/gpt-4.1-mini")', "lm")
                exec(compile(used, "specialist.md", "exec"), names)
            else:
                address = ["--api-base", f"http://127.0.0.1:{server.port}/v1"] * ("--lm" in block)
                monkeypatch.setattr(sys, "argv", [*shlex.split(block), *address])
                with pytest.raises(SystemExit) as end:
                    main()
                assert not end.value.code
            printed = capsys.readouterr().out.splitlines()
            if output:
                shown += 1
                assert [line for line in printed if not OWN.match(line)] == output.splitlines()
        assert not server.wrong
    assert (len(BLOCKS), shown) == (6, 5)
    for folder in ("held-out", "held-out-judge", "held-out-in-python"):
        assert (tmp_path / folder / "specialist.html").exists()


def cells(label):
    """The figures of a line of the page's table: examples, errors, Parrot all, P, R, Parrot first."""
    line = next(line for line in TEXT.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip(" |") for cell in line.split(" | ")[1:]]


def test_a_line_of_the_page_is_what_parrot_gets(shared_data):
    history = History.from_table(read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz"))
    marked, texts = [one.spans for one in history.ratings], [one.output for one in history.ratings]
    found = []
    for occurrences in ("all", "first"):
        parrot = Specialist(ExamplePolicy()).compile(Parrot(occurrences=occurrences), history)
        found.append(character_f1([one.spans for one in parrot.judge_batch(history.rows())], marked, texts))
    everywhere, first = found
    numbers = (everywhere.f1, everywhere.precision, everywhere.recall, first.f1)
    assert cells("same")[2:] == [f"{100 * number:.2f}" for number in numbers]


def test_the_other_lines_are_the_golden_figures():
    """The figures of `tests/programs/specialist/test_wmt23.py`, where they are computed."""
    by_name = cells("the system held out by its name only: one system sees itself")
    assert by_name == ["9.00", "28.78", "37.77", "32.83", "44.45", "44.82"]
    assert cells("same, equal outputs kept") == ["8.00", "25.73", "34.45", "31.02", "38.74", "40.54"]
    assert cells("same")[:2] == ["7.88", "25.68"]
    assert cells("other, equal outputs kept")[:3] == ["8.00", "25.73", "14.66"]
    assert cells("merged, equal outputs kept")[:5] == ["16.00", "51.47", "16.33", "12.16", "24.87"]
    assert cells("filtered")[:3] == ["7.88", "18.19", "11.13"]
    assert cells("same, both twins shown, equal outputs kept")[:3] == ["8.80", "28.17", "34.29"]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (PAGE.parent / link).exists()
