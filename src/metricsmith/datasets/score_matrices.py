"""Metrics' scores and gold ratings of the same outputs -> aligned matrices, systems by segments."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from metricsmith.datasets.long_tables import (
    BY_DOCUMENT,
    BY_POSITION,
    BY_SEGMENT,
    LongTable,
    read_gold,
    read_metrics,
    with_documents,
)
from metricsmith.datasets.score_files import pivot
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.evaluation import mean_rating
from metricsmith.mqm import MQMWeights
from metricsmith.stats.correlation import FloatArray

__all__ = ["ScoreMatrices", "read_score_matrices"]

WHOLE = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class ScoreMatrices:
    """Scores of metrics and people for the outputs of k systems on n segments; higher is better on all sides.

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
        Everything that was guessed or left out, and how segments were matched.
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
    """Read scores and ratings of the same outputs, and lay them side by side as matrices.

    Segments are matched by document and number or by number alone, whichever has more in common. A score file has no
    labels: its i-th score of a system belongs to the i-th segment of the other side, by number if all are whole
    numbers, else in the order of the file, the same for all systems; both sides must have as many: no offset is tried.

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
    rated_table = read_gold(Path(gold), target, weights)
    (rating,) = rated_table.columns
    same = os.path.realpath(scores) == os.path.realpath(gold)
    scored_table = read_metrics(Path(scores), metrics, but=(rating,) if same else ())
    turned = _turned(scored_table.columns, rating, lower_is_better)
    if documents is not None:
        scored_table, rated_table = with_documents(Path(documents), scored_table, rated_table)
    _check_systems({*scored_table.systems, *rated_table.systems}, without)
    scored, rated, matching = _matched(scored_table, rated_table)
    given = rated_table.columns[rating]
    systems, segments, left_out = _common(scored, rated, given, without)
    _check_single(scored, systems)
    _check_raters(rated, given, systems)
    slots = _slots(rated)
    raters = {
        f"slot {slot}": rated.pivot(np.where(slots == slot, given * turned[rating], math.nan), systems, segments)
        for slot in range(int(slots.max()) + 1)
    }
    most = int(np.sum([~np.isnan(matrix) for matrix in raters.values()], axis=0).max())
    ratings = mean_rating(list(raters.values()))
    matrices = {
        name: scored.pivot(values * turned[name], systems, segments) for name, values in scored_table.columns.items()
    }
    return ScoreMatrices(
        metrics=matrices,
        gold=ratings,
        raters=raters if most > 1 else {},
        target=rating,
        systems=systems,
        segments=segments,
        documents=_documents(scored, rated, segments),
        sources={
            name: f"{Path(side.name).name} sha256:{side.checksum}"
            for name, side in (("scores", scored_table), ("gold", rated_table))
        },
        notes=(
            *scored_table.notes, *rated_table.notes, matching, *left_out,
            *([f"the rating is the mean of an output's ratings, {most} at most"] if most > 1 else []),
            *(f"{name}: lower is better, so its sign is turned round" for name in dict.fromkeys(lower_is_better)),
            *_gaps(matrices, ratings),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Side:
    """A long table with the name that each row's segment has on both sides."""

    table: LongTable
    segments: tuple[str, ...]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """The system and the segment of each row."""
        return list(zip(self.table.systems, self.segments, strict=True))

    def pivot(self, values: FloatArray, systems: Iterable[str], segments: Iterable[str]) -> FloatArray:
        """Numbers of the rows as a matrix, shape (k, n)."""
        return pivot(self.table.systems, self.segments, values, systems, segments)


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


