"""Data in any form become the same rows, read as an induced metric's training rows were."""

from __future__ import annotations

import asyncio

import dspy
import pandas as pd
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.datasets.given import merged_reading
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.scoring import ascore, estimate, score

TEXTS = [("the cat sat", "a cat sat"), ("the dog ran", "the dog ran"), ("no", "yes")]
ROWS = [make_row(output, references=[gold]) for output, gold in TEXTS]
DICTS = [{"answer": output, "gold": gold} for output, gold in TEXTS]
NAMES = {"output": "answer", "reference": "gold"}
METRIC = default_bank().get("gleu")
EXPECTED = score([METRIC], ROWS).run()[:, 0].tolist()


@pytest.fixture(params=["dicts", "lists", "frame", "file", "examples", "table"])
def data(request, tmp_path):
    frame = pd.DataFrame(DICTS)
    frame.to_csv(tmp_path / "new.csv", index=False)
    return {
        "dicts": DICTS,
        "lists": frame.to_dict("list"),
        "frame": frame,
        "file": tmp_path / "new.csv",
        "examples": [dspy.Example(**one) for one in DICTS],
        "table": read_table(frame, require_target=False, **NAMES),
    }[request.param], {} if request.param == "table" else NAMES


def test_every_form_gives_the_numbers_of_the_rows(data):
    given, names = data
    assert score(METRIC, given, **names).run()[:, 0].tolist() == EXPECTED
    assert asyncio.run(ascore("gleu", given, **names)).run()[:, 0].tolist() == EXPECTED
    assert estimate(["gleu"], given, **names).requests == 0


def test_columns_are_guessed_and_the_guess_is_told(caplog):
    assert score("gleu", DICTS).run()[:, 0].tolist() == EXPECTED
    assert "output column guessed: 'answer'" in caplog.text
    assert {record.name for record in caplog.records} == {"metricsmith.notes"}


def test_rows_are_taken_as_they_are_and_nothing_is_told(caplog):
    table = score(METRIC, iter(ROWS))
    assert all(given is judged for given, judged in zip(ROWS, table.rows, strict=True))
    assert caplog.text == ""


def test_no_rows_are_an_empty_table():
    assert len(score("gleu", []).rows) == 0


class Read:
    """A metric that was induced from columns of these names."""

    name, reads = "read", ()

    def __init__(self, **reading):
        self.reading = reading


def test_the_columns_of_training_are_used_unless_others_are_named():
    metrics = [Read(output="reply", inputs=["q"], metric_columns=["a"]), METRIC, Read(metric_columns=["b"])]
    assert merged_reading(metrics, {}) == {"output": "reply", "inputs": ["q"], "metric_columns": ["a", "b"]}
    assert merged_reading(metrics, {"output": "text"})["output"] == "text"
    with pytest.raises(OptionError, match=r"output is 'reply' for one and 'text' for another; .*with output=\.\.\."):
        merged_reading([*metrics, Read(output="text")], {})
    assert merged_reading([*metrics, Read(output="text")], {"output": "x"})["output"] == "x"


@pytest.mark.parametrize(
    ("given", "reading", "error", "says"),
    [
        (ROWS[0], {}, OptionError, r"write \[row\]"),
        (ROWS[0], NAMES, OptionError, r"write \[row\]"),
        ([*ROWS, {"answer": "x"}], {}, OptionError, "{'answer': 'x'} is no row"),
        ("nowhere.csv", {}, DataError, "nowhere.csv: no such file"),
        (iter(DICTS), {}, DataError, r"a list_iterator cannot be read as a table; .*: write list\(\.\.\.\)"),
        (pd.DataFrame(DICTS).to_numpy(), {}, DataError, "a ndarray cannot be read as a table"),
        ({"answer": "one"}, {}, DataError, r"write \[row\]"),
        (7, {}, DataError, "a int cannot be read as a table"),
        (DICTS, {"output": "anser"}, DataError, r"no column 'anser' \(did you mean 'answer'\?\)"),
        (DICTS, {"concurency": 3}, OptionError, r"score has no option concurency=3 \(did you mean 'concurrency'\?\)"),
        (DICTS, {"ouput": "answer"}, OptionError, r"\(did you mean 'output'\?\)"),
        (read_table(DICTS, require_target=False), NAMES, OptionError, "output, reference cannot be given beside a Tab"),
    ],
)
def test_wrong_data_are_told_apart(given, reading, error, says):
    with pytest.raises(error, match=says):
        score("gleu", given, **reading)


def test_one_unknown_metric_is_told_with_the_nearest():
    with pytest.raises(OptionError, match=r"no metric 'gleeu' in the bank \(did you mean 'gleu'\?\)"):
        score("gleeu", ROWS)
