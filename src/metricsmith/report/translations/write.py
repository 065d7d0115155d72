"""Write judged translations into a folder, each file whole or not at all."""

from __future__ import annotations

import io
import json
from os import PathLike

from metricsmith.report.translations.markdown import render_translations_markdown
from metricsmith.report.translations.page import render_translations_html
from metricsmith.report.translations.record import TranslationRecord
from metricsmith.report.write import write_files, write_rendered
from metricsmith.spreadsheets import write_table

__all__ = ["TRANSLATION_FILES", "write_translations"]

TRANSLATION_FILES = ("mqm.html", "mqm.md", "mqm.json", "segments.jsonl", "segments.tsv")
TSV = ("id", "system", "doc", "segment", "raw", "score", "half_width", "kept", "status", "error", "errors")


def write_translations(record: TranslationRecord, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
    """Write ``mqm.html``, ``mqm.md`` and ``mqm.json``, and all segments as ``segments.jsonl`` and ``segments.tsv``.

    Parameters
    ----------
    record : TranslationRecord
    folder : path
        Made if it does not exist.
    raw_csv : bool
        Write texts that a spreadsheet would run as they are.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    lines = [segment.as_dict() for segment in record.segments]
    segments = {
        "segments.jsonl": "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines),
        "segments.tsv": _tsv(lines, raw_csv),
    }
    write_rendered(record, folder, "mqm", render_translations_html, render_translations_markdown)
    write_files(segments, folder)


def _tsv(lines: list[dict[str, object]], raw: bool) -> str:
    """One line by segment, without texts; its errors as JSON in the last column."""
    buffer = io.StringIO()
    rows = [[*(line[name] for name in TSV[:-1]), json.dumps(line["errors"], ensure_ascii=False)] for line in lines]
    write_table(buffer, TSV, lambda: rows, raw=raw, separator="\t")
    return buffer.getvalue()
