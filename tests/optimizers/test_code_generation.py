"""The family `code`: functions for axes, kept where they run and go with the ratings; what is not made is said."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pandas as pd
import pytest

from loopback import own_axes, scripted, serve
from metricsmith.bank.code import CodeMetric
from metricsmith.datasets.table import read_table
from metricsmith.errors import ModelFailure, NeedsError
from metricsmith.metric import fence
from metricsmith.optimizers import generation
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.generation import DEFAULT_COUNTS, GENERATORS, code_inputs, generate_judges
from metricsmith.optimizers.induce import prepare
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.screening import beyond_chance
from metricsmith.optimizers.spending import PassRows, estimate_passes
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.splitting import Division
from metricsmith.programs.generators.axes import contrast
from metricsmith.programs.generators.code import tried
from metricsmith.signatures.generation import Axis
from planted import TASK, planted_rows
from rated import rated_table
from students import field

ROWS = planted_rows(sources=24)
PADDED = "def score(output, input, references):\n    return -output.split().count('indeed')"
BESIDE = "def score(output, input, references):\n    return sum(map(ord, output)) % 7"
BROKEN = "def score(output, input, references):\n    return 1 / 0"


def by_axis(**sources):
    """A model that writes a function by the last word of its axis, and answers all else as `scripted` does."""

    def answer(prompt):
        if "## source ##" not in prompt.rsplit("Respond with the corresponding output fields", 1)[-1]:
            return scripted(prompt)
        name = field(prompt, "criterion").split(":")[0].split()[-1]
        return {"source": sources.get(name, PADDED)}

    return answer


def made(answer, counts, rows=ROWS, **faults):
    with serve(answer, **faults) as server, dspy.context(lm=server.lm()):
        generated = generate_judges(rows, TASK, counts)
    assert server.wrong == []
    return generated, server


def test_functions_are_off_unless_asked_for_and_take_one_request_each():
    assert "code" not in DEFAULT_COUNTS
    generated, server = made(by_axis(), {"criterion": 1, "code": 2})
    assert server.requests == generated.usage.requests == 1 + 2
    first, second = generated.metrics[1:]
    assert isinstance(first, CodeMetric)
    assert (first.name, second.name) == ("plain_words_code", "complete_facts_code")
    assert (first.meaning, first.source) == ("The output shows plain words.", PADDED)
    assert generated.notes == generated.lacks == ()


def test_the_model_sees_axis_task_and_a_few_rated_rows():
    _, server = made(by_axis(), {"code": 1})
    (prompt,) = server.prompts[1:]
    assert field(prompt, "criterion").strip() == "Brevity: The output shows brevity."
    assert field(prompt, "task").strip() == TASK.description
    best = max(ROWS, key=lambda row: row.rating)
    assert fence(best.output) in field(prompt, "liked")
    assert field(prompt, "liked").count("output:") == field(prompt, "disliked").count("output:") == 3
    inputs = code_inputs(Axis(name="Brevity", meaning="The output shows brevity."), ROWS, TASK)
    assert set(inputs) == {"task", "rating", "criterion", "liked", "disliked"}


def test_a_function_that_cannot_be_mended_is_lacking_with_the_reason():
    generated, server = made(by_axis(Brevity=BROKEN), {"code": 2})
    assert server.requests == generated.usage.requests == 1 + 3 + 1
    (lack,) = generated.lacks
    assert (lack.family, lack.count, lack.status) == ("code", 1, "")
    assert lack.why.startswith(
        "no function for 'Brevity': no finite number on 72 of 72 rows, mostly: ZeroDivisionError"
    )
    assert generated.notes == (lack.why,)
    assert [metric.name for metric in generated.metrics] == ["plain_words_code"]


def test_a_function_that_goes_with_the_ratings_by_chance_is_no_candidate_and_nothing_is_lacking():
    generated, _ = made(by_axis(Brevity=BESIDE), {"code": 2})
    assert [metric.name for metric in generated.metrics] == ["plain_words_code"]
    assert generated.lacks == ()
    assert generated.notes == (
        "no candidates, since they rise with training ratings no more than chance does: brevity_code "
        "(62 rows in 24 groups that the model was not shown)",
    )


def test_a_function_that_falls_where_ratings_rise_is_wrong_about_its_axis():
    generated, _ = made(by_axis(Brevity=PADDED.replace("-output", "output")), {"code": 2})
    assert [metric.name for metric in generated.metrics] == ["plain_words_code"]
    lower = replace(TASK, scale=replace(TASK.scale, higher_is_better=False))
    with serve(by_axis(Brevity=PADDED.replace("-output", "output"))) as server, dspy.context(lm=server.lm()):
        generated = generate_judges(ROWS, lower, {"code": 2})
    assert [metric.name for metric in generated.metrics] == ["brevity_code"]


def test_a_function_that_knows_the_rows_that_were_shown_is_no_candidate():
    """It answers right on the five best and the five worst, and by the text's letters on all others."""
    best = contrast(ROWS, TASK, each=5)
    shown = {ROWS[place].output: ROWS[place].rating for place in best.places}
    learned = f"def score(output, input, references):\n    return {shown!r}.get(output, 3 + len(output) % 2)"
    rated = RatedRows.of(ROWS, "rating")
    column = tried(learned, ROWS).values
    assert beyond_chance([column, column], rated.ratings, rated.groups).all()
    generated, _ = made(by_axis(Brevity=learned), {"code": 2})
    assert [metric.name for metric in generated.metrics] == ["plain_words_code"]
    assert "brevity_code" in generated.notes[0]


