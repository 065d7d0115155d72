"""Nobody is weighed or tested by rows that it has learned from."""

from __future__ import annotations

import numpy as np
import pytest

from loopback import serve
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce, induce_splits, prepare, run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.optimizers.splitting import Division, set_apart
from metricsmith.programs.learned import learned_from
from metricsmith.programs.loading import load
from metricsmith.saving import row_hash
from metricsmith.scoring import CallableMetric, score
from metricsmith.stats.correlation import kendall_tau_b
from owned import lost, memory, words
from panels import panelled
from planted import TASK, planted_rows
from rated import as_table
from saved import criterion

ROWS = planted_rows(sources=20)  # 60 rows, three of each source
SHOWN = [row for row in ROWS if row.group in {"s1", "s4", "s9"}][::2]  # five rows of three sources
GROUPS = {"s1", "s4", "s9"}


def optimizer(*own, **options):
    return AutoMetrics(TASK, metrics=list(own), bank="none", **options)


def warnings_about(record):
    return [warning for warning in record.warnings if "Your metric" in warning]


@pytest.mark.parametrize("fraction", [0.3, 0.6])
def test_no_test_row_of_a_held_out_share_stands_in_a_group_that_was_learned_from(fraction):
    for seed in range(4):
        record = induce(as_table(ROWS), optimizer(memory(SHOWN), words, seed=seed), fraction=fraction).record
        tested = {row.group for row in record.data if row.split == "test"}
        assert tested
        assert not tested & GROUPS
        assert record.rows["train"] + record.rows["test"] == 60
        # the share is one of the 51 rows that are new to the judge
        assert abs(record.rows["test"] - fraction * 51) <= 3
    assert "9 further rows learned from and never tested on" in record.signature
    assert any("9 rated rows are learned from and never tested on" in note for note in record.notes)
    assert not warnings_about(record)


def test_nor_does_one_of_a_fold_and_every_fold_learns_from_these_rows():
    record = induce(as_table(ROWS), optimizer(memory(SHOWN), words), cv=3).record
    predicted = {row.group for row in record.data if row.prediction is not None}
    assert predicted == {row.group for row in ROWS} - GROUPS
    assert (record.test.n, record.rows["train"]) == (51, 60)
    assert record.clipped_share < 0.5  # rows without a held-out prediction are none outside the scale


def test_rows_of_the_report_stand_as_they_were_given():
    record = induce(as_table(ROWS), optimizer(memory(SHOWN), words)).record
    for split in ("train", "test"):
        ids = [row.id for row in record.data if row.split == split]
        assert ids == sorted(ids, key=[row.id for row in ROWS].index)


def test_what_a_judge_knows_by_heart_buys_it_no_weight():
    """It knows 27 of 60 ratings by heart, or their opposites: the same is learned from both."""
    shown = [row for row in ROWS if int(row.group[1:]) < 9]
    turned = [row.copy(rating=6 - row["rating"]) for row in shown]
    judges = {"right": memory(shown), "wrong": memory(turned)}
    for name in ("right", "wrong"):
        judges[f"silent, {name}"] = judges[name].deepcopy()
        judges[f"silent, {name}"].made_with = {}
    train, done = RatedRows.of(ROWS, "rating"), {}
    for name, judge in judges.items():
        sources = Options(bank="none", metrics=(judge,), columns=["good"])
        done[name] = run_pass(train, [], TASK, sources)
    place = done["right"].table.names.index("memory")
    np.testing.assert_array_equal(np.isnan(done["right"].train_values[:, place]), np.arange(60) < 27)
    assert np.isfinite(done["silent, right"].train_values).all()
    full = {name: one.fitted.rivals["PriorRidge, all candidates"].combination for name, one in done.items()}
    assert full["right"].weights == full["wrong"].weights
    assert full["silent, right"].weights != full["silent, wrong"].weights


def test_a_component_shows_its_tau_on_rows_that_are_new_to_it():
    shown = [row for row in ROWS if int(row.group[1:]) < 9]
    metric = optimizer(memory(shown), fidelity=1.0).compile(ROWS)
    induction = run_pass(RatedRows.of(ROWS, "rating"), [], TASK, Options(bank="none", metrics=(memory(shown),)))
    (component,) = metric.record.components
    values = induction.train_values[27:, 0]
    assert component.tau_train == kendall_tau_b(values, np.array([row["rating"] for row in ROWS[27:]]))
    assert component.missing == 0
    assert any("memory 27" in warning for warning in metric.record.warnings)


@pytest.mark.parametrize(
    ("sources", "left"),
    [
        (13, "7 groups"),  # 39 of 60 rows learned from leave 21 in 7 groups: the hold-out takes some of them
        (14, "18 in 6 groups"),
        (20, "0 in 0 groups"),
    ],
)
def test_where_too_little_is_new_to_a_judge_it_is_left_out_with_the_reason(sources, left):
    shown = [row for row in ROWS if int(row.group[1:]) < sources]
    record = induce(as_table(ROWS), optimizer(memory(shown), words), fraction=0.3).record
    (warning,) = warnings_about(record)
    assert warning.startswith("Your metric 'memory' is left out: it has learned from")
    assert "are fewer than 20 in 5; rate more rows, or tune on fewer" in warning
    assert sources == 13 or left in warning
    assert {component.name for component in record.components} == {"words"}
    assert record.rows["test"] == 18  # without the judge all rows can be test rows


