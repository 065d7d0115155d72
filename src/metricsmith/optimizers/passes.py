"""A pass of generate, retrieve, score and fit, and its predictions beside those of simpler models."""

from __future__ import annotations

import glob
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.text import without_spaces
from metricsmith.datasets.columns import Columns
from metricsmith.metric import Metric
from metricsmith.model_calls.adapters import adapter_name
from metricsmith.optimizers.candidates import Candidates
from metricsmith.optimizers.cross_fitting import CrossFitted
from metricsmith.optimizers.fitting import FitOptions, Fitted, fit
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.induced import InducedMetric, best_contributions, induced_fingerprint, predict_ratings
from metricsmith.records import Task
from metricsmith.report.induction.record import LearningPoint
from metricsmith.saving import row_hash
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.progress import progress_bar
from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import resampled_rows

__all__ = [
    "METRIC", "Pass", "Trial", "best_column", "best_single", "learning_points", "predictions", "refit",
    "selected_shares", "stage", "with_median",
]  # fmt: skip

METRIC = "induced metric"
REFITS = 40  # bootstrap refits for the share in which a component is chosen
DRAWS = 5  # seeded draws of training groups per point of the learning curve


@contextmanager
def stage(label: str, enabled: bool) -> Iterator[None]:
    """Show that a stage runs, where `progress_bar` shows anything."""
    with progress_bar(enabled, total=1, desc=label, bar_format="{desc}: {elapsed}") as bar:
        yield
        bar.update()


@dataclass(frozen=True)
class Pass:
    """One pass of generate, retrieve, score and fit over given training rows.

    Parameters
    ----------
    train : RatedRows
        The n rows that it was fitted to.
    task : Task
    options : Options
    candidates : Candidates
        The m candidates that were fitted.
    scored : ScoreTable
        All judgements: training rows first, then the other rows; judges that were dropped for failures too.
    table : ScoreTable
        Those of the candidates alone.
    unrated_values : float array, shape (u, m)
        Candidate scores of the unrated rows that helped to choose the small model.
    fitted : Fitted
    learned : bool array, shape (n, m)
        True where a metric of the caller's has learned from the group of a training row.
    warnings : tuple of str
    """

    train: RatedRows
    task: Task
    options: Options
    candidates: Candidates
    scored: ScoreTable
    table: ScoreTable
    unrated_values: FloatArray
    fitted: Fitted
    learned: NDArray[np.bool_]
    warnings: tuple[str, ...] = ()

    @property
    def fit(self) -> FitOptions:
        """The options of the regression, with the size that the candidates' cost decides."""
        return self.options.fit.settled(self.candidates.costly)

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

    def predict(self, values: FloatArray) -> FloatArray:
        """Predictions of the induced metric from candidate scores, shape (n, m) -> (n,)."""
        return predict_ratings(self.fitted.small, values[:, self.fitted.positions])

    @property
    def saved(self) -> list[Metric]:
        """The components as they are saved: of a cross-fitted column the metric that was trained on all rows."""
        return [one.kept if isinstance(one, CrossFitted) else one for one in self.components.metrics]

    def fingerprint(self) -> str:
        """The fingerprint of the induced metric."""
        return induced_fingerprint(self.saved, self.fitted.small.to_dict(), asdict(self.task))

    def metric(self, signature: str = "", columns: Columns | None = None) -> InducedMetric:
        """The induced metric, with the signature line of its run and the columns that its rows were read from."""
        components, combination, model = self.saved, self.fitted.small, self.options.model
        asks = model is not None and any("model" in metric.card.needs for metric in components)
        return InducedMetric(
            components=components,
            combination=combination,
            task=self.task,
            best=best_contributions(combination, self.components.run()[: len(self.train)], self.task.scale),
            signature=signature,
            reading=None if columns is None else _reading(columns, components),
            adapter=adapter_name(),
            made_with={
                **({"model": str(model.model)} if asks else {}),
                "learned_from": sorted({*map(row_hash, self.train.rows)} - {""}),
            },
        )


def _reading(columns: Columns, components: Sequence[Metric]) -> dict[str, Any]:
    """Options for `read_table` that find the columns that the components look at, and no others, in new rows."""
    cards = [component.card for component in components]
    judged = any(card.cost == "model" for card in cards)
    needs = {need for card in cards for need in card.needs}
    reading: dict[str, Any] = {"metric_columns": [glob.escape(card.name) for card in cards if card.kind == "column"]}
    if any(card.kind != "column" for card in cards):
        reading["output"] = columns.output
    if judged or "input" in needs or columns.output in columns.inputs:  # the column says where its output ends
        reading["inputs"] = list(columns.inputs)
    if judged or "references" in needs:
        reading["reference"] = list(columns.references)
    if judged:
        reading["context"] = columns.context
    if columns.levels:
        reading["levels"] = list(columns.levels)
    labels = {role: getattr(columns, role) for role in ("id", "group", "system") if role not in columns.guessed}
    if usual := {role: name for role, name in labels.items() if name is not None}:
        reading["usual"] = usual
    return reading


@dataclass(frozen=True)
class Trial:
    """A pass and rows that test it.

    `values`, shape (n, m), are the candidate scores of the n rows of `test`. `known` are the places of the candidates
    that were computed there; None: all.
    """

    trained: Pass
    test: RatedRows
    values: FloatArray
    known: Collection[int] | None = None


