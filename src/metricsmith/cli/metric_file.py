"""The arguments of commands that put a saved metric to work on a table, and how both are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.model import language_model
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, InputError, OptionError

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table
    from metricsmith.metric import Metric
    from metricsmith.programs.induced import InducedMetric

__all__ = [
    "Data", "Id", "Input", "MetricFile", "Output", "Reference", "Where", "any_metric", "induced_metric", "judge_files",
    "model_for", "own_metrics", "rows_for",
]  # fmt: skip

MetricFile = Annotated[Path, typer.Argument(metavar="METRIC.json", help="Written by `metricsmith induce`.")]
Data = Annotated[str, typer.Argument(help="A table; columns are looked for under the names they had in training.")]
Output = Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge, if renamed.")]
Input = Annotated[list[str] | None, typer.Option(metavar="COL", help="Columns that the output answers, if renamed.")]
Reference = Annotated[list[str] | None, typer.Option(metavar="COL", help="Columns with good outputs, if renamed.")]
Id = Annotated[str | None, typer.Option(metavar="COL", help="Column with unique row ids.")]
Where = Annotated[list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without).")]


def any_metric(path: Path) -> Metric:
    """The metric in a file: an induced one, a judge, or one of the bank.

    Raises
    ------
    OptionError
        If the file holds something else, such as a generator.
    """
    from metricsmith.programs.loading import load

    loaded = load(path)
    if not hasattr(loaded, "judge_batch"):
        raise OptionError(f"{path} holds a {type(loaded).__name__}, which is no metric; name a file with one")
    return loaded  # type: ignore[no-any-return]


def induced_metric(path: Path) -> InducedMetric:
    """The induced metric in a file; `OptionError` for any other metric."""
    from metricsmith.programs.induced import InducedMetric

    metric = any_metric(path)
    if not isinstance(metric, InducedMetric):
        raise OptionError(f"{path} holds a {metric.card.kind}, not an induced metric; induce one first")
    return metric


def rows_for(metric: Metric, data: str, named: Mapping[str, Any]) -> Table:
    """The table, read as an induced metric's training rows were, except for the columns that are named now."""
    from metricsmith.datasets.table import read_table

    reading = {**getattr(metric, "reading", {}), **{role: column for role, column in named.items() if column}}
    try:
        table = read_table(data, require_target=False, **reading)
    except InputError as problem:
        if "--metric-columns" not in str(problem):
            raise
        demands = " and ".join(getattr(metric, "demands", []))
        raise DataError(f"{demands}, but {problem}") from problem
    for note in table.notes:
        say(f"note: {note}", err=True)
    return table


def model_for(
    metric: Metric, lm: str | None, api_base: str | None, temperature: float | None = None, *, needed: bool = False
) -> AbstractContextManager[Any]:
    """The language model in force, if the metric asks one or one is `needed` otherwise."""
    import dspy

    model = language_model(lm, api_base, temperature)
    asks = "model" in metric.card.needs
    if model is None and (asks or needed):
        who = "the metric has components that need" if asks else "this needs"
        raise OptionError(f"{who} a language model: name one with --lm MODEL")
    _compare_models(metric, model)
    return dspy.context(lm=model)  # type: ignore[no-any-return]


def own_metrics(paths: Sequence[Path] | None, model: Any) -> list[Any] | None:
    """The metrics in files, as candidates of the caller's own; None for no file.

    Raises
    ------
    OptionError
        If one asks a language model and there is none.
    """
    from metricsmith.programs.loading import load

    own = [load(path) for path in paths or ()]
    for path, metric in zip(paths or (), own, strict=True):
        if model is None and "model" in getattr(getattr(metric, "card", None), "needs", ()):
            raise OptionError(f"--judge {path} asks a language model: name one with --lm MODEL")
        _compare_models(metric, model)
    return own or None


def judge_files(paths: Sequence[Path] | None) -> dict[str, Path]:
    """The files of ``--judge`` by what they are to the caller, none of which is written over."""
    return {f"judge {number}": path for number, path in enumerate(paths or (), 1)}


def _compare_models(metric: Any, model: Any) -> None:
    """Say which parts of a metric were made with another model."""
    from metricsmith.programs.state import Saved, other_model

    for _, part in metric.named_sub_modules(Saved) if isinstance(metric, Saved) else ():
        if said := other_model(part, model):
            say(f"note: {said}", err=True)
