"""The table: arrays, whole judgements on demand, and a status for everything that was requested."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import OptionError, StoreError
from metricsmith.metric import make_row
from metricsmith.records import Status, Usage
from metricsmith.scoring import score
from metricsmith.store import Store
from stubs import Scripted

ROWS = [make_row(f"text {i}", id=str(i), columns={"given": i / 2} if i else {}) for i in range(6)]
STATUSES = list(Status)


def odd_fails(row, run):
    return Status.REFUSED if int(row.id) % 2 else float(row.id) + 10 * run


@pytest.fixture(params=["memory", "store"])
def table(request, tmp_path):
    """Two metrics, six rows, two repetitions: three refusals in each repetition, one row without a column."""
    store = tmp_path / "s.db" if request.param == "store" else None
    return score(
        [ColumnMetric("given"), Scripted(odd_fails)], ROWS, runs=2, store=store, max_failure_rate=1, progress=False
    )


def test_numbers_have_rows_metrics_and_repetitions(table):
    assert table.values.shape == (6, 2, 2)
    np.testing.assert_array_equal(table.values[:, 0, 1], [np.nan, 0.5, 1, 1.5, 2, 2.5])
    np.testing.assert_array_equal(table.values[:, 1, 0], [0, np.nan, 2, np.nan, 4, np.nan])
    np.testing.assert_array_equal(table.values[:, 1, 1], [10, np.nan, 12, np.nan, 14, np.nan])
    np.testing.assert_array_equal(table.run(1), table.values[:, :, 1])


def test_every_judgement_has_a_status_and_a_number_only_where_that_is_ok(table):
    assert table.counts() == {
        "requested": 24, "ok": 16, "unparsable": 0, "out_of_range": 0, "refused": 6, "transport": 0, "budget": 0,
        "skipped": 2,
    }  # fmt: skip
    ok = table.statuses == STATUSES.index(Status.OK)
    np.testing.assert_array_equal(np.isfinite(table.values), ok)


def test_a_judgement_is_whole(table):
    one = table.judgement(4, 1, run=1)
    assert (one.metric, one.raw, one.feedback, one.run, one.usage) == (
        "scripted", 14.0, "said of 4", 1, Usage(1, 10, 5, 0.5, 2.0)
    )  # fmt: skip
    failed = table.judgement(3, 1)
    assert (failed.status, failed.raw, failed.score, failed.error) == (Status.REFUSED, None, None, "planted")
    assert [judgement.raw for judgement in table.column(0)] == [None, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert len(table.flat()) == 24


def test_what_failed_or_was_skipped_is_read_without_the_rest(table):
    failed = table.failed()
    assert failed == [judgement for judgement in table.flat() if not judgement.ok]
    assert [judgement.status for judgement in failed].count(Status.SKIPPED) == 2


def test_a_columns_judgements_are_those_that_it_makes_itself(table):
    assert table.column(0) == ColumnMetric("given").judge_batch(ROWS)
    assert table.column(0, run=1) == table.column(0)


def test_coverage_says_how_far_each_metric_got_and_what_it_cost(table):
    given, scripted = table.coverage()
    assert (given.metric, given.counts["ok"], given.counts["skipped"], given.usage) == ("given", 10, 2, Usage())
    assert (scripted.share, scripted.counts["requested"], scripted.reused) == (0.5, 12, 0)
    assert scripted.usage == Usage(12, 120, 60, 6.0, 24.0) == table.usage


def test_the_frame_has_a_line_for_each_judgement(table):
    frame = table.to_pandas()
    assert list(frame.columns) == [
        "row", "id", "metric", "run", "status", "raw", "score", "feedback", "error", "requests", "prompt_tokens",
        "completion_tokens", "cost", "seconds",
    ]  # fmt: skip
    assert len(frame) == 24
    line = frame[(frame.id == "4") & (frame.metric == "scripted") & (frame.run == 1)].iloc[0]
    assert (line.raw, line.feedback, line.status, line.requests) == (14.0, "said of 4", "ok", 1)
    assert frame.raw.notna().sum() == 16
    assert (frame.status[frame.raw.isna()] != "ok").all()


def test_parquet_holds_what_the_frame_holds(table, tmp_path):
    table.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), table.to_pandas(), check_dtype=False)


def test_select_takes_columns_with_their_repetitions(table):
    chosen = table.select(["scripted"])
    assert chosen.values.shape == (6, 1, 2)
    assert chosen.usage == table.usage
    with pytest.raises(OptionError, match=r"no column 'scriptd' .did you mean 'scripted'"):
        table.select(["scriptd"])


def test_an_empty_table_has_no_share():
    table = score([Scripted()], [], progress=False)
    assert math.isnan(table.coverage()[0].share)
    assert table.to_pandas().empty


def test_repetitions_are_numbered_from_the_first():
    table = score([Scripted(odd_fails)], ROWS[:1], runs=2, first_run=3, progress=False)
    np.testing.assert_array_equal(table.values[0, 0], [30, 40])
    assert table.to_pandas().run.tolist() == [3, 4]


def test_a_store_that_lost_a_judgement_since_is_said_to_have(tmp_path):
    table = score([Scripted()], ROWS, store=tmp_path / "s.db", progress=False)
    with Store(tmp_path / "s.db") as store:
        store._connection.execute("DELETE FROM judgements")
    np.testing.assert_array_equal(table.values[:, 0, 0], range(6))
    with pytest.raises(StoreError, match="row '2' by scripted"):
        table.judgement(2, 0)


def test_a_line_for_each_row_has_a_column_for_each_metric_and_repetition(table):
    frame = table.to_pandas("row")
    assert list(frame.columns) == ["id", "given.run0", "given.run1", "scripted.run0", "scripted.run1"]
    assert frame.id.tolist() == [str(row.get("id", place)) for place, row in enumerate(ROWS)]
    np.testing.assert_array_equal(frame.iloc[:, 1:], table.values.reshape(6, 4))


def test_one_repetition_is_called_by_the_metric_and_equal_names_stay_apart():
    frame = score([ColumnMetric("given"), ColumnMetric("given")], ROWS, progress=False).to_pandas(each="row")
    assert list(frame.columns) == ["id", "given", "given"]
    later = score([Scripted()], ROWS, runs=2, first_run=3, progress=False).to_pandas("row")
    assert list(later.columns) == ["id", "scripted.run3", "scripted.run4"]
    assert score([Scripted()], [], progress=False).to_pandas("row").empty


def test_another_kind_of_line_is_refused():
    with pytest.raises(OptionError, match=r"each='rows' \(did you mean 'row'\?\) must be judgement or row"):
        score([Scripted()], ROWS, progress=False).to_pandas("rows")


def test_a_notebook_shows_each_metric_and_the_first_rows(table):
    shown = re.sub("<[^>]*>", " ", table._repr_html_().partition("</style>")[2]).split()
    assert " ".join(shown).startswith("6 rows, 2 metrics, 2 runs")
    place = shown.index("scripted")
    assert shown[place + 1 : place + 3] == ["6", "6"]  # half of twelve judgements fail
    thirds = [make_row(f"text {i}", id=str(i), columns={"given": 1 / 3 + 3 * i}) for i in range(2)]
    fine = score([ColumnMetric("given")], thirds, progress=False)
    assert ">3.333<" in fine._repr_html_()
    assert "3.3333" not in fine._repr_html_()
    assert score([Scripted()], [], progress=False)._repr_html_()
