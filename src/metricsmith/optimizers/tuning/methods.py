"""How candidates are found: four of DSPy's ways, each with the most requests that it can send.

A method changes nothing by itself: whatever it tries is asked through `Student`, and what has judged all selection
rows is a candidate. Limits are chosen from the bound, never the other way round.
"""

from __future__ import annotations

import contextvars
import logging
import math
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import dspy

from metricsmith.errors import NeedsError
from metricsmith.metric import content_hash
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.tuning.bench import Bench, CreditMetric
from metricsmith.optimizers.tuning.student import Demos, Meter, Student, own_demos, without_demos
from metricsmith.programs.texts import fence

__all__ = [
    "EXPECTED",
    "METHODS",
    "THREADS",
    "Job",
    "Method",
    "evaluate",
    "labeled_count",
    "mipro_count",
    "mipro_trials",
    "quiet",
]

THREADS = 8
MINIBATCH = 4  # rows that GEPA reflects on
DEMOS = 3  # bootstrapped demonstrations at most, as MIPROv2 shows its proposer
INSTRUCTIONS = 12  # that MIPROv2 writes at most
SETS = 6  # of demonstrations, tried at most
SUMMARY_BATCH = 10  # rows that MIPROv2's summary of the data reads at once
SUMMARY_MOST = 10  # batches that it reads at most


@dataclass(frozen=True)
class Job:
    """What a method works on.

    Parameters
    ----------
    judge : dspy.Module
        As it was, demos included.
    bench : Bench
    meter : Meter
    writer : dspy.LM
        Writes instructions; not metered yet.
    calls : int
        Requests that one judgement takes.
    draws : sequence of callable
        Each gives a judge that shows a balanced draw of rated examples; empty where it cannot show any.
    seed : int
    """

    judge: dspy.Module
    bench: Bench
    meter: Meter
    writer: Any
    calls: int
    draws: Sequence[Callable[[], dspy.Module]]
    seed: int

    def student(self, judge: dspy.Module | None = None, first: Demos | None = None) -> Student:
        """The judge for an optimiser, its own demos kept in front; or another one as it is."""
        if judge is None:
            judge, first = without_demos(self.judge), own_demos(self.judge)
        return Student(judge, self.bench.answers, first, self.bench.beside)

    @property
    def learn_calls(self) -> int:
        """Requests for every learning row once."""
        return self.calls * len(self.bench.learn)

    @property
    def select_calls(self) -> int:
        """Requests for every selection row once."""
        return self.calls * len(self.bench.select)


class Marked(dspy.Example):  # type: ignore[misc]
    """A row whose texts stand between marks in its `repr`, from which MIPROv2's summary of the data is written."""

    def __repr__(self) -> str:
        return "".join(f"\n{name}: {_marked(value)}" for name, value in self.items()) + "\n"


