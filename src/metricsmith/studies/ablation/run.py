"""Run a grid of inductions cell by cell, with one store, one budget, and a file from which it goes on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Any

from metricsmith.bank.base import numbers_kept
from metricsmith.datasets.table import Table
from metricsmith.errors import OptionError
from metricsmith.formats import count, jsonable
from metricsmith.metric import Metric, content_hash
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import form_identity, identity
from metricsmith.model_calls.rate_limiter import spanning
from metricsmith.optimizers.candidates import candidates_kept, recommender_key, recommender_of
from metricsmith.optimizers.induce import prepare
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import spending, times
from metricsmith.optimizers.splitting import Division
from metricsmith.records import Usage
from metricsmith.report.ablation.document import ABLATION_FILES
from metricsmith.report.ablation.record import Ablation, GridData
from metricsmith.scoring.callables import CallableMetric
from metricsmith.scoring.local import told_once
from metricsmith.scoring.plan import model_of
from metricsmith.scoring.progress import progress_bar
from metricsmith.studies.ablation.cells import run_cell
from metricsmith.studies.ablation.figures import figures
from metricsmith.studies.ablation.grid import Grid
from metricsmith.studies.ablation.journal import JOURNAL, Journal
from metricsmith.studies.ablation.plan import GridPlan, plan_grid
from metricsmith.studies.ablation.retrieval import rankings, run_ranking
from metricsmith.studies.ablation.runs import CellRun, GridCell
from metricsmith.version import __version__

__all__ = ["JUDGEMENTS", "REPORT", "ablate"]

JUDGEMENTS, REPORT = "judgements.sqlite", ABLATION_FILES[-1]
MOST_FALLEN = 8  # lines on what fell away
NOT_DONE = {
    "failed": "failed; the same command runs those again in which the model did",
    "not run": "without what their setting needs; the same command looks for it again",
    "too few": "too few learning rows",
}


def ablate(
    tables: Mapping[str, Table],
    grid: Grid,
    optimizer: Options | None = None,
    *,
    folder: str | PathLike[str] | None = None,
    force: bool = False,
) -> Ablation:
    """Find out what each option of an induction is worth: run every setting of a grid on every data set and seed.

    A cell is ``induce`` with these options, its learning rows and a test table of its own. All cells share a store,
    the numbers of bank metrics, generated candidates and one budget, so that the grid costs what its cells ask
    together (`metricsmith.studies.ablation.plan`). A cell with too few rows, without what it needs, or in which the
    model fails says so, and the grid goes on.

    Parameters
    ----------
    tables : mapping of str to Table
        Data sets by their names.
    grid : Grid
        Read by `read_grid`.
    optimizer : AutoMetrics, optional
        The options that no setting changes: model, store, budget, own metrics. Its seed is the first one.
    folder : path, optional
        Where every cell is written as it ends (``cells.jsonl``), and judgements are kept (``judgements.sqlite``, unless
        the optimizer has a store). The same call goes on from there: cells that ended are not run again, but for those
        in which the model failed or whose needs were not here, and what an interrupted cell has asked is in the store
        and in DSPy's cache. `write_ablation` writes the report into it.
    force : bool
        Begin anew, whatever cells `folder` holds: of a finished grid, of another one, or of this one, unfinished. They
        are thrown away; judgements stay.

    Returns
    -------
    Ablation

    Raises
    ------
    OptionError
        If the grid or a data set cannot be used; if `folder` holds a finished grid or another one and `force` is False;
        if it is given and nothing tells whether an own metric is the same one when the grid goes on.
    DataError
        If a data set has too few groups, or ``cells.jsonl`` is damaged.
    ModelFailure
        If the budget runs out or the model refuses to work; what ended is kept in `folder`.
    """
    options = optimizer or Options()
    plan = plan_grid(tables, grid, options)
    run = _identity(tables, grid, options)
    if folder is not None:
        run["metrics"] = _own_metrics(options)
    with TemporaryDirectory() as scratch:
        home = Path(scratch if folder is None else folder)
        own_store = options.store is None and options.model is not None
        stored = replace(options, store=home / JUDGEMENTS) if own_store else options
        with Journal(home / JOURNAL, run, force=force) as journal:
            if journal.anew:  # a report that lies here is of another grid
                (home / REPORT).unlink(missing_ok=True)
            left = [cell for cell in plan.cells if cell.key not in journal.ended]
            if not left and not force and (home / REPORT).exists():
                raise OptionError(
                    f"{home} holds this grid, finished: its report is there; name another folder with --out, or run it "
                    "anew with --force (force=True)"
                )
            _run(left, grid, stored, plan, journal)
            runs = [journal.ended[cell.key] for cell in plan.cells]
    return _record(tables, grid, options, plan, runs, run, journal.spent)


def _run(cells: Sequence[GridCell], grid: Grid, options: Options, plan: GridPlan, journal: Journal) -> None:
    """Run cells in their order, under one budget; each is written as it ends."""
    limits: dict[str, Any] = {"expected": plan.union, "store": options.store, "model": options.model}
    own = replace(options, progress=False)
    with (
        spending(options.budget, options.concurrency, **limits),
        candidates_kept(),
        numbers_kept(),
        told_once(),
        progress_bar(options.progress, total=len(plan.cells), unit="cell", desc=grid.title) as bar,
    ):
        bar.update(len(plan.cells) - len(cells))
        for cell in cells:
            before, ranks = _spent(), grid.measure == "retrieval"
            run = run_ranking(cell, own) if ranks else run_cell(cell, own, grid.measure)
            if run.status == "failed":  # not every error knows what was asked before it
                asked = _spent() + times(before, -1)
                run = replace(run, usage=replace(asked, seconds=run.usage.seconds))
            journal.add(run)
            bar.update()


def _spent() -> Usage:
    """The usage of all cells so far in the block of `spending`."""
    limiter = spanning.get()
    return Usage() if limiter is None else limiter.spent


def _identity(tables: Mapping[str, Table], grid: Grid, options: Options) -> dict[str, Any]:
    """Everything on which the cells depend, own metrics aside: version, grid, data, options, model and first seed.

    A table made of some rows of another has its source: rows count too. A recommender of the caller's own is known by
    its type.
    """
    lines = {name: prepare(table, options, Division(grid.test)).signature for name, table in tables.items()}
    first = next(iter(lines.values()))
    with options.asking():
        form = form_identity(adapter_in_force()) if options.model is not None else {}
        ranking = recommender_key(recommender_of(options))
    return {
        "version": __version__,
        "grid": jsonable(asdict(replace(grid, data={}))),
        "data": {name: line.origin for name, line in lines.items()},
        "rows": {name: content_hash([row.toDict() for row in one.rows], one.ratings) for name, one in tables.items()},
        "options": {name: f"{line.sources}, {line.options}" for name, line in lines.items()},
        "model": first.model,
        "seed": first.seed,
        "adapter": form,
        "recommender": ranking,
        "repetition": options.repetition,
        "strict": options.strict,
        "local": {name: str(place) for name, place in (options.local or {}).items()},
    }


def _own_metrics(options: Options) -> list[Any]:
    """The caller's own metrics, each with the model that it asks, as data by which they are the same in every process.

    A function without a version is known by its code; `OptionError` for one that has more to it.
    """
    with options.asking():
        return [[_known(metric), (lm := model_of(metric)) and identity(lm)] for metric in options.own]


def _known(metric: Metric) -> str:
    if not isinstance(metric, CallableMetric) or metric.version is not None:
        return metric.fingerprint()
    function = metric.function
    if not isinstance(function, FunctionType) or function.__closure__:
        raise OptionError(
            f"metrics: nothing tells whether {metric.name!r} is the same function when the grid goes on in its folder: "
            "name its version, CallableMetric(f, version='1'), and change that with the function"
        )
    defaults = function.__defaults__, function.__kwdefaults__
    return content_hash(metric.to_state(), _code(function.__code__), *defaults)


def _code(code: CodeType) -> list[Any]:
    """A function's instructions, names and constants, those of functions inside it included."""
    constants = [_code(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code, code.co_names, constants]


def _record(
    tables: Mapping[str, Table],
    grid: Grid,
    options: Options,
    plan: GridPlan,
    runs: Sequence[CellRun],
    run: Mapping[str, Any],
    spent: Usage,
) -> Ablation:
    retrieval = grid.measure == "retrieval"
    cells, parts = figures(runs, grid, tables)
    most = {name: max(len(one.test) for one in runs if one.data == name) for name in tables}
    signature = [
        f"metricsmith {__version__}", f"grid {grid.title}, {grid.measure}",
        *(f"{name}: {run['data'][name]}" for name in tables), *dict.fromkeys(run["options"].values()), run["model"],
        f"{run['seed']}, {count(grid.seeds, 'seed')}",
    ]  # fmt: skip
    return Ablation(
        title=grid.title,
        measure=grid.measure,
        reference=grid.reference.label,
        parts=() if retrieval else parts,
        rankings=rankings(runs, grid) if retrieval else (),
        cells=cells,
        data=tuple(
            GridData(name, rated.source, rated.task.target, len(rated), len(set(rated.groups)), most[name])
            for name, rated in ((name, table.subset(table.rated())) for name, table in tables.items())
        ),
        seeds=grid.seeds,
        model=str(getattr(options.model, "model", "") or ""),
        signature=" | ".join(signature),
        usage=spent,
        union=plan.union,
        summed=plan.summed,
        notes=tuple(f"{name}: {note}" for name, table in tables.items() for note in table.notes),
        warnings=tuple(_warnings(runs, retrieval)),
    )


def _warnings(runs: Sequence[CellRun], retrieval: bool) -> Iterator[str]:
    """Cells without a figure, and what fell away on the way to the others."""
    counts = Counter(one.status for one in runs)
    for status, why in NOT_DONE.items():
        if counts[status]:
            yield f"{count(counts[status])} of {count(len(runs), 'cell')} not done: {why}"
    undefined = sum(one.status == "done" and math.isnan(one.tau) for one in runs)
    if undefined and not retrieval:
        yield f"{count(undefined)} of {count(len(runs), 'cell')} without a tau-b: constant predictions, or too few"
    fallen = Counter(line for one in runs for line in one.fallen).most_common()
    for line, number in fallen[:MOST_FALLEN]:
        yield f"In {count(number, 'cell')}: {line}"
    if len(fallen) > MOST_FALLEN:
        yield f"{count(len(fallen) - MOST_FALLEN)} more lines on what fell away stand in {JOURNAL}"
