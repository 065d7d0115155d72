"""One cell of a grid: an induction on given learning and test rows, or what it generates measured by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.table import Table
from metricsmith.errors import MetricsmithError, NeedsError, OptionError, StoreError
from metricsmith.formats import count
from metricsmith.metric import content_key
from metricsmith.optimizers.candidates import generate_candidates, retrieve_candidates
from metricsmith.optimizers.generation import ends_all
from metricsmith.optimizers.induce import Prepared, prepare
from metricsmith.optimizers.options import ChosenSources, Options
from metricsmith.optimizers.passes import METRIC
from metricsmith.optimizers.spending import PassRows, estimate_passes, times
from metricsmith.optimizers.splitting import Division
from metricsmith.programs.recommenders.named import named_recommender
from metricsmith.records import Usage
from metricsmith.scoring import score
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import Interval, repeated_interval, repeated_mean
from metricsmith.studies.ablation.grid import Setting
from metricsmith.studies.ablation.runs import CellRun

__all__ = ["ALL", "FEWEST", "begun", "cell_usage", "open_cell", "run_cell", "settled", "without_result"]

FEWEST = 8  # learning rows, as `read_table` wants them
ALL = 10**9  # k where all that is generated is kept
BANKS = {"full": "all"}  # words of a grid for those of an induction
Places = Sequence[int] | NDArray[np.intp]


def settled(setting: Setting, options: Options, seed: int) -> Options:
    """The options of an induction with what a setting says and the seed; all else stays.

    Raises
    ------
    OptionError
        If an option has no meaning beside the others.
    NeedsError
        If a way to rank cards needs a model or weights that are not here.
    """
    named: dict[str, Any] = {key: getattr(setting, key) for key in ("k", "n", "regression", "generators", "panel")}
    named["bank"] = BANKS.get(setting.bank or "", setting.bank)
    if setting.cards is not None:
        named["whole_cards"] = setting.cards == "whole"
    if setting.retrieval is not None:
        named["recommender"] = named_recommender(setting.retrieval, options.model is not None)
    if setting.bank in ("generated", "none"):
        options = replace(options, bank_models=None)  # of which such an induction takes none, and says so
    return replace(options, seed=seed, **{key: value for key, value in named.items() if value is not None})


def begun(setting: Setting, name: str, learned: Places, test: Places, seed: int) -> CellRun:
    """A cell with its rows and without a result; ``too few`` with fewer than `FEWEST` learning rows, or than asked."""
    rows, tested = (tuple(int(place) for place in side) for side in (learned, test))
    cell = CellRun(setting.label, name, setting.rows, seed, learned=rows, test=tested)
    if len(rows) >= max(FEWEST, setting.rows):
        return cell
    needed = f"{setting.rows} are asked for" if len(rows) < setting.rows else f"{FEWEST} are the least"
    return replace(cell, status="too few", why=f"{count(len(rows), 'learning row')}; {needed}")


def without_result(cell: CellRun, problem: MetricsmithError) -> CellRun:
    """The cell with the reason why it has no result; an error that ends all cells is raised again.

    These are a spent budget, a model that refuses to work, Ctrl-C, and a store that cannot be used.
    """
    if ends_all(problem) or isinstance(problem, StoreError):
        raise problem
    status = "not run" if isinstance(problem, NeedsError) else "failed"
    return replace(cell, status=status, why=str(problem), usage=problem.usage or Usage())


def open_cell(table: Table, setting: Setting, options: Options, cell: CellRun, measure: str) -> Prepared | CellRun:
    """The induction of a cell with nothing asked yet; or, where it cannot be run, the cell with the reason.

    Parameters
    ----------
    table, setting, options, measure
        As for `run_cell`.
    cell : CellRun
        From `begun`.

    Raises
    ------
    OptionError
        For a measure that is not known here.
    MetricsmithError
        As `run_cell` raises it.
    """
    if measure not in _MEASURED:
        raise OptionError(f"measure={measure!r} must be one of {', '.join(_MEASURED)}; rankings are run by themselves")
    if cell.status == "too few":
        return cell
    if measure == "candidates":
        setting, options = replace(setting, bank="generated"), options.with_own(())
    try:
        own = settled(setting, options, cell.seed)
        run = prepare(table.subset(cell.learned), own, Division(test=table.subset(cell.test)))
        run.options.chosen_sources(run.splits.train)
    except MetricsmithError as problem:
        return without_result(cell, problem)
    return run


def run_cell(
    table: Table,
    setting: Setting,
    options: Options,
    *,
    name: str,
    learned: Places,
    test: Places,
    seed: int,
    measure: str = "metric",
) -> CellRun:
    """Run a cell: what `induce` of its learning rows with its test rows as the test file gives, and nothing else.

    Parameters
    ----------
    table : Table
    setting : Setting
    options : Options
        What the setting leaves open. Every seed asks a model anew where its rows make other prompts; equal prompts are
        answered by DSPy's cache and by the store, as in all inductions.
    name : str
        That of the data set.
    learned, test : sequence of int
        Places in the table (`learning_places`, `test_places`).
    seed : int
        That of the induction.
    measure : str
        ``metric``: the induced metric. ``candidates``: each generated metric by itself, on the test rows alone; of the
        setting only `generators` and `panel` matter then.

    Returns
    -------
    CellRun
        ``too few`` with fewer than `FEWEST` learning rows, or fewer than the setting asks for; ``not run`` where a
        model or something else is not here; ``failed`` for any other error of this cell.

    Raises
    ------
    OptionError
        For a measure that is not known here.
    MetricsmithError
        Errors that end all cells (`without_result`).
    """
    started = time.perf_counter()
    cell = begun(setting, name, learned, test, seed)
    run = open_cell(table, setting, options, cell, measure)
    if isinstance(run, CellRun):
        return run
    try:
        with run.spending():
            cell = _MEASURED[measure](run, cell)
    except MetricsmithError as problem:
        cell = without_result(cell, problem)
    return replace(cell, usage=replace(cell.usage, seconds=time.perf_counter() - started))


def cell_usage(
    table: Table,
    setting: Setting,
    options: Options,
    *,
    name: str,
    learned: Places,
    test: Places,
    seed: int,
    measure: str = "metric",
) -> Usage:
    """The requests that `run_cell` with the same arguments is likely to make alone: none where it cannot be run.

    `open_cell` has the reason then. Errors are those of `run_cell`.
    """
    cell = begun(setting, name, learned, test, seed)
    run = open_cell(table, setting, options, cell, measure)
    if isinstance(run, CellRun):
        return Usage()
    if measure == "metric":
        ranked = setting.retrieval is None or setting.retrieval.endswith("model")
        return replace(run, options=replace(run.options, recommender=None)).estimated if ranked else run.estimated
    # Judges that are measured by themselves read no learning row: their share of what all rows take is taken off.
    splits, wide = run.splits, replace(run.options, k=ALL)
    alone, both = (estimate_passes([PassRows(splits.train, own)], run.task, wide) for own in ([], splits.test.rows))
    read, new = ({content_key(row) for row in side.rows} for side in (splits.train, splits.test))
    return both + times(both + times(alone, -1), -len(read) / len(new - read))


def _induced(run: Prepared, cell: CellRun) -> CellRun:
    """The induced metric on the test rows; rows that one of the caller's metrics has learned from have no number."""
    record = run.induced().record
    predicted = [row.prediction for row in record.data if row.split == "test"]  # in the order of the table
    values = np.full(len(cell.test), np.nan)
    values[np.sort(run.splits.places["test"])] = np.array(predicted, dtype=float)
    told = {name: record.usage[name] for name in ("requests", "prompt_tokens", "completion_tokens", "cost")}
    return replace(
        cell,
        names=(METRIC,),
        values=(tuple(values.tolist()),),
        tau=record.headline.kendall_tau_b,
        interval=Interval(record.headline.ci_low, record.headline.ci_high),
        components=tuple(component.name for component in record.components),
        usage=Usage(**told),
    )


