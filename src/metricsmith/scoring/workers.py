"""Threads that ask: they take jobs from one queue and put what came of them into another.

They are daemon threads, because a request that hangs must not keep the interpreter from ending.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import dspy

from metricsmith.metric import Asker, Metric
from metricsmith.records import Judgement

__all__ = ["Done", "Job", "Workers"]

MANY = 16  # jobs that are out, from which on it pays to wait a moment for a second answer
MOMENT = 0.005  # seconds


@dataclass(frozen=True, slots=True)
class Job:
    """One call of an asker: which metrics, on which row, in which repetitions.

    `places` are the slots that it fills, ``places[j][r]`` for metric j in ``runs[r]``; None where nothing is wanted.
    """

    asker: Asker
    metrics: tuple[Metric, ...]
    row: dspy.Example
    runs: tuple[int, ...]
    number: int
    places: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job: its judgements, or the error that stops the run."""

    job: Job
    judgements: list[list[Judgement]]
    problem: BaseException | None = None


class Workers:
    """At most `most` threads, started as they are needed, in copies of the context that is in force then.

    Attributes
    ----------
    out : int
        Jobs that were handed out and are not yet taken back.
    ready : deque of Done
        Finished jobs that are not yet taken back.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.out = 0
        self.ready: deque[Done] = deque()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._threads = 0

    def submit(self, job: Job) -> None:
        """Hand out one job."""
        self.out += 1
        if self._threads < min(self.out, self.most):
            self._threads += 1
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._work,), daemon=True, name="metricsmith scoring").start()
        self._jobs.put(job)

    def wait(self, seconds: float) -> None:
        """Move what is finished into `ready`, waiting for the first at most `seconds`.

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

    def finished(self) -> Iterator[Done]:
        """Take what is ready, one by one; an interrupt while one is used leaves it in its place."""
        while self.ready:
            yield self.ready[0]
            self.ready.popleft()
            self.out -= 1

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
