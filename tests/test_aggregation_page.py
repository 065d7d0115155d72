"""docs/aggregation.md says what the code gives, and its benchmark counts what it says it counts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmark import loaded
from metricsmith.stats.aggregation import AGGREGATES, half_width, mean, rrwa

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "aggregation.md").read_text("utf-8")
TABLE_1 = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]


@pytest.fixture(scope="module")
def bench():
    return loaded("aggregation")


def test_table_1_stands_there_as_it_is_computed():
    for name, function in AGGREGATES.items():
        assert f"| `{name}` | " in TEXT
        assert re.search(rf"\| `{name}` \|[^|]*\| {function(TABLE_1):.2f} \|", TEXT)
    assert f"| {mean(TABLE_1, outliers=None):.2f} | -16.85 |" in TEXT


def test_the_python_of_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block, "aggregation.md", "exec"), {})
    assert capsys.readouterr().out.split() == ["-8.5", "-12.56", str(round(half_width(TABLE_1), 1))]


def test_the_samples_are_those_of_the_benchmark(bench):
    assert bench.samples() in TEXT
    # Nine -6 and a 0, nothing left out: 6 (1/2 + ... + 1/10) / (1 + ... + 1/10) = 3.951
    assert "| a lone clean run | -6.00 | -3.95 | -3.95 |" in TEXT


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_of_the_page_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()


def drawn(bench, runs, people):
    return bench.Ratings(
        name="made up", unit="points", runs=np.array(runs, dtype=float), people=np.array(people, dtype=float),
        groups=[f"g{place}" for place in range(len(runs))], parts=np.zeros(len(runs), dtype=np.intp), bounds=(0.5,),
    )  # fmt: skip


def test_a_line_counts_runs_and_gives_the_numbers_that_they_rest_on(bench):
    runs = [[3] * 10, [1, 5] * 5, [2, 2, 2, 2, 2, 5, 5, 5, 5, 5]]
    lines = {line.label: line for line in bench.lines(drawn(bench, runs, [3, 1, 2]), "mean")}
    stopped = lines["stop at 0.5, at least 5"]
    assert stopped.asked.tolist() == [5, 10, 5]
    assert stopped.numbers.tolist() == [3, 3, 2]  # the last stops at five equal runs, and is wrong
    assert lines["all ten, two-sided"].numbers.tolist() == [3, 3, 3.5]
    assert lines["the first 3 of every row"].numbers == pytest.approx([3, 7 / 3, 2])
    assert lines["the first 3 of every row"].asked.tolist() == [3, 3, 3]


def test_the_table_shows_share_saved_and_distance(bench):
    runs = [[3] * 10, [1, 5] * 5, [2, 2, 2, 2, 2, 5, 5, 5, 5, 5]]
    written = bench.table(drawn(bench, runs, [3, 1, 2]), "mean", 20, 0)
    # (5 + 10 + 5) / 3 runs; distances 0, 0 and 1.5
    assert re.search(r"\| stop at 0.5, at least 5 \| 6\.67 \| 33% \| 0\.500 \|", written)


def test_the_drawn_runs_are_the_ratings_of_the_page(bench, shared_data):
    ratings = bench.hanna(shared_data, 0)
    assert ratings.runs.shape == (2880, 10)
    assert np.nanmin(ratings.runs) >= 1
    assert np.nanmax(ratings.runs) <= 5
    assert np.isnan(ratings.runs).mean() < 0.05
    other = bench.hanna(shared_data, 1)
    assert (np.isnan(other.runs) != np.isnan(ratings.runs)).any()
    marked = bench.mqm(shared_data, 0)
    assert marked.runs.shape == (1040, 10)
    assert all(len(set(row)) <= 2 for row in marked.runs.tolist())
    # What the page says of all ten runs: agreement with the third rater
    everything = np.asarray(rrwa(marked.runs))
    assert f"{bench.agreement(everything, marked, np.arange(1040)):.3f}" in TEXT
