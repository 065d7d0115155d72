"""Metrics that are computed here: in chunks, each kept before the next, and an error ends its own family alone."""

from __future__ import annotations

import copy
import logging
import pickle
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest

from metricsmith.bank.base import BankMetric, Family, TextBatch, numbers_kept
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import Interrupted, JudgementFailed, ModelFailure, NeedsError
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import PerJudge
from metricsmith.records import MetricCard, Output, Status
from metricsmith.reward import Reward
from metricsmith.scoring import coordinator, local, score
from metricsmith.scoring.plan import scoring_plan
from stubs import Scripted

ROWS = [make_row(f"{n} words stand here", references=[f"{n + n % 2} words stood here"], id=str(n)) for n in range(11)]
RECALL, PRECISION = (default_bank().get(name) for name in ("rouge1_r", "rouge1_p"))


def test_no_row_is_lost_between_two_batches(monkeypatch):
    whole = score([RECALL], ROWS, progress=False).run()
    monkeypatch.setattr(local, "ROWS_AT_A_TIME", 4)
    np.testing.assert_array_equal(score([RECALL], ROWS, progress=False).run(), whole)
    assert np.isfinite(whole).all()
    assert len(np.unique(whole)) > 1


def test_a_metric_is_computed_where_another_of_its_family_is_known(tmp_path):
    score([RECALL], ROWS[:6], store=tmp_path / "s.db", progress=False)
    table = score([RECALL, PRECISION], ROWS, store=tmp_path / "s.db", progress=False)
    assert [line.reused for line in table.coverage()] == [6, 0]
    np.testing.assert_array_equal(table.run(), score([RECALL, PRECISION], ROWS, progress=False).run())
    assert np.isfinite(table.run()).all()


LACK = "weights not on this machine: `metricsmith bank fetch fake`"


@dataclass(frozen=True, slots=True)
class Weights(ModelSpec):
    """Weights that are on this machine unless their id is "absent"."""

    def check(self):
        if self.id == "absent":
            raise NeedsError(f"{self.name}: {LACK}")

    def digest(self):
        return "0" * 64


SEEN: list[list[str]] = []


def lengths(batch: TextBatch, outputs):
    """The lengths of texts; some say what goes wrong with them."""
    texts = " ".join(batch.outputs)
    SEEN.append(list(batch.outputs))
    if "slow" in texts:
        time.sleep(0.002 * len(batch))
    for mark, problem in (("stop", KeyboardInterrupt), ("unload", NeedsError), ("bad", RuntimeError)):
        if mark in texts:
            raise problem(f"a text says {mark}")
    return {name: np.array([float(len(text)) for text in batch.outputs]) for name in outputs}


def others(batch: TextBatch, outputs):
    return lengths(batch, outputs)


def fake(*names, id="here", compute=lengths, model=True, layer=None):
    outputs = tuple(Output(name, 0.0, None, half=10.0) for name in names)
    card = MetricCard(names[0], "bank", "Lengths.", "length", outputs, cost="local" if model else "cheap")
    return Family(card, compute, model=Weights(names[0], id, "encoder", layer=layer) if model else None).metrics()


