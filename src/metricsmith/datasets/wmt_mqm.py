"""Translations with MQM error spans by professional raters, one row by rating.

Freitag et al. (2021), "Experts, Errors, and Context: A Large-Scale Study of Human Evaluation for Machine Translation",
arXiv 2104.14478, and the later collections in the same form. The data are not part of this package.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from metricsmith.datasets.cells import cell_text
from metricsmith.datasets.columns import Columns
from metricsmith.datasets.formats import decode, table_suffix, unzip
from metricsmith.datasets.history import equal_systems
from metricsmith.datasets.mqm_tsv import COUNTS, MarkedRating, parse_mqm_tsv
from metricsmith.datasets.raters import People, check_averaging
from metricsmith.datasets.sources import RawTable, open_source, read_bytes
from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, nearest
from metricsmith.metric import make_row
from metricsmith.mqm import MQMWeights, mqm_score, severity_name
from metricsmith.records import ErrorSpan, Scale, Task
from metricsmith.stats.ceiling import Averaging, average_ratings

__all__ = ["COLUMNS", "DESCRIPTION", "TARGET", "MarkedRatings", "read_marked_ratings", "read_wmt_mqm"]

TARGET = "mqm"
"""Name of the rating: the MQM score, 0 or below, higher is better."""

COLUMNS = ("system", "doc", "doc_seg_id", "rater", "source", "target", "errors")
"""The columns that a JSON Lines file of parsed ratings must have."""

DESCRIPTION = (
    "A system translates a segment of a document. A good translation says what the source says, no more and no less, "
    "in correct and natural language. The rating takes off points for every error, more for worse ones."
)


@dataclass(frozen=True, slots=True)
class MarkedRatings:
    """All ratings of a file.

    Parameters
    ----------
    name : str
        The path as given.
    ratings : tuple of MarkedRating
        In the order of the file.
    counts : mapping of str to int
        The number of lines that were dropped, repaired or look odd, by the names in `mqm_tsv.COUNTS`, zeros left out.
    checksum : str
        16 hex digits of the sha256 of the file's bytes.
    """

    name: str
    ratings: tuple[MarkedRating, ...] = field(repr=False)
    counts: Mapping[str, int]
    checksum: str

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order in which they first appear."""
        return tuple(dict.fromkeys(rating.system for rating in self.ratings))


def read_marked_ratings(source: str | os.PathLike[str]) -> MarkedRatings:
    """Read a file of MQM ratings, without scoring them.

    Parameters
    ----------
    source : path
        A published TSV file of either generation (`mqm_tsv`), or JSON Lines with the columns of `COLUMNS`, in which
        ``errors`` is a list of objects with ``severity``, ``category``, ``start``, ``end``, ``span`` and ``side``;
        both also with ``.gz``.

    Raises
    ------
    DataError
        If the file cannot be read: not UTF-8, no ratings, a column or field missing, a severity unknown, offsets that
        do not fit the text. It names the line.
    """
    path = Path(source)
    if table_suffix(path) in (".jsonl", ".ndjson", ".json"):
        raw = open_source(path)
        ratings, counts = _from_records(raw)
        return MarkedRatings(str(path), ratings, counts, raw.checksum)
    if path.name.lower().endswith((".tar.gz", ".tgz", ".zip")):
        raise DataError(f"{path} is an archive; a .tsv or .tsv.gz file is needed: unpack it and give the file in it")
    content = read_bytes(path)
    ratings, counts = parse_mqm_tsv(str(path), decode(path, unzip(path, content)))
    if not ratings:
        raise DataError(f"{path} holds no rating: only a header, attention tests or metadata; check the download")
    return MarkedRatings(str(path), ratings, counts, hashlib.sha256(content).hexdigest()[:16])


