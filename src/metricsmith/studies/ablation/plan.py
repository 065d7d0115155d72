"""The cells of a grid before anything is asked: their rows, their order, and what they cost together and alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import count, money
from metricsmith.model_calls.limits import price, total_usage
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import CARD_TOKENS, MOST_CARDS, budget_lines
from metricsmith.records import Usage
from metricsmith.studies.ablation.cells import ALL, concluded, planned_cell, settled
from metricsmith.studies.ablation.division import learning_places, test_places
from metricsmith.studies.ablation.grid import Grid, Setting
from metricsmith.studies.ablation.runs import CellRun, GridCell

__all__ = ["GridPlan", "ablation_plan", "plan_grid"]


@dataclass(frozen=True)
class GridPlan:
    """All cells of a grid in the order in which they are run, and their usage as it is expected.

    Parameters
    ----------
    cells : tuple of GridCell
        By data set, seed and number of learning rows; the reference comes first in each block.
    union : Usage
        Of all together, which share what they make and ask.
    summed : Usage
        Of each alone, added up.
    unusable : mapping of str to int
        Reasons why cells cannot be run, too few learning rows aside, with the number of cells.
    """

    cells: tuple[GridCell, ...]
    union: Usage
    summed: Usage
    unusable: Mapping[str, int] = field(default_factory=dict)


def plan_grid(tables: Mapping[str, Table], grid: Grid, options: Options, *, reasons: bool = False) -> GridPlan:
    """Divide the rows of every data set for every seed, and estimate every cell.

    Parameters
    ----------
    tables : mapping of str to Table
    grid : Grid
    options : Options
        Of which the seed is the first one.
    reasons : bool
        Whether cells that cannot be run are looked for where there is no model to be asked, too.

    Raises
    ------
    OptionError
        If there is no data set or no grid, or two settings have one label.
    DataError
        If the rated rows of a table do not form two groups.
    """
    if not (isinstance(tables, Mapping) and tables and all(isinstance(one, Table) for one in tables.values())):
        raise OptionError(
            f"tables={tables!r:.60} must be tables by their names, such as {{'notices': table}}; read_table reads one"
        )
    if not isinstance(grid, Grid):
        raise OptionError(f"grid={grid!r:.60} must be a grid; read_grid reads one from a file, or the paper's by name")
    settings = _settings(grid)
    cells = list[GridCell]()
    for name, table in tables.items():
        for seed in range(options.seed, options.seed + grid.seeds):
            try:
                test = test_places(table, fraction=grid.test, seed=seed)
            except DataError as problem:
                raise DataError(f"{name}: {problem}") from problem
            for rows, same in settings.items():
                learned = learning_places(table, test, rows, seed)
                cells += [GridCell(name, table, setting, seed, learned, test) for setting in same]
    free = GridPlan(tuple(cells), Usage(cost=0.0), Usage(cost=0.0))
    if options.model is None and not reasons:
        return free
    plan = _planned_ranking if grid.measure == "retrieval" else partial(planned_cell, measure=grid.measure)
    planned = [plan(cell, options) for cell in cells]
    why = dict(Counter(f"{one.status}: {one.why}" for one in planned if one.status not in ("done", "too few")))
    if options.model is None:
        return replace(free, unusable=why)
    usages = [one.usage for one in planned]
    return GridPlan(tuple(cells), _union(cells, usages, grid, options), total_usage(usages), why)


def _planned_ranking(cell: GridCell, options: Options) -> CellRun:
    """The same for a ranking of cards."""

    def work(begun: CellRun) -> CellRun:
        settled(cell.setting, options, cell.seed)  # says what it lacks
        asks = (cell.setting.retrieval or "model").endswith("model")
        return replace(begun, usage=_ranking(options) if asks else Usage(cost=0.0))

    return concluded(replace(cell, test=cell.test[:0]), work)


def _ranking(options: Options) -> Usage:
    """A request to rank as many cards as a model ranks at most."""
    tokens = MOST_CARDS * CARD_TOKENS, MOST_CARDS * 8
    return Usage(1, *tokens, price(getattr(options.model, "model", ""), *tokens))


def _settings(grid: Grid) -> dict[int, list[Setting]]:
    """The settings by their number of learning rows, each once, the reference first; it is added where it is lacking.

    Where retrieval is measured nothing is held against a reference.
    """
    found: dict[int, dict[str, Setting]] = {}
    for setting in (setting for part in grid.parts for setting in part.settings):
        reference = replace(grid.reference, rows=setting.rows)
        first = {} if grid.measure == "retrieval" else {reference.label: reference}
        same = found.setdefault(setting.rows, first)
        if same.setdefault(setting.label, setting) != setting:
            raise OptionError(
                f"two settings with {setting.rows or 'all'} learning rows are called {setting.label!r}: give each a "
                "label of its own"
            )
    return {rows: list(same.values()) for rows, same in found.items()}


def _union(cells: Sequence[GridCell], usages: Sequence[Usage], grid: Grid, options: Options) -> Usage:
    """The usage of all cells together.

    Candidates are generated once for the same data, learning rows, seed and generators, and a judge reads a row once.
    Judges on a panel share what they read with nothing but the same panel. Of cells that share, those that differ in
    `k` or `n` choose the same judges, and take together what the largest of them takes; other ways to choose may find
    others, up to all that are generated. Each further ranking of the cards is a request.
    """
    if grid.measure == "retrieval":  # the same cards with every seed
        rankings = {
            (cell.data, cell.setting.cards, cell.setting.retrieval): one
            for cell, one in zip(cells, usages, strict=True)
        }
        return total_usage(list(rankings.values()))
    shared: dict[object, dict[object, list[tuple[Usage, GridCell]]]] = {}
    for cell, usage in zip(cells, usages, strict=True):
        of = cell.setting
        counts = options.judge_counts if of.generators is None else of.generators
        panel = options.panel if of.panel is None else of.panel
        seats = (of.bank, of.k, of.cards, of.retrieval) if panel and grid.measure == "metric" else ()
        ways = shared.setdefault((*cell.key[:3], tuple(counts.items()), panel, seats), {})
        ways.setdefault((of.bank, of.cards, of.retrieval), []).append((usage, cell))
    together = list[Usage]()
    for ways in shared.values():
        largest = [max(way, key=_requests) for way in ways.values()]
        most, cell = max(largest, key=_requests)
        bounds = [total_usage([usage for usage, _ in largest])]
        if len(ways) > 1:
            everything = planned_cell(replace(cell, setting=replace(cell.setting, k=ALL)), options, grid.measure).usage
            asked = sum((one.setting.retrieval or "model").endswith("model") for _, one in largest)
            bounds.append(total_usage([everything, *[_ranking(options)] * asked]))
        together.append(max(most, min(bounds, key=lambda usage: usage.requests), key=lambda usage: usage.requests))
        sizes = [len({one.setting.k for usage, one in way if usage.requests}) for way in ways.values()]
        together += [_ranking(options)] * sum(size - 1 for size in sizes if size)
    return total_usage(together)


def _requests(one: tuple[Usage, GridCell]) -> int:
    return one[0].requests


def ablation_plan(tables: Mapping[str, Table], grid: Grid, optimizer: Options | None = None) -> str:
    """Say what `ablate` would do with the same arguments, and what it would cost; asks nothing."""
    options = optimizer or Options()
    plan = plan_grid(tables, grid, options, reasons=True)
    few = sum(len(cell.learned) < cell.least for cell in plan.cells)
    kinds = {cell.setting.label for cell in plan.cells}
    sizes = sorted({cell.setting.rows or math.inf for cell in plan.cells})
    rows = ["all" if size == math.inf else str(size) for size in sizes]
    lines = [
        f"grid: {grid.title}; {grid.measure} measured",
        f"{count(len(plan.cells), 'cell')}: {count(len(kinds), 'setting')}, learning rows {', '.join(rows)}, "
        f"{count(grid.seeds, 'seed')}, {count(len(tables), 'data set')}",
        *([f"{count(few, 'cell')} will have too few learning rows and ask nothing"] if few else []),
        *(f"{count(number, 'cell')} cannot be run: {why}" for why, number in plan.unusable.items()),
    ]
    for name, table in tables.items():
        own = [cell for cell in plan.cells if cell.data == name]
        groups = {table.groups[place] for place in own[0].test}
        lines.append(
            f"{name}: {table.source}; {count(len(table.rated()), 'rated row')}, {count(len(own[0].test))} of them in "
            f"{count(len(groups), 'group')} in the test set of seed {own[0].seed}"
        )
    dollars = "price unknown" if plan.union.cost is None else f"about {money(plan.union.cost)}"
    saved = f", {count(plan.summed.requests)} if each cell ran alone" if plan.summed.requests else ""
    return "\n".join(
        [
            *lines,
            f"requests: {count(plan.union.requests)} for all cells together{saved}; prompt tokens: "
            f"{count(plan.union.prompt_tokens)}, completion tokens: {count(plan.union.completion_tokens)} ({dollars}; "
            "what is likely, retries not counted)",
            *(f"budget: {line}" for line in budget_lines(options.budget, plan.union)),
            "nothing was sent and nothing was written",
        ]
    )
