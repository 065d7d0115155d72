"""Tables, score files of mt-metrics-eval and MQM ratings -> long tables of scores, one row by output (and rater)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from metricsmith.datasets.cells import cell_number, mostly
from metricsmith.datasets.columns import SYNONYMS
from metricsmith.datasets.formats import table_suffix, unzip
from metricsmith.datasets.labelled_scores import BY_DOCUMENT, BY_POSITION, BY_SEGMENT, LongTable
from metricsmith.datasets.score_columns import read_numbers
from metricsmith.datasets.score_files import gold_name, read_documents, read_scores
from metricsmith.datasets.sources import RawTable, open_source, read_bytes
from metricsmith.datasets.span_ratings import ESA_COLUMNS, RATING_SUFFIX, read_span_ratings
from metricsmith.datasets.wmt_mqm import COLUMNS, TARGET, read_wmt_mqm
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.mqm import MQMWeights
from metricsmith.stats.correlation import FloatArray

__all__ = [
    "JUDGED", "RUNS", "check_metrics", "judge_name", "read_gold", "score_file_metrics", "table_metrics",
    "with_documents",
]  # fmt: skip

SUFFIX = ".seg.score"
ROLES: Mapping[str, tuple[str, ...]] = {
    "system": ("system", "system_id", "system_name", "model", "model_name"),
    "segment": ("segment", "segment_id", "seg_id", "seg", "item", "item_id", "source_id", "prompt_id", "group"),
    "document": ("doc", "document", "doc_id", "document_id"),
    "rater": ("rater", "rater_id", "annotator", "annotator_id"),
}
"""Column names that stand for each label, the likeliest first, in lower case.

