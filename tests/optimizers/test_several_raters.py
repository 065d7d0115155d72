"""Ratings of two people in rows of their own, from the table to the report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from metricsmith.datasets.table import read_table
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.optimizers.splitting import configure
from metricsmith.studies.comparison.run import compare

PROMPTS, SYSTEMS = 20, 3


def frame():
    """Two people on three outputs for each of twenty prompts; an id by output, repeated by rater."""
    random = np.random.default_rng(0)
    rows = []
    for prompt in range(PROMPTS):
        for system in range(SYSTEMS):
            quality = random.normal()
            rows += [
                {
                    "id": f"{prompt}-{system}", "prompt": f"Question {prompt}?", "system": f"s{system}",
                    "answer": f"answer {prompt} {system}", "rater": rater, "good": quality + random.normal() / 2,
                    "rating": float(np.clip(np.round(3 + quality + 0.7 * random.normal()), 1, 5)),
                }
                for rater in ("ann", "bob")
            ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def table():
    return read_table(frame(), target="rating", metric_columns=["good"])


@pytest.fixture(scope="module")
def done(table):
    return induce(table, AutoMetrics(bank="none"), split="holdout")


def test_no_question_of_the_test_rows_stands_in_training(done):
    sides = {split: {row.input for row in done.record.data if row.split == split} for split in ("train", "test")}
    assert len(sides["test"]) > 3
    assert sides["train"] & sides["test"] == set()


def test_rows_are_outputs_not_ratings(done, table):
    assert done.record.rows["rated"] == len(done.record.data) == len(table) == PROMPTS * SYSTEMS
    assert {row.id for row in done.record.data} == {f"{p}-{s}" for p in range(PROMPTS) for s in range(SYSTEMS)}


def test_the_rule_on_few_rows_counts_outputs(table):
    # 120 ratings, but 60 outputs: below 80 only generated judges are made, unless told otherwise.
    options, _ = configure(table, AutoMetrics())
    rated = table.subset(table.rated())
    assert len(rated) == 60 < options.generated_only_below < len(frame())


def test_the_record_holds_how_people_agree_on_all_rated_outputs(done, table):
    found = done.record.raters
    assert found == table.rater_ceiling()
    assert (found.twice, found.ratings, found.groups, found.withheld) == (60, 120, PROMPTS, "")
    assert done.metric.record is done.record


def test_the_signature_says_what_was_averaged(done):
    assert "scale 1 to 5, mean of 120 ratings by 2 raters | " in done.record.signature


def test_with_a_test_table_its_own_raters_count(table):
    other = frame()
    other["prompt"] = "Other: " + other["prompt"]
    other["answer"] = "other " + other["answer"]
    other["id"] = "other " + other["id"]
    one = read_table(other[other["rater"] == "ann"], target="rating", metric_columns=["good"], rater="rater")
    record = induce(table, AutoMetrics(bank="none"), test=one).record
    assert record.raters.withheld == "single"


def test_a_comparison_shows_it_too(table):
    record = compare(table, AutoMetrics(bank="none"), methods=["best_existing"], seeds=1)
    assert record.raters == table.rater_ceiling()
    assert json.loads(json.dumps(record.as_dict()))["raters"]["twice"] == 60
    assert "mean of 120 ratings by 2 raters" in record.signature
