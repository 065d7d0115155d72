"""Scores of judges of one's own, in a table or a score file -> matrices beside a test set, systems by segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from metricsmith.datasets.judged_runs import judged_metrics
from metricsmith.datasets.long_tables import BY_DOCUMENT, BY_SEGMENT, SUFFIX, LongTable, read_metrics
from metricsmith.datasets.mt_metrics_eval import EvalSet
from metricsmith.datasets.score_files import pivot, read_scores
from metricsmith.errors import DataError, nearest
from metricsmith.stats.correlation import FloatArray

__all__ = ["require_systems", "judge_scores"]


def judge_scores(path: Path, data: EvalSet, systems: Sequence[str], *, each_run: bool = False) -> dict[str, FloatArray]:
    """Read the scores of one or more judges and lay them beside a test set.

    Parameters
    ----------
    path : Path
        ``segments.jsonl`` of `metricsmith mqm`, or another table that `read_metrics` takes, whose segments are those
        of `EvalSet.segments` (document and number in it, from 1) or numbers from 1 in the whole set; or a
        ``.seg.score`` file with a score, or None, for each segment.
    data : EvalSet
    systems : sequence of str, length k
        Those that count, all of which must be there. Other outputs may be.
    each_run : bool
        Whether each run of a judge is a metric, too: `judged_metrics`.

    Returns
    -------
    dict of str to float array, shape (k, n)
        By metric; NaN where it has no score.

    Raises
    ------
    DataError
        If the file cannot be used, names a system or segment that the test set does not have, scores an output twice,
        or lacks a system that counts.
    """
    if path.name.endswith(SUFFIX):
        scores = read_scores(path, length=len(data), systems=data.outputs)
        require_systems(path, scores, systems)
        return {path.name.removesuffix(SUFFIX): np.array([scores[system] for system in systems])}
    table = judged_metrics(path, each_run=True) if each_run else read_metrics(path)
    for place, system in zip(table.places, table.systems, strict=True):
        if system not in data.outputs:
            raise DataError(
                f"{place}: no output of a system {system!r}{nearest(system, data.outputs)} in {data.language_pair}; "
                f"there are {', '.join(data.outputs)[:200]}: name systems as the test set does"
            )
    require_systems(path, table.systems, systems)
    places = _places(table, data)
    first: dict[tuple[str, int], str] = {}
    for row, output in zip(table.places, zip(table.systems, places, strict=True), strict=True):
        if first.setdefault(output, row) != row:
            raise DataError(
                f"{row}: {output[0]!r} has scores of segment {output[1] + 1} already ({first[output]}); one row by "
                f"output is allowed: join repeated runs first"
            )
    labels = [str(place) for place in places]
    columns = [str(place) for place in range(len(data))]
    return {name: pivot(table.systems, labels, values, systems, columns) for name, values in table.columns.items()}


def _places(table: LongTable, data: EvalSet) -> list[int]:
    """The segment of each row, from 0, by the one way of labelling that fits all rows and their documents."""
    in_document = {name: place for place, name in enumerate(data.segments)}
    in_all = {str(place + 1): place for place in range(len(data))}
    documents = [document for _, document in data.documents]
    found: list[list[int]] = []
    wrong: list[tuple[int, str]] = []
    for kind, known in ((BY_DOCUMENT, in_document), (BY_SEGMENT, in_document), (BY_SEGMENT, in_all)):
        labels = table.segments.get(kind, ())
        misfits = [
            row
            for row, (label, document) in enumerate(zip(labels, table.documents, strict=False))
            if label not in known or (document and documents[known[label]] != document)
        ]
        if misfits:
            wrong.append((len(misfits), f"{table.places[misfits[0]]}: the segment {labels[misfits[0]]!r}"))
        elif labels:
            found.append([known[label] for label in labels])
    if not found:
        raise DataError(
            f"{min(wrong)[1]} is not in the {len(data)} segments of {data.language_pair}; segments are labelled by "
            f"document and number in it ({data.segments[0]} ...), or by number in the whole set from 1: label them so"
        )
    if any(places != found[0] for places in found):
        raise DataError(
            f"{table.name}: the numbers of segments fit when counted in each document, and in the whole set; give "
            f"more documents, or labels such as {data.segments[0]}"
        )
    return found[0]


def require_systems(path: Path, there: Collection[str], systems: Sequence[str]) -> None:
    """Refuse, with a `DataError`, a file that lacks the scores of one of these systems."""
    missing = [system for system in systems if system not in there]
    if missing:
        raise DataError(
            f"{path}: no scores of {len(missing)} of the {len(systems)} systems needed, the first is {missing[0]!r}: "
            f"score these too"
        )
