"""A comparison as one self-contained HTML page, in the style of the main report."""

from __future__ import annotations

from metricsmith.report.comparison import words
from metricsmith.report.comparison.record import Comparison
from metricsmith.report.markup import Markup
from metricsmith.report.old_pages import render_page
from metricsmith.report.plots.forest import Estimate, forest

__all__ = ["render_comparison_html"]


def render_comparison_html(record: Comparison) -> str:
    """The comparison as a complete document that refers to nothing outside itself; every text is escaped."""
    return render_page(
        "comparison.html.j2",
        record=record,
        verdict=words.verdict(record),
        plot=_plot(record),
        words=words,
        cells=lambda line: words.cells(record, line),
    )


def _plot(record: Comparison) -> Markup:
    estimates = [
        Estimate(line.label, line.tau, line.over_both.low, line.over_both.high, main=line.key == record.reference)
        for line in record.run
    ]
    return forest("methods", estimates, "Agreement of each method with the raters")
