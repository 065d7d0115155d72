"""Code metrics on the command line: a candidate from a file, and a file with code at every command that takes one."""

from __future__ import annotations

import csv
import json

import pytest

from metricsmith.bank.code import CodeMetric
from metricsmith.errors import NeedsError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.programs.loading import load
from metricsmith.programs.state import write_state
from metricsmith.sandbox import monty
from metricsmith.sandbox.contract import MissingEngine
from planted import TASK, planted_rows

KEPT = CodeMetric(
    "def kept(output, references):\n    wanted = set(references[0].split())\n"
    "    return len(wanted & set(output.split())) / len(wanted)\n",
    "kept", name="kept", meaning="The share of the reference's words that the rewrite has.",
)  # fmt: skip
LISTED = "the metric has 1 code component, kept, which only the sandbox runs; wherever it scores, the sandbox must be "
READ = ("--target", "rating", "--output", "rewrite", "--input", "notice", "--reference", "gold", "--group", "bundle",
        "--id", "case")  # fmt: skip


@pytest.fixture
def made(run, own, tmp_path):
    """An induction with the metric in a file among its candidates: its folder and what it printed."""
    write_state(KEPT.to_state(), tmp_path / "kept.json")
    folder = tmp_path / "out"
    code, out, err = run("induce", own, *READ, "--judge", tmp_path / "kept.json", "--bank", "none", "--out", folder)
    assert code == 0, err
    return folder, out, err


def test_a_file_with_code_is_a_candidate_and_a_component(made):
    folder, out, err = made
    metric = load(folder / "metric.json")
    assert metric.components == [KEPT]
    assert f"note: {LISTED}" in err
    assert "  | def kept(output, references):" in out
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert [(one["kind"], one["direction"]) for one in report["components"]] == [("code", "+")]
    assert report["usage"]["requests"] == 0


def test_every_command_that_takes_a_metric_takes_one_with_code(run, own, made, tmp_path):
    metric = made[0] / "metric.json"
    code, _, err = run("score", metric, own, "--out", tmp_path / "scores.csv")
    assert (code, LISTED in err) == (0, True), err
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        assert all(0 <= float(line["kept"]) <= 1 for line in csv.DictReader(file))
    code, out, err = run("explain", metric, own, "--row", "1-1")
    assert (code, "kept" in out) == (0, True), err
    code, out, err = run("versus", metric, own, own, "--out", tmp_path / "versus")
    assert (code, out.startswith("Not decided")) == (0, True), out + err
    code, out, err = run("probe", metric, own, "--out", tmp_path / "probe")
    assert code == 0, err
    code, _, err = run("score", tmp_path / "kept.json", own, "--out", tmp_path / "kept.csv", *READ[2:8])
    assert code == 0, err


def test_without_the_extra_scoring_is_code_2_with_the_line_that_mends_it(run, own, made, tmp_path, monkeypatch):
    def missing():
        raise MissingEngine("the package pydantic-monty is not installed")

    monkeypatch.setattr(monty, "sandbox", missing)
    code, out, err = run("score", made[0] / "metric.json", own, "--out", tmp_path / "scores.csv")
    assert (code, out) == (2, "")
    assert "error: kept is code, which only the sandbox runs: pip install 'metricsmith[code]'" in err
    assert not (tmp_path / "scores.csv").exists()
    with pytest.raises(NeedsError, match=r"metrics\[0\], kept: kept is code"):
        AutoMetrics(TASK, metrics=[KEPT])


def test_a_candidate_that_mostly_fails_is_no_component_and_a_name_that_is_taken_gets_a_number():
    rows = planted_rows(20)
    fails = CodeMetric("def score(output): return 1 / (len(output) % 2)", name="fails")
    other = CodeMetric("def score(output): return len(output)", name="kept")
    metric = AutoMetrics(TASK, metrics=[KEPT, fails, other], bank="none").compile(rows)
    assert "fails" not in [one.name for one in metric.components]
    assert any("fails" in warning for warning in (*metric.record.warnings, *metric.record.failures))
    assert "your metric 'kept' is called 'kept_2' here: something else has its name" in metric.record.notes
