"""Functions are handed to a loaded metric; nothing of them is in the file."""

from __future__ import annotations

import json
import re

import pytest

from metricsmith.errors import NeedsError, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Output
from metricsmith.scoring import CallableMetric
from saved import ROW, criterion, induced, words

ROWS = [make_row("a b c"), make_row("a")]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "metric.json"
    induced([CallableMetric(words, hidden=["rating"]), criterion()]).save(path)
    return path


def test_a_function_is_handed_over_by_its_name(saved):
    metric = load(saved, functions={"words": words})
    before = induced([CallableMetric(words, hidden=["rating"]), criterion()])
    assert metric.to_state() == before.to_state()
    assert metric.fingerprint() == before.fingerprint()  # the same in every process: the signature line has it
    assert [one.raw for one in metric.components[0].judge_batch(ROWS)] == [3.0, 1.0]
    assert "import" not in saved.read_text("utf-8")


def test_without_it_the_error_has_the_line_of_python(saved):
    line = f"metric = metricsmith.load({str(saved)!r}, functions={{'words': words}})"
    with pytest.raises(NeedsError, match=re.escape(line)):
        load(saved)


@pytest.mark.parametrize(
    ("functions", "error", "message"),
    [
        ({"word": words}, NeedsError, "rests on the Python function words"),
        ({"words": lambda example: 1}, OptionError, "cannot be called as (example, pred)"),
        ([words], OptionError, "must be a mapping, such as functions={'name': function}"),
    ],
)
def test_functions_that_do_not_fit_the_file_are_refused(saved, functions, error, message):
    with pytest.raises(error, match=re.escape(message)):
        load(saved, functions=functions)


def test_functions_that_are_no_components_do_no_harm(saved, tmp_path):
    assert load(saved, functions={"words": words, "other": words}).components[0].function is words
    criterion().save(tmp_path / "judge.json")
    assert load(tmp_path / "judge.json", functions={"words": words}).to_state() == criterion().to_state()


def test_a_function_is_found_wherever_it_stands_in_a_file(tmp_path):
    Repeated(CallableMetric(words, output=Output("words", 0, 9)), 2, "mean").save(tmp_path / "metric.json")
    with pytest.raises(NeedsError, match="functions="):
        load(tmp_path / "metric.json")
    again = load(tmp_path / "metric.json", functions={"words": words})
    assert (again.judge.output.high, again.judge_batch(ROWS)[0].raw) == (9, 3.0)
    with pytest.raises(NeedsError, match="the function 'words' alone"):
        from_state(again.to_state())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": 1.0, "high": 1.0}, "a range from 1 to 1 is not allowed"),
        ({"low": None, "half": None}, "a range without an end needs 'half' above 0"),
        ({"module": "os"}, "not allowed; known are low, high, half, higher_is_better"),
    ],
)
def test_a_range_that_no_function_has_is_refused(tmp_path, changes, message):
    state = CallableMetric(words, output=Output("words", 0, 9)).to_state()
    write_state({**state, "output": state["output"] | changes}, tmp_path / "metric.json")
    with pytest.raises(StateError, match=re.escape(message)):
        load(tmp_path / "metric.json", functions={"words": words})


def test_what_the_file_does_not_hold_is_said_when_it_is_saved_and_lacking_columns_when_it_scores(tmp_path, caplog):
    from metricsmith.bank.column import ColumnMetric

    metric = induced([CallableMetric(words), ColumnMetric("length")])
    metric.save(tmp_path / "metric.json")
    assert "the metric reads length from its table: new rows must bring that too" in caplog.text
    assert "calls the Python functions words, which no file holds" in caplog.text
    caplog.clear()
    metric.judge_batch([ROW])
    assert "length" in ROW["columns"]
    assert not caplog.records
    metric.judge_batch(ROWS)
    assert [record.getMessage() for record in caplog.records] == [
        "the metric reads the column length, which none of the 2 rows has"
    ]


def test_a_file_keeps_of_a_function_its_name_and_what_follows_from_it(saved):
    component = json.loads(saved.read_text("utf-8"))["components"][0]
    assert component.keys() == {"kind", "name", "hidden", "output"}
