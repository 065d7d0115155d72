"""What has to be judged: every metric and repetition once, however many columns of the table rest on it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import dspy

from metricsmith.bank.base import BankMetric
from metricsmith.errors import NeedsError, OptionError
from metricsmith.metric import Asker, Composite, Metric, content_hash, row_text
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import check_sampling, form_identity, identity
from metricsmith.records import Judgement
from metricsmith.reward import Reward
from metricsmith.scoring.callables import CallableMetric

__all__ = [
    "Alone", "Expression", "AskerRuns", "Term", "ScoringPlan", "MetricRun", "as_before", "checked_rows", "content_key",
    "earlier_fingerprint", "plan", "row_key", "scoring_plan", "store_key",
]  # fmt: skip

as_before: ContextVar[bool] = ContextVar("as_before", default=False)  # fingerprints are those of the prompts before


@dataclass(frozen=True)
class MetricRun:
    """One metric in one repetition.

    Parameters
    ----------
    metric : Metric
    run : int
    fingerprint : str
        Of the metric, and of the language model where one is asked.
    storable : bool
        Whether a store may keep its judgements: not for columns of the data themselves, nor for callables that
        do not say when they change.
    """

    metric: Metric
    run: int
    fingerprint: str
    storable: bool


@dataclass(frozen=True)
class Expression:
    """A composite metric in one repetition, over the nodes of its parts."""

    metric: Any  # Metric and Composite
    run: int
    parts: tuple[Term, ...]


Term = int | Expression  # a slot's place, or what is made of metric_runs


@dataclass(frozen=True)
class AskerRuns:
    """The metric_runs that one asker answers, by repetition."""

    asker: Asker
    by_run: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoringPlan:
    """Slots, and how the m x r columns of the table are made of them.

    Parameters
    ----------
    metrics : tuple of Metric
        The m metrics of the table.
    runs : range
        The r repetitions.
    metric_runs : tuple of MetricRun
        S metric_runs, no two alike.
    columns : tuple of tuple of Term
        ``columns[j][r]`` is metric j in repetition r.
    askers : tuple of AskerRuns
        Askers with their metric_runs; metric_runs that need no asker are in `families`.
    families : tuple of tuple of int
        Slots that are computed on this machine; those of one tuple share their work.
    """

    metrics: tuple[Metric, ...]
    runs: range
    metric_runs: tuple[MetricRun, ...]
    columns: tuple[tuple[Term, ...], ...]
    askers: tuple[AskerRuns, ...]
    families: tuple[tuple[int, ...], ...]

    @property
    def slots(self) -> tuple[MetricRun, ...]:  # earlier name
        """The same as `metric_runs`."""
        return self.metric_runs

    @property
    def groups(self) -> tuple[AskerRuns, ...]:  # earlier name
        """The same as `askers`."""
        return self.askers

    @property
    def asked(self) -> list[int]:
        """Places of the metric_runs that an asker answers."""
        return sorted(place for group in self.askers for places in group.by_run.values() for place in places)


@dataclass(frozen=True)
class Alone:
    """The asker of a metric that names none: one row and one repetition at a time."""

    metric: Metric

    @property
    def numbers(self) -> int:
        """The metric's one."""
        return 1

    def fingerprint(self) -> str:
        """The metric's own."""
        return self.metric.fingerprint()

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row once for each of `runs`."""
        judgements = [self.metric.judge_batch([row], run=run)[0] for run in runs]
        return [judgements for _ in metrics]

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """None: what such a metric sends is not known beforehand."""
        return []


def scoring_plan(metrics: Sequence[Any], runs: int = 1, first_run: int = 0) -> ScoringPlan:
    """Expand metrics into metric_runs.

    Parameters
    ----------
    metrics : sequence
        Metrics, panels, composites, `Reward` or plain callables as DSPy's Evaluate takes them.
    runs : int
        Repetitions, at least 1. What is computed on this machine is computed once.
    first_run : int
        Number of the first repetition, at least 0.

    Raises
    ------
    OptionError
        If something cannot judge, `runs` is below 1, repetitions would come out of one frozen sample, or the adapter
        in force asks a model of its own.
    NeedsError
        If a language model is needed and none is in force.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise OptionError(f"runs={runs!r} must be a whole number from 1")
    if isinstance(first_run, bool) or not isinstance(first_run, int) or first_run < 0:
        raise OptionError(f"first_run={first_run!r} must be a whole number from 0")
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise OptionError(f"metrics must be a list, not one {type(metrics).__name__}: write [metric]")
    members = [member for value in metrics for member in _members(value)]
    return _Builder().build([as_metric(member) for member in members], range(first_run, first_run + runs))


def checked_rows(rows: Any) -> list[dspy.Example]:
    """The rows as a list.

    Raises
    ------
    OptionError
        If it is one row, or holds something else.
    """
    if isinstance(rows, dspy.Example) or not isinstance(rows, Iterable):
        raise OptionError(f"rows must be a list, not one {type(rows).__name__}: write [row]")
    given = list(rows)
    stranger = next((row for row in given if not isinstance(row, dspy.Example)), None)
    if stranger is not None:
        raise OptionError(f"{stranger!r} is no row; make one with metricsmith.metric.make_row(output, input=...)")
    return given


def _members(value: Any) -> Sequence[Any]:
    """A panel stands for its members; everything else for itself."""
    members = getattr(value, "members", None)
    return members() if isinstance(value, Asker) and callable(members) else [value]


