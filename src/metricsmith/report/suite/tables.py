"""The table of a suite: for people, for programs (TSV) and for papers (LaTeX)."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, groupby, pairwise
from typing import NamedTuple

from metricsmith.formats import MISSING, fit_middle, single_line, statistic
from metricsmith.meta_evaluation.evaluation import MetricResult
from metricsmith.report.blocks import Cell, TextTable
from metricsmith.report.suite.record import SuiteAverage, SuiteEvaluation, SuiteMetric
from metricsmith.spreadsheets import write_table

__all__ = [
    "Standing", "legend", "marked_name", "standings", "suite_latex", "suite_overview", "suite_tsv", "terminal_tables",
]  # fmt: skip

AVERAGE = "average"
MARKS: Mapping[str, tuple[str, str]] = {
    "contrastive": ("*", "contrastive"), "baseline": ("†", "a baseline of the organisers"), "added": ("‡", "added"),
}  # fmt: skip
NOREF = "[noref]"
LONGEST_NAME = 40  # in the terminal
# A backslash and brackets by themselves: \\ takes what stands in brackets, or a star, behind it for its own.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", "–": "--", "−": "$-$", "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
}  # fmt: skip
_SPECIAL = re.compile("[" + re.escape("".join(_LATEX)) + "]")


class Standing(NamedTuple):
    """One metric in one column of the table; all None where it is absent or undefined.

    Parameters
    ----------
    value : float
    cluster, place : int
        From 1: the cluster, and the place by value, which equal values share.
    """

    value: float | None = None
    cluster: int | None = None
    place: int | None = None


def standings(record: SuiteEvaluation) -> dict[str, list[Standing]]:
    """Each metric's average, then its value in each task."""
    columns: list[Sequence[SuiteAverage | MetricResult]] = [record.averages]
    columns += [column.result.metrics for column in record.columns]
    found: dict[str, list[Standing]] = {one.name: [Standing()] * len(columns) for one in record.metrics}
    for at, column in enumerate(columns):
        for one in (one for one in column if not math.isnan(one.value)):
            place = 1 + sum(other.value > one.value for other in column)
            found[one.name][at] = Standing(one.value, one.rank, place)
    return found


def marked_name(metric: SuiteMetric) -> str:
    """A metric's name, with the mark of its role behind it."""
    return single_line(metric.name) + MARKS.get(metric.role, ("", ""))[0]


def legend(record: SuiteEvaluation) -> str:
    """The meaning of columns and marks that stand in the table, in one line."""
    roles = {one.role for one in record.metrics}
    marks = [f"{mark} {meaning}" for role, (mark, meaning) in MARKS.items() if role in roles]
    free = [f"{NOREF} without a reference"] if any(one.reference_free for one in record.metrics) else []
    return "; ".join(["# is the cluster", *free, *marks, f"{MISSING} absent or undefined"]) + "."


def suite_overview(record: SuiteEvaluation, *, page: bool) -> TextTable:
    """The table in the form of Tables 2 to 4 of GEMBA-MQM V2, with clusters for places.

    A page has language pairs above the measures, elsewhere both stand in one line. Added metrics are shaded.
    """
    found, names = standings(record), _names(record, page)
    names = [name.replace("-", "\N{NON-BREAKING HYPHEN}") for name in names] if page else names
    rows = [(marked_name(one), *chain.from_iterable(map(_cells, found[one.name]))) for one in record.metrics]
    return TextTable(
        ("metric", *(part for name in names for part in (Cell("#", "place"), name))), rows,
        "Cluster and value of the average and of each task", style="suite",
        own=[place for place, one in enumerate(record.metrics) if one.role == "added"],
        over=[("", 1), *((pair, 2 * len(columns)) for pair, columns in _groups(record))] if page else (),
    )  # fmt: skip


def terminal_tables(record: SuiteEvaluation, most: int = 6) -> list[TextTable]:
    """The same in tables of at most so many tasks each, unless a language pair has more."""
    whole = suite_overview(record, page=False)

    def shown(row: Sequence[str], columns: Sequence[int]) -> list[str]:
        return [fit_middle(row[0], LONGEST_NAME), *(row[2 * c + side] for c in columns for side in (1, 2))]

    return [
        TextTable(shown(whole.head, part), [shown(row, part) for row in whole.rows])  # type: ignore[arg-type]
        for part in ([column for _, columns in block for column in columns] for block in _blocks(_groups(record), most))
    ]


