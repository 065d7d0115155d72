"""A finished grid of inductions as data: every cell, and the tables that are made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.records import Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.resampling import Interval

__all__ = ["SCHEMA_VERSION", "Ablation", "CellFigures", "GridData", "GridLine", "GridPart", "RankingLine"]

SCHEMA_VERSION = 1
UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class CellFigures:
    """One cell: an induction with one setting on one data set, with one number of learning rows and one seed.

    Numbers are NaN where they are undefined, and in a cell without a metric.

    Parameters
    ----------
    setting, data : str
        The label of the setting, and the name of the data set.
    rows : int
        Learning rows that were asked for; 0 stands for all that the test set leaves.
    seed : int
    status : str
        ``done``, ``too few`` (fewer than 8 learning rows), ``not run`` (the setting lacks what it needs) or ``failed``.
    why : str
        The reason, where it is not ``done``.
    learned, test, groups : int
        Learning rows, test rows, and groups of these.
    tau : float
        Kendall tau-b on the test rows: of the induced metric, or, where a grid measures candidates, the mean over them.
    interval : Interval
        95 %, for other groups of test rows (that of the induction report).
    difference, difference_interval, p_value, p_adjusted
        This cell's `tau` minus that of the reference cell with the same data, rows and seed, on the same test rows:
        with its 95 % interval, the p-value of the exchange of whole groups, and that after Holm over all cells of the
        block. NaN for the reference itself.
    components : tuple of str
        What the metric is made of.
    usage : Usage
        Of this cell alone; what an earlier cell had paid for is not in it.
    """

    setting: str
    data: str
    rows: int
    seed: int
    status: str = "done"
    why: str = ""
    learned: int = 0
    test: int = 0
    groups: int = 0
    tau: float = math.nan
    interval: Interval = UNDEFINED
    difference: float = math.nan
    difference_interval: Interval = UNDEFINED
    p_value: float = math.nan
    p_adjusted: float = math.nan
    components: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class GridLine:
    """One setting on one data set with one number of learning rows, over all seeds.

    Parameters
    ----------
    setting, data, rows
        As for `CellFigures`.
    taus : tuple of float
        One for each seed whose cell is done; NaN where undefined.
    tau : float
        Mean of the defined `taus`.
    interval : Interval
        95 %, for other groups of rows and other seeds: each group is left out of the test sets of all seeds at once.
    over_seeds : Interval
        95 %, Student's t over `taus` (the paper's). Test sets of several seeds share rows, so that it is too narrow for
        new data; it speaks of the spread from run to run alone.
    difference, difference_interval, p_value, p_adjusted
        `tau` minus the reference's, over the same seeds, rows and groups; Holm over the other comparisons of this
        table on this data set.
    reference : bool
        True for the line that the others are held against.
    cells : int
        Cells with a tau-b.
    why : str
        Why others are not done.
    """

    setting: str
    data: str
    rows: int
    taus: tuple[float, ...] = ()
    tau: float = math.nan
    interval: Interval = UNDEFINED
    over_seeds: Interval = UNDEFINED
    difference: float = math.nan
    difference_interval: Interval = UNDEFINED
    p_value: float = math.nan
    p_adjusted: float = math.nan
    reference: bool = False
    cells: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class GridPart:
    """One table of a grid; `curve` if its lines differ in their number of learning rows."""

    title: str
    lines: tuple[GridLine, ...]
    curve: bool = False


@dataclass(frozen=True, slots=True)
class RankingLine:
    """One way to retrieve metrics, over data sets and seeds (AutoMetrics, appendix E.1).

    Parameters
    ----------
    setting : str
    ndcg, recall : mapping of int to (float, float)
        By cutoff: the mean over data sets and seeds, and the standard deviation.
    cells : int
    why : str
        Why it was not run, where it was not.
    """

    setting: str
    ndcg: Mapping[int, tuple[float, float]]
    recall: Mapping[int, tuple[float, float]]
    cells: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class GridData:
    """A data set of a grid: its name, source line, target, rated rows, groups, and rows in the largest test set."""

    name: str
    source: str
    target: str
    rows: int
    groups: int
    test: int


@dataclass(frozen=True)
class Ablation(NotebookRecord):
    """A grid of inductions.

    Parameters
    ----------
    title : str
    measure : str
        ``metric`` (the induced metric), ``candidates`` (the mean over generated metrics) or ``retrieval``.
    reference : str
        Label of the setting that the others are held against.
    parts : tuple of GridPart
        Empty for ``retrieval``.
    rankings : tuple of RankingLine
        For ``retrieval`` alone.
    cells : tuple of CellFigures
    data : tuple of GridData
    seeds : int
    model : str
        Name of the language model, empty without one.
    signature : str
        The line that makes every number reproducible.
    usage : Usage
        What all cells asked for together, in all runs that wrote them.
    union, summed : Usage
        Expected beforehand: for all cells together, and the sum of what each would take alone.
    notes, warnings : tuple of str
    """

    title: str
    measure: str
    reference: str
    parts: tuple[GridPart, ...]
    rankings: tuple[RankingLine, ...]
    cells: tuple[CellFigures, ...]
    data: tuple[GridData, ...]
    seeds: int
    model: str
    signature: str
    usage: Usage = field(default_factory=Usage)
    union: Usage = field(default_factory=Usage)
    summed: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The content of ``ablation.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **asdict(self)}))
