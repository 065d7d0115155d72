"""The record of a run, which the reports show, and the signature line that makes it reproducible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.catalogue import default_bank
from metricsmith.formats import p_stated
from metricsmith.metric import content_hash
from metricsmith.model_calls.models import identity
from metricsmith.optimizers.cross_fitting import CrossFitted
from metricsmith.optimizers.evaluation import Evaluation
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.generation import FREE
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.passes import METRIC, Pass, best_single, predictions
from metricsmith.optimizers.splits import Splits, in_given_order
from metricsmith.programs.induced import Explanation, InducedMetric
from metricsmith.programs.judges.panel import PanelMember, tokens_per_row
from metricsmith.records import Judgement, Task, Usage
from metricsmith.report.induction.record import Component, RowRecord, RunRecord
from metricsmith.report.induction.verdict import not_beaten
from metricsmith.scoring import ScoreTable, tally
from metricsmith.stats.agreement import agreement
from metricsmith.stats.ceiling import RaterCeiling
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import MINIMUM_GROUPS
from metricsmith.version import __version__

__all__ = ["SignatureLine", "record_run"]

SEPARATOR = " | "


@dataclass(frozen=True)
class SignatureLine:
    """The parts of a run's signature line that are known before anything is asked.

    Store, budget, concurrency and probe decide on no number and have no part in it. Neither has the metric's own
    fingerprint: a model may write other judges when the same command is run again.

    Parameters
    ----------
    version : str
        Of the package.
    origin : str
        The data and their split; may be empty.
    rows : str
        The number of training rows.
    sources : str
        Bank, `k`, and whether judges sit on a panel.
    model, seed : str
    options : str
        A hash of all options that decide on numbers and have no words of their own in the line: the task, the judges
        to make, the caller's own metrics, the model's settings.
    """

    version: str
    origin: str
    rows: str
    sources: str
    model: str
    seed: str
    options: str

    @classmethod
    def of(cls, splits: Splits, task: Task, options: Options) -> SignatureLine:
        """The known parts of a run's line."""
        model, default = options.model, options.whole_bank is default_bank()
        sources = {
            **{
                name: getattr(options, name) for name in ("bank", "k", "generated_only_below", "panel", "allow_missing")
            },
            **{name: sorted(getattr(options, name)) for name in ("columns", "prior_columns", "allow_columns")},
            "generators": options.judge_counts,
            "metrics": None if default else [metric.name for metric in options.whole_bank.metrics()],
            "own": [one.name if one.card.kind == "callable" else one.fingerprint() for one in options.own],
        }
        decided = {
            "task": asdict(task),
            "sources": sources,
            "fit": asdict(options.fit),
            "retrieval": [type(options.recommender).__name__, type(options.first_stage).__name__, options.whole_cards],
            "failures": [options.max_failure_rate, options.per_judge],
            "model": None if model is None else identity(model),
        }
        return cls(
            version=f"metricsmith {__version__}",
            origin=splits.origin,
            rows=f"{len(splits.train)} training rows",
            sources=f"bank {options.bank}, k {options.k}{', panel' if options.panel else ''}",
            model=f"model {model.model}" if getattr(model, "model", None) else "no model",
            seed=f"seed {options.seed}",
            options=f"options sha256:{content_hash(decided)[:12]}",
        )

    def whole(self, trained: Pass) -> str:
        """The whole line, with the size of the small model and the metric's fingerprint."""
        metric = f"metric {trained.fingerprint()}"
        parts = (
            self.version, self.origin, self.rows, trained.fit.label, self.sources, self.model, self.seed, metric,
            self.options,
        )  # fmt: skip
        return SEPARATOR.join(filter(None, parts))

    def same_run(self, line: str) -> bool:
        """True if a line is of a run with these parts: the same data, rows, options, model and seed."""
        known = SEPARATOR.join(asdict(self).values())  # the origin is of several parts itself
        return set(known.split(SEPARATOR)) - {""} <= set(line.split(SEPARATOR))


