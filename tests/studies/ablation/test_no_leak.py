"""Ratings of test rows enter no choice of a grid, whatever the setting chooses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from loopback import own_axes, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.run import ablate
from rated import rated_table

SETTINGS = (
    Setting("auto", bank="existing", n=3),
    Setting("pls", bank="existing", n=2, regression="pls"),
    Setting("made", bank="full", k=4, n=2, generators={"criterion": 2, "rubric": 1, "examples": 1}),
)
GRID = Grid("Choices", (SettingTable("Choices", SETTINGS),), SETTINGS[0], seeds=1)


def cells(table, folder):
    with serve(own_axes) as server:
        bank = MetricBank((family("levenshtein"), family("rouge")))
        ablate({"notices": table}, GRID, AutoMetrics(metrics=bank, lm=server.lm(temperature=1.0), progress=False),
               folder=folder)  # fmt: skip
    return [json.loads(line)["cell"] for line in (folder / "cells.jsonl").read_text("utf-8").splitlines()[1:]]


def test_permuted_test_ratings_change_figures_alone(tmp_path):
    table = rated_table(sources=14)
    honest = cells(table, tmp_path / "honest")
    rows, ratings, test = [row.copy() for row in table.rows], table.ratings.copy(), honest[0]["test"]
    ratings[test] = np.random.default_rng(1).permutation(ratings[test])
    for place in test:
        rows[place]["rating"] = float(ratings[place])
    spoiled = cells(replace(table, rows=rows, ratings=ratings), tmp_path / "spoiled")
    for one, other in zip(honest, spoiled, strict=True):
        assert one["status"] == "done"
        assert [one[name] for name in ("setting", "learned", "test", "components", "values")] == [
            other[name] for name in ("setting", "learned", "test", "components", "values")
        ]
        assert one["tau"] != other["tau"]