def _matched(scored: LongTable, rated: LongTable) -> tuple[_Side, _Side, str]:
    """Both sides with the same names of segments, and a note on how these were found."""
    if BY_POSITION in scored.segments or BY_POSITION in rated.segments:
        own, other = _positions(scored), _positions(rated)
        if len(set(own)) != len(set(other)):
            raise DataError(
                f"{scored.name} has {len(set(own))} segments, {rated.name} has {len(set(other))}; scores without "
                f"labels belong to segments by their position, so that the numbers must be equal: give both for the "
                f"same segments, or tables with a column of segments"
            )
        return _Side(scored, own), _Side(rated, other), "segments were matched by position"
    pairs = [(BY_DOCUMENT, BY_DOCUMENT), (BY_SEGMENT, BY_SEGMENT), (BY_SEGMENT, BY_DOCUMENT), (BY_DOCUMENT, BY_SEGMENT)]
    possible = [(own, other) for own, other in pairs if own in scored.segments and other in rated.segments]
    shared = [len(set(scored.segments[own]) & set(rated.segments[other])) for own, other in possible]
    if not max(shared):
        seen = [", ".join(list(dict.fromkeys(next(iter(side.segments.values()))))[:3]) for side in (scored, rated)]
        raise DataError(
            f"{scored.name} and {rated.name} have no segment in common: the one has {seen[0]} ..., the other {seen[1]} "
            f"...; label them alike, and give the document where numbers begin anew in each"
        )
    own_kind, other_kind = possible[shared.index(max(shared))]
    sides = _Side(scored, scored.segments[own_kind]), _Side(rated, rated.segments[other_kind])
    _check_first(*sides)
    how = own_kind if own_kind == other_kind else f"{own_kind} in the scores and by {other_kind} in the gold ratings"
    return *sides, f"segments were matched by {how}"


def _positions(side: LongTable) -> tuple[str, ...]:
    """The place of each row's segment, from 1: by number if all are whole numbers, else in the order of the file."""
    if BY_POSITION in side.segments:
        return side.segments[BY_POSITION]
    labels = side.segments.get(BY_SEGMENT, side.segments.get(BY_DOCUMENT, ()))
    names = list(dict.fromkeys(labels))
    if counted := all(map(WHOLE.fullmatch, names)):
        names.sort(key=int)
    place_of = {name: place for place, name in enumerate(names, 1)}
    places = [place_of[label] for label in labels]
    if not counted:
        _check_order(side, places)
    return tuple(map(str, places))


def _check_order(side: LongTable, places: Sequence[int]) -> None:
    """Refuse rows whose segments do not stand in one order for every system and every rater.

    A segment that a system has already begins the pass of the next rater. Within a pass places must rise, as scores
    without labels can only be matched by their order.
    """
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


def _check_first(scored: _Side, rated: _Side) -> None:
    """Refuse segments that are numbered from 0 on one side and from 1 on the other, as many in each document.

    Most numbers would match, each score beside the rating of the next segment.
    """
    own, other = _ends(scored.segments), _ends(rated.segments)
    shared = [(own[document], other[document]) for document in own.keys() & other.keys()]
    if any(ends[1] - ends[0] != those[1] - those[0] for ends, those in shared):
        return
    first = {(ends[0], those[0]) for ends, those in shared}
    if first in ({(0, 1)}, {(1, 0)}):
        from_0, from_1 = (scored, rated) if first == {(0, 1)} else (rated, scored)
        raise DataError(
            f"{from_0.table.name} numbers segments from 0, {from_1.table.name} from 1, and both have as many: scores "
            f"would be laid beside the ratings of the next segment; number both alike"
        )


def _ends(labels: Collection[str]) -> dict[str, tuple[int, int]]:
    """The lowest and highest number of the segments of each document; none unless all are whole numbers."""
    numbers: dict[str, list[int]] = {}
    for label in set(labels):
        document, _, number = label.rpartition(":")
        if not WHOLE.fullmatch(number):
            return {}
        numbers.setdefault(document, []).append(int(number))
    return {document: (min(those), max(those)) for document, those in numbers.items()}


