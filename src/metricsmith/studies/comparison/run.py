"""Run every method on one split, with several seeds, and compare their predictions of the same test rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.bank.base import numbers_kept
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.datasets.given import as_table
from metricsmith.datasets.table import Table
from metricsmith.errors import NeedsError, OptionError
from metricsmith.formats import count, money
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.options import sparse_note
from metricsmith.optimizers.passes import stage
from metricsmith.optimizers.spending import budget_lines, spending
from metricsmith.optimizers.splits import RatedRows, twin_note
from metricsmith.programs.asked_scale import asked_note, asked_scale
from metricsmith.records import Usage
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.induction.verdict import few_groups_apart, same_systems_note
from metricsmith.stats.correlation import FloatArray, batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import (
    MINIMUM_GROUPS,
    holm,
    mean_interval,
    repeated_interval,
    repeated_mean,
    repeated_permutation_test,
)
from metricsmith.store import Store
from metricsmith.studies.comparison.methods import (
    DEFAULT_METHODS,
    REFERENCE,
    ComparisonPlan,
    Method,
    Predicted,
    plan_comparison,
)
from metricsmith.version import __version__

__all__ = ["common_rows", "compare", "compare_plan", "run_plan", "plan_text", "with_agreement", "with_difference"]

MOST_MISSING = 0.5  # share of test rows that a method may lack and still decide on which rows all are compared


def compare(
    data: Any,
    optimizer: AutoMetrics | None = None,
    *,
    methods: Sequence[str] | Mapping[str, Method] = DEFAULT_METHODS,
    seeds: int = 5,
    guideline: str = "",
    fraction: float = 0.3,
    validation: float = 0.2,
    dimensions: int = 3,
    finetuned: FinetunedMetric | None = None,
    test: Table | None = None,
    **reading: Any,
) -> Comparison:
    """Compare AutoMetrics with the baselines of its paper (section 4, Table 2).

    All methods and seeds share one split by group, which the optimizer's seed decides: training and validation rows,
    of which a method may learn, and test rows, whose ratings none of them sees. Scores of existing metrics are computed
    once for all. The figures are defined at `metricsmith.report.comparison.record.MethodResult`.

    Parameters
    ----------
    data : Table, or any source of `read_table`
        Read as by `induce`; score columns count as existing metrics.
    optimizer : AutoMetrics, optional
        By default ``AutoMetrics()``. All methods use its model, bank, store, concurrency, allowed failures and seed,
        and share its budget.
    methods : sequence of str or mapping of str to Method
        Names out of `metricsmith.studies.comparison.methods.METHODS`, or methods of your own by name. One that lacks
        what it needs (such as a language model) is listed with the reason and not run.
    seeds : int
        Repetitions of each method, at least 1. Repeated model calls need a temperature above .15.
    guideline : str
        The guideline of the raters, word for word; without it the task's description stands in.
    fraction, validation : float
        Shares of the rated rows to test and to validate on, by group. With `test` the first is not used, and the second
        is divided by .7: of the paper's .2 the learning rows get their 2/7.
    dimensions : int
        Number of dimensions that DnA-Eval judges by.
    finetuned : FinetunedMetric, optional
        The untrained metric of the methods ``finetuned`` and ``finetuned_paper``, whose task and seed are set here.
    test : Table, optional
        The test rows, where a data set has its own; `data` is then divided into training and validation rows alone,
        and without rows that share a group or a text with one of these.
    **reading
        Options of `read_table` for data that are not read yet.

    Returns
    -------
    Comparison

    Raises
    ------
    OptionError
        If an option has no meaning, or a model that is asked repeatedly would repeat itself.
    DataError
        If there are fewer than three groups, or the training ratings are constant.
    NeedsError
        If every method lacks what it needs.
    ModelFailure
        If the model fails more often than allowed, or the budget runs out; with a store, no judgement is lost.
    """
    table = as_table(data, reading, compare)
    plan = plan_comparison(
        table, optimizer, methods, seeds, fraction, validation, guideline, dimensions, finetuned, test
    )
    return run_plan(plan, table, test)


@numbers_kept()  # the same rows with every seed
def run_plan(plan: ComparisonPlan, table: Table, test: Table | None = None) -> Comparison:
    """Run what was planned of a table and its test rows; as `compare`."""
    started, options, estimated = time.perf_counter(), plan.data.options, plan.estimated
    if not plan.available:
        raise NeedsError("no method can be run: " + "; ".join(f"{key} {plan.lacking[key]}" for key in plan.methods))
    if options.store is not None and not isinstance(options.store, Store):
        Store(options.store).close()  # one that cannot be used is found out before anything is paid for
    limits: dict[str, Any] = {"expected": estimated, "store": options.store, "model": options.model}
    with spending(options.budget, options.concurrency, **limits):
        predicted = {key: _predictions(plan, key) for key in plan.available}
    results = _results(plan, predicted)
    return Comparison(
        task=plan.data.task,
        methods=results,
        reference=REFERENCE if REFERENCE in predicted else "",
        seeds=plan.seeds,
        rows=_counts(plan, table),
        model=plan.model,
        signature=_signature(plan, table, test),
        usage=replace(sum((result.usage for result in results), Usage()), seconds=time.perf_counter() - started),
        estimated=estimated,
        notes=(*table.notes, *_notes(plan)),
        warnings=tuple(_warnings(plan, results)),
        raters=table.rater_ceiling(),
    )


def compare_plan(
    table: Table,
    optimizer: AutoMetrics | None = None,
    *,
    methods: Sequence[str] | Mapping[str, Method] = DEFAULT_METHODS,
    seeds: int = 5,
    guideline: str = "",
    fraction: float = 0.3,
    validation: float = 0.2,
    dimensions: int = 3,
    finetuned: FinetunedMetric | None = None,
    test: Table | None = None,
) -> str:
    """Say what `compare` would do with the same arguments and the most that it would ask; asks nothing."""
    plan = plan_comparison(
        table, optimizer, methods, seeds, fraction, validation, guideline, dimensions, finetuned, test
    )
    return plan_text(plan, table)


def plan_text(plan: ComparisonPlan, table: Table) -> str:
    """The text of a plan that is made already."""
    counts = _counts(plan, table)
    lines = [
        f"rows: {counts['train']} train, {counts['validation']} validation, {counts['test']} test in "
        f"{counts['test_groups']} groups; {plan.seeds} seeds"
    ]
    for key, method in plan.methods.items():
        lacking, bound = plan.lacking[key], plan.bounds.get(key, Usage())
        asks = f"not run: it {lacking}" if lacking else f"at most {count(bound.requests, 'request')}"
        lines.append(f"{method.label}: {asks}")
    total = plan.estimated
    cost = "price unknown" if total.cost is None else f"about {money(total.cost)}"
    return "\n".join(
        [
            *lines,
            f"requests: at most {count(total.requests)}, prompt tokens: {count(total.prompt_tokens)}, completion "
            f"tokens: {count(total.completion_tokens)} ({cost}; tokens and price are estimates, retries and repairs "
            "are not counted)",
            *(f"budget: {line}" for line in budget_lines(plan.data.options.budget, total)),
            "nothing was sent and nothing was written",
        ]
    )


def _predictions(plan: ComparisonPlan, key: str) -> list[Predicted]:
    """The predictions of one method with each seed; the time is the method's own."""
    method, rows, results = plan.methods[key], len(plan.data.test), list[Predicted]()
    with stage(method.label, plan.data.options.progress):
        for seed in range(plan.seeds):
            if results and not method.seeded:
                results.append(replace(results[0], judgements={}, usage=Usage()))
                continue
            started = time.perf_counter()
            with replace(plan.data.options, repetition=seed).asking():
                result = method.predict(plan.data, seed)
            if np.shape(result.values) != (rows,):
                raise OptionError(
                    f"the method {method.label!r} returned values of shape {np.shape(result.values)} for {rows} test "
                    "rows; it must return one number for each, NaN where there is none"
                )
            results.append(replace(result, usage=replace(result.usage, seconds=time.perf_counter() - started)))
    return results


