"""Metrics x rows: everything accounted for, nothing failed entered as a number."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from loopback import scripted, serve
from metricsmith.bank.base import Family
from metricsmith.bank.catalogue import family
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import JudgementFailed, ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import MetricCard, Output, Status, Usage
from metricsmith.scoring import score, tally
from metricsmith.testing import GivenJudge

ROWS = [make_row(f"text number {number}", id=str(number), columns={"given": float(number)}) for number in range(40)]
JUDGES = [CriterionJudge(criterion=name, meaning="Good.", task="Write.") for name in ("Clear", "Short", "Kind")]


def test_values_have_a_row_per_row_and_a_column_per_metric():
    with serve(scripted) as server:
        table = score([ColumnMetric("given"), *JUDGES], ROWS, lm=server.lm())
    assert table.values.shape == (40, 4, 1)
    assert table.names == ("given", "clear", "short", "kind")
    np.testing.assert_array_equal(table.values[:, 0, 0], np.arange(40))
    assert set(np.unique(table.values[:, 1:])) <= {1, 2, 3, 4, 5}


def test_every_judgement_is_accounted_for_under_faults():
    with serve(scripted, server_errors=0.35, malformed=0.25, seed=2) as server:
        table = score(JUDGES, ROWS, lm=server.lm(), max_failure_rate=1.0)
    counts = tally(table.flat())
    assert counts["requested"] == 120 == sum(counts[status.value] for status in Status)
    assert counts["transport"] > 0
    assert counts["unparsable"] > 0
    assert table.usage.requests == server.requests
    assert counts == table.counts()
    for judgement in table.flat():
        assert (judgement.raw is None) == (judgement.status is not Status.OK)
    assert np.isnan(table.values).sum() == 120 - counts["ok"]


def test_rows_that_say_the_same_are_paid_once_and_the_first_bears_the_cost():
    with serve(scripted) as server:
        table = score(JUDGES[:1], [make_row("equal", id=name) for name in "abc"], lm=server.lm(), progress=False)
    assert table.usage.requests == server.requests == 1
    assert [judgement.usage.requests for judgement in table.column(0)] == [1, 0, 0]


def test_results_do_not_depend_on_the_order_of_arrival():
    tables = []
    for concurrency in (1, 12):
        with serve(scripted, server_errors=0.2, malformed=0.2) as server:
            tables.append(score(JUDGES, ROWS, lm=server.lm(), concurrency=concurrency, max_failure_rate=1.0))
    np.testing.assert_array_equal(tables[0].values, tables[1].values)


def test_too_many_failures_stop_the_run_and_keep_what_was_done():
    with (
        serve(scripted, malformed=0.7) as server,
        pytest.raises(ModelFailure, match="more than the 20%") as caught,
    ):
        score(JUDGES, ROWS, lm=server.lm(), concurrency=2)
    assert server.requests < 240
    counts = caught.value.table.counts()
    assert counts["requested"] == 120
    assert counts["ok"] > 0
    assert counts["skipped"] > 0  # never asked for
    assert caught.value.table.usage.requests == server.requests


def test_rows_without_what_a_metric_needs_are_skipped_and_do_not_count_against_the_gate():
    table = score([ColumnMetric("absent")], ROWS, max_failure_rate=0.0)
    assert tally(table.flat())["skipped"] == 40
    assert np.isnan(table.values).all()


def test_judges_share_one_limit_of_concurrent_requests():
    with serve(scripted, delay=0.02) as server:
        score(JUDGES, ROWS[:10], lm=server.lm(), concurrency=4)
    assert 2 <= server.most_in_flight <= 4


def test_threads_see_the_callers_context():
    with serve(scripted) as server, dspy.context(lm=server.lm()):
        assert score(JUDGES, ROWS[:2]).values.shape == (2, 3, 1)


def test_no_rows_and_no_metrics_give_empty_tables():
    assert score([], ROWS).values.shape == (40, 0, 0)
    assert score([], ROWS).run().shape == (40, 0)
    assert score([ColumnMetric("given")], []).values.shape == (0, 1, 1)


def test_select_keeps_the_order_asked_for():
    table = score([ColumnMetric("given"), ColumnMetric("absent")], ROWS)
    assert table.select(["absent", "given"]).names == ("absent", "given")


def model(*statuses):
    """A judge whose judgement of row i ends with status i."""

    def number(row):
        status = statuses[int(row.id)]
        if status is not Status.OK:
            raise JudgementFailed("planted", status)
        return 0.5

    return GivenJudge(number, name="model", output=Output("model"), usage=Usage(1, 10, 5, 0.5, 2.0))


@pytest.mark.parametrize(("failures", "stops"), [(2, False), (3, True)])
def test_the_gate_is_passed_by_more_failures_than_allowed_and_not_by_as_many(failures, stops):
    # 10 judgements, of which 20 % may fail: two.
    judge = model(*[Status.UNPARSABLE] * failures, *[Status.OK] * (10 - failures))
    if stops:
        with pytest.raises(ModelFailure, match=r"3 of 10 judgements failed .3 unparsable.*model: planted"):
            score([judge], ROWS[:10], concurrency=1, max_failure_rate=0.2)
    else:
        assert tally(score([judge], ROWS[:10], max_failure_rate=0.2).flat())["unparsable"] == 2


def test_what_was_done_before_the_gate_is_kept():
    judge = model(*[Status.OK] * 5, *[Status.TRANSPORT] * 5)
    with pytest.raises(ModelFailure) as caught:
        score([judge], ROWS[:10], concurrency=1, max_failure_rate=0.2)
    column = caught.value.table.column(0)
    assert [judgement.status for judgement in column[:5]] == [Status.OK] * 5
    assert sum(judgement.status is Status.TRANSPORT for judgement in column) == 3


def test_a_row_that_a_model_metric_skips_does_not_count_against_the_gate():
    table = score([model(*[Status.SKIPPED] * 10)], ROWS[:10], max_failure_rate=0.0)
    assert tally(table.flat()) == {
        "requested": 10, "ok": 0, "unparsable": 0, "out_of_range": 0, "refused": 0, "transport": 0, "budget": 0,
        "skipped": 10,
    }  # fmt: skip


def test_usage_is_the_sum_over_all_judgements():
    assert score([model(*[Status.OK] * 4)], ROWS[:4]).usage == Usage(4, 40, 20, 2.0, 8.0)


REFERENCED = [
    make_row(f"the {word} sat on the mat", references=[f"the {word} lay on the mat"], id=word)
    for word in ("cat", "dog", "cow", "hen")
]


def test_metrics_of_one_family_keep_the_statistics_that_they_are_bound_to():
    plain = family("cider").metrics()[0]
    few, many = plain.fit(REFERENCED[:2]), plain.fit([*REFERENCED, *REFERENCED[:1] * 5])
    together = score([few, many], REFERENCED).values
    np.testing.assert_array_equal(together[:, 0], score([few], REFERENCED).values[:, 0])
    np.testing.assert_array_equal(together[:, 1], score([many], REFERENCED).values[:, 0])
    assert (together[:, 0] != together[:, 1]).any()


def test_corpus_statistics_leave_out_rows_without_what_the_metric_needs():
    card = MetricCard("Rare", "bank", "", "", (Output("rare"),), needs=("references",))
    family = Family(card, lambda batch, outputs: {"rare": np.zeros(len(batch))}, lambda batch: {"rows": len(batch)})
    (metric,) = family.metrics()
    rows = [*REFERENCED, make_row("no reference here"), make_row("an empty one", references=[""])]
    assert metric.fit(rows).statistics == {"rows": 4}


@pytest.mark.parametrize("references", [[], [""], ["", ""]])
def test_empty_references_are_none_and_such_rows_do_not_shift_the_others(references):
    metric = family("bleu").metrics()[0]
    rows = [REFERENCED[0], make_row("text", references=references), REFERENCED[1]]
    column = score([metric], rows).column(0)
    assert [judgement.status for judgement in column] == [Status.OK, Status.SKIPPED, Status.OK]
    assert "no references" in column[1].error
    assert column[2].raw == metric.judge_batch([REFERENCED[1]])[0].raw


def test_what_is_no_metric_is_refused():
    with pytest.raises(OptionError, match=r"default_bank\(\)\.get"):
        score([3], ROWS)


def test_columns_of_one_name_cannot_be_selected():
    table = score([ColumnMetric("given"), ColumnMetric("given")], ROWS)
    with pytest.raises(OptionError, match="share a name"):
        table.select(["given"])
