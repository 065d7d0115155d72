"""A meta-evaluation as Markdown: for pull requests, issues and papers."""

from __future__ import annotations

from collections.abc import Sequence

from metricsmith.report.meta_evaluation import words
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.report.old_markdown import escape, table

__all__ = ["render_meta_evaluation_markdown"]


def render_meta_evaluation_markdown(record: MetaEvaluation) -> str:
    """The meta-evaluation as Markdown; texts are escaped."""
    lines = [f"# {escape(record.title)}", "", escape(words.setting(record)), ""]
    lines += [f"**{escape(words.verdict(record).sentence)}**", ""]
    lines += [f"> Warning: {escape(warning)}\n" for warning in record.warnings]
    lines += [*_table(*words.overview(record)), ""]
    for task in record.tasks:
        rows = [(words.label(line, task), *words.cells(task, line)) for line in words.lines(task)]
        lines += [f"## {escape(task.task)}", "", escape(words.meaning(task)), ""]
        lines += [*_table(("metric", *words.columns(task)), rows), ""]
        lines += [escape(said), ""] if (said := words.caution(record, task)) else []
        head, rows = words.p_values(task)
        if rows:
            lines += ["p-values, row better than column:", "", *_table(head, rows), ""]
    lines += ["## How to read this", ""]
    lines += [f"- **{escape(term)}** {escape(text)}" for term, text in words.GLOSSARY]
    if record.notes:
        lines += ["", "## Notes", "", *(f"- {escape(note)}" for note in record.notes)]
    return "\n".join([*lines, "", f"Signature: {escape(record.signature)}"]).rstrip() + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return table([escape(cell) for cell in head], [[escape(cell) for cell in row] for row in rows], right_from=1)