def read_wmt_mqm(
    source: str | os.PathLike[str],
    *,
    weights: MQMWeights | None = None,
    references: str | Sequence[str] = (),
    scale: Scale | None = None,
    raters: Averaging | None = None,
    task: str = DESCRIPTION,
) -> Table:
    """Read a file of MQM ratings and score them.

    Parameters
    ----------
    source : path
        As for `read_marked_ratings`.
    weights : MQMWeights, optional
        What each error costs; default `MQMWeights.wmt`.
    references : str or sequence of str
        Systems that are people's translations: what they say about a segment is a reference for all other systems.
        They keep their rows.
    scale : Scale, optional
        Of the rating. By default it ends at 0 and begins at the weights' cap; without a cap, at the worst of the
        ratings read, but not above -25.
    raters : str, optional
        ``mean`` or ``median``: a row is an output with the average of its ratings, and the table has `people` and
        their ceiling, as `read_table` gives both. By default a row is a rating, with its spans: what several raters
        marked has no average.
    task : str
        What the systems do and what a good translation is, in plain words.

    Returns
    -------
    Table
        One row by rating: ``output`` is the translation, ``input`` the source; labels are ``mqm`` (the score),
        ``spans`` (tuple of ErrorSpan), ``system``, ``rater``, ``slot``, ``doc``, ``segment``, ``language_pair`` where
        the file has it, ``id``, and the segment as ``group``. Rows by output, in the order of their first ratings, lack
        ``spans``, ``rater`` and ``slot``. Notes count everything that was dropped or repaired.

    Raises
    ------
    DataError
        As for `read_marked_ratings`; also if no system has the name of a reference.
    OptionError
        If `raters` is unknown.
    """
    if raters is not None:
        check_averaging(raters, "none")
    marked = read_marked_ratings(source)
    weights = weights or MQMWeights.wmt()
    texts = _reference_texts(marked, (references,) if isinstance(references, str) else tuple(references))
    scores = [mqm_score(rating.spans, weights) for rating in marked.ratings]
    lowest = weights.cap if weights.cap is not None else max(25.0, -min(scores))
    rows = [_row(rating, score, texts) for rating, score in zip(marked.ratings, scores, strict=True)]
    people, system = None, None
    if raters is not None:
        rows, people = _by_output(rows, raters)
        scores, system = [float(row[TARGET]) for row in rows], "system"
    return Table(
        task=Task(task, TARGET, scale or Scale(-lowest, 0.0)),
        rows=rows,
        ratings=np.array(scores, dtype=float),
        columns=Columns(target=TARGET, output="target", inputs=("source",), system=system),
        notes=(
            *_notes(marked, weights),
            *([] if people is None else [f"{len(rows)} outputs: {people}"]),
            *_alike(marked),
        ),
        metric_values={},
        prior=(),
        checksum=marked.checksum,
        name=marked.name,
        people=people,
    )


def _row(rating: MarkedRating, score: float, texts: Mapping[str, Mapping[str, str]]) -> dspy.Example:
    labels: dict[str, Any] = {
        "id": f"{rating.system}|{rating.item}|{rating.rater}",
        "group": rating.item,
        "system": rating.system,
        "rater": rating.rater,
        "slot": rating.slot,
        "doc": rating.doc,
        "segment": rating.segment,
        "spans": rating.spans,
        TARGET: score,
    }
    if rating.language_pair:
        labels["language_pair"] = rating.language_pair
    references = [text for system, text in texts.get(rating.item, {}).items() if system != rating.system]
    return make_row(rating.target, input=rating.source, references=references, **labels)


def _by_output(rows: Sequence[dspy.Example], average: Averaging) -> tuple[list[dspy.Example], People]:
    """The first row of each output, with the average of its ratings, and who gave them."""
    found: dict[tuple[str, str], list[dspy.Example]] = {}
    for row in rows:
        found.setdefault((row["system"], row["group"]), []).append(row)
    outputs = []
    for (system, item), rated in found.items():
        mean = float(average_ratings(np.array([row[TARGET] for row in rated]), average))
        outputs.append(rated[0].without("spans", "rater", "slot").copy(**{"id": f"{system}|{item}", TARGET: mean}))
    return outputs, People(tuple({row["rater"]: row[TARGET] for row in rated} for rated in found.values()), average)


def _reference_texts(marked: MarkedRatings, references: Sequence[str]) -> dict[str, dict[str, str]]:
    """The translations of the reference systems, by item and system."""
    for name in references:
        if name not in marked.systems:
            raise DataError(
                f"{marked.name}: no system {name!r}{nearest(name, marked.systems)}; the systems are "
                f"{', '.join(marked.systems)}: name some of these as references"
            )
    texts: dict[str, dict[str, str]] = {}
    for rating in marked.ratings:
        if rating.system in references:
            texts.setdefault(rating.item, {}).setdefault(rating.system, rating.target)
    return {item: {name: by[name] for name in references if name in by} for item, by in texts.items()}


