"""Several runs of a judge laid out: errors and score of each (GEMBA-MQM V2, Table 1), and how far runs lie apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

from metricsmith.formats import MISSING, count, percent, points, single_line
from metricsmith.mqm import SEVERITIES
from metricsmith.report.blocks import Block, Box, Figure, Paragraph, TextTable
from metricsmith.report.plots.spread import spread_plot
from metricsmith.report.translations.record import SegmentScore, TranslationRecord
from metricsmith.stats.aggregation.runs import RUN_AGGREGATES, Aggregate, mean

__all__ = ["RUN_COLUMNS", "run_blocks", "run_cells", "spread_stated"]

_COUNTED = SEVERITIES[:3]  # those that cost points
RUN_COLUMNS = ("id", "system", "doc", "segment", "run", *_COUNTED, "outlier", "raw")
FAR = 5  # runs are far apart beyond this part of the scale; of MQM that is one major error


def run_cells(line: SegmentScore) -> Iterator[list[Any]]:
    """Rows of a table of runs, in the order of `RUN_COLUMNS`; None where a run has no number or marks no errors."""
    counts = line.counts or (None,) * len(line.runs)
    for run, (score, errors) in enumerate(zip(line.runs, counts, strict=True), 1):
        by_severity = [None if errors is None else errors[severity] for severity in _COUNTED]
        outlier = None if score is None else int(run in line.outliers)
        yield [line.id, line.system, line.document, line.segment, run, *by_severity, outlier, score]


def spread_stated(record: TranslationRecord) -> str:
    """The distribution of the segments' deltas in words; empty where no segment has two runs with a number."""
    known = [line.delta for line in record.segments if line.delta is not None]
    if not known:
        return ""
    width = record.number.width
    write, lacking = partial(points, width=width), len(record.segments) - len(known)
    far = sum(delta > width / FAR for delta in known) / len(known)
    without = f" Left out, for want of two runs with a number: {count(lacking, 'segment')}."
    return (
        f"The highest and the lowest run of a segment lie {write(median(known))} points apart in the median, more than "
        f"{write(width / FAR)} in {percent(far)} of the segments, {write(max(known))} at most."
    ) + (without if lacking else "")


def run_blocks(record: TranslationRecord, *, page: bool) -> list[Block]:
    """The spread in words, on a page as a plot too, and the runs of the segment whose runs lie furthest apart."""
    said = spread_stated(record)
    if not said:
        return []
    by_system: dict[str, list[float | None]] = {}
    for line in record.segments:
        by_system.setdefault(line.system, []).append(line.delta)
    worst = max(record.segments, key=lambda line: -1.0 if line.delta is None else line.delta)
    caption = "Each point is a segment: its highest run less its lowest. The line across a system is its median."
    table = _runs_of(worst, record.number.width)
    if not page:
        return [Paragraph(said), Paragraph(f"{table.caption}:"), table]
    plot = Figure(spread_plot("spread", by_system, "highest less lowest run"), caption)
    return [Box("pair", [Paragraph(said), plot]), table]


def _runs_of(line: SegmentScore, width: float) -> TextTable:
    """Table 1 of GEMBA-MQM V2 for one segment."""
    write, marked = partial(points, width=width), bool(line.counts)
    rows = [
        (
            str(run), *(MISSING if cell is None else str(cell) for cell in counts if marked),
            "outlier" if out else "", MISSING if score is None else write(score),
        )
        for _, _, _, _, run, *counts, out, score in run_cells(line)
    ]  # fmt: skip
    scores = [run for run in line.runs if run is not None]
    aggregates: dict[str, Aggregate] = {"mean-all": partial(mean, outliers=None), **RUN_AGGREGATES}
    aggregates["rrwa"] = aggregates.pop("rrwa")  # last, as in the paper
    if min(scores) < 0 < max(scores):
        del aggregates["geo"]  # which numbers on both sides of zero do not have
    blank = ("",) * (1 + len(_COUNTED) * marked)
    rows += [(name, *blank, write(float(combine(scores)))) for name, combine in aggregates.items()]
    return TextTable(
        ("run", *(_COUNTED if marked else ()), "left out", "score"), rows,
        f"Runs of {single_line(line.id)}, where they lie furthest apart, and what combines them", "Runs of a segment",
    )  # fmt: skip