def _results(plan: ComparisonPlan, predicted: Mapping[str, Sequence[Predicted]]) -> tuple[MethodResult, ...]:
    """One result for each method, Holm's correction last, for it needs all p-values."""
    test, seed = plan.data.test, plan.data.options.seed
    values = common_rows({key: np.array([one.values for one in seeds]) for key, seeds in predicted.items()})
    results = []
    for key, method in plan.methods.items():
        lacking = plan.lacking[key]
        asked = plan.bounds.get(key, Usage()).requests or "language model" in lacking
        asks = bool(asked or any(one.judgements.get("requested") for one in predicted.get(key, ())))  # or from a store
        result = MethodResult(key, method.label, asks, lacking)
        if not lacking:
            result = with_agreement(result, predicted[key], values[key], test)
            if REFERENCE in values and key != REFERENCE:
                result = with_difference(result, values[REFERENCE], values[key], test, seed)
        results.append(result)
    adjusted = holm([result.p_value for result in results])
    return tuple(replace(result, p_adjusted=float(p)) for result, p in zip(results, adjusted, strict=True))


def common_rows(predicted: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Predictions of shape (s, n) by method, on the rows that all methods predict in every seed; NaN elsewhere.

    A method that lacks more than half of the rows takes none from the others: it has those of its own that are common.
    """
    missing = {key: np.isnan(values).any(axis=0) for key, values in predicted.items()}
    narrowing = [lack for lack in missing.values() if lack.mean() <= MOST_MISSING]
    nowhere = np.any(narrowing, axis=0) if narrowing else np.array(False)
    return {key: np.where(nowhere | missing[key], np.nan, values) for key, values in predicted.items()}


def with_agreement(
    result: MethodResult, predicted: Sequence[Predicted], values: FloatArray, test: RatedRows
) -> MethodResult:
    """The result with the method's agreement with the raters, over seeds and rows.

    Parameters
    ----------
    result : MethodResult
    predicted : sequence of Predicted, length s
        One for each seed.
    values : float array, shape (s, n)
        The predictions of `common_rows`.
    test : RatedRows
        n rows.
    """
    taus = [kendall_tau_b(prediction, test.ratings) for prediction in values]
    present = ~np.isnan(values).any(axis=0)
    over_rows, over_both = (
        repeated_interval(batch_kendall_tau_b, values, test.ratings, test.groups, between=between, batched=True)
        for between in (False, True)
    )
    counts: Counter[str] = Counter()
    for one in predicted:
        counts.update(one.judgements)
    return replace(
        result,
        taus=tuple(taus),
        tau=repeated_mean(kendall_tau_b, values, test.ratings),
        n=int(present.sum()),
        groups=len({test.groups[row] for row in np.flatnonzero(present)}),
        over_seeds=mean_interval(taus, bounds=(-1.0, 1.0)),
        over_rows=over_rows,
        over_both=over_both,
        judgements=dict(counts),
        usage=sum((one.usage for one in predicted), Usage()),
        remarks=tuple(_remarks(predicted, taus, int(present.sum()))),
    )


def _remarks(predicted: Sequence[Predicted], taus: Sequence[float], shared: int) -> list[str]:
    remarks = list(dict.fromkeys(one.remark for one in predicted if one.remark))
    if len(remarks) > 1:
        remarks = [f"repetition {number}: {one.remark}" for number, one in enumerate(predicted, 1)]
    values = np.array([one.values for one in predicted])
    undefined = int(np.isnan(taus).sum())
    if undefined:
        constant = sum(np.unique(row[~np.isnan(row)]).size < 2 for row in values)
        why = f"the predictions are constant in {constant}" if constant else "too few rows have a prediction"
        remarks.append(f"tau-b is undefined in {undefined} of {len(taus)} seeds, which are left out: {why}")
    n, missing = values.shape[1], int(np.isnan(values).any(axis=0).sum())
    if missing:
        remarks.append(f"{missing} of {n} test rows lack a prediction in some seed")
    if shared < n - missing:
        remarks.append(f"measured on {shared} of {n} test rows: on the others another method has no prediction")
    return remarks


def with_difference(
    result: MethodResult, reference: FloatArray, values: FloatArray, test: RatedRows, seed: int
) -> MethodResult:
    """The result with the lead of the reference method, on the rows that have every prediction of both."""
    arguments = (reference, values, test.ratings, test.groups)
    found = repeated_permutation_test(batch_kendall_tau_b, *arguments, seed=seed, batched=True)
    interval = repeated_interval(
        batch_kendall_tau_b, reference, test.ratings, test.groups, against=values, batched=True
    )
    return replace(result, difference=found.observed, difference_interval=interval, p_value=found.p_value)


def _counts(plan: ComparisonPlan, table: Table) -> dict[str, int]:
    split = plan.data.split
    return {
        "train": len(split.train),
        "validation": len(split.validation),
        "test": len(split.test),
        "test_groups": len(set(split.test.groups)),
        "unrated": int(np.isnan(table.ratings).sum()),
    }


def _notes(plan: ComparisonPlan) -> list[str]:
    data, available = plan.data, plan.available
    notes = ["scores of existing metrics are computed once; the first method that needs them bears their time"]
    notes += filter(None, [twin_note([(data.learned.rows, data.test.rows)]), same_systems_note(data.test.rows)])
    if REFERENCE in available and len(available) > 1:
        notes += filter(None, [few_groups_apart(len(set(data.test.groups)))])
    if "guideline_judge" in available and not data.guideline.strip():
        notes.append("no guideline was given: the task's description stands in for it")
    if "guideline_judge" in available and asked_scale(data.task.scale).points:
        notes.append(asked_note(data.task.target, data.task.scale, data.learned.ratings))
    if REFERENCE in available:
        notes += [f"AutoMetrics: {note}" for note in data.options.chosen_sources(data.learned).notes]
    return [*notes, *(f"AutoMetrics: {note}" for note in sparse_note(data.sparse))]


def _warnings(plan: ComparisonPlan, results: Sequence[MethodResult]) -> list[str]:
    warnings, test = [*plan.data.warnings], plan.data.test
    groups = len(set(test.groups))
    if groups < 2 * MINIMUM_GROUPS:
        what = "too few for a test that could find anything" if groups < 6 else "few: intervals and tests are rough"
        warnings.append(f"the {len(test)} test rows form {groups} groups, {what}")
    for result in results:
        if result.failed:
            asked = result.judgements["requested"]
            warnings.append(
                f"{result.label}: {result.failed} of {asked} judgements failed; they count as missing, not as low"
            )
    return warnings


def _signature(plan: ComparisonPlan, table: Table, test: Table | None) -> str:
    """The signature line: everything on which the numbers depend."""
    task, options = plan.data.task, plan.data.options
    sampling: Callable[[str], object] = (getattr(options.model, "kwargs", None) or {}).get
    temperature = sampling("temperature")
    model = f"model {plan.model}, temperature {'not set' if temperature is None else temperature}"
    counts = _counts(plan, table)
    people = f", {table.people}" if table.people is not None else ""
    apart = f", tested on {test.source}" if test is not None else ""
    return " | ".join(
        [
            f"metricsmith {__version__}",
            f"data {table.source}{apart}, columns {table.columns}, scale {task.scale}{people}",
            f"{counts['train']}/{counts['validation']}/{counts['test']} train/validation/test rows by group",
            f"methods {', '.join(plan.available)}",
            f"{options.fit.label}, bank {options.bank}, k {options.k}{', panel' if options.panel else ''}",
            model if plan.model else "no model",
            f"seed {options.seed}, {plan.seeds} repetitions",
        ]
    )
