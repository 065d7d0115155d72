"""Code generators as students: their examples, and the quality of a function that one wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.generation import code_inputs
from metricsmith.optimizers.students.episodes import Episode, HeldOut, table_splits
from metricsmith.optimizers.students.yields import held_out_of
from metricsmith.programs.generators.code import tried
from metricsmith.reward import DSPyMetric
from metricsmith.signatures.generation import Axis
from metricsmith.stats.correlation import kendall_tau_b

__all__ = ["CodeYieldMetric", "code_episodes"]


def code_episodes(
    tables: Table | Sequence[Table], axes: Sequence[Axis], *, splits: int = 1, fraction: float = 0.3, seed: int = 0
) -> list[Episode]:
    """Examples for a `CodeGenerator`: ``task``, ``rating``, ``criterion``, ``liked`` and ``disliked``.

    One example for each axis and split. Parameters, labels and errors as in `axes_episodes`: the generator sees rows
    of the training side, and the label is the other side (`HeldOut`).

    Parameters
    ----------
    axes : sequence of Axis
        What to write functions about, at least one.
    """
    if not axes:
        raise OptionError("there is no axis to write a function about: give axes=[Axis(name=..., meaning=...)]")
    return [
        Episode(
            label=HeldOut(task, tuple(held.rows), origin, 1, axis), **code_inputs(axis, train.rows, task, seed=draw)
        )
        for task, origin, train, held, draw in table_splits(tables, splits, fraction, seed)
        for axis in axes
    ]


class CodeYieldMetric(DSPyMetric):
    """Measures a generator's function on the episodes of `code_episodes`: by the share of rows, then by tau.

    A function that is no candidate, because it gives no number on more than a tenth of the held-out rows or the same
    number on all, scores half the share of the rows on which it does give one. Any other scores ``(1 + |tau|) / 2``,
    its tau-b with the held-out ratings: which way a function counts is learnt later. Only the sandbox runs it, so that
    no measurement asks a model.

    Parameters
    ----------
    success_at : float
        The bar for a bootstrapped demonstration; .6 is a tau of .2.

    Raises
    ------
    DataError
        When called: if the prediction has no source text, the example no held-out rows, or these have one rating.
    """

    def __init__(self, *, success_at: float = 0.6) -> None:
        self.success_at = success_at

    def requests(self, example: Any) -> int:
        """The most requests that one measurement takes: none."""
        return 0

    def measured(self, example: Any, pred: Any, pred_name: Any, pred_trace: Any) -> tuple[float, str]:
        """Score and feedback for ``pred.source``, without a text of a held-out row; errors as for the class."""
        held_out = held_out_of(example)
        if "source" not in pred:
            raise DataError(
                f"a prediction with {', '.join(pred.keys()) or 'no fields'} is not from a CodeGenerator: give one as "
                "the student"
            )
        trial = tried(pred.source, held_out.rows)
        if trial.problems:
            return trial.share / 2, f"The function is of no use: {trial.why}."
        tau = abs(kendall_tau_b(trial.values, [float(row[held_out.task.target]) for row in held_out.rows]))
        if math.isnan(tau):
            raise DataError(f"{held_out.origin}: all held-out ratings are alike, so that no function is better")
        return (1 + tau) / 2, f"Its absolute Kendall tau-b with the held-out ratings is {tau:.2f}; 1 is the most."