def _notes(marked: MarkedRatings, weights: MQMWeights) -> list[str]:
    spans = [span for rating in marked.ratings for span in rating.spans]
    sources = sum(span.side == "source" for span in spans)
    cost = ", ".join(f"{name} {getattr(weights, name):g}" for name in ("critical", "major", "minor", "neutral"))
    rules = [f"{rule.severity} {rule.category} {rule.weight:g}" for rule in weights.rules]
    rules += [] if weights.non_translation is None else [f"non-translation {weights.non_translation:g}"]
    return [
        f"{len(marked.ratings)} ratings of {len(marked.systems)} systems with {len(spans)} errors, {sources} of them "
        f"marked in the source",
        f"points taken off: {', '.join([cost, *rules])}",
        *(f"{marked.counts[name]} {words}" for name, words in COUNTS.items() if marked.counts.get(name)),
    ]


def _alike(marked: MarkedRatings) -> list[str]:
    """A note for every two systems whose outputs are equal wherever both were rated."""
    outputs: dict[str, dict[str, str]] = {}
    for rating in marked.ratings:
        outputs.setdefault(rating.system, {})[rating.item] = rating.target
    return [
        f"{one!r} and {other!r} are the same in all {shared} segments that both have: whoever holds out "
        f"one system must hold out the other with it"
        for one, other, shared in equal_systems(outputs)
    ]


def _from_records(raw: RawTable) -> tuple[tuple[MarkedRating, ...], Counter[str]]:
    raw.require_all(COLUMNS, "parsed ratings", "give the published TSV file")
    counts: Counter[str] = Counter()
    slots: dict[tuple[str, str], dict[str, int]] = {}
    ratings: dict[tuple[str, ...], MarkedRating] = {}
    for index in range(len(raw)):
        label = {name: cell_text(cells[index]) for name, cells in raw.columns.items() if name != "errors"}
        system, doc, segment, rater = key = tuple(label[name] for name in COLUMNS[:4])
        if key in ratings:
            raise DataError(
                f"{raw.place(index)}: {rater!r} rated {system!r} on segment {segment} of {doc!r} before; one row by "
                f"rating is allowed: merge the two, or tell them apart by their rater"
            )
        raters = slots.setdefault((doc, segment), {})
        ratings[key] = MarkedRating(
            system=system,
            doc=doc,
            doc_segment=segment,
            segment=label.get("segment_id", ""),
            rater=rater,
            source=label["source"],
            target=label["target"],
            spans=_spans(raw, index),
            slot=raters.setdefault(rater, len(raters)),
            language_pair=label.get("lp", ""),
        )
        counts["no_error"] += not ratings[key].spans
        test = label.get("hotw", "").casefold()
        counts["missed" if test == "missed" else "found"] += bool(test)
    return tuple(ratings.values()), +counts


def _spans(raw: RawTable, index: int) -> tuple[ErrorSpan, ...]:
    """The errors in row `index`, checked against its texts."""
    texts = {side: cell_text(raw.columns[side][index]) for side in ("source", "target")}
    errors = raw.columns["errors"][index] or []
    try:
        return tuple(_span(error, texts) for error in errors)
    except (DataError, KeyError, TypeError, AttributeError, ValueError) as problem:
        what = f"there is no {problem}" if isinstance(problem, KeyError) else str(problem)
        raise DataError(
            f"{raw.place(index, 'errors')}: {cell_text(errors)[:60]!r} cannot be read: {what}; each error is an object "
            f"with severity, category, start, end, span and side: correct it"
        ) from problem


def _span(error: Mapping[str, Any], texts: Mapping[str, str]) -> ErrorSpan:
    side, start, end, marked = error["side"], error["start"], error["end"], str(error["span"])
    if side not in texts:
        raise ValueError(f"the side is {side!r}, neither source nor target")
    if (start is None) != (end is None) or (start is not None and texts[side][start:end] != marked):
        raise ValueError(f"the {side} has {texts[side][start:end]!r} from {start} to {end}, not {marked!r}")
    return ErrorSpan(severity_name(error["severity"]), error["category"], start, end, marked, side)