def rows(*texts):
    return [make_row(text, id=str(place)) for place, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def statuses(table, metric=0):
    return [Status(judgement.status) for judgement in table.column(metric)]


def test_chunks_begin_small_grow_slowly_and_come_to_the_seconds_of_work(monkeypatch):
    monkeypatch.setattr(local, "SECONDS", 0.2)
    score(fake("a"), rows(*["slow text"] * 300), progress=False)
    sizes = [len(texts) for texts in SEEN]
    assert sizes[:2] == [8, 32]
    assert all(40 < size < 110 for size in sizes[2:-1])  # .2 seconds at .002 a row are 100 rows
    assert sum(sizes) == 300


def test_a_chunk_has_at_most_as_many_rows_as_those_of_cheap_metrics(monkeypatch):
    monkeypatch.setattr(local, "ROWS_AT_A_TIME", 20)
    score([*fake("a"), *fake("b", model=False)], rows(*["text"] * 50), progress=False)
    assert [len(texts) for texts in SEEN] == [20, 20, 10, 8, 20, 20, 2]  # cheap ones first


def test_an_interrupt_loses_its_chunk_and_the_store_has_all_before_it(tmp_path):
    given = rows(*["text"] * 45, "stop", *["text"] * 20)
    with pytest.raises(Interrupted, match="interrupted with 40 of 66 judgements finished") as stopped:
        score(fake("a"), given, store=tmp_path / "s.db", progress=False)
    expected = [Status.OK] * 40 + [Status.SKIPPED] * 26  # chunks of 8 and 32 rows
    assert statuses(stopped.value.table) == expected
    SEEN.clear()
    again = score(fake("a"), given[:45], store=tmp_path / "s.db", progress=False)
    assert sum(map(len, SEEN)) == 5
    assert statuses(again) == [Status.OK] * 45


def test_the_store_has_each_chunk_before_the_next_is_begun(tmp_path):
    stored = []

    def looking(batch, outputs):
        with closing(sqlite3.connect(tmp_path / "s.db")) as file:
            stored.append(file.execute("SELECT count(*) FROM judgements").fetchone()[0])
        return lengths(batch, outputs)

    score(fake("a", compute=looking), rows(*["text"] * 50), store=tmp_path / "s.db", progress=False)
    assert stored == [0, 8, 40]


def test_a_run_that_is_cut_short_ends_between_two_chunks(monkeypatch):
    real = coordinator.Coordinator._book

    def book(self, placed, **options):
        real(self, placed, **options)
        self.hurry("enough")

    monkeypatch.setattr(coordinator.Coordinator, "_book", book)
    table = score(fake("a"), rows(*["text"] * 50), progress=False)
    assert statuses(table) == [Status.OK] * 8 + [Status.SKIPPED] * 42
    assert table.judgement(20, 0).error == "enough"


def test_the_bar_shows_each_chunk(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, total, **options):
            self.total = total

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            pass

        def update(self, more):
            shown.append((more, self.total))

    monkeypatch.setattr(coordinator, "progress_bar", Bar)
    score([*fake("a", "b"), Scripted()], rows(*map(str, range(20))), progress=True)
    assert shown[:2] == [(16, 60), (24, 60)]
    assert sum(more for more, _ in shown) == shown[-1][1] == 60


@pytest.mark.parametrize("model", [True, False])
def test_a_rows_error_is_its_status_and_is_computed_again(tmp_path, model):
    given = rows("one", "three", "bad", "four")
    table = score(fake("a", "b", model=model), given, store=tmp_path / "s.db", progress=False)
    assert statuses(table) == statuses(table, 1) == [Status.OK, Status.OK, Status.TRANSPORT, Status.OK]
    assert table.judgement(2, 1).error == "RuntimeError: a text says bad"
    assert np.isnan(table.run()[2]).all()
    SEEN.clear()
    score(fake("a", "b", model=model), given, store=tmp_path / "s.db", progress=False)
    assert SEEN == [["bad"]]


def test_an_engines_error_ends_its_family_and_no_other(caplog):
    given = rows(*["text"] * 8, "unload", *["text"] * 60)
    broken, fine = fake("a", "b"), fake("c", compute=others, layer=3)
    with caplog.at_level(logging.WARNING):
        table = score([*broken, *fine], [*given], progress=False)
    for metric in (0, 1):
        assert statuses(table, metric) == [Status.OK] * 8 + [Status.TRANSPORT] * 61
        assert {table.judgement(row, metric).error for row in range(8, 69)} == {"a text says unload"}
    assert [record.message for record in caplog.records] == [
        "a, b: not computed any further: a text says unload", "c: not computed any further: a text says unload"
    ]  # fmt: skip
    assert sum(map(len, SEEN)) == 2 * (8 + 32)  # what is left is not tried

    def sound(batch, outputs):
        return {name: np.ones(len(batch)) for name in outputs}

    assert statuses(score([*broken, *fake("d", compute=sound)], given, progress=False), 2) == [Status.OK] * 69


def test_a_family_ends_where_rows_in_succession_all_fail(caplog):
    with caplog.at_level(logging.WARNING):
        table = score(fake("a"), rows(*["bad"] * 30), max_failure_rate=1.0, progress=False)
    assert statuses(table) == [Status.TRANSPORT] * 30
    assert table.judgement(7, 0).error == "RuntimeError: a text says bad"
    reason = "8 rows in succession failed, such as: RuntimeError: a text says bad"
    assert {table.judgement(row, 0).error for row in range(8, 30)} == {reason}
    assert [record.message for record in caplog.records] == [f"a: not computed any further: {reason}"]


def test_inside_one_run_a_family_is_said_once_to_be_given_up(caplog):
    def end(*texts):
        for metrics in (fake("a", "b"), fake("a"), fake("c")):
            score([*metrics, default_bank().get("output_words")], rows(*texts), progress=False)

    with local.told_once():
        end(*["bad one"] * 9)
        end(*["bad two"] * 10)
    assert [record.message.split(":")[0] for record in caplog.records] == ["a, b", "c"]
    caplog.clear()
    end(*["bad one"] * 9)
    assert [record.message.split(":")[0] for record in caplog.records] == ["a, b", "a", "c"]


def test_such_a_metric_is_dropped_among_others_and_ends_a_run_that_has_no_other():
    given = rows(*["text"] * 90, "unload", *["text"] * 9)
    table = score([*fake("a"), default_bank().get("output_words")], given, max_failure_rate=PerJudge(), progress=False)
    assert table.dropped == {"a": "a is dropped: a text says unload"}
    assert np.isnan(table.run()[:, 0]).all()
    assert np.isfinite(table.run()[:, 1]).all()
    with pytest.raises(ModelFailure, match="a is dropped: a text says unload, and no metric is left"):
        score(fake("a"), given, max_failure_rate=PerJudge(), progress=False)


def test_a_metric_that_fails_on_too_many_rows_is_dropped():
    given = rows(*["text", "text", "bad"] * 10)
    table = score([*fake("a"), default_bank().get("output_words")], given, max_failure_rate=PerJudge(0.2))
    assert list(table.dropped) == ["a"]
    assert score(fake("a"), given, max_failure_rate=PerJudge(0.4)).dropped == {}


def test_needs_that_are_not_met_are_refused_before_any_work():
    with pytest.raises(NeedsError, match="bank fetch fake"):
        score([*fake("b", model=False), *fake("a", id="absent")], rows("text"), progress=False)
    with pytest.raises(NeedsError, match="bank fetch fake"):
        scoring_plan(fake("a", id="absent"))
    assert SEEN == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric))])
