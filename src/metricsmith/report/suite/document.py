"""A suite's table and tasks laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from metricsmith.formats import count, enumerated, p_stated, raw, single_line, statistic
from metricsmith.meta_evaluation.ranking import FEW_METRICS
from metricsmith.report.blocks import (
    Block,
    Cell,
    Details,
    Items,
    Markup,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    element,
)
from metricsmith.report.meta_evaluation.document import (
    GLOSSARY,
    MOST_NAMES,
    SIGNIFICANT,
    p_value_blocks,
    task_blocks,
)
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.render import write_document
from metricsmith.report.suite.record import SuiteEvaluation
from metricsmith.report.suite.tables import legend, standings, suite_latex, suite_overview, suite_tsv, terminal_tables

__all__ = ["SUITE_FILES", "SuiteDocument", "suite_measured", "suite_verdict", "write_suite"]

SUITE_FILES = ("suite.html", "suite.md", "suite.json", "suite.tsv", "suite.tex")
RATER = "another rater"  # suites have none
AVERAGED = (
    (
        "average",
        "is the weighted mean over the tasks, each brought from its own range to 0 to 1 first: a correlation r counts "
        "(r + 1) / 2. A metric that is absent or undefined in a task has none, and no rank. Its clusters rest on the "
        "draws of the tasks' tests, differences added up over tasks as their values are.",
    ),
    (
        "systems",
        "of a language pair are those that people rated, without the standard reference, without other human "
        "translations unless the suite scores them, and without the outliers that the suite names.",
    ),
)


def write_suite(record: SuiteEvaluation, folder: str | PathLike[str]) -> None:
    """Write `SUITE_FILES`: page, Markdown and JSON as `write_document` does, and the table as TSV and for LaTeX."""
    others = {"suite.tsv": suite_tsv(record), "suite.tex": suite_latex(record)}
    write_document(SuiteDocument(record), folder, others)


class SuiteDocument(PartedDocument[SuiteEvaluation]):
    """A suite as a page, as Markdown and in the terminal."""

    stem = "suite"

    def opening(self) -> Opening:
        """The verdict."""
        record = self.record
        return Opening(record.title, suite_verdict(record), single_line(record.suite), tab=record.suite)

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The table, then the tasks, each task by itself, and what took no part."""
        record = self.record
        averaged = [one.name for one in record.averages]
        overall: list[Block] = [
            Paragraph(suite_measured(record)), Warnings(record.warnings), *([self._links()] if page else []),
            suite_overview(record, page=page),
            Paragraph(legend(record)), *p_value_blocks(averaged, record.p_values, page=page),
        ]  # fmt: skip
        return [
            ("overview", "All tasks", overall),
            ("tasks", "What was measured", [self._tasks(), Paragraph(f"Defined in: {record.source}.")]),
            *((f"task-{at}", one.name, self._of_task(at, page)) for at, one in enumerate(record.columns, 1)),
            ("left-out", "Left out", [self._left_out()] if record.left_out else []),
            ("reading", "How to read this", [Terms.glossary([*AVERAGED, *(g for g in GLOSSARY if g[0] != RATER)])]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]

    def _of_task(self, place: int, page: bool) -> list[Block]:
        column = self.record.columns[place - 1]
        result = replace(column.result, task=column.measure)
        blocks = task_blocks(result, f"plot-{place}", self.record.swap, page=page)
        many = f"{count(len(result.metrics), 'metric')} with intervals, chance and tests"
        return blocks if len(result.metrics) <= FEW_METRICS else [Details(many, blocks)]

    def _links(self) -> Markup:
        columns = enumerate(self.record.columns, 1)
        links = (element("li", element("a", column.name, href=f"#task-{place}")) for place, column in columns)
        return element("nav", element("ul", *links), aria_label="Tasks")

    def _tasks(self) -> TextTable:
        gold, total = self.record.gold, sum(one.weight for one in self.record.columns)
        rows = [
            (
                one.name, enumerated(list(dict.fromkeys(gold[pair] for pair in one.pairs))),
                statistic(one.weight / total), f"{raw(one.bounds[0])} to {raw(one.bounds[1])}",
                *map(count, (len(one.systems), len(one.result.metrics), one.segments, one.outputs)),
                count(one.documents or None),
            )
            for one in self.record.columns
        ]  # fmt: skip
        head = ("task", "gold", "weight", "range", "systems", "metrics", "segments", "outputs", "documents")
        return TextTable(head, rows, "Tasks, and what they were measured on")

    def _left_out(self) -> TextTable:
        rows = [(single_line(one.name), one.kind, one.pair, Cell(one.reason, "prose")) for one in self.record.left_out]
        return TextTable(("name", "kind", "pair", Cell("reason", "prose")), rows, "What took no part, and why", left=4)

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, the table, what was left out in numbers, warnings, notes, and the place of the page."""
        record = self.record
        lines: list[str | TextTable] = [suite_verdict(record).sentence, suite_measured(record)]
        lines += [line for table in terminal_tables(record) for line in ("", table)]
        kinds = Counter(one.kind for one in record.left_out)  # metrics once, systems in each language pair
        metrics = list(dict.fromkeys(single_line(one.name) for one in record.left_out if one.kind == "metric"))
        kinds["metric"] = len(metrics)
        names = f" ({enumerated(metrics, MOST_NAMES)})"
        kinds.pop("segment", None)
        segments = len({one.pair for one in record.left_out if one.kind == "segment"})
        parts = [count(number, kind) + names * (kind == "metric") for kind, number in kinds.items() if number]
        parts += [f"segments in {count(segments, 'language pair')}"] * bool(segments)
        left_out = [f"left out: {enumerated(parts)}; the report and --json say why"] if parts else []
        return [*lines, f"  {legend(record)}", "", *left_out, *self.ending(folder, notes=record.notes)]


def suite_measured(record: SuiteEvaluation) -> str:
    """The size of the suite, and the scores of people that it rests on, in one line."""
    gold = Counter(record.gold.values())
    names = [f"{name} ({count(n, 'language pair')})" if len(gold) > 1 else name for name, n in gold.items()]
    tasks, pairs = count(len(record.columns), "task"), count(len(record.gold), "language pair")
    return (
        f"{count(len(record.metrics), 'metric')} against {enumerated(names)} in {tasks} of {pairs}; "
        f"{len(record.averages)} stand in all of them and have an average."
    )


def suite_verdict(record: SuiteEvaluation) -> Verdict:
    """The metric that comes first on average, and where one's own stands."""
    tasks = f"{count(len(record.columns), 'task')} of {single_line(record.suite)}"
    own = _own_stated(record)
    if not record.averages:
        return Verdict("unsure", f"No metric has a value in all {tasks}, so that there is no average.{own}")
    best, *others = record.averages
    first = f"{best.name} comes first on average over {tasks} ({statistic(best.value, 2)})"
    near = [one.name for one in others if one.rank == 1]
    doubtful = [
        column.name
        for column in record.columns
        if any(one.name == best.name and one.chance.p_value > SIGNIFICANT for one in column.result.metrics)
    ]
    if doubtful:
        return Verdict("bad", f"{first}, and may be no better than chance on {enumerated(doubtful, MOST_NAMES)}.{own}")
    if near:
        return Verdict("unsure", f"{first}; it cannot be told from {enumerated(near, MOST_NAMES)}.{own}")
    if not others:
        return Verdict("good", f"{first}, and no other metric has an average.{own}")
    p = record.p_values[0][1]
    tested = "" if math.isnan(p) else f" ({p_stated(p)} against {others[0].name})"
    return Verdict("good", f"{first}; its lead is more than chance{tested}.{own}")


def _own_stated(record: SuiteEvaluation) -> str:
    """The place of the best added judge, or the reason why it has none."""
    added = [one.name for one in record.metrics if one.role == "added"]
    if not added:
        return ""
    columns, found = [column.name for column in record.columns], standings(record)
    average, *values = found[added[0]]  # metrics are sorted by their average
    if average.place is None:
        lacking = [task for task, one in zip(columns, values, strict=True) if one.place is None]
        return f" {added[0]}, which was added, has no average: it lacks {enumerated(lacking, MOST_NAMES)}."
    who = f"{added[0]}, which was added," if len(added) == 1 else f"Of {len(added)} added metrics {added[0]}"
    return (
        f" {who} has place {average.place} of {len(record.averages)}, in cluster {average.cluster} "
        f"({statistic(average.value, 2)})."
    )
