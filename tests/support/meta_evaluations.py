"""Finished meta-evaluations, written by hand."""

from __future__ import annotations

import math

from metricsmith.meta_evaluation import ChanceFloor, MetricResult, TaskResult
from metricsmith.meta_evaluation.evaluation import average_tasks
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.stats.resampling import Interval

NAN = math.nan
NOTHING = ChanceFloor(NAN, NAN, NAN, NAN, NAN, 0, 0)


def result(name, value, rank=None, p=0.005, chance=0.4, **details):
    if math.isnan(value):
        return MetricResult(name, value, Interval(NAN, NAN), NOTHING, used=104)
    floor = ChanceFloor(value, chance, chance - 0.02, chance + 0.02, p, 200, 0)
    settings = {"used": 104, **details}
    return MetricResult(name, value, Interval(value - 0.04, value + 0.03), floor, rank, **settings)


def task(name, *metrics, raters=()):
    count = sum(one.rank is not None for one in metrics)
    p_values = tuple(
        tuple(0.01 * (row + column) if column > row else NAN for column in range(count)) for row in range(count)
    )
    return TaskResult(name, metrics, tuple(raters), p_values)


def record(*tasks, **changes):
    settings = {
        "target": "mqm", "systems": ("a", "b", "c"), "segments": 104, "outputs": 300, "documents": 30, "seed": 0,
        "resamples": 1000, "signature": "s | t", "notes": ("segments were matched by <i>segment</i>",),
    }  # fmt: skip
    return MetaEvaluation(tasks=tasks, averages=average_tasks(tasks), **{**settings, **changes})


# Three metrics, one of them undefined in one task, and a rater.
FULL = record(
    task(
        "spa", result("gemba", 0.93, 1, error=0.0011), result("x<b>", 0.92, 1, error=0.0012),
        result("flat", 0.5, 2, p=1.0), raters=[result("slot 0", 0.57)],
    ),
    task(
        "acc-t", result("x<b>", 0.61, 1, epsilon=0.25), result("gemba", 0.6, 2, epsilon=0.0), result("flat", NAN),
        raters=[result("slot 0", 0.58, dropped=3)],
    ),
    warnings=("flat | is undefined",),
)  # fmt: skip
