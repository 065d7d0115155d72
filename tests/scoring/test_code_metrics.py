"""A code metric in the scoring engine: batches, a store, streams, and DSPy around it."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from metricsmith.bank.code import CodeMetric
from metricsmith.errors import NeedsError
from metricsmith.metric import make_row
from metricsmith.records import Output, Status
from metricsmith.sandbox import monty
from metricsmith.sandbox.contract import MissingEngine
from metricsmith.scoring import score
from metricsmith.scoring.engine import estimate
from metricsmith.scoring.streaming import ScoringStream
from saved import induced

SOURCE = """
seen = []

def score(output, told=[]):
    seen.append(output)
    told.append(output)
    if output == "odd":
        raise ValueError("no number for odd")
    return len(output) + 100 * (len(seen) - 1) + 1000 * (len(told) - 1)
"""
METRIC = CodeMetric(SOURCE, name="length")
ROWS = [make_row(output, id=f"r{n}") for n, output in enumerate(("a", "odd", "aaa", "a", "aaaaaa"))]
RAW = [1.0, np.nan, 3.0, 1.0, 6.0]


@pytest.fixture
def sent(monkeypatch):
    """The batches that the sandbox gets."""
    sandbox, batches = monty.sandbox(), []

    def run(source, function, rows, limits):
        batches.append([row["output"] for row in rows])
        return type(sandbox).run(sandbox, source, function, rows, limits)

    monkeypatch.setattr(sandbox, "run", run)
    return batches


def test_rows_go_to_the_sandbox_together_and_no_row_knows_of_another(sent):
    table = score([METRIC], ROWS, progress=False)
    np.testing.assert_array_equal(table.run()[:, 0], RAW)
    assert [one.status for one in table.column(0)] == [Status.OK, Status.UNPARSABLE, *[Status.OK] * 3]
    assert sent == [["a", "odd", "aaa", "a", "aaaaaa"]]
    backwards = score([METRIC], ROWS[::-1], progress=False)
    np.testing.assert_array_equal(backwards.run()[::-1, 0], RAW)
    assert [METRIC.judge_batch([row])[0].raw for row in ROWS if row.output != "odd"] == [1.0, 3.0, 1.0, 6.0]
    assert estimate([METRIC], ROWS).requests == 0


def test_a_store_keeps_numbers_and_asks_failures_again(sent, tmp_path):
    for _ in range(2):
        table = score([METRIC], ROWS, store=tmp_path / "store.db", progress=False)
        np.testing.assert_array_equal(table.run()[:, 0], RAW)
    assert sent == [["a", "odd", "aaa", "a", "aaaaaa"], ["odd"]]
    score([CodeMetric(f"{SOURCE}# changed", name="length")], ROWS, store=tmp_path / "store.db", progress=False)
    assert sent[2] == sent[0]


def test_a_stream_gives_the_same_numbers_piece_by_piece():
    stream = ScoringStream([METRIC], lambda: iter(ROWS))
    pieces = [[(row, {}) for row in ROWS[:2]], [(row, {}) for row in ROWS[2:]]]
    found = [one.prediction.raw for piece in stream.scored(pieces) for one in piece]
    np.testing.assert_array_equal(np.array(found, dtype=float), RAW)


def test_half_of_a_metric_without_a_number_is_left_out_and_named():
    metric = induced([METRIC, CodeMetric("def score(output): return 1", name="one")])
    (whole,) = metric.explain([ROWS[0]])
    assert [part.judgement.raw for part in whole.parts] == [1.0, 1.0]
    (half,) = metric.explain([ROWS[1]])
    assert half.missing == 0.5
    assert "length: no value (ValueError: no number for odd)" in half.prediction.feedback


def test_an_evaluation_of_dspy_in_threads_copies_the_metric_and_lists_failures():
    rows = [dspy.Example(question=row.output).with_inputs("question") for row in ROWS]
    metric = CodeMetric(SOURCE, name="length", output=Output("", 0, 10)).as_metric(output="answer")

    def program(question):
        return dspy.Prediction(answer=question)

    evaluate = dspy.Evaluate(devset=rows, metric=metric, num_threads=3, display_progress=False, provide_traceback=False)
    assert evaluate(program).score == 22.0  # .1, none, .3, .1, .6: DSPy books the second as nought
    assert [failed.status for failed in metric.failures] == ["unparsable"]
    assert metric.check(program, rows, num_threads=2).failures


def test_a_missing_engine_ends_the_run_before_any_row(monkeypatch):
    def missing():
        raise MissingEngine("not installed")

    monkeypatch.setattr(monty, "sandbox", missing)
    for work in (lambda: score([METRIC], ROWS, progress=False), lambda: ScoringStream([METRIC], lambda: iter(ROWS))):
        with pytest.raises(NeedsError, match="pip install"):
            work()
