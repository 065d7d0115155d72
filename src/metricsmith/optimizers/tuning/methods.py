"""The search methods: four of DSPy's ways to find candidates, each with the requests that it needs, sends and expects.

A method changes nothing by itself: all that it tries is asked through `Student`, and a module that has judged all
selection rows is a candidate. Limits are chosen from the bound, never the other way round.
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
from metricsmith.metric import content_hash, fence
from metricsmith.model_calls.models import identity
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.tuning.credits import CreditMetric, Credits
from metricsmith.optimizers.tuning.splits import row_inputs
from metricsmith.optimizers.tuning.student import Demos, Meter, Student
from metricsmith.programs.specialist.examples import takes_examples
from metricsmith.version import __version__

__all__ = ["METHODS", "THREADS", "SearchMethod", "TuningJob", "judge_selection_rows", "quiet"]

THREADS = 8
MINIBATCH = 4  # rows that GEPA reflects on
DEMOS = 3  # bootstrapped demonstrations at most, as MIPROv2 shows its proposer
INSTRUCTIONS = 12  # that MIPROv2 writes at most
SETS = 6  # of demonstrations, tried at most
SUMMARY_BATCH = 10  # rows that MIPROv2's summary of the data reads at once
SUMMARY_MOST = 10  # batches that it reads at most
_OUTPUT = threading.RLock()  # standard output belongs to the process: searches in two threads take turns


@dataclass(frozen=True)
class TuningJob:
    """The input of a search method.

    Parameters
    ----------
    judge : dspy.Module
        As it was, demonstrations included.
    credits : Credits
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
    credits: Credits
    meter: Meter
    writer: Any
    calls: int
    draws: Sequence[Callable[[], dspy.Module]]
    seed: int

    def student(self, judge: dspy.Module | None = None, first: Demos | None = None) -> Student:
        """The judge for an optimiser, its own demonstrations kept in front; or another judge as it is."""
        if judge is None:
            first = {name: list(at.demos) for name, at in self.judge.named_predictors()}
            judge = self.judge.deepcopy()
            for predictor in judge.predictors():
                predictor.demos = []
        return Student(judge, self.credits.table, first, self.credits.beside)

    @property
    def signature(self) -> str:
        """The judge, the rows, the model and the seed, for the line that makes a tuning reproducible."""
        learn, select, table = self.credits.learn, self.credits.select, self.credits.table
        named = identity(table.lm)
        return (
            f"metricsmith {__version__} | {type(self.judge).__name__} {table.candidate(self.judge, {})[:12]} for "
            f"{self.credits.objective.name} | {len(learn)} + {len(select)} rows "
            f"sha256:{content_hash([row.toDict() for row in (*learn.rows, *select.rows)])} | "
            f"model {named['model']} {content_hash(named)[:12]} | seed {self.seed}"
        )

    @property
    def learn_calls(self) -> int:
        """Requests for every learning row once."""
        return self.calls * len(self.credits.learn)

    @property
    def select_calls(self) -> int:
        """Requests for every selection row once."""
        return self.calls * len(self.credits.select)


@dataclass(frozen=True)
class SearchMethod:
    """A way to find candidates.

    Parameters
    ----------
    floor : callable
        The fewest requests, from a job, with which it can find anything. The judge's own judgements of the selection
        rows are not counted.
    bound : callable
        From a job and a number of requests to the most that it will send, at most that number.
    run : callable
        Runs the search, given the same number.
    expected : callable, optional
        From a job and a number of requests, the judge's own judgements counted, to the number that it will likely
        send: below its bound, since a known judgement is not asked for again. None where it cannot be foreseen.
    """

    floor: Callable[[TuningJob], int]
    bound: Callable[[TuningJob, int], int]
    run: Callable[[TuningJob, int], None]
    expected: Callable[[TuningJob, int], int] | None = None


def judge_selection_rows(job: TuningJob, student: Student) -> None:
    """Judge every selection row; an error of the module itself is raised by the first row.

    `dspy.Evaluate` is no way to do it: it empties tqdm's list of bars, which breaks two searches side by side.
    """
    rows, metric = job.credits.select.rows, CreditMetric(job.credits)
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


def _contents(rated: RatedRows) -> int:
    """The number of rows with different inputs; equal ones are asked once."""
    return len({content_hash(row_inputs(row)) for row in rated.rows})


