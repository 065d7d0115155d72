"""Judged translations as one self-contained HTML page, with the errors marked in the texts."""

from __future__ import annotations

from metricsmith.report.old_pages import render_page
from metricsmith.report.translations import words
from metricsmith.report.translations.record import TranslationRecord

__all__ = ["render_translations_html"]


def render_translations_html(record: TranslationRecord) -> str:
    """The record as a complete document that refers to nothing outside itself; every text is escaped."""
    shown, left = words.shown(record)
    return render_page("translations.html.j2", record=record, shown=shown, left=left, words=words)