def _measured_alone(run: Prepared, cell: CellRun) -> CellRun:
    """Every generated metric on the test rows, and the mean of their agreement with the raters."""
    splits, task, options = run.splits, run.task, replace(run.options, k=ALL, columns=(), prior_columns=())
    with options.asking():
        pool = generate_candidates(splits.train.rows, task, options, ChosenSources(False, True, ()))
        if not pool.made.metrics:
            why = "; ".join(pool.made.notes) or "no metric is asked for"
            return replace(cell, status="failed", why=f"no metric was generated: {why}", usage=pool.made.usage)
        candidates = retrieve_candidates(pool, task, options)
        scored = score(candidates.metrics, splits.test.rows, **options.scoring)
    kept = scored.select([metric.name for metric in candidates.metrics if metric.name not in scored.dropped])
    up = 1 if task.scale.higher_is_better else -1
    signs = [up if metric.output.higher_is_better else -up for metric in kept.metrics]
    found = (np.array(signs) * kept.run()).T
    values = np.full((len(found), len(cell.test)), np.nan)
    values[:, splits.places["test"]] = found
    ratings, groups = splits.test.ratings, splits.test.groups
    return replace(
        cell,
        names=tuple(kept.names),
        values=tuple(map(tuple, values.tolist())),
        tau=repeated_mean(kendall_tau_b, found, ratings, own_rows=True),
        interval=repeated_interval(
            batch_kendall_tau_b, found, ratings, groups, between=False, batched=True, own_rows=True
        ),
        components=tuple(kept.names),
        usage=candidates.usage + scored.usage,
    )


_MEASURED: Mapping[str, Callable[[Prepared, CellRun], CellRun]] = {"metric": _induced, "candidates": _measured_alone}
