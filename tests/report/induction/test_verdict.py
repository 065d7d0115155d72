"""Sentences of the reports, and what they must not say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.records import Scale, Status, Task
from metricsmith.report.induction import verdict
from metricsmith.report.induction.costs import STATUSES, usage_example
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.verdict import (
    EVALUATIONS,
    comparison,
    few_groups,
    few_groups_apart,
    interval_outlook,
    not_beaten,
    outdone,
    outlook_sentence,
    pairs_in_order,
    run_verdict,
    undefined_reasons,
)
from metricsmith.report.render import render_markdown
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.resampling import measured_coverage
from metricsmith.stats.resampling.intervals import MEASURED

SURE = Agreement(72, 34, 0.41, 0.28, 0.52, 0.0004, 0.5, 0.5)


def judge(make_record, block=SURE, **changes):
    return run_verdict(make_record(test=block, baselines=changes.pop("baselines", {}), **changes))


def test_a_clear_result_is_one_plain_sentence(make_record):
    result = judge(make_record)
    assert result.tone == "good"
    assert result.cautions == ()
    assert result.sentence == (
        "Ranks outputs like the raters do more often than chance: "
        "tau-b .41 (95\u00a0% interval .28 to .52, p < .001) on 72 unseen rows of 34 groups."
    )


def test_few_groups_bring_the_measured_coverage_along(make_record):
    covered = math.floor(100 * measured_coverage("tau", 14))
    said = "95\u00a0% intervals of tau-b from so few groups (14) held the true value in at least "
    said += f"{covered}\u00a0% of simulated data sets."
    few = make_record(test=replace(SURE, groups=14), baselines={}, usage={})
    sentence, *below = RunDocument(few).terminal(None)
    assert sentence.endswith("of 14 groups.")  # the sentence itself stands without
    assert below.count(said) == 1
    assert judge(make_record, replace(SURE, groups=14)).tone == "good"
    # Student's interval over folds is another one.
    assert "simulat" not in "".join(map(str, RunDocument(replace(few, evaluation="cv")).terminal(None)))


def test_few_groups_are_named_once_and_only_where_there_is_an_interval(monkeypatch):
    covered = {4: math.nan, 12: 0.909, 14: 0.909, 29: 0.93, 7: 0.5, 34: None}
    monkeypatch.setattr(verdict, "measured_coverage", lambda kind, groups: covered[groups])
    blocks = [replace(SURE, groups=groups) for groups in (4, 14, 29, 14, 34, 12)]
    assert few_groups([*blocks, replace(SURE, groups=7, ci_low=math.nan)]) == [
        f"95\u00a0% intervals of tau-b from so few groups {line}"
        for line in (
            "(4) were not tried in simulations.",
            "(12 and 14) held the true value in at least 90\u00a0% of simulated data sets.",
            "(29) held the true value in at least 93\u00a0% of simulated data sets.",
        )
    ]


def test_groups_of_one_row_are_not_worth_a_word(make_record):
    assert "of 72 groups" not in judge(make_record, replace(SURE, groups=72)).sentence


@pytest.mark.parametrize(
    ("change", "caution"),
    [
        ({"p_value": 0.0501}, "above .05"),
        ({"ci_low": -0.01}, "includes 0"),
        ({"ci_low": 0.0}, "includes 0"),
        ({"p_value": math.nan}, "no p-value"),
        ({"ci_low": math.nan}, "no interval"),
    ],
)
def test_every_doubt_takes_the_verdict_down_and_says_why(make_record, change, caution):
    result = judge(make_record, replace(SURE, **change))
    assert result.tone == "unsure"
    assert result.sentence.startswith("No clear evidence")
    assert any(caution in text for text in result.cautions)


def test_a_p_value_at_the_bar_passes(make_record):
    assert judge(make_record, replace(SURE, p_value=0.05)).tone == "good"


def test_training_rows_alone_never_give_a_good_verdict(make_record):
    for record in (make_record(evaluation="train_only"), make_record(test=Agreement(0, 0))):
        result = run_verdict(record)
        assert result.tone == "unsure"
        assert result.sentence.startswith("Not tested on unseen outputs")
        assert "on the same 160 rows of 40 groups that it was fitted on" in result.sentence
        assert "unseen rows" not in result.sentence
        assert "Only training rows" in result.cautions[0]


def test_agreement_in_reverse_is_named(make_record):
    result = judge(make_record, Agreement(72, 14, -0.4, -0.5, -0.3, 0.001))
    assert result.tone == "bad"
    assert "against the raters" in result.sentence


@pytest.mark.parametrize(("rows", "reason"), [(1, "1 row with both"), (30, "equal")])
def test_an_undefined_tau_gives_no_verdict_but_its_reason(make_record, rows, reason):
    result = judge(make_record, Agreement(rows, 1))
    assert result.tone == "unsure"
    assert result.sentence.startswith("No verdict")
    assert reason in " ".join(result.cautions)
    assert "" not in result.cautions


def test_a_baseline_that_does_as_well_is_a_caution(make_record):
    for tau in (0.41, 0.6):
        result = judge(make_record, baselines={"Length": Agreement(72, 14, tau)})
        assert result.tone == "good"
        assert "Length" in result.cautions[0]
    for tau in (0.4, -0.6):  # baselines carry their training sign, so one that ranks backwards is no rival
        assert judge(make_record, baselines={"Length": Agreement(72, 14, tau)}).cautions == ()


def test_the_full_model_that_the_metric_abridges_is_no_rival(make_record):
    blocks = {"full": Agreement(72, 14, 0.9), "Length": Agreement(72, 14, 0.1)}
    assert judge(make_record, baselines=blocks, unabridged="full").cautions == ()
    assert "(Length, .10)" in comparison(make_record(test=SURE, baselines=blocks, unabridged="full"))


def test_cross_validation_says_how_rows_were_predicted(make_record):
    assert "each predicted while held out" in judge(make_record, evaluation="cv").sentence


def test_the_comparison_names_the_strongest_baseline_with_its_side(make_record):
    blocks = {"a": Agreement(9, 9, 0.2), "b": Agreement(9, 9, -0.5), "c": Agreement(9, 9)}
    assert ".21 above the strongest baseline (a, .20)" in comparison(make_record(test=SURE, baselines=blocks))
    stronger = {**blocks, "b": Agreement(9, 9, 0.5)}
    assert ".09 below the strongest baseline (b, .50)" in comparison(make_record(test=SURE, baselines=stronger))
    assert ".21 above" in comparison(make_record(test=SURE, baselines={"a": blocks["a"]}))
    assert "level with" in comparison(make_record(test=SURE, baselines={"a": SURE}))
    assert comparison(make_record(test=SURE, baselines={"c": blocks["c"]})) == ""
    assert comparison(make_record(baselines={})) == ""


def test_pairs_in_order_is_the_textbook_reading():
    # Without ties tau = 2 P(same order) - 1, so tau .4 means 70 of 100.
    assert "70 of 100" in pairs_in_order(0.4)
    assert pairs_in_order(math.nan) == ""


def test_the_prospect_follows_the_square_root():
    # Half-width (.5 - .1) / 2 = .2; twice the groups .2 / sqrt 2 = .14; four times .2 / 2 = .10.
    text = outlook_sentence(interval_outlook(Agreement(40, 10, 0.3, 0.1, 0.5)))
    assert ".20 to either side, from 10 groups" in text
    assert "about .14 with 20 and about .10 with 40 labelled groups" in text
    assert outlook_sentence([]) == ""


def test_undefined_blocks_are_listed_with_their_reason():
    lines = undefined_reasons([("fine", SURE), ("short", Agreement(1, 1)), ("flat", Agreement(9, 3))])
    assert len(lines) == 2
    assert lines[0].startswith("short: 1 row")
    assert lines[1].startswith("flat: All")


def test_the_usage_example_asks_for_what_the_components_need(make_record):
    parts = make_record().components
    assert "input=source, references=[gold]" in usage_example(make_record())
    free = replace(parts[1], card=replace(parts[1].card, needs=()))
    assert "metric(output=text).score" in usage_example(make_record(components=(free,)))
    assert "judge_batch(rows)" in usage_example(make_record(components=(replace(free, kind="column"),)))
    for record in (make_record(), make_record(components=())):
        assert len(usage_example(record).splitlines()) == 3
        compile(usage_example(record), "example", "exec")


def test_every_status_and_evaluation_has_words(make_record):
    assert {str(status) for status in Status} < set(STATUSES)
    assert set(EVALUATIONS) == {"holdout", "file", "cv", "train_only"}


def test_a_foreign_evaluation_or_scale_does_not_break_the_verdict(make_record):
    task = Task("", "errors", Scale(0, 100, higher_is_better=False))
    assert judge(make_record, task=task, evaluation="later").tone == "good"


BLOCKS = {"Length": Agreement(72, 18, 0.1), "Best | single": Agreement(72, 18, 0.36)}


def apart(gap, low=None, high=None, groups=40):
    ends = () if low is None else (low, high)
    return {"Length": Difference(72, groups, 0.3, 0.2, 0.4), "Best | single": Difference(72, groups, gap, *ends)}


@pytest.mark.parametrize(
    ("differences", "says"),
    [
        (
            apart(0.05, -0.02, 0.12),
            "stands .05 above the strongest baseline (Best | single, .36); the difference has the 95\u00a0% interval "
            "−.02 to .12, so that it may be luck.",
        ),
        (apart(0.05, 0.01, 0.09), "interval .01 to .09, so that it is more than luck."),
        (apart(-0.05, -0.09, -0.01), "stands .05 below the strongest baseline (Best | single, .36); the difference"),
        (apart(0.05), "the difference has no interval, so that it may be luck."),
        ({}, "A gap smaller than the intervals may be luck."),
    ],
)
def test_the_strongest_baseline_stands_beside_the_metric_by_the_paired_difference(make_record, differences, says):
    record = make_record(baselines=BLOCKS, differences=differences)
    assert says in comparison(record)
    assert says.replace("|", "\\|").replace("\u00a0", " ") in render_markdown(RunDocument(record))


def test_the_difference_counts_and_not_the_two_figures(make_record):
    """The metric stands at .412 on its rows and the baseline at .36 on its own; on common rows it is behind."""
    record = make_record(baselines=BLOCKS, differences=apart(-0.04, -0.1, 0.02))
    assert outdone(record) == (
        "A baseline does at least as well on the same rows: Best | single, tau-b .36; the difference has the 95\u00a0% "
        "interval −.10 to .02, so that it may be luck."
    )
    assert outdone(replace(record, differences=apart(0.04, -0.02, 0.1))) == ""
    assert outdone(replace(record, differences={})) == ""
    assert outdone(replace(record, baselines={})) == ""


def test_with_few_groups_it_is_said_how_often_such_intervals_held(make_record):
    record = make_record(baselines=BLOCKS, differences=apart(0.05, -0.02, 0.12, groups=10))
    share = int(100 * MEASURED["difference"][10])
    said = f"from so few groups (10) held the true value in at least {share}\u00a0% of simulated data sets."
    assert comparison(record).endswith(f"95\u00a0% intervals of a difference of two tau-b {said}")
    assert few_groups_apart(2).endswith("were not tried in simulations.")
    assert few_groups_apart(30) == ""


def test_nothing_is_said_of_baselines_that_are_beaten_or_undefined():
    assert not_beaten({"a": Difference(9, 9, 0.2, 0.1, 0.3), "b": Difference(9, 9)}) == []


def test_the_differences_stand_in_the_json(make_record):
    content = make_record(baselines=BLOCKS, differences=apart(0.05)).as_dict()["differences"]
    assert content["Best | single"] == {
        "n": 72, "groups": 40, "kendall_tau_b": 0.05, "ci_low": None, "ci_high": None
    }  # fmt: skip