def as_metric(value: Any) -> Metric:
    """The metric itself, the one inside a `Reward`, or a wrapper for a callable."""
    if isinstance(value, type):
        raise OptionError(f"{value.__name__} is a class; make a metric of it first: {value.__name__}(...)")
    if isinstance(value, Reward):
        if value.fields or value.lm:
            raise OptionError(
                f"{value.metric.name} was given names of fields or a model, which a score does not take from it: pass "
                "the metric itself, rows made with make_row(output=..., input=...), and score(..., lm=...)"
            )
        return value.metric
    if isinstance(value, Metric):
        return value
    if callable(value):
        return CallableMetric(value)
    raise OptionError(f"{value!r} is no metric; take one from the bank with default_bank().get(name)")


class _Builder:
    def __init__(self) -> None:
        self.metric_runs: list[MetricRun] = []
        self.places: dict[tuple[str, int], int] = {}
        self.fingerprints: dict[int, str] = {}

    def build(self, metrics: Sequence[Metric], runs: range) -> ScoringPlan:
        columns = tuple(tuple(self._node(metric, run) for run in runs) for metric in metrics)
        return ScoringPlan(tuple(metrics), runs, tuple(self.metric_runs), columns, self._groups(), self._families())

    def _node(self, metric: Metric, run: int) -> Term:
        if isinstance(metric, Composite):
            return Expression(metric, run, tuple(self._node(part, part_run) for part, part_run in metric.parts(run)))
        modelled = is_model(metric)
        run = run if modelled else 0
        key = (self._fingerprint(metric, modelled), run)
        if key not in self.places:
            if modelled and (run or getattr(metric, "samples", 1) > 1):
                _check_repeatable(metric)
            self.places[key] = len(self.metric_runs)
            self.metric_runs.append(MetricRun(metric, run, key[0], _storable(metric)))
        return self.places[key]

    def _fingerprint(self, metric: Metric, modelled: bool) -> str:
        """Computed once per object: a judge's takes a dump of its whole state."""
        if id(metric) not in self.fingerprints:
            parts: list[Any] = [metric.name, metric.fingerprint()]
            if modelled:
                model = model_of(metric)
                if model is None and "model" in metric.card.needs:
                    raise NeedsError(
                        f"{metric.name} needs a language model and none is set: pass lm=dspy.LM('provider/model') or "
                        "call dspy.configure(lm=...)"
                    )
                form = form_identity(adapter_in_force()) if "model" in metric.card.needs else {}
                parts.append({} if model is None else identity(model) | form)
            self.fingerprints[id(metric)] = content_hash(*parts)
        return self.fingerprints[id(metric)]

    def _groups(self) -> tuple[AskerRuns, ...]:
        groups: dict[str, AskerRuns] = {}
        for place, slot in enumerate(self.metric_runs):
            if is_model(slot.metric):
                asker = asker_of(slot.metric)
                key = slot.fingerprint if isinstance(asker, Alone) else asker.fingerprint()
                groups.setdefault(key, AskerRuns(asker)).by_run.setdefault(slot.run, []).append(place)
        return tuple(groups.values())

    def _families(self) -> tuple[tuple[int, ...], ...]:
        families: dict[tuple[int, int], list[int]] = {}
        for place, slot in enumerate(self.metric_runs):
            metric = slot.metric
            if isinstance(metric, BankMetric):
                families.setdefault((id(metric.family), id(metric.statistics)), []).append(place)
            elif not is_model(metric):
                families[-1, place] = [place]
        return tuple(map(tuple, families.values()))


def earlier_fingerprint(slot: MetricRun) -> str:
    """The slot's fingerprint when prompts had the version before this one."""
    token = as_before.set(True)
    try:
        return _Builder()._fingerprint(slot.metric, is_model(slot.metric))
    finally:
        as_before.reset(token)


def is_model(metric: Metric) -> bool:
    """Whether judging waits for somebody else: then rows are judged concurrently, one by one."""
    return metric.card.cost == "model"


def asker_of(metric: Metric) -> Asker:
    """Who sends the request for a metric."""
    asker = getattr(metric, "asker", None)
    return asker if isinstance(asker, Asker) else Alone(metric)


def model_of(metric: Metric) -> Any:
    """The language model that the metric's asker has of its own, or the one in force."""
    asker = getattr(metric, "asker", metric)
    predictors: Iterable[Any] = asker.predictors() if isinstance(asker, dspy.Module) else ()
    own = [predictor.lm for predictor in predictors if predictor.lm is not None]
    return own[0] if own else dspy.settings.lm


def _check_repeatable(metric: Metric) -> None:
    model = model_of(metric)
    if model is not None and "model" in metric.card.needs:
        check_sampling(model, temperature=getattr(metric, "request", {}).get("temperature"))


def _storable(metric: Metric) -> bool:
    return bool(getattr(metric, "storable", True))


def content_key(row: dspy.Example) -> str:
    """A hash of the four texts of a row, 32 hex digits: what a judgement depends on."""
    text = row_text(row)
    content = json.dumps([text.input, text.output, text.references, text.context])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def store_key(row: dspy.Example, content: str) -> str:
    """The row's place in a store: its content and, where it has one, its id."""
    row_id = row.get("id")
    if row_id is None:
        return content
    return f"{content} {row_id}".encode("utf-8", "backslashreplace").decode("utf-8")  # files hold no lone surrogates


plan, row_key = scoring_plan, store_key  # earlier names
