"""Who is to be asked what: the jobs that are left, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.scoring.plan import Group, Plan
from metricsmith.scoring.results import PENDING
from metricsmith.scoring.workers import Job

__all__ = ["jobs"]


def jobs(
    plan: Plan,
    rows: Sequence[dspy.Example],
    codes: NDArray[np.int8],
    due: NDArray[np.bool_],
    numbers: Iterable[int],
    batch_n: bool,
) -> Iterator[Job]:
    """Go through what is due, and take the mark away from what a job is made of.

    Row by row, so that a run that is cut short leaves complete rows; the repetitions of a row follow one
    another, because their prompts are the same and the provider may have it cached.

    Parameters
    ----------
    plan : Plan
    rows : sequence of dspy.Example
        n rows.
    codes : int8 array, shape (S, n)
        -1 where nothing is known; looked at when the row's turn comes.
    due : bool array, shape (S, n)
        What is to be asked.
    numbers : iterable of int
        The rows to go through.
    batch_n : bool
        One job for all repetitions.
    """
    members = [_members(plan, group) for group in plan.groups]
    for number in numbers:
        if not due[:, number].any():
            continue
        for group, places in zip(plan.groups, members, strict=True):
            runs = sorted(group.by_run)
            for chosen in [runs] if batch_n else [[run] for run in runs]:
                job = _job(plan, group, places, rows[number], number, chosen, codes, due)
                if job is not None:
                    yield job


def _members(plan: Plan, group: Group) -> list[dict[int, int]]:
    """For each metric of a group, its slots by repetition."""
    members: dict[str, dict[int, int]] = {}
    for run, places in group.by_run.items():
        for place in places:
            members.setdefault(plan.slots[place].fingerprint, {})[run] = place
    return list(members.values())


def _job(
    plan: Plan,
    group: Group,
    members: Sequence[Mapping[int, int]],
    row: dspy.Example,
    number: int,
    runs: Sequence[int],
    codes: NDArray[np.int8],
    due: NDArray[np.bool_],
) -> Job | None:
    """The job for those of `runs` in which anything is left to ask; None if nothing is."""

    def left(place: int | None) -> int | None:
        if place is None or not due[place, number]:
            return None
        due[place, number] = False
        return place if codes[place, number] == PENDING else None

    wanted = [[left(member.get(run)) for run in runs] for member in members]
    kept = [r for r in range(len(runs)) if any(places[r] is not None for places in wanted)]
    if not kept:
        return None
    chosen = [
        (next(iter(member.values())), tuple(places[r] for r in kept))
        for member, places in zip(members, wanted, strict=True)
        if any(places[r] is not None for r in kept)
    ]
    return Job(
        asker=group.asker,
        metrics=tuple(plan.slots[place].metric for place, _ in chosen),
        row=row,
        runs=tuple(runs[r] for r in kept),
        number=number,
        places=tuple(places for _, places in chosen),
    )
