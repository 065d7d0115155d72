"""The record: counted once and completely, with every warning that is due and none that is not."""

from __future__ import annotations

import math
from dataclasses import replace

import dspy
import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.optimizers.evaluation import Evaluation
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.passes import METRIC
from metricsmith.optimizers.recording import record_run
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.records import Judgement, Scale, Status, Task, Usage
from metricsmith.scoring import score
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.correlation import kendall_tau_b

TASK = Task("Rewrite.", "rating", Scale(1, 5))
GOOD = Agreement(30, 12, 0.6, 0.4, 0.8, 0.01, 0.6, 0.6)


def rows(count, seed=0):
    """Two columns: `up` rises with the rating, `down` falls with it."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        quality = random.uniform(-2, 2)
        columns = {"up": quality + random.normal(0, 1), "down": -quality + random.normal(0, 1)}
        made.append(make_row("o", rating=3 + quality, id=f"{seed}-{number}", group=f"g{number}", columns=columns))
    return made


TRAIN, TEST = rows(30), rows(20, seed=1)


def inducted(train=TRAIN, test=TEST):
    options = Options(bank="none", columns=["up", "down"], n=2)
    return run_pass(RatedRows.of(train, "rating"), test, TASK, options)


@pytest.fixture(scope="module")
def induction():
    return inducted()


def record(induction, test=GOOD, unrated=(), **changes):
    settings = {"kind": "holdout", "baselines": {}, "test_rows": RatedRows.of(TEST, "rating"), **changes}
    metric = induction.metric("line")
    return record_run(
        induction,
        metric,
        Evaluation(test=test, **settings),
        score(metric.components, unrated, progress=False),
        Splits("holdout", induction.train, settings["test_rows"], notes=("a note",)),
        estimated=Usage(7, 70, 700, 0.7),
        seconds=1.23456,
    )


def test_good_agreement_needs_no_warning(induction):
    assert record(induction).warnings == ()


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"p_value": 0.06}, "cannot be told from chance (p = .060)"),
        ({"p_value": math.nan}, "cannot be told from chance"),
        ({"ci_low": -0.01}, "interval of the held-out tau-b includes 0"),
        ({"ci_low": math.nan}, "interval of the held-out tau-b includes 0"),
        ({"groups": 9}, "Only 9 held-out groups"),
    ],
)
def test_weak_evidence_is_called_weak(induction, changes, warning):
    (only,) = record(induction, test=replace(GOOD, **changes)).warnings
    assert warning in only


@pytest.mark.parametrize("changes", [{"p_value": 0.05}, {"groups": 10}])
def test_evidence_at_the_bar_is_not_called_weak(induction, changes):
    assert record(induction, test=replace(GOOD, **changes)).warnings == ()


def test_baselines_are_named_by_what_the_interval_of_the_difference_says_and_the_full_model_is_no_rival(induction):
    apart = {
        "worse": Difference(20, 12, 0.2, 0.1, 0.3),
        "short": Difference(20, 12, -0.1, -0.2, -0.01),
        "ahead": Difference(20, 12, 0.06, -0.02, 0.13),
        "behind": Difference(20, 12, -0.05, -0.13, 0.03),
        "rests": Difference(20, 12, 0.3),
        "undefined": Difference(20, 12),
        FULL: Difference(20, 12, -0.2, -0.3, -0.1),
    }
    blocks = {label: replace(GOOD, kendall_tau_b=0.6 - one.kendall_tau_b) for label, one in apart.items()}
    done = record(induction, baselines=blocks, differences=apart)
    assert done.warnings == (
        "On these held-out rows the metric does worse than: short (−.10, 95\u00a0% interval −.20 to −.01).",
        "These held-out rows do not show that the metric beats: ahead (+.06, 95\u00a0% interval −.02 to .13), "
        "behind (−.05, 95\u00a0% interval −.13 to .03), rests (+.30, no interval).",
    )
    assert done.differences == apart
    # without differences (cross-validation has none yet) nothing is claimed
    assert record(induction, baselines=blocks).warnings == ()


def test_without_held_out_rows_the_first_warning_says_so_and_no_baseline_is_compared():
    better = {"short": replace(GOOD, kendall_tau_b=0.9)}
    nothing = Agreement(0, 0)
    none = RatedRows.of([], "rating")
    apart = {"short": Difference(20, 12, -0.3, -0.4, -0.2)}
    done = record(
        inducted(test=[]), test=nothing, kind="train_only", baselines=better, test_rows=none, differences=apart
    )
    (warning,) = done.warnings
    assert warning.startswith("No held-out rows")


def test_judgements_and_usage_of_the_folds_are_counted_with_the_rest(induction):
    folds = (
        Judgement("j", 3.0, 0.5, usage=Usage(1, 10, 5, 0.25)),
        Judgement("j", status=Status.REFUSED, error="no", usage=Usage(2, 20, 0, None)),
        Judgement("j", status=Status.SKIPPED, error="row has no input"),
    )
    done = record(induction, judgements=folds, usage=Usage(7, 70, 13, 0.75))
    # 50 rows by two columns, and the three of the folds.
    assert done.judgements == {
        "requested": 103, "ok": 101, "unparsable": 0, "out_of_range": 0, "refused": 1, "transport": 0, "budget": 0,
        "skipped": 1,
    }  # fmt: skip
    usage = dict(done.usage)
    assert usage.pop("estimated") == {"requests": 7, "prompt_tokens": 70, "completion_tokens": 700, "cost": 0.7}
    assert usage == {"requests": 7, "prompt_tokens": 70, "completion_tokens": 13, "cost": 0.75, "seconds": 1.235}
    assert "1 of the judgements failed; they count as missing, not as low." in done.warnings


def test_failures_are_one_line_per_metric_and_status_with_the_first_message(induction):
    folds = [
        Judgement("j", status=Status.REFUSED, error="first"),
        Judgement("j", status=Status.REFUSED, error="second"),
        Judgement("j", status=Status.TRANSPORT, error="down"),
        Judgement("k", status=Status.REFUSED, error="third"),
    ]
    assert record(induction, judgements=tuple(folds)).failures == (
        "j: 2 refused, first: first",
        "j: 1 transport, first: down",
        "k: 1 refused, first: third",
    )


def test_candidates_usage_is_counted(induction):
    paid = replace(induction, candidates=replace(induction.candidates, usage=Usage(5, 50, 5, 1.0)))
    assert record(paid).usage["requests"] == 5


def test_unrated_rows_are_scored_and_counted_apart(induction):
    unrated = [dspy.Example(output="o", columns={"up": 1.0, "down": 0.0})]
    done = record(induction, unrated=unrated)
    assert done.rows["unrated"] == 1
    assert done.judgements["requested"] == 102
    assert (done.data[-1].split, done.data[-1].rating) == ("unrated", None)
    assert done.data[-1].prediction == induction.metric().judge_batch(unrated)[0].raw


def test_components_show_their_weight_direction_and_correlation_on_either_side(induction):
    components = {component.name: component for component in record(induction).components}
    weights = dict(zip(induction.fitted.small.names, induction.fitted.small.weights, strict=True))
    assert (components["up"].direction, components["down"].direction) == ("+", "-")
    for name, component in components.items():
        assert component.weight == weights[name]
        for side, tau in ((TRAIN, component.tau_train), (TEST, component.tau_test)):
            assert tau == kendall_tau_b([row["columns"][name] for row in side], [row["rating"] for row in side])


def test_missing_scores_are_counted_on_both_sides_and_imputed_ones_on_the_training_side():
    train, test = rows(30), rows(20, seed=1)
    for row in (train[3], train[4], test[5]):
        row["columns"]["up"] = math.nan
    done = record(inducted(train, test), test_rows=RatedRows.of(test, "rating"))
    missing = {component.name: component.missing for component in done.components}
    assert missing == {"up": 3, "down": 0}
    (imputed,) = [warning for warning in done.warnings if "count as average" in warning]
    assert "2" in imputed
    assert done.judgements["skipped"] == 3


def test_the_clipped_share_is_that_of_predictions_off_the_scale():
    test = rows(20, seed=1)
    for row in test[:5]:
        row["columns"] = {"up": 99.0, "down": -99.0}
    done = record(inducted(TRAIN, test), test_rows=RatedRows.of(test, "rating"))
    predictions = [row.prediction for row in done.data]
    assert len(predictions) == 50
    outside = sum(value < 1 or value > 5 for value in predictions)
    assert 0 < outside < 25
    assert done.clipped_share == outside / 50


def test_rows_keep_id_split_values_and_contributions(induction):
    done = record(induction)
    assert [row.split for row in done.data] == ["train"] * 30 + ["test"] * 20
    row = done.data[35]
    assert (row.id, row.group, row.rating) == ("1-5", "g5", TEST[5]["rating"])
    assert row.values == TEST[5]["columns"]
    intercept = induction.fitted.small.intercept
    assert intercept + sum(row.contributions.values()) == pytest.approx(row.prediction)


def test_held_out_predictions_stand_in_for_the_fit_of_all_rows():
    done = record(inducted(test=[]), kind="cv", test_rows=RatedRows.of([], "rating"), held_out_predictions=[2.5] * 30)
    assert {row.fold for row in done.data} == {0}
    assert [row.prediction for row in done.data if row.split == "train"] == [2.5] * 30


def test_agreement_with_the_training_rows_is_of_the_metrics_own_predictions(induction):
    done = record(induction)
    raw = [judgement.raw for judgement in induction.metric().judge_batch(TRAIN)]
    assert done.train.kendall_tau_b == kendall_tau_b(raw, [row["rating"] for row in TRAIN])
    assert (done.train.n, done.train.groups) == (30, 30)
    assert METRIC not in done.baselines


def test_notes_and_signature_are_passed_on(induction):
    done = record(induction)
    assert done.notes[0] == "a note"
    assert (done.signature, done.combiner) == ("line", induction.fitted.sentence)
