"""`metricsmith score --labelled`: the corrected mean beside the scores, and tables that cannot correct anything."""

from __future__ import annotations

import csv
import json
import math

import pytest

import metricsmith
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.table import read_table
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Scale, Task
from metricsmith.stats.regression import LinearCombination, ZScore
from planted import planted_rows


@pytest.fixture
def metric(tmp_path):
    """A saved metric that repeats the column ``good`` on the scale 1 to 5."""
    combination = LinearCombination(("good",), (0,), (ZScore.fit([2.0, 3.0, 4.0]),), (0.8,), 3.0)
    task = Task("Rewrite a public notice in plain words.", "rating", Scale(1, 5))
    reading = {"output": "rewrite", "inputs": ["notice"], "group": "bundle", "metric_columns": ["good"]}
    induced = InducedMetric(
        components=[ColumnMetric("good")], combination=combination, task=task, best=[1.0], reading=reading
    )
    induced.save(tmp_path / "metric.json")
    return tmp_path / "metric.json"


@pytest.fixture
def tables(write_own, tmp_path):
    """Forty new sources, and twenty others with ratings, three rows each."""
    new = write_own(tmp_path / "new.csv", planted_rows(sources=40, seed=1, first=20))
    return new, write_own(tmp_path / "rated.csv", planted_rows(sources=20))


def changed(path, change):
    """Rewrite the ratings of a table: `change` is given the number of the row and the cell."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for number, line in enumerate(lines):
        line["rating"] = change(number, line["rating"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def test_the_corrected_mean_stands_beside_the_classical_and_the_plain_one(run, metric, tables, tmp_path):
    new, rated = tables
    code, out, err = run("score", metric, new, "--labelled", rated, "--out", tmp_path / "scores.csv")
    assert (code, out) == (0, "")
    assert "120 rows scored, 0 without a prediction" in err
    corrected, classical, plain = err[err.index("mean rating: ") :].splitlines()[:3]
    assert "; ppi++, lambda " in corrected
    assert corrected.endswith("120 rows corrected by 60 ratings in 20 groups")
    assert classical.endswith("by the ratings alone")
    assert plain.endswith("by the metric alone")
    low, high, wide_low, wide_high = (
        float(line.split("(95 % interval ")[1].split(" to ")[end].split(";")[0].split(")")[0])
        for line in (corrected, classical)
        for end in (0, 1)
    )
    assert high - low < wide_high - wide_low
    goods, lines = (
        list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in (new, tmp_path / "scores.csv")
    )
    fitted = [3 + 0.8 * (float(line["good"]) - 3) / math.sqrt(2 / 3) for line in goods]
    assert [float(line["prediction"]) for line in lines] == pytest.approx(fitted)
    truth = sum(float(line["rating"]) for line in csv.DictReader(new.read_text("utf-8").splitlines())) / 120
    assert low < truth < high


def test_notes_say_which_table_they_are_of(run, metric, tables):
    changed(tables[1], lambda number, cell: cell if number else "")
    _, _, err = run("score", metric, tables[0], "--labelled", tables[1])
    assert [line for line in err.splitlines() if "rows have no rating" in line] == [
        "note: rated table: 1 of 60 rows have no rating: they are kept for scoring and left out of fitting"
    ]


def test_json_ends_with_the_corrected_mean(run, metric, tables):
    new, rated = tables
    _, out, _ = run("score", metric, new, "--labelled", rated, "--json")
    *lines, last = map(json.loads, out.splitlines())
    assert len(lines) == 120
    assert last["corrected_mean"]["method"] == "ppi++"
    assert last["corrected_mean"]["unlabelled"] == 120


def test_rated_rows_of_the_same_table_count_as_labelled_alone(run, metric, tables):
    changed(tables[0], lambda number, cell: cell if number % 6 < 3 else "")
    code, _, err = run("score", metric, tables[0], "--labelled", tables[0])
    assert code == 0
    table = read_table(tables[0], target="rating", scale="1:5", **metricsmith.load(metric).reading)
    again = metricsmith.corrected_mean(table, table, metric=metricsmith.load(metric), progress=False)
    assert f"mean rating: {again}\n" in err
    assert "60 rows corrected by 60 ratings in 20 groups" in err
    assert "60 unlabelled rows are labelled too and count as labelled alone" in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda number, cell: "", "none of 60 labelled rows has a rating 'rating'"),
        (lambda number, cell: "40" if number == 3 else cell, "the rating '40' is outside the scale 1 to 5"),
        (
            lambda number, cell: "good",
            "'good' is a verdict (good is 1, bad is 0), and the ratings are numbers from 1 to 5",
        ),
        (lambda number, cell: cell if number < 3 else "", "1 labelled groups and 120 unlabelled rows have numbers"),
    ],
)
def test_ratings_that_cannot_correct_anything_are_refused(run, metric, tables, change, said):
    changed(tables[1], change)
    code, _, err = run("score", metric, tables[0], "--labelled", tables[1])
    assert code == 2
    assert said in err


def test_a_table_without_the_rating_column_is_refused_and_told_the_option(run, metric, tables):
    code, _, err = run("score", metric, tables[0], "--labelled", tables[1], "--target", "stars")
    assert code == 2
    assert "no rating column: give one, or name it with target=... (--target)" in err
    code, _, err = run("score", metric, tables[0], "--target", "stars")
    assert code == 2
    assert "give their table with --labelled RATED, too" in err


def test_constant_ratings_give_the_classical_interval_and_the_reason(run, metric, tables):
    changed(tables[1], lambda number, cell: "4")
    code, _, err = run("score", metric, tables[0], "--labelled", tables[1])
    assert code == 0
    assert (
        "mean rating: 4.000 (95 % interval 3.517 to 4.161; classical, lambda 0), by 60 ratings in 20 groups; the "
        in err
    )
    assert "corrected by" not in err
    assert "0 of 20 labelled groups hold a rating other than 4, and 5 are needed" in err
