"""A command that is run again asks for what failed and for nothing else, with a store and without one."""

from __future__ import annotations

import csv
import json

import dspy
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Scale, Task
from metricsmith.stats.regression import LinearCombination, ZScore
from reviser import DOCUMENTS, FILES, Reviser

TENTH = Faults({Fault.CHATTER: 0.03, Fault.REFUSAL: 0.06, Fault.CUT_OFF: 0.01})
LIMITS = ("--concurrency", 1)  # which of ten equal prompts meets which fault depends on their order


@pytest.fixture(autouse=True)
def restarted(tmp_path, monkeypatch):
    """Call it for what the next process finds: DSPy's cache on the disk, and nothing in memory."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def restart():
        dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / "cache"))

    restart()
    yield restart
    dspy.cache.disk_cache.close()
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def score_command(folder):
    """`metricsmith score` of 150 texts by one judge, and a function that counts the rows without a judgement."""
    judge = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
    combination = LinearCombination((judge.name,), (0,), (ZScore.fit([1.0, 3.0, 5.0]),), (1.0,), 3.0)
    InducedMetric(
        components=[judge], combination=combination, task=Task("Write.", "rating", Scale(1, 5)), best=[1.0],
        reading={"output": "text"},
    ).save(folder / "metric.json")  # fmt: skip
    with (folder / "new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([f"A plain text, number {number}."] for number in range(150))])
    out = folder / "scores.jsonl"

    def failed():
        return sum(json.loads(line)["missing"] for line in out.read_text("utf-8").splitlines())

    return ("score", folder / "metric.json", folder / "new.csv", "--json", "--out", out), failed


def mqm_command(folder):
    """`metricsmith mqm` of twelve segments in ten runs, and a function that counts the runs without a number."""
    languages = ("--source-lang", "English", "--target-lang", "German", "--documents", DOCUMENTS)

    def failed():
        lines = (folder / "out" / "segments.jsonl").read_text("utf-8").splitlines()
        return sum(json.loads(line)["runs"].count(None) for line in lines)

    return ("mqm", *FILES[:2], *languages, "--out", folder / "out"), failed


@pytest.mark.parametrize("store", [True, False], ids=["with a store", "without one"])
@pytest.mark.parametrize("command", [score_command, mqm_command])
def test_after_a_tenth_malformed_the_second_run_asks_for_the_failures_and_the_third_for_nothing(
    run, tmp_path, restarted, command, store
):
    arguments, failed = command(tmp_path)
    options = ("--store", tmp_path / "s.db") if store else ()
    answers = Reviser() if command is mqm_command else lambda prompt: {"reasoning": "Plain.", "score": "4"}
    with serve(answers, script=TENTH, seed=4) as server:
        model = ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")
        sent, left = [], []
        for _ in range(3):
            restarted()
            before = server.requests
            code, _, errors = run(*arguments, *options, *LIMITS, *model)
            assert code == 0, errors
            sent.append(server.requests - before)
            left.append(failed())
            server.script = Faults()
    repaired = server.faults[Fault.CHATTER] + server.faults[Fault.CUT_OFF]
    judgements = 150 if command is score_command else 120
    assert left == [left[0], 0, 0]
    assert (
        left[0] > 0
    )  # some seven refusals, whatever the prompts draw, and answers of which the repair was of no use either
    assert sent[1:] == [left[0], 0]
    assert judgements < sent[0] <= judgements + repaired
