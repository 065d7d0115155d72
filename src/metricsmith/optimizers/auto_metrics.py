"""AutoMetrics: generate, retrieve, regress, report, with `.compile()` like any DSPy optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import dspy

from metricsmith.datasets.splits import content_order
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash
from metricsmith.optimizers.induce import induce_splits
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows, Splits, shared_source, split_rated
from metricsmith.optimizers.splitting import set_apart
from metricsmith.programs.induced import InducedMetric
from metricsmith.records import Task
from metricsmith.scoring.rows import checked_rows

__all__ = ["AutoMetrics"]


@dataclass(frozen=True, eq=False)
class AutoMetrics(Options):
    """Induces a weighted set of metrics from rated rows (AutoMetrics, section 3).

    The default combines by `PriorRidge`, abridged to the twelve components that reproduce it best, or, where candidates
    cost model calls, to as few as reproduce it to a fidelity of .97; the paper's two-stage PLS stands beside it in
    every report. `AutoMetrics.paper` turns this round.

    Parameters
    ----------
    task : Task, optional
        Description, target and scale; may come with `compile` instead.
    k : int
        The number of metrics that retrieval keeps.
    n : int, optional
        The number of components; by default twelve, or, where a candidate costs model calls, as many as a fidelity
        of .97 takes.
    fidelity : float, optional
        Correlation with the full model at which the abridged one is good enough, in (0, 1]; it decides on the size
        where `n` is not given.
    full : bool
        True: all candidates are kept as components.
    regression : str
        ``auto`` (PriorRidge) or ``pls`` (the paper's).
    bank : str
        ``existing`` (bank metrics), ``generated`` (judges), ``all`` (both), ``none`` (columns only) or ``auto``:
        without a language model as ``existing``; with one as ``generated`` below `generated_only_below` rated training
        rows and as ``all`` from there on.
    generators : mapping of str to int, optional
        Family (``criterion``, ``rubric``, ``rubric_examples``, ``geval``, ``prometheus``, ``code``, ``examples``,
        ``tuned``) to number of metrics; by default the paper's 10 single-criterion, 5 rubric, 1 example-based and 1
        tuned by MIPROv2. Rubrics of ``rubric_examples`` are written from rated examples, as in the paper, at more
        tokens. Judges of the family ``geval`` need a model that gives log-probabilities. Those of ``code`` are no
        judges but functions that the model writes; they need the extra ``code``, and those are candidates that go with
        the ratings beyond chance.
    columns, prior_columns : sequence of str
        Scores that the rows bring along under ``columns``, and those among them declared to measure the
        target.
    allow_columns : sequence of str
        Those among `columns` and your own functions that are taken although they are the target under another name,
        alone or together with others; without it these are a `DataError`, and near copies the first warning of the
        report.
    metrics : MetricBank or sequence, optional
        A bank other than the default one; or your own candidates: judges of any family, tuned ones, panels, functions
        ``(example, pred)``, names of bank metrics such as ``"rouge1_f"``, whole banks, induced metrics. These are
        always candidates, whatever the number of rows and whatever retrieval keeps (`k` counts the others). Judges
        count as declared to measure the target, like generated ones. A judge that has learned from rated rows is
        neither weighed by these nor tested on them. A `FinetunedMetric` that is not trained yet is trained in each
        pass, and weighed by numbers of copies that had not seen the row's group (`cross_fitting`). Functions see
        neither the rating nor what it follows from.
    bank_models : "small", "all" or names, optional
        Metrics with weights that join the default bank, as for `full_bank`; none by default. Of a set, those that this
        machine cannot compute are left out, with notes; one that is named, here or in `local`, is a `NeedsError`.
    local : mapping of str to path, optional
        Where the weights of metrics lie, by the metric's name; without `bank_models` these are the metrics that join.
    recommender : Recommender, optional
        By default the first stage, then the language model's ranking where there is one.
    first_stage : Recommender, optional
        By default BM25.
    whole_cards : bool
        False: retrieval sees the name and the summary of each metric alone (the paper's ablation "No Metric Cards").
    remarks : sequence of str
        Notes of your own for the report.
    lm : dspy.LM, optional
        By default the one in force; without any, nothing is generated.
    budget : Budget, optional
        What the whole run may spend: judges that are made and tuned, cards that a model ranks, rows that are judged, in
        all folds and in a probe. Where it runs out the run ends with a `ModelFailure`.
    concurrency, store, progress
        As for `score`; ceilings a minute hold for the whole run. With a store a run that was cut off goes on where it
        stopped, as long as the model writes the same judges again, which DSPy's cache sees to.
    max_failure_rate : float
        In [0, 1], for each judge by itself: one more of whose judgements are unparsable, out of range or refused is
        dropped, and the metric is induced from what is left. More requests that fail on their way stop the run.
    strict : bool
        True: a judge that cannot be made, or would be dropped, stops the run instead of a warning.
    generated_only_below : int
        With a language model and fewer rated training rows than this, only judges are candidates.
    panel : bool
        True: all generated judges are asked in one request a row (`Panel`), which is cheaper, instead of
        each in one of its own. A metric that keeps only some of them still asks for all.
    allow_missing : bool
        True: candidates stay that lack texts they need, or are undefined, on more than a tenth of the training rows.
    per_judge : bool
        True: `max_failure_rate` holds for each judge by itself; otherwise for all judgements together, and no judge is
        dropped.
    seed : int
        Decides ties, examples, splits and resampling.
    repetition : int
        The number of this run among several on the same rows: the model is asked anew in each, past DSPy's cache and in
        places of its own in the store. Above 0 it needs a temperature above .15.
    """

    @classmethod
    def paper(cls, task: Task | None = None, *, colbert: str | PathLike[str] | None = None, **options: Any) -> Self:
        """The paper's sizes and regression: k = 30, two-stage PLS to n = 5, negative judges dropped.

        With ``full=True``, which the paper has not, all candidates are kept by PriorRidge.

        Pass ``bank_models="all"`` for the metrics of the paper's pool that need weights; those whose weights are not
        on this machine are left out with a note. Retrieval starts with ColBERT where the extra ``colbert`` is installed
        and a checkpoint is here, in the folder `colbert` or in the hub's cache, else with BM25, and a note says so.

        Of the paper's 48 metrics ``mauve`` is no candidate: it compares sets of texts (`metricsmith.bank.mauve`).
        Those with weights were held against other programs on small random networks; with the published weights
        ``metricsmith bank check NAME`` compares numbers that somebody published. Of nine there are none: ``mauve``,
        ``yisi2``, ``summaqa``, ``parascore_free``, ``fasttext_nsfw``, ``fasttext_toxicity``, ``grm_reward``,
        ``inform_reward`` and ``ldl_reward``. Generated are the paper's default 17 judges. What it tries beside these
        (its appendix E.2) is asked for by name: ``generators={"geval": 5, "code": 5, "prometheus": 5}``, and for the
        finetuned encoder ``metrics=[FinetunedMetric(task)]``. `PrometheusJudge` and the trained encoders were not run
        on published weights either.
        """
        if not {"recommender", "first_stage"} & options.keys():
            from metricsmith.programs.recommenders.colbert import colbert_here

            stage, remark = colbert_here(colbert)
            options |= {"first_stage": stage, "remarks": (*options.get("remarks", ()), *([remark] if remark else []))}
        size: dict[str, Any] = {} if options.get("full") else {"n": 5, "regression": "pls"}
        return cls(task, **{"k": 30, **size, **options})

    def compile(
        self,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        *,
        task: Task | None = None,
    ) -> InducedMetric:
        """Induce a metric.

        Parameters
        ----------
        trainset : sequence of dspy.Example
            Rows as `make_row` builds them, with the rating under the task's target name. Rows without a
            rating are scored and reported but not fitted.
        valset : sequence of dspy.Example, optional
            Rated rows of other groups, for testing alone. Without them the report warns.
        task : Task, optional
            If none was given to the constructor.

        Returns
        -------
        InducedMetric
            Its ``record`` holds everything that the report shows.

        Raises
        ------
        OptionError
            If there is no task, something else than rows is given (`induce` takes data in any form), or a group, input
            or output stands in both sets.
        DataError
            If there are fewer than two rated training rows, their ratings are constant, or a column is the target
            under another name.
        NeedsError
            If judges are asked for and there is no model, or a metric with weights is named that cannot be computed.
        ModelFailure
            If the model refuses to work, too many requests fail on their way, the budget runs out, or no candidate is
            left; with `strict` if any judge fails.
        """
        task = task or self.task
        if not isinstance(task, Task):
            raise OptionError(f"AutoMetrics needs a task, not {task!r}: pass task=Task(description, target, scale)")
        trainset, valset = checked_rows(trainset), checked_rows(valset or ())
        rated, unrated = split_rated(trainset, task)
        given = {"train": rated, "test": split_rated(valset, task)[0], "unrated": unrated}
        places = {side: content_order(rows, task.target) for side, rows in given.items()}
        rows = {side: [given[side][place] for place in order] for side, order in places.items()}
        train, test = RatedRows.of(rows["train"], task.target), RatedRows.of(rows["test"], task.target)
        shared = shared_source(train, test)
        if shared:
            raise OptionError(f"{shared} stands in trainset and valset; keep rows of one source on one side")
        if len(train) < 2:
            raise DataError(
                f"{len(train)} of {len(trainset)} training rows have a rating under {task.target!r}; build rows with "
                f"make_row(output, ..., {task.target}=...)"
            )
        kind = "file" if len(test) else "train_only"
        contents = [row.toDict() for row in (*trainset, *valset)]
        origin = f"{len(contents)} rows sha256:{content_hash(contents)} | scale {task.scale}"
        left_out = len(valset) - len(test)
        notes = [f"{left_out} rows of valset have no rating and are left out"] if left_out else []
        first = self.check_columns([*train.rows, *test.rows], task.target)
        in_order = Splits(kind, train, test, rows["unrated"], (), origin, notes, places, first)
        splits, own = set_apart(self.own, train, lambda _: in_order)
        return induce_splits(splits, task, self.with_own(own)).metric
