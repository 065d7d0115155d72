"""Translated documents -> one row by segment, each with the whole source document as its context."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dspy

from metricsmith.datasets.cells import cell_text
from metricsmith.datasets.formats import table_suffix
from metricsmith.datasets.score_files import numbered, read_documents, read_lines
from metricsmith.datasets.sources import RawTable, open_source, read_bytes
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import make_row

__all__ = ["COLUMNS", "Translations", "read_translations", "translation_rows"]

MARK = re.compile(r"<v>.*?</v>", re.DOTALL)  # around an error, in files of MQM ratings

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "source": ("source", "src", "input"),
    "translation": ("translation", "target", "tgt", "mt", "output", "hypothesis"),
    "system": ("system", "model"),
    "document": ("doc", "document", "doc_id", "docid"),
    "segment": ("doc_seg_id", "segment", "segment_id", "seg_id"),
    "reference": ("reference", "references", "ref"),
}
"""The roles of a table's columns, and the names by which they are known; source and translation are needed."""


@dataclass(frozen=True)
class Translations:
    """Segments of one or several systems.

    Parameters
    ----------
    rows : list of dspy.Example
        ``input`` is the source segment, ``output`` its translation, ``context`` the whole source document; labels are
        ``id``, ``system``, ``doc``, ``segment`` (from 1 in each document) and ``group``, which is
        ``document:segment``, as in `EvalSet.segments` and MQM files.
    systems, documents : tuple of str
        In the order in which they first appear.
    notes : tuple of str
        What was left out or assumed.
    name, checksum : str
        The files, and 16 hex digits over their bytes.
    """

    rows: list[dspy.Example] = field(repr=False)
    systems: tuple[str, ...]
    documents: tuple[str, ...]
    notes: tuple[str, ...]
    name: str
    checksum: str

    def __len__(self) -> int:
        return len(self.rows)


def translation_rows(
    source: str, translation: str, *, document: str = "document", system: str = "system"
) -> list[dspy.Example]:
    r"""One row for each line of a document and its translation.

    Lines that are blank on both sides are no segments, but count in the numbering, so that groups stay those of the
    gold ratings.

    Parameters
    ----------
    source, translation : str
        Whole documents, line by line.
    document, system : str
        Names.

    Raises
    ------
    DataError
        If the two have different numbers of lines.

    Examples
    --------
    >>> rows = translation_rows("One.\n\nTwo.", "Eins.\n\nZwei.")
    >>> [(row.segment, row.output) for row in rows], rows[0].context
    ([(1, 'Eins.'), (3, 'Zwei.')], 'One.\n\nTwo.')
    """
    lines, translated = source.split("\n"), translation.split("\n")
    if len(lines) != len(translated):
        raise DataError(
            f"the source of {document!r} has {len(lines)} lines and its translation by {system!r} {len(translated)}: "
            "line i of both must belong together; restore the missing lines, blank where there is no text"
        )
    return _rows({document: dict(enumerate(lines, 1))}, {(system, document): dict(enumerate(translated, 1))}, {})


def read_translations(
    source: str | os.PathLike[str],
    targets: Sequence[str | os.PathLike[str]] = (),
    *,
    documents: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    references: Sequence[str | os.PathLike[str]] = (),
) -> Translations:
    """Read line-aligned text files, or one table.

    Parameters
    ----------
    source : path
        With `targets`, a text file with one segment on each line. Alone, a table (CSV, TSV, JSON Lines, Parquet) with
        the columns of `COLUMNS`; rows that repeat a segment of a system are taken once.
    targets : sequence of path
        Text files aligned with the source, one for each system, which is named after its file.
    documents : path, optional
        Text file aligned with the source that names each line's document. Domain and document may stand there, as in
        the files of mt-metrics-eval: what follows the last white space counts, unless two names would become one.
        Without it all lines are one document.
    columns : mapping of str to str, optional
        The table's own names for keys of `COLUMNS`.
    references : sequence of path
        Text files aligned with the source, one for each translation by people; a blank line is none. A table has them
        in a column.

    Raises
    ------
    DataError
        If a file cannot be read, line counts differ, a column is missing, a table has errors marked in its texts, a
        segment has two sources or two translations by one system, or there is no segment.
    OptionError
        If an option does not fit the kind of source.
    """
    if targets:
        if columns:
            raise OptionError("columns are named for a table; line-aligned text files have none: leave them out")
        return _from_lines(Path(source), list(map(Path, targets)), documents, list(map(Path, references)))
    path = Path(source)
    if path.is_dir():
        raise OptionError(f"{path} is a folder; the source is one file, of lines or a table: name it")
    if not table_suffix(path):
        raise OptionError(
            f"{path} is no table, so a file with its translation is needed beside it: give SOURCE and TARGET, line by "
            "line, or one CSV, TSV, JSONL or Parquet file"
        )
    if documents is not None:
        raise OptionError("a table names its documents in a column; a file of documents belongs to line-aligned texts")
    if references:
        raise OptionError(
            "a table has its references in a column; files of references belong to line-aligned texts: name the column "
            "with --column reference=..."
        )
    return _from_table(open_source(path), dict(columns or {}))


