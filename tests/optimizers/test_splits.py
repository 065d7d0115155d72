from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.datasets.table import read_table
from metricsmith.metric import make_row
from metricsmith.optimizers import induce as module
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.optimizers.splits import RatedRows, in_given_order, shared_source
from metricsmith.report.induction.record import RowRecord
from planted import TASK, planted_rows

BANK = MetricBank((family("levenshtein"),))


def rated(*rows):
    return RatedRows.of([make_row(output, rating=3.0, **labels) for output, labels in rows], "rating")


def record_row(name, split):
    return RowRecord(name, "", split, None, None)


def test_rows_of_a_record_stand_as_they_were_given_side_by_side():
    # The training rows were given at places 5, 0 and 3 of a file, the test rows at 4 and 1.
    names = {"train": ["e", "a", "c"], "test": ["d", "b"]}
    data = [record_row(name, split) for split, own in names.items() for name in own]
    back = in_given_order(data, {"train": np.array([5, 0, 3]), "test": np.array([4, 1])})
    assert [row.id for row in back] == ["a", "c", "e", "b", "d"]


def test_a_name_that_only_counts_the_row_counts_it_where_it_was_given():
    data = [record_row("train 0", "train"), record_row("train 1", "train"), record_row("mine", "train")]
    back = in_given_order(data, {"train": np.array([2, 0, 1])})
    # Place 0 was given second in the order of contents; it is "train 0" now.
    assert [row.id for row in back] == ["train 0", "mine", "train 2"]


def test_a_group_that_was_joined_is_known_by_its_own_name():
    train = rated(("x", {"group": "a", "own_group": "b"}))
    assert shared_source(train, rated(("y", {"group": "b"}))) == "group 'b'"
    assert shared_source(train, rated(("y", {"group": "a"}))) == ""


def test_an_instruction_may_stand_on_both_sides_and_another_input_may_not():
    train = rated(*((f"x{n}", {"input": "Sum it up."}) for n in range(4)), ("z", {"input": "Why?"}))
    assert shared_source(train, rated(("y", {"input": "Sum it up."}))) == ""
    assert shared_source(train, rated(("y", {"input": "Why?"}))) == "input 'Why?'"


def frame():
    """36 rows of twelve sources without ids, as a file may have them, with ties in ratings and scores."""
    rows = planted_rows(sources=12)
    return pd.DataFrame({
        "input": [row.input for row in rows],
        "output": [row.output for row in rows],
        "reference": [row.references[0] for row in rows],
        "rating": [round(row["rating"]) for row in rows],
        "good": [round(row["columns"]["good"]) for row in rows],
        "twin": [round(row["columns"]["good"]) for row in rows],
        "junk": [row["columns"]["junk"] for row in rows],
    })  # fmt: skip


def outcome(table):
    """The sides, the components, their weights and the figure."""
    done = induce(table, AutoMetrics(metrics=BANK), split="holdout")
    sides = {(row.output, row.input): row.split for row in done.record.data}
    weights = {component.name: component.weight for component in done.record.components}
    shares = {component.name: component.selected_share for component in done.record.components}
    return sides, weights, shares, done.record.test


def test_the_same_rows_in_eight_orders_give_the_same_split_components_weights_and_figures():
    own = frame()
    options = {"target": "rating", "metric_columns": ["good", "twin", "junk"]}
    sides, weights, shares, test = outcome(read_table(own, **options))
    assert set(sides.values()) == {"train", "test"}
    for seed in range(7):
        shuffled = own.iloc[np.random.default_rng(seed).permutation(len(own))]
        then = outcome(read_table(shuffled, **options))
        assert then[0] == sides
        assert list(then[1]) == list(weights)
        assert then[1] == pytest.approx(weights, abs=1e-9)
        assert then[2] == shares
        assert then[3] == test


def test_rows_without_text_keep_their_sides_too_in_any_order():
    own = frame().drop(columns=["input", "output", "reference"])
    options = {"target": "rating", "metric_columns": ["good", "twin", "junk"]}

    def found(table):
        record = induce(table, AutoMetrics(bank="none")).record
        sides = sorted((row.split, row.rating, row.prediction) for row in record.data)
        return sides, [(component.name, component.weight) for component in record.components]

    first = found(read_table(own, **options))
    assert found(read_table(own.iloc[::-1], **options)) == first


def test_compile_gives_the_same_metric_for_the_same_rows_in_any_order():
    rows = [row.without("id") for row in planted_rows(sources=8)]
    columns = {"bank": "none", "columns": ["good", "junk"]}
    first, then = (AutoMetrics(TASK, **columns).compile(own) for own in (rows, rows[::-1]))
    assert first.fingerprint() == then.fingerprint()
    # The report names rows as they were given.
    assert [row.output for row in first.record.data] == [row.output for row in rows]
    assert [row.id for row in first.record.data] == [f"train {place}" for place in range(len(rows))]
    assert not math.isnan(first.record.train.kendall_tau_b)


def test_judges_are_made_from_the_same_rows_in_the_same_order_whatever_that_of_the_file(monkeypatch):
    given = []
    real = module.generate_candidates
    monkeypatch.setattr(
        module, "generate_candidates", lambda rows, *rest, **named: given.append(rows) or real(rows, *rest, **named)
    )
    own = frame()
    for table in (own, own.iloc[::-1]):
        induce(read_table(table, target="rating", metric_columns="good"), AutoMetrics(bank="none"), split="holdout")
    assert [row.output for row in given[0]] == [row.output for row in given[1]]
    assert [row.output for row in given[0]] != [row["output"] for _, row in own.iterrows()][: len(given[0])]
