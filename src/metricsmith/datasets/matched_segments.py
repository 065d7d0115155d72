"""Segments of two long tables, each labelled in its own way -> the same names on both sides."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from metricsmith.datasets.long_tables import BY_DOCUMENT, BY_POSITION, BY_SEGMENT, LongTable
from metricsmith.datasets.score_files import pivot
from metricsmith.errors import DataError
from metricsmith.stats.correlation import FloatArray

__all__ = ["MatchedSide", "match_segments"]

WHOLE = re.compile(r"[0-9]+")


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


def match_segments(scored: LongTable, rated: LongTable) -> tuple[MatchedSide, MatchedSide, str]:
    """Both sides with the same names of segments, and a note on how these were found."""
    if BY_POSITION in scored.segments or BY_POSITION in rated.segments:
        own, other = _positions(scored), _positions(rated)
        if len(set(own)) != len(set(other)):
            raise DataError(
                f"{scored.name} has {len(set(own))} segments, {rated.name} has {len(set(other))}; scores without "
                f"labels belong to segments by their position, so that the numbers must be equal: give both for the "
                f"same segments, or tables with a column of segments"
            )
        return MatchedSide(scored, own), MatchedSide(rated, other), "segments were matched by position"
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
    sides = MatchedSide(scored, scored.segments[own_kind]), MatchedSide(rated, rated.segments[other_kind])
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


def _check_first(scored: MatchedSide, rated: MatchedSide) -> None:
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
