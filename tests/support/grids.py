"""Small grids, finished without an induction: cells whose predictions follow the ratings as their setting says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.records import Usage
from metricsmith.report.ablation.record import Ablation, GridData, RankingLine
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import correlation_interval
from metricsmith.studies.ablation.figures import figures
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.runs import CellRun
from rated import rated_table

__all__ = ["CURVE", "SETTINGS", "SIZES", "TABLE", "ablation", "made", "rankings"]

TABLE = rated_table()
SPREAD = {"k=30": 0.6, "k=20": 0.7, "k=20, cards=brief": 1.2, "k=5": 3.0}  # of the predictions around the ratings
SETTINGS = tuple(Setting(label) for label in SPREAD)
SIZES = Grid(
    "Ablations of the induction",
    (SettingTable("Bank and cards", SETTINGS[:3]), SettingTable("How many metrics", SETTINGS)),
    SETTINGS[0],
)
CURVE = Grid(
    "Learning rows",
    (
        SettingTable(
            "Learning curve", tuple(replace(one, rows=n) for one in SETTINGS[:2] for n in (5, 10, 20, 40, 80, 160))
        ),
    ),
    SETTINGS[0],
)


def made(setting: str, seed: int, *, lines: int = 1, name: str = "notices", rows: int = 0, **changes: Any) -> CellRun:
    """A cell on nine groups of `TABLE`, drawn by its seed."""
    random = np.random.default_rng([seed, list(SPREAD).index(setting), rows, len(name)])
    labels = np.array(TABLE.groups)
    chosen = np.random.default_rng(seed).choice(np.unique(labels), 9, replace=False)
    test = np.flatnonzero(np.isin(labels, chosen))
    spread = SPREAD[setting] * (1 + 8 / rows if rows else 1)
    values = TABLE.ratings[test] + spread * random.normal(size=(lines, test.size))
    taus = [kendall_tau_b(line, TABLE.ratings[test]) for line in values]
    interval = correlation_interval(batch_kendall_tau_b, values[0], TABLE.ratings[test], labels[test], batched=True)
    cell = CellRun(
        setting, name, rows, seed, learned=tuple(range(rows or 33)), test=tuple(test.tolist()),
        names=tuple(f"m{number}" for number in range(lines)), values=tuple(map(tuple, values.tolist())),
        tau=float(np.mean(taus)), interval=interval, components=("bleu",), usage=Usage(12, 9000, 800, 0.02, 3.0),
    )  # fmt: skip
    return replace(cell, **changes)


def ablation(grid: Grid = SIZES, data: tuple[str, ...] = ("notices", "essays"), **changes: Any) -> Ablation:
    """A finished grid; cells with fewer than 8 learning rows are too few."""
    tables = dict.fromkeys(data, TABLE)
    settings = dict.fromkeys((one.label, one.rows) for part in grid.parts for one in part.settings)
    runs = [
        made(label, seed, name=name, rows=rows)
        if not rows or rows >= 8
        else CellRun(label, name, rows, seed, "too few", f"{rows} learning rows; 8 are the least")
        for name in data
        for label, rows in settings
        for seed in range(grid.seeds)
    ]
    cells, parts = figures(runs, grid, tables)
    record = Ablation(
        grid.title, grid.measure, grid.reference.label, parts, (), cells,
        tuple(GridData(name, f"{name}.csv sha256:0123456789abcdef", "rating", 60, 20, 18) for name in data),
        grid.seeds, "openai/gpt-4o-mini", "metricsmith 0.0 | ablate | seeds 5",
        usage=Usage(2_345, 1_234_567, 123_456, 1.23, 345.0), union=Usage(2_500, 1_300_000, 130_000, 1.3),
        summed=Usage(9_000, 5_000_000, 500_000, 5.0),
    )  # fmt: skip
    return replace(record, **changes)


def rankings(**changes: Any) -> Ablation:
    """A finished grid of retrievers."""
    spread = {1: (0.4, 0.2), 5: (0.5, 0.1), 10: (0.55, 0.1), 20: (0.6, 0.05)}
    lines = (
        RankingLine("bm25", spread, spread, 10),
        RankingLine("bm25 model", {k: (m + 0.05, s) for k, (m, s) in spread.items()}, spread, 10),
        RankingLine("colbert", {}, {}, why="colbert needs its weights"),
    )
    grid = replace(SIZES, title="Retrieval", measure="retrieval")
    return replace(ablation(grid), rankings=lines, **changes)
