"""A grid of inductions laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from metricsmith.formats import (
    MISSING,
    count,
    duration,
    ends,
    enumerated,
    interval_stated,
    money,
    p_stated,
    p_value,
    single_line,
    statistic,
)
from metricsmith.records import Usage
from metricsmith.report.ablation.record import Ablation, CellFigures, GridLine, GridPart
from metricsmith.report.blocks import (
    Block,
    Cell,
    Details,
    Figure,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Verdict,
    Warnings,
    strong,
)
from metricsmith.report.comparison.document import SIGNIFICANT, mean_over_seeds
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.plots.lines import MOST_SERIES, line_plot
from metricsmith.report.render import write_document
from metricsmith.stats.resampling import holm

__all__ = ["ABLATION_FILES", "AblationDocument", "ablation_verdict", "write_ablation"]

ABLATION_FILES = ("ablation.html", "ablation.md", "ablation.json")
MEASURED = {"metric": "the induced metric", "candidates": "the generated metrics, on average,"}
MEANS = "Mean tau-b ± over seeds"
MINUS = "minus the reference"
SURE = "95\u00a0% rows, seeds"
BESIDE = ("95\u00a0%", "p", "p (Holm)")

GLOSSARY = (
    (
        "± over seeds",
        "is the mean of tau-b over the seeds and half the width of Student's 95\u00a0% interval of that mean, as the "
        "AutoMetrics paper has it, or the interval itself where it had to be cut to −1 and 1. It speaks of the spread "
        "from run to run alone: test sets of several seeds share rows, so that other data may well lie outside it.",
    ),
    (
        SURE,
        "speaks of other rows of this kind and of other seeds: each group is left out of the test sets of all seeds at "
        "once, and the spread over seeds is added. It is the one to quote.",
    ),
    (
        "minus the reference",
        "is the mean difference in tau-b to the reference's cells with the same test rows, seed by seed: above 0 the "
        "setting agrees better. Its interval is made in the same way.",
    ),
    (
        "p",
        "is how often the difference would be this large if both settings' predictions were interchangeable: they are "
        "swapped in whole groups, in all seeds at once. It speaks of the metrics that came out; that other seeds would "
        "make others is in the interval alone, so that a difference counts as more than chance where both say so. "
        "Between settings that are equally good p alone was below .05 in up to 10\u00a0% of simulated grids, both said "
        "so in about 4\u00a0%. Holm's correction allows for the other comparisons of the same table on the same data "
        "set. A large p does not show that two settings are equally good.",
    ),
    (
        "of one cell",
        "tau-b and interval are those of the induction with these learning and test rows; Holm's correction allows for "
        "all other cells with the same data, learning rows and seed.",
    ),
)
RANKED = (
    (
        "NDCG, Recall",
        "compare a ranking of the bank's cards with how well each metric agrees with the raters on the learning rows: "
        "Recall@k is the share of the k best metrics among the first k cards. Mean and standard deviation over data "
        "sets and seeds. A model that is shown the same cards for two seeds is asked once.",
    ),
)


def write_ablation(record: Ablation, folder: str | PathLike[str]) -> None:
    """Write `ABLATION_FILES`, as `write_document` does."""
    write_document(AblationDocument(record), folder)


class AblationDocument(PartedDocument[Ablation]):
    """A grid as a page, as Markdown and in the terminal."""

    stem = "ablation"

    def opening(self) -> Opening:
        """The title, the measure and the verdict."""
        told = self._measured()
        return Opening(self.record.title, ablation_verdict(self.record), description=told, below=told)

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """The tables of the grid, its cells, data and costs."""
        record = self.record
        glossary = RANKED if record.rankings else GLOSSARY
        return [
            ("warnings", "Warnings", [Warnings(record.warnings)] if record.warnings else []),
            *((f"part-{place}", part.title, self._part(place, part)) for place, part in enumerate(record.parts, 1)),
            ("rankings", "Rankings of cards", [self._rankings("NDCG", "Recall")] if record.rankings else []),
            ("reading", "How to read the tables", [Terms.glossary(glossary)]),
            ("not-done", "Cells that were not done", [Items(self._not_done())] if self._not_done() else []),
            ("cells", "Cells", [Details(count(len(record.cells), "cell"), [self._cells()])] if record.parts else []),
            ("data", "Data", [self._data()]),
            ("costs", "Costs", [self._costs()]),
            ("notes", "Notes", [Items(record.notes)] if record.notes else []),
        ]  # fmt: skip

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict, means and differences, the cells that were not done, costs, and the place of the page."""
        record = self.record
        costs, shown = self._costs(), list[str | TextTable]([ablation_verdict(record).sentence, self._measured()])
        for part in record.parts:
            for table in self._briefly(part):
                shown += [f"{part.title}. {table.caption}:", table]
        return [
            *shown,
            *((self._rankings("NDCG"), self._rankings("Recall")) if record.rankings else ()),
            *(f"not done: {line}" for line in self._not_done()),
            costs.text if isinstance(costs, Paragraph) else costs,
            *self.ending(folder, "grid"),
        ]

    def _measured(self) -> str:
        record = self.record
        done = sum(cell.status == "done" for cell in record.cells)
        asked = f" {record.model} was asked." if record.usage.requests else " No language model was asked."
        cells = f"{count(done)} of {count(len(record.cells), 'cell')} done"
        if record.rankings:
            return f"Rankings of the bank's cards beside their worth on the learning rows; {cells}.{asked}"
        return (
            f"Kendall tau-b of {MEASURED[record.measure]} with the raters on held-out groups, over "
            f"{count(record.seeds, 'seed')} with a test set each; the reference is {record.reference}; {cells}.{asked}"
        )

    def _part(self, place: int, part: GridPart) -> list[Block]:
        curves = [
            self._curve(f"curve-{place}-{at}", name, lines)
            for at, (name, lines) in enumerate(self._by_data(part), 1)
            if part.curve
        ]
        return [*self._means(part), *curves, *(self._differences(part, *one) for one in self._by_data(part))]

    def _means(self, part: GridPart) -> list[TextTable]:
        """Means over seeds as in the paper: a setting a row and a data set a column; of a curve, a table a data set."""
        if not part.curve:
            return [_means(MEANS, part.lines, [one.name for one in self.record.data], lambda line: line.data)]
        return [
            _means(f"{MEANS}: {name}, by learning rows", lines, list(dict.fromkeys(map(_rows, lines))), _rows)
            for name, lines in self._by_data(part)
        ]

    def _by_data(self, part: GridPart) -> list[tuple[str, list[GridLine]]]:
        return [(one.name, [line for line in part.lines if line.data == one.name]) for one in self.record.data]

    def _curve(self, key: str, name: str, lines: Sequence[GridLine]) -> Figure:
        """Means and single seeds by number of learning rows (Figure 4)."""
        settings = list(dict.fromkeys(line.setting for line in lines))
        means: dict[str, list[tuple[float, float]]] = {one: [] for one in settings}
        trials: dict[str, list[tuple[float, float]]] = {one: [] for one in settings}
        for line in lines:
            place = line.rows or self._learned(line)
            means[line.setting].append((place, line.tau))
            trials[line.setting] += [(place, tau) for tau in line.taus]
        names = ("learning rows", "tau-b")
        plot = line_plot(key, means, f"Agreement by learning rows: {name}", names, trials=trials, logarithmic=True)
        others = f" Not drawn: {enumerated(settings[MOST_SERIES:])}." if settings[MOST_SERIES:] else ""
        return Figure(plot, f"{name}: mean over seeds, and each seed as a faint dot. Rows on a log scale.{others}")

    def _learned(self, line: GridLine) -> float:
        """The learning rows of a line that has all, on average."""
        own = [cell.learned for cell in self.record.cells if _place(cell) == _place(line) and cell.learned]
        return sum(own) / len(own) if own else math.nan

    def _differences(self, part: GridPart, name: str, lines: Sequence[GridLine]) -> TextTable:
        """Intervals and tests of all settings on a data set, the reference shaded."""
        rows = [
            (
                line.setting, *((_rows(line),) if part.curve else ()), statistic(line.tau), ends(line.interval),
                count(line.cells), "reference" if line.reference else statistic(line.difference, signed=True),
                *_tested(line),
            )
            for line in lines
        ]  # fmt: skip
        rowed = ("rows",) if part.curve else ()
        head = ("setting", *rowed, "tau-b", SURE, "cells", MINUS, *BESIDE)
        own = [place for place, line in enumerate(lines) if line.reference]
        return TextTable(head, rows, f"{name}, beside {self.record.reference}", own=own)

    def _briefly(self, part: GridPart) -> list[TextTable]:
        """Means and differences in the width of a terminal; of a curve in one table, with the rows down."""
        tables = [] if part.curve else self._means(part)
        for name, lines in self._by_data(part):
            rows = [
                (
                    line.setting, *((_rows(line), _mean(line)) if part.curve else ()),
                    "reference" if line.reference else statistic(line.difference, signed=True),
                    ends(line.difference_interval), p_value(line.p_adjusted),
                )
                for line in lines
            ]  # fmt: skip
            head = ("setting", *(("rows", "tau-b ± seeds") if part.curve else ()), "minus", SURE, "p (Holm)")
            if part.curve or not all(line.reference for line in lines):
                tables.append(TextTable(head, rows, f"{name}, minus {self.record.reference}"))
        return tables

    def _cells(self) -> TextTable:
        rows = [
            (
                cell.setting, cell.data, *map(count, (cell.learned, cell.seed)), statistic(cell.tau),
                ends(cell.interval), statistic(cell.difference, signed=True), *_tested(cell),
                count(cell.usage.requests),
            )
            for cell in self.record.cells
            if cell.status == "done"
        ]  # fmt: skip
        head = ("setting", "data", "rows", "seed", "tau-b", "95\u00a0%", MINUS, *BESIDE, "requests")
        return TextTable(head, rows, "Each cell beside the reference with the same data, rows and seed", left=2)

    def _not_done(self) -> list[str]:
        """The reasons, each with its cells."""
        reasons: dict[tuple[str, str], list[CellFigures]] = {}
        for cell in self.record.cells:
            if cell.status != "done":
                reasons.setdefault((cell.status, cell.why), []).append(cell)
        return [
            single_line(
                f"{status}: {enumerated(list(dict.fromkeys(map(_named, own))), 6)} ({count(len(own), 'cell')}): {why}"
            )
            for (status, why), own in reasons.items()
        ]

    def _rankings(self, *names: str) -> TextTable:
        lines = self.record.rankings
        cutoffs = sorted({cutoff for line in lines for cutoff in line.ndcg})
        rows = []
        for line in lines:
            kinds = (line.ndcg if name == "NDCG" else line.recall for name in names)
            figures = (_spread(found, cutoff) for found in kinds for cutoff in cutoffs)
            rows.append((line.setting, *figures, count(line.cells)))
        head = ("retrieval", *(f"{name}@{cutoff}" for name in names for cutoff in cutoffs), "cells")
        return TextTable(head, rows, "Mean ± standard deviation over data sets and seeds")

    def _data(self) -> TextTable:
        rows = [
            (
                one.name,
                one.target,
                Cell(single_line(one.source), "prose"),
                *map(count, (one.rows, one.groups, one.test)),
            )
            for one in self.record.data
        ]
        head = ("data", "target", Cell("source", "prose"), "rated rows", "groups", "test rows")
        return TextTable(head, rows, "Rated rows, and those of the largest test set", left=3)

    def _costs(self) -> Paragraph | TextTable:
        record = self.record
        known = {
            "expected, each cell by itself": record.summed,
            "expected, all cells together": record.union,
            "spent": record.usage,
        }
        if not any(usage.requests for usage in known.values()):
            return Paragraph(f"No language model was asked. All cells took {duration(record.usage.seconds)}.")
        rows = [(name, *_cost(usage)) for name, usage in known.items()]
        head = ("", "requests", "tokens sent", "tokens received", "cost", "time")
        return TextTable(head, rows, "What cells share is paid for once")