def test_copies_of_a_metric_share_its_work(copied):
    a, b = (replace(metric, statistics={"rows": [1, 2]}) for metric in fake("a", "b"))
    plan = scoring_plan([a, copied(b)])
    assert plan.families == ((0, 1),)
    assert [one.model for one in plan.metric_runs] == [None, None]
    score([a, copied(b)], rows("text"), progress=False)
    assert SEEN == [["text"]]
    assert len(scoring_plan([a, replace(copied(b), statistics={"rows": [3]})]).families) == 2
    other = Family(b.family.card, lengths, model=replace(b.family.model, layer=2))
    assert len(scoring_plan([a, BankMetric(other, "b", b.statistics)]).families) == 2


def test_families_of_one_checkpoint_go_through_the_rows_side_by_side():
    first, second, third = fake("a"), fake("b", compute=others), fake("c", layer=4)
    score([*first, *third, *second], rows(*map(str, range(20))), progress=False)
    assert [texts[0] for texts in SEEN] == ["0", "0", "8", "8", "0", "8"]


def test_statistics_that_nobody_bound_are_those_of_all_rows_whatever_the_chunks(monkeypatch):
    monkeypatch.setattr(local, "ROWS_AT_A_TIME", 4)
    cider = default_bank().get("cider")
    np.testing.assert_array_equal(
        score([cider], ROWS, progress=False).run(), score([cider.fit(ROWS)], ROWS, progress=False).run()
    )


def test_seconds_are_counted_once_for_the_outputs_of_a_family():
    table = score([*fake("a", "b"), *fake("c", model=False)], rows(*["slow text"] * 20), progress=False)
    seconds = [line.usage.seconds for line in table.coverage()]
    assert seconds[0] == pytest.approx(seconds[1])
    assert 0.04 < table.usage.seconds < 0.4
    assert seconds[2] == 0.0


def test_a_reward_on_a_failed_row_says_so_and_numbers_are_kept():
    (metric,) = fake("a")
    with pytest.raises(JudgementFailed, match="RuntimeError: a text says bad"):
        Reward(metric)(make_row("bad"))
    with numbers_kept():
        assert [score([metric], rows("text"), progress=False).run()[0, 0] for _ in range(2)] == [4.0, 4.0]
    assert SEEN == [["bad"], ["text"]]


@pytest.mark.parametrize("bound", [False, True])
def test_the_numbers_of_another_corpus_are_not_taken_over_from_a_store(tmp_path, bound):
    cider, fresh = default_bank().get("cider"), []
    for given in (ROWS, ROWS[:5]):
        metric = cider.fit(given) if bound else cider
        table = score([metric], given, store=tmp_path / "s.db", progress=False)
        fresh.append(score([cider.fit(given)], given, progress=False).run()[:, 0])
        np.testing.assert_array_equal(table.run()[:, 0], fresh[-1])
    assert (fresh[0][:5] != fresh[1]).any()
    again = score([cider], ROWS, store=tmp_path / "s.db", progress=False)
    assert again.coverage()[0].reused == len(ROWS)


def test_a_corpus_that_cannot_be_read_ends_its_family_alone():
    def broken(batch):
        raise NeedsError("no tokenizer")

    (metric,) = fake("a")
    unbound = BankMetric(replace(metric.family, statistics=broken), "a")
    table = score([unbound, default_bank().get("output_words")], rows("text", "text"), progress=False)
    assert [table.judgement(row, 0).error for row in (0, 1)] == ["no tokenizer"] * 2
    assert np.isfinite(table.run()[:, 1]).all()


def test_a_run_whose_engine_gives_not_one_number_ends_with_its_table():
    with pytest.raises(ModelFailure, match="not one number came: a text says unload") as failed:
        score(fake("a", "b"), rows("unload", "text"), progress=False)
    assert statuses(failed.value.table) == [Status.TRANSPORT] * 2
    assert statuses(score([*fake("a"), default_bank().get("output_words")], rows("unload"), progress=False), 1) == [
        Status.OK
    ]
