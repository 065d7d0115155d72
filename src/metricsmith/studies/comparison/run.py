"""Run every method on one split, with several seeds, and compare what they make of the same test rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.remembered import numbers_kept
from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError, nearest
from metricsmith.model_calls.models import check_sampling
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.estimate import times
from metricsmith.optimizers.induce import configure
from metricsmith.optimizers.options import Options, sparse_note
from metricsmith.optimizers.passes import stage
from metricsmith.optimizers.rated import twin_note
from metricsmith.optimizers.spending import budget_lines, spending
from metricsmith.programs.asked_scale import asked_note, asked_scale
from metricsmith.records import Usage
from metricsmith.report.comparison.record import Comparison, MethodResult
from metricsmith.report.rivals import few_groups_apart
from metricsmith.report.systems import same_systems_note
from metricsmith.stats.resampling import MINIMUM_GROUPS, holm
from metricsmith.store import Store
from metricsmith.studies.comparison.figures import against, common_rows, measured
from metricsmith.studies.comparison.methods import DEFAULT_METHODS, METHODS, REFERENCE, Method, Predicted
from metricsmith.studies.comparison.setting import Setting, prepare
from metricsmith.version import __version__

__all__ = ["compare", "compare_plan"]

FloatArray = NDArray[np.float64]
Methods = Sequence[str] | Mapping[str, Method]


@numbers_kept()  # the same rows with every seed
def compare(
    table: Table,
    optimizer: AutoMetrics | None = None,
    *,
    methods: Methods = DEFAULT_METHODS,
    seeds: int = 5,
    guideline: str = "",
    fraction: float = 0.3,
    validation: float = 0.2,
    dimensions: int = 3,
) -> Comparison:
    """Compare AutoMetrics with the baselines of its paper (section 4, Table 2).

    All methods and seeds share one split by group, which the optimizer's seed decides: training and validation rows,
    of which a method may learn, and test rows, whose ratings none of them sees. Scores of existing metrics are computed
    once for all. The figures are defined at `metricsmith.report.comparison.record.MethodResult`.

    Parameters
    ----------
    table : Table
        Read by `read_table`; its candidate columns count as existing metrics.
    optimizer : AutoMetrics, optional
        By default ``AutoMetrics()``. All methods use its model, bank, store, concurrency, gate and seed, and share its
        budget.
    methods : sequence of str or mapping of str to Method
        Names out of `metricsmith.studies.comparison.methods.METHODS`, or methods of your own by name. One that lacks
        what it needs (such as a language model) is listed with the reason and not run.
    seeds : int
        How often each method is repeated, at least 1. Repeated model calls need a temperature above .15.
    guideline : str
        What the raters were told, word for word; without it the task's description stands in.
    fraction, validation : float
        Shares of the rated rows to test and to validate on, by group.
    dimensions : int
        How many dimensions DnA-Eval judges by.

    Returns
    -------
    Comparison

    Raises
    ------
    OptionError
        If an option has no meaning, or a model that is asked repeatedly would repeat itself.
    DataError
        If there are fewer than three groups, or the training ratings are constant.
    ModelFailure
        If the model fails beyond the gate, or the budget runs out; with a store, nothing that was judged is lost.
    """
    started = time.perf_counter()
    bench = _bench(table, optimizer, methods, seeds, guideline, fraction, validation, dimensions)
    if bench.options.store is not None and not isinstance(bench.options.store, Store):
        Store(bench.options.store).close()  # one that cannot be used is found out before anything is paid for
    options, estimated = bench.options, bench.estimated
    limits: dict[str, Any] = {"expected": estimated, "store": options.store, "model": options.model}
    with spending(options.budget, options.concurrency, **limits):
        predicted = {key: bench.predictions(key) for key in bench.available}
    lines = _lines(bench, predicted)
    usage = sum((line.usage for line in lines), Usage())
    return Comparison(
        task=bench.setting.task,
        methods=lines,
        reference=REFERENCE if REFERENCE in predicted else "",
        seeds=seeds,
        rows=_counts(bench.setting, table),
        model=bench.model,
        signature=_signature(bench, table),
        usage=replace(usage, seconds=time.perf_counter() - started),
        estimated=estimated,
        notes=(*table.notes, *_notes(bench)),
        warnings=tuple(_warnings(bench.setting, lines)),
        raters=table.rater_ceiling(),
    )


def compare_plan(
    table: Table,
    optimizer: AutoMetrics | None = None,
    *,
    methods: Methods = DEFAULT_METHODS,
    seeds: int = 5,
    guideline: str = "",
    fraction: float = 0.3,
    validation: float = 0.2,
    dimensions: int = 3,
) -> str:
    """Say what `compare` would do with the same arguments and what it would ask at most; asks nothing."""
    bench = _bench(table, optimizer, methods, seeds, guideline, fraction, validation, dimensions)
    counts = _counts(bench.setting, table)
    lines = [
        f"rows: {counts['train']} train, {counts['validation']} validation, {counts['test']} test in "
        f"{counts['test_groups']} groups; {seeds} seeds"
    ]
    for key, method in bench.methods.items():
        lacking, bound = bench.lacking[key], bench.bounds.get(key, Usage())
        lines.append(f"{method.label}: {f'not run: it {lacking}' if lacking else f'at most {bound.requests} requests'}")
    total = bench.estimated
    cost = "unknown price" if total.cost is None else f"about ${total.cost:.2f}"
    return "\n".join(
        [
            *lines,
            f"requests: at most {total.requests}, prompt tokens: {total.prompt_tokens}, completion tokens: "
            f"{total.completion_tokens} ({cost}; tokens and price are estimates, retries and repairs are not counted)",
            *(f"budget: {line}" for line in budget_lines(bench.options.budget, total)),
            "nothing was sent and nothing was written",
        ]
    )


@dataclass(frozen=True)
class _Bench:
    """The setting, the methods, what each of them lacks, and the most that each of the others asks."""

    setting: Setting
    methods: Mapping[str, Method]
    seeds: int
    lacking: Mapping[str, str]
    bounds: Mapping[str, Usage]

    @property
    def options(self) -> Options:
        """Those of the setting."""
        return self.setting.options

    @property
    def available(self) -> list[str]:
        """Keys of the methods that can be run."""
        return [key for key in self.methods if not self.lacking[key]]

    @property
    def model(self) -> str:
        """The model's name; empty without one."""
        return str(getattr(self.options.model, "model", "") or "")

    @property
    def estimated(self) -> Usage:
        """The bounds added up; the price is unknown where one is."""
        total = sum(self.bounds.values(), Usage(cost=0.0))
        unknown = any(bound.requests and bound.cost is None for bound in self.bounds.values())
        return replace(total, cost=None) if unknown else total

    def predictions(self, key: str) -> list[Predicted]:
        """What one method predicts with each seed; the time is the method's own."""
        method, results = self.methods[key], list[Predicted]()
        with stage(method.label, self.options.progress):
            for seed in range(self.seeds):
                if results and not method.seeded:
                    results.append(replace(results[0], judgements={}, usage=Usage()))
                    continue
                started = time.perf_counter()
                with replace(self.options, repetition=seed).asking():
                    result = method.predict(self.setting, seed)
                _check_shape(method, result, len(self.setting.test))
                usage = replace(result.usage, seconds=time.perf_counter() - started)
                results.append(replace(result, usage=usage))
        return results