def ablation_verdict(record: Ablation) -> Verdict:
    """The settings that differ from the reference by more than chance; of rankings, the first by NDCG.

    A difference is more than chance where its interval leaves out 0 and the test says so, as for
    `metricsmith.report.versus`: the interval alone knows that other seeds make other metrics. Holm's correction is over
    all comparisons that the sentence counts, of all tables and data sets.
    """
    if record.rankings:
        return _best_ranking(record)
    lines = {_place(one): one for part in record.parts for one in part.lines if not one.reference}
    known = [line for line in lines.values() if not math.isnan(line.p_value)]
    adjusted = holm([line.p_value for line in known]).tolist()
    tested = [replace(line, p_adjusted=p) for line, p in zip(known, adjusted, strict=True)]
    if not tested:
        return Verdict("unsure", f"No setting can be held against {record.reference}.")
    sides = [[line for line in tested if _sure(line) and sign * line.difference > 0] for sign in (1, -1)]
    beside = f"{count(len(tested), 'comparison')} with {record.reference}"
    if not any(sides):
        return Verdict("unsure", f"No difference is more than chance, in {beside}.")
    told = []
    for side, word in zip(sides, ("better", "worse"), strict=True):
        most = max(side, key=lambda line: abs(line.difference), default=None)
        told.append(f"{len(side) or 'none'} {word}{f' (most {_stated(most)})' if most else ''}")
    return Verdict("good", single_line(f"Of {beside}, by more than chance: {told[0]}, {told[1]}."))