def _marked(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "\n".join(map(_marked, value))
    return str(value) if value is None or isinstance(value, int | float) else fence(str(value))


@dataclass(frozen=True)
class Method:
    """A way to find candidates.

    Parameters
    ----------
    floor : callable
        The fewest requests, from a job, with which it can find anything; the judge's own judgements of the selection
        rows are not in it.
    bound : callable
        From a job and a number of requests to the most that it will send, at most that number.
    run : callable
        Does it, given the same number.
    """

    floor: Callable[[Job], int]
    bound: Callable[[Job, int], int]
    run: Callable[[Job, int], None]


def evaluate(job: Job, student: Student) -> None:
    """Judge every selection row; what is wrong with the module itself is raised by the first.

    Not by `dspy.Evaluate`, which empties tqdm's list of bars: two searches side by side could not both do that.
    """
    rows, metric = job.bench.select.rows, CreditMetric(job.bench)
    student(**rows[0].inputs())
    pool = ThreadPoolExecutor(THREADS, "metricsmith tuning")
    try:
        wait(
            [
                pool.submit(contextvars.copy_context().run, lambda row: metric(row, student(**row.inputs())), row)
                for row in rows
            ]
        )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C only what is on its way is waited for


def labeled_count(job: Job, requests: int) -> int:
    """The number of draws that so many requests reach for."""
    return min(SETS, len(job.draws), requests // job.select_calls)


def _labeled(job: Job, requests: int) -> None:
    """Several draws of rated examples, in place of those that the judge has."""
    for draw in job.draws[: labeled_count(job, requests)]:
        evaluate(job, job.student(draw(), {}))


def _bootstrap_count(job: Job, requests: int) -> int:
    return min(SETS, (requests - job.learn_calls) // job.select_calls)


def _bootstrap(job: Job, requests: int) -> None:
    """Sets of the judge's own judgements of learning rows that agree with the raters."""
    for number in range(_bootstrap_count(job, requests)):
        rows = _shuffled(job.bench.learn.rows, job.seed + number)
        search = dspy.BootstrapFewShot(
            metric=CreditMetric(job.bench), max_bootstrapped_demos=DEMOS + 1, max_labeled_demos=0
        )
        tuned = search.compile(job.student(), trainset=rows)
        evaluate(job, tuned)


def _mipro_requests(job: Job, instructions: int) -> int:
    """The most that MIPROv2 sends; proposals may be asked again in JSON."""
    rows, predictors = len(job.bench.learn), len(job.judge.predictors())
    summary = 2 + min(SUMMARY_MOST, math.ceil(rows / SUMMARY_BATCH))
    proposals = 2 * (summary + instructions * predictors)
    return job.learn_calls + proposals + mipro_trials(job, instructions) * job.select_calls


def mipro_trials(job: Job, instructions: int) -> int:
    """The number of candidates that MIPROv2 tries, as many as it would by itself."""
    variables = 2 * len(job.judge.predictors())
    return int(max(2 * variables * math.log2(instructions), 1.5 * instructions))


def mipro_count(job: Job, requests: int) -> int:
    """The number of instructions that so many requests reach for; 0 where they do not reach for three."""
    fitting = [count for count in range(3, INSTRUCTIONS + 1) if _mipro_requests(job, count) <= requests]
    return max(fitting, default=0)


def _mipro(job: Job, requests: int) -> None:
    """Instructions and bootstrapped demonstrations together, searched by MIPROv2."""
    count = mipro_count(job, requests)
    try:
        import optuna  # noqa: F401
    except ImportError as problem:
        raise NeedsError("MIPROv2 needs optuna: pip install optuna") from problem
    search = dspy.MIPROv2(
        metric=CreditMetric(job.bench),
        prompt_model=job.meter.wrap(job.writer),
        task_model=job.bench.answers.lm,
        auto=None,
        num_candidates=count,
        max_bootstrapped_demos=DEMOS,
        max_labeled_demos=0,
        num_threads=THREADS,
        seed=job.seed + 1,  # MIPROv2 takes 0 for none
    )
    search.compile(
        job.student(),
        trainset=[Marked(dict(row.items())).with_inputs(*row.inputs().keys()) for row in job.bench.learn.rows],
        valset=job.bench.select.rows,
        num_trials=mipro_trials(job, count),
        minibatch=False,
        program_aware_proposer=False,
        view_data_batch_size=SUMMARY_BATCH,
    )


def _gepa_step(job: Job) -> int:
    """The most that one step of GEPA sends: parent, child and its peers, two tries to reflect, all selection rows."""
    peers = job.calls * job.bench.most_peers
    return 2 * job.calls * _minibatch(job) + peers + 2 * len(job.judge.predictors()) + job.select_calls


def _minibatch(job: Job) -> int:
    return min(MINIBATCH, len(job.bench.learn))


def _gepa_floor(job: Job) -> int:
    return job.calls * job.bench.most_peers + _gepa_step(job)  # the judge as it was needs its peers too


def _gepa(job: Job, requests: int) -> None:
    """Instructions rewritten by reflection on feedback; stops while the longest step still fits."""
    bench, flow = job.bench, job.bench.answers.flow
    end = bench.sent + requests - _gepa_step(job)
    search = dspy.GEPA(
        metric=CreditMetric(bench),
        max_metric_calls=20 * requests,  # judgements that are known already count there, and cost nothing
        reflection_lm=job.meter.wrap(job.writer),
        reflection_minibatch_size=_minibatch(job),
        num_threads=THREADS,
        use_merge=False,  # it crosses predictors, and a judge has one
        seed=job.seed,
        gepa_kwargs={"stop_callbacks": [lambda _: bench.sent > end or bool(flow.stopped)]},
    )
    search.compile(job.student(), trainset=bench.learn.rows, valset=bench.select.rows)


def _auto(job: Job, requests: int) -> None:
    """Up to half on draws of rated examples, where the judge can show any; the rest on rewriting its instruction."""
    before = job.bench.sent
    _labeled(job, min(requests // 2, requests - _gepa_floor(job)))
    _gepa(job, requests - (job.bench.sent - before))


def _shuffled(rows: Sequence[dspy.Example], seed: int) -> list[dspy.Example]:
    return random.Random(seed).sample(list(rows), len(rows))


METHODS: Mapping[str, Method] = {
    "labeled": Method(
        lambda job: job.select_calls, lambda job, most: labeled_count(job, most) * job.select_calls, _labeled
    ),
    "bootstrap": Method(
        lambda job: job.learn_calls + job.select_calls,
        lambda job, most: job.learn_calls + _bootstrap_count(job, most) * job.select_calls,
        _bootstrap,
    ),
    "mipro": Method(
        lambda job: _mipro_requests(job, 3), lambda job, most: _mipro_requests(job, mipro_count(job, most)), _mipro
    ),
    "gepa": Method(_gepa_floor, lambda _, most: most, _gepa),
    "auto": Method(_gepa_floor, lambda _, most: most, _auto),
}


def _labeled_expected(job: Job, requests: int) -> int:
    """The selection rows once for each different judge; the judge as it was may show the first draw already."""
    answers, tried = job.bench.answers, job.draws[: labeled_count(job, requests - job.select_calls)]
    judges = {answers.candidate(job.judge, {}), *(answers.candidate(draw(), {}) for draw in tried)}
    return job.calls * len(judges) * _contents(job.bench.select)


def _mipro_expected(job: Job, requests: int) -> int:
    """All learning rows, for demonstrations; summary and instructions; the selection rows for each different candidate.

    Instructions are taken to differ, as those that a model writes at temperature 1 do.
    """
    count = mipro_count(job, requests - job.select_calls)
    summary = 1 + min(SUMMARY_MOST, math.ceil(len(job.bench.learn) / SUMMARY_BATCH))
    judged = _contents(job.bench.learn) + (1 + _tried(job, count)) * _contents(job.bench.select)
    return round(job.calls * judged) + summary + count * len(job.judge.predictors())


def _tried(job: Job, count: int) -> float:
    """The number of candidates that MIPROv2's sampler tries where none does better than another.

    It is the middle between that with demonstrations, which make candidates of one instruction differ, and that
    without: a judge that agrees with nobody leaves none.
    """
    import optuna

    predictors = range(len(job.judge.predictors()))
    names = [f"{place}_predictor_{what}" for place in predictors for what in ("instruction", "demos")]
    choices: dict[str, Any] = {name: optuna.distributions.CategoricalDistribution(range(count)) for name in names}
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=job.seed + 1, multivariate=True))
        study.add_trial(optuna.trial.create_trial(params=dict.fromkeys(names, 0), distributions=choices, value=0.0))
        study.optimize(
            lambda trial: 0.0 * sum(trial.suggest_categorical(name, range(count)) for name in names),
            n_trials=mipro_trials(job, count),
        )
    finally:
        optuna.logging.set_verbosity(level)
    tried = ({tuple(trial.params[name] for name in own) for trial in study.trials} for own in (names, names[::2]))
    return sum(len(candidates) - 1 for candidates in tried) / 2


def _contents(rated: Rated) -> int:
    return len({content_hash(dict(row.inputs().items())) for row in rated.rows})


EXPECTED: Mapping[str, Callable[[Job, int], int]] = {"labeled": _labeled_expected, "mipro": _mipro_expected}


_OUTPUT = threading.Lock()  # standard output belongs to the process: searches in two threads take turns


@contextmanager
def quiet(progress: bool) -> Iterator[None]:
    """Keep DSPy's printing off standard output, where a caller's results go, and off standard error unless wanted."""
    log = logging.getLogger("dspy")
    with (
        _OUTPUT,
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stderr if progress else nowhere),
    ):
        level = log.level
        if progress:
            yield
            return
        log.setLevel(max(level, logging.ERROR))
        try:
            with redirect_stderr(nowhere):
                yield
        finally:
            log.setLevel(level)
