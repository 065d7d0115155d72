"""How far an induced metric agrees with raters who were not asked, beside what is simpler than it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.correlation import kendall_tau_b
from metricsmith.optimizers.fitting import FitOptions, Fitted, fit
from metricsmith.optimizers.induction import Induction
from metricsmith.optimizers.rated import Rated
from metricsmith.report.record import LearningPoint
from metricsmith.resampling import resampled_rows

__all__ = ["METRIC", "best_column", "best_single", "filled", "learning_curve", "predictions", "selected_shares"]

FloatArray = NDArray[np.float64]
METRIC = "induced metric"
REFITS = 40  # bootstrap refits for the share in which a component is chosen
DRAWS = 5  # seeded draws of training groups per point of the learning curve


def predictions(induction: Induction, values: FloatArray, rows: Sequence[dspy.Example]) -> dict[str, FloatArray]:
    """Predict rows by the induced metric and by every baseline.

    Parameters
    ----------
    induction : Induction
        Fitted on its own training rows.
    values : float array, shape (n, m)
        Candidate scores of the n rows to predict.
    rows : sequence of dspy.Example
        The same rows, for their length.

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
    taus = np.array([kendall_tau_b(column, ratings) for column in values.T])
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
    """How often each component is chosen again when the training groups are resampled, in [0, 1]."""
    counts = dict.fromkeys(induction.fitted.small.names, 0)
    done = 0
    for rows in resampled_rows(induction.train.groups, REFITS, seed):
        if np.ptp(induction.train.ratings[rows]) == 0:
            continue
        chosen = set(_refit(induction, rows, options).small.names)
        done += 1
        for name in counts:
            counts[name] += name in chosen
    return {name: count / done if done else float("nan") for name, count in counts.items()}


def _refit(induction: Induction, rows: NDArray[Any], options: FitOptions) -> Fitted:
    """Fit the same candidates on some of the training rows."""
    candidates = induction.candidates
    return fit(
        induction.train_values[rows],
        induction.train.ratings[rows],
        induction.table.names,
        declared=candidates.declared,
        judged=candidates.judged,
        higher_is_better=induction.metric.task.scale.higher_is_better,
        options=options,
        unrated=induction.unrated_values,
        rivals=False,
    )


def learning_curve(
    induction: Induction, test: Rated, test_values: FloatArray, options: FitOptions, seed: int
) -> tuple[LearningPoint, ...]:
    """Held-out tau-b against the number of training rows: whole groups, a quarter at a time, seeded draws.

    Candidates stay as they are; only the combination is fitted anew. Empty with fewer than eight groups.
    """
    random = np.random.default_rng(seed)
    groups = np.array(induction.train.groups)
    names = list(dict.fromkeys(induction.train.groups))
    if len(names) < 8:
        return ()
    points = []
    for quarter in (1, 2, 3, 4):
        taus, sizes = [], []
        for _ in range(DRAWS if quarter < 4 else 1):
            kept = random.permutation(names)[: len(names) * quarter // 4]
            rows = np.flatnonzero(np.isin(groups, kept))
            if np.ptp(induction.train.ratings[rows]) == 0:
                continue
            fitted = _refit(induction, rows, options)
            taus.append(kendall_tau_b(fitted.small.predict(test_values[:, fitted.positions]), test.ratings))
            sizes.append(len(rows))
        if taus and np.isfinite(taus).all():
            points.append(LearningPoint(round(float(np.mean(sizes))), float(np.mean(taus)), min(taus), max(taus)))
    return tuple(points)
