"""The likely number of requests of a search: below its bound, since what is known is not asked again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from metricsmith.metric import content_hash
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.tuning.methods import (
    SUMMARY_BATCH,
    SUMMARY_MOST,
    Job,
    labeled_count,
    mipro_count,
    mipro_trials,
)

__all__ = ["EXPECTED"]


def _labeled(job: Job, requests: int) -> int:
    """The selection rows once for each different judge; the judge as it was may show the first draw already."""
    answers, tried = job.bench.answers, job.draws[: labeled_count(job, requests - job.select_calls)]
    judges = {answers.candidate(job.judge, {}), *(answers.candidate(draw(), {}) for draw in tried)}
    return job.calls * len(judges) * _contents(job.bench.select)


def _mipro(job: Job, requests: int) -> int:
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


EXPECTED: Mapping[str, Callable[[Job, int], int]] = {"labeled": _labeled, "mipro": _mipro}
