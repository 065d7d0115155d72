"""`metricsmith score` and `metricsmith explain`."""

from __future__ import annotations

import csv

import pytest

from metricsmith.formats import statistic
from metricsmith.scoring import CallableMetric
from planted import planted_rows
from saved import criterion, words
from saved import induced as induced_of


def test_rows_without_a_prediction_are_counted_and_left_empty(run, induced, write_own, tmp_path):
    induced("--n", 1)
    rows = planted_rows(sources=2, seed=4)
    for row in rows[:2]:
        row["columns"] = {"good": "", "junk": 0.0}
    new = write_own(tmp_path / "new.csv", rows)
    code, _, err = run("score", tmp_path / "out" / "metric.json", new, "--out", tmp_path / "scores.csv")
    assert code == 0
    assert "6 rows scored, 2 without a prediction" in err
    lines = list(csv.DictReader((tmp_path / "scores.csv").read_text("utf-8").splitlines()))
    assert [line["status"] for line in lines] == ["skipped"] * 2 + ["ok"] * 4
    assert [line["prediction"] == line["score"] == "" for line in lines] == [True] * 2 + [False] * 4


def test_explain_adds_up_and_names_the_costliest_part_first(run, own, induced, tmp_path):
    induced("--n", 2)
    _, out, _ = run("explain", tmp_path / "out" / "metric.json", own, "--row", "5")
    first, *lines = out.splitlines()
    numbers = [float(line.split()[0].replace("\N{MINUS SIGN}", "-")) for line in lines]
    assert sum(numbers) == pytest.approx(float(first.split()[2]), abs=0.005)
    costs = [float(line.split("): ")[1].split()[0]) if "behind" in line else 0.0 for line in lines[1:]]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) == 2


def test_explain_takes_every_row_with_the_id_apart_and_score_writes_the_ids_of_the_file(run, induced, tmp_path):
    induced("--n", 1)
    new, lines = tmp_path / "new.csv", ["id,notice,rewrite,good"]
    lines += [f"{row // 2},notice {row // 2},text {row},{row % 4}" for row in range(12)]
    new.write_text("\n".join(lines))
    metric = tmp_path / "out" / "metric.json"
    assert run("score", metric, new, "--out", tmp_path / "scores.csv")[0] == 0
    scores = list(csv.DictReader((tmp_path / "scores.csv").read_text("utf-8").splitlines()))
    assert [line["id"] for line in scores] == [str(row // 2) for row in range(12)]
    code, out, _ = run("explain", metric, new, "--row", "3")
    assert code == 0
    heads = [line.split(": ")[-1] for line in out.splitlines() if line.startswith("row 3 (")]
    assert heads == [
        f"{float(line['prediction']):.3f} on 1 to 5 (score {statistic(float(line['score']))})" for line in scores[6:8]
    ]
    assert "row 3 (2 of 2 with this id" in out
    assert "row 4 (" not in out


def test_a_metric_with_a_function_ends_with_the_line_of_python(run, own, tmp_path):
    induced_of([CallableMetric(words), criterion()]).save(tmp_path / "metric.json")
    for command in (("score", tmp_path / "metric.json", own), ("explain", tmp_path / "metric.json", own, "--row", "1")):
        code, out, err = run(*command)
        assert (code, out) == (2, "")
        line = f"metricsmith.load({str(tmp_path / 'metric.json')!r}, functions={{'words': words}})"
        assert line in err
