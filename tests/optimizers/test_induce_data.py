"""Data in any form, with their columns and notes, as `induce` takes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.scoring import score
from planted import planted_rows

FRAME = pd.DataFrame(
    [
        {
            "fraga": row["input"],
            "svar": row["output"],
            "stars": row["rating"],
            "amne": row["group"],
            "facit": row["references"],
        }
        for row in planted_rows()
    ]
)
READING = {
    "target": "stars", "output": "svar", "inputs": "fraga", "reference": "facit", "group": "amne", "scale": "1:5",
}  # fmt: skip


def optimizer(**options):
    return AutoMetrics(metrics=MetricBank((family("levenshtein"), family("rouge"), family("bleu"))), **options)


def test_a_frame_is_induced_from_as_its_table_is(caplog):
    done, read = induce(FRAME, optimizer(), **READING), induce(read_table(FRAME, **READING), optimizer())
    assert done.record.signature == read.record.signature
    assert done.record.test == read.record.test
    assert "no id column" in caplog.text  # what read_table noted


def test_the_metric_finds_its_columns_again_in_new_data():
    done = induce(FRAME, optimizer(), **READING)
    new = FRAME.drop(columns="stars").to_dict("records")[:5]
    given = read_table(FRAME, **READING).rows[:5]
    np.testing.assert_array_equal(score(done.metric, new).run(), score(done.metric, given).run())
    renamed = [{"text": row.pop("svar"), **row} for row in new]
    with pytest.raises(DataError, match="no column 'svar'"):
        score(done.metric, renamed)
    assert np.isfinite(score(done.metric, renamed, output="text").run()).all()


def test_test_rows_are_read_as_the_others_are():
    first = FRAME.amne.isin(sorted(set(FRAME.amne))[::2])
    parts = FRAME[first], FRAME[~first]
    done = induce(parts[0], optimizer(), test=parts[1].to_dict("records"), **READING)
    tables = [read_table(part, **READING) for part in parts]
    assert done.record.test == induce(tables[0], optimizer(), test=tables[1]).record.test


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: induce(pd.DataFrame()), DataError, "the data frame is empty"),
        (lambda: induce([]), DataError, "the list is empty: .* check how it was made"),
        (lambda: induce(FRAME, "stars"), OptionError, "optimizer='stars' is no AutoMetrics: .* target='rating'"),
        (lambda: induce(FRAME, target="star"), DataError, r"no column 'star' \(did you mean 'stars'\?\)"),
        (lambda: induce(FRAME, tarjet="stars"), OptionError, r"no option tarjet='stars' \(did you mean 'target'\?\)"),
        (lambda: induce(FRAME, optimiser=1), OptionError, r"\(did you mean 'optimizer'\?\)"),
        (
            lambda: induce(read_table(FRAME, **READING), target="rating"),
            OptionError,
            "target cannot be given beside a Table",
        ),
        (lambda: induce("nowhere.csv", target="stars"), DataError, "no such file.*check the path"),
        (lambda: induce(FRAME.to_numpy(), target="stars"), DataError, r"a ndarray cannot be read .* pandas.DataFrame"),
        (lambda: induce(iter([{"svar": "a"}]), target="stars"), DataError, r"write list\(\.\.\.\)"),
    ],
)
def test_wrong_data_are_told_apart(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_notes_of_the_table_reach_the_record():
    rated = read_table(FRAME, **READING)
    assert rated.notes
    assert induce(rated, optimizer()).record.notes[: len(rated.notes)] == rated.notes


def test_prior_columns_of_the_table_are_declared():
    frame = read_table(
        pd.DataFrame(
            {
                "output": [row.output for row in planted_rows()],
                "rating": [row["rating"] for row in planted_rows()],
                "group": [row.group for row in planted_rows()],
                "good": [row["columns"]["good"] for row in planted_rows()],
                "junk": [row["columns"]["junk"] for row in planted_rows()],
            }
        ),
        target="rating",
        metric_columns=["good", "junk"],
        prior_columns=["good"],
    )
    record = induce(frame, optimizer(bank="none")).record
    assert "plain mean of declared judges" in record.baselines
    assert "1 columns declared" in record.combiner


def test_new_rows_are_read_as_the_training_rows_were():
    rows = planted_rows()
    frame = pd.DataFrame(
        {
            "answer": [row.output for row in rows],
            "question": [row.input for row in rows],
            "gold": [row.references[0] for row in rows],
            "stars": [row["rating"] for row in rows],
            "score [1-5]": [row["columns"]["good"] for row in rows],
        }
    )
    named = {"output": "answer", "inputs": "question", "reference": "gold"}
    first = read_table(frame, target="stars", metric_columns=["score [[]1-5]"], **named)
    metric = induce(first, optimizer(bank="existing", n=6)).metric
    assert {component.card.kind for component in metric.components} == {"bank", "column"}
    again = read_table(frame, require_target=False, **metric.reading)
    assert [judgement.raw for judgement in metric.judge_batch(again.rows)] == [
        judgement.raw for judgement in metric.judge_batch(first.rows)
    ]
