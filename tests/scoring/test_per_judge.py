"""`PerJudge`: whose answers fail too often is dropped, by its own answers and nothing else."""

from __future__ import annotations

import math

import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import PerJudge
from metricsmith.records import Status
from metricsmith.scoring import score
from metricsmith.testing import GivenModel
from panels import asked_for, is_joint, item, panel
from stubs import Scripted

ROWS = [make_row(f"text {number}", id=str(number)) for number in range(10)]


def failing(numbers, status=Status.UNPARSABLE, name="bad"):
    """A judge with that status on the rows of these numbers."""
    return Scripted(lambda row, run: status if int(row.id) in numbers else float(row.id), name)


def table_of(*metrics, rows=ROWS, rate=0.2, **options):
    return score(metrics, rows, max_failure_rate=PerJudge(rate), **{"concurrency": 1, "progress": False, **options})


@pytest.mark.parametrize("status", [Status.UNPARSABLE, Status.OUT_OF_RANGE, Status.REFUSED])
def test_the_first_failure_beyond_the_rate_drops_a_judge_and_no_other(status):
    bad, good = failing({1, 4, 5, 8}, status), Scripted(name="good")
    table = table_of(bad, good)
    # Two of ten may fail; row 5 has the third failure, so that rows 6 to 9 are not asked.
    assert [int(row) for row, _ in bad.asked] == [0, 1, 2, 3, 4, 5]
    assert len(good.asked) == 10
    assert table.values[:, 1, 0].tolist() == [float(number) for number in range(10)]
    assert all(map(math.isnan, table.values[:, 0, 0]))
    expected = [status if number in (1, 4, 5) else Status.SKIPPED for number in range(10)]
    assert [judgement.status for judgement in table.column(0)] == expected
    reason = (
        "bad is dropped: at least 3 of its 10 judgements failed, more than the 20% that are allowed, such as: planted"
    )
    assert table.dropped == {"bad": reason}
    assert {judgement.error for judgement in table.column(0)} == {"planted", reason}
    assert table.counts()["requested"] == 20 == sum(n for name, n in table.counts().items() if name != "requested")
    assert table.usage.requests == 16


def test_as_many_failures_as_the_rate_allows_drop_nobody():
    table = table_of(failing({1, 4}), Scripted(name="good"))
    assert table.dropped == {}
    assert table.counts()["ok"] == 18


def test_rows_that_say_the_same_count_each():
    rows = [make_row("same", id="0")] * 3 + ROWS[3:]
    bad = failing({0})
    assert list(table_of(bad, Scripted(name="good"), rows=rows).dropped) == ["bad"]
    assert bad.asked == [("0", 0)]  # one answer for three rows, which is one too many
    assert table_of(failing({3}), Scripted(name="good"), rows=rows).dropped == {}


def test_rows_that_are_not_judged_are_requested_and_no_failures():
    skipping = failing({0, 1, 2, 3}, Status.SKIPPED)
    table = table_of(skipping)
    assert table.dropped == {}
    assert len(skipping.asked) == 10


def test_failures_on_the_way_drop_nobody_and_stop_the_run_together():
    lost, good = failing({0, 1, 2, 3}, Status.TRANSPORT), Scripted(name="good")
    table = table_of(lost, good)  # four of twenty
    assert table.dropped == {}
    assert table.counts()["transport"] == 4
    with pytest.raises(ModelFailure, match=r"5 of 20 judgements failed \(5 transport\)") as stopped:
        table_of(failing({0, 1, 2, 3, 4}, Status.TRANSPORT), good)
    assert stopped.value.table.dropped == {}


def test_failures_of_answers_do_not_count_towards_the_stop():
    bad, lost = failing(range(10)), failing({0, 1, 2, 3}, Status.TRANSPORT, "lost")
    table = table_of(bad, lost)
    assert list(table.dropped) == ["bad"]
    assert table.counts()["transport"] == 4


def test_the_run_ends_where_no_metric_is_left():
    with pytest.raises(ModelFailure, match=r"bad is dropped.*, and no metric is left; 0 were answered") as stopped:
        table_of(failing(range(10)))
    assert stopped.value.table.counts() == stopped.value.table.counts() | {"unparsable": 3, "skipped": 7}
    assert list(table_of(failing(range(10)), default_bank().get("output_words")).dropped) == ["bad"]


def test_strict_stops_where_a_judge_would_be_dropped():
    good = Scripted(name="good")
    with pytest.raises(ModelFailure, match="bad is dropped"):
        score([failing(range(10)), good], ROWS, max_failure_rate=PerJudge(strict=True), concurrency=1, progress=False)
    assert len(good.asked) < 10


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "0.2", None])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(OptionError, match="must be a share from 0 to 1"):
        PerJudge(rate)


def test_the_number_in_flight_does_not_change_who_is_dropped_nor_any_number():
    def tables(most):
        judges = [failing(range(number), name=f"judge {number}") for number in range(6)]
        table = table_of(*judges, concurrency=most)
        assert table.usage.requests == sum(len(judge.asked) for judge in judges)
        return list(table.dropped), [[j.raw for j in table.column(place)] for place in range(6)]

    first, *others = [tables(most) for most in (1, 3, 32)]
    assert first[0] == ["judge 3", "judge 4", "judge 5"]
    assert all(other == first for other in others)


def test_a_new_start_on_a_store_drops_the_same_and_asks_for_no_number_twice(tmp_path):
    options = {"store": tmp_path / "s.db", "concurrency": 1}
    bad, good = failing({1, 4, 5, 8}), Scripted(name="good")
    first = table_of(bad, good, **options)
    again_bad, again_good = failing({1, 4, 5, 8}), Scripted(name="good")
    again = table_of(again_bad, again_good, **options)
    assert list(again.dropped) == list(first.dropped) == ["bad"]
    assert again_good.asked == []
    # The failures are asked again, and what was not asked before comes between them.
    assert [int(row) for row, _ in again_bad.asked] == [1, 4, 5]
    mended = table_of(failing({1, 4}), Scripted(name="good"), **options)
    assert mended.dropped == {}
    assert mended.values[9, 0, 0] == 9.0


def test_members_of_a_panel_are_dropped_one_by_one(monkeypatch):

    def answer(prompt):
        if not is_joint(prompt):
            return {"reasoning": "alone", "score": "none"}
        return {"ratings": [item(name, "none" if name == "Polite tone" else 3) for name in asked_for(prompt)]}

    made = panel()
    with GivenModel(answer) as server:
        table = table_of(*made.members(), lm=server.lm())
    assert list(table.dropped) == ["polite_tone"]
    assert table.counts()["ok"] == 20
    # One joint request a row; until the third failure the criterion is asked alone too, with its repair.
    assert server.requests == table.usage.requests == 10 + 3 * 2