def suite_tsv(record: SuiteEvaluation) -> str:
    """A row for each metric, in the table's order: value, cluster and place of the average and of each task.

    Values have all their digits; what is absent or undefined is empty.
    """
    found, file = standings(record), io.StringIO(newline="")
    head = ["metric", "role", *(f"{name}{part}" for name in _names(record) for part in ("", " cluster", " place"))]

    rows = [[one.name, one.role, *chain.from_iterable(found[one.name])] for one in record.metrics]
    write_table(file, head, lambda: rows, separator="\t")
    return file.getvalue()


def suite_latex(record: SuiteEvaluation, most: int = 10) -> str:
    """The table for a paper: `tabular`s of the package booktabs, of at most `most` tasks each.

    Metrics that share a letter stand in one cluster; values of the first are bold, added metrics in italics. Nothing
    outside ASCII is written but for names that hold it.
    """
    measured = _latex(f"{record.suite}: {legend(record)} Values with the same letter stand in one cluster.")
    lines = ["% Needs \\usepackage{booktabs}.", f"% {single_line(measured)}"]
    found, names = standings(record), _names(record, short=True)
    for block in _blocks(_groups(record), most):
        columns = [column for _, own in block for column in own]
        ends = list(accumulate((2 * len(own) for _, own in block), initial=1))
        heads = [f"\\multicolumn{{{2 * len(own)}}}{{c}}{{{_latex(pair)}}}" for pair, own in block]
        rules = [
            f"\\cmidrule(lr){{{before + 1}-{end}}}"
            for (pair, _), (before, end) in zip(block, pairwise(ends), strict=True)
            if pair
        ]
        lines += [
            f"\\begin{{tabular}}{{l{'rl' * len(columns)}}}", "\\toprule",
            f"{' & '.join(['', *heads])} \\\\", " ".join(rules),
            " & ".join(["metric", *(f"\\# & {_latex(names[column])}" for column in columns)]) + " \\\\",
            "\\midrule",
        ]  # fmt: skip
        for one in record.metrics:
            name = _latex(marked_name(one))
            cells = chain.from_iterable(_latex_cells(found[one.name][column]) for column in columns)
            lines.append(" & ".join([f"\\textit{{{name}}}" if one.role == "added" else name, *cells]) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}"]
    return "\n".join(lines) + "\n"


def _names(record: SuiteEvaluation, short: bool = False) -> list[str]:
    """The names of the average and of the tasks; short ones lack the language pair."""
    return [AVERAGE, *(one.measure if short else one.name for one in record.columns)]


def _groups(record: SuiteEvaluation) -> list[tuple[str, list[int]]]:
    """Language pairs, from left to right, with the places of their columns; the average is column 0."""
    pairs = [column.pairs[0] if len(column.pairs) == 1 else "all" for column in record.columns]
    return [
        ("", [0]),
        *((pair, list(own)) for pair, own in groupby(range(1, 1 + len(pairs)), lambda at: pairs[at - 1])),
    ]


def _blocks(groups: list[tuple[str, list[int]]], most: int) -> list[list[tuple[str, list[int]]]]:
    """Groups in blocks of at most so many tasks, the average not counted; a group is never torn."""
    blocks = [groups[:1]]
    for group in groups[1:]:
        there = sum(len(columns) for pair, columns in blocks[-1] if pair)
        if there and there + len(group[1]) > most:
            blocks.append([])
        blocks[-1].append(group)
    return blocks


def _cells(one: Standing) -> tuple[str, str]:
    """Cluster and value; the first cluster is bold on a page."""
    if one.cluster is None:
        return Cell(MISSING, "place"), MISSING
    return Cell(str(one.cluster), "place"), Cell(statistic(one.value), "strong" if one.cluster == 1 else "")


def _latex_cells(one: Standing) -> tuple[str, str]:
    if one.cluster is None:
        return "--", "--"
    value = _latex(statistic(one.value))
    value = f"\\textbf{{{value}}}" if one.cluster == 1 else value
    return str(one.cluster), f"{value}$^{{\\mathrm{{{_letters(one.cluster)}}}}}$"


def _letters(number: int) -> str:
    """1 is a, 26 is z, 27 is aa."""
    rest, last = divmod(number - 1, 26)
    return (_letters(rest) if rest else "") + "abcdefghijklmnopqrstuvwxyz"[last]


def _latex(text: str) -> str:
    """A text on one line with nothing left that LaTeX would act on."""
    return _SPECIAL.sub(lambda found: _LATEX[found.group()], single_line(text))
