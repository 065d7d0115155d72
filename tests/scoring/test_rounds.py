"""Metrics that may do without some of their parts: what is asked, in which rounds, and what becomes of the rest."""

from __future__ import annotations

import math
import random
import time
from collections import Counter

import numpy as np
import pytest

from loopback import serve
from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import ModelFailure
from metricsmith.metric import make_row
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Scale, Status, Task
from metricsmith.scoring import score
from metricsmith.stats.aggregation import mean
from metricsmith.stats.regression import LinearCombination
from metricsmith.stats.regression.combination import ZScore
from metricsmith.store import Store
from panels import answering, items, judges
from stubs import Scripted
from told_runs import BOUND, EXPECTED, LEAST, MOST, NUMBERS, ROWS, Peeking, needed, repeated, scored, told


def test_the_example_stops_early_late_and_never():
    assert {LEAST, LEAST + 1, MOST} <= {needed(numbers) for numbers in NUMBERS.values()}


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_what_is_asked_follows_from_the_values_alone(concurrency):
    def slowly(row, run):
        time.sleep(random.Random(f"{row.id} {run}").choice([0, 0, 0.002]))
        return told(row, run)

    judge = Scripted(slowly)
    table = score([repeated(judge)], ROWS, concurrency=concurrency, progress=False, max_failure_rate=1.0)
    assert Counter(judge.asked) == dict.fromkeys(EXPECTED, 1)
    np.testing.assert_array_equal(table.values, scored()[1].values)
    assert table.usage.requests == len(EXPECTED)


def test_a_run_that_asks_one_at_a_time_finishes_a_row_before_the_next():
    judge, _ = scored(concurrency=1)
    rows = [int(row) for row, _ in judge.asked]
    assert rows == sorted(rows)


