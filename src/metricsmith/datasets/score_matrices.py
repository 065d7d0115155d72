"""Metrics' scores and gold ratings of the same outputs -> aligned matrices, systems by segments."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.long_tables import (
    BY_DOCUMENT,
    BY_POSITION,
    BY_SEGMENT,
    LongTable,
    read_gold,
    read_metrics,
    with_documents,
)
from metricsmith.datasets.score_files import FloatArray
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.evaluation import mean_rating
from metricsmith.mqm import MQMWeights

__all__ = ["ScoreMatrices", "read_score_matrices"]


@dataclass(frozen=True, slots=True)
class ScoreMatrices:
    """What metrics and people say about the outputs of k systems on n segments; higher is better on all sides.

    Parameters
    ----------
    metrics : dict of str to float array, shape (k, n)
        NaN is missing.
    gold : float array, shape (k, n)
        The mean over raters where there are several.
    raters : dict of str to float array, shape (k, n)
        Each segment's first, second ... rater (``slot 0`` and so on, in the order of the file: not one person);
        empty unless some output has two ratings.
    target : str
        The name of the rating.
    systems : tuple of str, length k
    segments : tuple of str, length n
    documents : tuple of str, length n
        Empty if the document of some segment is not known.
    sources : dict of str to str
        The name and checksum of each file, under ``scores`` and ``gold``.
    notes : tuple of str
        What was guessed, how segments were matched, and everything that was left out.
    """

    metrics: dict[str, FloatArray] = field(repr=False)
    gold: FloatArray = field(repr=False)
    raters: dict[str, FloatArray] = field(repr=False)
    target: str
    systems: tuple[str, ...]
    segments: tuple[str, ...] = field(repr=False)
    documents: tuple[str, ...] = field(repr=False)
    sources: dict[str, str]
    notes: tuple[str, ...]


def read_score_matrices(
    scores: str | os.PathLike[str],
    gold: str | os.PathLike[str],
    *,
    metrics: Sequence[str] = (),
    target: str | None = None,
    weights: MQMWeights | None = None,
    lower_is_better: Sequence[str] = (),
    without: Sequence[str] = (),
    documents: str | os.PathLike[str] | None = None,
) -> ScoreMatrices:
    """Read both files and lay them side by side.

    Segments are matched by document and number or by number alone, whichever has more in common. A score file has no
    labels: its i-th score of a system belongs to the i-th segment of the other side, by number if all are whole
    numbers, else in the order of the file, which must be the same for all systems, and both sides must have as many.

    Parameters
    ----------
    scores : path
        A table with columns of systems, segments, perhaps documents, and a column of numbers for each metric; a
        ``.seg.score`` file of mt-metrics-eval, or a folder of these. One row by output.
    gold : path
        A table with the same labels and a rating, a ``.seg.score`` file, or MQM ratings as `read_wmt_mqm` takes them.
        Several ratings of one output become their mean. It may be the same table.
    metrics : sequence of str
        Which metrics; by default all.
    target : str, optional
        A table's column of ratings; guessed by default.
    weights : MQMWeights, optional
        What an error costs in MQM ratings; default `MQMWeights.wmt`.
    lower_is_better : sequence of str
        Metrics, or the rating, whose sign is turned round.
    without : sequence of str
        Systems to leave out, such as references.
    documents : path, optional
        For score files: one line by segment names its document, after its domain if there is one, as in the files
        ``documents/SRC-TGT.docs`` of mt-metrics-eval.

    Raises
    ------
    DataError
        If a file cannot be read, an output has two scores of one metric or two ratings of one rater, fewer than two
        systems or no segment are left, lengths or orders differ where positions count, numbers begin with 0 on one
        side and with 1 on the other, or `documents` has not a line for each segment.
    OptionError
        If a name is unknown, or `documents` is given and neither side is a score file.
    """
    rated = read_gold(Path(gold), target, weights)
    (rating,) = rated.columns
    same = os.path.realpath(scores) == os.path.realpath(gold)
    scored = read_metrics(Path(scores), metrics, but=(rating,) if same else ())
    turned = _turned(scored.columns, rating, lower_is_better)
    if documents is not None:
        scored, rated = with_documents(Path(documents), scored, rated)
    _check_systems({*scored.systems, *rated.systems}, without)
    scored, rated, matching = _matched(scored, rated)
    frame, left_out = _frame(scored, rated, rating, without)
    _check_single(scored, frame)
    _check_raters(rated, rated.columns[rating], frame)
    slots = _by_slot(rated, rated.columns[rating] * turned[rating], frame)
    ratings = mean_rating(list(slots.values()))
    most = int(np.sum([~np.isnan(matrix) for matrix in slots.values()], axis=0).max())
    return ScoreMatrices(
        metrics={name: frame.mean(scored, values * turned[name]) for name, values in scored.columns.items()},
        gold=ratings,
        raters=slots if most > 1 else {},
        target=rating,
        systems=tuple(frame.systems),
        segments=tuple(frame.segments),
        documents=_documents(scored, rated, frame),
        sources={"scores": _source(scored), "gold": _source(rated)},
        notes=(
            *scored.notes, *rated.notes, matching, *left_out,
            *([f"the rating is the mean of an output's ratings, {most} at most"] if most > 1 else []),
            *(f"{name}: lower is better, so its sign is turned round" for name in dict.fromkeys(lower_is_better)),
            *_gaps(scored, frame, ratings),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Frame:
    """Which system is which row of a matrix, and which segment which column."""

    systems: Mapping[str, int]
    segments: Mapping[str, int]

    def mean(self, side: LongTable, values: FloatArray, only: NDArray[np.bool_] | None = None) -> FloatArray:
        """The mean of the numbers of each cell, NaN where there is none, shape (k, n)."""
        cells: dict[tuple[int, int], list[float]] = {}
        (labels,) = side.segments.values()
        for index, (system, segment) in enumerate(zip(side.systems, labels, strict=True)):
            if system in self.systems and segment in self.segments and (only is None or only[index]):
                cells.setdefault((self.systems[system], self.segments[segment]), []).append(float(values[index]))
        matrix = np.full((len(self.systems), len(self.segments)), math.nan)
        for place, numbers in cells.items():
            given = [number for number in numbers if not math.isnan(number)]
            if given:
                matrix[place] = math.fsum(given) / len(given)
        return matrix


def _source(side: LongTable) -> str:
    return f"{Path(side.name).name} sha256:{side.checksum}"


def _turned(metrics: Collection[str], rating: str, lower_is_better: Sequence[str]) -> dict[str, int]:
    """1, or -1 where lower is better, by metric and rating."""
    names = (*metrics, rating)
    for name in lower_is_better:
        if name not in names:
            raise OptionError(
                f"lower_is_better={name!r} (--lower-is-better) is neither a metric nor the rating"
                f"{nearest(name, names)}; there are {', '.join(names)}"
            )
        if names.count(name) > 1:
            raise OptionError(
                f"lower_is_better={name!r} (--lower-is-better) names a metric and the rating as well: rename one column"
            )
    return {name: -1 if name in lower_is_better else 1 for name in names}


def _check_systems(known: Collection[str], without: Sequence[str]) -> None:
    for name in without:
        if name not in known:
            raise OptionError(
                f"without={name!r} (--without): there is no such system{nearest(name, known)}; the systems are "
                f"{', '.join(sorted(known)[:30])}"
            )


def _matched(scored: LongTable, rated: LongTable) -> tuple[LongTable, LongTable, str]:
    """Both sides with one label by segment, which mean the same, and how they were found."""
    positional = [BY_POSITION in side.segments for side in (scored, rated)]
    if any(positional):
        scored, rated = (_by_position(side) for side in (scored, rated))
        counts = [len(set(side.segments[BY_POSITION])) for side in (scored, rated)]
        if counts[0] != counts[1]:
            raise DataError(
                f"{scored.name} has {counts[0]} segments, {rated.name} has {counts[1]}; scores without labels belong "
                f"to segments by their position, so that the numbers must be equal: give both for the same segments, "
                f"or tables with a column of segments"
            )
        return scored, rated, "segments were matched by position"
    pairs = [(BY_DOCUMENT, BY_DOCUMENT), (BY_SEGMENT, BY_SEGMENT), (BY_SEGMENT, BY_DOCUMENT), (BY_DOCUMENT, BY_SEGMENT)]
    possible = [(own, other) for own, other in pairs if own in scored.segments and other in rated.segments]
    shared = [len(set(scored.segments[own]) & set(rated.segments[other])) for own, other in possible]
    own, other = possible[shared.index(max(shared))]
    if not max(shared):
        seen = [", ".join(list(dict.fromkeys(next(iter(side.segments.values()))))[:3]) for side in (scored, rated)]
        raise DataError(
            f"{scored.name} and {rated.name} have no segment in common: the one has {seen[0]} ..., the other {seen[1]} "
            f"...; label them alike, and give the document where numbers begin anew in each"
        )
    _check_first(scored, own, rated, other)
    how = f"by {own}" if own == other else f"by {own} in the scores and by {other} in the gold ratings"
    return (
        replace(scored, segments={own: scored.segments[own]}), replace(rated, segments={other: rated.segments[other]}),
        f"segments were matched {how}",
    )  # fmt: skip


def _check_first(scored: LongTable, own: str, rated: LongTable, other: str) -> None:
    """Refuse segments that are numbered from 0 on one side and from 1 on the other, as many in each document."""
    ends = [_ends(side.segments[kind]) for side, kind in ((scored, own), (rated, other))]
    shared = ends[0].keys() & ends[1].keys()
    for (low, other_low), names in (((0, 1), (scored, rated)), ((1, 0), (rated, scored))):
        if shared and all(
            (ends[0][name][0], ends[1][name][0]) == (low, other_low)
            and ends[0][name][1] - low == ends[1][name][1] - other_low
            for name in shared
        ):
            raise DataError(
                f"{names[0].name} numbers segments from 0, {names[1].name} from 1, and both have as many: scores would "
                f"be laid beside the ratings of the next segment; number both alike"
            )


def _ends(labels: Collection[str]) -> dict[str, tuple[int, int]]:
    """The lowest and highest number of the segments of each document; none unless all are whole numbers."""
    parts = [label.rpartition(":")[::2] for label in set(labels)]
    numbers: dict[str, list[int]] = {}
    for document, number in parts:
        if not _is_whole(number):
            return {}
        numbers.setdefault(document, []).append(int(number))
    return {document: (min(those), max(those)) for document, those in numbers.items()}


def _is_whole(label: str) -> bool:
    return label.isascii() and label.isdigit()


def _by_position(side: LongTable) -> LongTable:
    if BY_POSITION in side.segments:
        return side
    labels = side.segments.get(BY_SEGMENT, side.segments.get(BY_DOCUMENT, ()))
    names = list(dict.fromkeys(labels))
    counted = all(_is_whole(name) for name in names)
    if counted:
        names.sort(key=int)
    places = {name: place for place, name in enumerate(names, 1)}
    if not counted:
        _check_order(side, [places[label] for label in labels])
    return replace(side, segments={BY_POSITION: tuple(str(places[label]) for label in labels)})


def _check_order(side: LongTable, places: Sequence[int]) -> None:
    """Refuse segments that stand in another order for one system, or in a second pass over them, than for another."""
    passes: dict[str, dict[int, None]] = {}
    for index, (system, place) in enumerate(zip(side.systems, places, strict=True)):
        own = passes.setdefault(system, {})
        if place in own:  # a row of the next rater
            own.clear()
        elif own and place < next(reversed(own)):
            raise DataError(
                f"{side.places[index]}: segments stand in different orders here and above, perhaps because some rows "
                f"are missing; scores without labels belong to segments by their position: number the segments, or "
                f"give all rows in one order"
            )
        own[place] = None


def _frame(scored: LongTable, rated: LongTable, rating: str, without: Sequence[str]) -> tuple[_Frame, tuple[str, ...]]:
    """Systems and segments that both sides have, in the order of the gold side, and what was left out."""
    (own,), (labels,) = scored.segments.values(), rated.segments.values()
    given = ~np.isnan(rated.columns[rating])
    judged = dict.fromkeys(system for system, there in zip(rated.systems, given, strict=True) if there)
    systems = [system for system in judged if system in set(scored.systems) and system not in without]
    rated_only = [system for system in judged if system not in set(scored.systems)]
    scored_only = [system for system in dict.fromkeys(scored.systems) if system not in judged]
    if len(systems) < 2:
        raise DataError(
            f"{'one system has' if systems else 'no system has'} scores in {scored.name} and ratings in {rated.name}, "
            f"and two are needed, since systems are compared; the scores are of "
            f"{', '.join(dict.fromkeys(scored.systems))[:200]}, the ratings of {', '.join(judged)[:200] or 'none'}: "
            f"give the scores of another system too, and name the systems alike"
        )
    kept = set(systems)
    known = {label for system, label in zip(scored.systems, own, strict=True) if system in kept}
    asked = dict.fromkeys(
        label for system, label, there in zip(rated.systems, labels, given, strict=True) if there and system in kept
    )
    segments = [label for label in asked if label in known]
    if not segments:
        raise DataError(
            f"{scored.name} and {rated.name} have no segment in common for {', '.join(systems)[:200]}: label segments "
            f"alike"
        )
    apart = {"without scores": rated_only, "without ratings": scored_only}
    named = {why: [name for name in names if name not in without] for why, names in apart.items()}
    named["on request"] = list(dict.fromkeys(without))
    notes = [f"systems left out, {why}: {', '.join(names)}" for why, names in named.items() if names]
    for count, what in ((len(asked) - len(segments), "scores"), (len(known) - len(segments), "ratings")):
        if count:
            notes.append(f"segments left out, without {what}: {count}")
    index = {name: place for place, name in enumerate(systems)}
    return _Frame(index, {label: place for place, label in enumerate(segments)}), tuple(notes)


def _check_single(scored: LongTable, frame: _Frame) -> None:
    """Refuse two rows of scores of one output."""
    (labels,) = scored.segments.values()
    first: dict[tuple[str, str], int] = {}
    for index, cell in enumerate(zip(scored.systems, labels, strict=True)):
        if cell[0] in frame.systems and first.setdefault(cell, index) != index:
            raise DataError(
                f"{scored.places[index]}: {cell[0]!r} has scores of segment {cell[1]!r} already "
                f"({scored.places[first[cell]]}); one row by output is allowed: join repeated runs first, or tell "
                f"segments apart by a column of documents"
            )


def _check_raters(rated: LongTable, values: FloatArray, frame: _Frame) -> None:
    """Refuse two ratings of one output by one rater, if raters are known."""
    if not all(rated.raters):
        return
    (labels,) = rated.segments.values()
    first: dict[tuple[str, str, str], int] = {}
    for index, key in enumerate(zip(rated.systems, labels, rated.raters, strict=True)):
        counts = key[0] in frame.systems and not math.isnan(values[index])
        if counts and first.setdefault(key, index) != index:
            raise DataError(
                f"{rated.places[index]}: {key[2]!r} rated {key[0]!r} on segment {key[1]!r} already "
                f"({rated.places[first[key]]}); one row by output and rater is allowed: join the two, or tell segments "
                f"apart by a column of documents"
            )


def _slots(rated: LongTable) -> NDArray[np.int64]:
    """Which of its segment's raters made each row, from 0; of its output's rows where raters have no names."""
    (labels,) = rated.segments.values()
    named = all(rated.raters)
    orders: dict[object, dict[object, int]] = {}
    slots = []
    for index, (system, segment) in enumerate(zip(rated.systems, labels, strict=True)):
        order = orders.setdefault(segment if named else (system, segment), {})
        slots.append(order.setdefault(rated.raters[index] if named else index, len(order)))
    return np.array(slots, dtype=np.int64)


def _by_slot(rated: LongTable, values: FloatArray, frame: _Frame) -> dict[str, FloatArray]:
    """The ratings of each segment's first rater, of its second, and so on."""
    slots = _slots(rated)
    return {f"slot {slot}": frame.mean(rated, values, slots == slot) for slot in range(int(slots.max()) + 1)}


def _documents(scored: LongTable, rated: LongTable, frame: _Frame) -> tuple[str, ...]:
    """The document of each segment, as the gold side says or else the other; empty if one is not known."""
    known: dict[str, str] = {}
    for side in (rated, scored):
        (labels,) = side.segments.values()
        for label, document in zip(labels, side.documents, strict=True):
            if document:
                known.setdefault(label, document)
    return tuple(known[label] for label in frame.segments) if known.keys() >= frame.segments.keys() else ()


def _gaps(scored: LongTable, frame: _Frame, gold: FloatArray) -> list[str]:
    """A note for gold, and one for every metric, that lacks cells."""
    rated = ~np.isnan(gold)
    notes = [] if rated.all() else [f"outputs without a rating, which take no part: {(~rated).sum()} of {gold.size}"]
    for name, values in scored.columns.items():
        missing = int((rated & np.isnan(frame.mean(scored, values))).sum())
        if missing:
            notes.append(f"{name}: no score for {missing} of {rated.sum()} rated outputs")
    return notes