def test_rows_too_few_for_any_function_are_said_to_be():
    few = ROWS[:12]
    generated, _ = made(by_axis(), {"code": 2}, few)
    assert generated.metrics == ()
    assert generated.notes == (
        "no candidates, since they rise with training ratings no more than chance does: brevity_code, plain_words_code "
        "(2 rows in 2 groups that the model was not shown; not even a perfect one among 2 could: rate more groups of "
        "rows, or ask for fewer functions)",
    )


def test_faults_are_survived_and_counted():
    generated, server = made(by_axis(Brevity=BROKEN), {"code": 4}, server_errors=0.2, malformed=0.2)
    assert len(generated.metrics) == 3
    assert server.requests == generated.usage.requests > 7


def test_without_the_extra_the_family_is_refused_before_anything_is_sent(monkeypatch):
    monkeypatch.setattr(generation, "find_spec", lambda name: None)
    table = rated_table()
    with serve(scripted) as server:
        asked = {"lm": server.lm(), "progress": False, "bank": "generated"}
        optimizer = AutoMetrics(TASK, generators={"criterion": 1, "code": 2}, **asked)
        with pytest.raises(NeedsError, match=r"generators=\{'code': 2\}: .*pip install 'metricsmith\[code\]'"):
            optimizer.compile(ROWS)
        with pytest.raises(NeedsError, match="pip install"):
            prepare(table, optimizer).plan()
        with pytest.raises(NeedsError, match="pip install"), dspy.context(lm=server.lm()):
            generate_judges(ROWS, TASK, {"code": 1})
        assert server.requests == 0
        AutoMetrics(TASK, generators={"criterion": 1, "code": 0}, **asked).compile(ROWS)
        # Without a model nothing is generated, so that nothing is lacking either.
    AutoMetrics(TASK, generators={"code": 2}, progress=False).compile(ROWS)


def test_a_function_whose_name_is_taken_is_numbered():
    rows = [row.copy(columns={"plain_words_code": row.columns["good"]}) for row in ROWS]
    with serve(by_axis()) as server:
        options = {"lm": server.lm(), "bank": "generated", "progress": False, "columns": ["plain_words_code"]}
        metric = AutoMetrics(TASK, generators={"criterion": 1, "code": 2}, full=True, **options).compile(rows)
    kinds = {part.name: part.card.kind for part in metric.components}
    assert kinds["plain_words_code"] == "column"
    assert kinds["plain_words_code_2"] == kinds["complete_facts_code"] == "code"


def test_functions_are_no_judges():
    with serve(by_axis()) as server:
        options = {"lm": server.lm(), "bank": "generated", "progress": False}
        metric = AutoMetrics(TASK, generators={"code": 1}, **options).compile(ROWS)
    assert [part.name for part in metric.components] == ["brevity_code"]
    assert metric.combination.weights[0] > 0
    assert not any("judges" in line for line in metric.record.warnings)


def test_if_no_function_goes_with_the_ratings_there_is_no_candidate():
    with serve(by_axis(Brevity=BROKEN)) as server:
        options = {"lm": server.lm(), "bank": "generated", "progress": False}
        with pytest.raises(ModelFailure, match="no candidate metric is left; no function for 'Brevity'"):
            AutoMetrics(TASK, generators={"code": 1}, **options).compile(ROWS)


# Requests.


def estimated(counts, *, most=False, panel=False):
    options = Options(bank="generated", generators=counts, panel=panel, lm=dspy.LM("unknown/model"))
    return estimate_passes([PassRows(RatedRows.of(ROWS, "rating"))], TASK, options, most=most)


def test_the_estimate_counts_one_request_a_function_and_the_bound_two_repairs():
    judges = estimated({"criterion": 2})
    assert judges.requests == 1 + 2 * 71  # two of the 72 rows are equal
    functions = {"criterion": 2, "code": 3}
    assert estimated(functions).requests == judges.requests + 3
    assert estimated(functions, most=True).requests == judges.requests + 3 * (1 + GENERATORS["code"].repairs_each)
    assert estimated({"code": 3}).requests == 1 + 3
    assert estimated({"code": 3}, most=True).requests == 1 + 9
    assert estimated(functions, panel=True).requests == 1 + 3 + 71
    # Each prompt shows three rows of either end.
    each = (estimated(functions).prompt_tokens - judges.prompt_tokens) / 3
    assert each > 6 * 30
    assert each == pytest.approx(
        (estimated({"code": 6}).prompt_tokens - estimated({"code": 3}).prompt_tokens) / 3, abs=1
    )


def test_a_dry_run_says_what_a_run_sends():
    rows = [
        {"id": row.id, "group": row.group, "input": row.input, "output": row.output, "rating": row.rating}
        for row in planted_rows(sources=16)
    ]
    table = read_table(pd.DataFrame(rows), target="rating", task=TASK.description, scale="1:5")

    def answer(prompt):
        return own_axes(prompt) if "## axes ##" in prompt.rsplit("Respond", 1)[-1] else by_axis(Words=BROKEN)(prompt)

    with serve(answer) as server:
        optimizer = AutoMetrics(
            generators={"criterion": 2, "code": 3}, bank="generated", lm=server.lm(), progress=False,
        )  # fmt: skip
        run = prepare(table, optimizer, Division(fraction=0.25))
        plan = run.plan()
        assert server.requests == 0
        record = run.induced().record
    assert "2 generated judges, 3 of the family 'code', no bank metrics" in plan
    assert f"requests: {run.estimated.requests}, " in plan
    assert run.estimated.requests == server.requests == record.usage["requests"]
    assert f"at most {run.estimated.requests + 6} requests" in plan
