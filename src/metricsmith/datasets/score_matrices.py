"""Metrics' scores and gold ratings of the same outputs -> aligned matrices, systems by segments."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from metricsmith.datasets.labelled_scores import MatchedSide, match_segments, repeated_place
from metricsmith.datasets.long_tables import check_metrics, read_gold, with_documents
from metricsmith.datasets.metric_files import distinct_metrics, read_metrics
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.evaluation import mean_rating
from metricsmith.meta_evaluation.marked import COUNTED, MarkedRows
from metricsmith.mqm import MQMWeights
from metricsmith.records import ErrorSpan
from metricsmith.stats.correlation import FloatArray

__all__ = ["ScoreMatrices", "read_score_matrices"]


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
    marked : MarkedRows or None
        The errors that judges and people marked in the outputs; None unless both did.
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
    marked: MarkedRows | None = field(default=None, repr=False)


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
    added: Sequence[str | os.PathLike[str]] = (),
    each_run: bool = False,
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
    added : sequence of path
        Further files of scores, such as ``segments.jsonl`` of other judges. Where two files have a metric of one name,
        that of the folder stands before it.
    each_run : bool
        Whether single runs of judges, and what combines them, are metrics too; see `read_metrics`.

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
    but = (rating,) if same else ()
    files = distinct_metrics(read_metrics([Path(scores), *map(Path, added)], metrics, but=but, each_run=each_run))
    if documents is not None:
        rated_table, *files = with_documents(Path(documents), rated_table, *files)
    values = {name: numbers for file in files for name, numbers in file.columns.items()}
    check_metrics(metrics, values, "the files with scores")
    wanted = list(dict.fromkeys(metrics)) or list(values)
    turned = _turned(wanted, rating, lower_is_better)
    _check_systems({system for table in (rated_table, *files) for system in table.systems}, without)
    sides, rated, matching = match_segments(files, rated_table)
    given = rated_table.columns[rating]
    systems, segments, left_out = _common(sides, rated, given, without)
    for side in sides:
        side.check_single(systems)
    _check_raters(rated, given, systems)
    slots = _slots(rated)
    raters = {
        f"slot {slot}": rated.pivot(np.where(slots == slot, given * turned[rating], math.nan), systems, segments)
        for slot in range(int(slots.max()) + 1)
    }
    most = int(np.sum([~np.isnan(matrix) for matrix in raters.values()], axis=0).max())
    ratings = mean_rating(list(raters.values()))
    side_of = {name: side for side in sides for name in side.table.columns}
    matrices = {name: side_of[name].pivot(values[name] * turned[name], systems, segments) for name in wanted}
    marked = _marked(sides, rated, systems)
    roles = ["scores", *(f"added {place}" for place in range(1, len(files))), "gold"]
    return ScoreMatrices(
        metrics=matrices,
        gold=ratings,
        raters=raters if most > 1 else {},
        target=rating,
        systems=systems,
        segments=segments,
        documents=_documents([rated, *sides], segments),
        sources={
            role: f"{Path(table.name).name} sha256:{table.checksum}"
            for role, table in zip(roles, [*files, rated_table], strict=True)
        },
        marked=marked,
        notes=(
            *dict.fromkeys(note for file in files for note in file.notes), *rated_table.notes, *matching, *left_out,
            *(marked.notes if marked else ()),
            *([f"the rating is the mean of an output's ratings, {most} at most"] if most > 1 else []),
            *(f"{name}: lower is better, so its sign is turned round" for name in dict.fromkeys(lower_is_better)),
            *_gaps(matrices, ratings),
        ),
    )  # fmt: skip


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


def _common(
    sides: Sequence[MatchedSide], rated: MatchedSide, ratings: FloatArray, without: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Systems that all sides have, segments that gold and another one have, and notes on what was left out.

    Both stand in the order of the gold side.
    """
    answered = [output for output, value in zip(rated.outputs, ratings, strict=True) if not math.isnan(value)]
    judged = dict.fromkeys(system for system, _ in answered)
    every = dict.fromkeys(system for side in sides for system in side.table.systems)
    shared = set.intersection(*({*side.table.systems} for side in sides))
    known = dict.fromkeys(system for system in every if system in shared)
    names = ", ".join(side.table.name for side in sides)
    systems = tuple(system for system in judged if system in known and system not in without)
    if len(systems) < 2:
        raise DataError(
            f"{'one system has' if systems else 'no system has'} scores in {names} and ratings in {rated.table.name}, "
            f"and two are needed, since systems are compared; the scores are of {', '.join(known)[:200]}, the ratings "
            f"of {', '.join(judged)[:200] or 'none'}: give the scores of another system too, and name the systems alike"
        )
    asked, there = (
        dict.fromkeys(segment for system, segment in outputs if system in systems)
        for outputs in (answered, [output for side in sides for output in side.outputs])
    )
    segments = tuple(segment for segment in asked if segment in there)
    if not segments:
        raise DataError(
            f"{names} and {rated.table.name} have no segment in common for {', '.join(systems)[:200]}: label segments "
            f"alike"
        )
    left_out = {
        "without scores in each file": sorted(every.keys() - known.keys()),
        "without scores": [name for name in judged if name not in every and name not in without],
        "without ratings": [name for name in known if name not in judged and name not in without],
        "on request": list(dict.fromkeys(without)),
    }
    notes = [f"systems left out, {why}: {', '.join(names)}" for why, names in left_out.items() if names]
    more = {"scores": len(asked) - len(segments), "ratings": len(there) - len(segments)}
    notes += [f"segments left out, without {what}: {number}" for what, number in more.items() if number]
    return systems, segments, notes


