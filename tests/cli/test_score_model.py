"""`metricsmith score` with a model behind the metric: failures, limits, and files that must not be lost."""

from __future__ import annotations

import csv
import sqlite3

import pytest

from faults import Fault, Faults
from loopback import scripted, serve
from metricsmith.bank.column import ColumnMetric
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Scale, Task
from metricsmith.stats.regression import LinearCombination, ZScore

ROWS = 12


@pytest.fixture
def metric(tmp_path):
    """A saved metric of which a judge carries two fifths, a column the rest."""
    judge = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
    columns = tuple(ZScore.fit([1.0, 3.0, 5.0]) for _ in range(2))
    combination = LinearCombination((judge.name, "good"), (0, 1), columns, (0.4, 0.6), 3.0)
    induced = InducedMetric(
        components=[judge, ColumnMetric("good")], combination=combination, task=Task("Write.", "rating", Scale(1, 5)),
        best=[1.0, 1.0], reading={"output": "text", "metric_columns": ["good"]},
    )  # fmt: skip
    induced.save(tmp_path / "metric.json")
    return tmp_path / "metric.json"


@pytest.fixture
def table(tmp_path):
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "good"])
        writer.writerows([f"A plain text, number {number}.", number % 5] for number in range(ROWS))
    return tmp_path / "new.csv"


@pytest.fixture
def scoring(run, metric, table, tmp_path, monkeypatch):
    """Run `score` against a server: exit code, errors, lines of the result."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def call(server, *options, out="scores.csv"):
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, printed, errors = run("score", metric, table, *model, "--out", tmp_path / out, *options)
        path = tmp_path / out
        lines = list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.suffix == ".csv" else []
        return code, printed, errors, lines

    return call


def test_a_good_run_says_what_it_cost_and_lacks_nothing(scoring):
    with serve(scripted) as server:
        code, _, errors, lines = scoring(server)
    assert code == 0
    assert f"estimated: {ROWS} requests" in errors
    assert f"actual:    {ROWS} requests" in errors
    assert f"{ROWS} rows scored, 0 without a prediction: " in errors
    assert [line["missing"] for line in lines] == ["0"] * ROWS


def test_a_model_that_never_answers_makes_the_command_fail_though_predictions_stand(scoring):
    with serve(scripted, script=Faults({Fault.WRONG_KEY: 1.0})) as server:
        code, _, errors, lines = scoring(server)
    assert code == 3
    assert f"{ROWS} rows scored, 0 without a prediction, {ROWS} with components missing" in errors
    assert "refuses to work" in errors
    assert [line["missing"] for line in lines] == ["1"] * ROWS
    assert all(line["prediction"] for line in lines)


def test_more_than_a_fifth_of_the_models_judgements_may_not_fail(scoring):
    with serve(scripted, malformed=1.0) as server:
        code, _, errors, lines = scoring(server)
    assert code == 3
    assert f"{ROWS} of {ROWS} model judgements failed ({ROWS} unparsable), the first: plain_words: " in errors
    assert len(lines) == ROWS


def test_explain_fails_with_the_model(run, metric, table, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serve(scripted, malformed=1.0) as server:
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, out, errors = run("explain", metric, table, "--row", "2", *model)
    assert code == 3
    assert "none" in out
    assert "1 of 1 model judgements failed" in errors


def test_what_a_budget_left_undone_is_counted(scoring):
    with serve(scripted) as server:
        code, _, errors, lines = scoring(server, "--max-requests", "5")
        assert server.requests == 5
    assert code == 0
    assert f"{ROWS - 5} judgements were left undone" in errors
    assert f"{ROWS - 5} with components missing" in errors
    assert sorted(line["missing"] for line in lines) == ["0"] * 5 + ["1"] * (ROWS - 5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--concurrency", "fast"], "auto, a whole number, or LOW:HIGH"),
        (["--max-requests", "-3"], "number above 0"),
        (["--max-requests", "0"], "number above 0"),
        (["--max-seconds", "inf"], "a budget of inf seconds has no meaning; give a number above 0, or None"),
        (["--max-seconds", "nan"], "a budget of nan seconds"),
        (["--max-usd", "inf"], "a budget of inf usd"),
        (["--requests-per-minute", "0"], "--requests-per-minute"),
        (["--tokens-per-minute", "inf"], "--tokens-per-minute"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_limits_are_checked_before_anything_is_asked(scoring, options, says, dry, tmp_path):
    with serve(scripted) as server:
        (tmp_path / "scores.csv").write_text("", "utf-8")
        code, _, errors, _ = scoring(server, *options, *dry)
        assert server.requests == 0
    assert code == 2
    assert says in errors


@pytest.mark.parametrize(
    ("out", "what"),
    [("metric.json", "metric"), ("new.csv", "table"), ("s.db", "store"), ("s.db-wal", "store"), ("./s.db", "store")],
)
def test_nothing_that_is_read_is_written_over(scoring, tmp_path, out, what):
    with serve(scripted) as server:
        scoring(server, "--store", str(tmp_path / "s.db"))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        code, _, errors, _ = scoring(server, "--store", str(tmp_path / "s.db"), out=out)
        assert server.requests == ROWS
    assert code == 2
    assert f"is the {what}, which would be lost" in errors
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    with sqlite3.connect(tmp_path / "s.db") as connection:
        assert connection.execute("SELECT count(*) FROM judgements").fetchone() == (ROWS,)
    connection.close()


def test_guesses_are_printed(run, metric, tmp_path):
    (tmp_path / "new.csv").write_text("id,text,good\nn0,One text.,1\nn1,Another.,2\nn1,A third.,3\n", "utf-8")
    _, _, errors = run("score", metric, tmp_path / "new.csv", "--lm", "openai/m", "--dry-run")
    assert "note: " in errors