def _common(
    scored: _Side, rated: _Side, ratings: FloatArray, without: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Systems and segments that both sides have, in the order of the gold side, and notes on what was left out."""
    answered = [output for output, value in zip(rated.outputs, ratings, strict=True) if not math.isnan(value)]
    judged, known = dict.fromkeys(system for system, _ in answered), dict.fromkeys(scored.table.systems)
    systems = tuple(system for system in judged if system in known and system not in without)
    if len(systems) < 2:
        raise DataError(
            f"{'one system has' if systems else 'no system has'} scores in {scored.table.name} and ratings in "
            f"{rated.table.name}, and two are needed, since systems are compared; the scores are of "
            f"{', '.join(known)[:200]}, the ratings of {', '.join(judged)[:200] or 'none'}: give the scores of another "
            f"system too, and name the systems alike"
        )
    asked, there = (
        dict.fromkeys(segment for system, segment in outputs if system in systems)
        for outputs in (answered, scored.outputs)
    )
    segments = tuple(segment for segment in asked if segment in there)
    if not segments:
        raise DataError(
            f"{scored.table.name} and {rated.table.name} have no segment in common for {', '.join(systems)[:200]}: "
            f"label segments alike"
        )
    left_out = {
        "without scores": [name for name in judged if name not in known and name not in without],
        "without ratings": [name for name in known if name not in judged and name not in without],
        "on request": list(dict.fromkeys(without)),
    }
    notes = [f"systems left out, {why}: {', '.join(names)}" for why, names in left_out.items() if names]
    more = {"scores": len(asked) - len(segments), "ratings": len(there) - len(segments)}
    notes += [f"segments left out, without {what}: {number}" for what, number in more.items() if number]
    return systems, segments, notes


def _check_single(scored: _Side, systems: Collection[str]) -> None:
    """Refuse two rows of scores of one output: several runs of a judge have more than one sensible aggregate."""
    again = _repeated(output if output[0] in systems else None for output in scored.outputs)
    if again is not None:
        (system, segment), (first, second) = scored.outputs[again[0]], (scored.table.places[place] for place in again)
        raise DataError(
            f"{second}: {system!r} has scores of segment {segment!r} already ({first}); one row by output is allowed: "
            f"join repeated runs first, or tell segments apart by a column of documents"
        )


def _check_raters(rated: _Side, ratings: FloatArray, systems: Collection[str]) -> None:
    """Refuse two ratings of one output by one rater, if raters are known."""
    if not all(rated.table.raters):
        return
    keys = list(zip(rated.outputs, rated.table.raters, strict=True))
    again = _repeated(
        key if key[0][0] in systems and not math.isnan(value) else None
        for key, value in zip(keys, ratings, strict=True)
    )
    if again is not None:
        ((system, segment), rater), (first, second) = keys[again[0]], (rated.table.places[place] for place in again)
        raise DataError(
            f"{second}: {rater!r} rated {system!r} on segment {segment!r} already ({first}); one row by output and "
            f"rater is allowed: join the two, or tell segments apart by a column of documents"
        )


def _repeated(keys: Iterable[Hashable]) -> tuple[int, int] | None:
    """The places of a key and of its first repetition; None stands for a row that has no key."""
    first: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        if key is not None and first.setdefault(key, place) != place:
            return first[key], place
    return None


def _slots(rated: _Side) -> FloatArray:
    """The rater of each row as a number from 0, in the order of its segment's raters.

    Raters without names are counted within each output.
    """
    named = all(rated.table.raters)
    orders: dict[object, dict[object, int]] = {}
    slots = []
    for index, output in enumerate(rated.outputs):
        order = orders.setdefault(output[1] if named else output, {})
        slots.append(order.setdefault(rated.table.raters[index] if named else index, len(order)))
    return np.array(slots, dtype=float)


def _documents(scored: _Side, rated: _Side, segments: Sequence[str]) -> tuple[str, ...]:
    """The document of each segment, as the gold side says or else the other; empty if one is not known."""
    known: dict[str, str] = {}
    for side in (rated, scored):
        for segment, document in zip(side.segments, side.table.documents, strict=True):
            if document:
                known.setdefault(segment, document)
    return tuple(known[segment] for segment in segments) if known.keys() >= set(segments) else ()


def _gaps(metrics: Mapping[str, FloatArray], gold: FloatArray) -> list[str]:
    """A note for gold, and one for every metric, that lacks cells."""
    rated = ~np.isnan(gold)
    notes = [] if rated.all() else [f"outputs without a rating, which take no part: {(~rated).sum()} of {gold.size}"]
    missing = {name: int((rated & np.isnan(values)).sum()) for name, values in metrics.items()}
    lacking = (
        f"{name}: no score for {cells} of {rated.sum()} rated outputs" for name, cells in missing.items() if cells
    )
    return [*notes, *lacking]
