"""The cells of a grid before anything is asked: their rows, their order, and what they cost together and alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from metricsmith.datasets.table import Table
from metricsmith.errors import DataError, OptionError
from metricsmith.formats import count, money
from metricsmith.model_calls.limits import price, total_usage
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import CARD_TOKENS, MOST_CARDS, budget_lines
from metricsmith.records import Usage
from metricsmith.stats.correlation import IntArray
from metricsmith.studies.ablation.cells import FEWEST, cell_usage
from metricsmith.studies.ablation.division import learning_places, test_places
from metricsmith.studies.ablation.grid import Grid, Setting
from metricsmith.studies.ablation.journal import CellKey

__all__ = ["GridCell", "GridPlan", "ablation_plan", "plan_grid"]


@dataclass(frozen=True)
class GridCell:
    """A cell before it is run: its data set, its setting, its seed, and places of its rows in the table."""

    data: str
    table: Table = field(repr=False)
    setting: Setting
    seed: int
    learned: IntArray = field(repr=False)
    test: IntArray = field(repr=False)

    @property
    def key(self) -> CellKey:
        """Its place in the grid."""
        return self.data, self.setting.rows, self.seed, self.setting.label


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
    """

    cells: tuple[GridCell, ...]
    union: Usage
    summed: Usage


def plan_grid(tables: Mapping[str, Table], grid: Grid, options: Options) -> GridPlan:
    """Divide the rows of every data set for every seed, and estimate every cell.

    Parameters
    ----------
    tables : mapping of str to Table
    grid : Grid
    options : Options
        Of which the seed is the first one.

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
    if options.model is None:
        return GridPlan(tuple(cells), Usage(cost=0.0), Usage(cost=0.0))
    usages = [_alone(cell, grid, options) for cell in cells]
    return GridPlan(tuple(cells), _union(cells, usages, options), total_usage(usages))


def _alone(cell: GridCell, grid: Grid, options: Options) -> Usage:
    """The usage of one cell as it is expected; where retrieval is measured, that of its ranking."""
    if grid.measure == "retrieval":
        return _ranking(options) if (cell.setting.retrieval or "model").endswith("model") else Usage(cost=0.0)
    return cell_usage(
        cell.table, cell.setting, options, name=cell.data, learned=cell.learned, test=cell.test, seed=cell.seed,
        measure=grid.measure,
    )  # fmt: skip


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


def _union(cells: Sequence[GridCell], usages: Sequence[Usage], options: Options) -> Usage:
    """The usage of all cells together.

    Candidates are generated once for the same data, learning rows, seed and generators, and a judge reads a row once.
    Such cells take together what the largest of them takes, and a request for each further ranking of the cards. Judges
    on a panel and judges alone do not share what they read.
    """
    shared: dict[tuple[object, ...], list[tuple[Usage, tuple[object, ...]]]] = {}
    for cell, usage in zip(cells, usages, strict=True):
        of = cell.setting
        counts = options.judge_counts if of.generators is None else of.generators
        panel = options.panel if of.panel is None else of.panel
        readers = (*cell.key[:3], tuple(sorted(counts.items())), panel)
        shared.setdefault(readers, []).append((usage, (of.bank, of.k, of.cards, of.retrieval)))
    largest = [max((usage for usage, _ in one), key=lambda usage: usage.requests) for one in shared.values()]
    further = [
        _ranking(options)
        for one in shared.values()
        for _ in range(len({of for usage, of in one if usage.requests}) - 1)
    ]
    return total_usage([*largest, *further])


def ablation_plan(tables: Mapping[str, Table], grid: Grid, optimizer: Options | None = None) -> str:
    """Say what `ablate` would do with the same arguments, and what it would cost; asks nothing."""
    options = optimizer or Options()
    plan = plan_grid(tables, grid, options)
    few = sum(len(cell.learned) < max(FEWEST, cell.setting.rows) for cell in plan.cells)
    kinds = {cell.setting.label for cell in plan.cells}
    sizes = sorted({cell.setting.rows for cell in plan.cells})
    rows = [str(size) if size else "all" for size in (*filter(None, sizes), *([0] if 0 in sizes else []))]
    lines = [
        f"grid: {grid.title}; {grid.measure} measured",
        f"{count(len(plan.cells), 'cell')}: {count(len(kinds), 'setting')}, learning rows {', '.join(rows)}, "
        f"{count(grid.seeds, 'seed')}, {count(len(tables), 'data set')}",
        *([f"{count(few, 'cell')} will have too few learning rows and ask nothing"] if few else []),
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
