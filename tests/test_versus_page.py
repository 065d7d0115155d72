"""docs/versus.md: its blocks run one after the other and print what the page says; its tables are those measured."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from benchmark import loaded
from metricsmith.cli import main

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "versus.md").read_text("utf-8")
OWN = ("note: ", "metricsmith ")  # on the columns that were guessed, and the signature


def test_the_page_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables, command, said, code, shown = [
        block for kind, block in re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL) if not block.startswith(OWN) or kind
    ][:5]
    exec(compile(tables, "versus.md", "exec"), {})
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    lines = capsys.readouterr().out.replace("\xa0", " ").splitlines()
    assert [line for line in lines if not line.startswith(OWN)] == said.splitlines()
    exec(compile(code, "versus.md", "exec"), {})
    assert capsys.readouterr().out == shown
    assert (tmp_path / "by-rouge" / "versus.html").exists()


def rows_below(title):
    section = TEXT.split(f"### {title}\n")[1].split("\n###")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    return [row for row in cells if row[0] not in ("differences", "a verdict takes", "---")]


def test_the_page_has_a_line_for_every_cell_of_the_benchmark():
    benchmark = loaded("versus")
    by_kind = [[kind, size] for kind in benchmark.KINDS for size in benchmark.SIZES]
    assert [row[:2] for row in rows_below("Verdicts without a difference")][:18] == by_kind
    assert [row[0] for row in rows_below("Verdicts without a difference")][18:] == list(benchmark.RULES)
    assert [row[:2] for row in rows_below("Power")] == [
        [kind, size] for kind in benchmark.SPREADS for size in benchmark.SIZES
    ]


def test_without_a_difference_at_most_six_per_cent_are_decided_but_where_the_page_says_so():
    benchmark = loaded("versus")
    for kind, _, *shares in rows_below("Verdicts without a difference")[:18]:
        assert kind == benchmark.HOPELESS or max(map(float, shares)) <= 6.0
    assert max(map(float, rows_below("Verdicts without a difference")[18][1:])) <= 6.0


def test_pairs_find_more_than_tables_that_nobody_paired_wherever_there_may_be_a_verdict():
    for _, size, *cells in rows_below("Power"):
        for paired, unpaired in [cell.split(" / ") for cell in cells][2:]:
            assert float(paired) >= float(unpaired) or size == "uneven"


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