def record_run(
    trained: Pass,
    metric: InducedMetric,
    evaluation: Evaluation,
    unrated: ScoreTable,
    splits: Splits,
    *,
    estimated: Usage,
    seconds: float,
    raters: RaterCeiling | None = None,
) -> RunRecord:
    """The record of a run.

    Parameters
    ----------
    trained : Pass
        Over all training rows, with the test rows scored along.
    metric : InducedMetric
        Made of `trained`.
    evaluation : Evaluation
    unrated : ScoreTable
        The components' judgements of the unrated rows.
    splits : Splits
        Give notes, first warnings and the order in which rows were given.
    estimated : Usage
        Before the run.
    seconds : float
        Taken by the run.
    raters : RaterCeiling, optional
    """
    train, fitted, more = trained.train, trained.fitted, metric.combine(unrated)
    explanations, cut = metric.combine(trained.components), len(train)
    further = [*evaluation.judgements, *(part.judgement for explanation in more for part in explanation.parts)]
    added = tally(further)
    failed = [*trained.scored.failed(), *(judgement for judgement in further if not judgement.ok)]
    data = [
        *_rows("train", train.rows, explanations[:cut], trained.task, evaluation),
        *_rows("test", evaluation.test_rows.rows, explanations[cut:], trained.task),
        *_rows("unrated", unrated.rows, more, trained.task),
    ]
    raws = [row.prediction for row in data if row.prediction is not None]
    outside = sum(not trained.task.scale.contains(raw) for raw in raws)
    predicted, panel = predictions(trained, trained.train_values, train.rows)[METRIC], trained.candidates.panel
    return RunRecord(
        task=trained.task,
        signature=metric.settings.signature,
        evaluation=evaluation.kind,
        rows={
            "rated": cut + len(evaluation.test_rows), "train": cut, "test": evaluation.test.n,
            "unrated": len(unrated.rows),
        },
        components=_components(trained, evaluation),
        train=agreement(predicted, train.ratings, train.groups, seed=trained.options.seed),
        test=evaluation.test,
        baselines=evaluation.baselines,
        judgements={status: count + added[status] for status, count in trained.scored.counts().items()},
        usage={
            **_counted(trained.candidates.usage + trained.scored.usage + evaluation.usage + unrated.usage),
            "seconds": round(seconds, 3),
            "estimated": _counted(estimated),
        },
        warnings=tuple(_all_warnings(trained, evaluation, failed, splits.warnings, unrated.dropped.values())),
        notes=tuple(_all_notes(trained, evaluation, splits.notes)),
        fallen=(*trained.candidates.fell_away, *trained.scored.dropped.values()),
        data=in_given_order(data, splits.places),
        combiner=fitted.sentence,
        fidelity=fitted.fidelity,
        unabridged=FULL if FULL in evaluation.baselines and fitted.abridges else "",
        clipped_share=outside / len(raws) if raws else 0.0,
        learning=evaluation.learning,
        failures=tuple(_failures(failed)),
        split=splits.split,
        panel=None if panel is None else tokens_per_row(panel, trained.table.rows),
        raters=raters,
        differences=evaluation.differences,
        new_systems=evaluation.new_systems,
    )  # fmt: skip


def _counted(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in ("requests", "prompt_tokens", "completion_tokens", "cost")}


def _components(trained: Pass, evaluation: Evaluation) -> tuple[Component, ...]:
    """Components by falling absolute weight, each with its own correlation on either side."""
    table, small, cut = trained.components, trained.fitted.small, len(trained.train)
    values, ratings, test_ratings = table.run(), trained.train.ratings, evaluation.test_rows.ratings
    components = [
        Component(
            name=metric.name,
            kind=metric.card.kind,
            weight=float(weight),
            direction="+" if weight >= 0 else "-",
            tau_train=kendall_tau_b(trained.train_values[:, trained.fitted.positions[j]], ratings),
            tau_test=kendall_tau_b(values[cut:, j], test_ratings)
            if len(test_ratings)
            else evaluation.own_taus.get(metric.name, math.nan),
            missing=int(np.isnan(values[:, j]).sum()),
            card=metric.card,
            selected_share=evaluation.shares.get(metric.name, math.nan),
            weights=getattr(metric, "weights", ""),
            copies=len(metric.members) if isinstance(metric, CrossFitted) else 0,
            seconds=sum(one.usage.seconds for one in table.column(j)) / len(table.rows) or math.nan,
        )
        for j, (metric, weight) in enumerate(zip(table.metrics, small.weights, strict=True))
    ]
    return tuple(sorted(components, key=lambda component: -abs(component.weight)))


def _rows(
    split: str,
    rows: Sequence[dspy.Example],
    explanations: Sequence[Explanation],
    task: Task,
    evaluation: Evaluation | None = None,
) -> list[RowRecord]:
    """The rows of one split; with an `evaluation` by folds each has the prediction made while it was held out."""
    held_out, folds = (evaluation.held_out_predictions, evaluation.held_out_folds) if evaluation else ((), ())
    records = []
    for number, (row, explanation) in enumerate(zip(rows, explanations, strict=True)):
        held = held_out[number] if held_out else None
        parts = {part.name: part for part in explanation.parts}
        records.append(
            RowRecord(
                id=str(row.get("id", f"{split} {number}")),
                group=str(row.get("group", "")),
                split=split,
                rating=None if split == "unrated" else float(row[task.target]),
                prediction=explanation.prediction.raw if held is None else None if math.isnan(held) else held,
                output=str(row.get("output") or ""),
                input=str(row.get("input") or ""),
                values={name: part.judgement.raw for name, part in parts.items()},
                contributions={}
                if held_out
                else {name: part.contribution for name, part in parts.items() if part.judgement.ok},
                feedback={name: part.judgement.feedback for name, part in parts.items() if part.judgement.feedback},
                fold=folds[number] if folds else 0,
            )
        )
    return records


def _failures(failed: Iterable[Judgement]) -> list[str]:
    """One line per metric and status, with the first message; rows skipped for want of texts included."""
    errors: dict[tuple[str, str], list[str]] = {}
    for judgement in failed:
        errors.setdefault((judgement.metric, judgement.status.value), []).append(judgement.error)
    return [
        f"{metric}: {len(messages)} {status}, first: {messages[0]}" for (metric, status), messages in errors.items()
    ]