They are fixed: an option for every label of both files would be six options.
"""

GOLD = ("mqm", "gold", *SYNONYMS["target"])
NO_METRIC = frozenset({*(name for names in ROLES.values() for name in names), "id", "row", "run", "seed", "slot"})
CORRECT_THE_CELL = (
    "scores are numbers, or blank cells: correct the cell, or choose other columns with metrics=... or target=... "
    "(--metric, --target)"
)
JUDGED, JUDGE, RUNS = "raw", "metric", "runs"  # the columns of a judge's own numbers, of its name and of single runs
BY_JUDGE = {JUDGED, "score", "half_width", "kept"}  # columns that `metricsmith mqm` writes
NO_SCORE = {*BY_JUDGE, "delta"}


def table_metrics(raw: RawTable, names: Sequence[str] = (), *, but: Collection[str] = ()) -> LongTable:
    """Scores of metrics out of a table; the other arguments and errors are those of `read_metrics`."""
    allowed = [name for name in raw.columns if name.casefold() not in NO_METRIC and name not in but]
    check_metrics(names, allowed, raw.name)
    found = list(names) or [name for name in allowed if mostly(cell_number, raw.columns[name])]
    by_judge = not names and JUDGED in allowed and RUNS in raw.columns
    if not names and (by_judge or JUDGED in found):
        found = [JUDGED, *(name for name in found if name not in NO_SCORE)]
    if not found:
        raise DataError(
            f"{raw.name}: no column of numbers beside the labels; the columns are {', '.join(list(raw.columns)[:20])}: "
            f"add one with a metric's scores, or name one with metrics=... (--metric)"
        )
    table = _from_table(raw, tuple(dict.fromkeys(found)), rated=False)
    if by_judge or (found == [JUDGED] and not names):
        table = replace(table, columns={judge_name(raw): table.columns.pop(JUDGED)} | table.columns)
    return table


def judge_name(raw: RawTable) -> str:
    """The name of the judge whose own file this is: that of its column ``metric``, else that of the file."""
    named = set(raw.texts(JUDGE)) if JUDGE in raw.columns else set()
    name = named.pop() if len(named) == 1 else ""
    return name or Path(raw.name).name.removesuffix(".gz").rpartition(".")[0]


def read_gold(path: Path, target: str | None = None, weights: MQMWeights | None = None) -> LongTable:
    """Read ratings from a table, a score file, or a file of ratings with marked errors.

    Parameters
    ----------
    path : Path
        A table as in `read_metrics`, perhaps with several rows by output; a ``.seg.score`` file, whose name names the
        rating (`gold_name`); MQM ratings as `read_wmt_mqm` takes them; or ratings as `read_span_ratings` does.
    target : str, optional
        A table's column of ratings; guessed from its name by default.
    weights : MQMWeights, optional
        For MQM ratings, default `MQMWeights.wmt`, and for a ``.seg.rating`` file.

    Raises
    ------
    DataError
        As in `read_metrics`; also if no column can be the rating, or if a judge's own scores would be guessed to be.
    OptionError
        If `target` or `weights` is given for a file to which it does not apply.
    """
    kind = _gold_kind(path)
    if kind != "a table" and target is not None:
        raise OptionError(f"target={target!r} (--target) names a column of a table, and {path} is {kind}: leave it out")
    if kind not in ("MQM ratings", "a rating file") and weights is not None:
        raise OptionError(f"weights (--weights) are for MQM ratings, and {path} is {kind}: leave them out")
    if kind == "MQM ratings":
        return _from_mqm(path, weights)
    if kind in ("a rating file", "ESA ratings"):
        return read_span_ratings(path, weights=weights)
    if kind == "a score file":
        scored = score_file_metrics(path)
        return replace(scored, columns={gold_name(path): next(iter(scored.columns.values()))})
    raw = open_source(path)
    column = _label(raw, "rating", GOLD) if target is None else raw.require(target, "target=... (--target)")
    if target is None and column in BY_JUDGE and set(raw.columns) >= BY_JUDGE:
        raise DataError(
            f"{raw.name} holds the scores of a judge (written by `metricsmith mqm`), no ratings: give it first, as "
            f"SCORES, and the ratings second; target={column!r} (--target) takes it for the gold side all the same"
        )
    found = _from_table(raw, (column,), rated=True)
    guess = f"the rating is column {column!r} (name another with target=... or --target)"
    return found if target is not None else replace(found, notes=(*found.notes, guess))


def with_documents(path: Path, *sides: LongTable) -> list[LongTable]:
    """Give the scores of score files the documents that a file names, a line for each segment.

    Raises
    ------
    DataError
        If the file cannot be read, has not as many lines as there are segments, or a line is blank.
    OptionError
        If no side is a score file.
    """
    if not any(BY_POSITION in side.segments for side in sides):
        raise OptionError(
            f"documents={str(path)!r} (--documents) is for score files, and segments have labels here: leave it out; "
            f"name documents in a column {ROLES['document'][0]!r} of the table"
        )
    found = []
    for side in sides:
        places = side.segments.get(BY_POSITION, ())
        if places:
            named = read_documents(path, len(set(places)))
            if "" in named:
                raise DataError(
                    f"{path}, line {named.index('') + 1}: the document is blank; name one by line: fill it in"
                )
            side = replace(side, documents=tuple(named[int(place) - 1] for place in places))
        found.append(side)
    return found


def _gold_kind(path: Path) -> str:
    if path.name.endswith(".score"):
        return "a score file"
    if path.name.endswith(RATING_SUFFIX):
        return "a rating file"
    if path.is_dir():
        raise DataError(f"{path} is a folder; the gold ratings are one file: name it")
    head = unzip(path, read_bytes(path)).partition(b"\n")[0].decode("utf-8", "replace").strip()
    if table_suffix(path) in (".jsonl", ".ndjson", ".json"):
        if all(f'"{column}"' in head for column in ESA_COLUMNS):
            return "ESA ratings"
        marked = all(f'"{column}"' in head for column in COLUMNS)
    else:
        marked = {"category", "severity"} <= set(head.casefold().split("\t")) and "rater" in head.casefold()
    return "MQM ratings" if marked else "a table"


def _from_mqm(path: Path, weights: MQMWeights | None) -> LongTable:
    table = read_wmt_mqm(path, weights=weights)
    systems, items, numbers, documents, raters = (
        tuple(str(row[label]) for row in table.rows) for label in ("system", "group", "segment", "doc", "rater")
    )
    segments = {BY_DOCUMENT: items}
    if all(numbers) and _told_apart(numbers, items):
        segments[BY_SEGMENT] = numbers
    places = tuple(f"{path}, rating {row['id']!r}" for row in table.rows)
    return LongTable(
        str(path), table.checksum, {TARGET: table.ratings}, systems, segments, documents, raters, places, table.notes,
        tuple(row.output for row in table.rows), tuple(row["spans"] for row in table.rows),
    )  # fmt: skip


def score_file_metrics(path: Path, names: Sequence[str] = ()) -> LongTable:
    """Scores of metrics out of a score file or a folder of these; names and errors are those of `read_metrics`."""
    files = _score_files(path, names)
    scores: dict[str, dict[str, FloatArray]] = {}
    digest = hashlib.sha256()
    length: int | None = None
    for name, file in files.items():
        scores[name] = read_scores(file, length=length)
        length = next(iter(scores[name].values())).size
        digest.update(read_bytes(file))
    systems = list(dict.fromkeys(system for found in scores.values() for system in found))
    blank = np.full(length or 0, math.nan)
    positions = [str(place) for place in range(1, 1 + (length or 0))]
    rows = [(system, place) for system in systems for place in positions]
    columns = {name: np.concatenate([own.get(system, blank) for system in systems]) for name, own in scores.items()}
    places = tuple(f"{path}, score {place} of {system!r}" for system, place in rows)
    unknown = ("",) * len(rows)
    return LongTable(
        str(path), digest.hexdigest()[:16], columns, tuple(system for system, _ in rows),
        {BY_POSITION: tuple(place for _, place in rows)}, unknown, unknown, places,
    )  # fmt: skip


def _score_files(path: Path, names: Sequence[str]) -> dict[str, Path]:
    """The files of the metrics wanted, by metric."""
    if path.is_dir():
        found = {file.name.removesuffix(SUFFIX): file for file in sorted(path.glob(f"*{SUFFIX}"))}
        if not found:
            seen = ", ".join(sorted(entry.name for entry in path.iterdir())[:4]) or "nothing"
            raise DataError(
                f"{path} has no file *{SUFFIX}, but {seen}; a folder of score files by segment is needed, such as "
                f"metric-scores/en-de of mt-metrics-eval: name that, or one file"
            )
    elif not path.name.endswith(SUFFIX):
        raise DataError(
            f"{path}: scores by segment are needed, in a file that ends in {SUFFIX}; scores by document or system say "
            f"too little: name the file by segment"
        )
    else:
        found = {path.name.removesuffix(SUFFIX): path}
    check_metrics(names, found, str(path))
    return {name: file for name, file in found.items() if not names or name in names}


def check_metrics(names: Sequence[str], known: Collection[str], where: str) -> None:
    """Refuse, with an `OptionError`, a name that no metric has."""
    for name in names:
        if name not in known:
            raise OptionError(
                f"{where}: no metric {name!r}{nearest(name, known)}; there are {', '.join(list(known)[:20])}; "
                f"name some of these with metrics=... (--metric)"
            )


def _from_table(raw: RawTable, names: tuple[str, ...], *, rated: bool) -> LongTable:
    systems = _filled(raw, _label(raw, "system", ROLES["system"]), "system")
    segment = _label(raw, "segment", ROLES["segment"])
    numbers = _filled(raw, segment, "segment")
    document = _first(raw, [name for name in ROLES["document"] if name not in (*names, segment)])
    rater = _first(raw, [name for name in ROLES["rater"] if name not in names]) if rated else None
    documents, raters = (raw.texts(column) if column else ("",) * len(raw) for column in (document, rater))
    alone = _told_apart(numbers, documents)
    if document and not alone and "" in documents:
        raise DataError(
            f"{raw.place(documents.index(''), document)}: the document is blank, and numbers of segments begin anew in "
            f"each document: fill it in"
        )
    segments = {BY_SEGMENT: numbers} if alone else {}
    if all(documents):
        segments[BY_DOCUMENT] = tuple(map(":".join, zip(documents, numbers, strict=True)))
    scores = read_numbers(raw, names, CORRECT_THE_CELL, finite=True)
    places = tuple(map(raw.place, range(len(raw))))
    return LongTable(raw.name, raw.checksum, scores, systems, segments, documents, raters, places, raw.notes)


def _told_apart(numbers: Sequence[str], documents: Sequence[str]) -> bool:
    """True if numbers alone tell segments apart, as no number stands in two documents."""
    return len(set(zip(numbers, documents, strict=True))) == len(set(numbers))


def _label(raw: RawTable, role: str, names: Sequence[str]) -> str:
    """The column of a label that every table must have."""
    found = _first(raw, names)
    if found is None:
        likely = next((hint for name in raw.columns if (hint := nearest(name.casefold(), names[:3]))), "")
        raise DataError(
            f"{raw.name}: no column of the {role}s; the columns are {', '.join(list(raw.columns)[:20])}{likely}; "
            f"recognised are {', '.join(names[:8])}: rename yours"
            + (", or name it with target=... (--target)" if role == "rating" else "")
        )
    return found


def _first(raw: RawTable, names: Sequence[str]) -> str | None:
    """The table's column that has the first of these names, in any case."""
    folded = {name.casefold(): name for name in reversed(raw.columns)}
    return next((folded[name] for name in names if name in folded), None)


def _filled(raw: RawTable, column: str, role: str) -> tuple[str, ...]:
    """The texts of a column of which no cell may be blank."""
    texts = raw.texts(column)
    if "" in texts:
        raise DataError(f"{raw.place(texts.index(''), column)}: the {role} is blank; every row needs one: fill it in")
    return texts
