"""Budgets and rates of `induce`, `compare` and `probe`: one for the whole run, told beside the estimate."""

from __future__ import annotations

import json
import re

import pytest

from loopback import own_axes, serve
from metricsmith.programs.judges.criterion import CriterionJudge

NAMED = ("--output", "rewrite", "--input", "notice", "--reference", "gold")
RATED = (*NAMED, "--target", "rating", "--group", "bundle", "--task", "Rewrite.")


@pytest.fixture
def commands(own, tmp_path, monkeypatch):
    """The three commands on the table of sixty rows, each with few requests, on a server."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    CriterionJudge(criterion="Plain words", meaning="Short.", task="Rewrite.").save(tmp_path / "judge.json")
    judge = ("--judge", tmp_path / "judge.json")

    def call(server):
        model = ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1", "--out", tmp_path / "out")
        return {
            "induce": ("induce", own, *RATED, "--bank", "none", *judge, *model),
            "compare": ("compare", own, *RATED, "--bank", "none", *judge, "--methods", "autometrics,guideline_judge",
                        "--seeds", 1, *model),
            "probe": ("probe", tmp_path / "judge.json", own, *NAMED, "--n", 4, *model),
        }  # fmt: skip

    with serve(own_axes) as server:
        yield call(server), server


@pytest.mark.parametrize("name", ["induce", "compare", "probe"])
def test_a_run_stops_at_its_budget_says_what_to_do_and_with_a_store_asks_only_the_rest(commands, run, tmp_path, name):
    command, server = commands[0][name], commands[1]
    code, out, err = run(*command, "--max-requests", 9, "--dry-run")
    assert (code, server.requests) == (0, 0), err
    assert re.search(r"an estimate of \d+ requests is more than --max-requests 9 allows\n", out)
    code, out, err = run(*command, "--max-requests", 9, "--store", tmp_path / "s.db")
    assert (code, out, server.requests) == (3, "", 9)
    warned, error = (
        err.index("is more than --max-requests 9 allows; the run stops when that is spent"),
        err.index("error: "),
    )
    assert warned < error
    assert "the budget of 9 requests is spent before the run was complete" in err
    assert (
        f"what was judged stands in {tmp_path / 's.db'}, and what made judges in DSPy's cache: run the same again"
        in err
    )
    assert not (tmp_path / "out").exists()
    code, _, err = run(*command, "--max-requests", 900, "--store", tmp_path / "s.db", "--json")
    assert code == 0, err
    assert "is more than" not in err
    (report,) = [path for path in (tmp_path / "out").glob("*.json") if path.name != "metric.json"]
    usage = json.loads(report.read_text("utf-8"))["usage"]
    assert usage["requests"] == server.requests - 9
    whole = server.requests
    code, _, err = run(*command, "--store", tmp_path / "t.db", "--force" if name == "induce" else "--quiet")
    assert (code, server.requests) == (0, 2 * whole), err


@pytest.mark.parametrize("name", ["induce", "compare", "probe"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--max-requests", 0), "a budget of 0 requests has no meaning; give a whole number above 0"),
        (("--max-seconds", "nan"), "a budget of nan seconds has no meaning"),
        (("--max-usd", 1), "the price of openai/m is unknown"),
        (("--requests-per-minute", 0), "(--requests-per-minute) must be a number above 0"),
        (("--tokens-per-minute", -5), "(--tokens-per-minute) must be a number above 0"),
    ],
)
def test_limits_without_sense_are_code_2_before_anything_is_sent(commands, run, tmp_path, name, options, says):
    code, _, err = run(*commands[0][name], *options)
    assert (code, commands[1].requests) == (2, 0)
    assert says in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["induce", "compare", "probe"])
def test_a_quiet_run_that_stops_says_nothing_of_its_estimate_before(commands, run, name):
    code, out, err = run(*commands[0][name], "--max-requests", 2, "--quiet")
    assert (code, out) == (3, "")
    assert "is more than" not in err
    assert err.splitlines()[-1].startswith("error: the budget of 2 requests is spent")


def test_time_ends_a_run_too(commands, run):
    code, _, err = run(*commands[0]["induce"], "--max-seconds", 0.000001)
    assert (code, commands[1].requests) == (3, 0)
    assert re.search(
        r"the budget of 1e-06 seconds is spent before the run was complete \(0 of \d+ model judgements", err
    )


def test_a_judge_of_a_comparison_is_a_candidate(commands, run, tmp_path):
    code, out, err = run(*commands[0]["compare"], "--json")
    assert code == 0, err
    (line,) = [method for method in json.loads(out)["methods"] if method["key"] == "autometrics"]
    assert "plain_words" in json.dumps(line)
    assert line["judgements"]["requested"] == line["judgements"]["ok"] > 0
    code, _, err = run("compare", tmp_path / "none.csv", "--target", "rating", "--judge", tmp_path / "judge.json")
    assert code == 2
    assert "asks a language model: name one with --lm MODEL" in err
