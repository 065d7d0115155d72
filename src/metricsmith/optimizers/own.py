"""Metrics of the caller's own among the candidates: judges, functions, names of bank metrics, whole banks.

They are always candidates: neither the number of rows nor retrieval leaves them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.bank.base import BankMetric
from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.bank.weighted import family_of, lacking
from metricsmith.datasets.target_copies import check_copies, combinations_of
from metricsmith.errors import NeedsError, OptionError, StateError
from metricsmith.metric import EVERY_LABEL, Asker, Metric, read_labels
from metricsmith.optimizers.cross_fitting import CrossFitted, is_untrained
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.kinds import check_state
from metricsmith.programs.learned import learned_from
from metricsmith.records import Task
from metricsmith.saving import row_hash
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.callables import CallableMetric
from metricsmith.scoring.plan import as_metric
from metricsmith.stats.correlation import kendall_tau_b

__all__ = [
    "check_functions", "free_name", "from_learning", "hidden_fields", "named_apart", "not_here", "own_metrics",
    "renamed",
]  # fmt: skip

BoolArray = NDArray[np.bool_]
ALLOWED = "judges and other metrics, functions of (example, pred), names such as 'rouge1_f', or banks"
SEEN = frozenset({"input", "output", "references", "context", "id", "group", "system", "columns"})  # by any function
RATERS = frozenset({"rater", "raters", "ratings", "reason", "reasons"})  # by none: who rated, what, and why
_NUMBERS = ("callable", "column")  # kinds of candidates that could be the rating itself
SAME = 0.95  # absolute tau-b with the rating from which a field is hidden from functions


def own_metrics(given: Any, bank: MetricBank | None = None) -> tuple[MetricBank | None, tuple[Metric, ...]]:
    """The bank to choose from, None for the default one, and the metrics that are always candidates.

    Parameters
    ----------
    given : None, MetricBank or iterable
        A bank alone takes the default one's place. In a list, everything stands for itself: metrics, `Reward`,
        panels (their members), banks (all their metrics), functions, and names of bank metrics.
    bank : MetricBank, optional
        Where names are looked for; by default the default one.

    Raises
    ------
    OptionError
        For anything else, a misspelt name, and a function that cannot be called or has no name.
    NeedsError
        If this machine cannot compute a metric that is named by itself; of a bank's it leaves some out.
    """
    if given is None or isinstance(given, MetricBank):
        return given, ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError(f"metrics={given!r:.60} must be a MetricBank, or a list of {ALLOWED}: write [metric]")
    own: dict[str, Metric] = {}
    for place, one in enumerate(given):
        for metric in _metrics_of(one, f"metrics[{place}]", bank or default_bank()):
            if not isinstance(one, MetricBank) and (why := not_here(metric)):
                raise NeedsError(f"metrics[{place}], {metric.name}: {why}")
            own.setdefault(metric.name if not_here(metric) else metric.fingerprint(), metric)
    return None, tuple(own.values())


def not_here(metric: Metric) -> str:
    """The reason why this machine cannot compute a metric, for want of weights or an engine; empty where it can."""
    if isinstance(metric, CodeMetric):
        return metric.unusable_here()
    return lacking(family) if (family := family_of(metric)) else ""


def _metrics_of(one: Any, place: str, bank: MetricBank) -> Sequence[Metric]:
    if isinstance(one, str):
        return [bank.get(one)]
    if isinstance(one, MetricBank):
        return one.metrics()
    members = getattr(one, "members", None)
    if isinstance(one, Asker) and callable(members):
        return list(members())
    if isinstance(one, type) or not (isinstance(one, Metric) or callable(one)):
        raise OptionError(f"{place}={one!r:.60} cannot be a candidate; allowed are {ALLOWED}")
    metric = as_metric(one)
    if not_here(metric) or is_untrained(metric):
        return [metric]
    if read_labels(metric) not in ((), EVERY_LABEL):
        raise OptionError(
            f"{place}={metric.name!r} is a specialist, which judges outputs on the sources of its history; an "
            "induction learns from some sources and is tested on others. Evaluate it by holding systems out: "
            "metricsmith.judges.evaluate_specialist, or metricsmith specialist evaluate"
        )
    if isinstance(metric, CallableMetric) and metric.name == "<lambda>":
        raise OptionError(f"{place} is a lambda, which has no name to be saved under: CallableMetric(f, name='...')")
    try:
        check_state(metric.to_state())  # found out now, and not when all has been paid for
    except StateError as problem:
        raise OptionError(f"{place}={one!r:.60} cannot be kept in a metric file: {problem}") from problem
    return [metric]


def named_apart(
    own: Sequence[Metric], taken: set[str], rows: Sequence[dspy.Example], hidden: Collection[str]
) -> tuple[list[Metric], list[str]]:
    """The own metrics as candidates, with notes.

    A metric whose name is `taken` becomes a copy with a number; `taken` gets its name. Functions do not see the
    `hidden` fields. Bank metrics get the corpus statistics of `rows`, and are left out if most rows cannot feed them.

    Raises
    ------
    OptionError
        If a name is taken and the metric cannot have another.
    """
    named: dict[int, Metric] = {}
    notes: list[str] = []
    for place, metric in sorted(enumerate(own), key=lambda one: _can_be_renamed(one[1])):
        if isinstance(metric, BankMetric):
            unusable = dict(MetricBank((metric.family,)).usable(rows)[1])
            if metric.name in unusable:
                notes.append(f"left out because {unusable[metric.name]}: {metric.name}")
                continue
            if metric.name in taken:
                notes.append(f"the column {metric.name!r} stands in for the bank metric of that name")
                continue
            metric = metric.fit(rows)
        name = free_name(metric.name, taken)
        if name != metric.name:
            notes.append(f"your metric {metric.name!r} is called {name!r} here: something else has its name")
        named[place] = _called(metric, name, hidden)
    return [named[place] for place in sorted(named)], notes


def free_name(name: str, taken: set[str]) -> str:
    """The name, numbered from 2 where it is among those `taken`, which get it."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free


