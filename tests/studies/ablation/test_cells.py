"""A cell of a grid is an induction on its learning rows with its test rows as the test file."""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.cli import main
from metricsmith.errors import HopelessModel, ModelFailure, OptionError
from metricsmith.model_calls.limits import Budget
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.records import Usage
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.studies.ablation import cells, division
from metricsmith.studies.ablation.cells import settled
from metricsmith.studies.ablation.grid import Setting
from metricsmith.studies.ablation.runs import GridCell
from owned import memory, words
from panels import panelled
from planted import TASK, planted_rows
from rated import as_table, rated_table

pytestmark = pytest.mark.usefixtures("loggers_as_they_were")

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
SMALL = Setting("small", bank="existing", k=2, n=2, regression="pls")
TWO = {"criterion": 2, "rubric": 1}


def rows_of(table, seed=0, rows=0):
    test = division.test_places(table, fraction=0.3, seed=seed)
    return {"learned": division.learning_places(table, test, rows, seed), "test": test, "seed": seed}


def run_cell(table, setting, options, measure="metric", run=cells.run_cell, **where):
    return run(GridCell("notices", table, setting, **where), options, measure)


def cell_usage(*arguments, **options):
    return run_cell(*arguments, run=cells.planned_cell, **options).usage


def optimizer(**options):
    return AutoMetrics(metrics=BANK, progress=False, **options)


@pytest.fixture(scope="module")
def table():
    return rated_table()


@pytest.mark.parametrize("setting", [SMALL, Setting(bank="existing", n=3), Setting("columns", bank="none", rows=20)])
def test_a_cell_is_an_induction_with_the_same_options(table, setting):
    where = rows_of(table, 3, setting.rows)
    cell = run_cell(table, setting, optimizer(), **where)
    options = {key: getattr(setting, key) for key in ("bank", "n") if getattr(setting, key)}
    if setting is SMALL:
        options |= {"k": 2, "regression": "pls"}
    learned, test = table.subset(where["learned"]), table.subset(where["test"])
    record = induce(learned, optimizer(seed=3, **options), test=test).record
    assert (cell.status, cell.setting, cell.data, cell.rows) == ("done", setting.label, "notices", setting.rows)
    assert cell.tau == record.test.kendall_tau_b
    assert (cell.interval.low, cell.interval.high) == (record.test.ci_low, record.test.ci_high)
    assert cell.components == tuple(one.name for one in record.components)
    predicted = {row.id: row.prediction for row in record.data if row.split == "test"}
    assert cell.values == (tuple(predicted[table.ids[place]] for place in where["test"]),)
    assert cell.tau == kendall_tau_b(cell.values[0], table.ratings[where["test"]])