def predictions(
    trained: Pass, values: FloatArray, rows: Sequence[dspy.Example], known: Collection[int] | None = None
) -> dict[str, FloatArray]:
    """Predict rows by the induced metric and by every baseline.

    Parameters
    ----------
    trained : Pass
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
        induced metric abridges. NaN where the metric declines; baselines impute, so that theirs may be more rows.
    """
    train, result = trained.train, {METRIC: trained.predict(values)}
    for label, model in trained.fitted.rivals.items():
        if known is None or set(model.combination.indices) <= set(known):
            result[label] = model.predict(values)
    single = best_single(trained)
    if single is not None:
        place, sign = single
        result["best single candidate"] = sign * with_median(values[:, place], trained.train_values[:, place])
    # The rows of a fold and those it was trained on are the table, so that all folds count the same.
    unspaced = without_spaces([row.get("output") or "" for row in (*train.rows, *rows)])
    train_lengths = _output_lengths(train.rows, unspaced)
    if np.isfinite(train_lengths).all():
        sign = -1.0 if kendall_tau_b(train_lengths, train.ratings) < 0 else 1.0  # undefined: as if longer were better
        counted = "characters" if unspaced else "words"
        result[f"output length in {counted}"] = sign * _output_lengths(rows, unspaced)
    return result


def best_single(trained: Pass) -> tuple[int, float] | None:
    """Position and sign of the candidate that agrees best with the training ratings; None if none is defined."""
    return best_column(trained.train_values, trained.train.ratings)


def best_column(values: FloatArray, ratings: FloatArray) -> tuple[int, float] | None:
    """Position and sign of the column, out of shape (n, m), that agrees best with ratings of shape (n,), or None.

    Absolute tau-b counts by the share of rows on which the column has a value, so that one with a few
    values cannot win by luck. As in the regressions, a missing score then counts as average (`with_median`). Of equally
    good columns it is the first.
    """
    taus = batch_kendall_tau_b(values.T, ratings)
    shares = np.isfinite(values).mean(axis=0)
    if not np.isfinite(taus).any():
        return None
    best = int(np.nanargmax(np.abs(taus) * shares))
    return best, float(np.sign(taus[best]))


def with_median(column: FloatArray, known: FloatArray) -> FloatArray:
    """`column` with the median of `known` where it has no finite value."""
    return np.where(np.isfinite(column), column, np.median(known[np.isfinite(known)]))


def _output_lengths(rows: Sequence[dspy.Example], unspaced: bool) -> FloatArray:
    """Words per output, or characters where words have no spaces between them; NaN without one."""
    texts = [row.get("output") for row in rows]
    counted = [np.nan if not text else len(text if unspaced else text.split()) for text in texts]
    return np.array(counted, dtype=float)


def selected_shares(trained: Pass, options: FitOptions, seed: int) -> dict[str, float]:
    """The share of resamples of the training groups in which each component is chosen again, in [0, 1].

    Empty where all candidates are kept, so that none is chosen.
    """
    if options.full:
        return {}
    counts = dict.fromkeys(trained.fitted.small.names, 0)
    done = 0
    for rows in resampled_rows(trained.train.groups, REFITS, seed):
        if np.ptp(trained.train.ratings[rows]) == 0:
            continue
        chosen = set(refit(trained, rows, options).small.names)
        done += 1
        for name in counts:
            counts[name] += name in chosen
    return {name: count / done if done else float("nan") for name, count in counts.items()}


def refit(trained: Pass, rows: NDArray[Any], options: FitOptions, known: Collection[int] | None = None) -> Fitted:
    """Fit the same candidates, or those of them that are known, on some of the training rows."""
    candidates, names = trained.candidates, trained.table.names
    values, unrated = trained.train_values[rows], trained.unrated_values
    if known is not None:
        hidden = [place for place in range(len(names)) if place not in known]
        values, unrated = values.copy(), unrated.copy()
        values[:, hidden] = math.nan  # a column without a value is constant and never chosen
        unrated[:, hidden] = math.nan
    return fit(
        values,
        trained.train.ratings[rows],
        names,
        declared=candidates.declared,
        judged=candidates.judged,
        higher_is_better=trained.task.scale.higher_is_better,
        options=options,
        unrated=unrated,
        rivals=False,
    )


def learning_points(trials: Sequence[Trial], options: FitOptions, seed: int) -> tuple[LearningPoint, ...]:
    """Held-out tau-b against the number of training rows: whole groups, a quarter at a time, seeded draws.

    Candidates stay as they are; only the combination is fitted anew. Of several trials (the folds of a
    cross-validation) each draw counts by its mean over those in which tau-b is defined. Empty where a trial has fewer
    than six training groups, or a single one fewer than eight.
    """
    groups = [np.array(trial.trained.train.groups) for trial in trials]
    names = [list(dict.fromkeys(trial.trained.train.groups)) for trial in trials]
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
                if np.ptp(trial.trained.train.ratings[rows]) == 0:
                    continue
                fitted = refit(trial.trained, rows, options, trial.known)
                taus.append(kendall_tau_b(fitted.small.predict(trial.values[:, fitted.positions]), trial.test.ratings))
                sizes.append(len(rows))
            if taus:
                draws.append(float(np.nanmean(taus)) if np.isfinite(taus).any() else math.nan)
        if draws and np.isfinite(draws).all():
            points.append(LearningPoint(round(float(np.mean(sizes))), float(np.mean(draws)), min(draws), max(draws)))
    return tuple(points)
