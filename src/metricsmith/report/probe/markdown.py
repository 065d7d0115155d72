"""A probe as Markdown: for pull requests, issues and papers."""

from __future__ import annotations

from metricsmith.report.formats import one_line
from metricsmith.report.old_markdown import escape, table
from metricsmith.report.probe import words
from metricsmith.report.probe.record import ProbeRecord, Subject

__all__ = ["probe_lines", "render_probe_markdown"]


def render_probe_markdown(record: ProbeRecord) -> str:
    """The probe as Markdown; undefined numbers appear as an en dash, texts are escaped."""
    lines = [
        f"# Probe of the {escape(record.title)}",
        "",
        *probe_lines(record),
        *words.ceiling(record),
        words.cost(record),
    ]
    lines += [f"- {escape(note)}" for note in record.notes]
    return "\n".join([*lines, "", f"Signature: {escape(record.signature)}"]).rstrip() + "\n"


def probe_lines(record: ProbeRecord, level: str = "##") -> list[str]:
    """What the probe found, its parts under headings of `level`."""
    lines = [escape(f"{words.counted(record)} {words.coverage(record)}"), ""]
    lines += [f"**{escape(words.verdict(record).sentence)}**", ""]
    lines += [f"> Warning: {escape(warning)}\n" for warning in record.warnings]
    lines += _table(("metric", *words.COLUMNS), [(_named(one), *words.cells(one)) for one in record.subjects])
    for effect, title in (("worse", "Made worse"), ("same", "Changed without loss")):
        chosen = [line for line in record.strategies if line.effect == effect]
        if chosen:
            rows = [(f"{line.name} ({line.strength})", *words.strategy_cells(line)) for line in chosen]
            lines += [f"{level} {title}", "", *_table(("strategy", *words.STRATEGIES), rows)]
    if record.attacks:
        rows = [(line.name, *words.attack_cells(line)) for line in record.attacks]
        lines += [f"{level} Attacks", "", *_table(("attack", *words.ATTACKS), rows)]
    if record.surprises:
        lines += [f"{level} Worst failures", ""]
        for one in record.surprises:
            lines += [f"- {escape(one.row)}, {escape(one.strategy)}: from {one.before:.4g} to {one.after:.4g}"]
            lines += [f"  - before: {escape(one_line(one.original))}", f"  - after: {escape(one_line(one.changed))}"]
        lines += [""]
    lines += [f"{level} How to read this", ""]
    return [*lines, *(f"- **{term}** {meaning}" for term, meaning in words.GLOSSARY), ""]


def _named(one: Subject) -> str:
    said = words.remark(one)
    return f"{one.label} ({said})" if said else one.label


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    escaped = [(escape(first), *(cell.replace("<", "&lt;") for cell in rest)) for first, *rest in rows]
    return [*table(head, escaped, right_from=1), ""]
