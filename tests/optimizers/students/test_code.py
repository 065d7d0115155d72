"""A code generator as a student: its examples, what a function of its is worth, and two real searches."""

from __future__ import annotations

import json
import logging

import dspy
import pytest

from loopback import scripted, serve
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.generation import code_inputs
from metricsmith.optimizers.students.code import CodeYieldMetric, code_episodes
from metricsmith.optimizers.students.episodes import HeldOut
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.generators.code import CodeGenerator
from metricsmith.records import Scale, Task
from metricsmith.signatures.generation import Axis
from metricsmith.stats.correlation import kendall_tau_b
from planted import TASK
from students import HINT, rated_table

AXIS = Axis(name="No padding", meaning="No word is idle.")
LEARN, SELECT = (
    [rated_table(sources=6, seed=seed) for seed in (1, 2)],
    [rated_table(sources=6, seed=seed) for seed in (3, 4, 5, 6)],
)
PADDED = "def score(output, input, references):\n    return output.split().count('indeed')"
BROKEN = "def score(output, input, references):\n    return 1 / 0"
ROWS = [make_row("word " * n, rating=min(n, 8)) for n in range(1, 11)]
EPISODE = type(
    "Given", (dspy.Example,), {"label": HeldOut(Task("Write.", "rating", Scale(1, 10)), tuple(ROWS), "t", 1)}
)()


def measured(body, episode=EPISODE):
    source = f"def score(output, input, references):\n    return {body}"
    return CodeYieldMetric()(episode, dspy.Prediction(source=source))


def test_examples_hold_what_an_induction_asks_and_measure_by_rows_of_other_groups():
    table = rated_table(sources=12)
    (episode,) = code_episodes(table, [AXIS])
    held = episode.label.rows
    kept = {row.group for row in held}
    shown = [row for row in table.rows if row.group not in kept]
    assert episode.toDict() == code_inputs(AXIS, shown, table.task)
    assert set(episode.inputs().keys()) == set(episode.keys())
    assert not any(row.output in episode.liked + episode.disliked for row in held)
    assert (episode.label.wanted, episode.label.axis) == (1, AXIS)
    assert len(code_episodes([table, LEARN[0]], [AXIS, AXIS], splits=3)) == 12
    with pytest.raises(OptionError, match="no axis"):
        code_episodes(table, [])


def test_a_function_is_worth_its_share_of_rows_first_and_then_its_tau():
    # Eight of ten rows have a number, all but the shortest two: half of the share, whatever the order.
    assert measured("1 / max(0, len(output.split()) - 2)").score == pytest.approx(0.4)
    assert measured("1 / 0").score == 0
    assert measured("1.0").score == 0.5
    # Ratings are 1 to 8 and twice 8 more: 42 of 45 pairs in order, 3 tied, tau-b = 42 / sqrt(45 * 42).
    tau = 42 / (45 * 42) ** 0.5
    for body in ("len(output)", "-len(output)"):
        answer = measured(body)
        assert answer.score == pytest.approx((1 + tau) / 2)
        assert "is 0.97;" in answer.feedback


def test_feedback_gives_the_reason_without_a_text_of_the_held_out_rows():
    answer = measured("1 / max(0, len(output.split()) - 2)")
    assert "no finite number on 2 of 10 rows, mostly: ZeroDivisionError" in answer.feedback
    assert "word" not in answer.feedback
    refused = CodeYieldMetric()(EPISODE, dspy.Prediction(source="import os"))
    assert (refused.score, "refused" in refused.feedback) == (0, True)


def test_what_cannot_be_measured_is_an_error():
    with pytest.raises(DataError, match="not from a CodeGenerator"):
        CodeYieldMetric()(EPISODE, dspy.Prediction(levels=["a"]))
    with pytest.raises(DataError, match="no held-out rows"):
        CodeYieldMetric()(dspy.Example(), dspy.Prediction(source=PADDED))
    alike = dspy.Example()
    alike.label = HeldOut(TASK, tuple(make_row("word " * n, rating=3) for n in range(9)), "table, seed 0", 1)
    with pytest.raises(DataError, match="table, seed 0: all held-out ratings are alike"):
        measured("len(output)", alike)


def answer(prompt):
    """A model whose functions run if its instruction says the hint; it writes instructions that do."""
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    if "new_instruction" in prompt:
        return {"new_instruction": json.dumps({"new_instruction": f"Write a function. {HINT}"})}
    if "## source ##" in asked:
        return {"source": PADDED if HINT in prompt else BROKEN}
    return (
        {"proposed_instruction": f"Write a function. {HINT}"} if "proposed_instruction" in asked else scripted(prompt)
    )


@pytest.mark.parametrize(("method", "budget"), [("gepa", 60), ("mipro", 120)])
def test_a_search_finds_the_instruction_whose_functions_run(method, budget, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    learn, select = (code_episodes(tables, [AXIS]) for tables in (LEARN, SELECT))
    with serve(answer) as server:
        tuner = JudgeTuner(method=method, objective=CodeYieldMetric(), budget=budget, lm=server.lm(), seed=1)
        bound = tuner.bound(CodeGenerator(), learn, select)
        tuned = tuner.compile(CodeGenerator(), learn, select)
    assert server.wrong == []
    assert not [record for record in caplog.records if "Failed to run" in record.getMessage()]  # when bootstrapping
    assert tuned.tuning.replaced
    assert HINT in next(iter(tuned.tuning.after.values()))
    assert tuned.tuning.usage.requests == server.requests <= bound <= budget
    rows = select[0].label.rows
    tau = kendall_tau_b([row.output.split().count("indeed") for row in rows], [row.rating for row in rows])
    assert CodeYieldMetric()(select[0], dspy.Prediction(source=PADDED)).score == pytest.approx((1 + abs(tau)) / 2)
