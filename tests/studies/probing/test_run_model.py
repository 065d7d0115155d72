"""Probing with a model: generated changes and judges, every request counted."""

from __future__ import annotations

import hashlib

import dspy
import pytest

from faults import Fault, Faults
from loopback import scripted, serve
from metricsmith.errors import ModelFailure, NeedsError
from metricsmith.metric import make_row
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Scale, Task
from metricsmith.studies.probing.run import Prober

JUDGE = CriterionJudge(criterion="Plain words", meaning="Every word is short.", task="Write notices.")
TASK = Task("Write notices.", "plainness", Scale(1, 5, 1))
ROWS = [
    make_row(f"The road number {n} is closed until the month of May because of works.", input=f"Notice {n}", id=f"r{n}")
    for n in range(6)
]
PLANS = ("Drop facts", "Repeat words", "Stretch words")


def three(prompt):
    """The scripted model with three strategies, and other outputs for another strength or dimension."""
    said = scripted(prompt)
    mark = f" {hashlib.sha256(prompt.encode()).hexdigest()[:4]}"
    if "strategies" in said:
        return {"strategies": [{"name": name, "description": f"{name} wherever they stand."} for name in PLANS]}
    if "outputs" in said:
        long = " ".join(f"{word}ishness" for word in said["outputs"][0].split())
        return {"outputs": [text + mark for text in (*said["outputs"], long)]}
    return {**said, "changed": said["changed"] + mark} if "changed" in said else said


def probed(answer=three, faults=None, **options):
    """The record and the server."""
    with serve(answer, script=faults or Faults()) as server:
        settings = {"perturbers": "generated", "n": 6, "lm": server.lm(), **options}
        return Prober(**settings).probe(JUDGE, ROWS, TASK), server


@pytest.mark.parametrize("options", [{}, {"strengths": ("subtle", "obvious"), "dimensions": ("Facts: all", "Tone")}])
def test_requests_are_the_dry_runs_estimate(options):
    record, server = probed(**options)
    assert record.usage.requests == server.requests == record.estimated.requests
    assert not server.wrong
    axes, strengths = len(options.get("dimensions", "x")), len(options.get("strengths", "x"))
    changes = axes * (1 + 6 * strengths * 2)
    assert server.requests == changes + 6 + axes * strengths * 6 * 4


def test_rules_and_a_model_together():
    record, server = probed(perturbers="all")
    assert record.usage.requests == server.requests == record.estimated.requests
    assert {line.origin for line in record.strategies} == {"builtin", "generated"}
    assert {line.name for line in record.strategies if line.origin == "generated"} == {*PLANS, "preserve"}
    assert {line.dimension for line in record.strategies if line.origin == "generated"} == {"plainness"}
    assert record.attacks


def test_longer_words_score_lower_with_this_model():
    record, _ = probed()
    lines = {line.name: line for line in record.strategies}
    assert lines["Stretch words"].sensitivity.value == 1.0
    assert lines["Stretch words"].summary.startswith("Stretch words wherever")
    assert lines["preserve"].stability is not None


def test_an_output_that_came_back_unchanged_is_declined_and_never_scored():
    def lazy(prompt):
        said = three(prompt)
        if "outputs" not in said:
            return said
        original = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("»\n", 1)[-1].split("\n«end")[0]
        return {"outputs": [original, *said["outputs"][1:]]}

    record, server = probed(lazy)
    lazy_line = next(line for line in record.strategies if line.name == PLANS[0])
    assert (lazy_line.made, lazy_line.declined) == (0, 6)
    assert "unchanged" in lazy_line.reason
    assert lazy_line.sensitivity is None
    assert record.counts["declined"] == 6
    assert record.usage.requests == server.requests == record.estimated.requests - 6


def test_wrong_counts_are_repaired_or_left_out():
    record, server = probed(lambda prompt: {"outputs": ["one"]} if "outputs" in three(prompt) else three(prompt))
    worse = [line for line in record.strategies if line.effect == "worse"]
    assert all(line.made == 0 and line.declined == 6 for line in worse)
    assert record.metric.sensitivity is None
    assert record.metric.stability is not None
    assert record.usage.requests == server.requests
    assert any("have no output" in note for note in record.notes)


def test_faults_lose_no_request_and_make_no_number():
    record, server = probed(faults=Faults({Fault.ERROR_500: 0.1, Fault.CHATTER: 0.05}))
    assert record.usage.requests == server.requests
    found = record.metric.sensitivity
    assert found.n + found.missing == record.counts["worse"]


@pytest.mark.parametrize("names", [("gpt-4o-mini", "unpriced"), ("unpriced", "gpt-4o-mini")])
def test_the_estimate_has_no_price_where_one_of_its_models_has_none(names):
    writer, reader = (dspy.LM(f"openai/{name}") for name in names)
    judge = JUDGE.deepcopy()
    judge.set_lm(reader)
    assert Prober(perturbers="generated", n=3, lm=writer).estimate(judge, ROWS, TASK).cost is None
    judge.set_lm(dspy.LM("openai/gpt-4o-mini"))
    known = Prober(perturbers="generated", n=3, lm=dspy.LM("openai/gpt-4o-mini")).estimate(judge, ROWS, TASK)
    assert known.cost > 0


def test_a_model_that_is_missing_or_refuses_is_an_error():
    with pytest.raises(NeedsError, match="needs a language model"):
        Prober(perturbers="generated", n=3).probe(JUDGE, ROWS, TASK)
    with serve(three, always=401) as server, pytest.raises(ModelFailure):
        Prober(perturbers="generated", n=3, lm=server.lm()).probe(JUDGE, ROWS, TASK)
    assert server.requests < 10


def test_a_store_keeps_what_was_judged(tmp_path):
    with serve(three) as server:
        prober = Prober(n=6, lm=server.lm(), store=tmp_path / "s.db")
        first = prober.probe(JUDGE, ROWS, TASK)
        asked = server.requests
        again = prober.probe(JUDGE, ROWS, TASK)
        assert prober.estimate(JUDGE, ROWS, TASK).requests == 0
    assert asked == first.usage.requests == first.estimated.requests
    assert server.requests == asked
    assert repr(first.subjects) == repr(again.subjects)
