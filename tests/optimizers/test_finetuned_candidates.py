"""A finetuned metric among the candidates: trained in each pass, saved with its weights, loaded again."""

from __future__ import annotations

import pytest

import finetuning
from finetuning import TASK, lettered_rows
from metricsmith import load
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.errors import NeedsError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.cross_fitting import FOLDS
from metricsmith.optimizers.own import from_learning
from metricsmith.optimizers.recording import SignatureLine
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.saving import row_hash
from metricsmith.scoring import score

ROWS, TEST = lettered_rows(60), lettered_rows(24, seed=1)


@pytest.fixture
def network(monkeypatch):
    finetuning.without_network(monkeypatch)


def untrained(**changes):
    return FinetunedMetric(TASK, **{"method": "ridge", "encoder": "minilm", **changes})


def induced(*metrics, rows=ROWS):
    options = AutoMetrics(TASK, bank="none", metrics=metrics or [untrained()], progress=False)
    return options.compile(rows, TEST)


def test_without_a_model_and_a_request_it_predicts_new_groups(network, tmp_path):
    metric = induced()
    (component,) = metric.record.components
    assert (component.name, component.kind, component.copies) == ("finetuned", "finetuned", FOLDS)
    assert component.tau_train > 0.7  # of the cross-fitted column: what can be learned is
    assert metric.record.test.kendall_tau_b > 0.7
    assert metric.record.usage["requests"] == 0
    metric.save(tmp_path / "metric.json")
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
    again = load(tmp_path / "metric.json")
    assert again.fingerprint() == metric.fingerprint()
    for rows in (ROWS, TEST):
        assert score([again], rows).run().tolist() == score([metric], rows).run().tolist()


def test_the_report_and_the_saved_metric_differ_on_training_rows_alone(network):
    metric = induced()
    now = dict(zip([row.output for row in (*ROWS, *TEST)], score([metric], [*ROWS, *TEST]).run()[:, 0], strict=True))
    apart = {one.split: abs(one.prediction - now[one.output]) for one in metric.record.data}
    assert apart["test"] == pytest.approx(0, abs=1e-9)
    assert apart["train"] > 1e-4


def test_only_the_saved_metric_knows_the_rows_that_it_learned_from(network):
    (kept,) = induced().components
    assert set(kept.trained.learned_from) == set(map(row_hash, ROWS))
    assert from_learning(kept, RatedRows.of(ROWS, "rating")).all()
    assert not from_learning(untrained(), RatedRows.of(ROWS, "rating")).any()


def test_among_other_runs_candidates_it_is_never_weighed_by_its_own_rows(network):
    kept = induced().components[0]
    rows = [row.copy(columns={"good": row["rating"] + len(row["group"])}) for row in (*ROWS, *lettered_rows(60, 2))]
    options = AutoMetrics(TASK, bank="none", metrics=[kept], columns=["good"], progress=False)
    record = options.compile(rows).record
    assert any("learned from and never tested on" in note for note in record.notes)
    assert all(component.copies == 0 for component in record.components)


def test_a_name_that_a_column_has_gets_a_number(network):
    rows = [row.copy(columns={"finetuned": float(len(row["group"]))}) for row in ROWS]
    options = AutoMetrics(TASK, bank="none", metrics=[untrained()], columns=["finetuned"], full=True, progress=False)
    record = options.compile(rows).record
    assert {component.name for component in record.components} == {"finetuned", "finetuned_2"}
    assert any("'finetuned' is called 'finetuned_2' here" in note for note in record.notes)


def test_equal_recipes_are_one_candidate_and_others_change_the_signature(network):
    same = AutoMetrics(TASK, bank="none", metrics=[untrained(), untrained()])
    assert len(same.own) == 1
    splits = Splits("train_only", RatedRows.of(ROWS, "rating"), RatedRows.of([], "rating"))
    lines = [
        SignatureLine.of(splits, TASK, AutoMetrics(TASK, bank="none", metrics=[one])).options
        for one in (untrained(), untrained(seed=1), untrained(method="lora"))
    ]
    assert len(set(lines)) == 3


def test_an_encoder_that_is_not_here_is_said_before_any_work():
    with pytest.raises(NeedsError, match=r"metrics\[0\], finetuned: "):
        AutoMetrics(TASK, bank="none", metrics=[untrained(local="nowhere")])