def _best_ranking(record: Ablation) -> Verdict:
    """The ranking with the highest NDCG at the largest cutoff; no test is made."""
    cutoff = max(cutoff for line in record.rankings for cutoff in line.ndcg)
    known = [line for line in record.rankings if not math.isnan(line.ndcg.get(cutoff, (math.nan,))[0])]
    if not known:
        return Verdict("unsure", "No ranking has a defined NDCG.")
    best = max(known, key=lambda line: line.ndcg[cutoff][0])
    found = statistic(best.ndcg[cutoff][0], 2)
    return Verdict("unsure", f"{best.setting} has the highest NDCG@{cutoff}, {found}; no test was made.")


def _sure(line: GridLine) -> bool:
    found = line.difference_interval
    return line.p_adjusted <= SIGNIFICANT and (found.low > 0 or found.high < 0)


def _means(
    caption: str, lines: Sequence[GridLine], columns: Sequence[str], column: Callable[[GridLine], str]
) -> TextTable:
    """The means over seeds, a setting a row; the best of each column in bold type."""
    found = {(line.setting, column(line)): line for line in lines}
    known = [line for line in lines if not math.isnan(line.tau)]
    best = {name: max((line.tau for line in known if column(line) == name), default=math.nan) for name in columns}

    def cell(line: GridLine | None, name: str) -> str:
        if line is None or not line.cells:
            return MISSING
        return strong(_mean(line)) if line.tau == best[name] else _mean(line)

    settings = list(dict.fromkeys(line.setting for line in lines))
    own = [place for place, one in enumerate(settings) if any(line.reference for line in lines if line.setting == one)]
    rows = [(one, *(cell(found.get((one, name)), name) for name in columns)) for one in settings]
    return TextTable(("setting", *columns), rows, caption, own=own)