def _can_be_renamed(metric: Metric) -> bool:
    """False for metrics named by a bank, a panel or a table, and for induced metrics."""
    if isinstance(metric, CrossFitted):
        return _can_be_renamed(metric.kept)
    settings = getattr(getattr(metric, "settings", None), "values", {})
    of_panel = hasattr(getattr(metric, "asker", None), "members")
    return isinstance(metric, CallableMetric | CodeMetric | FinetunedMetric) or ("name" in settings and not of_panel)


def _called(metric: Metric, name: str, hidden: Collection[str]) -> Metric:
    return metric.among(name, hidden) if isinstance(metric, CallableMetric) else renamed(metric, name)


def renamed(metric: Metric, name: str) -> Metric:
    """The metric itself where it has this name, else a copy that has it.

    Raises
    ------
    OptionError
        If the metric cannot have another name.
    """
    if name == metric.name:
        return metric
    if not _can_be_renamed(metric):
        raise OptionError(
            f"two candidates are called {metric.name!r}, and a {type(metric).__name__} cannot be renamed: rename the "
            "other one, or leave one out"
        )
    if isinstance(metric, CrossFitted):
        return metric.called(name, renamed(metric.kept, name))
    if isinstance(metric, CodeMetric | FinetunedMetric):
        return replace(metric, name=name)
    copy: Any = metric.deepcopy()  # type: ignore[attr-defined]
    copy.settings.values["name"] = name
    return copy  # type: ignore[no-any-return]


def hidden_fields(rows: Sequence[dspy.Example], task: Task) -> frozenset[str]:
    """The fields of rated rows that no function among the candidates sees.

    Hidden are the rating, everything about raters, and every other label from which the rating follows: a label with a
    tau-b above .95 in either direction, labels whose mean, sum or median is the rating (`combinations_of`), and a label
    whose values stand for the ratings one by one. Labels that go with the rating less closely are seen. A copy that is
    missed on few rows is still found by `check_functions`.
    """
    ratings = np.array([float(row[task.target]) for row in rows])
    hidden = {task.target, *RATERS}
    numbers: dict[str, list[float]] = {}
    for name in {name for row in rows for name in row.toDict()} - SEEN - hidden:
        values = [row.get(name) for row in rows]
        if all(isinstance(value, int | float) for value in values):
            same = abs(kendall_tau_b(np.array(values, dtype=float), ratings)) > SAME
            numbers |= {} if same or len(set(values)) == 1 else {name: values}
        else:
            pairs = {(str(value), rating) for value, rating in zip(values, ratings.tolist(), strict=True)}
            same = len({value for value, _ in pairs}) == len(set(ratings.tolist())) == len(pairs) < len(rows)
        hidden |= {name} if same else set()
    if len(numbers) > 1 and np.ptp(ratings) > 0:
        made = combinations_of(list(numbers), np.array(list(numbers.values()), dtype=float), ratings)
        hidden |= {name for one in made for name in one.names}
    return frozenset(hidden)


def check_functions(
    table: ScoreTable, ratings: NDArray[np.float64], target: str, *, allowed: Collection[str], prior: Collection[str]
) -> tuple[str, ...]:
    """`check_copies` for the numbers of functions, and of columns, on the n rated rows that come first in `table`.

    Raises
    ------
    DataError
        If a function is the target under another name, alone or together with others, and not allowed.
    """
    kinds = [metric.card.kind for metric in table.metrics]
    if "callable" not in kinds:
        return ()
    values = dict(zip(table.names, table.run()[: len(ratings)].T, strict=True))
    columns = {name: values[name] for name, kind in zip(table.names, kinds, strict=True) if kind in _NUMBERS}
    return check_copies(columns, ratings, target=target, allowed=allowed, prior=prior)


def from_learning(metric: Metric, rated: RatedRows) -> BoolArray:
    """True for rows in a group that the metric has learned from, shape (n,).

    Whole groups, because an instruction that was tuned on one answer to a question knows the question. The metric is
    asked there all the same, since the report shows these rows. A cross-fitted column has learned from none of them,
    and what is still to be trained from nothing.
    """
    known = frozenset() if isinstance(metric, CrossFitted) or is_untrained(metric) else learned_from(metric)
    hashes = [row_hash(row) for row in rated.rows] if known else []
    groups = {group for group, one in zip(rated.groups, hashes, strict=False) if one in known}
    return np.array([group in groups for group in rated.groups], dtype=bool)
