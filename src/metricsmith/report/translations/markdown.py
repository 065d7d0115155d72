"""Judged translations as Markdown: for pull requests, issues and papers."""

from __future__ import annotations

from metricsmith.report.formats import points
from metricsmith.report.old_markdown import escape, table
from metricsmith.report.translations import words
from metricsmith.report.translations.record import TranslationRecord

__all__ = ["render_translations_markdown"]


def render_translations_markdown(record: TranslationRecord) -> str:
    """The record as Markdown; undefined numbers appear as an en dash, texts are escaped."""
    lines = [f"# MQM of {escape(record.title)}", "", escape(words.counted(record)), ""]
    lines += [f"> Warning: {escape(warning)}\n" for warning in record.warnings]
    systems = [(escape(line.system), *words.cells(line)) for line in record.systems]
    documents = [(escape(line.system), escape(line.document), *words.cells(line)) for line in record.documents]
    lines += ["## Systems", "", *table(("system", *words.COLUMNS), systems, right_from=1), ""]
    lines += ["## Documents", "", *table(("system", "document", *words.COLUMNS), documents, right_from=2), ""]
    shown, left = words.shown(record)
    lines += ["## Segments", "", *([escape(left), ""] if left else [])]
    for line in shown:
        lines += [f"### {escape(line.id)}: {points(line.raw, words.WIDTH)}", "", escape(words.rests(line)), ""]
        lines += [f"- source: {escape(line.source)}", f"- translation: {escape(line.translation)}"]
        lines += [
            f"- {severity}, {found}: {escape(what)}" for _, severity, what, found in words.errors(line)
        ]  # fmt: skip
        lines += [""]
    lines += ["## How to read this", "", *(f"- **{term}** {meaning}" for term, meaning in words.GLOSSARY), ""]
    lines += [f"- {escape(record.method)}", f"- {escape(words.cost(record))}"]
    lines += [f"- {escape(note)}" for note in record.notes]
    return "\n".join([*lines, "", f"Signature: {escape(record.signature)}"]).rstrip() + "\n"
