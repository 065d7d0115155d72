"""`metricsmith compare`: the paper's table on a table of one's own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from loopback import scripted, serve
from planted import planted_rows

BASICS = ("--target", "rating", "--output", "rewrite", "--input", "notice", "--reference", "gold", "--group", "bundle")


@pytest.fixture
def comparing(run, own, tmp_path, monkeypatch):
    """Run `compare` on the table of sixty rows: exit code, output, errors."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def call(*options, server=None):
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"] if server else []
        return run("compare", own, *BASICS, *model, "--out", tmp_path / "out", *options)

    return call


FEW = ("--bank", "none", "--metric-columns", "good", "--metric-columns", "junk")


def test_without_a_model_the_baselines_that_need_none_are_compared(comparing, tmp_path):
    code, out, err = comparing(*FEW, "--seeds", 2)
    assert code == 0, err
    assert re.search(r"method +tau-b ± seeds +95 % rows", out)
    assert re.search(r"Best existing metric +\.\d{3} ± \.000", out)
    assert re.search(r"AutoMetrics +\.\d{3} ± \.000 .*reference", out)
    assert "not run: DnA-Eval: it needs a language model" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"compare.html", "compare.md", "compare.json"}


def test_options_reach_the_comparison(comparing, tmp_path):
    code, out, err = comparing(
        *FEW, "--methods", "metametrics, autometrics", "--seeds", 3, "--seed", 7, "--test", 0.4, "--validation", 0.1,
        "--regression", "pls", "--n", 1, "--json",
    )  # fmt: skip
    assert code == 0, err
    printed = json.loads(out)
    assert printed == json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    assert [method["key"] for method in printed["methods"]] == ["metametrics", "autometrics"]
    assert printed["rows"] == {"train": 30, "validation": 6, "test": 24, "test_groups": 8, "unrated": 0}
    assert printed["seeds"] == 3
    assert "TwoStagePLS n 1, bank none, k 30" in printed["signature"]
    assert "seed 7, 3 repetitions" in printed["signature"]


def test_with_a_model_everything_is_run_and_the_dry_run_bounds_it(comparing, write_own, own, tmp_path):
    write_own(own, planted_rows(sources=12))
    (tmp_path / "guide.txt").write_text("Give 5 for short words.\n", "utf-8")
    guide = f"@{tmp_path / 'guide.txt'}"
    options = (
        *FEW[2:], "--bank", "generated", "--seeds", 2, "--task", "Rewrite.", "--guideline", guide, "--dimensions", 2,
        "--store", tmp_path / "s.db",
    )  # fmt: skip
    with serve(scripted) as server:
        code, planned, err = comparing(*options, "--dry-run", server=server)
        assert code == 0, err
        assert server.requests == 0
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "s.db").exists()
        code, out, err = comparing(*options, server=server)
        assert code == 0, err
        seen = server.requests
        assert any("Give 5 for short words." in prompt for prompt in server.prompts)
    bound = int(re.search(r"requests: at most ([\d,]+), ", planned)[1].replace(",", ""))
    assert seen <= bound
    assert f"Actual: {seen:,} requests" in out
    assert "asked openai/m; the others ask no model." in out
    assert "temperature 1.0" in out
    assert "not run" not in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--methods", "dna"], "no method 'dna'"),
        (["--methods", ","], "no method to run"),
        (["--seeds", "0"], "seeds=0"),
        (["--test", "0.9"], "together below 1"),
        (["--guideline", "@nowhere.txt"], "--guideline @nowhere.txt cannot be read"),
        (["--concurrency", "fast"], "auto, a whole number"),
    ],
)
def test_wrong_options_are_code_2_before_anything_is_written(comparing, options, says, tmp_path):
    code, _, err = comparing(*FEW, *options)
    assert code == 2
    assert says in err
    assert not (tmp_path / "out").exists()


def test_a_cold_model_cannot_be_repeated(comparing):
    with serve(scripted) as server:
        code, _, err = comparing("--task", "Rewrite.", "--temperature", 0, server=server)
        assert (code, server.requests) == (2, 0)
        assert "temperature" in err


def test_a_failing_model_is_code_3(comparing):
    with serve(scripted, malformed=1.0) as server:
        code, _, err = comparing("--methods", "guideline_judge", "--task", "Rewrite.", server=server)
    assert code == 3
    assert "error: " in err


def test_the_table_is_not_written_over(run, own, tmp_path):
    table = tmp_path / "compare.json"
    table.write_bytes(own.read_bytes())
    code, _, err = run("compare", table, *BASICS, "--out", tmp_path)
    assert code == 2
    assert table.read_bytes() == own.read_bytes()
    assert "which would be lost" in err


@pytest.mark.skipif("METRICSMITH_DATA" not in os.environ, reason="METRICSMITH_DATA does not name a folder of data sets")
def test_simpeval_without_a_model(run, tmp_path):
    """The figures of docs/compare.md."""
    code, _, err = run(
        "compare", Path(os.environ["METRICSMITH_DATA"]) / "simpeval.csv", "--target", "score", "--output", "simple",
        "--input", "original", "--reference", "references", "--group", "id", "--seeds", 1, "--out", tmp_path,
    )  # fmt: skip
    assert code == 0, err
    content = json.loads((tmp_path / "compare.json").read_text("utf-8"))
    taus = {method["key"]: method["tau"] for method in content["methods"] if not method["skipped"]}
    assert taus == pytest.approx({"best_existing": 0.328, "metametrics": 0.157, "autometrics": 0.300}, abs=0.002)
