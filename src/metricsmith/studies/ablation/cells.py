"""One cell of a grid: an induction on given learning and test rows, or what it generates measured by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from metricsmith.errors import InputError, MetricsmithError, NeedsError, OptionError, StoreError
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
from metricsmith.studies.ablation.runs import FEWEST, CellRun, GridCell

__all__ = ["ALL", "concluded", "planned_cell", "run_cell", "settled"]

ALL = 10**9  # k where all that is generated is kept
BANKS = {"full": "all"}  # words of a grid for those of an induction


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


def concluded(cell: GridCell, work: Callable[[CellRun], CellRun]) -> CellRun:
    """Have a cell's work done: its result with its time, or the reason why there is none.

    Parameters
    ----------
    cell : GridCell
    work : callable
        Takes the cell with its rows and without a result.

    Returns
    -------
    CellRun
        ``too few`` with fewer than `FEWEST` learning rows, or fewer than the setting asks for; ``not run`` where a
        model or something else is not here; ``failed`` for any other error of this cell, which is final where its data
        or options are wrong.

    Raises
    ------
    MetricsmithError
        Errors that end all cells: a spent budget, a model that refuses to work, Ctrl-C, and a store that cannot be
        used.
    """
    started, setting = time.perf_counter(), cell.setting
    rows, tested = (tuple(side.tolist()) for side in (cell.learned, cell.test))
    begun = CellRun(setting.label, cell.data, setting.rows, cell.seed, learned=rows, test=tested)
    if len(rows) < cell.least:
        needed = f"{setting.rows} are asked for" if len(rows) < setting.rows else f"{FEWEST} are the least"
        return replace(begun, status="too few", why=f"{count(len(rows), 'learning row')}; {needed}")
    try:
        ended = work(begun)
    except MetricsmithError as problem:
        if ends_all(problem) or isinstance(problem, StoreError):
            raise
        lacking = isinstance(problem, NeedsError)
        final = isinstance(problem, InputError) and not lacking
        ended = replace(begun, status="not run" if lacking else "failed", why=str(problem), final=final)
        ended = replace(ended, usage=problem.usage or Usage())
    return replace(ended, usage=replace(ended.usage, seconds=time.perf_counter() - started))


def run_cell(cell: GridCell, options: Options, measure: str = "metric") -> CellRun:
    """Run a cell: what `induce` of its learning rows with its test rows as the test file gives, and nothing else.

    Parameters
    ----------
    cell : GridCell
    options : Options
        What the setting leaves open. Every seed asks a model anew where its rows make other prompts; equal prompts are
        answered by DSPy's cache and by the store, as in all inductions.
    measure : str
        ``metric``: the induced metric. ``candidates``: each generated metric by itself, on the test rows alone; of the
        setting only `generators` and `panel` matter then.

    Returns
    -------
    CellRun
        As `concluded`, whose errors it raises.

    Raises
    ------
    OptionError
        For a measure that is not known here.
    """
    if measure not in _MEASURED:
        raise OptionError(f"measure={measure!r} must be one of {', '.join(_MEASURED)}; rankings are run by themselves")

    def work(begun: CellRun) -> CellRun:
        run = _prepared(cell, options, measure)
        with run.spending():
            return _MEASURED[measure](run, begun)

    return concluded(cell, work)


def planned_cell(cell: GridCell, options: Options, measure: str = "metric") -> CellRun:
    """A cell with the requests that it would make alone, or the reason why it cannot be run; asks nothing."""

    def work(begun: CellRun) -> CellRun:
        return replace(begun, usage=_estimated(_prepared(cell, options, measure), cell.setting, measure))

    planned = concluded(cell, work)
    return replace(planned, usage=replace(planned.usage, seconds=0.0))


def _prepared(cell: GridCell, options: Options, measure: str) -> Prepared:
    """The induction of a cell with nothing asked yet."""
    setting, table = cell.setting, cell.table
    if measure == "candidates":
        setting, options = replace(setting, bank="generated"), options.with_own(())
    own = settled(setting, options, cell.seed)
    run = prepare(table.subset(cell.learned), own, Division(test=table.subset(cell.test)))
    run.options.chosen_sources(run.splits.train)  # what it lacks is said here
    return run


def _estimated(run: Prepared, setting: Setting, measure: str) -> Usage:
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
        fallen=record.fallen,
        usage=Usage(**told),
    )


def _measured_alone(run: Prepared, cell: CellRun) -> CellRun:
    """Every generated metric on the test rows, and the mean of their agreement with the raters."""
    splits, task, options = run.splits, run.task, replace(run.options, k=ALL, columns=(), prior_columns=())
    with options.asking():
        pool = generate_candidates(splits.train.rows, task, options, ChosenSources(False, True, ()))
        if not pool.made.metrics:
            why = "; ".join(pool.made.notes) or "no metric is asked for"
            why, final = f"no metric was generated: {why}", not pool.made.lacks
            return replace(cell, status="failed", why=why, usage=pool.made.usage, final=final)
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
        fallen=(*candidates.fell_away, *scored.dropped.values()),
        usage=candidates.usage + scored.usage,
    )


_MEASURED: Mapping[str, Callable[[Prepared, CellRun], CellRun]] = {"metric": _induced, "candidates": _measured_alone}
