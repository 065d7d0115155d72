"""Saved metrics, loaded: at work on a table, or among the candidates of an induction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricsmith.cli.options import CandidateOptions, LimitOptions, ModelOptions, TableOptions
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, InputError, OptionError

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table
    from metricsmith.metric import Metric
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.programs.induced import InducedMetric

__all__ = ["any_metric", "auto_metrics", "induced_metric", "model_for", "places", "rows_for"]


def any_metric(path: Path, local: Sequence[str] | None = None) -> Metric:
    """The metric in a file: an induced one, a judge, or one of the bank; `local` is ``--local``.

    Raises
    ------
    OptionError
        If the file holds something else, such as a generator.
    """
    from metricsmith.programs.loading import load

    loaded = load(path, local=places(local))
    if not hasattr(loaded, "judge_batch"):
        raise OptionError(f"{path} holds a {type(loaded).__name__}, which is no metric; name a file with one")
    return loaded  # type: ignore[no-any-return]


def induced_metric(path: Path, local: Sequence[str] | None = None) -> InducedMetric:
    """The induced metric in a file; `OptionError` for any other metric; `local` is ``--local``."""
    from metricsmith.programs.induced import InducedMetric

    metric = any_metric(path, local)
    if not isinstance(metric, InducedMetric):
        raise OptionError(f"{path} holds a {metric.card.kind}, not an induced metric; induce one first")
    return metric


def places(local: Sequence[str] | None) -> dict[str, str]:
    """The paths of ``--local NAME=PATH`` by the name in our table.

    Raises
    ------
    OptionError
        If one is not of that form, or a metric is not known or named twice.
    """
    from metricsmith.bank.weighted import model_name

    pairs = [one.partition("=")[::2] for one in local or ()]
    if stray := [one for one, (name, path) in zip(local or (), pairs, strict=True) if not (name.strip() and path)]:
        raise OptionError(f"--local {stray[0]} must be NAME=PATH, such as bertscore=models/roberta-large")
    found: dict[str, str] = {}
    for name, path in pairs:
        if (metric := model_name(name)) in found:
            raise OptionError(f"--local names {metric} twice, {found[metric]} and {path}: give one place")
        found[metric] = path
    return found


def rows_for(metric: Metric, data: str, named: Mapping[str, Any], *, of: str = "") -> Table:
    """The table, read as an induced metric's training rows were, except for the columns that are named now.

    Notes begin with `of`, where there are several tables.
    """
    from metricsmith.datasets.table import read_table

    reading = {**getattr(metric, "reading", {}), **named}
    try:
        table = read_table(data, require_target=False, **reading)
    except InputError as problem:
        if "--metric-columns" not in str(problem):
            raise
        demands = " and ".join(getattr(metric, "demands", []))
        raise DataError(f"{demands}, but {problem}") from problem
    for note in table.notes:
        say(f"note: {of}{note}", err=True)
    return table


def model_for(metric: Metric, model: ModelOptions, *, needed: bool = False) -> AbstractContextManager[Any]:
    """The language model in force, if the metric asks one or one is `needed` otherwise."""
    import dspy

    lm = model.language_model()
    asks = "model" in metric.card.needs
    if lm is None and (asks or needed):
        who = "the metric has components that need" if asks else "this needs"
        raise OptionError(f"{who} a language model: name one with --lm MODEL")
    _compare_models(metric, lm)
    return dspy.context(lm=lm)  # type: ignore[no-any-return]


def auto_metrics(
    candidates: CandidateOptions, table: TableOptions, lm: Any, limits: LimitOptions, **options: Any
) -> AutoMetrics:
    """An `AutoMetrics` as the options say, with the metrics of ``--judge`` among its candidates.

    Raises
    ------
    OptionError
        If one of these asks a language model and there is none, or an option has no meaning.
    """
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.programs.loading import load

    paths, local = candidates.judge or (), places(candidates.local)
    own = [load(path, local=local) for path in paths]
    models: Any = candidates.models
    if models not in (None, "small", "all"):
        models = [name.strip() for name in models.split(",")]
    for path, metric in zip(paths, own, strict=True):
        if lm is None and "model" in getattr(getattr(metric, "card", None), "needs", ()):
            raise OptionError(f"--judge {path} asks a language model: name one with --lm MODEL")
        _compare_models(metric, lm)
    return AutoMetrics(
        metrics=own or None, bank_models=models, local=local, lm=lm, bank=candidates.bank, k=candidates.k,
        n=candidates.n, full=candidates.full, regression=candidates.regression, panel=candidates.panel,
        allow_missing=candidates.allow_missing, strict=candidates.strict,
        allow_columns=tuple(table.allow_column or ()), **limits.scoring(), **options,
    )  # fmt: skip


def _compare_models(metric: Any, model: Any) -> None:
    """Say which parts of a metric were made with another model."""
    from metricsmith.programs.state import Saved, other_model

    for _, part in metric.named_sub_modules(Saved) if isinstance(metric, Saved) else ():
        if said := other_model(part, model):
            say(f"note: {said}", err=True)
