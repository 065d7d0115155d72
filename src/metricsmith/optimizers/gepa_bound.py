"""The most that a run of GEPA can cost, read off its loop before it starts (dspy 3.4.1, gepa 0.1.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from metricsmith.errors import OptionError
from metricsmith.metric import Metric, make_row
from metricsmith.model_calls.calls import PARSE_TRIES, TRIES
from metricsmith.model_calls.dspy_internals import full_evaluations
from metricsmith.reward import Reward
from metricsmith.scoring import estimate

__all__ = ["GEPABound", "gepa_bound"]

MERGE_SUBSAMPLE = 5  # rows on which gepa tries a merged candidate (select_eval_subsample_for_merged_program)
REFLECTION_TRIES = 2  # a proposal whose reflection fails is asked for once more
FALLBACK = 2  # DSPy's ChatAdapter asks once more, through JSON, where it cannot read an answer
LOOP_OPTIONS = ("sampling_strategy", "selection_strategy", "stop_callbacks", "reflection_strategy", "batch_sampler")


@dataclass(frozen=True, slots=True)
class GEPABound:
    """The most that one `dspy.GEPA.compile` does.

    Parameters
    ----------
    rollouts : int
        Runs of the program, each followed by one scoring call of the reward. GEPA looks at its budget between
        iterations only and finishes the one that it is in, so this exceeds ``max_metric_calls``.
    proposals : int
        Iterations that ask the reflection model.
    feedbacks : int
        Further calls of the reward, for one predictor each; they are answered from memory.
    program, judging, reflection : int
        Requests at most for one rollout, one scoring call and one proposal. Retries inside the program's and the
        reflection model's own clients come on top: set ``num_retries=0`` where the bound must hold.
    """

    rollouts: int
    proposals: int
    feedbacks: int
    program: int
    judging: int
    reflection: int

    @property
    def requests(self) -> int:
        """Requests to all models together, at most."""
        return self.rollouts * (self.program + self.judging) + self.proposals * self.reflection

    def __str__(self) -> str:
        return (
            f"at most {self.requests:,} requests: {self.rollouts:,} runs of the program with up to {self.program} "
            f"requests each and up to {self.judging} to judge it, {self.proposals:,} reflections with up to "
            f"{self.reflection}"
        )


def gepa_bound(
    optimizer: dspy.GEPA,
    student: dspy.Module,
    trainset: Sequence[Any],
    valset: Sequence[Any] | None = None,
    *,
    program_requests: int | None = None,
) -> GEPABound:
    """Bound the cost of ``optimizer.compile(student, trainset=trainset, valset=valset)``.

    With budget N, v validation rows and minibatches of b rows, GEPA first scores v rows. While fewer than N are counted
    it begins an iteration: b rows for the parent, b for the child and v if the child is kept, or 5 for a merged
    candidate and v if that is kept. So the last iteration begins at N - 1 at the latest and at most
    ``N - 1 + max(2 b, 5) + v`` rows are scored; every proposal costs at least b rows. Every retry of a judge counts, so
    that the bound is far above what a healthy run takes.

    Parameters
    ----------
    optimizer : dspy.GEPA
    student : dspy.Module
    trainset, valset : sequence of dspy.Example
        As for ``compile``.
    program_requests : int, optional
        The most requests of one run of the program; by default two for each predictor, because DSPy's ChatAdapter
        asks once more where it cannot read an answer. Give it for programs that loop.

    Raises
    ------
    OptionError
        If the optimiser is set to another loop than GEPA's own (``gepa_kwargs``), or the rows are empty.
    NeedsError
        If the reward is a judge and no language model is set.
    """
    changed = [name for name in LOOP_OPTIONS if optimizer.gepa_kwargs.get(name) is not None]
    if changed:
        raise OptionError(f"gepa_kwargs changes GEPA's loop ({', '.join(changed)}): count its requests as they come")
    if not trainset:
        raise OptionError("trainset is empty: GEPA needs at least one example")
    predictors = len(student.named_predictors())
    rows, batch = len(valset or trainset), optimizer.reflection_minibatch_size
    budget = _budget(optimizer, predictors, len(trainset), None if valset is None else len(valset))
    step = max(2 * batch, MERGE_SUBSAMPLE if optimizer.use_merge else 0)
    proposals = max(0, math.ceil((budget - rows) / batch))
    updated = predictors if optimizer.component_selector != "round_robin" else 1
    return GEPABound(
        rollouts=rows if rows >= budget else budget - 1 + step + rows,
        proposals=proposals,
        feedbacks=proposals * batch * updated,
        program=FALLBACK * predictors if program_requests is None else program_requests,
        judging=_judging(optimizer.metric_fn),
        reflection=REFLECTION_TRIES * updated,
    )


def _budget(optimizer: dspy.GEPA, predictors: int, train: int, val: int | None) -> int:
    """The metric calls that `dspy.GEPA.compile` starts with as its budget."""
    if optimizer.auto is not None:
        candidates = full_evaluations(optimizer.auto)
        return int(optimizer.auto_budget(max(predictors, 1), candidates, train if val is None else val))
    if optimizer.max_full_evals is not None:
        return int(optimizer.max_full_evals * (train + (val or 0)))
    return int(optimizer.max_metric_calls)


def _judging(reward: Any) -> int:
    """The most requests of one scoring call: all tries of every request that the metric makes for one row."""
    metric, lm = (reward.metric, reward.lm) if isinstance(reward, Reward) else (reward, None)
    if not isinstance(metric, Metric):
        raise OptionError(f"the optimiser's metric is {reward!r}: only of a Reward or Metric it is known what it asks")
    row = make_row("output", input="input", references=["reference"], context="context")
    return (TRIES + PARSE_TRIES - 1) * estimate([metric], [row], lm=lm).requests
