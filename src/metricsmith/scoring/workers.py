"""Threads that ask: they take jobs from one queue and put what came of them into another.

They are daemon threads, because a request that hangs must not keep the interpreter from ending.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from dataclasses import dataclass

import dspy

from metricsmith.metric import Asker, Metric
from metricsmith.records import Judgement

__all__ = ["Done", "Job", "Workers"]


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
    """At most `most` threads, started as they are needed, in copies of the context that is in force now."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.out = 0
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

    def collect(self, seconds: float) -> list[Done]:
        """Everything that is finished, waiting for the first at most `seconds`."""
        done: list[Done] = []
        try:
            done.append(self._done.get(timeout=max(0.0, seconds)))
            while True:
                done.append(self._done.get_nowait())
        except queue.Empty:
            pass
        self.out -= len(done)
        return done

    def drain(self, seconds: float) -> list[Done]:
        """What finishes within `seconds`; what does not is left to itself."""
        done: list[Done] = []
        end = time.monotonic() + seconds
        while self.out and (left := end - time.monotonic()) > 0:
            done += self.collect(left)
        return done

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
