"""A finished cell of a grid, as a line of the file from which an unfinished grid goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from metricsmith.records import Usage
from metricsmith.stats.resampling import Interval

__all__ = ["CellRun"]


@dataclass(frozen=True)
class CellRun:
    """One cell.

    Parameters
    ----------
    setting, data, rows, seed, status, why, components, usage
        As for `metricsmith.report.ablation.record.CellFigures`.
    learned, test : tuple of int
        Places of its learning and test rows in the table.
    names : tuple of str, length m
        What predicted: the induced metric, or each generated one where the grid measures candidates.
    values : tuple of tuples of float, shape (m, len(test))
        Predictions, higher for better rows as far as their metric says; NaN where there is none.
    tau, interval
        Those of the induction's report; where candidates are measured, of their mean.
    ranking : tuple of str
        Where retrieval is measured: names of cards, best first.
    gains : mapping of str to float
        There: each card's worth on the learning rows.
    """

    setting: str
    data: str
    rows: int
    seed: int
    status: str = "done"
    why: str = ""
    learned: tuple[int, ...] = ()
    test: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    tau: float = math.nan
    interval: Interval = field(default_factory=lambda: Interval(math.nan, math.nan))
    components: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    gains: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
