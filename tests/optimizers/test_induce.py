"""The whole job: split, induce, evaluate, record; nothing of the test side leaks into the fit."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.induce import induce, prepare
from metricsmith.optimizers.passes import METRIC
from planted import TASK, planted_rows

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
FIVE = {"criterion": 2, "rubric": 1, "examples": 1, "tuned": 1}  # every family of judges


def table(unrated=0, **changes):
    rows = planted_rows(**changes)
    rows += [row.copy(id=f"u{n}", group=f"u{n}") for n, row in enumerate(planted_rows(rated=False)[:unrated])]
    frame = pd.DataFrame(
        {
            "id": [row.id for row in rows],
            "group": [row.group for row in rows],
            "input": [row.input for row in rows],
            "output": [row.output for row in rows],
            "reference": [row.references[0] for row in rows],
            "rating": [row.get("rating") for row in rows],
            "good": [row["columns"]["good"] for row in rows],
            "junk": [row["columns"]["junk"] for row in rows],
        }
    )
    return read_table(frame, target="rating", task=TASK.description, scale="1:5", metric_columns=["good", "junk"])


def optimizer(**options):
    return AutoMetrics(metrics=BANK, **options)


@pytest.fixture(scope="module")
def done():
    return induce(table(unrated=4), optimizer(n=4), split="holdout")


def test_the_held_out_agreement_is_real_and_tested_by_group(done):
    record = done.record
    assert record.evaluation == "holdout"
    assert record.rows == {"rated": 90, "train": 63, "test": 27, "unrated": 4}
    assert record.test.n == 27
    assert record.test.groups == 9
    assert record.test.kendall_tau_b > 0.5
    assert record.test.ci_low < record.test.kendall_tau_b < record.test.ci_high
    assert record.test.p_value < 0.05


def test_no_group_stands_on_both_sides(done):
    sides = {}
    for row in done.record.data:
        if row.split != "unrated":  # these have inputs of rated rows
            sides.setdefault(row.group, set()).add(row.split)
    assert all(len(splits) == 1 for splits in sides.values())


def test_test_ratings_do_not_touch_the_fit():
    spoiled = table()
    honest = induce(spoiled, optimizer(), split="holdout").metric
    test_ids = {row.id for row in induce(spoiled, optimizer(), split="holdout").record.data if row.split == "test"}
    for row in spoiled.rows:
        if row.id in test_ids:
            row["rating"] = 6.0 - row["rating"]
    assert induce(spoiled, optimizer(), split="holdout").metric.combination == honest.combination


def test_the_record_agrees_with_the_metric_on_every_row(done):
    rows = {row.id: row for row in table(unrated=4).rows}
    again = done.metric.judge_batch([rows[row.id] for row in done.record.data])
    assert [judgement.raw for judgement in again] == [row.prediction for row in done.record.data]


def test_unrated_rows_are_scored_and_never_filled_in(done):
    unrated = [row for row in done.record.data if row.split == "unrated"]
    assert [row.rating for row in unrated] == [None] * 4
    assert all(row.prediction is not None for row in unrated)


def test_baselines_stand_beside_it(done):
    assert set(done.record.baselines) == {
        FULL,
        "PLS, n = 5 (paper)",
        "best single candidate",
        "output length in words",
    }
    assert all(block.n == 27 for block in done.record.baselines.values())
    assert METRIC not in done.record.baselines
    assert set(done.record.differences) == set(done.record.baselines)
    for label, apart in done.record.differences.items():
        assert (apart.n, apart.groups) == (27, done.record.test.groups)
        gap = done.record.test.kendall_tau_b - done.record.baselines[label].kendall_tau_b
        assert apart.kendall_tau_b == pytest.approx(gap)
        assert apart.ci_low <= gap <= apart.ci_high


def test_the_planted_column_is_chosen_and_stability_is_reported(done):
    names = [component.name for component in done.record.components]
    assert "good" in names
    assert "junk" not in names[:2]
    assert all(0 <= component.selected_share <= 1 for component in done.record.components)
    weights = [abs(component.weight) for component in done.record.components]
    assert weights == sorted(weights, reverse=True)


def test_the_same_seed_gives_the_same_and_another_splits_otherwise(done):
    again, other = (induce(table(unrated=4), optimizer(n=4, seed=seed), split="holdout") for seed in (0, 1))
    assert again.metric.fingerprint() == done.metric.fingerprint()
    assert again.record.test == done.record.test
    assert {r.id for r in other.record.data if r.split == "test"} != {
        r.id for r in done.record.data if r.split == "test"
    }


def test_the_signature_names_data_seed_and_method(done):
    assert all(part in done.record.signature for part in ("sha256:", "seed 0", "PriorRidge", "no model", "held out"))


def test_everything_is_written(done, tmp_path):
    done.write(tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["metric.json", "report.html", "report.json", "report.md", "scores.csv"]
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert {
        "schema_version", "task", "signature", "evaluation", "rows", "components", "train", "test", "baselines",
        "judgements", "usage", "warnings",
    } <= set(report)  # fmt: skip
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(scores) == 94
    assert set(scores.columns) >= {"id", "group", "split", "rating", "prediction", "good"}


def test_cross_validation_tests_every_row_and_fits_on_all():
    done = induce(table(), optimizer(), cv=5)
    record = done.record
    assert record.evaluation == "cv"
    assert (record.rows["train"], record.rows["test"], record.test.groups) == (90, 90, 30)
    assert record.test.ci_low < record.test.kendall_tau_b < record.test.ci_high
    held_out = np.array([row.prediction for row in record.data])
    refitted = np.array([judgement.raw for judgement in done.metric.judge_batch(table().rows)])
    assert not np.allclose(held_out, refitted)
    assert all(math.isfinite(component.tau_test) for component in record.components)


def test_a_test_table_of_its_own_is_used_whole():
    record = induce(table(), optimizer(), test=table(seed=7, sources=12, first=100)).record
    assert (record.evaluation, record.rows["train"], record.rows["test"]) == ("file", 90, 36)


def test_a_test_table_that_shares_rows_with_the_training_table_is_refused():
    with pytest.raises(OptionError, match="stands in the training rows too"):
        induce(table(), optimizer(), test=table())


def test_too_few_held_out_groups_are_called_too_few():
    record = induce(table(sources=8), optimizer(), split="holdout").record
    assert record.test.groups < 5
    assert any("too few for an interval" in warning for warning in record.warnings)


def test_without_test_rows_a_warning_comes_first():
    record = induce(table(), optimizer(), fraction=0).record
    assert record.evaluation == "train_only"
    assert record.test.n == 0
    assert math.isnan(record.test.kendall_tau_b)
    assert "No held-out rows" in record.warnings[0]


def test_chance_agreement_is_called_chance():
    frame = table(noise=0.0)
    random = np.random.default_rng(3)
    for row in frame.rows:
        row["rating"] = float(random.integers(1, 6))
        row["columns"] = {"good": random.normal(), "junk": random.normal()}
    record = induce(frame, optimizer(bank="none")).record
    assert record.test.p_value > 0.05
    assert any("cannot be told from chance" in warning for warning in record.warnings)


def test_cv_and_a_test_table_exclude_each_other():
    with pytest.raises(OptionError, match="exclude each other"):
        induce(table(), optimizer(), cv=3, test=table(seed=1))


def with_model(answer=scripted, faults=None, **options):
    with serve(answer, **(faults or {})) as server:
        lm = server.lm()
        done = induce(table(unrated=3), optimizer(lm=lm, bank="all", **options), split="holdout")
    return done, server


def test_with_a_model_the_full_path_runs_and_every_request_is_counted():
    done, server = with_model(n=4, generators=FIVE)
    record = done.record
    assert record.usage["requests"] == server.requests
    assert {component.kind for component in record.components} & {"criterion_judge", "rubric_judge"}
    assert "plain mean of declared judges" in record.baselines
    assert record.judgements["ok"] == record.judgements["requested"]
    assert any(row.feedback for row in record.data)


def test_under_faults_it_ends_says_what_failed_and_enters_no_failure_as_a_number():
    done, server = with_model(faults={"server_errors": 0.25, "malformed": 0.15}, generators=FIVE)
    record = done.record
    assert record.judgements["transport"] + record.judgements["unparsable"] > 0
    assert record.judgements["requested"] == sum(v for k, v in record.judgements.items() if k != "requested")
    assert record.usage["requests"] == server.requests
    assert any("judgements failed" in warning for warning in record.warnings)
    assert record.failures
    for row in record.data:
        for value in row.values.values():
            assert value is None or math.isfinite(value)


def test_the_estimate_covers_an_undisturbed_run():
    done, server = with_model()
    estimated = done.record.usage["estimated"]["requests"]
    assert server.requests <= estimated <= 1.2 * server.requests  # equal texts are judged once; tuning may send less


def test_a_broken_model_stops_the_run():
    with pytest.raises(ModelFailure):
        with_model(faults={"always": 500})


def test_the_plan_asks_nothing():
    with serve(scripted) as server:
        text = prepare(table(), optimizer(lm=server.lm(), bank="all")).plan()
    assert server.requests == 0
    assert "17 generated judges" in text
    assert "requests: " in text
    assert "nothing was sent" in text


def columns_only(**options):
    return AutoMetrics(bank="none", **options)


def test_folds_follow_the_seed_and_keep_groups_whole():
    first, same, other = (induce(table(), columns_only(seed=seed), cv=4).record for seed in (0, 0, 1))
    predictions = [[row.prediction for row in record.data] for record in (first, same, other)]
    assert predictions[0] == predictions[1] != predictions[2]
    with pytest.raises(DataError, match="group"):
        induce(table(sources=4), columns_only(), cv=5)


def test_the_fraction_is_that_of_the_rows_held_out():
    rows = induce(table(), columns_only(), fraction=0.5).record.rows
    assert (rows["train"], rows["test"]) == (45, 45)


def test_the_optimizers_task_goes_before_the_tables():
    task = type(TASK)("Other words.", "rating", TASK.scale)
    assert induce(table(), AutoMetrics(task, bank="none")).metric.task == task
    assert induce(table(), columns_only()).metric.task.description == TASK.description


def test_the_estimate_counts_a_ranking_without_judges():
    with serve(scripted) as server:
        done = induce(table(), optimizer(lm=server.lm(), bank="existing", k=2))
    assert done.record.usage["estimated"]["requests"] == done.record.usage["requests"] == server.requests == 1


def test_no_judges_asked_for_means_no_request():
    with serve(scripted) as server:
        done = induce(table(), optimizer(lm=server.lm(), bank="all", generators={}))
    assert (server.requests, done.record.usage["requests"]) == (0, 0)


def test_judges_that_fail_on_unrated_rows_are_dropped_there_and_the_metric_stays():
    def answer(prompt):
        return {"score": "none"} if "source900" in prompt.rsplit("## output ##", 1)[-1] else scripted(prompt)

    frame = table(unrated=0)
    extra = [row.copy(id=f"x{n}") for n, row in enumerate(planted_rows(sources=4, first=900, rated=False))]
    rows = [row for row in extra if "source900" in row.output]
    assert rows
    joined = replace(
        frame,
        rows=[*frame.rows, *rows],
        ratings=np.append(frame.ratings, [np.nan] * len(rows)),
        metric_values={name: np.append(v, [np.nan] * len(rows)) for name, v in frame.metric_values.items()},
    )
    with serve(answer) as server:
        record = induce(joined, optimizer(lm=server.lm(), bank="generated", generators=FIVE), split="holdout").record
    judged = {component.name for component in record.components if component.kind != "column"}
    warned = [line for line in record.warnings if line.startswith("Unrated rows: ") and "more than the 20%" in line]
    assert {line.split()[2] for line in warned} == judged
    unrated = [row for row in record.data if row.split == "unrated"]
    assert len(unrated) == len(rows)
    assert all(row.values[name] is None for row in unrated for name in judged)