def test_a_cell_is_the_command_on_files_of_its_rows(tmp_path, monkeypatch):
    table = rated_table(scale="1:5")
    where = rows_of(table, 2, 24)
    frame = pd.DataFrame(
        {
            "id": table.ids, "group": table.groups, "input": [row.input for row in table.rows],
            "output": [row.output for row in table.rows], "reference": [row.references[0] for row in table.rows],
            "rating": table.ratings, **table.metric_values,
        }
    )  # fmt: skip
    for side in ("learned", "test"):
        frame.iloc[where[side]].to_csv(tmp_path / f"{side}.csv", index=False)
    cell = run_cell(table, replace(SMALL, rows=24), AutoMetrics(progress=False), **where)
    options = {"bank": "existing", "k": 2, "n": 2, "regression": "pls", "seed": 2, "scale": "1:5", "out": "out"}
    monkeypatch.chdir(tmp_path)
    command = ["induce", "learned.csv", "--test", "test.csv", "--target", "rating", "--task", TASK.description]
    command += ["--metric-columns", "good", "--metric-columns", "junk"]
    command += [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    monkeypatch.setattr(sys, "argv", ["metricsmith", *command])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    told = report["test"]
    assert (cell.tau, cell.interval.low, cell.interval.high) == (told["kendall_tau_b"], told["ci_low"], told["ci_high"])
    assert cell.components == tuple(one["name"] for one in report["components"])
    with (tmp_path / "out" / "scores.csv").open(newline="", encoding="utf-8") as stream:
        scores = {line["id"]: float(line["prediction"]) for line in csv.DictReader(stream)}
    assert cell.values[0] == tuple(scores[table.ids[place]] for place in where["test"])


def test_ratings_of_test_rows_change_no_prediction(table):
    where = rows_of(table, 1)
    rows, ratings, test = [row.copy() for row in table.rows], table.ratings.copy(), where["test"]
    ratings[test] = np.random.default_rng(0).permutation(ratings[test])
    for place in test:
        rows[place]["rating"] = float(ratings[place])
    spoiled = run_cell(replace(table, rows=rows, ratings=ratings), SMALL, optimizer(), **where)
    honest = run_cell(table, SMALL, optimizer(), **where)
    assert (spoiled.values, spoiled.components) == (honest.values, honest.components)
    assert spoiled.tau != honest.tau


def test_fewer_than_eight_rows_and_fewer_than_asked_for_are_too_few(table):
    few = run_cell(table, SMALL, optimizer(), **rows_of(table, rows=7))
    assert (few.status, few.why) == ("too few", "7 learning rows; 8 are the least")
    assert math.isnan(few.tau)
    assert run_cell(table, SMALL, optimizer(), **rows_of(table, rows=8)).status == "done"
    lacking = run_cell(table, replace(SMALL, rows=80), optimizer(), **rows_of(table, rows=80))
    assert (lacking.status, lacking.why) == ("too few", "42 learning rows; 80 are asked for")


def test_a_setting_without_its_model_is_not_run(table):
    for setting, measure in ((Setting(bank="full"), "metric"), (Setting(), "candidates")):
        cell = run_cell(table, setting, optimizer(), measure=measure, **rows_of(table))
        assert (cell.status, cell.final) == ("not run", False)
        assert "needs a language model" in cell.why
        assert cell_usage(table, setting, optimizer(), measure=measure, **rows_of(table)) == Usage()


def test_a_cell_that_fails_says_why_and_the_grid_goes_on(table):
    where = rows_of(table)
    rows, ratings = [row.copy() for row in table.rows], table.ratings.copy()
    for place in where["learned"]:
        rows[place]["rating"] = ratings[place] = 3.0
    cell = run_cell(replace(table, rows=rows, ratings=ratings), SMALL, optimizer(), **where)
    assert (cell.status, cell.final) == ("failed", True)
    assert "rated training rows with one and the same rating" in cell.why
    assert cell.values == ()


def test_what_ends_all_cells_is_raised(table):
    with serve(scripted) as server:
        spent = optimizer(lm=server.lm(), budget=Budget(requests=3), generators=TWO)
        with pytest.raises(ModelFailure, match="3 requests"):
            run_cell(table, Setting(bank="generated"), spent, **rows_of(table))
    with serve(scripted, always=401) as server, pytest.raises(HopelessModel):
        run_cell(table, Setting(bank="generated"), optimizer(lm=server.lm()), **rows_of(table))
    with pytest.raises(OptionError, match="measure='rankings'"):
        run_cell(table, SMALL, optimizer(), measure="rankings", **rows_of(table))


def test_the_requests_of_a_cell_are_counted_and_estimated(table):
    with serve(scripted) as server:
        asked, where = optimizer(lm=server.lm(), generators=TWO), rows_of(table, rows=20)
        expected = cell_usage(table, Setting(bank="generated", rows=20), asked, **where)
        assert server.requests == 0
        cell = run_cell(table, Setting(bank="generated", rows=20), asked, **where)
    assert cell.status == "done"
    assert cell.usage.requests == server.requests == expected.requests == 1 + 1 + 3 * 37  # 17 outputs in 18 test rows


def test_what_is_generated_is_measured_by_itself_on_test_rows_alone(table):
    setting = Setting("judges", generators=TWO, k=1, bank="existing")
    with serve(scripted) as server:
        asked, where = optimizer(lm=server.lm()), rows_of(table, rows=20)
        expected = cell_usage(table, setting, asked, measure="candidates", **where)
        cell = run_cell(table, setting, asked, measure="candidates", **where)
    assert cell.usage.requests == server.requests == expected.requests == 1 + 1 + 3 * 17
    assert len(cell.names) == len(set(cell.names)) == 3
    assert not {"good", "junk"} & set(cell.names)  # columns are no candidates here
    assert np.shape(cell.values) == (3, 18)
    ratings = table.ratings[where["test"]]
    assert cell.tau == pytest.approx(np.mean([kendall_tau_b(own, ratings) for own in cell.values]), abs=1e-12)
    assert cell.interval.low < cell.tau < cell.interval.high


def test_a_panel_is_asked_once_a_row(table):
    with serve(panelled) as server:
        asked = optimizer(lm=server.lm(), generators=TWO)
        cell = run_cell(table, Setting(panel=True), asked, measure="candidates", **rows_of(table, rows=20))
    assert (cell.status, len(cell.values), server.requests) == ("done", 3, 1 + 1 + 17)


def test_test_rows_that_a_metric_of_the_callers_has_learned_from_have_no_number():
    rows = planted_rows(sources=40)
    table = as_table(rows)
    where = rows_of(table)
    known = {table.groups[place] for place in where["test"][::9]}
    judge = memory([row for row in rows if row.group in known])
    own = AutoMetrics(TASK, metrics=[judge, words], bank="none", progress=False)
    cell = run_cell(table, Setting(), own, **where)
    assert cell.status == "done"
    learned = [table.groups[place] in known for place in where["test"]]
    assert np.isnan(cell.values[0]).tolist() == learned
    assert any(learned)
    assert cell.tau == kendall_tau_b(cell.values[0], table.ratings[where["test"]])


def test_values_follow_the_direction_of_the_rating(table):
    """Judges count more as better: where fewer points are better, their numbers are turned."""
    down = replace(table, task=replace(table.task, scale=replace(table.task.scale, higher_is_better=False)))
    found = []
    for one in (table, down):
        with serve(lambda prompt: scripted(prompt.replace("lower is better", ""))) as server:
            asked = optimizer(lm=server.lm(), generators={"criterion": 1})
            found.append(run_cell(one, Setting(), asked, measure="candidates", **rows_of(table, rows=20)))
    assert min(found[0].values[0]) >= 1
    assert max(found[1].values[0]) <= -1


def test_nothing_generated_is_a_failure_with_the_reason(table):
    with serve(lambda prompt: "nonsense") as server:
        asked = optimizer(lm=server.lm(), generators=TWO)
        cell = run_cell(table, Setting(), asked, measure="candidates", **rows_of(table))
    assert (cell.status, cell.final) == ("failed", False)
    assert "no metric was generated: no judge of the families 'criterion', 'rubric'" in cell.why
    assert cell.usage.requests == server.requests > 0


def test_a_setting_changes_what_it_names_and_leaves_the_rest():
    start = AutoMetrics(k=7, n=4, panel=True, bank_models="small", seed=9, strict=True)
    same = settled(Setting(), start, 2)
    assert (same.seed, same.k, same.n, same.panel, same.bank, same.strict) == (2, 7, 4, True, "auto", True)
    assert same.whole_cards
    full = settled(Setting(bank="full", k=3, n=1, regression="pls", cards="brief", panel=False), start, 0)
    assert (full.bank, full.k, full.n, full.regression, full.whole_cards, full.panel) == (
        "all",
        3,
        1,
        "pls",
        False,
        False,
    )
    assert full.bank_models == "small"
    alone = settled(Setting(bank="generated", generators={"geval": 2}), start, 0)  # of the bank nothing, so no weights
    assert (alone.bank, alone.bank_models, alone.generators) == ("generated", None, {"geval": 2})


def test_a_way_to_rank_cards_asks_its_model_once_and_is_estimated(table):
    for way, requests in (("bm25", 0), ("model", 1), ("bm25 model", 1)):
        setting = Setting(way, bank="existing", k=2, retrieval=way)
        with serve(scripted) as server:
            asked = optimizer(lm=server.lm())
            expected = cell_usage(table, setting, asked, **rows_of(table))
            cell = run_cell(table, setting, asked, **rows_of(table))
        assert (cell.status, server.requests, expected.requests) == ("done", requests, requests)
    cell = run_cell(table, Setting(bank="existing", k=2, retrieval="model"), optimizer(), **rows_of(table))
    assert (cell.status, cell.why[:38]) == ("not run", "retrieval='model' has a language model")
