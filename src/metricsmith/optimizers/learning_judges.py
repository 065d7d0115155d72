"""Judges that learn from the ratings themselves: one shown rated examples, one tuned by MIPROv2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import BoundedSemaphore

import dspy

from metricsmith.datasets.splits import holdout
from metricsmith.errors import InputError
from metricsmith.metric import content_hash
from metricsmith.model_calls.limits import Concurrency
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.optimizers.examples import draw_examples
from metricsmith.optimizers.generation import Generated, attempt, check_complete
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.tuner import EXAMPLE_TOKENS, JudgeTuner, budget_for
from metricsmith.optimizers.tuning.methods import THREADS
from metricsmith.optimizers.tuning.splits import rated_splits
from metricsmith.programs.asked_scale import asked_note
from metricsmith.programs.judges.base import Judge, slug
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.records import Task
from metricsmith.threads import in_threads

__all__ = ["LEARNED", "Start", "learn", "learned_counts", "startable"]

MOST_ROWS = 80  # to learn from and to select by; more rows cost more with every candidate
DRAWS = 4  # of examples, for the example-based judge
TRIALS = 12  # evaluations of the selection rows that MIPROv2 is given requests for


@dataclass(frozen=True)
class Start:
    """A judge to be tuned, its tuner, and the rows to learn from and to select by."""

    judge: Judge
    tuner: JudgeTuner
    learn: list[dspy.Example]
    select: list[dspy.Example]

    @property
    def bound(self) -> int:
        """The most requests that tuning takes."""
        return self.tuner.bound(self.judge, self.learn, self.select)

    @property
    def expected(self) -> int:
        """The requests that tuning is likely to take, faults aside."""
        return self.tuner.expected(self.judge, self.learn, self.select)


def learn(
    rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], *, seed: int = 0, strict: bool = False
) -> Generated:
    """Make judges from rated rows: families side by side, judges of a family one after the other.

    All together have as many requests in flight as one search has. Judges and errors are the same as if the families
    followed one another: a failure that ends everything ends only the families behind it.

    These judges keep their values on the rows that they learned from, at most 80 inside each fold. At these sizes that
    is all of them: without values none could be a component.

    Parameters
    ----------
    rows : sequence of dspy.Example
        Rated training rows; at most 80 are used, whole groups drawn by `seed`.
    task : Task
    counts : mapping of str to int
        ``examples`` and ``tuned``, and how many of each; each has a seed of its own.
    seed : int
    strict : bool
        True: a judge that cannot be made ends everything.

    Returns
    -------
    Generated
        A judge that cannot be made, for want of rows or for its failures, is replaced by a note. Where judges are not
        asked in the raters' numbers, the first note gives the reason.

    Raises
    ------
    HopelessModel
        If the model refuses to work.
    ModelFailure
        With `strict`, if a judge cannot be made.
    """
    places = _places(counts)
    if not places:
        return Generated()
    said = asked_note(task.target, task.scale, [float(row[task.target]) for row in rows])
    room = BoundedSemaphore(THREADS)
    limiters = {place: RateLimiter(Concurrency(), room=room) for place in places}

    def family(name: str) -> Generated:
        made = Generated()
        for place in (place for place in places if place[0] == name):
            made += attempt({name: 1}, partial(_learned, name, rows, task, seed + place[1], limiters[place]))
        return check_complete(made, strict)

    def stop() -> None:
        for limiter in limiters.values():
            limiter.stop("judges are learned no more")

    families = [partial(family, name) for name in dict(places)]
    learned = in_threads(families, len(families), "metricsmith learning", on_error=stop)
    return sum(learned, Generated(notes=(said,) if said else ()))


def _learned(name: str, rows: Sequence[dspy.Example], task: Task, seed: int, limiter: RateLimiter) -> Generated:
    """One judge, with a note on its tuning."""
    start = LEARNED[name](rows, task, seed)
    judge = start.tuner.compile(start.judge, start.learn, start.select, limiter=limiter)
    tuning = judge.tuning
    note = (
        f"{judge.name}: {tuning.method} for {tuning.objective} on {tuning.learned} + {tuning.selected} rows; "
        f"{tuning.selection.verdict}; at most {tuning.bound} requests, {tuning.usage.requests} sent"
    ) + (f"; ended early: {tuning.ended}" if tuning.ended else "")
    return Generated((judge,), tuning.usage, (note,))


def startable(rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], *, seed: int = 0) -> list[Start]:
    """The judges that `learn` with the same arguments can make, before they have learned anything; sends nothing.

    For the others there are too few rows or groups, or ratings that do not vary.
    """
    starts = []
    for name, number in _places(counts):
        try:
            start = LEARNED[name](rows, task, seed + number)
            start.tuner.bound(start.judge, start.learn, start.select)
        except InputError:
            continue
        starts.append(start)
    return starts


def _examples(rows: Sequence[dspy.Example], task: Task, seed: int) -> Start:
    """The best of several balanced draws of rated rows, by rows that are in none.

    The judge starts from its first draw and not from no examples, so that one that comes back unchanged still is an
    example-based judge.
    """
    learned, selected = _sides(rows, task, seed)
    judge = ExampleJudge(measure=task.target, task=task.description, scale=task.scale)
    numbers = judge.asked_numbers(learned.ratings).tolist()
    shown = [judge.example(row, number) for row, number in zip(learned.rows, numbers, strict=True)]
    first = draw_examples(shown, learned.ratings.tolist(), tokens=EXAMPLE_TOKENS, draws=1, seed=seed)[0]
    judge.judge.demos = [shown[place] for place in first]
    budget = budget_for((DRAWS + 1) * len(selected))
    return Start(judge, JudgeTuner("labeled", budget=budget, task=task, seed=seed), learned.rows, selected.rows)


def _tuned(rows: Sequence[dspy.Example], task: Task, seed: int) -> Start:
    """A judge of the rating as a whole, its instruction and demonstrations searched by MIPROv2."""
    learned, selected = _sides(rows, task, seed)
    judge = GuidelineJudge(
        name=f"{slug(task.target)}_tuned",
        measure=task.target,
        guideline=f"Say how good the output is, as {task.target}.",
        task=task.description,
        scale=task.scale,
    )
    budget = budget_for(len(learned) + TRIALS * len(selected) + 40)
    return Start(judge, JudgeTuner("mipro", budget=budget, task=task, seed=seed), learned.rows, selected.rows)


LEARNED: Mapping[str, Callable[[Sequence[dspy.Example], Task, int], Start]] = {"examples": _examples, "tuned": _tuned}


def learned_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Those families whose judges learn from the ratings themselves."""
    return {name: count for name, count in counts.items() if name in LEARNED}


def _places(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, number) for name, count in counts.items() for number in range(count)]


def _sides(rows: Sequence[dspy.Example], task: Task, seed: int) -> tuple[RatedRows, RatedRows]:
    """At most `MOST_ROWS` rows in two halves, whole groups on either side."""
    rated = RatedRows.of(rows, task.target)
    if len(rated) > MOST_ROWS:
        texts = [content_hash(dict(row.inputs().items())) for row in rated.rows]
        split = holdout(
            rated.groups, texts, fraction=1 - MOST_ROWS / len(rated), seed=seed, ratings=rated.ratings.tolist()
        )
        rated = rated.take(split.train)
    return rated_splits(rated.rows, None, task.target, 0.5, seed)
