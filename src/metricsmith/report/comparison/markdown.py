"""A comparison as Markdown: for pull requests, issues and papers."""

from __future__ import annotations

from metricsmith.report.comparison import words
from metricsmith.report.comparison.record import Comparison
from metricsmith.report.old_markdown import escape, table

__all__ = ["render_comparison_markdown"]


def render_comparison_markdown(record: Comparison) -> str:
    """The comparison as Markdown; undefined numbers appear as an en dash, texts are escaped."""
    lines = [f"# {escape(record.title)}", "", escape(words.setting(record)), ""]
    lines += [f"**{escape(words.verdict(record).sentence)}**", ""]
    lines += [f"> Warning: {escape(warning)}\n" for warning in record.warnings]
    lines += [*_table(words.COLUMNS, record, lambda line: words.cells(record, line)), ""]
    lines += [line for said in words.ceiling(record) for line in (escape(said), "")]
    if record.skipped:
        lines += ["Not run:", "", *(f"- {escape(line.label)}: {escape(line.skipped)}" for line in record.skipped), ""]
    lines += ["## What they made", ""]
    lines += [f"- {escape(line.label)}: {escape(remark)}" for line in record.run for remark in line.remarks]
    lines += ["", "## Cost and failures", "", *_table(words.COSTS, record, words.cost_cells), ""]
    lines += [*words.cost_lines(record), "", "## How to read the table", ""]
    lines += [f"- **{escape(term)}** {escape(meaning)}" for term, meaning in words.GLOSSARY]
    lines += ["", *(f"- {escape(note)}" for note in record.notes)]
    return "\n".join([*lines, "", f"Signature: {escape(record.signature)}"]).rstrip() + "\n"


def _table(columns: tuple[str, ...], record: Comparison, cells: words.Cells) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for title, lines in words.sections(record):
        rows.append((f"*{escape(title)}*", *("" for _ in columns)))
        rows += [(escape(line.label), *(cell.replace("<", "&lt;") for cell in cells(line))) for line in lines]
    return table(("method", *columns), rows, right_from=1)
