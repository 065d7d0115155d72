"""A hundred cells without a model, on the embedded notices and on HANNA's columns of scores."""

from __future__ import annotations

import json
import time

import pytest

from metricsmith.datasets import plain_notices
from metricsmith.datasets.table import read_table
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.studies.ablation.grid import read_grid
from metricsmith.studies.ablation.run import ablate

# 2 settings on 2 tables x 5 numbers of learning rows x 5 seeds.
GRID = """
title = "One component or five"
seeds = 5
reference = {n = 5}
[base]
regression = "pls"
[[parts]]
title = "Learning rows"
[parts.vary]
n = [1, 5]
rows = [10, 20, 40, 80, 0]
"""


@pytest.mark.slow
def test_a_hundred_cells_take_less_than_five_minutes(shared_data, tmp_path):
    hanna = read_table(
        shared_data / "hanna_scores_dev.csv.gz", target="Coherence", where="system!=Human", group="prompt_index",
        metric_columns=["* Ξ*", "* ¤*"],
    )  # fmt: skip
    columns = {"target": "rating", "output": "rewrite", "inputs": "notice", "reference": "reference"}
    tables = {"notices": read_table(plain_notices.path(), group="source_id", **columns), "hanna": hanna}
    (tmp_path / "grid.toml").write_text(GRID, "utf-8")
    started = time.process_time()
    record = ablate(tables, read_grid(tmp_path / "grid.toml"), AutoMetrics(progress=False), folder=tmp_path)
    assert time.process_time() - started < 300
    assert len(record.cells) == 100
    assert {cell.status for cell in record.cells} == {"done"}
    for line in (tmp_path / "cells.jsonl").read_text("utf-8").splitlines()[1:]:
        cell = json.loads(line)["cell"]
        groups = tables[cell["data"]].groups
        assert not {groups[place] for place in cell["learned"]} & {groups[place] for place in cell["test"]}
        rated = tables[cell["data"]].rated()
        assert len(cell["learned"]) == (cell["rows"] or len(rated) - len(cell["test"]))
    lines = [line for part in record.parts for line in part.lines]
    assert len(lines) == 2 * 2 * 5
    assert all(len(line.taus) == 5 and line.interval.low < line.tau < line.interval.high for line in lines)
