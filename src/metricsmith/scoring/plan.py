"""The scoring plan: every metric and repetition once, however many columns of the table rest on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import dspy

from metricsmith.bank.base import FAULTS, BankMetric
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.bank.weighted import model_of_metric
from metricsmith.errors import NeedsError, OptionError
from metricsmith.metric import Asker, Composite, Labels, Metric, content_hash
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import check_sampling, form_identity, identity
from metricsmith.records import Judgement
from metricsmith.reward import Reward
from metricsmith.scoring.callables import CallableMetric

__all__ = [
    "Alone", "AskerRuns", "Expression", "MetricRun", "ScoringPlan", "Term", "as_before", "as_metric",
    "earlier_fingerprint", "metric_list", "model_of", "scoring_plan",
]  # fmt: skip

_METRIC, _ASKER = (tuple(name for name in vars(protocol) if name[0] != "_") for protocol in (Metric, Asker))

as_before: ContextVar[bool] = ContextVar("as_before", default=False)  # fingerprints are those of the prompts before


@dataclass(frozen=True)
class MetricRun:
    """One metric with one run number, over all rows.

    Parameters
    ----------
    metric : Metric
    name : str
        The metric's.
    run : int
    fingerprint : str
        Of the metric, and of the language model where one is asked.
    model : dict or None
        The identity of the model and of the adapter; None for a metric that is computed on this machine, whose rows
        are judged in batches. All others wait for somebody else, and their rows are judged concurrently.
    storable : bool
        Whether a store may keep its judgements: not for columns of the data themselves, nor for callables that
        do not say when they change.
    reads : tuple of str, or "all"
        The labels by which rows with equal texts may get different judgements.
    asker : Asker or None
        The sender of its requests, where the metric names one.
    """

    metric: Metric
    name: str
    run: int
    fingerprint: str
    model: dict[str, Any] | None
    storable: bool
    reads: Labels
    asker: Asker | None = None


@dataclass(frozen=True)
class Expression:
    """A metric that is computed from the judgements of others, its parts, with one run number."""

    metric: Any  # Metric and Composite
    run: int
    parts: tuple[Term, ...]


Term = int | Expression  # the place of a metric run, or an expression of them


@dataclass(frozen=True)
class AskerRuns:
    """The metric runs that one asker answers, by run number."""

    asker: Asker
    by_run: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringPlan:
    """All metric runs of one scoring, and how the m x r columns of the table are made of them.

    Parameters
    ----------
    metrics : tuple of Metric
        The m metrics of the table.
    runs : range
        The r repetitions.
    metric_runs : tuple of MetricRun
        S metric runs, no two alike.
    columns : tuple of tuple of Term
        ``columns[j][r]`` is metric j in repetition r.
    askers : tuple of AskerRuns
        Askers with their metric runs; those that need no asker are in `families`.
    families : tuple of tuple of int
        Metric runs that are computed on this machine; those of one tuple share their work.
    asked : list of int
        Places of the metric runs that an asker answers, in order.
    """

    metrics: tuple[Metric, ...]
    runs: range
    metric_runs: tuple[MetricRun, ...]
    columns: tuple[tuple[Term, ...], ...]
    askers: tuple[AskerRuns, ...]
    families: tuple[tuple[int, ...], ...]
    asked: list[int]


@dataclass(frozen=True)
class Alone:
    """The asker of a metric that names none: one row and one repetition at a time."""

    metric: Metric

    @property
    def numbers(self) -> int:
        """A metric gives one number."""
        return 1

    def fingerprint(self) -> str:
        """The metric's own fingerprint."""
        return self.metric.fingerprint()

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row once for each of `runs`."""
        judgements = [self.metric.judge_batch([row], run=run)[0] for run in runs]
        return [judgements for _ in metrics]

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """No messages: those of such a metric are not known beforehand."""
        return []


def scoring_plan(metrics: Any, runs: int = 1, first_run: int = 0, rows: Sequence[dspy.Example] = ()) -> ScoringPlan:
    """Expand metrics into metric runs.

    Parameters
    ----------
    metrics : metric or sequence
        Metrics, names of bank metrics, panels, composites, `Reward` or plain callables as DSPy's Evaluate takes them.
    runs : int
        Repetitions, at least 1. A metric that is computed on this machine is computed once.
    first_run : int
        Number of the first repetition, at least 0.
    rows : sequence of dspy.Example
        The corpus of bank metrics that are bound to none, so that their fingerprints tell it.

    Raises
    ------
    OptionError
        If something cannot judge, `runs` is below 1, repetitions would come out of one frozen sample, or the adapter
        in force asks a model of its own.
    NeedsError
        If a language model is needed and none is in force, weights that are not on this machine or are others, or the
        sandbox's engine.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise OptionError(f"runs={runs!r} must be a whole number from 1")
    if isinstance(first_run, bool) or not isinstance(first_run, int) or first_run < 0:
        raise OptionError(f"first_run={first_run!r} must be a whole number from 0")
    members = [member for value in metric_list(metrics) for member in _members(value)]
    chosen = [as_metric(member) for member in members]
    numbers = range(first_run, first_run + runs)
    builder = _Builder(rows)
    columns = tuple(tuple(builder.term(metric, run) for run in numbers) for metric in chosen)
    asked = [place for place, one in enumerate(builder.metric_runs) if one.model is not None]
    return ScoringPlan(
        tuple(chosen), numbers, tuple(builder.metric_runs), columns, builder.askers(), builder.families(), asked
    )


