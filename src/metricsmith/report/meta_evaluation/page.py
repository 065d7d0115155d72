"""A meta-evaluation as one self-contained HTML page, in the style of the main report."""

from __future__ import annotations

from metricsmith.meta_evaluation.evaluation import TaskResult
from metricsmith.report.markup import Markup
from metricsmith.report.meta_evaluation import words
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.report.old_pages import render_page
from metricsmith.report.plots.forest import Estimate, forest

__all__ = ["render_meta_evaluation_html"]


def render_meta_evaluation_html(record: MetaEvaluation) -> str:
    """The meta-evaluation as a complete document that refers to nothing outside itself; every text is escaped."""
    return render_page(
        "meta_evaluation.html.j2",
        record=record,
        verdict=words.verdict(record),
        words=words,
        plots=[_plot(task, place) for place, task in enumerate(record.tasks, 1)],
    )


def _plot(task: TaskResult, place: int) -> Markup:
    estimates = [
        Estimate(
            words.label(line, task), line.value, line.interval.low, line.interval.high, main=line.rank == 1,
            chance=line.chance.mean,
        )
        for line in words.lines(task)
    ]  # fmt: skip
    return forest(f"task-{place}", estimates, f"{task.task} of each metric", measure=task.task, from_zero=False)
