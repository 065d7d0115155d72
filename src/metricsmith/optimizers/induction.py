"""One pass of generate, retrieve, score and fit over given training rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError
from metricsmith.model_calls.adapters import adapter_in_force, adapter_name
from metricsmith.model_calls.limits import Budget
from metricsmith.model_calls.models import using
from metricsmith.optimizers.candidates import Candidates, gather
from metricsmith.optimizers.fitting import FitOptions, Fitted, check_learnable, fit
from metricsmith.optimizers.own import check_functions, from_learning
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.sources import Plan, Sources
from metricsmith.optimizers.spending import check_budget
from metricsmith.optimizers.stages import stage
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.learned import mark_learned
from metricsmith.programs.recommenders.base import Recommender
from metricsmith.programs.recommenders.language_model import LMRecommender
from metricsmith.programs.recommenders.pipeline import PipelineRecommender
from metricsmith.records import Task
from metricsmith.scoring import Concurrency, PerJudge, ScoreTable, score
from metricsmith.store import Store

__all__ = ["Induction", "Options", "induct"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Everything that a pass depends on, data aside.

    Parameters
    ----------
    sources : Sources
        Where candidates come from.
    fit : FitOptions
        How they are combined.
    recommender : Recommender, optional
        None: BM25, then the language model's ranking where there is one.
    lm : dspy.LM, optional
        None takes the one in force, if any.
    concurrency, store, max_failure_rate, progress
        As for `scoring.score`.
    budget : Budget, optional
        For the whole run: the requests that make judges, tune them and rank cards are in it, in all folds.
    per_judge : bool
        Whether `max_failure_rate` holds for each judge by itself, so that one that fails more often is dropped;
        otherwise for all judgements together.
    strict : bool
        Whether a judge that cannot be made, or would be dropped, ends the pass.
    seed : int
    repetition : int
        Number of this pass among several on the same rows: the model is asked anew in each, past DSPy's cache and in
        places of its own in the store. Above 0 it needs a temperature above .15.
    """

    sources: Sources = field(default_factory=Sources)
    fit: FitOptions = field(default_factory=FitOptions)
    recommender: Recommender | None = None
    lm: Any = None
    concurrency: Literal["auto"] | int | Concurrency = "auto"
    store: str | PathLike[str] | Store | None = None
    budget: Budget | None = None
    max_failure_rate: float = 0.2
    per_judge: bool = True
    strict: bool = False
    progress: bool = False
    seed: int = 0
    repetition: int = 0

    def __post_init__(self) -> None:
        PerJudge(self.max_failure_rate)  # refuses what is no share, before anything is asked
        check_budget(self.budget)
        if self.seed < 0:
            raise OptionError(f"seed={self.seed} must be 0 or more")

    @property
    def scoring(self) -> dict[str, Any]:
        """The options of `scoring.score`."""
        return {
            "concurrency": self.concurrency,
            "store": self.store,
            "max_failure_rate": (
                PerJudge(self.max_failure_rate, self.strict) if self.per_judge else self.max_failure_rate
            ),
            "progress": self.progress,
            "first_run": self.repetition,
        }

    @property
    def model(self) -> Any:
        """The language model to use, or None."""
        return self.lm if self.lm is not None else dspy.settings.lm

    def asking(self) -> AbstractContextManager[Any]:
        """Put the model in force, as this repetition asks it; `OptionError` if the adapter in force cannot be used."""
        if self.model is not None:
            adapter_in_force()  # refused here, and not by every family of candidates for itself
        if self.repetition and self.model is not None:
            return dspy.context(lm=self.model.copy(rollout_id=self.repetition))  # type: ignore[no-any-return]
        return using(self.lm)

    def plan(self, train: Rated) -> Plan:
        """Which sources are used for these training rows; `NeedsError` if they cannot be."""
        has_text = any(row.get("output") for row in train.rows)
        return self.sources.resolve(len(train), self.model is not None, has_text)

    def retriever(self) -> Recommender:
        """The recommender that was given, or the default one."""
        return self.recommender or PipelineRecommender(second=LMRecommender() if self.model else None)


