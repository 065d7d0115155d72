"""`JudgeTuner`: a judge made to agree with a few dozen ratings, or given back as it was."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
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
from metricsmith.model_calls.failures import error_text, short_line
from metricsmith.model_calls.limits import Budget, Concurrency
from metricsmith.model_calls.models import using
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.optimizers.objectives import Measure, Objective, mean_of, objective
from metricsmith.optimizers.tuning.credits import Credits, MeasureReader
from metricsmith.optimizers.tuning.methods import METHODS, SETS, TuningJob, judge_selection_rows, quiet
from metricsmith.optimizers.tuning.readers import OptionReader, PredictionReader, number_reader
from metricsmith.optimizers.tuning.selection import answered, choose
from metricsmith.optimizers.tuning.splits import (
    demonstration_draws,
    episode_splits,
    rated_splits,
    row_inputs,
    stands_in_demos,
)
from metricsmith.optimizers.tuning.student import JudgementTable, Meter
from metricsmith.programs.asked_scale import asked_note
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import RatersJudge
from metricsmith.programs.learned import mark_tuned
from metricsmith.programs.specialist.examples import takes_examples
from metricsmith.records import Status, Task
from metricsmith.report.tuning.record import Tuning

__all__ = ["JudgeTuner", "budget_for"]

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
    respects groups. The best candidate replaces the judge only if its gain, less the gain that the best of so many has
    by luck, is at least one standard error; otherwise the judge comes back as it was.

    Parameters
    ----------
    method : str
        ``labeled`` (draws of rated examples), ``bootstrap`` (the judge's own good judgements), ``mipro``,
        ``gepa`` or ``auto`` (labeled, then gepa).
    objective : str, callable, Objective or Measure
        ``kendall_tau_b``, ``spearman``, ``pearson``, ``pairwise_accuracy``, ``kappa``, ``quadratic_kappa``,
        ``balanced_accuracy``, ``f1`` (macro), or a function of (predictions, ratings), higher is better. Of a
        `ChoiceJudge` ``share`` or ``choice_kappa``, of a `ResponseSetJudge` ``set_closeness``. With a
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
        True sends the messages of DSPy's optimisers to standard error.

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
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (self.budget, self.seed))
        if not whole or self.budget < 1 or not 0 <= self.seed < MOST_SEED:
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
        """The statistic that selects; for a measure its mean."""
        if isinstance(self.objective, Measure):
            return mean_of(type(self.objective).__name__)
        goal: Objective = self.objective
        return goal

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
        """The likely number of requests of `compile` with the same arguments, faults aside; sends nothing.

        For ``labeled`` and ``mipro``; of a search that cannot be foreseen it is the bound. Errors as for `bound`.
        """
        with using(self.lm):
            job, expected = self._job(judge, trainset, valset), METHODS[self.method].expected
            bound = self._bound(job)
            return bound if expected is None else min(bound, expected(job, self._share))

    def compile(
        self,
        judge: dspy.Module,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        *,
        limiter: RateLimiter | None = None,
    ) -> Any:
        """Search for a better judge.

        Parameters
        ----------
        judge : dspy.Module
            One of ours, or any module that takes a row's inputs and returns ``score`` (and may return ``raw`` on the
            raters' scale, and ``feedback``).
        trainset : sequence of dspy.Example
            Rated rows with ``.with_inputs(...)``; rows without a rating are left out. Rows of one ``group`` (otherwise
            of one ``input``) belong together; ``reason`` holds the rater's words. Of a judge of options a rating maps
            options to shares of raters, or lists the raters' choices, or their sets.
        valset : sequence of dspy.Example, optional
            Rated rows of other groups to select by; without them `fraction` of the training rows is held out.
        limiter : RateLimiter, optional
            Admits the requests and takes the budget; by default a new one. Stopping it from another thread ends the
            search.

        Returns
        -------
        dspy.Module
            A copy of the judge; its attribute ``tuning`` is the `Tuning`.

        Raises
        ------
        OptionError
            If the budget is below the method's floor, a group stands in both splits, or the objective wants labels
            that the judge cannot give.
        DataError
            If there are too few rated rows or groups, or the ratings of a split are constant.
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
            job = self._job(judge, trainset, valset, limiter)
            bound = self._bound(job)
            if job.credits.table.lm is None:
                raise NeedsError(
                    "no language model is set: pass lm=dspy.LM('provider/model') or dspy.configure(lm=...)"
                )
            _log.info("tuning by %s will send at most %d requests", self.method, bound)
            try:
                return self._tuned(judge, job, bound, began)
            except MetricsmithError as problem:
                problem.usage = job.credits.table.limiter.spent
                raise

    def _tuned(self, judge: dspy.Module, job: TuningJob, bound: int, began: float) -> Any:
        """Judge the selection rows, search, and choose."""
        credits, table = job.credits, job.credits.table
        table.limiter.budget = Budget(requests=bound)
        before = table.candidate(judge, {})
        job, bound = self._observed(job, before, bound)
        judge_selection_rows(job, job.student(judge, {}))
        self._check_start(credits, before)
        credits.start = self.goal.statistic(credits.values(before), credits.select.ratings)
        ended = ""
        try:
            # The method labeled calls no optimiser of DSPy's, so that two of its searches need not take turns.
            with nullcontext() if self.method == "labeled" else quiet(self.progress):
                METHODS[self.method].run(job, self._share - job.select_calls)
        except (JudgementFailed, LMError, AdapterParseError) as stopped:  # a request of the optimiser's own
            ended = short_line(str(stopped))
        except (InputError, Interrupted):  # a thing that the method lacks, and Ctrl-C
            raise
        except Exception as stopped:  # DSPy's optimisers and their libraries may raise any error
            ended = f"{type(stopped).__name__}: {error_text(stopped, job.writer)}"
            _log.warning("the search by %s ended with %s", self.method, ended, exc_info=True)
            table.limiter.stop("the search has ended")  # for threads that it may have left behind
        return self._result(judge, job, before, bound, ended or table.limiter.stopped, began)

    @property
    def _share(self) -> int:
        """The part of the budget that is planned with; the rest is kept for retries and repairs."""
        return int(self.budget / (1 + SLACK))

    def _bound(self, job: TuningJob) -> int:
        method = METHODS[self.method]
        if self.method == "labeled" and not job.draws:
            raise OptionError(
                "method='labeled' shows rated rows as demonstrations, which this module cannot take: it needs one "
                "predictor with a row's inputs as inputs and 'score' among its outputs; take another method"
            )
        floor = job.select_calls + method.floor(job)
        if self._share < floor:
            raise OptionError(
                f"a budget of {self.budget} requests is too small for method={self.method!r} with "
                f"{len(job.credits.learn)} rows to learn from and {len(job.credits.select)} to select by: at least "
                f"{budget_for(floor)} are needed"
            )
        planned = job.select_calls + method.bound(job, self._share - job.select_calls)
        return min(self.budget, math.ceil(planned * (1 + SLACK)))

    def _observed(self, job: TuningJob, before: str, bound: int) -> tuple[TuningJob, int]:
        """Judge one row, and plan again if that took more requests than the judge has predictors."""
        credits = job.credits
        judgement = credits.table.ask(before, row_inputs(credits.select.rows[0]))
        asked = len(judgement.steps) + job.calls - len(job.judge.predictors())
        if asked <= job.calls:
            return job, bound
        job = replace(job, calls=asked)
        bound = self._bound(job)
        credits.table.limiter.budget = Budget(requests=bound)
        _log.info("a judgement takes %d requests, so that at most %d will be sent", asked, bound)
        return job, bound

    def _check_start(self, credits: Credits, before: str) -> None:
        """End the tuning where the model refuses to work, or too many of the judge's own judgements have failed."""
        limiter = credits.table.limiter
        if limiter.hopeless:
            kind = HopelessModel if limiter.barred else ModelFailure
            raise kind(f"the model refuses to work: {limiter.hopeless}", Status.TRANSPORT)
        lacking = ~answered(credits.values(before))
        if lacking.mean() > MOST_FAILED:
            pairs = zip(credits.judgements(before), lacking, strict=True)
            failed = [judgement for judgement, lacks in pairs if judgement is not None and lacks]
            first, statuses = failed[0].error or "its answer holds no number", {one.status for one in failed}
            raise ModelFailure(
                f"{lacking.mean():.0%} of the judge's own judgements failed, so nothing can be tuned: {first}",
                statuses.pop() if len(statuses) == 1 else "",
            )

    def _result(self, judge: dspy.Module, job: TuningJob, before: str, bound: int, ended: str, began: float) -> Any:
        """Choose among the candidates that judged every selection row, and record the tuning on the judge."""
        credits, table = job.credits, job.credits.table
        failures = table.failures()  # rows that the judge itself could not judge count against no candidate
        lost = {name for name, rows in failures.items() if rows - failures.get(before, set())}
        complete = [name for name in table.modules if name != before and credits.complete(name)]
        selection = choose(
            self.goal,
            (before, credits.values(before)),
            {name: credits.values(name) for name in complete if name not in lost},
            credits.select.ratings,
            credits.select.groups,
            seed=self.seed,
        )
        tuned = (table.modules[selection.chosen] if selection.replaced else judge).deepcopy()
        if isinstance(tuned, RatersJudge) and tuned.asked.points:
            tuned = tuned.with_rating_map(
                credits.reader.sign * credits.values(selection.chosen), credits.select.ratings
            )
        asked = ""
        if isinstance(tuned, RatersJudge) and tuned.scale != tuned.rating_scale:
            ratings = np.concatenate([credits.learn.ratings, credits.select.ratings])
            asked = asked_note(str(tuned.settings.measure), tuned.rating_scale, ratings)
        mark_tuned(tuned, [*credits.learn.rows, *credits.select.rows])
        shown = tuple({k: str(v) for k, v in demo.items()} for at in tuned.predictors() for demo in at.demos)
        tuned.tuning = Tuning(
            method=self.method, objective=self.goal.name, selection=selection,
            before={name: at.signature.instructions for name, at in judge.named_predictors()},
            after={name: at.signature.instructions for name, at in tuned.named_predictors()},
            demos=len(shown), learned=len(credits.learn), selected=len(credits.select),
            bound=bound, discarded=sum(name in lost for name in complete), ended=ended, asked=asked,
            usage=replace(table.limiter.spent, seconds=time.perf_counter() - began),
            reported=credits.reported(before, selection.chosen), groups=len(set(credits.select.groups)),
            demonstrations=shown, signature=f"{job.signature} | {self.method}, budget {self.budget}",
        )  # fmt: skip
        _log.info("%s", tuned.tuning)
        return tuned

    def _job(
        self,
        judge: dspy.Module,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None,
        limiter: RateLimiter | None = None,
    ) -> TuningJob:
        """Split the rows and put together all that a search works on; sends nothing."""
        if not isinstance(judge, dspy.Module) or not judge.predictors():
            raise OptionError(f"{judge!r} is nothing that can be tuned: give a dspy.Module with a predictor")
        if isinstance(judge, Composite | Panel):
            raise OptionError(
                f"{type(judge).__name__} puts the answers of judges together: tune those judges, then build it"
            )
        if why := getattr(judge, "fixed_instruction", ""):
            raise OptionError(why)
        if not takes_examples(judge) and self.method not in ("gepa", "mipro"):
            raise OptionError(
                f"method={self.method!r} shows fixed examples, beside which a specialist's own would stand, and for "
                "which a trained form has no place: tune the instruction with method='gepa' or 'mipro'"
            )
        lm = self.lm or next((at.lm for at in judge.predictors() if at.lm is not None), dspy.settings.lm)
        limiter, calls, draws = limiter or RateLimiter(Concurrency()), len(judge.predictors()), []
        reader: PredictionReader | OptionReader | MeasureReader
        if isinstance(self.objective, Measure):
            learn, select = episode_splits(trainset, valset)
            reader = MeasureReader(self.objective, limiter)
            calls += max(self.objective.requests(row) for row in (*learn.rows, *select.rows))
        else:
            options, target = OptionReader.of(judge, self.goal), self.task.target if self.task else "rating"
            learn, select = rated_splits(
                trainset,
                valset,
                target,
                self.fraction,
                self.seed,
                stands_in_demos(judge),
                options.shares if options else None,
            )
            if options is None:
                reader, learn, select = number_reader(judge, self.task, self.goal, learn, select)
            else:
                reader = options
            if self.method in SHOWING:
                draws = demonstration_draws(judge, learn, target, tokens=EXAMPLE_TOKENS, draws=SETS, seed=self.seed)
        credits = Credits(JudgementTable(limiter, lm), self.goal, reader, learn, select, self.seed)
        return TuningJob(judge, credits, Meter(limiter), self.reflection_lm or lm, calls, draws, self.seed)


def budget_for(requests: int) -> int:
    """The budget with which so many requests can be planned, and a tenth kept for retries and repairs."""
    return math.ceil(requests * (1 + SLACK)) + 1