def _from_lines(
    source: Path, targets: Sequence[Path], documents: str | os.PathLike[str] | None, references: Sequence[Path]
) -> Translations:
    lines = read_lines(source)
    names = [target.name.removesuffix(target.suffix) for target in targets]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"two files are named {repeated[0]!r}, and systems are named after their files: rename one")
    of_line = [source.stem] * len(lines)
    if documents is not None:
        of_line = [name or source.stem for name in read_documents(Path(documents), len(lines))]
    places = numbered(of_line)
    sources: dict[str, dict[int, str]] = {}
    for (document, number), line in zip(places, lines, strict=True):
        sources.setdefault(document, {})[number] = line
    texts: dict[tuple[str, str], dict[int, str]] = {}
    for name, target in zip(names, targets, strict=True):
        for (document, number), line in zip(places, read_lines(target, len(lines)), strict=True):
            texts.setdefault((name, document), {})[number] = line
    people: dict[tuple[str, int], tuple[str, ...]] = {}
    for reference in references:
        for place, line in zip(places, read_lines(reference, len(lines)), strict=True):
            people[place] = (*people.get(place, ()), *([line] if line.strip() else []))
    files = [source, *targets, *([Path(documents)] if documents is not None else []), *references]
    checksum = hashlib.sha256(b"".join(hashlib.sha256(read_bytes(file)).digest() for file in files)).hexdigest()[:16]
    notes = [] if documents is not None else [f"all {len(lines)} lines of {source.name} are taken for one document"]
    return _made(sources, texts, people, notes, str(source), checksum)


def _from_table(raw: RawTable, named: dict[str, str]) -> Translations:
    column = _columns(raw, named)
    _refuse_marks(raw, column)
    cells = {role: list(map(cell_text, raw.columns[name])) for role, name in column.items()}
    alone = [Path(raw.name).stem] * len(raw)
    owners = list(zip(cells.get("system", alone), cells.get("document", alone), strict=True))
    numbers = _numbers(owners, cells.get("segment"))
    sources: dict[str, dict[int, str]] = {}
    texts: dict[tuple[str, str], dict[int, str]] = {}
    references: dict[tuple[str, int], tuple[str, ...]] = {}
    again = 0
    for index, ((system, document), number) in enumerate(zip(owners, numbers, strict=True)):
        source, translation = (cells[role][index].rstrip() for role in ("source", "translation"))
        if sources.setdefault(document, {}).setdefault(number, source) != source:
            raise DataError(
                f"{raw.place(index)}: segment {number} of {document!r} has another source than before; one source by "
                "segment is allowed: check which columns name document and segment"
            )
        mine = texts.setdefault((system, document), {})
        again += number in mine
        if mine.setdefault(number, translation) != translation:
            raise DataError(
                f"{raw.place(index)}: {system!r} translated segment {number} of {document!r} before, otherwise; one "
                "translation by system and segment is allowed: check which columns name them"
            )
        if "reference" in cells and cells["reference"][index].strip():
            references[document, number] = (cells["reference"][index],)
    notes = list(raw.notes)
    notes += [f"{again} rows repeat a translation and are taken once"] if again else []
    notes += _alike(texts, sources) if "segment" not in cells else []
    notes += [] if "document" in cells else ["there is no column of documents: all rows are taken for one document"]
    return _made(sources, texts, references, notes, raw.name, raw.checksum)


