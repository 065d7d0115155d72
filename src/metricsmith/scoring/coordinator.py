"""The one place that hands out work, books its results, and decides when to stop.

One turn of its loop does four things: it takes as many due jobs as there is room for, writes what is finished and
claims these jobs in one transaction, hands out those that are its own, and books what has come back in the meantime.
So nothing that was paid for is lost, and no two processes on one store pay for the same judgement.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from os import PathLike
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.models.engine.encoder import encodings_kept
from metricsmith.errors import Interrupted, ModelFailure, StoreError
from metricsmith.model_calls import rate_limiter
from metricsmith.model_calls.limits import PerJudge
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.records import Judgement, Status, Usage
from metricsmith.scoring.jobs import Job, Workers, jobs
from metricsmith.scoring.local import local_chunks
from metricsmith.scoring.plan import ScoringPlan
from metricsmith.scoring.progress import progress_bar
from metricsmith.scoring.results import ANSWERED_BADLY, FAILED, PENDING, Results, Rounds
from metricsmith.scoring.table import ScoreTable
from metricsmith.store import Entry, Key, Store

__all__ = ["Coordinator"]

HASTE = 1.0  # seconds that an interrupted run waits for answers that are on their way
PATIENCE = 60.0  # the same, where the run itself decided to stop: those answers are paid for
POLL = 0.1  # seconds between two looks at what another process is working on
TICK = 0.5  # seconds after which a waiting run looks whether it is to stop
RENEWAL = 15.0  # seconds after which claims are renewed while answers are slow to come
ENTRIES_AT_A_TIME = 1_000

logger = logging.getLogger("metricsmith.scoring")


class Coordinator:
    """One run: a scoring plan, its results so far, and the jobs that are out.

    Parameters
    ----------
    plan : ScoringPlan
    rows : list of dspy.Example
    store : path, Store or None
    limiter : RateLimiter
        Admits every request; `shared` if it belongs to a run around this one.
    window : int
        Jobs that may be out, or answered and not yet stored: what a killed process loses at most.
    max_failure_rate, progress, batch_n
        As for `score`.
    """

    def __init__(
        self,
        plan: ScoringPlan,
        rows: list[dspy.Example],
        *,
        store: str | PathLike[str] | Store | None,
        limiter: RateLimiter,
        shared: bool,
        window: int,
        max_failure_rate: float | PerJudge,
        progress: bool,
        batch_n: bool,
    ) -> None:
        self.plan, self.limiter, self.shared = plan, limiter, shared
        # A store of its own: claims belong to a run, and another run may use the caller's store at the same time.
        self.store = None if store is None else Store(store.path if isinstance(store, Store) else store)
        self.results = Results(plan, rows, self.store)
        self.window, self.progress, self.batch_n = window, progress, batch_n
        self.per_judge: PerJudge | None = None
        if isinstance(max_failure_rate, PerJudge):
            self.per_judge, max_failure_rate = max_failure_rate, max_failure_rate.rate
        self.max_failure_rate = max_failure_rate
        self.counted = plan.asked or list(range(len(plan.metric_runs)))  # in messages on how far the run came
        self.requested = len(plan.asked) * len(rows)  # at most
        self.failures: list[Judgement] = []  # that count for all metrics together
        self.workers = Workers(window)
        self.rounds = Rounds(self.results)
        self._touched: set[int] = set()  # rows of which something has become known
        self._unwritten: list[tuple[int, int, Judgement]] = []
        self._unreported = 0
        self._cut = ""  # why nothing more is asked
        self._cut_status = Status.SKIPPED
        self._hurried = False
        self._renewed = time.monotonic()

    def hurry(self, reason: str) -> None:
        """Ask nothing more, from any thread; answers that are on their way are waited for, but not for long."""
        self._cut = self._cut or reason
        self._hurried = True
        if not self.shared:
            self.limiter.stop(reason)

    def finish(self) -> ScoreTable:
        """Run to the end, or to the error that ends it."""
        try:
            self._run()
        except KeyboardInterrupt as interrupt:
            self._wind_up("the run was interrupted", HASTE)
            stop = Interrupted(f"interrupted with {self._progress()} finished")
            stop.table = self._closed()
            raise stop from interrupt
        except Exception as problem:
            if isinstance(problem, StoreError):
                self.store = None  # from here on judgements are kept in memory, as far as the table needs them
            self._wind_up(str(problem), PATIENCE)
            if isinstance(problem, ModelFailure | StoreError):
                problem.table = self._closed()
            raise
        finally:
            self.workers.close()
            try:
                if self.results.store is not None:  # judgements are read from it as they are asked for
                    self.results.store.release()
            except StoreError as problem:  # what was scored stands; the claims end with this process or lapse
                logger.warning("claims were not given up: %s", problem)
        return self._closed()

    def _run(self) -> None:
        self.results.read_columns()
        self.results.recall()
        pending = self.results.codes == PENDING
        left, asked = int(pending.sum()), int(pending[self.plan.asked].sum())
        shown = self.progress and left > 0
        in_force = nullcontext() if self.shared else rate_limiter.use(self.limiter)
        with in_force, progress_bar(shown=shown, total=left, desc="scoring", unit="judgement", leave=False) as bar:
            self.rounds.total = left - asked
            self._compute(bar)
            self.rounds.start()
            self._ask(bar)
            self._follow()
            self._check_whole()
            self._check_failures(int(self.rounds.wanted[self.plan.asked].sum()))

    def _compute(self, bar: Any) -> None:
        """Judge what this machine computes; each chunk is stored and shown before the next."""
        ended = ""
        with encodings_kept():
            for chunk in local_chunks(self.results):
                ended = chunk.ended or ended
                self._book(chunk.judgements, told=bool(chunk.ended))
                for place in chunk.places if chunk.ended and self.per_judge else ():
                    name = self.plan.metric_runs[place].metric.name
                    self._touched.update(self.rounds.drop(place, f"{name} is dropped: {chunk.ended}"))
                self._write([])
                bar.update(self._unreported)
                self._unreported = 0
                self._check_failures(self.requested)
                if self._cut:
                    break
        if ended and not self.plan.asked and self.max_failure_rate < 1 and not (self.results.codes == 0).any():
            raise ModelFailure(f"not one number came: {ended}")

    def _ask(self, bar: Any) -> None:
        """Hand out jobs as long as there are any, and book what comes back."""
        coming = jobs(self.rounds, range(len(self.results.rows)), self.batch_n)
        sooner: deque[Job] = deque()  # further rounds go before rows that follow: a run cut short leaves whole rows
        elsewhere: deque[Job] = deque()  # another process is working on these
        while True:
            if again := self._due_again():
                sooner.extend(jobs(self.rounds, again, self.batch_n))
            bar.total = self.rounds.total
            room = 0 if self._cut else self.window - self.workers.out
            new = [sooner.popleft() for _ in range(min(room, len(sooner)))]
            new.extend(islice(coming, room - len(new)))
            wanted = new or list(islice(self._again(elsewhere), room))
            for job, ours in zip(wanted, self._write(wanted), strict=True):
                if not ours:
                    elsewhere.append(job)
                elif self._unknown(job):
                    self.workers.submit(job)
            bar.update(self._unreported)
            self._unreported = 0
            if not self.workers.out and (self._cut or not (wanted or elsewhere or self._touched)):
                return None
            # Jobs of other processes leave room for the next ones, if there are any.
            more = bool(new) and self.workers.out < self.window and (len(new) == room or self.rounds.adaptive)
            self.workers.wait(0.0 if more else POLL if elsewhere else TICK if self.workers.out else 0.0)
            self._collect()
            if self._hurried:
                return self._wind_up(self._cut, HASTE)

    def _due_again(self) -> list[int]:
        """Rows in which more is due, after a look at those of which more has become known."""
        touched = list(self._touched)
        self._touched.clear()
        return self.rounds.after(touched) if self.rounds.adaptive else []

    def _again(self, elsewhere: deque[Job]) -> Iterator[Job]:
        """Yields the jobs that another process had claimed and has not finished."""
        for _ in range(len(elsewhere)):
            job = elsewhere.popleft()
            if self._unknown(job):
                yield job

    def _unknown(self, job: Job) -> bool:
        """True if a job is still to be done, after a look at what another process may have stored."""
        places = [place for run in job.places for place in run if place is not None]
        if self.store is not None:
            self.results.recall_row(job.number)
            self._touched.add(job.number)
        return bool((self.results.codes[places, job.number] == PENDING).any())

    def _collect(self) -> None:
        """Book finished jobs; the first error among them is raised when all are booked."""
        problem = self._book_ready()
        if problem is not None:
            raise problem
        if self.limiter.hopeless and not self.shared:
            raise ModelFailure(f"the server refuses to work: {self.limiter.hopeless}")
        self._check_failures(self.requested)
        if self.store is not None and time.monotonic() - self._renewed > RENEWAL:
            self.store.renew()
            self._renewed = time.monotonic()

    def _check_failures(self, requested: int) -> None:
        """End the run where too many of the requested judgements failed; until all is known, of those at most."""
        if len(self.failures) > self.max_failure_rate * requested + 1e-9:  # .29 x 100 is a little less than 29
            raise self._too_many(requested)
        dropped = self.results.dropped
        if self.per_judge and dropped and (self.per_judge.strict or len(dropped) == len(self.plan.metric_runs)):
            left = "" if self.per_judge.strict else ", and no metric is left"
            raise ModelFailure(f"{next(iter(dropped.values()))}{left}; {self._kept()}")

    def _check_whole(self) -> None:
        """End the larger run that is cut short here: it makes nothing of half of its judgements."""
        outer = None if self.shared else self.limiter.outer
        if self._cut and outer is not None and outer.refused:
            raise ModelFailure(f"{self._progress()} of this step were known", self._cut_status)

    def _book_ready(self) -> BaseException | None:
        """Book finished jobs; returns the first error among them."""
        problem, ready = None, self.workers.ready
        while ready:
            problem = problem or ready[0].problem
            if ready[0].problem is None:
                self._book(ready[0].placed())
            ready.popleft()  # not before: an interrupt while it is booked leaves it in its place
            self.workers.out -= 1
        return problem

    def _book(self, placed: list[tuple[int, int, Judgement]], *, told: bool = False) -> None:
        """Enter judgements, log failures unless they are `told`, and set aside what the store is to keep."""
        for place, row, judgement in placed:
            asked = place in self.rounds.first
            stopped = asked and judgement.status is Status.SKIPPED and self.limiter.stopped
            if stopped or judgement.status is Status.BUDGET:
                self._cut = self._cut or judgement.error
                self._cut_status = judgement.status
                self.results.spent[place] += judgement.usage  # what was tried before the run was cut short
                continue
            if place in self.results.numbers:
                self._unwritten.append((place, row, judgement))
            if place in self.results.dropped:  # the answer was on its way
                self.results.spent[place] += judgement.usage
                continue
            self.results.enter(place, row, judgement)
            self._touched.add(row)
            self._unreported += 1
            if not judgement.ok and judgement.status is not Status.SKIPPED:
                if asked and (not self.per_judge or judgement.status is Status.TRANSPORT):
                    self.failures.append(judgement)
                if not told:
                    row_id, ended = self.results.rows[row].get("id", row), judgement.status.value
                    line = "row %s, metric %s, run %d: %s: %s"
                    logger.warning(line, row_id, judgement.metric, judgement.run, ended, judgement.error)
                self._drop_if_certain(place, judgement.error)

    def _drop_if_certain(self, place: int, error: str) -> None:
        """Drop a metric that fails too often even if all its other answers are of use."""
        if self.per_judge is None:
            return
        codes, first = self.results.codes[place], self.rounds.first.get(place)
        if first is None:  # computed here: every failure is the metric's own
            failed = int(np.isin(codes, FAILED).sum())
        else:  # equal rows get the same answer, and what fails on the way is no judge's fault
            failed = int(np.isin(np.where(codes == PENDING, codes[first], codes), ANSWERED_BADLY).sum())
        if failed <= self.max_failure_rate * len(codes) + 1e-9:
            return
        reason = (
            f"{self.plan.metric_runs[place].metric.name} is dropped: at least {failed} of its {len(codes)} judgements "
            f"failed, more than the {self.max_failure_rate:.0%} that are allowed, such as: {error}"
        )
        self._touched.update(self.rounds.drop(place, reason))
        logger.warning("%s", reason)

    def _write(self, wanted: list[Job]) -> list[bool]:
        """Store finished judgements and claim wanted jobs, in one transaction; True for each job that is ours."""
        if self.store is None:
            self.results.keep(self._unwritten)
            self._unwritten.clear()
            return [True] * len(wanted)
        entries = [
            Entry(self.results.key(place, row), str(self.results.rows[row].get("id", "")), judgement)
            for place, row, judgement in self._unwritten
        ]
        claims: dict[int, Key] = {}  # by the job's place among those that are wanted
        for number, job in enumerate(wanted):
            if (key := self._claim(job)) is not None:
                claims[number] = key
        ours = [True] * len(wanted)
        if entries or claims:
            granted = self.store.exchange(entries, list(claims.values()))
            self._unwritten.clear()
            for number, held in zip(claims, granted, strict=True):
                ours[number] = held
        return ours

    def _claim(self, job: Job) -> Key | None:
        """The key that stands for a job among processes; None if a store does not keep what comes of it."""
        numbers = self.results.numbers
        places = [place for run in job.places for place in run if place in numbers]
        # The lowest number, so that two panels of the same criteria in another order claim the same.
        return self.results.key(min(places, key=lambda place: numbers[place]), job.number) if places else None

    def _follow(self, until: float = math.inf) -> None:
        """Give rows with the same content as an earlier one its judgements; they cost nothing."""
        codes = self.results.codes
        for place in self.plan.asked:
            first, wanted = self.rounds.first[place], self.rounds.wanted[place]
            for row in np.flatnonzero(wanted & (codes[place] == PENDING) & (codes[place, first] != PENDING)).tolist():
                judgement = self.results.judgement(place, int(first[row]))
                self._book([(place, row, replace(judgement, usage=Usage()))])
                if len(self._unwritten) >= ENTRIES_AT_A_TIME:
                    self._write([])
                if time.monotonic() > until:
                    break
        self._write([])

    def _wind_up(self, reason: str, seconds: float) -> None:
        """Stop asking and keep the answers that come within `seconds`; a store that fails now ends nothing more."""
        self.hurry(reason)
        until = time.monotonic() + seconds
        try:
            self._await(until)
        except KeyboardInterrupt:  # the user has lost patience
            until = time.monotonic() + HASTE
            self._await(until)
        if self.store is not None:
            self.store.patience = HASTE / 2
        try:
            self._write([])
            self._follow(until)
        except StoreError as problem:
            logger.warning("what was finished last is in the table alone: %s", problem)
            self.store = None
            self._write([])

    def _await(self, until: float) -> None:
        """Book the answers that come until then."""
        while self.workers.out and (left := until - time.monotonic()) > 0:
            self.workers.wait(left)
            self._book_ready()

    def _progress(self) -> str:
        """The count of known judgements among those that are or may be wanted, as a text."""
        self._due_again()
        known = self.results.codes[self.counted] != PENDING
        wanted = (known | self.rounds.possible()[self.counted]).sum()
        kind = "model judgements" if self.plan.asked else "judgements"
        return f"{known.sum()} of {'at most ' if self.rounds.adaptive else ''}{wanted} {kind}"

    def _closed(self) -> ScoreTable:
        """The table, with a status for everything."""
        self._due_again()
        self.results.close(self._cut, self._cut_status, self.rounds.possible())
        return ScoreTable(self.plan.metrics, self.plan.columns, self.results)

    def _too_many(self, requested: int) -> ModelFailure:
        kinds = Counter(judgement.status.value for judgement in self.failures)
        first = self.failures[0]
        most = "at most " if self.rounds.adaptive and requested == self.requested else ""
        return ModelFailure(
            f"{len(self.failures)} of {most}{requested} judgements failed "
            f"({', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}), more than the "
            f"{self.max_failure_rate:.0%} that are allowed; the first: {first.metric}: {first.error}; {self._kept()}"
        )

    def _kept(self) -> str:
        """A clause on how much was answered, and where it is kept."""
        answered = int((self.results.codes[self.counted] == 0).sum())
        if self.store is not None:
            return f"{answered} were answered and stand in the store: the same run goes on from there"
        there = "stand in this error's table; with store=... the same run would go on from there"
        return f"{answered} were answered and {there}"
