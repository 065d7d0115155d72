"""docs/judge_selection_experiments.md says what the benchmark and the code give."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import pytest

from benchmark import loaded

DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXT = (DOCS / "judge_selection_experiments.md").read_text("utf-8")


@pytest.fixture(scope="module")
def bench():
    return loaded("judge_selection")


def asked(**changes):
    settings = {"trials": 1, "items": 100, "judges": 50, "seed": 0, "ratings": None, "out": None}
    return argparse.Namespace(**{**settings, **changes})


def rows(text):
    """Lines of tables by their first cell, without heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| |")]
    return {line: [cell.strip() for cell in line.strip("|").split("|")] for line in lines}


def test_the_code_prints_what_the_page_shows(capsys):
    block, shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", TEXT, re.DOTALL).groups()
    exec(compile(block, "judge_selection_experiments.md", "exec"), {})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("experiment", ["lemma", "case"])
def test_tables_that_take_no_time_are_remade_line_by_line(bench, experiment, capsys):
    bench.EXPERIMENTS[experiment](asked())
    printed = {line: cells for line, cells in rows(capsys.readouterr().out).items() if not cells[0].startswith("beta")}
    names = {"hit_rate", "js_distance", "squared_error_choices", "squared_error_sets", "coverage", "best"}
    kept = [line for line, cells in printed.items() if cells[0] in names or experiment == "lemma"]
    shown = [line for line in kept if line in TEXT]
    assert len(shown) == {"lemma": 2, "case": 9}[experiment]


def test_one_trial_gives_the_correlations_of_the_page(bench, capsys):
    bench.correlation(asked())
    found = rows(capsys.readouterr().out.split("size of bias")[0])
    shown = rows(TEXT.split("## Finding 2")[1].split("## The judge")[0])
    page = {cells[0]: [float(cell) for cell in cells[1:]] for cells in shown.values()}
    for cells in found.values():
        if cells[0] in page:
            assert [float(cell) for cell in cells[1:]] == pytest.approx(page[cells[0]], abs=0.25)
    assert page["squared_error_sets"] == pytest.approx([0.87] * 7)


def test_the_pick_by_few_ratings_is_scored_against_the_population_and_against_themselves(bench, capsys, monkeypatch):
    monkeypatch.setattr(bench, "SHAPES", bench.SHAPES[:2])
    monkeypatch.setattr(bench, "PROCESSES", {"full": bench.PROCESSES["fully specified"]})
    bench.selection(asked(trials=4))
    found = {cells[0]: np.array(cells[1:], dtype=float) for cells in rows(capsys.readouterr().out).values()}
    assert found["the population"].min() > 0.85
    assert found["the same m ratings"][0] < 0.85
    assert np.diff(found["the same m ratings"])[0] > 0


def test_plots_are_written_and_those_of_the_page_are_there(bench, tmp_path):
    bench.case(asked(out=tmp_path))
    assert (tmp_path / "judge_selection_prevalence_by_beta.svg").read_text("utf-8").startswith("<svg xmlns")
    for name in re.findall(r"\]\((figures/[^)]+)\)", TEXT):
        assert (DOCS / name).exists()


def test_the_case_study_takes_a_published_table(bench, tmp_path, capsys):
    toxic = np.repeat(np.arange(1, 6), 40)
    lines = ["id,toxicity,severe_toxicity,toxicity_annotator_count"]
    lines += [f"{number},{count / 10},0,10" for number, count in enumerate(toxic)]
    (tmp_path / "all_data.csv").write_text("\n".join(lines), "utf-8")
    bench.case(asked(ratings=tmp_path / "all_data.csv"))
    assert "| beta 0.0 | 1.00 | .80 | .60 | .40 | .20 | .00 | .00 |" in capsys.readouterr().out


def test_library_calls_of_the_benchmark_give_our_numbers(bench, monkeypatch):
    monkeypatch.setattr(bench, "fastest", lambda calls, rounds: [1.0 for _ in calls])
    bench.speed(asked(items=20, judges=2))  # asserts them
