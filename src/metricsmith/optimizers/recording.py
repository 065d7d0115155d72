"""From inductions to the record that the reports show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
import numpy as np

from metricsmith.optimizers.evaluation import METRIC, best_single, predictions
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.induction import Induction
from metricsmith.optimizers.rated import Rated
from metricsmith.programs.induced import Explanation
from metricsmith.programs.judges.panel import PanelMember
from metricsmith.programs.judges.panel_tokens import tokens_per_row
from metricsmith.records import Agreement, Difference, Judgement, Usage
from metricsmith.report.record import Component, LearningPoint, PanelTokens, RowRecord, RunRecord
from metricsmith.report.rivals import not_beaten
from metricsmith.report.systems import NewSystems
from metricsmith.scoring import tally
from metricsmith.stats.agreement import agreement
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import MINIMUM_GROUPS

__all__ = ["Evaluation", "missing_judges", "record_run"]

NOTHING = Usage()


@dataclass(frozen=True)
class Evaluation:
    """What was found out on rows that the fit has not seen, with the judgements and the cost of the folds.

    `held_out_predictions` are those of the training rows, each made while its row was held out
    (cross-validation), and `held_out_folds` the numbers of these folds, from 1; empty otherwise. `own_taus` are the
    tau-b of the components alone, within folds. `differences` are how far the metric's tau-b lies above that of each
    baseline. `fallen` says of the folds which judges they had to do without, `notes` what else is worth knowing of
    them.
    """

    kind: str
    test: Agreement
    baselines: Mapping[str, Agreement]
    test_rows: Rated
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


def record_run(
    induction: Induction,
    evaluation: Evaluation,
    unrated: Sequence[dspy.Example],
    unrated_explanations: Sequence[Explanation],
    *,
    signature: str,
    estimated: Usage,
    seconds: float,
    seed: int,
    notes: Sequence[str] = (),
    first: Sequence[str] = (),
    unrated_usage: Usage = NOTHING,
    unrated_fallen: Iterable[str] = (),
) -> RunRecord:
    """Put the record together; `first` are its first warnings."""
    train = induction.train
    explanations = induction.metric.combine(induction.components)
    further = [
        *evaluation.judgements,
        *(part.judgement for explanation in unrated_explanations for part in explanation.parts),
    ]
    more = tally(further)
    failed = [*induction.scored.failed(), *(judgement for judgement in further if not judgement.ok)]
    train_block = agreement(
        predictions(induction, induction.train_values, train.rows)[METRIC],
        train.ratings,
        train.groups,
        seed=seed,
    )
    data = [
        *_rows("train", train.rows, explanations[: len(train)], induction, evaluation),
        *_rows("test", evaluation.test_rows.rows, explanations[len(train) :], induction),
        *_rows("unrated", unrated, unrated_explanations, induction),
    ]
    raws = [row.prediction for row in data if row.prediction is not None]
    scale = induction.metric.task.scale
    usage = induction.candidates.usage + induction.scored.usage + evaluation.usage + unrated_usage
    return RunRecord(
        task=induction.metric.task,
        signature=signature,
        evaluation=evaluation.kind,
        rows={
            "rated": len(train) + len(evaluation.test_rows),
            "train": len(train),
            "test": evaluation.test.n,
            "unrated": len(unrated),
        },
        components=_components(induction, evaluation),
        train=train_block,
        test=evaluation.test,
        baselines=evaluation.baselines,
        judgements={status: count + more[status] for status, count in induction.scored.counts().items()},
        usage=_usage(usage, estimated, seconds),
        warnings=(
            *first,
            *induction.warnings,
            *_majority(induction),
            *_warnings(induction, evaluation, failed),
            *missing_judges(induction),
            *evaluation.fallen,
            *(f"Unrated rows: {reason}" for reason in unrated_fallen),
        ),
        notes=(
            *notes,
            *evaluation.notes,
            *induction.candidates.notes,
            *_panel_note(induction),
            *induction.fitted.notes,
            *_single_note(induction),
        ),
        data=tuple(data),
        combiner=induction.fitted.sentence,
        fidelity=induction.fitted.fidelity,
        unabridged=FULL if FULL in evaluation.baselines and induction.fitted.abridges else "",
        clipped_share=sum(not scale.contains(raw) for raw in raws) / len(raws) if raws else 0.0,
        learning=evaluation.learning,
        failures=tuple(_failures(failed)),
        panel=_panel(induction),
        differences=evaluation.differences,
        new_systems=evaluation.new_systems,
    )


def missing_judges(induction: Induction) -> list[str]:
    """The judges that were asked for and take no part: one line on those never made, one for each that was dropped."""
    not_made = induction.candidates.not_made
    return [*([not_made] if not_made else []), *induction.scored.dropped.values()]


def _majority(induction: Induction) -> list[str]:
    """A warning where more than half of the judges that were asked for fell away."""
    candidates, dropped = induction.candidates, len(induction.scored.dropped)
    lacking = sum(lack.count for lack in candidates.lacks)
    asked = candidates.made + lacking
    if 2 * (lacking + dropped) <= asked:
        return []
    return [
        f"{lacking + dropped} of {asked} judges fell away ({lacking} could not be made, {dropped} failed too often): "
        "the metric rests on what is left."
    ]


def _panel(induction: Induction) -> PanelTokens | None:
    """Prompt tokens of the panel and of its judges one by one, over the rows that they read."""
    panel = induction.candidates.panel
    return None if panel is None else tokens_per_row(panel, induction.table.rows)


def _panel_note(induction: Induction) -> list[str]:
    """On how many rows the panel was of no use; the first member asked for bears what a joint request costs."""
    table = induction.table
    others = [place for place, metric in enumerate(table.metrics) if isinstance(metric, PanelMember)][1:]
    alone = sum(
        all(table.judgement(row, place).usage.requests for place in others) for row in range(len(table.rows)) if others
    )
    return [f"the panel could not be read on {alone} rows: its criteria were asked one by one"] if alone else []


def _single_note(induction: Induction) -> list[str]:
    single = best_single(induction)
    return [] if single is None else [f"best single candidate on the training rows: {induction.table.names[single[0]]}"]


def _usage(usage: Usage, estimated: Usage, seconds: float) -> dict[str, Any]:
    return {
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "seconds": round(seconds, 3),
        "estimated": {
            "requests": estimated.requests,
            "prompt_tokens": estimated.prompt_tokens,
            "completion_tokens": estimated.completion_tokens,
            "cost": estimated.cost,
        },
    }


def _components(induction: Induction, evaluation: Evaluation) -> tuple[Component, ...]:
    """Components by falling absolute weight, each with its own correlation on either side."""
    values, cut = induction.components.run(), len(induction.train)
    ratings, test_ratings = induction.train.ratings, evaluation.test_rows.ratings
    components = [
        Component(
            name=metric.name,
            kind=metric.card.kind,
            weight=float(weight),
            direction="+" if weight >= 0 else "-",
            tau_train=kendall_tau_b(induction.train_values[:, induction.fitted.positions[j]], ratings),
            tau_test=kendall_tau_b(values[cut:, j], test_ratings)
            if len(test_ratings)
            else evaluation.own_taus.get(metric.name, math.nan),
            missing=int(np.isnan(values[:, j]).sum()),
            card=metric.card,
            selected_share=evaluation.shares.get(metric.name, math.nan),
        )
        for j, (metric, weight) in enumerate(
            zip(induction.components.metrics, induction.fitted.small.weights, strict=True)
        )
    ]
    return tuple(sorted(components, key=lambda component: -abs(component.weight)))


def _rows(
    split: str,
    rows: Sequence[dspy.Example],
    explanations: Sequence[Explanation],
    induction: Induction,
    evaluation: Evaluation | None = None,
) -> list[RowRecord]:
    target = induction.metric.task.target
    held_out, folds = (evaluation.held_out_predictions, evaluation.held_out_folds) if evaluation else ((), ())
    records = []
    for number, (row, explanation) in enumerate(zip(rows, explanations, strict=True)):
        row_id = str(row.get("id", f"{split} {number}"))
        records.append(
            RowRecord(
                id=row_id,
                group=str(row.get("group", "")),
                split=split,
                rating=None if split == "unrated" else float(row[target]),
                prediction=_number(held_out[number]) if held_out else explanation.prediction.raw,
                output=str(row.get("output") or ""),
                input=str(row.get("input") or ""),
                values={part.name: part.judgement.raw for part in explanation.parts},
                contributions={} if held_out else _contributions(explanation),
                feedback={part.name: part.judgement.feedback for part in explanation.parts if part.judgement.feedback},
                fold=folds[number] if folds else 0,
            )
        )
    return records


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _contributions(explanation: Explanation) -> dict[str, float]:
    return {part.name: part.contribution for part in explanation.parts if part.judgement.ok}


def _failures(failed: Iterable[Judgement]) -> list[str]:
    """One line per metric and status, with the first message; rows skipped for want of texts included."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for judgement in failed:
        key = (judgement.metric, judgement.status.value)
        counts[key] += 1
        first.setdefault(key, judgement.error)
    return [f"{metric}: {count} {status}, first: {first[metric, status]}" for (metric, status), count in counts.items()]