def metric_list(metrics: Any) -> list[Any]:
    """Metrics as a list, a single one among them."""
    single = isinstance(metrics, str) or not isinstance(metrics, Iterable)
    return [metrics] if single else list(metrics)


def _members(value: Any) -> Sequence[Any]:
    """The members of an asker of several numbers, or the value itself."""
    return value.members() if _has(value, (*_ASKER, "members")) else [value]


def _has(value: Any, names: Iterable[str]) -> bool:
    """True if an object has all members of a protocol.

    Properties are looked up on the class and not evaluated, as Python does it from 3.12 on: a judge makes its card.
    """
    return all(hasattr(type(value), name) or hasattr(value, name) for name in names)


def as_metric(value: Any) -> Metric:
    """The metric itself, that of the bank with this name, the one inside a `Reward`, or a wrapper for a callable."""
    if isinstance(value, str):
        return default_bank().get(value)
    if isinstance(value, type):
        raise OptionError(f"{value.__name__} is a class; make a metric of it first: {value.__name__}(...)")
    if isinstance(value, Reward):
        if value.fields or value.lm:
            raise OptionError(
                f"{value.metric.name} was given names of fields or a model, which a score does not take from it: pass "
                "the metric itself, rows made with make_row(output=..., input=...), and score(..., lm=...)"
            )
        value = value.metric
    if _has(value, (*_ASKER, "members")):
        own = ", or Repeated(judge, runs=1) if it has positive options" if _has(value, _METRIC) else ""
        raise OptionError(f"{type(value).__name__} gives several numbers at once: take one of its members(){own}")
    if _has(value, _METRIC):
        return value  # type: ignore[no-any-return]
    if callable(value):
        return CallableMetric(value)
    raise OptionError(f"{value!r} is no metric; take one from the bank with default_bank().get(name)")


