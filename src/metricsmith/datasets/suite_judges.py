"""Scores of judges of one's own -> matrices beside a test set, systems by segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metricsmith.datasets.labelled_scores import BY_DOCUMENT, BY_POSITION, BY_SEGMENT, LongTable, MatchedSide
from metricsmith.datasets.mt_metrics_eval import EvalSet
from metricsmith.errors import DataError, nearest
from metricsmith.stats.correlation import FloatArray

__all__ = ["judge_scores", "require_systems"]


def judge_scores(table: LongTable, data: EvalSet, systems: Sequence[str]) -> dict[str, FloatArray]:
    """Lay the scores of judges beside a test set: by metric a matrix, shape (k, n), NaN where it has no score.

    Parameters
    ----------
    table : LongTable
        Its segments are those of `EvalSet.segments` (document and number in it, from 1), numbers from 1 in the whole
        set, or, of a score file, all of them in order.
    data : EvalSet
    systems : sequence of str, length k
        Those that count, all of which must be there. Other outputs may be.

    Raises
    ------
    DataError
        If the table names a system or segment that the test set does not have, scores an output twice, or lacks a
        system that counts.
    """
    for place, system in zip(table.places, table.systems, strict=True):
        if system not in data.outputs:
            raise DataError(
                f"{place}: no output of a system {system!r}{nearest(system, data.outputs)} in {data.language_pair}; "
                f"there are {', '.join(data.outputs)[:200]}: name systems as the test set does"
            )
    require_systems(table.name, table.systems, systems)
    side = MatchedSide(table, _segments(table, data))
    side.check_single(data.outputs)
    return {name: side.pivot(values, systems, data.segments) for name, values in table.columns.items()}


def _segments(table: LongTable, data: EvalSet) -> tuple[str, ...]:
    """The segment of each row, by the one way of labelling that fits all rows and their documents."""
    in_document = {name: name for name in data.segments}
    in_all = {str(place): name for place, name in enumerate(data.segments, 1)}
    document_of = {name: document for name, (_, document) in zip(data.segments, data.documents, strict=True)}
    if BY_POSITION in table.segments and (length := len({*table.segments[BY_POSITION]})) != len(data):
        raise DataError(f"{table.name}: each system has {length} scores, {len(data)} are needed: one for each segment")
    found: list[tuple[str, ...]] = []
    wrong: list[tuple[int, str]] = []
    ways = ((BY_DOCUMENT, in_document), (BY_SEGMENT, in_document), (BY_SEGMENT, in_all), (BY_POSITION, in_all))
    for kind, known in ways:
        labels = table.segments.get(kind, ())
        misfits = [
            row
            for row, (label, document) in enumerate(zip(labels, table.documents, strict=False))
            if label not in known or (document and document_of[known[label]] != document)
        ]
        if misfits:
            wrong.append((len(misfits), f"{table.places[misfits[0]]}: the segment {labels[misfits[0]]!r}"))
        elif labels:
            found.append(tuple(known[label] for label in labels))
    if not found:
        raise DataError(
            f"{min(wrong)[1]} is not in the {len(data)} segments of {data.language_pair}; segments are labelled by "
            f"document and number in it ({data.segments[0]} ...), or by number in the whole set from 1: label them so"
        )
    if any(names != found[0] for names in found):
        raise DataError(
            f"{table.name}: the numbers of segments fit when counted in each document, and in the whole set; give "
            f"more documents, or labels such as {data.segments[0]}"
        )
    return found[0]


def require_systems(what: str, there: Collection[str], systems: Sequence[str]) -> None:
    """Refuse, with a `DataError`, scores that lack one of these systems."""
    missing = [system for system in systems if system not in there]
    if missing:
        raise DataError(
            f"{what}: no scores of {len(missing)} of the {len(systems)} systems needed, the first is {missing[0]!r}: "
            f"score these too"
        )
