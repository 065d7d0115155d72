"""The words of a grid on cells that lost something on their way, or that cannot be run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from loopback import own_axes, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.studies.ablation import run
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable, preset
from metricsmith.studies.ablation.plan import ablation_plan, plan_grid
from metricsmith.studies.ablation.run import ablate
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
EXISTING = Setting("existing", bank="existing", n=2)
FULL = replace(EXISTING, label="full", bank="full", generators={"criterion": 1, "rubric": 2})
BOTH = Grid("Both", (SettingTable("Both", (EXISTING, FULL)),), EXISTING, seeds=2)
RANKED = Grid(
    "Ranked", (SettingTable("Ranked", (Setting("model", retrieval="model"),)),), Setting("model"), "retrieval"
)


def optimizer(**options):
    return AutoMetrics(metrics=BANK, progress=False, **options)


def without_rubrics(prompt):
    found = own_axes(prompt)
    return {"levels": ["one alone"]} if "levels" in found else found


def test_judges_that_could_not_be_made_are_warned_of():
    for measure in ("metric", "candidates"):
        with serve(without_rubrics) as server:
            grid = replace(BOTH, measure=measure, parts=(SettingTable("Both", (FULL,)),), reference=FULL)
            record = ablate({"notices": rated_table(sources=14)}, grid, optimizer(lm=server.lm(temperature=1.0)))
        assert {cell.status for cell in record.cells} == {"done"}
        told = [line for line in record.warnings if "2 of the family 'rubric'" in line]
        assert len(told) == 2, "the model named others for each seed"
        assert all(line.startswith("In 1 cell: Judges that could not be made") for line in told)


def test_a_plan_without_a_model_says_which_cells_cannot_be_run():
    text = ablation_plan({"notices": rated_table()}, BOTH, optimizer())
    assert "2 cells cannot be run: not run: bank='all' needs a language model" in text
    text = ablation_plan({"notices": rated_table()}, preset("table6"), optimizer())
    assert "cells cannot be run: not run: " in text


def test_seeds_share_the_ranking_of_a_model():
    table = {"notices": rated_table(sources=14)}
    with serve(own_axes) as server:
        options = optimizer(lm=server.lm(temperature=1.0))
        assert plan_grid(table, RANKED, options).union.requests == 1
        assert plan_grid(table, RANKED, options).summed.requests == 5


def test_a_cell_without_a_tau_is_no_cell_of_its_line(monkeypatch):
    own = run.run_cell

    def constant(cell, *rest):
        done = own(cell, *rest)
        return replace(done, values=((1.0,) * len(done.test),), tau=math.nan) if cell.seed else done

    monkeypatch.setattr(run, "run_cell", constant)
    grid = replace(BOTH, parts=(SettingTable("One", (EXISTING,)),))
    record = ablate({"notices": rated_table()}, grid, optimizer())
    (line,) = record.parts[0].lines
    assert line.cells == 1
    assert np.isnan(line.taus).tolist() == [False, True]
    assert record.warnings == ("1 of 2 cells without a tau-b: constant predictions, or too few",)
