"""The jobs of a scoring, and the threads that ask.

The threads take jobs from one queue and put their results into another. They are daemon threads, because a request
that hangs must not keep the interpreter from ending.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import dspy

from metricsmith.metric import Asker, Metric
from metricsmith.records import Judgement, Usage
from metricsmith.scoring.plan import AskerRuns
from metricsmith.scoring.results import PENDING, Rounds

__all__ = ["Done", "Job", "Workers", "jobs"]

MANY = 16  # jobs that are out, from which on it pays to wait a moment for a second answer
MOMENT = 0.005  # seconds


@dataclass(frozen=True, slots=True)
class Job:
    """One call of an asker: its metrics, the row and the repetitions.

    `places` are those of the metric runs that it fills, ``places[j][r]`` for metric j in ``runs[r]``; None where
    nothing is wanted.
    """

    asker: Asker
    metrics: tuple[Metric, ...]
    row: dspy.Example
    runs: tuple[int, ...]
    number: int
    places: tuple[tuple[int | None, ...], ...]


def jobs(rounds: Rounds, numbers: Iterable[int], batch_n: bool) -> Iterator[Job]:
    """Yields the jobs that are due, in row order, and takes the marks away from what a job is made of.

    In row order, so that a run that is cut short leaves complete rows; the repetitions of a row follow one
    another, because their prompts are the same and the provider may have it cached.

    Parameters
    ----------
    rounds : Rounds
        The judgements that are due and known; looked at when a row's turn comes.
    numbers : iterable of int
        The rows to go through.
    batch_n : bool
        One job for all repetitions.
    """
    plan = rounds.results.plan
    askers = []
    for asker in plan.askers:
        members: dict[str, dict[int, int]] = {}  # for each metric of the asker, its metric runs by run number
        for run, places in asker.by_run.items():
            for place in places:
                members.setdefault(plan.metric_runs[place].fingerprint, {})[run] = place
        runs = sorted(asker.by_run)
        askers.append((asker, list(members.values()), [runs] if batch_n else [[run] for run in runs]))
    for number in numbers:
        if rounds.due[:, number].any():
            for asker, metric_runs, requests in askers:
                for chosen in requests:
                    job = _job(rounds, asker, metric_runs, number, chosen)
                    if job is not None:
                        yield job


def _job(
    rounds: Rounds, asker: AskerRuns, members: Sequence[Mapping[int, int]], number: int, runs: Sequence[int]
) -> Job | None:
    """The job for those of `runs` in which anything is left to ask; None if nothing is."""
    results, due = rounds.results, rounds.due
    wanted: list[list[int | None]] = []
    for member in members:
        left: list[int | None] = []
        for run in runs:
            place = member.get(run)
            if place is not None and due[place, number]:
                due[place, number] = False
                left.append(place if results.codes[place, number] == PENDING else None)
            else:
                left.append(None)
        wanted.append(left)
    kept = [r for r in range(len(runs)) if any(places[r] is not None for places in wanted)]
    if not kept:
        return None
    chosen = [
        (next(iter(member.values())), tuple(places[r] for r in kept))
        for member, places in zip(members, wanted, strict=True)
        if any(places[r] is not None for r in kept)
    ]
    return Job(
        asker=asker.asker,
        metrics=tuple(results.plan.metric_runs[place].metric for place, _ in chosen),
        row=results.rows[number],
        runs=tuple(runs[r] for r in kept),
        number=number,
        places=tuple(places for _, places in chosen),
    )


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a job: its judgements, or the error that stops the run."""

    job: Job
    judgements: list[list[Judgement]]
    problem: BaseException | None = None

    def placed(self) -> list[tuple[int, int, Judgement]]:
        """Place, row and judgement of all that was wanted; the cost of what was not goes to the first of them."""
        placed, stray = [], Usage()
        for judgements, places in zip(self.judgements, self.job.places, strict=True):
            for judgement, place in zip(judgements, places, strict=True):
                if place is None:
                    stray += judgement.usage
                else:
                    placed.append((place, self.job.number, judgement))
        if stray != Usage():
            place, row, judgement = placed[0]
            placed[0] = (place, row, replace(judgement, usage=judgement.usage + stray))
        return placed


@dataclass(eq=False)
class Workers:
    """At most `most` threads, started as they are needed, in copies of the context that is in force then.

    Attributes
    ----------
    out : int
        Jobs that were handed out and are not yet taken back; the caller counts down as it takes them.
    ready : deque of Done
        Finished jobs that are not yet taken back.
    """

    most: int
    out: int = 0
    ready: deque[Done] = field(default_factory=deque)
    _jobs: queue.SimpleQueue[Job | None] = field(default_factory=queue.SimpleQueue)
    _done: queue.SimpleQueue[Done] = field(default_factory=queue.SimpleQueue)
    _threads: int = 0

    def submit(self, job: Job) -> None:
        """Hand out one job."""
        self.out += 1
        if self._threads < min(self.out, self.most):
            self._threads += 1
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._work,), daemon=True, name="metricsmith scoring").start()
        self._jobs.put(job)

    def wait(self, seconds: float) -> None:
        """Move finished jobs into `ready`, waiting for the first at most `seconds`.

        Where many are out, a moment later there is more, and all of it fits into one transaction.
        """
        try:
            self.ready.append(self._done.get(timeout=max(0.0, seconds)))
            if self.out >= MANY:
                time.sleep(MOMENT)
            while True:
                self.ready.append(self._done.get_nowait())
        except queue.Empty:
            pass

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                done = Done(job, job.asker.ask(job.metrics, job.row, job.runs))
            except BaseException as problem:  # handed over, so that the coordinator raises it in the caller's thread
                done = Done(job, [], problem)
            self._done.put(done)