def _bench(
    table: Table,
    optimizer: AutoMetrics | None,
    methods: Methods,
    seeds: int,
    guideline: str,
    fraction: float,
    validation: float,
    dimensions: int,
) -> _Bench:
    """Everything that is decided before anything is asked."""
    if not isinstance(table, Table):
        raise OptionError(f"compare takes a Table, not a {type(table).__name__}: read one with read_table(...)")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise OptionError(f"seeds={seeds!r} must be a whole number from 1; the paper takes 5")
    chosen = _chosen(methods)
    options, task = configure(table, optimizer or AutoMetrics())
    options = replace(options, per_judge=False)  # a comparison of whole methods: nobody is left out of one of them
    setting = prepare(
        table, task, options, fraction=fraction, validation=validation, guideline=guideline, dimensions=dimensions
    )
    with setting.options.asking():
        lacking = {key: method.lacks(setting) for key, method in chosen.items()}
        bounds = {key: _bound(method, setting, seeds) for key, method in chosen.items() if not lacking[key]}
    if seeds > 1 and any(bound.requests for bound in bounds.values()):
        check_sampling(setting.options.model, seeds)
    return _Bench(setting, chosen, seeds, lacking, bounds)


def _chosen(methods: Methods) -> Mapping[str, Method]:
    if isinstance(methods, Mapping):
        chosen: Mapping[str, Method] = dict(methods)
    elif isinstance(methods, str):
        raise OptionError(f"methods must be a list, not one text: write [{methods!r}]")
    else:
        for name in methods:
            if name not in METHODS:
                raise OptionError(f"no method {name!r}{nearest(name, METHODS)}; there are {', '.join(METHODS)}")
        chosen = {name: METHODS[name] for name in methods}
    if not chosen:
        raise OptionError(f"there is no method to run; choose among {', '.join(METHODS)}")
    return chosen


