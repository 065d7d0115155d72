"""Cross-validation: the whole pass inside each fold, with no more requests to the model than that needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.remembered import numbers_kept
from metricsmith.datasets.splits import Split
from metricsmith.optimizers.evaluation import METRIC, Trial, best_single, learning_curve, predictions, selected_shares
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.induction import Induction, Options, induct
from metricsmith.optimizers.new_systems import new_systems
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.recording import Evaluation
from metricsmith.optimizers.sources import Plan
from metricsmith.programs.judges.panel import PanelMember
from metricsmith.records import Judgement, Task, Usage
from metricsmith.scoring import ScoreTable, score
from metricsmith.stats.fold_agreement import agreement_over_folds, difference_over_folds
from metricsmith.store import Store

__all__ = ["cross_validated", "remembering"]

FloatArray = NDArray[np.float64]


@contextmanager
def remembering(options: Options) -> Iterator[Options]:
    """Give the run a store of its own where it has none.

    A judge that is the same in several folds, because it learned nothing from ratings, is then asked once a row.
    """
    if options.store is not None or options.model is None:
        yield options
        return
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "judgements.sqlite")
        try:
            yield replace(options, store=store)
        finally:
            store.close()


@numbers_kept()
def cross_validated(
    rated: Rated, folds: Sequence[Split], unrated: Sequence[dspy.Example], task: Task, options: Options
) -> tuple[Induction, Evaluation]:
    """Repeat the whole pass inside every fold; the metric itself is fitted on all rows.

    What learns from ratings learns them anew in each fold, from its learning rows alone. Candidates are asked on the
    learning rows; on the held-out rows those that cost requests are asked only if the metric, the best single
    candidate or the paper's regression of that fold needs them. A baseline that needs others is not compared.
    """
    plan = options.plan(rated)  # one procedure for all folds: the one that makes the saved metric
    trials, tables, fallen, judgements = list[Trial](), list[ScoreTable](), list[str](), list[Judgement]()
    for number, fold in enumerate(folds, start=1):
        trial, table = _trial(rated.take(fold.train), rated.take(fold.test), task, options, plan)
        trials.append(trial)
        tables += [trial.induction.scored, table]
        # at once, for a judge that is the same in the next fold may replace in the store what failed in this one
        judgements += [*trial.induction.scored.flat(), *table.flat()]
        lines = [*trial.induction.scored.dropped.values(), *table.dropped.values()]
        fallen += [f"Fold {number}: {line}" for line in lines]
    by_fold = [predictions(one.induction, one.values, one.test.rows, one.known) for one in trials]
    shared = [label for label in by_fold[0] if all(label in predicted for predicted in by_fold)]
    ratings, groups = [one.test.ratings for one in trials], [one.test.groups for one in trials]
    held = {label: [predicted[label] for predicted in by_fold] for label in shared}
    blocks = {label: agreement_over_folds(predicted, ratings, groups) for label, predicted in held.items()}
    induction = induct(rated, [], task, options, unrated)
    held_out, held_by = np.full(len(rated), np.nan), np.zeros(len(rated), dtype=int)
    values, own = induction.components.run(), dict[str, float]()
    for number, (fold, predicted) in enumerate(zip(folds, held[METRIC], strict=True), start=1):
        held_out[fold.test], held_by[fold.test] = predicted, number
    for place, name in enumerate(induction.components.names):
        parts = [values[fold.test, place] for fold in folds]
        own[name] = agreement_over_folds(parts, ratings, groups).kendall_tau_b
    return induction, Evaluation(
        kind="cv",
        test=blocks.pop(METRIC),
        baselines=blocks,
        differences={label: difference_over_folds(held[METRIC], held[label], ratings, groups) for label in blocks},
        test_rows=rated.take([]),
        held_out_predictions=tuple(held_out.tolist()),
        held_out_folds=tuple(held_by.tolist()),
        own_taus=own,
        shares=selected_shares(induction, induction.fit, options.seed),
        learning=learning_curve(trials, induction.fit, options.seed),
        judgements=tuple(judgements),
        usage=sum((one.induction.candidates.usage for one in trials), Usage())
        + sum((table.usage for table in tables), Usage()),
        fallen=(*_not_made(trials), *fallen),
        notes=tuple(_notes(trials, blocks)),
        new_systems=new_systems(trials, induction.fit),
    )


def _trial(train: Rated, held: Rated, task: Task, options: Options, plan: Plan) -> tuple[Trial, ScoreTable]:
    """The pass on a fold's learning rows, and what it needs to predict the held-out ones."""
    part = induct(train, [], task, options, plan=plan)
    known = _needed(part)
    with options.asking():
        table = score([part.table.metrics[place] for place in known], held.rows, **options.scoring)
    values = np.full((len(held), len(part.table.metrics)), np.nan)
    values[:, known] = table.run()
    return Trial(part, held, values, frozenset(known)), table


def _needed(part: Induction) -> list[int]:
    """The places of the candidates to ask on held-out rows: those that cost nothing, and those that a model rests on.

    A panel is asked whole, so that all its members come with one of them.
    """
    metrics, single = part.table.metrics, best_single(part)
    wanted = {*part.fitted.positions, *([] if single is None else [single[0]])}
    for label, rival in part.fitted.rivals.items():
        if label != FULL and len(rival.combination.indices) <= max(5, len(part.fitted.positions)):
            wanted |= set(rival.combination.indices)
    seated = {place for place, metric in enumerate(metrics) if isinstance(metric, PanelMember)}
    free = {place for place, metric in enumerate(metrics) if metric.card.cost != "model"}
    return sorted(wanted | free | (seated if wanted & seated else set()))


def _not_made(trials: Sequence[Trial]) -> list[str]:
    """One line for all folds that lack the same judges, with the reasons of the first of them."""
    lacking: dict[tuple[tuple[str, int], ...], dict[int, str]] = {}
    for number, one in enumerate(trials, start=1):
        made = one.induction.candidates
        if made.lacks:
            key = tuple((lack.family, lack.count) for lack in made.lacks)
            lacking.setdefault(key, {})[number] = made.not_made
    return [
        f"Fold{'s' if len(folds) > 1 else ''} {', '.join(map(str, folds))}: {next(iter(folds.values()))}"
        for folds in lacking.values()
    ]


def _notes(trials: Sequence[Trial], blocks: Mapping[str, object]) -> list[str]:
    """Notes on methods that are not compared, and on folds without a value."""
    fitted = dict.fromkeys(label for one in trials for label in one.induction.fitted.rivals)
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