def test_the_values_are_those_of_the_runs_that_were_needed():
    _, table = scored()
    for place, row in enumerate(ROWS):
        numbers = NUMBERS[row.id][: needed(NUMBERS[row.id])]
        present = [number for number in numbers if not isinstance(number, Status)]
        assert table.values[place, 0, 0] == mean(present)
        assert f"of {len(numbers)} runs" in table.judgement(place, 0).feedback
    assert table.counts() == {"requested": 40, "ok": 40} | dict.fromkeys(list(table.counts())[2:], 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_is_broken_off_and_taken_up_again_asks_what_one_run_asks(tmp_path, seed):
    """Failures are asked again after a break, so the rows here have none."""
    draw = random.Random(seed)
    rows = [row for row in ROWS if Status.UNPARSABLE not in NUMBERS[row.id]]
    asked, broken = [], 0
    while True:
        end = len(asked) + draw.randint(1, 25)

        def breaking(row, run, end=end):
            if len(asked) >= end:
                raise ZeroDivisionError("broken off")
            asked.append((row.id, run))
            return told(row, run)

        try:
            table = score([repeated(Scripted(breaking))], rows, store=tmp_path / "s.db", concurrency=4, progress=False)
            break
        except ZeroDivisionError:
            broken += 1
    assert broken > 3
    assert Counter(asked) == dict.fromkeys((key for key in EXPECTED if key[0] in {row.id for row in rows}), 1)
    np.testing.assert_array_equal(table.values, score([repeated(Scripted(told))], rows, progress=False).values)


def test_a_finished_run_is_not_asked_again_and_needless_runs_are_not_stored(tmp_path):
    scored(store=tmp_path / "s.db")
    judge, again = scored(store=tmp_path / "s.db")
    assert {NUMBERS[row][run] for row, run in judge.asked} <= {Status.UNPARSABLE}  # failures are
    assert again.usage.requests == len(judge.asked)
    with Store(tmp_path / "s.db", read_only=True) as store:
        (kept,) = store._connection.execute("SELECT count(*) FROM judgements").fetchone()
    assert kept == len(EXPECTED)


def test_what_a_store_knows_beyond_what_is_needed_changes_nothing(tmp_path):
    rows = [row for row in ROWS if Status.UNPARSABLE not in NUMBERS[row.id]]
    score([Scripted(told)], rows, runs=MOST, store=tmp_path / "s.db", progress=False)
    judge = Scripted(told)
    stored = score([repeated(judge)], rows, store=tmp_path / "s.db", progress=False)
    fresh = score([repeated(Scripted(told))], rows, progress=False)
    assert judge.asked == []
    np.testing.assert_array_equal(stored.values, fresh.values)
    assert [one.feedback for one in stored.column(0)] == [one.feedback for one in fresh.column(0)]


def test_slots_that_another_metric_needs_are_asked_anyway_and_once():
    judge = Scripted(told)
    table = score([repeated(judge), Repeated(judge, MOST, "mean")], ROWS, progress=False, max_failure_rate=1.0)
    assert Counter(judge.asked) == dict.fromkeys(((row.id, run) for row in ROWS for run in range(MOST)), 1)
    np.testing.assert_array_equal(table.values[:, 0], scored()[1].values[:, 0])


def test_rows_that_say_the_same_are_asked_once():
    rows = [make_row("one text", id=name) for name in ("30", "31", "32")]
    judge = Scripted(lambda row, run: [1.0, 5.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0][run])
    table = score([repeated(judge)], rows, progress=False)
    assert {row for row, _ in judge.asked} == {"30"}
    assert LEAST < len(judge.asked) == len({run for _, run in judge.asked})
    assert len({(one.raw, one.feedback) for one in table.column(0)}) == 1
    assert table.usage.requests == len(judge.asked)


def test_rows_that_say_the_same_and_were_judged_apart_each_get_what_they_want(tmp_path):
    """The second row brings two numbers that are far apart from a store: it wants more than the first one does."""
    first, second = make_row("one text", id="a"), make_row("one text", id="b")
    apart = Scripted(lambda row, run: [1.0, 9.0, 1.0, 9.0][run % 4])
    score([apart], [second], runs=3, store=tmp_path / "s.db", progress=False)
    judge = Scripted(lambda row, run: 5.0)
    table = score([repeated(judge)], [first, second], store=tmp_path / "s.db", progress=False)
    assert sorted(judge.asked) == [("a", run) for run in range(MOST)]  # asked of the first, for the second
    assert "3 of 3 runs (5 more were not needed)" in table.judgement(0, 0).feedback
    assert table.judgement(1, 0).feedback.startswith("4.5 is the mean of 8 of 8 runs")  # 1, 9, 1 and five 5


def test_a_row_that_follows_another_takes_over_only_what_it_wants(tmp_path):
    first, second = make_row("one text", id="a"), make_row("one text", id="b")
    judge = Scripted(lambda row, run: 3.0)
    score([judge], [first], runs=MOST, store=tmp_path / "s.db", progress=False)
    table = score([repeated(judge)], [first, second], store=tmp_path / "s.db", progress=False)
    assert table.counts()["ok"] == 2
    with Store(tmp_path / "s.db", read_only=True) as store:
        (kept,) = store._connection.execute("SELECT count(*) FROM judgements").fetchone()
    assert kept == MOST + LEAST


def test_what_was_never_wanted_is_skipped_for_a_reason_of_its_own_and_costs_nothing():
    metric = Peeking(Scripted(lambda row, run: 3.0), MOST, min_runs=LEAST, stop_when=BOUND)
    table = score([metric], ROWS[:1], progress=False)
    assert table.judgement(0, 0).ok
    assert [part.status for part in metric.seen] == [Status.OK] * 3 + [Status.SKIPPED] * 5
    assert {part.error for part in metric.seen[3:]} == {"not asked: nothing that was wanted rests on it"}
    assert sum(part.usage.requests for part in metric.seen) == table.usage.requests == 3


@pytest.mark.parametrize(("rate", "stops"), [(0.25, False), (0.2, True)])
def test_only_what_was_asked_counts_for_the_gate(rate, stops):
    # Each row takes four runs, the first of which fails: a quarter, though an eighth of the runs there could have been.
    judge = Scripted(lambda row, run: 3.0 if run else Status.UNPARSABLE)
    if not stops:
        assert score([repeated(judge)], ROWS, progress=False, max_failure_rate=rate).counts()["ok"] == 40
        return
    with pytest.raises(ModelFailure, match="40 of 160 judgements failed") as caught:
        score([repeated(judge)], ROWS, progress=False, max_failure_rate=rate)
    assert caught.value.table.counts()["ok"] == 40


def test_a_run_that_must_fail_ends_as_soon_as_that_is_certain():
    judge = Scripted(lambda row, run: Status.UNPARSABLE)
    with pytest.raises(ModelFailure, match="of at most 320 judgements failed"):
        score([repeated(judge)], ROWS, progress=False, concurrency=4)
    assert 64 < len(judge.asked) < 80


# Inside others


def test_inside_an_induced_metric_it_stops_too():
    judge = Scripted(told)
    inner, column = repeated(judge), ZScore.fit(np.array([1.0, 2.0, 3.0]))
    metric = InducedMetric(
        components=[inner], task=Task("Rewrite.", "rating", Scale(1, 5)), best=[1.0],
        combination=LinearCombination((inner.name,), (0,), (column,), (1.0,), 3.0),
    )  # fmt: skip
    together = score([metric], ROWS, progress=False, max_failure_rate=1.0)
    assert Counter(judge.asked) == dict.fromkeys(EXPECTED, 1)
    judge.asked.clear()
    alone = metric.explain(ROWS)
    assert Counter(judge.asked) == dict.fromkeys(EXPECTED, 1)
    np.testing.assert_array_equal(together.values[:, 0, 0], [one.prediction.raw for one in alone])
    assert all("runs" in str(one.parts[0]) for one in alone)


def test_a_composite_of_composites_waits_for_what_they_settle_on():
    judge = Scripted(told)
    rows = [row for row in ROWS if Status.UNPARSABLE not in NUMBERS[row.id]]
    outer = Repeated(repeated(judge), 3, "mean", min_runs=2, stop_when=0)
    table = score([outer], rows, progress=False)
    inner = score([repeated(Scripted(told))], rows, progress=False)
    np.testing.assert_array_equal(table.values, inner.values)  # every repetition tells the same, so two are enough
    assert Counter(judge.asked) == {
        (row, run + MOST * time): 1 for row, run in EXPECTED if row in {one.id for one in rows} for time in range(2)
    }


def test_members_of_a_panel_share_their_requests():
    # The first criterion's answers agree at once, the second one's never: eight requests answer both.
    spread = iter([1, 5] * 4)
    panel = Panel(judges())
    metrics = [repeated(member, stop_when=0) for member in panel.members()]
    with serve(lambda prompt: answering(items(3, next(spread), 3))(prompt)) as server:
        table = score(metrics, ROWS[:1], lm=server.lm(temperature=1.0), progress=False)
    assert server.requests == 8 == table.usage.requests
    assert ["5 more were not needed" in table.judgement(0, place).feedback for place in range(3)] == [True, False, True]
    assert math.isclose(table.values[0, 0, 0], 3)


def test_what_one_request_answers_is_kept_for_whoever_wants_it_later():
    """The first lacks two numbers after three runs and wants the next two; the second wants them one by one."""

    class Pair:
        numbers, asked = 2, []

        def fingerprint(self):
            return "pair"

        def messages(self, row):
            return []

        def ask(self, metrics, row, runs):
            self.asked.extend(runs)
            return [[metric._judge(row, run) for run in runs] for metric in metrics]

    apart = [1.0, 5.0] * 4
    members = [Scripted(lambda row, run: apart[run] if run > 1 else Status.REFUSED, "one")]
    members.append(Scripted(lambda row, run: apart[run], "two"))
    for member in members:
        member.asker = Pair()
    table = score([repeated(member) for member in members], ROWS[:1], progress=False, max_failure_rate=1.0)
    assert sorted(Pair.asked) == list(range(MOST))
    assert table.counts()["ok"] == 2


def test_a_metric_without_a_model_stops_at_once():
    bank = default_bank().get("levenshtein_distance")
    row = make_row("one two", input="one two three", references=["one two three"])
    table = score([Repeated(bank, 9, min_runs=2, stop_when=0), bank], [row], progress=False)
    assert table.values[0, 0] == table.values[0, 1]
    assert "2 of 2 runs (7 more were not needed)" in table.judgement(0, 0).feedback