def _bound(method: Method, setting: Setting, seeds: int) -> Usage:
    """The most that all repetitions ask; a store may hold some of them."""
    if setting.options.store is not None:
        every = [replace(setting.options, repetition=seed) for seed in range(seeds)]
        return sum((method.requests(replace(setting, options=options)) for options in every), Usage())
    return times(method.requests(setting), seeds)


def _check_shape(method: Method, result: Predicted, n: int) -> None:
    if np.shape(result.values) != (n,):
        raise OptionError(
            f"the method {method.label!r} returned values of shape {np.shape(result.values)} for {n} test rows; it "
            "must return one number for each, NaN where there is none"
        )


def _lines(bench: _Bench, predicted: Mapping[str, Sequence[Predicted]]) -> tuple[MethodResult, ...]:
    """One line for each method, Holm's correction last, for it needs all p-values."""
    test, seed = bench.setting.test, bench.options.seed
    values = common_rows({key: np.array([result.values for result in results]) for key, results in predicted.items()})
    lines = []
    for key, method in bench.methods.items():
        asked = bench.bounds.get(key, Usage()).requests or "language model" in bench.lacking[key]
        asks = bool(asked or any(one.judgements.get("requested") for one in predicted.get(key, ())))  # or from a store
        if bench.lacking[key]:
            lines.append(MethodResult(key, method.label, asks, bench.lacking[key]))
            continue
        line = measured(MethodResult(key, method.label, asks), predicted[key], values[key], test)
        if REFERENCE in values and key != REFERENCE:
            line = against(line, values[REFERENCE], values[key], test, seed)
        lines.append(line)
    adjusted = holm([line.p_value for line in lines])
    return tuple(replace(line, p_adjusted=float(p)) for line, p in zip(lines, adjusted, strict=True))


def _counts(setting: Setting, table: Table) -> dict[str, int]:
    parts = setting.parts
    return {
        "train": len(parts.train),
        "validation": len(parts.validation),
        "test": len(parts.test),
        "test_groups": len(set(parts.test.groups)),
        "unrated": int(np.isnan(table.ratings).sum()),
    }


def _notes(bench: _Bench) -> list[str]:
    notes = ["scores of existing metrics are computed once; the first method that needs them bears their time"]
    learned, test = bench.setting.learned.rows, bench.setting.test.rows
    notes += filter(None, [twin_note([(learned, test)]), same_systems_note(test)])
    if REFERENCE in bench.available and len(bench.available) > 1:
        notes += filter(None, [few_groups_apart(len(set(bench.setting.test.groups)))])
    if "guideline_judge" in bench.available and not bench.setting.guideline.strip():
        notes.append("no guideline was given: the task's description stands in for it")
    task = bench.setting.task
    if "guideline_judge" in bench.available and asked_scale(task.scale).points:
        notes.append(asked_note(task.target, task.scale, bench.setting.learned.ratings))
    if REFERENCE in bench.available:
        notes += [f"AutoMetrics: {note}" for note in bench.options.chosen_sources(bench.setting.learned).notes]
    return [*notes, *(f"AutoMetrics: {note}" for note in sparse_note(bench.setting.sparse))]


def _warnings(setting: Setting, lines: Sequence[MethodResult]) -> list[str]:
    warnings = [*setting.warnings]
    groups = len(set(setting.test.groups))
    if groups < 2 * MINIMUM_GROUPS:
        what = "too few for a test that could find anything" if groups < 6 else "few: intervals and tests are rough"
        warnings.append(f"the {len(setting.test)} test rows form {groups} groups, {what}")
    warnings += [
        f"{line.label}: {line.failed} of {line.judgements['requested']} judgements failed; they count as missing, not "
        "as low"
        for line in lines
        if line.failed
    ]
    return warnings


def _signature(bench: _Bench, table: Table) -> str:
    """The line that names everything on which the numbers depend."""
    options = bench.options
    sampling: Callable[[str], object] = (getattr(options.model, "kwargs", None) or {}).get
    temperature = sampling("temperature")
    model = f"model {bench.model}, temperature {'not set' if temperature is None else temperature}"
    counts = _counts(bench.setting, table)
    return " | ".join(
        [
            f"metricsmith {__version__}",
            f"data {table.source}, columns {table.columns}, "
            f"scale {bench.setting.task.scale}{f', {table.people}' if table.people is not None else ''}",
            f"{counts['train']}/{counts['validation']}/{counts['test']} train/validation/test rows by group",
            f"methods {', '.join(bench.available)}",
            f"{options.fit.label}, bank {options.bank}, k {options.k}{', panel' if options.panel else ''}",
            model if bench.model else "no model",
            f"seed {options.seed}, {bench.seeds} repetitions",
        ]
    )
