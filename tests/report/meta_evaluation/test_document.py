"""The report of a meta-evaluation: cells, tables, the sentence above them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from meta_evaluations import FULL, record
from metricsmith.meta_evaluation import MEASURES, ChanceFloor, MetricResult, TaskResult
from metricsmith.report.blocks import TextTable
from metricsmith.report.meta_evaluation.document import (
    MEANINGS,
    MetaEvaluationDocument,
    compared_metrics,
    mean_rater,
    meta_evaluation_verdict,
    metric_cells,
    overview,
    p_value_table,
    task_caution,
    task_columns,
)
from metricsmith.stats.resampling import Interval


def p_values_of(task):
    return p_value_table([one.name for one in task.metrics if one.rank is not None], task.p_values)


def line(name, value, rank, p=0.005):
    return MetricResult(
        name, value, Interval(value - 0.1, value + 0.1), ChanceFloor(value, 0.4, 0.3, 0.5, p, 9, 0), rank
    )


def task(name, *lines):
    return TaskResult(name, lines, (), tuple((math.nan,) * len(lines) for _ in lines))


def test_the_overview_is_table_2_of_the_paper():
    head, rows = overview(FULL)
    assert head == ("metric", "#", "average", "#", "spa", "#", "acc-t")
    assert rows == [
        ("gemba", "1", ".765", "1", ".930", "2", ".600"),
        ("x<b>", "1", ".765", "1", ".920", "1", ".610"),
        ("flat", "–", "undefined", "2", ".500", "–", "undefined"),
        ("another rater (mean)", "–", ".575", "–", ".570", "–", ".580"),
    ]


def test_raters_are_one_row_with_the_means_of_what_is_defined():
    raters = (
        line("slot 0", 0.5, None),
        replace(line("slot 1", 0.7, None, p=0.3), used=9),
        line("slot 2", math.nan, None),
    )
    mean = mean_rater(TaskResult("acc", (line("a", 0.9, 1),), raters, ((math.nan,),)))
    assert (mean.name, mean.value, mean.rank) == ("another rater (mean)", pytest.approx(0.6), None)
    assert (mean.interval.low, mean.interval.high) == (pytest.approx(0.5), pytest.approx(0.7))  # .4 to .6, .6 to .8
    assert (mean.chance.mean, mean.chance.p_value) == (pytest.approx(0.4), 0.3)
    alone = mean_rater(TaskResult("acc", (), raters[2:], ()))
    assert (alone.name, math.isnan(alone.value)) == ("another rater (mean)", True)


def test_a_rating_and_a_metric_of_one_name_are_told_apart():
    same = record(task("acc", line("mqm", 0.9, 1)))
    assert meta_evaluation_verdict(same).sentence.startswith("mqm agrees with the gold rating mqm better than chance")
    assert compared_metrics(same).startswith("1 metric against the gold rating mqm: ")


def test_without_both_tasks_of_wmt24_there_is_no_average():
    head, rows = overview(record(FULL.tasks[1]))
    assert head == ("metric", "#", "acc-t")
    assert rows[0] == ("x<b>", "1", ".610")


def test_cells_follow_their_columns():
    spa, acc = FULL.tasks
    assert task_columns(spa) == ("cluster", "spa", "95 %", "chance", "p", "± draws", "on")
    assert metric_cells(spa, spa.metrics[0]) == ("1", ".930", ".890 to .960", ".400", ".005", ".0011", "104")
    found = dict(zip(task_columns(acc), metric_cells(acc, acc.metrics[0]), strict=True))
    assert found["ε"] == "0.25"
    assert metric_cells(acc, acc.metrics[2]) == ("–", "undefined", "–", "–", "–", "–", "104")
    assert metric_cells(acc, acc.raters[0])[-1] == "104 + 3"
    pooled = task("tau-b", line("a", 0.5, 1))
    assert task_columns(pooled) == ("cluster", "tau-b", "95 %", "chance", "p", "on")
    assert metric_cells(pooled, pooled.metrics[0])[-1] == "–"


def test_p_values_stand_in_the_upper_triangle():
    assert p_values_of(FULL.tasks[0]) == (
        ("better than", "x<b>", "flat"),
        [("gemba", ".010", ".020"), ("x<b>", "", ".030")],
    )
    assert p_values_of(FULL.tasks[1]) == (("better than", "gemba"), [("x<b>", ".010")])
    assert p_values_of(task("acc", line("a", 0.5, 1)))[1] == []
    assert p_values_of(TaskResult("acc", (), (), ()))[1] == []


def test_a_dash_stands_for_two_metrics_that_were_not_tested():
    nan = math.nan
    three = TaskResult(
        "acc", tuple(line(name, 0.5, 1) for name in "abc"), (), ((nan, 0.01, nan), (nan, nan, 0.2), (nan,) * 3)
    )
    assert p_values_of(three)[1] == [("a", ".010", "–"), ("b", "", ".200")]


def test_a_cluster_under_the_test_of_pairs_comes_with_a_caution():
    spa, acc = FULL.tasks
    assert task_caution("pairs", acc) == (
        "The clusters of acc-t rest on WMT's test, which told equally good metrics apart in 17\u00a0% of simulated "
        "runs at .05; the test that exchanges scores (--swap scores) did so in 5.5\u00a0%: use it before saying that "
        "one metric beats another by a little."
    )
    assert task_caution("pairs", spa) == ""
    assert task_caution("scores", acc) == ""
    assert task_caution("pairs", task("acc", line("a", 0.5, 1), line("b", 0.4, 2))) == ""
    assert task_caution("pairs", task("acc-t", line("a", 0.5, 1))) == ""


def test_p_values_of_many_metrics_are_left_to_the_report():
    def printed(number):
        spa, acc = FULL.tasks
        more = tuple(line(f"metric {place}", 0.5, 1) for place in range(number - len(spa.metrics)))
        many = replace(spa, metrics=(*spa.metrics, *more), p_values=((0.5,) * number,) * number)
        return MetaEvaluationDocument(replace(FULL, tasks=(many, acc))).terminal(None)

    tables, elsewhere = [], []
    for number in (10, 11):
        said = printed(number)
        tables.append(sum(isinstance(one, TextTable) and one.head[0] == "better than" for one in said))
        elsewhere.append(sum("p-values of every two" in one for one in said if isinstance(one, str)))
    assert (tables[0] - tables[1], elsewhere) == (1, [0, 1])


def test_every_measure_has_a_meaning():
    assert set(MEANINGS) == set(MEASURES)


def test_the_setting_counts_what_was_compared():
    assert compared_metrics(FULL) == "3 metrics against mqm: 300 outputs of 3 systems on 104 segments in 30 documents."
    assert "segments." in compared_metrics(record(*FULL.tasks, documents=0))


BEST = line("a", 0.9, 1)


@pytest.mark.parametrize(
    ("tasks", "tone", "says"),
    [
        ([task("acc", BEST, line("b", 0.8, 2))], "good", "a agrees best with mqm (acc .90, 95\u00a0% interval .80 "),
        ([task("acc", BEST, line("b", 0.8, 2))], "good", "on acc its lead is more than chance."),
        ([task("acc", BEST, line("b", 0.8, 1))], "unsure", "on acc it cannot be told from b."),
        (
            [task("acc", BEST, *(line(name, 0.8, 1) for name in "bcdef"))],
            "unsure",
            "cannot be told from b, c, d and 2 more.",
        ),
        (
            [task(name, BEST, line("b", 0.8, 2)) for name in ("spa", "acc-t")],
            "good",
            "(average of spa and acc-t .90); on spa and acc-t its lead is more than chance.",
        ),
        (
            [task("spa", BEST, line("b", 0.8, 2)), task("acc-t", line("b", 0.7, 1), line("a", 0.65, 2))],
            "unsure",
            "on spa its lead is more than chance; on acc-t it stands in cluster 2.",
        ),
        ([task("acc", BEST)], "good", "a agrees with mqm better than chance (acc .90"),
        ([task("acc", line("a", 0.4, 1, p=0.2))], "bad", "a comes first (acc .40, 95\u00a0% interval .30 to .50)"),
        ([task("acc", line("a", math.nan, None))], "unsure", "No metric has a defined agreement with mqm on acc."),
        ([task("tau-b", BEST, line("b", 0.8, 2)), task("acc", line("b", 0.9, 1), BEST)], "good", "(tau-b .90"),
    ],
)  # fmt: skip
def test_the_verdict_claims_no_more_than_the_tests_support(tasks, tone, says):
    verdict = meta_evaluation_verdict(record(*tasks))
    assert verdict.tone == tone
    assert says in verdict.sentence
