"""Scores or ratings with the labels of their outputs, and segments that two of them label each in its own way."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metricsmith.datasets.score_files import pivot, read_lines
from metricsmith.errors import DataError, nearest
from metricsmith.records import ErrorSpan
from metricsmith.stats.correlation import FloatArray

if TYPE_CHECKING:
    from metricsmith.datasets.mt_metrics_eval import EvalSet

__all__ = [
    "BY_DOCUMENT", "BY_POSITION", "BY_SEGMENT", "LongTable", "MatchedSide", "match_segments", "match_test_set",
    "repeated_place",
]  # fmt: skip

BY_DOCUMENT, BY_SEGMENT, BY_POSITION = "document and segment", "segment", "position"
WHOLE = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class LongTable:
    """Scores of one or more metrics, or ratings, one row by output (and rater).

    Parameters
    ----------
    name, checksum : str
        The path as given, and 16 hex digits of the sha256 of the bytes.
    columns : dict of str to float array, shape (r,)
        By metric, or by the name of the rating; NaN is missing.
    systems : tuple of str, length r
    segments : mapping of str to tuple of str, length r
        What the segments can be told apart by: `BY_DOCUMENT`, `BY_SEGMENT`, or `BY_POSITION` alone. Public files count
        in the document, in the whole set or both, which no column's name tells.
    documents : tuple of str, length r
        Empty texts where they are not known.
    raters : tuple of str, length r
        Who rated, or which of an output's raters it was; empty texts where that is not known.
    places : tuple of str, length r
        Where each row stands, for errors.
    notes : tuple of str
    texts : tuple of str, length r
        The outputs; empty if they are not known.
    spans : tuple, length r, of (tuple of ErrorSpan or None)
        The errors that are marked in each output, None where nobody judged it; empty if errors are not marked.
    """

    name: str
    checksum: str
    columns: dict[str, FloatArray] = field(repr=False)
    systems: tuple[str, ...] = field(repr=False)
    segments: Mapping[str, tuple[str, ...]] = field(repr=False)
    documents: tuple[str, ...] = field(repr=False)
    raters: tuple[str, ...] = field(repr=False)
    places: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)
    spans: tuple[tuple[ErrorSpan, ...] | None, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class MatchedSide:
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

    def check_single(self, systems: Collection[str]) -> None:
        """Refuse two rows of one output: several runs of a judge have more than one sensible aggregate."""
        again = repeated_place(output if output[0] in systems else None for output in self.outputs)
        if again is not None:
            (system, segment), (first, second) = self.outputs[again[0]], (self.table.places[place] for place in again)
            raise DataError(
                f"{second}: {system!r} has scores of segment {segment!r} already ({first}); one row by output is "
                f"allowed: join repeated runs first, or tell segments apart by a column of documents"
            )


def repeated_place(keys: Iterable[Hashable]) -> tuple[int, int] | None:
    """The places of a key and of its first repetition; None stands for a row that has no key."""
    first: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        if key is not None and first.setdefault(key, place) != place:
            return first[key], place
    return None


def match_segments(scored: Sequence[LongTable], rated: LongTable) -> tuple[list[MatchedSide], MatchedSide, list[str]]:
    """All tables with the same names of segments, those of `rated`, and notes on how these were found.

    Each table of scores is matched on its own, so that they may label segments differently.
    """
    matched = [_match(table, rated) for table in scored]
    names = matched[0][1]
    sides = []
    for table, (own, other, _) in zip(scored, matched, strict=True):
        if other != names:
            name_of = dict(zip(other, names, strict=True))
            own = tuple(name_of.get(label, f"{label} of {table.name}") for label in own)
        sides.append(MatchedSide(table, own))
    return (
        sides,
        MatchedSide(rated, names),
        list(dict.fromkeys(f"segments were matched by {how}" for *_, how in matched)),
    )


def match_test_set(table: LongTable, data: EvalSet) -> MatchedSide:
    """A table of scores with the names of segments of `EvalSet.segments`.

    The table's segments are these (document and number in it, from 1), numbers from 1 in the whole set, or, of a score
    file, all of them in order.

    Raises
    ------
    DataError
        If the table names a system or segment that the test set does not have, its labels fit in two ways, it has two
        rows of one output, or the translation of a row is another than the test set's.
    """
    for place, system in zip(table.places, table.systems, strict=True):
        if system not in data.outputs:
            raise DataError(
                f"{place}: no output of a system {system!r}{nearest(system, data.outputs)} in {data.language_pair}; "
                f"there are {', '.join(data.outputs)[:200]}: name systems as the test set does"
            )
    side = MatchedSide(table, _in_test_set(table, data))
    side.check_single(data.outputs)
    if table.texts:
        _check_translations(side, data)
    return side


def _check_translations(side: MatchedSide, data: EvalSet) -> None:
    """Refuse judgements of other texts: language pairs of one test set often share systems and documents."""
    folder = data.folder / "system-outputs" / data.language_pair
    outputs = {system: read_lines(folder / f"{system}.txt") for system in dict.fromkeys(side.table.systems)}
    place_of = {segment: place for place, segment in enumerate(data.segments)}
    table = side.table
    for row, system, segment, text in zip(table.places, table.systems, side.segments, table.texts, strict=True):
        if text.split() != outputs[system][place_of[segment]].split():
            raise DataError(
                f"{row}: the translation is not the one of {folder / system}.txt, line {place_of[segment] + 1}: name "
                f"the file that was judged from {data.language_pair} of this test set"
            )


def _in_test_set(table: LongTable, data: EvalSet) -> tuple[str, ...]:
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


def _match(scored: LongTable, rated: LongTable) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The names of both tables' segments, and what they are."""
    if BY_POSITION in scored.segments or BY_POSITION in rated.segments:
        own, other = _positions(scored), _positions(rated)
        if len(set(own)) != len(set(other)):
            raise DataError(
                f"{scored.name} has {len(set(own))} segments, {rated.name} has {len(set(other))}; scores without "
                f"labels belong to segments by their position, so that the numbers must be equal: give both for the "
                f"same segments, or tables with a column of segments"
            )
        return own, other, BY_POSITION
    pairs = [(BY_DOCUMENT, BY_DOCUMENT), (BY_SEGMENT, BY_SEGMENT), (BY_SEGMENT, BY_DOCUMENT), (BY_DOCUMENT, BY_SEGMENT)]
    possible = [(own, other) for own, other in pairs if own in scored.segments and other in rated.segments]
    shared = [len(set(scored.segments[own]) & set(rated.segments[other])) for own, other in possible]
    if not max(shared):
        names = [list(dict.fromkeys(next(iter(side.segments.values())))) for side in (scored, rated)]
        seen = [", ".join(own[:3]) or "none" for own in names]
        raise DataError(
            f"{scored.name} and {rated.name} have no segment in common: the one has {seen[0]} ..., the other {seen[1]} "
            f"...; label them alike, and give the document where numbers begin anew in each"
        )
    own_kind, other_kind = possible[shared.index(max(shared))]
    own, other = scored.segments[own_kind], rated.segments[other_kind]
    _check_first(scored.name, own, rated.name, other)
    how = own_kind if own_kind == other_kind else f"{own_kind} in the scores and by {other_kind} in the gold ratings"
    return own, other, how


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


def _check_first(scored: str, own_labels: Collection[str], rated: str, other_labels: Collection[str]) -> None:
    """Refuse two files that number segments from 0 in one and from 1 in the other, as many in each document.

    Most numbers would match, each score beside the rating of the next segment.
    """
    own, other = _ends(own_labels), _ends(other_labels)
    shared = [(own[document], other[document]) for document in own.keys() & other.keys()]
    if any(ends[1] - ends[0] != those[1] - those[0] for ends, those in shared):
        return
    first = {(ends[0], those[0]) for ends, those in shared}
    if first in ({(0, 1)}, {(1, 0)}):
        from_0, from_1 = (scored, rated) if first == {(0, 1)} else (rated, scored)
        raise DataError(
            f"{from_0} numbers segments from 0, {from_1} from 1, and both have as many: scores would be laid beside "
            f"the ratings of the next segment; number both alike"
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