def _all_notes(trained: Pass, evaluation: Evaluation, given: Iterable[str]) -> list[str]:
    notes, table, single = [*given, *evaluation.notes, *trained.candidates.notes], trained.table, best_single(trained)
    # the first member of a panel bears what a joint request costs: the others cost something where it was of no use
    others = [place for place, metric in enumerate(table.metrics) if isinstance(metric, PanelMember)][1:]
    alone = sum(
        all(table.judgement(row, place).usage.requests for place in others) for row in range(len(table.rows)) if others
    )
    if alone:
        notes.append(f"the panel could not be read on {alone} rows: its criteria were asked one by one")
    notes += trained.fitted.notes
    if single is not None:
        notes.append(f"best single candidate on the training rows: {table.names[single[0]]}")
    return notes


def _all_warnings(
    trained: Pass, evaluation: Evaluation, failed: Sequence[Judgement], first: Iterable[str], unrated: Iterable[str]
) -> list[str]:
    """The warnings of a record: those on the data come `first`, those on `unrated` rows last."""
    candidates, dropped, warnings = trained.candidates, trained.scored.dropped, [*first, *trained.warnings]
    lacking = sum(lack.count for lack in candidates.lacks if lack.family not in FREE)
    local = [one.name for one in trained.scored.metrics if one.name in dropped and one.card.cost == "local"]
    failing, asked = len(dropped) - len(local), candidates.made + lacking
    if 2 * (lacking + failing) > asked:
        warnings.append(
            f"{lacking + failing} of {asked} judges fell away ({lacking} could not be made, {failing} failed too "
            "often): the metric rests on what is left."
        )
    if local:
        warnings.append(f"Of the metrics with weights {len(local)} fell away: {', '.join(local)}.")
    warnings += _doubts(evaluation)
    number = sum(one.status != "skipped" and one.metric not in dropped for one in failed)
    if number:
        warnings.append(f"{number} of the judgements failed; they count as missing, not as low.")
    if evaluation.kind != "train_only":
        warnings += not_beaten({name: apart for name, apart in evaluation.differences.items() if name != FULL})
    if trained.fitted.imputed:
        missing = [f"{name} {count}" for name, count in trained.fitted.imputed.items()]
        warnings.append(f"Missing or infinite training scores, which count as average: {', '.join(missing)}.")
    return [
        *warnings,
        *filter(None, [candidates.not_made]),
        *dropped.values(),
        *evaluation.fallen,
        *(f"Unrated rows: {reason}" for reason in unrated),
    ]


def _doubts(evaluation: Evaluation) -> list[str]:
    """Warnings that the held-out rows do not show enough."""
    test, first = evaluation.test, _first_doubt(evaluation)
    unpredicted = len(evaluation.test_rows) - test.n
    doubts = (
        (bool(first), first),
        (
            unpredicted > 0,
            f"{unpredicted} held-out rows have no prediction and are left out of the metric's figures.",
        ),
        (
            MINIMUM_GROUPS <= test.groups < 10 and math.isfinite(test.ci_low),
            f"Only {test.groups} held-out groups: the interval is rough.",
        ),
    )
    return [text for holds, text in doubts if holds]


def _first_doubt(evaluation: Evaluation) -> str:
    """The gravest reason to doubt the agreement on held-out rows; empty if there is none."""
    test, crossed = evaluation.test, evaluation.kind == "cv"
    fewer = ", or take three folds (--cv 3)" if len(set(evaluation.held_out_folds) - {0}) > 3 else ""
    doubts = (
        (
            evaluation.kind == "train_only",
            "No held-out rows: every figure here comes from the rows that the metric was fitted to, "
            "and says nothing about new ones.",
        ),
        (
            crossed and math.isnan(test.ci_low) and math.isfinite(test.kendall_tau_b),
            f"{test.n} rows of {test.groups} groups are too few for an interval or a p-value of this cross-validation: "
            f"rate more groups, or name a finer group column{fewer}.",
        ),
        (
            not crossed and test.groups < MINIMUM_GROUPS,
            f"{test.groups} held-out {'group is' if test.groups == 1 else 'groups are'} too few for an interval or a "
            "p-value that means anything: cross-validate (--split cv), or name a finer group column.",
        ),
        (
            math.isnan(test.kendall_tau_b),
            "On held-out rows the agreement is undefined: predictions or ratings do not vary there.",
        ),
        (
            not test.p_value <= 0.05,
            f"On held-out rows the agreement with the raters cannot be told from chance ({p_stated(test.p_value)}): "
            "do not use this metric to choose or to optimise.",
        ),
        (
            not (test.ci_low > 0 or test.ci_high < 0),
            "The 95% interval of the held-out tau-b includes 0: more rated groups are needed.",
        ),
        (test.kendall_tau_b < 0, "On held-out rows the metric ranks against the raters: something is upside down."),
    )
    return next((text for holds, text in doubts if holds), "")
