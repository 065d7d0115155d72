"""From matrices to a record: what it counts, warns of and signs; and its files."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from meta_evaluations import FULL
from metricsmith.meta_evaluation.ranking import FEW_METRICS
from metricsmith.report.meta_evaluation.document import (
    META_EVALUATION_FILES,
    MetaEvaluationDocument,
    write_meta_evaluation,
)
from metricsmith.report.meta_evaluation.record import meta_evaluate
from metricsmith.report.render import render_html, render_markdown
from score_tables import SYSTEMS, matrix

DOCUMENTS = [f"d{segment // 3}" for segment in range(18)]


def evaluate(**changes):
    settings = {"metrics": {"near": matrix("near")}, "gold": matrix("mark"), "systems": SYSTEMS, "resamples": 20}
    return meta_evaluate(**{**settings, **changes})


def test_the_record_counts_and_signs_what_it_rests_on():
    gold = matrix("mark")
    gold[0, 0] = math.nan
    record = evaluate(
        gold=gold, documents=DOCUMENTS, target="mark", sources={"scores": "s.csv sha256:0", "gold": "g.csv sha256:1"},
        tasks=["acc"], decimals=6, seed=4, notes=["first"],
    )  # fmt: skip
    assert (record.segments, record.outputs, record.documents) == (18, 71, 6)
    assert record.notes == ("first",)
    for part in ("scores s.csv sha256:0 | gold g.csv sha256:1", "4 systems, 18 segments", "tasks acc |", "seed 4, 20",
                 "differences rounded to 6 decimals"):  # fmt: skip
        assert part in record.signature
    assert "intervals rest on 6 groups of segments" in record.warnings[0]
    assert "differences as floats" in evaluate(tasks=["acc"]).signature


def test_unknown_documents_are_noted():
    record = evaluate(tasks=["acc"])
    assert record.documents == 0
    assert "segments are taken to be independent" in record.notes[0]
    assert "rest on 18 groups" in record.warnings[0]


def test_options_reach_the_measures():
    halves = {"near": np.round(matrix("near"), 3)}
    assert evaluate(seed=1).tasks[0].metrics[0].value != evaluate(seed=2).tasks[0].metrics[0].value
    assert evaluate(metrics=halves, decimals=0).tasks[1].metrics[0].epsilon % 1 == 0
    raters = {"slot 0": matrix("mark"), "slot 1": matrix("far")}
    assert [one.name for one in evaluate(raters=raters, tasks=["acc"]).tasks[0].raters] == list(raters)


def test_documents_reach_the_intervals():
    whole, single = (evaluate(documents=labels, tasks=["acc"]).tasks[0].metrics[0] for labels in (DOCUMENTS, ()))
    assert whole.value == single.value
    assert whole.interval != single.interval


def test_a_metric_that_is_as_good_as_chance_is_not_called_worse():
    dice = np.random.default_rng(1).normal(size=(4, 18))
    record = evaluate(metrics={"dice": dice, "turned": -dice}, tasks=["tau-b"])
    assert min(one.value for one in record.tasks[0].metrics) < 0
    assert not any("less than chance" in warning for warning in record.warnings)


def test_a_metric_below_chance_and_one_without_a_value_are_warned_of():
    metrics = {"turned": -matrix("mark"), "flat": np.ones((4, 18)), "near": matrix("near")}
    record = evaluate(metrics=metrics, tasks=["tau-b", "acc"])
    text = "\n".join(record.warnings)
    assert "turned agrees less than chance on tau-b (-1.000, chance" in text
    assert "--lower-is-better" in text
    assert "near agrees" not in text
    assert "undefined, because all scores are alike or no segment has enough of them: flat on tau-b" in text
    assert "flat on acc" not in text


def test_a_correlation_of_two_systems_is_withheld_with_the_reason():
    pair = {"metrics": {"near": matrix("near")[:2]}, "gold": matrix("mark")[:2], "systems": SYSTEMS[:2]}
    record = evaluate(**pair, tasks=["system-pearson", "system-accuracy"])
    assert [math.isnan(task.metrics[0].value) for task in record.tasks] == [True, False]
    assert math.isnan(record.tasks[0].metrics[0].interval.low)
    text = "\n".join(record.warnings)
    assert "system-pearson is withheld: two systems correlate 1 or -1 whatever their scores" in text
    assert "undefined, because" not in text
    assert "withheld" not in "\n".join(evaluate(tasks=["system-pearson"]).warnings)


def test_what_tests_exchange_and_which_are_made_is_signed():
    metrics = {"near": matrix("near"), "also": matrix("mark") + np.random.default_rng(1).normal(size=(4, 18))}
    pairs, scores = (evaluate(metrics=metrics, tasks=["acc-t"], swap=swap) for swap in ("pairs", "scores"))
    assert pairs.tasks[0].p_values[0][1] != scores.tasks[0].p_values[0][1]
    assert "tests exchange scores" in scores.signature
    assert "exchange" not in pairs.signature
    random = np.random.default_rng(0)
    many = {str(place): matrix("near") + random.normal(size=(4, 18)) for place in range(FEW_METRICS + 1)}
    deciding, every = (evaluate(metrics=many, tasks=["acc"], tests=tests) for tests in (None, "all"))
    assert deciding.signature.endswith("| deciding tests only")
    assert "tested only where that decides a cluster" in deciding.notes[-1]
    assert "deciding" not in every.signature + "".join(every.notes)
    assert evaluate(metrics=metrics, tasks=["acc"], tests="deciding").signature.endswith("| deciding tests only")


def test_the_json_is_plain(tmp_path):
    write_meta_evaluation(FULL, tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(META_EVALUATION_FILES)

    def refuse(name):
        raise AssertionError(name)

    text = (tmp_path / "new" / "meta_evaluation.json").read_text("utf-8")
    content = json.loads(text, parse_constant=refuse)
    assert content["schema_version"] == 1
    assert content["tasks"][1]["metrics"][2]["value"] is None
    assert content["tasks"][0]["p_values"][0] == [None, 0.01, 0.02]
    assert content["averages"]["gemba"] == {"value": pytest.approx(0.765), "rank": 1}


def test_the_page_shows_every_task_metric_and_rater_and_fetches_nothing():
    page = render_html(MetaEvaluationDocument(FULL))
    for text in ("x&lt;b&gt;", "another rater (mean)", "undefined", ".930", "104 + 3", "flat | is undefined", "s | t",
                 "Soft pairwise accuracy", "&lt;i&gt;segment&lt;/i&gt;",
                 "Rank and value of each task, and the average of spa and acc-t",
                 "border-collapse: separate"):  # fmt: skip  # cells that stay in sight would lose collapsed borders
        assert text in page, text
    assert "<b>" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert page.count('class="plot') == 2
    assert page.count("<details>") == 2
    # The first cluster is shaded, discs in the plot: two metrics in the first task, one in the second.
    assert page.count('<tr class="own">') == page.count('class="dot main"') == 3
    assert page.count('class="zero chance"') == 7


def test_every_form_says_how_far_clusters_can_be_trusted():
    said = "told equally good metrics apart in 17"
    for render in (render_html, render_markdown):
        assert render(MetaEvaluationDocument(FULL)).count(said) == 1
        assert said not in render(MetaEvaluationDocument(replace(FULL, swap="scores")))


def test_markdown_has_the_same_figures_and_escapes_texts():
    text = render_markdown(MetaEvaluationDocument(FULL))
    assert "| x&lt;b&gt; | 1 | .765 | 1 | .920 | 1 | .610 |" in text
    assert "| another rater (mean) | – | .580 |" in text
    assert "> Warning: flat \\| is undefined" in text
    assert "| gemba | .010 | .020 |" in text
    assert text.endswith("Signature: s \\| t\n")
    widths = {}
    for row in text.splitlines():
        if row.startswith("|"):
            widths.setdefault(row.count(" |"), []).append(row)
    assert set(widths) == {2, 3, 7, 8}


def test_the_frame_has_a_line_for_each_metric_in_each_task():
    record = evaluate(metrics={"near": matrix("near"), "mark": matrix("mark")}, tasks=["acc", "pearson"])
    frame = record.to_pandas()
    assert frame[["task", "name"]].values.tolist() == [[t.task, one.name] for t in record.tasks for one in t.metrics]
    assert not frame.rater.any()
    assert frame.value[0] == record.tasks[0].metrics[0].value
    assert frame.low[0] == record.tasks[0].metrics[0].interval.low
    assert "Metrics beside gold ratings" in record._repr_html_()
