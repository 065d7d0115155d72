"""A cell of a grid, before it is run and as it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from metricsmith.datasets.table import Table
from metricsmith.records import Usage
from metricsmith.stats.correlation import IntArray
from metricsmith.stats.resampling import Interval
from metricsmith.studies.ablation.grid import Setting

__all__ = ["FEWEST", "CellKey", "CellRun", "GridCell"]

FEWEST = 8  # learning rows, as `read_table` wants them
CellKey = tuple[str, int, int, str]  # data, learning rows, seed, label of the setting


@dataclass(frozen=True)
class GridCell:
    """A cell before it is run: its data set, setting and seed, and places in the table of its learning and test rows.

    The places are those of `learning_places` and `test_places`; the seed is that of the induction.
    """

    data: str
    table: Table = field(repr=False)
    setting: Setting
    seed: int
    learned: IntArray = field(repr=False)
    test: IntArray = field(repr=False)

    @property
    def key(self) -> CellKey:
        """Its place in the grid."""
        return self.data, self.setting.rows, self.seed, self.setting.label

    @property
    def least(self) -> int:
        """The number of learning rows without which it is not run."""
        return max(FEWEST, self.setting.rows)


@dataclass(frozen=True)
class CellRun:
    """A cell that has ended, as a line of the file from which an unfinished grid goes on.

    Parameters
    ----------
    setting, data, rows, seed, status, why, components, usage
        As for `metricsmith.report.ablation.record.CellFigures`.
    learned, test : tuple of int
        Places of its learning and test rows in the table.
    names : tuple of str, length m
        What predicted: the induced metric, or each generated one where the grid measures candidates.
    values : tuple of tuples of float, shape (m, len(test))
        Predictions, higher for higher ratings as far as their metric says; NaN where there is none.
    tau, interval
        Those of the induction's report; where candidates are measured, of their mean.
    ranking : tuple of str
        Where retrieval is measured: names of cards, best first.
    gains : mapping of str to float
        There: each card's worth on the learning rows.
    fallen : tuple of str
        What fell away on the way to a result, such as judges that could not be made.
    final : bool
        False where the same cell may come out otherwise tomorrow: the model failed, or something is not here.
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
    fallen: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    final: bool = True

    @property
    def key(self) -> CellKey:
        """Its place in the grid."""
        return self.data, self.rows, self.seed, self.setting
