"""The baseline that the paper calls "Finetuned LLM": what it learns from, its settings, and what it says it lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import finetuning
from finetuning import lettered_rows
from metricsmith.bank.models import lora
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.datasets.table import read_table
from metricsmith.errors import OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.records import Scale, Task
from metricsmith.saving import row_hash
from metricsmith.studies.comparison.methods import DEFAULT_METHODS, METHODS
from metricsmith.studies.comparison.run import compare, compare_plan
from rated import rated_table

OTHER = Task("Another task.", "stars", Scale(1, 5))  # the comparison's own is put in its place
BOTH = ("finetuned", "finetuned_paper")


@pytest.fixture
def table():
    columns = ("output", "group", "rating")
    frame = pd.DataFrame([{name: row[name] for name in columns} for row in lettered_rows(80)])
    return read_table(frame, target="rating", scale="-10:10", task="Rewrite notices.", min_rated=2)


@pytest.fixture
def trained(monkeypatch):
    """The metrics that were trained, and the rows of each; LoRA's settings are seen, and ridge trains in its place."""
    finetuning.without_network(monkeypatch)
    seen, compiled = [], FinetunedMetric.compile

    def compile(self, trainset, valset=None):
        seen.append((self, list(trainset), valset))
        return compiled(replace(self, method="ridge", settings={}), trainset, valset)

    monkeypatch.setattr(FinetunedMetric, "compile", compile)
    return seen


def compared(table, methods, **options):
    optimizer = AutoMetrics(bank="none", columns=[], progress=False, seed=3)
    given = {"finetuned": FinetunedMetric(OTHER, method="ridge", encoder="minilm"), "seeds": 2, **options}
    return compare(table, optimizer, methods=methods, **given)


def test_it_learns_from_training_and_validation_rows_and_predicts_the_test_rows(table, trained):
    record = compared(table, ["finetuned"])
    line = record.method("finetuned")
    assert (line.label, line.model, line.usage.requests) == ("Finetuned LLM", False, 0)
    assert line.tau > 0.6
    (first, rows, held), (second, *_) = trained
    assert len(rows) == record.rows["train"] + record.rows["validation"]
    assert held is None
    assert (first.seed, second.seed) == (3, 4)
    assert first.task.target == "rating"
    assert line.remarks[0].startswith("Predicts rating (-10 to 10) by the method ridge, trained on 56 rated rows")


def test_no_test_rating_reaches_it(table, trained):
    compared(table, ["finetuned"], seeds=1)
    learned = {row_hash(row) for row in trained[0][1]}
    turned = [row if row_hash(row) in learned else row.copy(rating=-row["rating"]) for row in table.rows]
    changed = replace(table, rows=turned, ratings=np.array([row["rating"] for row in turned]))
    compared(changed, ["finetuned"], seeds=1)
    assert {row_hash(row) for row in trained[1][1]} == learned
    assert [row["rating"] for row in trained[0][1]] == [row["rating"] for row in trained[1][1]]


def test_the_papers_settings_are_an_option_that_says_how_little_they_train(table, trained):
    line = compared(table, ["finetuned_paper"], seeds=1).method("finetuned_paper")
    metric = trained[0][0]
    assert (metric.method, dict(metric.settings)) == ("lora", {"rate": 5e-5, "epochs": 3})
    assert {name: lora.SETTINGS[name].default for name in ("rank", "batch", "warm_up")} == {
        "rank": 16, "batch": 16, "warm_up": 20,
    }  # fmt: skip
    # 56 rows are 4 batches of 16, three times
    assert line.remarks[0].endswith("At most 12 steps, and the rate of learning rises over the first 20.")


def test_without_an_encoder_it_is_listed_and_not_run():
    assert not set(BOTH) & set(DEFAULT_METHODS)
    record = compare(rated_table(), AutoMetrics(progress=False), methods=["best_existing", *BOTH], seeds=1)
    assert [line.key for line in record.skipped] == list(BOTH)
    assert all("needs an encoder: name one with --finetune NAME" in line.skipped for line in record.skipped)
    assert not any(line.model for line in record.skipped)


def test_an_encoder_that_is_not_here_or_no_text_is_said(monkeypatch, table):
    given = {"finetuned": FinetunedMetric(OTHER, encoder="minilm", local="nowhere"), "methods": BOTH, "seeds": 1}
    said = compare_plan(table, AutoMetrics(), **given)
    assert said.count("not run: it cannot be trained here: ") == said.count("nowhere: no such file") == 2
    finetuning.without_network(monkeypatch)
    scores = read_table(
        pd.DataFrame({"good": np.arange(30.0), "rating": np.arange(30) % 5 + 1.0, "group": np.arange(30) // 2}),
        target="rating", metric_columns=["good"], group="group",
    )  # fmt: skip
    assert compare_plan(scores, AutoMetrics(), **given).count("needs output text, which the rows do not have") == 2


def test_anything_else_in_its_place_is_refused(table):
    with pytest.raises(OptionError, match="must be a FinetunedMetric"):
        compare(table, AutoMetrics(), methods=["finetuned"], finetuned="minilm")


def test_the_methods_are_named_in_one_table():
    assert [METHODS[name].label for name in BOTH] == ["Finetuned LLM", "Finetuned LLM (paper)"]
