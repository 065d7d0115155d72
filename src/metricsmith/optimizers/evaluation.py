"""How far an induced metric agrees with raters who were not asked, beside what is simpler than it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.optimizers.fitting import FitOptions, Fitted, fit
from metricsmith.optimizers.induction import Induction
from metricsmith.optimizers.rated import Rated
from metricsmith.report.record import LearningPoint
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import resampled_rows

__all__ = [
    "METRIC", "Trial", "best_column", "best_single", "filled", "learning_curve", "predictions", "refit",
    "selected_shares",
]  # fmt: skip

FloatArray = NDArray[np.float64]
METRIC = "induced metric"
REFITS = 40  # bootstrap refits for the share in which a component is chosen
DRAWS = 5  # seeded draws of training groups per point of the learning curve


@dataclass(frozen=True)
class Trial:
    """An induction and rows that test it.

    `values`, shape (n, m), are the candidate scores of the n rows of `test`. `known` are the places of the candidates
    that were computed there; None: all.
    """

    induction: Induction
    test: Rated
    values: FloatArray
    known: Collection[int] | None = None


def predictions(
    induction: Induction, values: FloatArray, rows: Sequence[dspy.Example], known: Collection[int] | None = None
) -> dict[str, FloatArray]:
    """Predict rows by the induced metric and by every baseline.

    Parameters
    ----------
    induction : Induction
        Fitted on its own training rows.
    values : float array, shape (n, m)
        Candidate scores of the n rows to predict.
    rows : sequence of dspy.Example
        The same rows, for their length.
    known : collection of int, optional
        Places of the candidates that were computed; baselines that need others are left out.

    Returns
    -------
    dict of str to float array, shape (n,)
        ``METRIC`` first. Baselines: the output's length and the best single candidate, each with its sign
        on the training rows; the plain mean of the declared judges; the paper's PLS; the full model that the
        induced metric abridges.
    """
    fitted, train = induction.fitted, induction.train
    result = {METRIC: induction.metric.predict(values[:, fitted.positions])}
    for label, model in fitted.rivals.items():
        if known is None or set(model.combination.indices) <= set(known):
            result[label] = model.predict(values)
    single = best_single(induction)
    if single is not None:
        place, sign = single
        result["best single candidate"] = sign * filled(values[:, place], induction.train_values[:, place])
    lengths, train_lengths = output_lengths(rows), output_lengths(train.rows)
    if np.isfinite(train_lengths).all():
        result["output length in words"] = _signed(train_lengths, train.ratings) * lengths
    return result


def best_single(induction: Induction) -> tuple[int, float] | None:
    """Position and sign of the candidate that agrees best with the training ratings; None if none is defined."""
    return best_column(induction.train_values, induction.train.ratings)


def best_column(values: FloatArray, ratings: FloatArray) -> tuple[int, float] | None:
    """Position and sign of the column, out of shape (n, m), that agrees best with ratings of shape (n,), or None.

    Absolute tau-b counts by the share of rows on which the column has a value, so that one with a few
    values cannot win by luck. As in the regressions, a missing score then counts as average (`filled`). Of equally
    good columns it is the first.
    """
    taus = batch_kendall_tau_b(values.T, ratings)
    shares = np.isfinite(values).mean(axis=0)
    if not np.isfinite(taus).any():
        return None
    best = int(np.nanargmax(np.abs(taus) * shares))
    return best, float(np.sign(taus[best]))


def filled(column: FloatArray, known: FloatArray) -> FloatArray:
    """`column` with the median of `known` where it has no finite value."""
    return np.where(np.isfinite(column), column, np.median(_present(known)))


def _present(column: FloatArray) -> FloatArray:
    return column[np.isfinite(column)]


def output_lengths(rows: Sequence[dspy.Example]) -> FloatArray:
    """Words per output, NaN without one."""
    return np.array([len(row["output"].split()) if row.get("output") else np.nan for row in rows], dtype=float)


def _signed(column: FloatArray, ratings: FloatArray) -> float:
    """The direction of a column on the training rows; 1 where there is none."""
    return -1.0 if kendall_tau_b(column, ratings) < 0 else 1.0


def selected_shares(induction: Induction, options: FitOptions, seed: int) -> dict[str, float]:
    """The share of resamples of the training groups in which each component is chosen again, in [0, 1].

    Empty where all candidates are kept, so that none is chosen.
    """
    if options.full:
        return {}
    counts = dict.fromkeys(induction.fitted.small.names, 0)
    done = 0
    for rows in resampled_rows(induction.train.groups, REFITS, seed):
        if np.ptp(induction.train.ratings[rows]) == 0:
            continue
        chosen = set(refit(induction, rows, options).small.names)
        done += 1
        for name in counts:
            counts[name] += name in chosen
    return {name: count / done if done else float("nan") for name, count in counts.items()}


def refit(
    induction: Induction, rows: NDArray[Any], options: FitOptions, known: Collection[int] | None = None
) -> Fitted:
    """Fit the same candidates, or those of them that are known, on some of the training rows."""
    candidates, names = induction.candidates, induction.table.names
    values, unrated = induction.train_values[rows], induction.unrated_values
    if known is not None:
        hidden = [place for place in range(len(names)) if place not in known]
        values, unrated = values.copy(), unrated.copy()
        values[:, hidden] = math.nan  # a column without a value is constant and never chosen
        unrated[:, hidden] = math.nan
    return fit(
        values,
        induction.train.ratings[rows],
        names,
        declared=candidates.declared,
        judged=candidates.judged,
        higher_is_better=induction.metric.task.scale.higher_is_better,
        options=options,
        unrated=unrated,
        rivals=False,
    )


def learning_curve(trials: Sequence[Trial], options: FitOptions, seed: int) -> tuple[LearningPoint, ...]:
    """Held-out tau-b against the number of training rows: whole groups, a quarter at a time, seeded draws.

    Candidates stay as they are; only the combination is fitted anew. Of several trials (the folds of a
    cross-validation) each draw counts by its mean over those in which tau-b is defined. Empty where a trial has fewer
    than six training groups, or a single one fewer than eight.
    """
    groups = [np.array(trial.induction.train.groups) for trial in trials]
    names = [list(dict.fromkeys(trial.induction.train.groups)) for trial in trials]
    if min(map(len, names), default=0) < (8 if len(trials) == 1 else 6):
        return ()
    random = np.random.default_rng(seed)
    points = []
    for quarter in (1, 2, 3, 4):
        draws, sizes = [], []
        for _ in range(DRAWS if quarter < 4 else 1):
            taus = []
            for trial, labels, own in zip(trials, groups, names, strict=True):
                rows = np.flatnonzero(np.isin(labels, random.permutation(own)[: len(own) * quarter // 4]))
                if np.ptp(trial.induction.train.ratings[rows]) == 0:
                    continue
                fitted = refit(trial.induction, rows, options, trial.known)
                taus.append(kendall_tau_b(fitted.small.predict(trial.values[:, fitted.positions]), trial.test.ratings))
                sizes.append(len(rows))
            if taus:
                draws.append(float(np.nanmean(taus)) if np.isfinite(taus).any() else math.nan)
        if draws and np.isfinite(draws).all():
            points.append(LearningPoint(round(float(np.mean(sizes))), float(np.mean(draws)), min(draws), max(draws)))
    return tuple(points)