# labeled: draws of rated examples, in place of the demonstrations that the judge has


def _labeled_count(job: TuningJob, requests: int) -> int:
    """The number of draws that so many requests reach for."""
    return min(SETS, len(job.draws), requests // job.select_calls)


def _labeled(job: TuningJob, requests: int) -> None:
    for draw in job.draws[: _labeled_count(job, requests)]:
        judge_selection_rows(job, job.student(draw(), {}))


def _labeled_expected(job: TuningJob, requests: int) -> int:
    """The selection rows once for each different judge; the judge as it was may show the first draw already."""
    table, tried = job.credits.table, job.draws[: _labeled_count(job, requests - job.select_calls)]
    judges = {table.candidate(job.judge, {}), *(table.candidate(draw(), {}) for draw in tried)}
    return job.calls * len(judges) * _contents(job.credits.select)


# bootstrap: sets of the judge's own judgements of learning rows that agree with the raters


def _bootstrap_count(job: TuningJob, requests: int) -> int:
    return min(SETS, (requests - job.learn_calls) // job.select_calls)


def _bootstrap(job: TuningJob, requests: int) -> None:
    rows = job.credits.learn.rows
    for number in range(_bootstrap_count(job, requests)):
        search = dspy.BootstrapFewShot(
            metric=CreditMetric(job.credits), max_bootstrapped_demos=DEMOS + 1, max_labeled_demos=0
        )
        tuned = search.compile(job.student(), trainset=random.Random(job.seed + number).sample(rows, len(rows)))
        judge_selection_rows(job, tuned)


# mipro: instructions and bootstrapped demonstrations together, searched by MIPROv2


class Marked(dspy.Example):  # type: ignore[misc]
    """A row whose texts stand between marks in its `repr`, from which MIPROv2's summary of the data is written."""

    def __repr__(self) -> str:
        return "".join(f"\n{name}: {_marked(value)}" for name, value in self.items()) + "\n"


def _marked_row(row: dspy.Example) -> dspy.Example:
    """A `Marked` copy; one of an episode, which is measured by a label beside its fields, keeps that."""
    fields = dict(row.items())
    episode = hasattr(type(row), "label")
    marked = type("MarkedEpisode", (Marked, type(row)), {})(fields, label=row.label) if episode else Marked(fields)
    return marked.with_inputs(*row.inputs().keys())


def _marked(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "\n".join(map(_marked, value))
    return str(value) if value is None or isinstance(value, int | float) else fence(str(value))


def _mipro_trials(job: TuningJob, instructions: int) -> int:
    """The number of candidates that MIPROv2 tries, as many as it would by itself."""
    variables = 2 * len(job.judge.predictors())
    return int(max(2 * variables * math.log2(instructions), 1.5 * instructions))


def _summary_batches(job: TuningJob) -> int:
    return min(SUMMARY_MOST, math.ceil(len(job.credits.learn) / SUMMARY_BATCH))


def _mipro_requests(job: TuningJob, instructions: int) -> int:
    """The most that MIPROv2 sends; proposals may be asked again in JSON."""
    proposals = 2 * (2 + _summary_batches(job) + instructions * len(job.judge.predictors()))
    return job.learn_calls + proposals + _mipro_trials(job, instructions) * job.select_calls


def _mipro_count(job: TuningJob, requests: int) -> int:
    """The number of instructions that so many requests reach for; 0 where they do not reach for three."""
    fitting = [count for count in range(3, INSTRUCTIONS + 1) if _mipro_requests(job, count) <= requests]
    return max(fitting, default=0)


def _mipro(job: TuningJob, requests: int) -> None:
    count = _mipro_count(job, requests)
    try:
        import optuna  # noqa: F401
    except ImportError as problem:
        raise NeedsError("MIPROv2 needs optuna: pip install optuna") from problem
    search = dspy.MIPROv2(
        metric=CreditMetric(job.credits),
        prompt_model=job.meter.wrap(job.writer),
        task_model=job.credits.table.lm,
        auto=None,
        num_candidates=count,
        max_bootstrapped_demos=DEMOS if takes_examples(job.judge) else 0,
        max_labeled_demos=0,
        num_threads=THREADS,
        seed=job.seed + 1,  # MIPROv2 takes 0 for none
    )
    search.compile(
        job.student(),
        trainset=[_marked_row(row) for row in job.credits.learn.rows],
        valset=job.credits.select.rows,
        num_trials=_mipro_trials(job, count),
        minibatch=False,
        program_aware_proposer=False,
        view_data_batch_size=SUMMARY_BATCH,
    )


def _mipro_expected(job: TuningJob, requests: int) -> int:
    """Learning rows for demonstrations, summary, instructions, and selection rows for each different candidate.

    Instructions are taken to differ, as those that a model writes at temperature 1 do.
    """
    count = _mipro_count(job, requests - job.select_calls)
    judged = _contents(job.credits.learn) + (1 + _mipro_tried(job, count)) * _contents(job.credits.select)
    return round(job.calls * judged) + 1 + _summary_batches(job) + count * len(job.judge.predictors())


def _mipro_tried(job: TuningJob, count: int) -> float:
    """The number of candidates that MIPROv2's sampler tries where none does better than another.

    It is the mean of two cases: with demonstrations, which make candidates of one instruction differ, and without
    them, as for a judge that agrees with no rater and so leaves no demonstration.
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
            n_trials=_mipro_trials(job, count),
        )
    finally:
        optuna.logging.set_verbosity(level)
    tried = ({tuple(trial.params[name] for name in own) for trial in study.trials} for own in (names, names[::2]))
    return sum(len(candidates) - 1 for candidates in tried) / 2


# gepa: instructions rewritten by reflection on feedback


def _gepa_step(job: TuningJob) -> int:
    """The most that one step of GEPA sends: parent, child and its peers, two tries to reflect, all selection rows."""
    minibatch = min(MINIBATCH, len(job.credits.learn))
    peers = job.calls * job.credits.most_peers
    return 2 * job.calls * minibatch + peers + 2 * len(job.judge.predictors()) + job.select_calls


def _gepa_floor(job: TuningJob) -> int:
    return job.calls * job.credits.most_peers + _gepa_step(job)  # the judge as it was needs its peers too


def _gepa(job: TuningJob, requests: int) -> None:
    """Run GEPA until its longest step does not fit any more."""
    credits, limiter = job.credits, job.credits.table.limiter
    end = credits.sent + requests - _gepa_step(job)
    search = dspy.GEPA(
        metric=CreditMetric(credits),
        max_metric_calls=20 * requests,  # judgements that are known already count there, and cost nothing
        reflection_lm=job.meter.wrap(job.writer),
        reflection_minibatch_size=min(MINIBATCH, len(credits.learn)),
        num_threads=THREADS,
        use_merge=False,  # it crosses predictors, and a judge has one
        seed=job.seed,
        gepa_kwargs={"stop_callbacks": [lambda _: credits.sent > end or bool(limiter.stopped)]},
    )
    search.compile(job.student(), trainset=credits.learn.rows, valset=credits.select.rows)


def _auto(job: TuningJob, requests: int) -> None:
    """Spend up to half on draws of rated examples, where the judge can show any; the rest on GEPA."""
    before = job.credits.sent
    _labeled(job, min(requests // 2, requests - _gepa_floor(job)))
    _gepa(job, requests - (job.credits.sent - before))


METHODS: Mapping[str, SearchMethod] = {
    "labeled": SearchMethod(
        floor=lambda job: job.select_calls,
        bound=lambda job, most: _labeled_count(job, most) * job.select_calls,
        run=_labeled,
        expected=_labeled_expected,
    ),
    "bootstrap": SearchMethod(
        floor=lambda job: job.learn_calls + job.select_calls,
        bound=lambda job, most: job.learn_calls + _bootstrap_count(job, most) * job.select_calls,
        run=_bootstrap,
    ),
    "mipro": SearchMethod(
        floor=lambda job: _mipro_requests(job, 3),
        bound=lambda job, most: _mipro_requests(job, _mipro_count(job, most)),
        run=_mipro,
        expected=_mipro_expected,
    ),
    "gepa": SearchMethod(floor=_gepa_floor, bound=lambda _, most: most, run=_gepa),
    "auto": SearchMethod(floor=_gepa_floor, bound=lambda _, most: most, run=_auto),
}
