"""The Python of docs/corrected_means.md runs as it stands and prints what it says; its tables are those measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmark import loaded

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "corrected_means.md").read_text("utf-8")
TITLES = {
    "the targets": "Means and prevalences", "prevalence .05": "A prevalence of .05", "other data": "Other data",
    "Rogan and Gladen": "Rogan and Gladen",
}  # fmt: skip


def test_the_block_runs_and_prints_what_the_page_says(capsys):
    (block,) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block[0], "corrected_means.md", "exec"), {})
    assert capsys.readouterr().out == block[1]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()


def lines_of(title):
    section = TEXT.split(f"### {title}\n")[1].split("\n##")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_page_has_a_line_for_every_cell_of_the_benchmark():
    benchmark = loaded("corrected_means")
    assert set(TITLES) == set(benchmark.TABLES)
    for name, cells in benchmark.TABLES.items():
        starts = [cell.about for cell in cells]
        assert [line[: len(start)] for line, start in zip(lines_of(TITLES[name]), starts, strict=True)] == starts


def test_the_measured_figures_reach_the_goals():
    """From ten groups on .92, with five .91; widths of at most 1.06 and .9 of the classical interval's; .93 if rare."""
    for line in lines_of("Means and prevalences"):
        _, _, _, correlation, groups, _, _, corrected, width, *_ = (cell.strip() for cell in line.split("|"))
        many = int(groups.split()[0]) >= 10
        assert float(corrected) >= (0.92 if many else 0.91)
        assert not many or float(width) <= {"0": 1.06, "0.3": 1.06, "0.7": 0.9}[correlation]
    for line in lines_of("A prevalence of .05"):
        assert float(line.split("|")[7]) >= 0.93
