"""`JudgeTuner`: a judge made to agree with a few dozen ratings, or given back as it was."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dspy
import numpy as np
from dspy.utils.exceptions import AdapterParseError, LMError

from metricsmith.errors import (
    HopelessModel,
    InputError,
    Interrupted,
    JudgementFailed,
    MetricsmithError,
    ModelFailure,
    NeedsError,
    OptionError,
    nearest,
)
from metricsmith.metric import Composite
from metricsmith.model_calls.failures import one_line, words
from metricsmith.model_calls.flow import Flow
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.models import using
from metricsmith.optimizers.examples import draw_examples
from metricsmith.optimizers.objectives import Measure, Objective, mean_of, objective
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.tuning.bench import Bench, MetricReading, Reading
from metricsmith.optimizers.tuning.methods import EXPECTED, METHODS, SETS, Job, evaluate, quiet
from metricsmith.optimizers.tuning.selection import Tuning, choose
from metricsmith.optimizers.tuning.sides import (
    check_labels,
    episode_sides,
    example_of,
    rated_sides,
    scale_of,
    showing,
    shown_numbers,
    sign_of,
    stands_in_demos,
)
from metricsmith.optimizers.tuning.student import Answers, Meter, demos_of
from metricsmith.programs.asked_scale import asked_note
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.programs.learned import mark_tuned
from metricsmith.records import Status, Task

__all__ = ["JudgeTuner"]

SHOWING = ("labeled", "auto")  # methods that show rated rows
SLACK = 0.1  # share of the budget kept for retries and repairs
MOST_FAILED = 0.2  # share of the judge's own selection judgements that may fail
EXAMPLE_TOKENS = 4_000  # that rated examples may add to a prompt
MOST_SEED = 2**32  # numpy, which MIPROv2 seeds, takes no larger one
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JudgeTuner:
    """Tunes a judge for a statistic of the whole set, on few ratings.

    Half of the groups are learned from: their texts, ratings and reasons may be shown as demonstrations or to the
    model that writes instructions. The other half selects: by the objective's true statistic, with an interval that
    respects groups. The best candidate replaces the judge only if its gain, less what the best of so many gains by
    luck, is at least one standard error; otherwise the judge comes back as it was.

    Parameters
    ----------
    method : str
        ``labeled`` (draws of rated examples), ``bootstrap`` (the judge's own good judgements), ``mipro``,
        ``gepa`` or ``auto`` (labeled, then gepa).
    objective : str, callable, Objective or Measure
        ``kendall_tau_b``, ``spearman``, ``pearson``, ``pairwise_accuracy``, ``kappa``, ``quadratic_kappa``,
        ``balanced_accuracy``, ``f1`` (macro), or a function of (predictions, ratings), higher is better. With a
        `RankingMetric` a recommender is tuned, with a `YieldMetric` a generator, with a `PerturberMetric` a perturber,
        on episodes instead of rated rows.
    budget : int
        Requests at most, retries included: a tenth is kept for those.
    task : Task, optional
        Names the rating and its scale. By default the rating stands under ``rating`` and on the judge's own scale.
    lm : dspy.LM, optional
        The model that judges; by default the one in force. A judge with a model of its own keeps it.
    reflection_lm : dspy.LM, optional
        The model that writes instructions; by default `lm`, or else the one that judges.
    fraction : float
        Share of the rows that select, where `compile` gets no valset.
    seed : int
        Decides the split, the peers, the draws and the searches.
    progress : bool
        Whether what DSPy's optimisers tell of their work goes to standard error.

    Raises
    ------
    OptionError
        For an unknown method or objective, a budget below 1 or a negative seed.

    Examples
    --------
    >>> tuner = JudgeTuner(method="gepa", objective="kendall_tau_b", budget=300)
    >>> tuner.objective.name
    'kendall_tau_b'
    """

    method: str = "auto"
    objective: Any = "kendall_tau_b"
    budget: int = 1000
    task: Task | None = None
    lm: Any = None
    reflection_lm: Any = None
    fraction: float = 0.5
    seed: int = 0
    progress: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            known = ", ".join(METHODS)
            raise OptionError(f"method={self.method!r}{nearest(self.method, METHODS)} must be one of {known}")
        if not _is_whole(self.budget) or self.budget < 1 or not _is_whole(self.seed) or not 0 <= self.seed < MOST_SEED:
            raise OptionError(
                f"budget={self.budget!r} must be a whole number from 1, and seed={self.seed!r} one from 0 below 2**32"
            )
        if isinstance(self.fraction, bool) or not isinstance(self.fraction, int | float) or not 0 < self.fraction < 1:
            raise OptionError(f"fraction={self.fraction!r} must be a share between 0 and 1")
        if self.reflection_lm is not None and not isinstance(self.reflection_lm, dspy.BaseLM):
            raise OptionError(f"reflection_lm={self.reflection_lm!r} is no model: give dspy.LM('provider/model')")
        if not isinstance(self.objective, Measure):
            object.__setattr__(self, "objective", objective(self.objective))

    @property
    def goal(self) -> Objective:
        """The statistic that selects: of a measure, the mean."""
        measured = isinstance(self.objective, Measure)
        return mean_of(type(self.objective).__name__) if measured else self.objective

    def bound(
        self, judge: dspy.Module, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None = None
    ) -> int:
        """The most requests that `compile` with the same arguments can send, retries included; sends nothing.

        Raises
        ------
        OptionError
            If the budget is too small for the method; the message names the smallest that is not.
        """
        with using(self.lm):
            return self._bound(self._job(judge, trainset, valset))

    def expected(
        self, judge: dspy.Module, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example] | None = None
    ) -> int:
        """About how many requests `compile` with the same arguments sends, faults aside; sends nothing.

        For ``labeled`` and ``mipro``; of a search that cannot be foreseen it is the bound. Errors as for `bound`.
        """
        with using(self.lm):
            job = self._job(judge, trainset, valset)
            bound = self._bound(job)
            return min(bound, EXPECTED[self.method](job, self._share())) if self.method in EXPECTED else bound

    def compile(
        self,
        judge: dspy.Module,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        *,
        flow: Flow | None = None,
    ) -> Any:
        """Search for a better judge.

        Parameters
        ----------
        judge : dspy.Module
            One of ours, or any module that takes a row's inputs and returns ``score`` (and may return ``raw`` on the
            raters' scale, and ``feedback``).
        trainset : sequence of dspy.Example
            Rated rows with ``.with_inputs(...)``; rows without a rating are left out. ``group`` (otherwise
            the ``input``) says which belong together, ``reason`` what the rater said.
        valset : sequence of dspy.Example, optional
            Rated rows of other groups to select by; without them `fraction` of the training rows is held out.
        flow : Flow, optional
            Admits the requests and takes the budget; by default a new one. Stopping it from another thread ends the
            search.

        Returns
        -------
        dspy.Module
            A copy of the judge; its attribute ``tuning`` is the `Tuning`.

        Raises
        ------
        OptionError
            If the budget is below the method's floor, a group stands on both sides, or the objective wants labels
            that the judge cannot give.
        DataError
            If there are too few rated rows or groups, or the ratings of a side are constant.
        NeedsError
            If there is no language model.
        ModelFailure
            If the model refuses to work (`HopelessModel`), or more than a fifth of the judge's own judgements fail.

        Notes
        -----
        An error inside DSPy's optimisers ends the search, not the call: the best of what was tried until then is
        compared with the judge as it was, and ``tuning.ended`` names the error.
        """
        began = time.perf_counter()
        with using(self.lm):
            job = self._job(judge, trainset, valset, flow)
            bound = self._bound(job)
            if job.bench.answers.lm is None:
                raise NeedsError(
                    "no language model is set: pass lm=dspy.LM('provider/model') or dspy.configure(lm=...)"
                )
            _log.info("tuning by %s will send at most %d requests", self.method, bound)
            try:
                return self._tuned(judge, job, bound, began)
            except MetricsmithError as problem:
                problem.usage = job.bench.answers.flow.spent
                raise

    def _tuned(self, judge: dspy.Module, job: Job, bound: int, began: float) -> Any:
        """Judge the selection rows, search, and choose."""
        answers = job.bench.answers
        answers.flow.budget = Budget(requests=bound)
        before = answers.candidate(judge, {})
        job, bound = self._observed(job, before, bound)
        evaluate(job, job.student(judge, {}))
        self._check_start(job.bench, before)
        job.bench.start = self.goal.statistic(job.bench.values(before), job.bench.select.ratings)
        ended = ""
        try:
            with nullcontext() if self.method == "labeled" else quiet(self.progress):  # that asks DSPy for nothing
                METHODS[self.method].run(job, self._share() - job.select_calls)
        except (JudgementFailed, LMError, AdapterParseError) as stopped:  # a request of the optimiser's own
            ended = one_line(str(stopped))
        except (InputError, Interrupted):  # what the method lacks, and Ctrl-C
            raise
        except Exception as stopped:  # DSPy's optimisers and their libraries raise whatever they like
            ended = f"{type(stopped).__name__}: {words(stopped, job.writer)}"
            _log.warning("the search by %s ended with %s", self.method, ended, exc_info=True)
            answers.flow.stop("the search has ended")  # for threads that it may have left behind
        return self._result(judge, job, before, bound, ended or answers.flow.stopped, began)

    def _share(self) -> int:
        """What of the budget is planned with."""
        return int(self.budget / (1 + SLACK))

    def _bound(self, job: Job) -> int:
        method = METHODS[self.method]
        if self.method == "labeled" and not job.draws:
            raise OptionError(
                "method='labeled' shows rated rows as demonstrations, which this module cannot take: it needs one "
                "predictor with a row's inputs as inputs and 'score' among its outputs; take another method"
            )
        floor = job.select_calls + method.floor(job)
        if self._share() < floor:
            raise OptionError(
                f"a budget of {self.budget} requests is too small for method={self.method!r} with "
                f"{len(job.bench.learn)} rows to learn from and {len(job.bench.select)} to select by: at least "
                f"{math.ceil(floor * (1 + SLACK)) + 1} are needed"
            )
        planned = job.select_calls + method.bound(job, self._share() - job.select_calls)
        return min(self.budget, math.ceil(planned * (1 + SLACK)))

    def _observed(self, job: Job, before: str, bound: int) -> tuple[Job, int]:
        """Judge one row, and plan again if that took more requests than the judge has predictors."""
        bench = job.bench
        verdict = bench.answers.ask(before, dict(bench.select.rows[0].inputs().items()))
        asked = len(verdict.steps) + job.calls - len(job.judge.predictors())
        if asked <= job.calls:
            return job, bound
        job = replace(job, calls=asked)
        bound = self._bound(job)
        bench.answers.flow.budget = Budget(requests=bound)
        _log.info("a judgement takes %d requests, so that at most %d will be sent", asked, bound)
        return job, bound

    def _check_start(self, bench: Bench, before: str) -> None:
        flow = bench.answers.flow
        if flow.hopeless:
            kind = HopelessModel if flow.barred else ModelFailure
            raise kind(f"the model refuses to work: {flow.hopeless}", Status.TRANSPORT)
        missing = float(np.mean(np.isnan(bench.values(before))))
        if missing > MOST_FAILED:
            failed = [
                said
                for row in bench.select.rows
                if (said := bench.answers.known(before, dict(row.inputs().items())))
                and math.isnan(bench.value(row, said))
            ]
            first, statuses = failed[0].error or "its answer holds no number", {said.status for said in failed}
            raise ModelFailure(
                f"{missing:.0%} of the judge's own judgements failed, so nothing can be tuned: {first}",
                statuses.pop() if len(statuses) == 1 else "",
            )

    def _result(self, judge: dspy.Module, job: Job, before: str, bound: int, ended: str, began: float) -> Any:
        bench = job.bench
        answers = bench.answers
        failures = answers.failures()  # what the judge itself could not judge is held against nobody
        lost = {name for name, rows in failures.items() if rows - failures.get(before, set())}
        complete = [name for name in answers.modules if name != before and bench.complete(name)]
        selection = choose(
            self.goal,
            (before, bench.values(before)),
            {name: bench.values(name) for name in complete if name not in lost},
            bench.select.ratings,
            bench.select.groups,
            seed=self.seed,
        )
        tuned = (answers.modules[selection.chosen] if selection.replaced else judge).deepcopy()
        if isinstance(tuned, RatersJudge) and tuned.asked.points:
            tuned = tuned.with_rating_map(bench.reading.sign * bench.values(selection.chosen), bench.select.ratings)
        mark_tuned(tuned, [*bench.learn.rows, *bench.select.rows])
        tuned.tuning = Tuning(
            method=self.method,
            objective=self.goal.name,
            selection=selection,
            before=_instructions(judge),
            after=_instructions(tuned),
            demos=demos_of(tuned),
            learned=len(bench.learn),
            selected=len(bench.select),
            bound=bound,
            usage=replace(answers.flow.spent, seconds=time.perf_counter() - began),
            discarded=sum(name in lost for name in complete),
            ended=ended,
            asked=_asked(tuned, bench),
        )
        _log.info("%s", tuned.tuning)
        return tuned

    def _job(
        self,
        judge: dspy.Module,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None,
        flow: Flow | None = None,
    ) -> Job:
        if not isinstance(judge, dspy.Module) or not judge.predictors():
            raise OptionError(f"{judge!r} is nothing that can be tuned: give a dspy.Module with a predictor")
        if isinstance(judge, Composite | Panel):
            raise OptionError(
                f"{type(judge).__name__} puts the answers of judges together: tune those judges, then build it"
            )
        lm = self.lm or next((at.lm for at in judge.predictors() if at.lm is not None), dspy.settings.lm)
        flow, calls, draws = flow or Flow(Concurrency()), len(judge.predictors()), []
        reading: Reading | MetricReading
        if isinstance(self.objective, Measure):
            learn, select = episode_sides(trainset, valset)
            reading = MetricReading(self.objective, flow)
            calls += max(self.objective.requests(row) for row in (*learn.rows, *select.rows))
        else:
            target, scale = (self.task.target, self.task.scale) if self.task else ("rating", scale_of(judge))
            learn, select = rated_sides(trainset, valset, target, self.fraction, self.seed, stands_in_demos(judge))
            ratings = np.concatenate([learn.ratings, select.ratings])
            check_labels(judge, self.goal, ratings, scale)
            shown = target if isinstance(judge, Judge) else ""
            reading = Reading(sign_of(judge, scale), scale.width if scale else float(np.ptp(ratings)), shown)
            learn, select = (shown_numbers(judge, side, scale, target, learn.ratings) for side in (learn, select))
            if self.method in SHOWING:
                draws = self._draws(judge, example_of(judge), learn, target)
        bench = Bench(Answers(flow, lm), self.goal, reading, learn, select, self.seed)
        return Job(judge, bench, Meter(flow), self.reflection_lm or lm, calls, draws, self.seed)

    def _draws(
        self, judge: dspy.Module, show: Callable[..., Any] | None, learn: Rated, target: str
    ) -> list[Callable[[], dspy.Module]]:
        """Balanced draws of demonstrations, as many as fit; none where the judge cannot show any."""
        if show is None:
            return []
        demos = [show(row, row[target]) for row in learn.rows]
        drawn = draw_examples(demos, learn.ratings.tolist(), tokens=EXAMPLE_TOKENS, draws=SETS, seed=self.seed)
        return [partial(showing, judge, [demos[place] for place in places]) for places in drawn]


def _asked(judge: dspy.Module, bench: Bench) -> str:
    """The sentence that says how a judge is asked instead of in the raters' numbers; empty for one that is not."""
    if not isinstance(judge, RatersJudge) or judge.scale == judge.rating_scale:
        return ""
    ratings = np.concatenate([bench.learn.ratings, bench.select.ratings])
    return asked_note(str(judge.settings.measure), judge.rating_scale, ratings)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _instructions(judge: dspy.Module) -> dict[str, str]:
    return {name: predictor.signature.instructions for name, predictor in judge.named_predictors()}