def _numbers(owners: Sequence[tuple[str, str]], labels: Sequence[str] | None) -> list[int]:
    """Each row's segment: its label if all of them are numbers, else the label's place in the document.

    Without labels the rows of a system are counted, document by document.
    """
    if labels is not None and all(label.isdecimal() for label in labels):
        return [int(label) for label in labels]
    counted: Counter[tuple[str, str]] = Counter()
    known: dict[str, dict[str, int]] = {}
    numbers = []
    for place, owner in enumerate(owners):
        counted[owner] += 1
        of_document = known.setdefault(owner[1], {})
        label = labels[place] if labels is not None else str(counted[owner])
        numbers.append(of_document.setdefault(label, len(of_document) + 1))
    return numbers


def _alike(texts: Mapping[tuple[str, str], Mapping[int, str]], sources: Mapping[str, Mapping[int, str]]) -> list[str]:
    """A note where rows that were counted as segments may be ratings of one segment."""
    alike = 0
    for (_, document), mine in texts.items():
        pairs = [(sources[document][number], text) for number, text in mine.items() if sources[document][number]]
        alike += len(pairs) - len(set(pairs))
    return [
        f"{alike} rows have the source and translation of an earlier one and count as segments of their own, as no "
        "column names segments: if they are further ratings of one segment, name it with --column segment=..."
    ] * bool(alike)


def _refuse_marks(raw: RawTable, column: Mapping[str, str]) -> None:
    """Refuse a file of ratings, whose marks would show a judge where the errors are."""
    for name in (column["source"], column["translation"]):
        for index, cell in enumerate(raw.columns[name]):
            if MARK.search(cell_text(cell)):
                raise DataError(
                    f"{raw.place(index, name)}: an error is marked between <v> and </v>, which the judge would see: "
                    "these are ratings; give the texts as they were before they were rated, and the ratings to "
                    "`metricsmith meta-eval`"
                )


def _columns(raw: RawTable, named: dict[str, str]) -> dict[str, str]:
    """The table's column for each role that it has."""
    strange = [role for role in named if role not in COLUMNS]
    if strange:
        raise OptionError(f"no role {strange[0]!r}{nearest(strange[0], COLUMNS)}; known are {', '.join(COLUMNS)}")
    found = {role: raw.require(name, f"--column {role}=...") for role, name in named.items()}
    twice = [name for name, count in Counter(found.values()).items() if count > 1]
    if twice:
        roles = ", ".join(role for role, name in found.items() if name == twice[0])
        raise OptionError(f"the column {twice[0]!r} is named for {roles}; each needs a column of its own: correct one")
    for role, names in COLUMNS.items():
        fitting = [name for name in names if name in raw.columns and name not in found.values()]
        if role not in found and fitting:
            found[role] = fitting[0]
    for role in ("source", "translation"):
        if role not in found:
            raise DataError(
                f"{raw.name}: no column for the {role} ({', '.join(COLUMNS[role])}); the columns are "
                f"{', '.join(list(raw.columns)[:20])}: name the one that it is with --column {role}=..."
            )
    return found


def _made(
    sources: Mapping[str, Mapping[int, str]],
    texts: Mapping[tuple[str, str], Mapping[int, str]],
    references: Mapping[tuple[str, int], Sequence[str]],
    notes: Sequence[str],
    name: str,
    checksum: str,
) -> Translations:
    rows = _rows(sources, texts, references)
    if not rows:
        raise DataError(f"{name} holds no segment: all lines are blank; check the files")
    lost = [row.id for row in rows if "input" not in row]
    empty = [row.id for row in rows if not row.output]
    systems = tuple(dict.fromkeys(system for system, _ in texts))
    notes = [
        *notes,
        *([f"{len(lost)} segments have a translation and no source, and cannot be judged: {lost[0]}"] if lost else []),
        *([f"{len(empty)} translations are empty; they are judged like all others: {empty[0]}"] if empty else []),
    ]
    return Translations(rows, systems, tuple(sources), tuple(notes), name, checksum)


def _rows(
    sources: Mapping[str, Mapping[int, str]],
    texts: Mapping[tuple[str, str], Mapping[int, str]],
    references: Mapping[tuple[str, int], Sequence[str]],
) -> list[dspy.Example]:
    rows = []
    for (system, document), lines in texts.items():
        context = "\n".join(line for _, line in sorted(sources[document].items()))
        for number, translation in sorted(lines.items()):
            source = sources[document][number]
            if not source.strip() and not translation.strip():
                continue
            rows.append(
                make_row(
                    translation, input=source if source.strip() else "", context=context,
                    references=references.get((document, number), ()), id=f"{system}|{document}:{number}",
                    group=f"{document}:{number}", system=system, doc=document, segment=number,
                )
            )  # fmt: skip
    return rows
