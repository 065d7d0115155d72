"""The agreement of an induced metric with the raters, on rows and on systems that its fit has not seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.splits import Split
from metricsmith.errors import DataError
from metricsmith.optimizers.fitting import FULL, FitOptions
from metricsmith.optimizers.passes import (
    METRIC,
    Pass,
    Trial,
    best_single,
    learning_points,
    predictions,
    refit,
    selected_shares,
    stage,
)
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.programs.judges.panel import PanelMember
from metricsmith.records import Judgement, Usage
from metricsmith.report.induction.record import MINIMUM_SYSTEMS, LearningPoint, NewSystems
from metricsmith.scoring import ScoreTable
from metricsmith.stats.agreement import Agreement, Difference, agreement, paired_agreement
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.fold_agreement import agreement_over_folds, difference_over_folds
from metricsmith.stats.resampling import jackknife_interval
from metricsmith.stats.resampling.new_systems import MOST_BLOCKS, SystemsFold, held_out_rows, leave_systems_out
from metricsmith.stats.resampling.two_way import pair_tau

__all__ = ["Evaluation", "FoldTrial", "cross_validated", "held_out", "needed_places", "new_systems"]


@dataclass(frozen=True)
class Evaluation:
    """Figures on rows that the fit has not seen, with the judgements and the cost of the folds.

    Parameters
    ----------
    kind : str
        ``holdout``, ``file``, ``cv`` or ``train_only``.
    test : Agreement
        Of the metric, on the held-out rows.
    baselines : mapping of str to Agreement
        Of simpler models, on the same rows, or on the training rows where none are held out.
    test_rows : RatedRows
        Empty under cross-validation.
    held_out_predictions, held_out_folds : sequence of float and of int
        Under cross-validation of each training row the prediction while it was held out, and the number of that fold,
        from 1; empty otherwise.
    shares : mapping of str to float
        By component the share of resamples that choose it again (`selected_shares`).
    learning : tuple of LearningPoint
    judgements : tuple of Judgement
        Those of the folds.
    usage : Usage
        Of the folds.
    fallen : tuple of str
        The judges that folds had to do without.
    own_taus : mapping of str to float
        Under cross-validation the tau-b of each component alone, within folds.
    differences : mapping of str to Difference
        By baseline: how far the metric's tau-b lies above that of the baseline.
    notes : tuple of str
    new_systems : NewSystems, optional
    """

    kind: str
    test: Agreement
    baselines: Mapping[str, Agreement]
    test_rows: RatedRows
    held_out_predictions: Sequence[float] = ()
    held_out_folds: Sequence[int] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    learning: tuple[LearningPoint, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    usage: Usage = field(default_factory=Usage)
    fallen: tuple[str, ...] = ()
    own_taus: Mapping[str, float] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    new_systems: NewSystems | None = None


def held_out(trained: Pass, splits: Splits) -> Evaluation:
    """Compare on the test rows, which `trained` has scored, or on the training rows if there are none."""
    tested = len(splits.test) > 0
    rows, values = (splits.test, trained.other_values) if tested else (splits.train, trained.train_values)
    trials, seed = [Trial(trained, rows, values)] if tested else [], trained.options.seed
    with stage("evaluating", trained.options.progress):
        predicted = predictions(trained, values, rows.rows)
        blocks = {
            label: agreement(numbers, rows.ratings, rows.groups, seed=seed) for label, numbers in predicted.items()
        }
        own = blocks.pop(METRIC)
        return Evaluation(
            kind=splits.kind,
            test=own if tested else agreement([], []),
            baselines=blocks,
            test_rows=splits.test,
            shares=selected_shares(trained, trained.fit, seed),
            learning=learning_points(trials, trained.fit, seed),
            differences={
                label: paired_agreement(predicted[METRIC], predicted[label], rows.ratings, rows.groups)
                for label in blocks
            },
            new_systems=new_systems(trials, trained.fit),
        )


@dataclass(frozen=True)
class FoldTrial(Trial):
    """The trial of one fold.

    `held` are the judgements of the held-out rows. `judgements` are all of the fold, read as soon as it is done: a
    judge that is the same in the next fold may replace in the store what failed in this one.
    """

    held: ScoreTable = field(kw_only=True)
    judgements: Sequence[Judgement] = field(kw_only=True)


def needed_places(trained: Pass) -> list[int]:
    """The places of the candidates to score on held-out rows: those that cost little, and those that a model rests on.

    A panel is asked whole, so that all its members come with one of them.
    """
    metrics, single = trained.table.metrics, best_single(trained)
    wanted = {*trained.fitted.positions, *([] if single is None else [single[0]])}
    for label, rival in trained.fitted.rivals.items():
        if label != FULL and len(rival.combination.indices) <= max(5, len(trained.fitted.positions)):
            wanted |= set(rival.combination.indices)
    seated = {place for place, metric in enumerate(metrics) if isinstance(metric, PanelMember)}
    free = {place for place, metric in enumerate(metrics) if metric.card.cost in ("free", "cheap")}
    return sorted(wanted | free | (seated if wanted & seated else set()))


def cross_validated(trained: Pass, folds: Sequence[Split], trials: Sequence[FoldTrial]) -> Evaluation:
    """Compare on the held-out rows of every fold; `trained` is the pass over all rows.

    A baseline that needs candidates that a fold has not asked on its held-out rows is not compared.
    """
    rated, seed = trained.train, trained.options.seed
    by_fold = [predictions(one.trained, one.values, one.test.rows, one.known) for one in trials]
    shared = [label for label in by_fold[0] if all(label in predicted for predicted in by_fold)]
    ratings, groups = [one.test.ratings for one in trials], [one.test.groups for one in trials]
    held = {label: [predicted[label] for predicted in by_fold] for label in shared}
    blocks = {label: agreement_over_folds(predicted, ratings, groups) for label, predicted in held.items()}
    held_predictions, held_by = np.full(len(rated), np.nan), np.zeros(len(rated), dtype=int)
    for number, (fold, predicted) in enumerate(zip(folds, held[METRIC], strict=True), start=1):
        held_predictions[fold.test], held_by[fold.test] = predicted, number
    values = trained.components.run()
    tables = [table for one in trials for table in (one.trained.scored, one.held)]
    fallen = [
        f"Fold {number}: {line}"
        for number, one in enumerate(trials, start=1)
        for line in (*one.trained.scored.dropped.values(), *one.held.dropped.values())
    ]
    return Evaluation(
        kind="cv",
        test=blocks.pop(METRIC),
        baselines=blocks,
        differences={label: difference_over_folds(held[METRIC], held[label], ratings, groups) for label in blocks},
        test_rows=rated.take([]),
        held_out_predictions=tuple(held_predictions.tolist()),
        held_out_folds=tuple(held_by.tolist()),
        own_taus={
            name: agreement_over_folds([values[fold.test, place] for fold in folds], ratings, groups).kendall_tau_b
            for place, name in enumerate(trained.components.names)
        },
        shares=selected_shares(trained, trained.fit, seed),
        learning=learning_points(trials, trained.fit, seed),
        judgements=tuple(judgement for one in trials for judgement in one.judgements),
        usage=sum((one.trained.candidates.usage for one in trials), Usage())
        + sum((table.usage for table in tables), Usage()),
        fallen=(*_not_made(trials), *fallen),
        notes=tuple(_notes(trials, blocks)),
        new_systems=new_systems(trials, trained.fit),
    )


def _not_made(trials: Sequence[Trial]) -> list[str]:
    """One line for all folds that lack the same judges, with the reasons of the first of them."""
    lacking: dict[tuple[tuple[str, int], ...], dict[int, str]] = {}
    for number, one in enumerate(trials, start=1):
        made = one.trained.candidates
        if made.lacks:
            key = tuple((lack.family, lack.count) for lack in made.lacks)
            lacking.setdefault(key, {})[number] = made.not_made
    return [
        f"Fold{'s' if len(folds) > 1 else ''} {', '.join(map(str, folds))}: {next(iter(folds.values()))}"
        for folds in lacking.values()
    ]


def _notes(trials: Sequence[Trial], blocks: Mapping[str, object]) -> list[str]:
    """Notes on methods that are not compared, and on folds without a value."""
    fitted = dict.fromkeys(label for one in trials for label in one.trained.fitted.rivals)
    lacking = [label for label in fitted if label not in blocks]
    flat = sum(np.ptp(one.test.ratings) == 0 for one in trials)
    return [
        *(
            [f"not compared, since a fold asks on its held-out rows only what its metric needs: {', '.join(lacking)}"]
            if lacking
            else []
        ),
        *([f"{flat} of {len(trials)} folds have one and the same rating throughout and do not count"] if flat else []),
    ]


def new_systems(trials: Sequence[Trial], options: FitOptions) -> NewSystems | None:
    """The figures for new systems and inside systems.

    Candidates and their values stay as they are; only the combination is fitted anew without some systems. Judges that
    were written or tuned on rated rows stay as they are: making them anew without some systems would multiply the
    requests by 41 to 92. The report counts such components, and to that extent the figure flatters.

    Parameters
    ----------
    trials : sequence of Trial
        One for a held-out side, one for each fold of a cross-validation.
    options : FitOptions

    Returns
    -------
    NewSystems or None
        None where no held-out row with a prediction names its system (the label ``system``).
    """
    sides = [_Side.of(trial) for trial in trials]
    names = sorted({name for side in sides for name in side.systems})
    if not names:
        return None
    groups = sorted({group for side in sides for group in side.rows.groups})
    folds = [side.held_out(names, groups, options) for side in sides]
    block = replace(
        _inside(folds, [side.predicted for side in sides]),
        judges=max(
            len(one.candidates.judged.intersection(one.fitted.small.names))
            for one in (trial.trained for trial in trials)
        ),
        unnamed=sum(len(trial.test) for trial in trials) - sum(len(side.rows) for side in sides),
    )
    reason = _against(folds, all(trial.known is None or len(trial.known) == trial.values.shape[1] for trial in trials))
    if reason:
        return replace(block, withheld=reason)
    try:
        found = leave_systems_out(folds, most=MOST_BLOCKS if len(folds) == 1 else MINIMUM_SYSTEMS)
    except DataError:
        return replace(block, withheld="without some of the systems all training ratings are alike")
    ends = found.interval
    if math.isnan(ends.low):
        return replace(block, withheld="tau-b is undefined without some of the systems or groups")
    return replace(block, kendall_tau_b=found.kendall_tau_b, ci_low=ends.low, ci_high=ends.high)


@dataclass(frozen=True)
class _Side:
    """A pass, and those of its test rows that have a system and a prediction."""

    trained: Pass
    rows: RatedRows
    values: FloatArray
    predicted: FloatArray

    @classmethod
    def of(cls, trial: Trial) -> _Side:
        rows, predicted = trial.test, trial.trained.predict(trial.values)
        kept = [place for place, row in enumerate(rows.rows) if row.get("system") and np.isfinite(predicted[place])]
        return cls(trial.trained, rows.take(kept), trial.values[kept], predicted[kept])

    @property
    def systems(self) -> list[str]:
        return [str(row["system"]) for row in self.rows.rows]

    def held_out(self, names: Sequence[str], groups: Sequence[str], options: FitOptions) -> SystemsFold:
        system, group = ({name: place for place, name in enumerate(given)} for given in (names, groups))

        def again(kept: NDArray[np.bool_]) -> FloatArray:
            fitted = refit(self.trained, np.flatnonzero(kept), options)
            return fitted.small.predict(self.values[:, fitted.positions])

        return SystemsFold(
            learned=np.array([system.get(str(row.get("system")), -1) for row in self.trained.train.rows]),
            ratings=self.rows.ratings,
            systems=np.array([system[name] for name in self.systems], dtype=np.int64),
            groups=np.array([group[name] for name in self.rows.groups], dtype=np.int64),
            refit=again,
        )


def _inside(folds: Sequence[SystemsFold], predicted: Sequence[FloatArray]) -> NewSystems:
    """Agreement inside systems, with the metric as it is.

    Levels of systems alone cannot give it.
    """
    systems, groups, ratings, fold = held_out_rows(folds)
    found = pair_tau(np.concatenate(predicted), ratings, only=[systems, fold], groupings=[groups])
    ends = jackknife_interval(found.value, found.without[0], bounds=(-1.0, 1.0))
    return NewSystems(
        systems=np.unique(systems).size,
        rows=ratings.size,
        within_tau_b=found.value,
        within_low=ends.low,
        within_high=ends.high,
    )


def _against(folds: Sequence[SystemsFold], whole: bool) -> str:
    """The reason why there can be no figure for new systems; empty if there can."""
    systems, groups, _, _ = held_out_rows(folds)
    number = np.unique(systems).size
    if number < MINIMUM_SYSTEMS:
        return f"{MINIMUM_SYSTEMS} systems among the held-out rows are the least, and there are {number}"
    met = np.unique(np.column_stack([groups, systems]), axis=0)
    shares = np.unique(met[:, 0], return_counts=True)[1] > 1
    if shares.mean() < 0.5:
        return f"only {shares.sum()} of {shares.size} held-out groups have rows of two systems or more"
    if not whole:
        return (
            "under cross-validation held-out rows are judged by what their fold kept, so that nothing can be refitted"
        )
    return ""
