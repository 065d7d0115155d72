"""A probe as one self-contained HTML page, or as a section of the main report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metricsmith.report.markup import Markup
from metricsmith.report.old_pages import render_page
from metricsmith.report.plots.plane import Mark, plane
from metricsmith.report.probe import words
from metricsmith.report.probe.record import ProbeRecord, Surprise
from metricsmith.report.sentences import Verdict
from metricsmith.stats.validity import Change

__all__ = ["View", "render_probe_html", "view"]


@dataclass(frozen=True)
class View:
    """What the templates of a probe print."""

    record: ProbeRecord
    verdict: Verdict
    plot: Markup
    surprises: list[tuple[Surprise, list[words.Piece], list[words.Piece]]]
    words = words


def view(record: ProbeRecord) -> View:
    """A record with its plot and its sentences."""
    pairs = [(one, *words.marked(one.original, one.changed)) for one in record.surprises]
    return View(record, words.verdict(record), _plot(record), pairs)


def render_probe_html(record: ProbeRecord) -> str:
    """The probe as a complete document that refers to nothing outside itself; every text is escaped."""
    return render_page("probe.html.j2", probe=view(record))


def _plot(record: ProbeRecord) -> Markup:
    return plane(
        "plane",
        [
            Mark(
                number, one.label, one.kind, _value(one.stability), _value(one.sensitivity), _ends(one.stability),
                _ends(one.sensitivity),
            )
            for number, one in enumerate(record.subjects, 1)
        ],
    )  # fmt: skip


def _value(found: Change | None) -> float:
    return math.nan if found is None else found.value


def _ends(found: Change | None) -> tuple[float, float]:
    return (math.nan, math.nan) if found is None else (found.interval.low, found.interval.high)
