"""Sides for candidates that have learned from rated rows already: nobody is weighed by these, nor tested on them.

Groups with such rows stay on the learning side, in every fold, and the metric that learned from them has no value
there, so that they do not buy it a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import Metric
from metricsmith.optimizers.own import from_learning
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.runs import Sides
from metricsmith.programs.learned import has_learned, learned_from

__all__ = ["FEWEST_GROUPS", "FEWEST_ROWS", "set_apart"]

BoolArray = NDArray[np.bool_]
FEWEST_ROWS, FEWEST_GROUPS = 20, 5  # that a metric has not learned from, for it to be weighed by


def set_apart(
    own: Sequence[Metric], rated: Rated, divide: Callable[[BoolArray], Sides]
) -> tuple[Sides, tuple[Metric, ...]]:
    """Sides on which no own metric is tested on groups that it has learned from, and the metrics that can be weighed.

    Parameters
    ----------
    own : sequence of Metric
    rated : Rated
        The n rated rows that `divide` puts on sides.
    divide : callable
        From which of these rows have to learn, shape (n,), to sides.

    Returns
    -------
    Sides
        Test rows of a file of their own that a metric has learned from are left out, and the notes say so. Warnings
        say which metrics do not tell what they learned from, and which are left out since too few of the rows to learn
        from, or of those to test on, are new to them.
    tuple of Metric
    """
    kept, notes = list(own), list[str]()
    warnings = [warning for metric in own if (warning := _unstated(metric))]
    while True:
        learned = _any_learned(kept, rated)
        if learned.any() and (why := _too_few(rated, learned)):
            out = [(max(kept, key=lambda metric: int(from_learning(metric, rated).sum())), why)]
        else:
            sides = divide(learned)
            out = [(metric, why) for metric in kept if (why := _too_few_on(metric, sides))]
        if not out:
            break
        kept = [metric for metric in kept if all(metric is not one for one, _ in out)]
        warnings += [f"Your metric {metric.name!r} is left out: {why}." for metric, why in out]
    if learned.any():
        notes.append(
            f"{int(learned.sum())} rated rows are learned from and never tested on: your metrics have learned from "
            "these groups"
        )
    if sides.kind == "file":
        known = _any_learned(kept, sides.test)
        if known.any():
            new = np.flatnonzero(~known)
            given = {**sides.places, "test": sides.places["test"][new]} if "test" in sides.places else {}
            sides = replace(sides, test=sides.test.take(new), places=given)
            notes.append(f"{int(known.sum())} test rows are left out: your metrics have learned from their groups")
    return replace(sides, notes=(*sides.notes, *notes), warnings=(*sides.warnings, *warnings)), tuple(kept)


def _any_learned(metrics: Sequence[Metric], rated: Rated) -> BoolArray:
    learned = np.zeros(len(rated), dtype=bool)
    for metric in metrics:
        learned |= from_learning(metric, rated)
    return learned


def _unstated(metric: Metric) -> str:
    """A warning on a judge that shows signs of learning and does not say from which rows."""
    if learned_from(metric) or not has_learned(metric):
        return ""
    return (
        f"Your metric {metric.name!r} has learned from rated rows and does not say which: if they are among these, its "
        "weight and every figure are too good. Tune it again with this version, or on other rows."
    )


def _too_few_on(metric: Metric, sides: Sides) -> str:
    """Why a metric cannot be weighed or tested: what is new to it on the smallest side; empty if it can."""
    learning = [sides.train.take(fold.train) for fold in sides.folds] or [sides.train]
    for side in [*learning, *([sides.test] if sides.kind == "file" else [])]:
        learned = from_learning(metric, side)
        if learned.any() and (why := _too_few(side, learned)):
            return why
    return ""


def _too_few(rated: Rated, learned: BoolArray) -> str:
    groups = {group for group, known in zip(rated.groups, learned, strict=True) if not known}
    rows = int((~learned).sum())
    if rows >= FEWEST_ROWS and len(groups) >= FEWEST_GROUPS:
        return ""
    return (
        f"it has learned from {int(learned.sum())} of {len(rated)} rows or their groups, and the other {rows} in "
        f"{len(groups)} groups are fewer than {FEWEST_ROWS} in {FEWEST_GROUPS}; rate more rows, or tune on fewer"
    )
