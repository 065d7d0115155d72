"""The answer of judged translations in one sentence: the better system, and if its lead is more than luck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from metricsmith.formats import (
    count,
    enumerated,
    interval,
    interval_stated,
    p_stated,
    p_value,
    points,
    single_line,
)
from metricsmith.report.blocks import Paragraph, TextTable, Verdict
from metricsmith.report.translations.record import SIGNIFICANT, SystemDifference, TranslationRecord
from metricsmith.stats.resampling import Interval
from metricsmith.stats.resampling.intervals import ENOUGH_GROUPS

__all__ = ["difference_table", "points_between", "translations_verdict"]

MOST = 3  # other systems whose figures the verdict has; of more it has the names


def translations_verdict(record: TranslationRecord) -> Verdict:
    """The better system where both pairings, by segment and by document, say so; else no claim, and the reason."""
    scored = [line for line in record.systems if line.segments]
    if not scored:
        return Verdict("bad", "No system has a score, so that nothing can be said.")
    first, number = scored[0], record.number
    if len(scored) == 1:
        written = partial(points, width=number.width)
        alone = f"{first.system} has a mean of {written(first.mean)} {number.points}"
        ends = f" ({interval_stated(first.low, first.high, written)})" if math.isfinite(first.low) else ""
        return Verdict("unsure", single_line(f"{alone}{ends}; with one system nothing is compared."))
    if not record.differences:
        return Verdict("unsure", "Not decided: no segment has a score of every system.")
    best = record.differences[0].best
    beaten = [line for line in record.differences if line.better]
    still = [line for line in record.differences if not line.better]
    said = [f"{best} is better than {_each(beaten, number.width)}; that is more than luck."] if beaten else []
    if still:
        opening = "Not decided against" if beaten else f"Not decided: {best} has the best mean, ahead of"
        said.append(f"{opening} {_each(still, number.width)}; that may be luck.")
    reasons = tuple(Paragraph(single_line(line), "small") for line in _pairing(record))
    return Verdict("unsure" if still else "good", single_line(" ".join(said)), details=reasons)


def _each(lines: Sequence[SystemDifference], width: float) -> str:
    """The other systems, each with the difference, the wider interval and the larger p."""
    if len(lines) > MOST:
        return enumerated([line.other for line in lines], MOST)
    return " and ".join(
        f"{line.other} by {points(line.difference, width)} points ("
        f"{interval_stated(line.ends.low, line.ends.high, partial(points, width=width))}, "
        f"{p_stated(np.nanmax([line.p_segment, line.p_document]))})"
        for line in lines
    )


def _pairing(record: TranslationRecord) -> list[str]:
    """Sentences on the pairing that decides, and on documents that are too few for any decision."""
    lines, rare = (
        record.differences,
        "grave errors" if record.number.marks or record.number.unmarked else "bad translations",
    )
    documents, segments, pairs = lines[0].documents, lines[0].segments, len(lines) * (len(lines) + 1) // 2
    still = [line for line in lines if not line.better]
    few = f"With {segments} segments nothing is decided: it takes {ENOUGH_GROUPS}, or {rare} may not have come up."
    said = [few] if segments < ENOUGH_GROUPS else []
    if documents == 1:
        return ["Paired by segment alone, since all are of one document: other documents may say otherwise.", *said]
    ways = {
        ("segment", "document"): [line.other for line in still if line.better_by_segment],
        ("document", "segment"): [line.other for line in still if line.better_by_document],
    }
    said += [
        f"Against {enumerated(names, MOST)} pairing by {one} says that it is more than luck, pairing by {other} does "
        f"not, and the more careful one decides."
        for (one, other), names in ways.items()
        if names
    ]
    # Swapping whole documents has 2^documents arrangements: p is at least twice their share, times the tests.
    fewest = math.ceil(1 + math.log2(pairs / SIGNIFICANT))
    if still and documents < fewest:
        said.append(f"With {documents} documents nothing is decided: it takes {fewest} at least.")
    return said or ["Paired by segment and by document."]


def points_between(low: float, high: float, width: float) -> str:
    """Both ends of an interval of scores on a scale of that width; an en dash if either is undefined."""
    return interval(low, high, write=partial(points, width=width))


def difference_table(record: TranslationRecord, name: str = "") -> TextTable:
    """The best system beside each other one, with intervals and p-values of both pairings."""
    line, width = record.differences[0], record.number.width
    head = (
        f"{line.best} ahead of", "by", f"95 %, {count(line.documents, 'document')}", "p",
        f"95 %, {count(line.segments, 'segment')}", "p", "better",
    )  # fmt: skip
    rows = [
        (
            line.other, points(line.difference, width), _between(line.by_document, width), p_value(line.p_document),
            _between(line.by_segment, width), p_value(line.p_segment), "yes" if line.better else "not decided",
        )
        for line in record.differences
    ]  # fmt: skip
    return TextTable(head, rows, name, name)


def _between(found: Interval, width: float) -> str:
    return points_between(found.low, found.high, width)
