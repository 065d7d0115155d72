"""One comparison on several data sets, such as the AutoMetrics paper's (its Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from metricsmith.datasets.table import Table
from metricsmith.formats import cost_stated, count
from metricsmith.model_calls.limits import total_usage
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.spending import spending
from metricsmith.report.comparison.record import Comparison
from metricsmith.report.comparisons.record import Comparisons
from metricsmith.studies.comparison.methods import ComparisonPlan, plan_comparison
from metricsmith.studies.comparison.run import plan_text, run_plan

__all__ = ["compare_sets", "sets_plan"]

Sets = Mapping[str, tuple[Table, Table | None]]
"""By the name of a data set its rows and, where it has its own, its test rows."""


def compare_sets(
    sets: Sets, optimizer: AutoMetrics, finished: Callable[[str, Comparison], None] = lambda *_: None, **options: Any
) -> Comparisons:
    """Compare the same methods on several data sets, which share one budget and one store.

    Everything is planned before the first request, so that a data set that cannot be used costs nothing.

    Parameters
    ----------
    sets : mapping of str to (Table, Table or None)
    optimizer : AutoMetrics
    finished : callable
        Takes the name of a data set and its comparison as soon as that is made.
    **options
        Those of `compare`, all named.

    Raises
    ------
    OptionError, DataError, NeedsError, ModelFailure
        As `compare`.
    """
    plans = _plans(sets, optimizer, options)
    settings = next(iter(plans.values())).data.options
    expected = total_usage(plan.estimated for plan in plans.values())
    limits: dict[str, Any] = {"expected": expected, "store": settings.store, "model": settings.model}
    made = {}
    with spending(settings.budget, settings.concurrency, **limits):
        for name, (table, test) in sets.items():
            made[name] = run_plan(plans[name], table, test)
            finished(name, made[name])
    return Comparisons.of(made)


def sets_plan(sets: Sets, optimizer: AutoMetrics, **options: Any) -> str:
    """Say what `compare_sets` would do on each data set and the most that all would ask; asks nothing."""
    plans = _plans(sets, optimizer, options)
    total = total_usage(plan.estimated for plan in plans.values())
    each = [f"{name}\n{plan_text(plan, sets[name][0])}" for name, plan in plans.items()]
    cost = cost_stated(total.cost)
    return "\n\n".join(
        [*each, f"all {count(len(sets), 'data set')}: at most {count(total.requests, 'request')}, {cost}"]
    )


def _plans(sets: Sets, optimizer: AutoMetrics, options: Mapping[str, Any]) -> dict[str, ComparisonPlan]:
    return {name: plan_comparison(table, optimizer, test=test, **options) for name, (table, test) in sets.items()}