@dataclass(frozen=True)
class Induction:
    """What a pass made.

    `table` covers the training rows first, then the others; `scored` has the same rows with the judges that were
    dropped for their failures too, of which `candidates` and `table` know nothing. `unrated_values`, shape (u, m),
    are the unrated rows that helped to choose the small model. `fit` says of which size that was to be. `learned`,
    shape (n, m), is true where a metric of the caller's has learned from the group of a training row.
    """

    train: Rated
    candidates: Candidates
    scored: ScoreTable
    table: ScoreTable
    unrated_values: FloatArray
    fitted: Fitted
    metric: InducedMetric
    learned: NDArray[np.bool_]
    fit: FitOptions = field(default_factory=FitOptions)
    warnings: tuple[str, ...] = ()

    @property
    def train_values(self) -> FloatArray:
        """Candidate scores of the training rows, shape (n, m); NaN where the candidate has learned from them."""
        return np.where(self.learned, np.nan, self.table.run()[: len(self.train)])

    @property
    def other_values(self) -> FloatArray:
        """Candidate scores of the other rows."""
        return self.table.run()[len(self.train) :]

    @property
    def components(self) -> ScoreTable:
        """The component columns of the table, training rows first."""
        return self.table.select(self.fitted.small.names)


def induct(
    train: Rated,
    others: Sequence[dspy.Example],
    task: Task,
    options: Options,
    unrated: Sequence[dspy.Example] = (),
    *,
    plan: Plan | None = None,
) -> Induction:
    """Generate, retrieve, score and fit.

    Parameters
    ----------
    train : Rated
        The only rows whose ratings are seen.
    others : sequence of dspy.Example
        Rows that are scored along, for testing. Their ratings are never read.
    task, options
        What and how.
    unrated : sequence of dspy.Example
        Rows without a rating. Where no candidate costs a model call they help to choose the small model.
    plan : Plan, optional
        Which sources to use; by default as the number of training rows decides.
    """
    check_learnable(train.ratings)
    plan = plan or options.plan(train)
    with options.asking():
        with stage("finding candidates", options.progress):
            candidates = gather(
                train.rows, task, options.sources, plan, options.retriever(), seed=options.seed, strict=options.strict
            )
        with stage("scoring rows", options.progress):
            scored = score(
                candidates.metrics,
                [*train.rows, *others],
                **options.scoring,
            )
            candidates = candidates.without(scored.dropped)
            asked = scored.select(metric.name for metric in candidates.metrics)
            candidates = candidates.without_sparse(options.sources.sparse(asked, len(train)))
            table = scored.select(metric.name for metric in candidates.metrics)
            extra = score(candidates.metrics, [] if candidates.costly else unrated, progress=False)
    size = options.fit.settled(candidates.costly)
    learned = [
        from_learning(metric, train) if metric.name in candidates.own else np.zeros(len(train), dtype=bool)
        for metric in table.metrics
    ]
    sources = options.sources
    warnings = check_functions(
        table, train.ratings, task.target, allowed=sources.allow_columns, prior=sources.prior_columns
    )
    mask = np.array(learned, dtype=bool).reshape(len(table.metrics), len(train)).T
    with stage("fitting", options.progress):
        fitted = fit(
            np.where(mask, np.nan, table.run()[: len(train)]),
            train.ratings,
            table.names,
            declared=candidates.declared,
            judged=candidates.judged,
            higher_is_better=task.scale.higher_is_better,
            options=size,
            unrated=extra.run(),
        )
    components = table.select(fitted.small.names)
    metric = InducedMetric(
        components=components.metrics,
        combination=fitted.small,
        task=task,
        best=[0.0] * len(components.metrics),
        adapter=adapter_name(),
    )
    if options.model is not None and "model" in metric.card.needs:
        metric.made_with = {"model": str(options.model.model)}
    mark_learned(metric, train.rows)
    metric.settings.values["best"] = metric.best_contributions(components.run()[: len(train)])
    return Induction(train, candidates, scored, table, extra.run(), fitted, metric, mask, size, warnings)