def test_few_groups_are_too_few_however_many_rows_they_have():
    rows = planted_rows(sources=8, versions=10)
    shown = [row for row in rows if int(row.group[1:]) < 4]
    (warning,) = warnings_about(optimizer(memory(shown), words).compile(rows).record)
    assert "it has learned from 40 of 80 rows or their groups, and the other 40 in 4 groups are fewer than" in warning


def test_of_several_judges_those_go_that_learned_most_until_enough_is_new_to_all():
    first = memory([row for row in ROWS if int(row.group[1:]) < 9], "First")
    second = memory([row for row in ROWS if int(row.group[1:]) >= 16], "Second")
    third = memory([row for row in ROWS if int(row.group[1:]) in range(9, 16)], "Third")
    rated, given = RatedRows.of(ROWS, "rating"), []

    def divide(learned):
        given.append(learned)
        return Splits("train_only", rated, rated.take([]))

    sides, kept = set_apart([first, second, third], rated, divide)
    assert [metric.name for metric in kept] == ["second", "third"]
    assert len(given) == 1
    assert given[0].sum() == 3 * (4 + 7)
    assert [warning.split("'")[1] for warning in sides.warnings] == ["first"]


def test_test_rows_of_a_file_that_a_judge_learned_from_are_left_out_of_it():
    new = planted_rows(sources=12, seed=5, first=50)
    judge = memory([row for row in new if row.group in {"s50", "s51"}])
    metric = optimizer(judge, words).compile(ROWS, new)
    assert metric.record.test.n == 30
    assert {row.group for row in metric.record.data if row.split == "test"}.isdisjoint({"s50", "s51"})
    assert "6 test rows are left out: your metrics have learned from their groups" in metric.record.notes
    record = induce(as_table(ROWS), optimizer(judge, words), test=as_table(new)).record
    assert record.test.n == 30
    all_of_it = optimizer(memory(new), words).compile(ROWS, new).record
    assert all_of_it.test.n == 36
    assert "it has learned from 36 of 36 rows or their groups" in warnings_about(all_of_it)[0]


def test_a_judge_that_does_not_say_what_it_learned_from_is_taken_with_a_warning():
    silent = memory(SHOWN)
    silent.made_with = {}
    metric = optimizer(silent, words).compile(ROWS)
    assert warnings_about(metric.record) == [
        "Your metric 'memory' has learned from rated rows and does not say which: if they are among these, its weight "
        "and every figure are too good. Tune it again with this version, or on other rows."
    ]
    assert not warnings_about(optimizer(memory(), words).compile(ROWS).record)


def test_an_induced_metric_says_what_it_was_fitted_to_and_can_be_a_candidate(tmp_path):
    first = optimizer(lost, words).compile(ROWS[:27])
    assert learned_from(first) == {row_hash(row) for row in ROWS[:27]}
    first.save(tmp_path / "first.json")
    again = load(tmp_path / "first.json", functions={"lost": lost, "words": words})
    assert learned_from(again) == learned_from(first)
    second = optimizer(again).compile(ROWS)
    assert [component.name for component in second.components] == ["induced"]
    done = run_pass(RatedRows.of(ROWS, "rating"), [], TASK, Options(bank="none", metrics=(again,)))
    np.testing.assert_array_equal(np.isnan(done.train_values[:, 0]), np.arange(60) < 27)


@pytest.mark.parametrize("cv", [None, 2])
def test_own_judges_requests_are_estimated_and_are_what_is_sent(cv, tmp_path):
    rows = [*ROWS[:24], *planted_rows(sources=1, seed=7, first=70, rated=False)]
    with serve(panelled) as server:
        own = [criterion(), words, "rouge1_f"]
        runner = AutoMetrics(TASK, metrics=own, bank="none", lm=server.lm(), n=3)
        said = prepare(as_table(rows), runner, Division(cv=cv)).plan()
        assert server.requests == 0
        expected = 24 + 3  # the rated rows, once for all folds, and three unrated ones
        assert f"requests: {expected:,}," in said
        assert "3 of your own" in said
        record = induce(as_table(rows), runner, cv=cv).record
    assert record.usage["estimated"]["requests"] == expected
    assert server.requests == record.usage["requests"] == expected


def test_the_engine_keeps_own_judgements_in_the_store(tmp_path):
    with serve(panelled) as server:
        runner = AutoMetrics(TASK, metrics=[criterion()], bank="none", lm=server.lm(), store=tmp_path / "s.db")
        metric = runner.compile(ROWS[:24])
        assert server.requests == 24
        table = score(metric.components, ROWS[:24], lm=server.lm(), store=tmp_path / "s.db", progress=False)
    assert server.requests == 24
    assert table.counts()["ok"] == 24


def test_what_a_judge_learned_from_is_no_part_of_a_fingerprint_or_signature():
    marked, silent = memory(SHOWN), memory(SHOWN)
    silent.made_with = {}
    assert marked.fingerprint() == silent.fingerprint()
    sides = Splits("train_only", RatedRows.of(ROWS, "rating"), RatedRows.of([], "rating"))
    metric = induce_splits(sides, TASK, Options(bank="none", metrics=(CallableMetric(words),))).metric
    before = metric.fingerprint()
    metric.made_with = {}
    assert metric.fingerprint() == before
