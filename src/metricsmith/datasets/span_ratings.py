"""Ratings with marked errors -> spans and numbers: rating files of mt-metrics-eval, and the ESA tables of WMT.

A rating file, ``human-scores/SRC-TGT.NAME.seg.rating``, has a line ``SYSTEM<tab>JSON or None[<tab>RATER]`` for each
segment of each system. The JSON's ``errors`` have ``start``, ``end`` (exclusive), ``category``, ``severity``, ``score``
and ``is_source_error`` (ratings.py of google-research/mt-metrics-eval, commit 25fc1fe). It holds no texts and no number
of the rater's: both lie beside it, in the folder of the test set.

The ESA tables (wmt24_esa.jsonl of wmt-conference/wmt24-news-systems) have a rating on each line, with its number
(``esa_score``) and its errors (``esa_spans``: ``start_i``, ``end_i``, both "missing" for an omission, ``severity``).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.datasets.cells import cell_number, cell_text, value_or
from metricsmith.datasets.labelled_scores import BY_DOCUMENT, BY_POSITION, BY_SEGMENT, LongTable
from metricsmith.datasets.score_files import gold_name, numbered, read_documents, read_lines, read_scores
from metricsmith.datasets.sources import RawTable, open_source, read_bytes
from metricsmith.errors import DataError
from metricsmith.mqm import MQMWeights, mqm_score, severity_name
from metricsmith.records import ErrorSpan

__all__ = ["ESA_COLUMNS", "RATING_SUFFIX", "read_span_ratings"]

RATING_SUFFIX = ".seg.rating"
ESA_COLUMNS = ("system", "doc_id", "line_id", "src", "tgt", "annotator", "esa_score", "esa_spans")
"""The columns that an ESA table must have."""

UNDECIDED, OMITTED = "undecided", "missing"  # a severity, and an offset, of ESA tables
COUNTS = {
    "none": "outputs have no rating",
    "clean": "ratings say that there is no error",
    "undecided": "errors have no severity that was decided on: they count as neutral",
    "omitted": "errors mark words that are missing: they count, without a span",
    "clipped": "spans reach beyond the end of the text and were cut",
}


def read_span_ratings(source: str | os.PathLike[str], *, weights: MQMWeights | None = None) -> LongTable:
    """Read a rating file of mt-metrics-eval, or an ESA table of WMT.

    The number of a rating file's rating is that of the score file of the same name beside it, where there is one and no
    `weights` are given, and else minus the weights of its errors. Texts and documents are those of the test set's
    folder, if the file stands in it; without outputs spans have offsets and no text.

    Parameters
    ----------
    source : path
        A ``.seg.rating`` file, or JSON Lines with the columns of `ESA_COLUMNS`.
    weights : MQMWeights, optional
        What each error of a rating file costs; `MQMWeights.wmt` where nothing else gives a number. An ESA table has
        the raters' own numbers, so that they are not used.

    Returns
    -------
    LongTable
        One row by rating, in the order of the file (a rating file's system by system), and one column: NAME of a rating
        file, ``esa`` of an ESA table. NaN is missing. `LongTable.spans` are the marked errors, None where nobody rated.
        Segments are numbers in the whole test set and, if documents are known, ``document:number`` counted in the
        document; alone they are positions.

    Raises
    ------
    DataError
        If a line has another form, systems have different numbers of lines, or the file holds no rating. It names the
        line.
    """
    path, counts = Path(source), Counter[str]()
    if path.name.endswith(RATING_SUFFIX):
        found = _from_lines(path, weights, counts)
    else:
        found = _from_table(open_source(path), counts)
    rated = [spans for spans in found.spans if spans is not None]
    if not rated:
        raise DataError(f"{path} holds no rating; lines of a system and its errors are needed: check the file")
    counts["none"] = len(found.spans) - len(rated)
    counts["clean"] = sum(not spans for spans in rated)
    told = [f"{counts[name]} {words}" for name, words in COUNTS.items() if counts[name]]
    first = f"{len(rated)} ratings of {len({*found.systems})} systems with {sum(map(len, rated))} errors"
    return replace(found, notes=(first, *found.notes, *told))


def _from_lines(path: Path, weights: MQMWeights | None, counts: Counter[str]) -> LongTable:
    lines: dict[str, list[tuple[int, str, str]]] = {}
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not cells[0]:
            raise DataError(
                f"{path}, line {number}: {len(cells)} fields, seen {line[:40]!r}; a system, a rating as JSON or None, "
                f"and perhaps a rater are needed, separated by tabs: correct the line"
            )
        lines.setdefault(cells[0], []).append((number, cells[1], cells[2] if len(cells) == 3 else ""))
    length = len(next(iter(lines.values()), ()))
    for system, own in lines.items():
        if len(own) != length:
            raise DataError(
                f"{path}, line {own[-1][0]}: system {system!r} has {len(own)} lines, the first one {length}; one for "
                f"each segment is needed: restore the missing lines, None where there is no rating"
            )
    sources, outputs, documents, notes = _folder(path, tuple(lines), length)
    scored = path.with_suffix(".score")
    scores = read_scores(scored, length=length, systems=lines) if weights is None and scored.exists() else None
    costs = weights or MQMWeights.wmt()
    marked: list[tuple[ErrorSpan, ...] | None] = []
    for system, own in lines.items():
        texts = zip(own, sources, outputs.get(system, sources), strict=True)
        for (number, text, _), source, target in texts:
            place = f"{path}, line {number}"
            errors = None if text == "None" else _errors(place, text)
            marked.append(
                None if errors is None else tuple(_span(place, one, source, target, counts) for one in errors)
            )
    if scores is None:
        cost = ", ".join(f"{name} {getattr(costs, name):g}" for name in ("critical", "major", "minor", "neutral"))
        notes.append(f"the rating is minus the points of the marked errors: {cost}")
        values = [math.nan if spans is None else mqm_score(spans, costs) for spans in marked]
    else:
        notes.append(f"the rating is that of {scored.name}, which lies beside it")
        values = [value for system in lines for value in scores.get(system, np.full(length, math.nan)).tolist()]
    numbers = tuple(str(place) for place in range(1, length + 1)) * len(lines)
    segments = {BY_SEGMENT if documents else BY_POSITION: numbers}
    if documents and all(documents):
        segments[BY_DOCUMENT] = tuple(f"{name}:{number}" for name, number in numbered(documents)) * len(lines)
    rows = [row for own in lines.values() for row in own]
    return LongTable(
        str(path), hashlib.sha256(read_bytes(path)).hexdigest()[:16], {gold_name(path): np.array(values)},
        tuple(system for system, own in lines.items() for _ in own), segments,
        (documents or ("",) * length) * len(lines), tuple(rater for *_, rater in rows),
        tuple(f"{path}, line {number}" for number, *_ in rows), tuple(notes),
        tuple(text for system in outputs for text in outputs[system]), tuple(marked),
    )  # fmt: skip


def _folder(
    path: Path, systems: Sequence[str], length: int
) -> tuple[Sequence[str | None], dict[str, tuple[str, ...]], tuple[str, ...], list[str]]:
    """Source, outputs by system and documents that lie beside a rating file, and a note on texts that do not."""
    root, pair = path.parent.parent, path.name.partition(".")[0]
    source, documents = root / "sources" / f"{pair}.txt", root / "documents" / f"{pair}.docs"
    outputs = {system: root / "system-outputs" / pair / f"{system}.txt" for system in systems}
    names = read_documents(documents, length) if documents.exists() else ()
    lacking = [file for file in (source, *outputs.values()) if not file.exists()]
    if lacking:
        return [None] * length, {}, names, [f"marked errors have no texts, since there is no {lacking[0]}"]
    return read_lines(source, length), {name: read_lines(file, length) for name, file in outputs.items()}, names, []


def _errors(place: str, text: str) -> list[Any]:
    try:
        rating = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{place}: {text[:40]!r} is not JSON ({problem}); give a rating or None: restore it") from None
    errors = rating.get("errors") if isinstance(rating, dict) else None
    if not isinstance(errors, list):
        raise DataError(f"{place}: {text[:40]!r} has no list of errors; an object with 'errors' is needed: restore it")
    return errors


def _span(place: str, error: Any, source: str | None, target: str | None, counts: Counter[str]) -> ErrorSpan:
    """An error as an `ErrorSpan`, its keys as in either form."""
    keys = error if isinstance(error, dict) else {}
    ends: list[Any] = [keys.get(name, keys.get(f"{name}_i")) for name in ("start", "end")]
    start, end = ends
    severity, of_source = keys.get("severity"), keys.get("is_source_error", False)
    category = keys.get("category") or keys.get("error_type") or ""
    omitted = start == end == OMITTED
    placed = type(start) is type(end) is int and 0 <= start <= end
    if not (omitted or placed) or not isinstance(severity, str) or not isinstance(of_source, bool):
        raise DataError(
            f"{place}: the error {cell_text(error)[:80]!r} cannot be read; it needs start and end, whole numbers "
            f"with 0 <= start <= end, a severity, and is_source_error as true or false: correct it"
        )
    if severity.casefold() == UNDECIDED:
        counts["undecided"] += 1
        severity = "neutral"
    try:
        known = severity_name(severity)
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from None
    bare = ErrorSpan(known, str(category), side="source" if of_source else "target")
    if omitted:
        counts["omitted"] += 1
        return bare
    text = source if of_source else target
    if text is not None and end > len(text):
        counts["clipped"] += 1
        start, end = min(start, len(text)), len(text)
    marked = "" if text is None else text[start:end]
    return ErrorSpan(known, str(category), start, end, marked, bare.side)


def _from_table(raw: RawTable, counts: Counter[str]) -> LongTable:
    raw.require_all(ESA_COLUMNS, "ESA ratings", "give the published file")
    pairs = sorted(set(raw.texts("langs"))) if "langs" in raw.columns else []
    if len(pairs) > 1:
        raise DataError(
            f"{raw.name} has ratings of {len(pairs)} language pairs ({', '.join(pairs)[:80]}), whose segments have the "
            f"same numbers: give the lines of one"
        )
    systems, documents, numbers, sources, targets, raters = (
        tuple(map(cell_text, raw.columns[name])) for name in ESA_COLUMNS[:6]
    )
    places = tuple(map(raw.place, range(len(raw))))
    scores, marked = [], []
    for index, place in enumerate(places):
        given, errors = raw.columns["esa_score"][index], raw.columns["esa_spans"][index]
        score = value_or(cell_number, given, math.inf)
        if math.isinf(score) or not systems[index] or not numbers[index]:
            raise DataError(
                f"{place}: system {systems[index]!r}, line_id {numbers[index]!r} and esa_score {cell_text(given)!r}; "
                f"the first two are needed, and a number or nothing as the third: correct the line"
            )
        if not isinstance(errors, list | None):
            raise DataError(f"{place}, column 'esa_spans': {cell_text(errors)[:40]!r} is no list of errors: correct it")
        scores.append(score)
        marked.append(tuple(_span(place, one, sources[index], targets[index], counts) for one in errors or ()))
    segments = {BY_SEGMENT: numbers}
    if all(documents):
        segments[BY_DOCUMENT] = tuple(map(":".join, zip(documents, numbers, strict=True)))
    return LongTable(
        raw.name, raw.checksum, {"esa": np.array(scores)}, systems, segments, documents, raters, places, raw.notes,
        targets, tuple(marked),
    )  # fmt: skip
