"""`Prober`: perturb outputs on purpose, and measure the answer of a metric.

`probe_position` measures position bias: the preference of a judge of pairs for the place in which an output stands.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import dspy
import numpy as np

from metricsmith.datasets.splits import group_of
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, JudgementFailed, OptionError, nearest
from metricsmith.formats import enumerated
from metricsmith.metric import Metric, content_hash, row_text
from metricsmith.model_calls.limits import Budget, Concurrency, total_usage
from metricsmith.model_calls.models import using
from metricsmith.optimizers.options import check_budget
from metricsmith.optimizers.spending import spending
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.perturbers.base import STRENGTHS, Effect, Perturbation, Source, Strength
from metricsmith.programs.perturbers.catalogue import BUILTIN, perturb, sources_of
from metricsmith.programs.perturbers.generation import GeneratedPerturbations, estimate_usage, generate_perturbations
from metricsmith.records import Scale, Task, Usage
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.scoring import estimate, score
from metricsmith.scoring.plan import as_metric
from metricsmith.signatures.generation import Axis
from metricsmith.stats.resampling import MINIMUM_GROUPS
from metricsmith.stats.validity import Lean, position_lean
from metricsmith.store import Store
from metricsmith.studies.probing.data import (
    UNITS,
    PerturbedRows,
    Unit,
    draw_source_rows,
    metric_numbers,
    probed_metrics,
)
from metricsmith.studies.probing.findings import Findings, find
from metricsmith.threads import in_threads
from metricsmith.version import __version__

__all__ = ["PERTURBERS", "Prober", "probe_position"]

PERTURBERS = ("builtin", "generated", "all")
# What a model may make of an output in a dimension: three worse ones, and one that is as good.
TO_COME: tuple[tuple[Effect, int], ...] = (("worse", 1), ("worse", 2), ("worse", 3), ("same", 1))


@dataclass(frozen=True)
class Prober:
    """Probes a metric: it should fall when quality falls, and hold still when quality stays.

    Parameters
    ----------
    perturbers : str
        ``builtin`` (rules, no model), ``generated`` (a model makes them) or ``all``. Attacks are among the rules.
    dimensions : sequence of str
        Qualities that generated perturbers aim at, ``name`` or ``name: meaning``; by default the task's target. The
        rules aim at none.
    strengths : sequence of str
        Of ``obvious`` and ``subtle``; attacks have one strength.
    n : int
        Outputs to change at most, one of each group in turn.
    against : sequence of Metric
        Metrics to compare with.
    unit : str
        Sizes of changes: ``range`` (share of the range of a metric's own numbers) or ``score`` (scores in [0, 1] by
        each metric's own scale); the same for all metrics.
    lm : dspy.LM, optional
        For judges and generated perturbers; None takes the one in force.
    budget : Budget, optional
        What the whole probe may spend; where it runs out the probe ends with a `ModelFailure`.
    concurrency, store, max_failure_rate, progress
        As for `score`.
    seed : int
        Draws rows, perturbations, random scores and tests.

    Raises
    ------
    OptionError
        If an option has no meaning.
    """

    perturbers: Literal["builtin", "generated", "all"] = "builtin"
    dimensions: Sequence[str] = ()
    strengths: Sequence[Strength] = ("obvious",)
    n: int = 30
    against: Sequence[Metric] = ()
    unit: Unit = "range"
    lm: Any = None
    concurrency: Literal["auto"] | int | Concurrency = "auto"
    store: str | PathLike[str] | Store | None = None
    budget: Budget | None = None
    max_failure_rate: float = 0.2
    progress: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        _check("perturbers", [self.perturbers], PERTURBERS)
        _check("unit", [self.unit], tuple(UNITS))
        _check("strengths", self.strengths, STRENGTHS)
        if isinstance(self.dimensions, str) or not all(name.strip() for name in self.dimensions):
            raise OptionError(f"dimensions={self.dimensions!r} must be a list of qualities, none of them empty")
        if self.dimensions and self.perturbers == "builtin":
            raise OptionError("rules aim at no dimension: take perturbers='generated' or 'all', or no dimensions")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise OptionError(f"seed={self.seed!r} must be a whole number from 0")
        check_budget(self.budget)

    def filled(
        self,
        *,
        lm: Any,
        store: str | PathLike[str] | Store | None,
        budget: Budget | None,
        concurrency: Literal["auto"] | int | Concurrency,
    ) -> Prober:
        """A copy that takes these where it has none of its own."""
        return replace(
            self,
            lm=self.lm or lm,
            store=self.store or store,
            budget=self.budget or budget,
            concurrency=concurrency if self.concurrency == "auto" else self.concurrency,
        )

    def probe(self, metric: Metric, rows: Sequence[dspy.Example] | Table, task: Task | None = None) -> ProbeRecord:
        """Probe a metric.

        Parameters
        ----------
        metric : Metric
            An induced metric (its components are probed along), a judge, a bank metric, or a function as `score` takes.
        rows : sequence of dspy.Example or Table
            As `make_row` builds them. Ratings are not needed; where there are any under the task's target, the best
            rated outputs to other inputs come first where one stands in for another. A table that names the raters
            brings the ceiling that follows from their agreement.
        task : Task, optional
            By default an induced metric's own.

        Returns
        -------
        ProbeRecord

        Raises
        ------
        OptionError, DataError
            If an option has no meaning, or no row has an output.
        NeedsError, ModelFailure
            If a model is needed and missing, or fails more often than allowed, or the budget runs out.
        """
        started = time.perf_counter()
        raters, rows = (rows.rater_ceiling(), rows.rows) if isinstance(rows, Table) else (None, rows)
        with using(self.lm):
            task = _task(metric, task)
            drawn, sources = self._by_rule(rows, task)
            estimated = self._estimate(metric, drawn, sources, task)
            with spending(self.budget, self.concurrency, expected=estimated, store=self.store, model=dspy.settings.lm):
                drawn, generated = self._by_model(drawn, sources, task)
                metrics = probed_metrics(metric, self.against)
                every = drawn.rows
                table = score(
                    [one.metric for one in metrics if one.metric is not None], every, concurrency=self.concurrency,
                    store=self.store, max_failure_rate=self.max_failure_rate, progress=self.progress,
                )  # fmt: skip
            signature = self._signature(metrics[0].metric, drawn)
        attacked = np.array([False] * len(drawn.sources) + [one.effect == "attack" for one in drawn.made])
        texts = [row_text(row).output for row in every]
        numbers = metric_numbers(metrics, table, texts, attacked, self.unit, self.seed)
        summaries = {name: one.summary for name, one in BUILTIN.items()}
        summaries |= {plan.name: plan.description for plans in generated.strategies.values() for plan in plans}
        found = find(drawn, metrics, numbers, summaries, seed=self.seed)
        effects = Counter(one.effect for one in drawn.made)
        return ProbeRecord(
            title=metrics[0].label,
            task=task,
            signature=signature,
            counts={
                "rows": len(drawn.sources),
                "groups": len(set(drawn.groups)),
                **{effect: effects[effect] for effect in ("worse", "same", "attack")},
                "declined": len(drawn.perturbations) - len(drawn.made),
            },
            unit=UNITS[self.unit],
            subjects=found.subjects,
            strategies=found.strategies,
            attacks=found.attacks,
            surprises=found.surprises,
            judgements=table.counts(),
            usage=replace(table.usage + generated.usage, seconds=time.perf_counter() - started),
            estimated=estimated,
            warnings=tuple(_warnings(found, len(set(drawn.groups)), table.counts())),
            notes=generated.notes,
            raters=raters,
        )

    def estimate(self, metric: Metric, rows: Sequence[dspy.Example], task: Task | None = None) -> Usage:
        """The usage that `probe` with the same arguments will ask of a model; sends nothing.

        Generated perturbers may propose fewer than three strategies, and decline: then less is asked.
        """
        with using(self.lm):
            task = _task(metric, task)
            return self._estimate(metric, *self._by_rule(rows, task), task)

    def outlook(self, rows: Sequence[dspy.Example], task: Task) -> str:
        """A sentence on the requests of a probe of a metric that is not there yet; sends nothing."""
        drawn, usage = self._expected(*self._by_rule(rows, task), task)
        made = f"{usage.requests} requests to change outputs, then " if usage.requests else ""
        return f"probe: {made}{len(drawn.rows)} outputs for every judge that the metric keeps"

    def _estimate(self, metric: Metric, drawn: PerturbedRows, sources: Sequence[Source], task: Task) -> Usage:
        drawn, usage = self._expected(drawn, sources, task)
        asked = [one.metric for one in probed_metrics(metric, self.against) if one.metric is not None]
        return total_usage([usage, estimate(asked, drawn.rows, store=self.store)])

    def _expected(self, drawn: PerturbedRows, sources: Sequence[Source], task: Task) -> tuple[PerturbedRows, Usage]:
        """The outputs to be scored, with texts of about the length that a model will write, and the cost of these."""
        if self.perturbers == "builtin":
            return drawn, Usage()
        dimensions = self._dimensions(task)
        to_come = [
            Perturbation(
                row, "", effect, strength, f"{source.output} {axis.name} {strength} {effect} {number}", "", axis.name
            )
            for axis in dimensions
            for strength in self.strengths
            for row, source in enumerate(sources)
            for effect, number in TO_COME
        ]
        usage = estimate_usage(sources, _purpose(task), dimensions, self.strengths)
        return replace(drawn, perturbations=[*drawn.perturbations, *to_come]), usage

    def _by_rule(self, rows: Sequence[dspy.Example], task: Task) -> tuple[PerturbedRows, list[Source]]:
        """The source rows with the perturbations of the rules, and the source rows as perturbers see them."""
        drawn, places = draw_source_rows(rows, self.n, self.seed)
        rated = task.target if any(row.get(task.target) is not None for row in rows) else None
        every = sources_of(rows, rated, task.scale.higher_is_better)
        sources = [every[place] for place in places]
        if self.perturbers == "generated":
            return drawn, sources
        made = [
            *perturb(sources, effects=("worse", "same"), strengths=self.strengths, seed=self.seed),
            *perturb(sources, effects=("attack",), seed=self.seed),
        ]
        return replace(drawn, perturbations=made), sources

    def _by_model(
        self, drawn: PerturbedRows, sources: Sequence[Source], task: Task
    ) -> tuple[PerturbedRows, GeneratedPerturbations]:
        """The same rows with the perturbations of a model too, and the record of their generation."""
        if self.perturbers == "builtin":
            return drawn, GeneratedPerturbations()
        done = generate_perturbations(
            sources, _purpose(task), self._dimensions(task), self.strengths, groups=drawn.groups,
            concurrency=self.concurrency, seed=self.seed,
        )  # fmt: skip
        return replace(drawn, perturbations=[*drawn.perturbations, *done.perturbations]), done

    def _dimensions(self, task: Task) -> list[Axis]:
        named = [name.partition(":") for name in self.dimensions or (task.target or "quality",)]
        parts = [(name.strip(), meaning.strip()) for name, _, meaning in named]
        return [Axis(name=name, meaning=meaning or f"how good the output is in {name}") for name, meaning in parts]

    def _signature(self, metric: Metric, drawn: PerturbedRows) -> str:
        """The signature line: everything on which the numbers depend."""
        outputs = content_hash([row.toDict() for row in drawn.rows])
        return " | ".join(
            [
                f"metricsmith {__version__}",
                f"probe of {metric.name} {metric.fingerprint()[:12]}",
                f"{len(drawn.sources)} outputs, {len(drawn.made)} changed, sha256:{outputs}",
                f"perturbers {self.perturbers}, {' and '.join(self.strengths)}, unit {self.unit}",
                *([f"dimensions {', '.join(self.dimensions)}"] if self.dimensions else []),
                *([f"against {', '.join(as_metric(one).name for one in self.against)}"] if self.against else []),
                f"model {getattr(dspy.settings.lm, 'model', None) or 'none'}, seed {self.seed}",
            ]
        )


def _task(metric: Metric, task: Task | None) -> Task:
    if task is not None:
        return task
    return metric.task if isinstance(metric, InducedMetric) else Task("", "", Scale(0, 1))


def _purpose(task: Task) -> str:
    """The purpose of the outputs, as a model is told."""
    return task.description or f"outputs that are rated by {task.target}"


NO_ANSWER = "insensitive (worse outputs do not clearly fall more often than they rise)"


def _warnings(found: Findings, groups: int, judgements: Mapping[str, int]) -> list[str]:
    warnings = []
    if groups < MINIMUM_GROUPS:
        warnings.append(f"the outputs are of {groups} groups: intervals are rough, and tests find little")
    own, *others = found.subjects
    if own.insensitive or own.still:
        warnings.append(f"{own.label} {'never moves' if own.still else f'is {NO_ANSWER}'}")
    parts = [one for one in others if one.kind == "component"]
    weak = [one.label for one in parts if one.insensitive or one.still]
    if weak:
        of = f"{len(weak)} of {len(parts)} components {'is' if len(weak) == 1 else 'are'}"
        warnings.append(f"{of} {NO_ANSWER}: {enumerated(weak)}")
    unprobed: dict[str, list[str]] = {}
    for one in found.subjects:
        if one.kind != "null" and one.lacking:
            unprobed.setdefault(one.lacking, []).append(one.label)
    warnings += [f"{enumerated(labels)} could not be probed: {reason}" for reason, labels in unprobed.items()]
    failed = judgements["requested"] - judgements["ok"] - judgements["skipped"]
    if failed:
        warnings.append(f"{failed} of {judgements['requested']} judgements failed; their pairs are left out, not low")
    return warnings


def _check(name: str, given: Sequence[str], known: Sequence[str]) -> None:
    stray = [] if isinstance(given, str) else [one for one in given if one not in known]
    if isinstance(given, str) or not given or stray or len(set(given)) < len(given):
        hint = nearest(stray[0], known) if stray else ""
        raise OptionError(f"{name}={given!r}{hint} must be one or more of {', '.join(known)}, none of them twice")


Pair = tuple[dspy.Example, dspy.Example]


def probe_position(
    prefer: Callable[[dspy.Example, dspy.Example], float], pairs: Sequence[Pair], *, lm: Any = None, threads: int = 8
) -> Lean:
    """Ask a judge of pairs twice, with the two outputs exchanged.

    Parameters
    ----------
    prefer : callable
        ``prefer(first, second)`` gives the degree to which the judge prefers the first, in [0, 1]. A pair where it
        raises `JudgementFailed` is missing; any other error is raised.
    pairs : sequence of (row, row)
        Two outputs to one input; the group is the first row's.
    lm : dspy.LM, optional
        None takes the one in force.
    threads : int

    Returns
    -------
    Lean
        See `metricsmith.stats.validity.position_lean`.

    Raises
    ------
    DataError
        If there are no pairs, or a preference is not in [0, 1].
    """
    if not pairs:
        raise DataError("there are no pairs to show in both orders")

    def ask(first: dspy.Example, second: dspy.Example) -> float:
        try:
            return float(prefer(first, second))
        except JudgementFailed:
            return math.nan

    orders = [order for one, other in pairs for order in ((one, other), (other, one))]
    with using(lm):
        preferences = in_threads([partial(ask, *order) for order in orders], threads, "metricsmith asking")
    groups = [group_of(one, place) for place, (one, _) in enumerate(pairs)]
    return position_lean(preferences[::2], [1 - value for value in preferences[1::2]], groups)