def _check_raters(rated: MatchedSide, ratings: FloatArray, systems: Collection[str]) -> None:
    """Refuse two ratings of one output by one rater, if raters are known."""
    if not all(rated.table.raters):
        return
    keys = list(zip(rated.outputs, rated.table.raters, strict=True))
    again = repeated_place(
        key if key[0][0] in systems and not math.isnan(value) else None
        for key, value in zip(keys, ratings, strict=True)
    )
    if again is not None:
        ((system, segment), rater), (first, second) = keys[again[0]], (rated.table.places[place] for place in again)
        raise DataError(
            f"{second}: {rater!r} rated {system!r} on segment {segment!r} already ({first}); one row by output and "
            f"rater is allowed: join the two, or tell segments apart by a column of documents"
        )


def _slots(rated: MatchedSide) -> FloatArray:
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


def _documents(sides: Iterable[MatchedSide], segments: Sequence[str]) -> tuple[str, ...]:
    """The document of each segment, as the first side says that knows; empty if one is not known."""
    known: dict[str, str] = {}
    for side in sides:
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


def _marked(judges: Sequence[MatchedSide], rated: MatchedSide, systems: Collection[str]) -> MarkedRows | None:
    """The errors that each judge marked beside those of each rating; an output with two ratings counts twice.

    None unless people and a judge marked errors. Errors without a severity that counts are left out, on either side. A
    judge has nothing on an output that it did not judge, or judged in another text. A judge that marks no words at all
    is left out by name.
    """
    gold = rated.table
    judges = [judge for judge in judges if judge.table.spans]
    if not gold.spans or not gold.texts or not judges:
        return None
    counted = [
        place for place, system in enumerate(gold.systems) if system in systems and gold.spans[place] is not None
    ]
    texts = [gold.texts[place] for place in counted]
    found: dict[str, list[tuple[ErrorSpan, ...] | None]] = {}
    left_out, notes = [], []
    for judge in judges:
        name, spans = next(iter(judge.table.columns)), judge.table.spans
        marks = [span for own in spans for span in own or () if span.side == "target"]
        if not any(span.text or span.start is not None for span in marks):
            left_out.append(name)
            continue
        place_of = {output: place for place, output in enumerate(judge.outputs)}
        places = [place_of.get(rated.outputs[place]) for place in counted]
        alike = [at is None or judge.table.texts[at] == text for at, text in zip(places, texts, strict=True)]
        found[name] = [
            _counted(spans[at]) if same and at is not None else None for at, same in zip(places, alike, strict=True)
        ]
        if not all(alike):
            apart = f"{alike.count(False)} of {len(alike)} ratings"
            notes.append(f"{name}: the text that was judged is not the one that people rated: {apart}")
    return MarkedRows(
        found, tuple(_counted(gold.spans[place]) for place in counted), tuple(texts),
        tuple(gold.documents[place] for place in counted), tuple(rated.segments[place] for place in counted),
        tuple(left_out), tuple(notes),
    )  # fmt: skip


def _counted(spans: tuple[ErrorSpan, ...] | None) -> tuple[ErrorSpan, ...] | None:
    return None if spans is None else tuple(span for span in spans if span.severity.lower() in COUNTED)
