"""Hold-out or cross-validation: what the default takes for the rows at hand, and what either would ask of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from metricsmith.errors import OptionError, nearest
from metricsmith.optimizers.induction import Options
from metricsmith.optimizers.runs import Sides, estimate_run
from metricsmith.records import Task

__all__ = ["ENOUGH", "FRACTION", "SPLITS", "check_split", "fold_count", "settled"]

SPLITS = ("auto", "holdout", "cv")
FRACTION = 0.3  # of the rated rows, where a hold-out is made
ENOUGH = 15
"""Held-out groups from which on the default holds rows out; with fewer it cross-validates."""
FEW, MANY = 3, 5
GROUPS_A_FOLD = 4
MOST_TIMES = 5  # requests of a cross-validation that nobody asked for, over those of a hold-out


def check_split(split: str, *, fraction: float | None, test: bool, cv: int | None) -> None:
    """Refuse an unknown way to split, or one that contradicts what else was asked for, with an `OptionError`."""
    if split not in SPLITS:
        raise OptionError(f"split={split!r}{nearest(split, SPLITS)} must be one of {', '.join(SPLITS)}")
    if cv is not None and test:
        raise OptionError("--cv and a test file exclude each other: cross-validation tests on every row")
    asked = "--cv" if cv is not None else "--test" if test or fraction is not None else ""
    if asked and split == ("holdout" if asked == "--cv" else "cv"):
        raise OptionError(f"--split {split} and {asked} contradict each other; leave one of them out")


def fold_count(groups: int, asks: bool) -> int:
    """The number of folds that is taken where none is asked for.

    Three cover as well as more (docs/coverage.md) and cost least, so that three are taken where a model is asked.
    Elsewhere five leave fits more rows, if each then has four groups.
    """
    return min(MANY if not asks and groups >= MANY * GROUPS_A_FOLD else FEW, groups)


def settled(
    held: Sides, crossed: Callable[[], Sides], task: Task, options: Options, most_requests: int | None = None
) -> Sides:
    """The sides that ``--split auto`` takes.

    Parameters
    ----------
    held : Sides
        A hold-out.
    crossed : callable
        Makes the cross-validation; called only where the hold-out leaves fewer than `ENOUGH` groups.
    task, options
        Of the run.
    most_requests : int, optional
        What may be spent.

    Returns
    -------
    Sides
        One of the two. `split` says which and why, with what either would ask of a model; the hold-out's reasons
        are that it leaves enough groups, that there are too few to cross-validate, or that cross-validation costs
        more than `most_requests` or more than five times the hold-out.
    """
    groups = len(set(held.test.groups))
    left = f"holding out {FRACTION:g} of the rows leaves {groups} group{'' if groups == 1 else 's'} to test on"
    if groups >= ENOUGH:
        return replace(held, split=f"Hold-out: {left}.{_cost(held, task, options)}")
    if groups + len(set(held.train.groups)) < FEW:
        return replace(held, split=f"Hold-out: {left}, and there are too few groups to cross-validate.")
    other = crossed()
    plain, bound = (estimate_run(sides, task, options, most=True).requests for sides in (held, other))
    costs = f" A hold-out would ask about {plain:,} requests, cross-validation at most {bound:,}." if bound else ""
    name = f"{len(other.folds)}-fold cross-validation by group"
    limit = MOST_TIMES * plain if most_requests is None else min(MOST_TIMES * plain, most_requests)
    if bound > limit:
        why = f"the {most_requests:,} that may be spent" if limit == most_requests else "five times the hold-out"
        return replace(held, split=f"Hold-out, though {left}: {name} would take more requests than {why}.{costs}")
    return replace(other, split=f"{name[0].upper()}{name[1:]}: {left}, fewer than {ENOUGH}.{costs}")


def _cost(sides: Sides, task: Task, options: Options) -> str:
    requests = estimate_run(sides, task, options).requests
    return f" It asks about {requests:,} requests." if requests else ""