def _mean(line: GridLine) -> str:
    return mean_over_seeds(line.tau, line.over_seeds) if line.cells else MISSING


def _rows(line: GridLine | CellFigures) -> str:
    return count(line.rows) if line.rows else "all"


def _named(one: GridLine | CellFigures) -> str:
    """A setting with its data set, and its number of learning rows where that was chosen."""
    return f"{one.setting} on {one.data}{f' with {count(one.rows)} rows' if one.rows else ''}"


def _place(one: GridLine | CellFigures) -> tuple[str, str, int]:
    return one.setting, one.data, one.rows


def _stated(line: GridLine) -> str:
    """A setting with its difference, in a sentence."""
    found, apart = line.difference_interval, statistic(line.difference, 2, signed=True)
    sure = f"{interval_stated(found.low, found.high)}, {p_stated(line.p_adjusted)} after Holm's correction"
    return f"{_named(line)}: {apart}, {sure}"


def _tested(one: GridLine | CellFigures) -> tuple[str, str, str]:
    return ends(one.difference_interval), p_value(one.p_value), p_value(one.p_adjusted)


def _spread(found: Mapping[int, tuple[float, float]], cutoff: int) -> str:
    mean, deviation = found.get(cutoff, (math.nan, math.nan))
    return statistic(mean) if math.isnan(deviation) else f"{statistic(mean)} ± {statistic(deviation)}"


def _cost(usage: Usage) -> tuple[str, ...]:
    cost = money(0.0 if not usage.requests else usage.cost)
    tokens = map(count, (usage.requests, usage.prompt_tokens, usage.completion_tokens))
    return (*tokens, cost, duration(usage.seconds) if usage.seconds else MISSING)
