"""Ways to retrieve metrics, held against what each metric of the bank is worth (AutoMetrics, appendix E.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metricsmith.errors import DataError
from metricsmith.formats import count
from metricsmith.optimizers.candidates import card_ranking, pool_cards, recommender_of
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splitting import configure
from metricsmith.optimizers.students.episodes import card_gains
from metricsmith.optimizers.students.metrics import ndcg_at_k, recall_at_k
from metricsmith.programs.recommenders.base import brief
from metricsmith.report.ablation.record import RankingLine
from metricsmith.studies.ablation.cells import concluded, settled
from metricsmith.studies.ablation.grid import Grid
from metricsmith.studies.ablation.runs import CellRun, GridCell

__all__ = ["CUTOFFS", "rankings", "run_ranking"]

CUTOFFS = (1, 5, 10, 20)  # of the paper's tables 6 and 7


def run_ranking(cell: GridCell, options: Options) -> CellRun:
    """Rank the bank's metrics for the task of a table, and find out what each is worth.

    Ranked are the metrics that the learning rows can feed, without columns, judges and metrics of the caller's own. The
    worth of one is its largest absolute tau-b with the ratings of the learning rows (the paper's development set), of
    which the recommender sees nothing. Inside `numbers_kept` metrics are computed once for all settings, inside
    `candidates_kept` equal rankings are asked for once.

    Parameters
    ----------
    cell : GridCell
        Of its setting only `retrieval` and `cards` matter.
    options : Options
        The model and the bank.

    Returns
    -------
    CellRun
        With `ranking`, 20 names, or all that there are, and `gains`; or without a result, as `concluded` says, whose
        errors are raised.
    """

    def work(begun: CellRun) -> CellRun:
        own, task = configure(cell.table, settled(cell.setting, options, cell.seed))
        train = cell.table.subset(begun.learned)
        usable, _ = own.whole_bank.usable(train.rows, coverage=own.coverage)
        pool = [metric.fit(train.rows) for metric in usable]
        if not pool:
            raise DataError(f"{cell.data}: the learning rows can feed no metric of the bank: give output text")
        cards = [card if own.whole_cards else brief(card) for card in pool_cards(pool)]
        with own.asking():
            choice = card_ranking(cards, task, CUTOFFS[-1], recommender_of(own))
        return replace(begun, ranking=choice.names, gains=card_gains(pool, train), usage=choice.usage)

    return concluded(replace(cell, test=cell.test[:0]), work)


def rankings(runs: Sequence[CellRun], grid: Grid) -> tuple[RankingLine, ...]:
    """A line for each setting of a grid, in its order: NDCG and recall at 1, 5, 10 and 20.

    The paper does not say how it defines the two. Here NDCG takes the worth of a card as it is and log2 of its place
    (`ndcg_at_k`); recall is the share of the k best cards that stand among the first k (`recall_at_k`). A cell where no
    card is worth anything has neither. The standard deviation (n - 1) is over data sets and seeds together and NaN for
    a single cell: seeds of one data set share rows, so that it is no error of the mean.
    """
    lines = []
    for label, rows in dict.fromkeys((setting.label, setting.rows) for part in grid.parts for setting in part.settings):
        own = [run for run in runs if (run.setting, run.rows) == (label, rows)]
        done = [run for run in own if run.status == "done"]
        why = "; ".join(dict.fromkeys(f"{run.status}: {run.why}" for run in own if run.status != "done"))
        name = f"{label}, {count(rows, 'learning row')}" if rows else label
        lines.append(RankingLine(name, _measured(ndcg_at_k, done), _measured(recall_at_k, done), len(done), why))
    return tuple(lines)


def _measured(
    measure: Callable[[Sequence[str], Mapping[str, float], int], float], runs: Sequence[CellRun]
) -> dict[int, tuple[float, float]]:
    """By cutoff, the mean over runs and their standard deviation; runs without a number aside."""
    found = {}
    for cutoff in CUTOFFS:
        values = np.array([measure(run.ranking, run.gains, cutoff) for run in runs])
        known = values[~np.isnan(values)]
        mean = float(known.mean()) if len(known) else math.nan
        found[cutoff] = mean, float(known.std(ddof=1)) if len(known) > 1 else math.nan
    return found
