"""Table 1 of GEMBA-MQM V2 out of the command's own files, from runs whose errors are planted."""

from __future__ import annotations

import csv
import json
import re

import pytest

from loopback import serve
from metricsmith.datasets.metric_files import read_metrics

LANGUAGES = ("--source-lang", "English", "--target-lang", "German")
WORDS = ("Eins", "zwei", "drei", "vier")
# GEMBA-MQM V2, Table 1: critical, major and minor errors of the ten runs of one segment.
PAPER = ((2, 0, 0), (0, 2, 1), (0, 1, 1), (0, 1, 1), (0, 2, 1), (0, 1, 1), (0, 1, 1), (2, 1, 0), (0, 1, 1), (0, 2, 1))
SCORES = [-50, -11, -6, -6, -11, -6, -6, -55, -6, -11]


class Planted:
    """Answers the runs of the first segment with the errors of the paper's table, in their order, others with none."""

    def __init__(self, fails=()):
        self.runs, self.fails = iter(PAPER), fails

    def __call__(self, prompt):
        if " ".join(WORDS) not in prompt:
            return {"errors": json.dumps({"critical": [], "major": [], "minor": []})}
        lists, words = {}, iter(WORDS)
        for severity, number in zip(("critical", "major", "minor"), next(self.runs), strict=True):
            lists[severity] = [
                {"span": next(words), "type": "accuracy/mistranslation", "description": "wrong"} for _ in range(number)
            ]
        return {"errors": json.dumps(lists)}


@pytest.fixture(scope="module")
def judged(tmp_path_factory, exit_code):
    folder = tmp_path_factory.mktemp("planted")
    (folder / "source.txt").write_text("One two three four\nFive six\n", "utf-8")
    (folder / "alpha.txt").write_text(" ".join(WORDS) + "\nFünf sechs\n", "utf-8")
    with serve(Planted()) as server:
        model = ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")
        options = (*LANGUAGES, "--concurrency", 1, "--quiet", "--out", folder / "out", *model)
        assert exit_code("mqm", folder / "source.txt", folder / "alpha.txt", *options) == 0
        assert server.requests == 20
    return folder / "out"


def test_runs_tsv_is_the_papers_table(judged):
    rows = list(csv.DictReader((judged / "runs.tsv").read_text("utf-8").splitlines(), delimiter="\t"))
    first = [row for row in rows if row["segment"] == "1"]
    assert [tuple(int(row[name]) for name in ("critical", "major", "minor")) for row in first] == list(PAPER)
    assert [float(row["raw"]) for row in first] == SCORES
    assert [row["run"] for row in first if row["outlier"] == "1"] == ["8"]
    assert len(rows) == 20
    assert {(row["critical"], row["raw"], row["outlier"]) for row in rows[10:]} == {("0", "0.0", "0")}


def test_segments_jsonl_has_counts_outliers_and_delta(judged):
    first, second = map(json.loads, (judged / "segments.jsonl").read_text("utf-8").splitlines())
    assert first["counts"] == [dict(zip(("critical", "major", "minor"), counts, strict=True)) for counts in PAPER]
    assert (first["outliers"], first["delta"], first["kept"]) == ([8], 49, 9)  # the paper's delta is 49
    assert (second["outliers"], second["delta"]) == ([], 0)
    head, *lines = (line.split("\t") for line in (judged / "segments.tsv").read_text("utf-8").splitlines())
    assert [float(line[head.index("delta")]) for line in lines] == [49, 0]


@pytest.mark.parametrize("name", ["mqm.md", "mqm.html"])
def test_the_page_has_the_table_with_what_combines_the_runs(judged, name):
    """The paper's last rows: mean -12.55 (cut off), max -6.00, geo -9.29, rrwa -8.50; its mean-all is a typo."""
    text = re.sub(r"<[^>]+>", " ", (judged / name).read_text("utf-8")).replace("|", " ")
    for row in (
        r"1 +2 +0 +0 +−50\.00", r"8 +2 +1 +0 +outlier +−55\.00", r"10 +0 +2 +1 +−11\.00", r"mean-all +−16\.80",
        r"mean +−12\.56", r"max +−6\.00", r"geo +−9\.29", r"rrwa +−8\.50",
    ):  # fmt: skip
        assert re.search(row.replace(" +", r"\s+"), text), row
    assert "lie 24.50 points apart in the median, more than 5.00 in 50" in text
    assert "49.00 at most" in text


def test_meta_evaluation_has_the_same_numbers(judged):
    columns = read_metrics([judged / "segments.jsonl"], each_run=True)[0].columns
    assert [columns[f"mqm-run-{run}"][0] for run in range(1, 11)] == SCORES
    found = {name: round(float(columns[f"mqm-{name}"][0]), 4) for name in ("rrwa", "mean", "max", "geo")}
    assert found == {"rrwa": -8.4961, "mean": -12.5556, "max": -6, "geo": -9.2942}
    assert columns["mqm"][0] == columns["mqm-rrwa"][0]
