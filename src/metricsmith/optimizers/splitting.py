"""Hold-out or cross-validation: what the default takes for the rows at hand, and what either would ask of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError, nearest
from metricsmith.optimizers.induction import Options
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.runs import Sides, estimate_run
from metricsmith.optimizers.spending import budget_lines
from metricsmith.records import Task, Usage

__all__ = ["ENOUGH", "FRACTION", "SPLITS", "Division", "fold_count", "settled"]

SPLITS = ("auto", "holdout", "cv")
FRACTION = 0.3  # of the rated rows, where a hold-out is made
ENOUGH = 15
"""Held-out groups from which on the default holds rows out; with fewer it cross-validates."""
FEW, MANY = 3, 5
GROUPS_A_FOLD = 4
MOST_TIMES = 5  # requests of a cross-validation that nobody asked for, over those of a hold-out


@dataclass(frozen=True)
class Division:
    """The way in which a caller wants rows set aside: the options of `induce`, by their names.

    Raises
    ------
    OptionError
        For an unknown way to split, or one that contradicts what else is asked for.
    """

    fraction: float | None = None
    test: Table | None = None
    cv: int | None = None
    split: str = "auto"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise OptionError(f"split={self.split!r}{nearest(self.split, SPLITS)} must be one of {', '.join(SPLITS)}")
        if self.cv is not None and self.test is not None:
            raise OptionError("--cv and a test file exclude each other: cross-validation tests on every row")
        asked = "" if self.open else "--cv" if self.cv is not None else "--test"
        if asked and self.split == ("holdout" if asked == "--cv" else "cv"):
            raise OptionError(f"--split {self.split} and {asked} contradict each other; leave one of them out")

    @property
    def open(self) -> bool:
        """True if nothing but `split` decides."""
        return self.fraction is None and self.test is None and self.cv is None


def fold_count(groups: int, asks: bool) -> int:
    """The number of folds that is taken where none is asked for.

    Three cover as well as more (docs/coverage.md) and cost least, so that three are taken where a model is asked.
    Elsewhere five leave fits more rows, if each then has four groups.
    """
    return min(MANY if not asks and groups >= MANY * GROUPS_A_FOLD else FEW, groups)


def settled(
    held: Sides, crossed: Callable[[], Sides], task: Task, options: Options, more: Rated | None = None
) -> Sides:
    """The sides that ``--split auto`` takes.

    Parameters
    ----------
    held : Sides
        A hold-out.
    crossed : callable
        Makes the cross-validation; called only where the hold-out leaves fewer than `ENOUGH` groups.
    task, options
        Of the run; its budget counts as far as requests, tokens and dollars are known beforehand.
    more : Rated, optional
        Rows that will be learned from in every fold and cost requests, though they are on no side yet.

    Returns
    -------
    Sides
        One of the two. `split` says which and why, with what either would ask of a model; the hold-out's reasons
        are that it leaves enough groups, that there are too few to cross-validate, that the budget does not reach for
        cross-validation, or that this takes more than five times the requests of the hold-out.
    """

    def asking(sides: Sides, *, most: bool) -> Usage:
        return estimate_run(sides.with_learning(more) if more else sides, task, options, most=most)

    groups = len(set(held.test.groups))
    left = f"holding out {FRACTION:g} of the rows leaves {groups} group{'' if groups == 1 else 's'} to test on"
    if groups >= ENOUGH:
        requests = asking(held, most=False).requests
        costs = f" It asks about {requests:,} requests." if requests else ""
        return replace(held, split=f"Hold-out: {left}.{costs}")
    if groups + len(set(held.train.groups)) < FEW:
        return replace(held, split=f"Hold-out: {left}, and there are too few groups to cross-validate.")
    other = crossed()
    plain, bound = (asking(sides, most=True) for sides in (held, other))
    asked = f" A hold-out would ask at most {plain.requests:,} requests, cross-validation at most {bound.requests:,}."
    costs = asked if bound.requests else ""
    name = f"{len(other.folds)}-fold cross-validation by group"
    short = budget_lines(options.budget, bound, short=True)
    why = f"the budget does not reach for {name}: {' and '.join(short)}" if short else ""
    if not short and bound.requests > MOST_TIMES * plain.requests:
        why = f"{name} would take more requests than five times the hold-out"
    if why:
        return replace(held, split=f"Hold-out, though {left}: {why}.{costs}")
    return replace(other, split=f"{name[0].upper()}{name[1:]}: {left}, fewer than {ENOUGH}.{costs}")
