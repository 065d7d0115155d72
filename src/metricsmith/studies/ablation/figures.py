"""The figures of a grid: each cell beside its reference, and each setting over its seeds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from metricsmith.datasets.table import Table
from metricsmith.report.ablation.record import CellFigures, GridLine, GridPart
from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b
from metricsmith.stats.resampling import (
    holm,
    mean_interval,
    repeated_interval,
    repeated_mean,
    repeated_permutation_test,
)
from metricsmith.studies.ablation.grid import Grid
from metricsmith.studies.ablation.runs import CellRun

__all__ = ["figures"]

Tested = TypeVar("Tested", CellFigures, GridLine)
OWN_ROWS: Mapping[str, Any] = {"batched": True, "own_rows": True}


def figures(
    runs: Sequence[CellRun], grid: Grid, tables: Mapping[str, Table]
) -> tuple[tuple[CellFigures, ...], tuple[GridPart, ...]]:
    """Hold every cell of a grid, and every setting over its seeds, against the reference.

    Parameters
    ----------
    runs : sequence of CellRun
        In any order; cells that are not done keep their reason and have no figures.
    grid : Grid
    tables : mapping of str to Table
        By name of the data set, with the rows that the runs' places count.

    Returns
    -------
    cells : tuple of CellFigures
        In the order of `runs`. The difference is between this cell and the reference's with the same data, number of
        learning rows and seed: its interval speaks of other rows, its p-values come from swapping whole groups, Holm's
        correction is over the other cells of that block. NaN where the reference has no tau-b.
    parts : tuple of GridPart
        The tables of the grid, each line over all seeds: every seed on its own test rows, a group left out of, or
        swapped in, all of them at once (`metricsmith.stats.resampling.repeated_interval` with ``own_rows``). The
        difference is over the seeds in which both have a tau-b; Holm's correction is over the other lines of the part
        on the same data set, of all numbers of learning rows. Empty where a grid measures retrieval.
    """
    found = _Figures(runs, grid, tables)
    cells = _adjusted([found.cell(run) for run in runs], lambda cell: (cell.data, cell.rows, cell.seed))
    if grid.measure == "retrieval":
        return cells, ()
    lines = {
        (setting.label, name, setting.rows): found.line(setting.label, name, setting.rows)
        for part in grid.parts
        for setting in part.settings
        for name in tables
    }
    parts = [
        GridPart(
            part.title,
            _adjusted(
                [lines[setting.label, name, setting.rows] for setting in part.settings for name in tables],
                lambda line: line.data,
            ),
            curve=len({setting.rows for setting in part.settings}) > 1,
        )
        for part in grid.parts
    ]
    return cells, tuple(parts)


class _Figures:
    """The runs of a grid by data set, number of learning rows, seed and setting."""

    def __init__(self, runs: Sequence[CellRun], grid: Grid, tables: Mapping[str, Table]) -> None:
        self.runs, self.tables, self.reference = runs, tables, grid.reference.label
        self.references = {(run.data, run.rows, run.seed): run for run in runs if run.setting == self.reference}

    def cell(self, run: CellRun) -> CellFigures:
        """A cell, without Holm's correction."""
        labels = self.tables[run.data].groups
        cell = CellFigures(
            run.setting, run.data, run.rows, run.seed, run.status, run.why,
            learned=len(run.learned), test=len(run.test), groups=len({labels[place] for place in run.test}),
            tau=run.tau, interval=run.interval, components=run.components, usage=run.usage,
        )  # fmt: skip
        return replace(cell, **self.difference([run], between=False))

    def line(self, setting: str, name: str, rows: int) -> GridLine:
        """A setting over its seeds, without Holm's correction."""
        runs = sorted(
            (run for run in self.runs if (run.setting, run.data, run.rows) == (setting, name, rows)),
            key=lambda run: run.seed,
        )
        done = [run for run in runs if run.status == "done"]
        line = GridLine(
            setting, name, rows, reference=setting == self.reference,
            why="; ".join(dict.fromkeys(f"{run.status}: {run.why}" for run in runs if run.status != "done")),
        )  # fmt: skip
        known = [run for run in done if not math.isnan(run.tau)]
        if not known:
            return replace(line, taus=tuple(run.tau for run in done))
        predicted = [self.predicted(run) for run in known]
        owner = np.repeat(np.arange(len(known)), [len(one) for one in predicted])
        interval = repeated_interval(
            batch_kendall_tau_b, np.vstack(predicted), *self.rated(name), repetition=owner, **OWN_ROWS
        )
        return replace(
            line,
            taus=tuple(run.tau for run in done),
            cells=len(known),
            tau=float(np.mean([run.tau for run in known])),
            interval=interval,
            over_seeds=mean_interval([run.tau for run in known], bounds=(-1.0, 1.0)),
            **self.difference(known, between=True),
        )

    def difference(self, runs: Sequence[CellRun], *, between: bool) -> dict[str, Any]:
        """The runs of one setting minus the reference's; nothing for the reference, or where either has no tau-b."""
        pairs = [
            (self.predicted(run), self.predicted(other))
            for run in runs
            if run.setting != self.reference
            and (other := self.references.get((run.data, run.rows, run.seed))) is not None
            and not math.isnan(run.tau + other.tau)
        ]
        if not pairs:
            return {}
        # Several metrics a side: each meets each of the other side equally often.
        sizes = [math.lcm(len(own), len(other)) for own, other in pairs]
        first, second = (
            np.vstack(
                [np.tile(pair[side], (size // len(pair[side]), 1)) for pair, size in zip(pairs, sizes, strict=True)]
            )
            for side in (0, 1)
        )
        owner, rated = np.repeat(np.arange(len(pairs)), sizes), self.rated(runs[0].data)
        test = repeated_permutation_test(batch_kendall_tau_b, first, second, *rated, repetition=owner, **OWN_ROWS)
        interval = repeated_interval(
            batch_kendall_tau_b, first, *rated, against=second, between=between, repetition=owner, **OWN_ROWS
        )
        return {"difference": test.observed, "difference_interval": interval, "p_value": test.p_value}

    def predicted(self, run: CellRun) -> FloatArray:
        """The predictions that have a tau-b, on the rows of the table, shape (m, n), NaN outside the test set."""
        ratings = self.tables[run.data].ratings
        lines = np.full((len(run.values), ratings.size), np.nan)
        lines[:, list(run.test)] = run.values
        return lines[
            [not math.isnan(repeated_mean(batch_kendall_tau_b, [line], ratings, own_rows=True)) for line in lines]
        ]

    def rated(self, name: str) -> tuple[FloatArray, list[str]]:
        """Ratings and groups of a data set."""
        return self.tables[name].ratings, self.tables[name].groups


def _adjusted(tested: Sequence[Tested], block: Any) -> tuple[Tested, ...]:
    """The same with Holm's correction over each block of them, in the same order."""
    places: dict[Hashable, list[int]] = {}
    for place, one in enumerate(tested):
        places.setdefault(block(one), []).append(place)
    adjusted = np.full(len(tested), np.nan)
    for same in places.values():
        adjusted[same] = holm([tested[place].p_value for place in same])
    return tuple(replace(one, p_adjusted=float(p)) for one, p in zip(tested, adjusted, strict=True))