def _fewer_folds(evaluation: Evaluation) -> str:
    return ", or take three folds (--cv 3)" if len(set(evaluation.held_out_folds) - {0}) > 3 else ""


def _warnings(induction: Induction, evaluation: Evaluation, failures: Sequence[Judgement]) -> list[str]:
    warnings = []
    test = evaluation.test
    if evaluation.kind == "train_only":
        warnings.append(
            "No held-out rows: every figure here comes from the rows that the metric was fitted to, "
            "and says nothing about new ones."
        )
    elif evaluation.kind == "cv" and math.isnan(test.ci_low) and math.isfinite(test.kendall_tau_b):
        warnings.append(
            f"{test.n} rows of {test.groups} groups are too few for an interval or a p-value of this cross-validation: "
            f"rate more groups, or name a finer group column{_fewer_folds(evaluation)}."
        )
    elif evaluation.kind != "cv" and test.groups < MINIMUM_GROUPS:
        warnings.append(
            f"{test.groups} held-out {'group is' if test.groups == 1 else 'groups are'} too few for an interval or a "
            "p-value that means anything: cross-validate (--split cv), or name a finer group column."
        )
    elif math.isnan(test.kendall_tau_b):
        warnings.append("On held-out rows the agreement is undefined: predictions or ratings do not vary there.")
    elif not test.p_value <= 0.05:
        warnings.append(
            f"On held-out rows the agreement with the raters cannot be told from chance (p = {test.p_value:.2f}): "
            "do not use this metric to choose or to optimise."
        )
    elif not (test.ci_low > 0 or test.ci_high < 0):
        warnings.append("The 95% interval of the held-out tau-b includes 0: more rated groups are needed.")
    elif test.kendall_tau_b < 0:
        warnings.append("On held-out rows the metric ranks against the raters: something is upside down.")
    unpredicted = len(evaluation.test_rows) - test.n
    if unpredicted > 0:
        warnings.append(f"{unpredicted} held-out rows have no prediction and are left out of the metric's figures.")
    if MINIMUM_GROUPS <= test.groups < 10 and math.isfinite(test.ci_low):
        warnings.append(f"Only {test.groups} held-out groups: the interval is rough.")
    dropped = induction.scored.dropped
    failed = sum(one.status != "skipped" and one.metric not in dropped for one in failures)
    if failed:
        warnings.append(f"{failed} of the judgements failed; they count as missing, not as low.")
    if evaluation.kind != "train_only":
        warnings += not_beaten({name: apart for name, apart in evaluation.differences.items() if name != FULL})
    if induction.fitted.imputed:
        missing = [f"{name} {count}" for name, count in induction.fitted.imputed.items()]
        warnings.append(f"Missing or infinite training scores, which count as average: {', '.join(missing)}.")
    return warnings