class _Builder:
    """Collects metric runs; each metric is asked for its card and its fingerprint once, which take a whole state."""

    def __init__(self, rows: Sequence[dspy.Example]) -> None:
        self._rows = rows
        self._statistics: dict[Any, Any] = {}  # by family, as far as they follow from the rows
        self.metric_runs: list[MetricRun] = []
        self._places: dict[tuple[str, int], int] = {}
        self._first: dict[int, MetricRun] = {}
        self._fingerprints: dict[int, tuple[Any, str]] = {}

    def term(self, metric: Metric, run: int) -> Term:
        """The place of the metric run, or the expression of its parts."""
        if isinstance(metric, Composite):
            return Expression(metric, run, tuple(self.term(part, part_run) for part, part_run in metric.parts(run)))
        if id(metric) not in self._first:
            self._first[id(metric)] = self._metric_run(metric)
        first = self._first[id(metric)]
        run = 0 if first.model is None else run
        if (first.fingerprint, run) not in self._places:
            if first.model and (run or getattr(metric, "samples", 1) > 1) and "model" in metric.card.needs:
                check_sampling(model_of(metric), temperature=getattr(metric, "request", {}).get("temperature"))
            self._places[first.fingerprint, run] = len(self.metric_runs)
            self.metric_runs.append(replace(first, run=run))
        return self._places[first.fingerprint, run]

    def _metric_run(self, metric: Metric) -> MetricRun:
        if weights := model_of_metric(metric):
            weights.check()
        if isinstance(metric, CodeMetric) and (why := metric.unusable_here()):
            raise NeedsError(why)
        metric = self._bound(metric)
        own, name, asker, card = self._fingerprint(metric), metric.name, getattr(metric, "asker", None), metric.card
        model = None
        if card.cost == "model":
            sender = metric if asker is None else asker
            lm = _own(sender, "lm") or dspy.settings.lm
            if lm is None and "model" in card.needs:
                raise NeedsError(
                    f"{name} needs a language model and none is set: pass lm=dspy.LM('provider/model') or "
                    "call dspy.configure(lm=...)"
                )
            form = form_identity(_own(sender, "form") or adapter_in_force()) if "model" in card.needs else {}
            model = {} if lm is None else identity(lm) | form
        fingerprint = content_hash(name, own) if model is None else content_hash(name, own, model)
        reads, storable = getattr(metric, "reads", ()), bool(getattr(metric, "storable", True))
        asker = asker if _has(asker, _ASKER) else None
        return MetricRun(metric, name, 0, fingerprint, model, storable, reads, asker)

    def _bound(self, metric: Metric) -> Metric:
        """The metric, bound to the rows where it needs a corpus and has none; an engine's error is told by its run."""
        if not isinstance(metric, BankMetric) or metric.statistics is not None or not self._rows:
            return metric
        key = metric.family.statistics, metric.family.model, metric.card.needs
        if key not in self._statistics:
            try:
                self._statistics[key] = metric.fit(self._rows).statistics
            except (NeedsError, *FAULTS):
                self._statistics[key] = None
        return replace(metric, statistics=self._statistics[key])

    def _fingerprint(self, thing: Metric | Asker) -> str:
        """The fingerprint of a metric or an asker; the object is kept, so that no other can get its id."""
        if id(thing) not in self._fingerprints:
            self._fingerprints[id(thing)] = thing, thing.fingerprint()
        return self._fingerprints[id(thing)][1]

    def askers(self) -> tuple[AskerRuns, ...]:
        """The askers, each with its metric runs.

        Raises
        ------
        OptionError
            If two askers of one name would give their members' columns equal names.
        """
        found: dict[str, AskerRuns] = {}
        named: dict[str, str] = {}
        for place, one in enumerate(self.metric_runs):
            if one.model is not None:
                key = one.fingerprint if one.asker is None else content_hash(self._fingerprint(one.asker), one.model)
                name = getattr(one.asker, "name", "") if hasattr(one.asker, "members") else ""
                if name and named.setdefault(name, key) != key:
                    raise OptionError(f"two judges are called {name!r}: give one another name=, to tell columns apart")
                asker = Alone(one.metric) if one.asker is None else one.asker
                found.setdefault(key, AskerRuns(asker)).by_run.setdefault(one.run, []).append(place)
        return tuple(found.values())

    def families(self) -> tuple[tuple[int, ...], ...]:
        """The metric runs that are computed on this machine, those of one bank family and its copies together."""
        found: dict[Any, list[int]] = {}
        hashes: dict[int, str] = {}  # of the statistics, which the metrics of a family share and which may be large
        for place, one in enumerate(self.metric_runs):
            if isinstance(one.metric, BankMetric):
                family, statistics = one.metric.family, one.metric.statistics
                if id(statistics) not in hashes:
                    hashes[id(statistics)] = content_hash(statistics)
                key = family.compute, family.model, family.card.needs, hashes[id(statistics)]
                found.setdefault(key, []).append(place)
            elif one.model is None:
                found[place] = [place]
        return tuple(map(tuple, found.values()))


def earlier_fingerprint(one: MetricRun) -> str:
    """The fingerprint of a metric run when prompts had the version before this one, demonstrations included.

    Names alone would count judgements of another model or criterion; judges whose prompt changed otherwise are not
    found.
    """
    token = as_before.set(True)
    try:
        return content_hash(one.name, one.metric.fingerprint(), *([] if one.model is None else [one.model]))
    finally:
        as_before.reset(token)


def model_of(metric: Metric) -> Any:
    """The language model that the metric's asker has of its own, or the one in force."""
    return _own(getattr(metric, "asker", metric), "lm") or dspy.settings.lm


def _own(asker: Any, what: str) -> Any:
    """The language model (``lm``), or the one form (``form``), of the first predictor that has one of its own."""
    predictors: Iterable[Any] = asker.predictors() if isinstance(asker, dspy.Module) else ()
    return next((own for predictor in predictors if (own := getattr(predictor, what, None)) is not None), None)
