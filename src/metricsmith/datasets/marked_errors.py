"""Errors that judges and people marked in the same outputs -> both, rating by rating."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metricsmith.datasets.long_tables import LongTable
from metricsmith.datasets.matched_segments import match_segments
from metricsmith.meta_evaluation.marked import COUNTED, MarkedRows
from metricsmith.records import ErrorSpan

__all__ = ["marked_rows"]


def marked_rows(judges: Sequence[LongTable], rated: LongTable, systems: Collection[str]) -> MarkedRows | None:
    """Lay the errors that each judge marked beside those of each rating; an output with two ratings counts twice.

    Errors without a severity that counts are left out, on either side. A judge has nothing on an output that it did
    not judge, or judged in another text. A judge that marks no words at all is left out by name.

    Parameters
    ----------
    judges : sequence of LongTable
        The first metric of each is the judge's name; those without `LongTable.spans` are passed over.
    rated : LongTable
        With `LongTable.spans`, or there is nothing to compare.
    systems : collection of str
        Those that count.

    Returns
    -------
    MarkedRows or None
        None without errors marked by people, or without a judge's.
    """
    judges = [judge for judge in judges if judge.spans]
    if not rated.spans or not judges:
        return None
    counted = [place for place, system in enumerate(rated.systems) if system in systems]
    found: dict[str, list[tuple[ErrorSpan, ...] | None]] = {}
    left_out, notes = [], []
    for judge in judges:
        name = next(iter(judge.columns))
        if not any(
            span.side == "target" and (span.text or span.start is not None)
            for spans in judge.spans
            for span in spans or ()
        ):
            left_out.append(name)
            continue
        own, gold, _ = match_segments(judge, rated)
        place_of = {output: place for place, output in enumerate(own.outputs)}
        places = [place_of.get(gold.outputs[place]) for place in counted]
        alike = [at is None or judge.texts[at] == rated.texts[place] for at, place in zip(places, counted, strict=True)]
        found[name] = [
            _counted(judge.spans[at]) if same and at is not None else None
            for at, same in zip(places, alike, strict=True)
        ]
        if not all(alike):
            apart = f"{alike.count(False)} of {len(alike)} ratings"
            notes.append(f"{name}: the text that was judged is not the one that people rated: {apart}")
    return MarkedRows(
        found,
        tuple(_counted(rated.spans[place]) for place in counted),
        tuple(rated.texts[place] for place in counted),
        tuple(rated.documents[place] for place in counted),
        tuple(left_out),
        tuple(notes),
    )


def _counted(spans: tuple[ErrorSpan, ...] | None) -> tuple[ErrorSpan, ...] | None:
    return None if spans is None else tuple(span for span in spans if span.severity.lower() in COUNTED)
