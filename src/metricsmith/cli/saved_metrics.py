"""Saved metrics, loaded: at work on a table, or among the candidates of an induction."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricsmith.cli.options import CandidateOptions, LimitOptions, ModelOptions, OutputOptions, TableOptions
from metricsmith.cli.terminal import note_line, say
from metricsmith.errors import DataError, InputError, OptionError

if TYPE_CHECKING:
    from metricsmith.bank.models.finetuned import FinetunedMetric
    from metricsmith.datasets.rated_set import RatedSet
    from metricsmith.datasets.streamed import StreamedTable
    from metricsmith.datasets.table import Table
    from metricsmith.metric import Metric
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.records import Task

__all__ = [
    "any_metric",
    "auto_metrics",
    "finetuned",
    "judge_counts",
    "known_columns",
    "model_for",
    "named_metrics",
    "places",
    "rows_for",
    "single_metric",
    "stream_for",
]

COUNT = re.compile(r"[0-9]{1,3}")  # of a family


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


def named_metrics(text: str, local: Sequence[str] | None = None) -> list[Metric]:
    """The metric in a file, or metrics of the bank by names joined by commas; `local` is ``--local``.

    A file wins where there is one of that name; a name that ends in ``.json`` is a file's. The name of a family stands
    for all its outputs.

    Raises
    ------
    OptionError
        If there is no such metric, with the nearest name, or as `any_metric` does.
    NeedsError
        If a metric needs weights that are not on this machine.
    """
    from metricsmith.bank.catalogue import default_bank, full_bank
    from metricsmith.bank.weighted import plain_metric_name, weighted_names

    path = Path(text)
    if os.path.lexists(path) or text.endswith(".json"):
        return [any_metric(path, local)]
    names = [name.strip() for name in text.split(",") if name.strip()]
    weighted = [of for name in names if (of := weighted_names().get(plain_metric_name(name)))]
    bank = full_bank(weighted, local=places(local)) if weighted else default_bank()
    found: dict[str, Metric] = {}
    for name in names:
        outputs = [output.name for output in bank.card(name).outputs]
        alone = [output for output in outputs if plain_metric_name(output) == plain_metric_name(name)]
        found |= {output: bank.get(output) for output in alone or outputs}
    if not found:
        raise OptionError(f"METRIC {text!r} is empty: name a file METRIC.json, or metrics of the bank such as bleu,ter")
    return list(found.values())


def known_columns(entry: RatedSet, table: TableOptions, output: OutputOptions) -> dict[str, Any]:
    """The options of `read_table` for a data set of the paper: what it has of its own goes before those of a command.

    Those may be meant for another table, or stand in ``metricsmith.toml``. A target that is one of its dimensions
    stays, conditions of ``--where`` hold beside its own, and a note names the options that do not apply. Where the
    format of a data set is not verified, options go first.
    """
    scaled = ("scale", "levels", "higher_is_better") if any(entry.dimensions.values()) else ()
    own = set() if entry.unverified else {*entry.columns, "task", *scaled} - {"where"}
    reading = replace(table, target=table.target or "-").reading() | {"target": table.target}
    if table.target not in entry.dimensions:
        own.add("target")
    others = [role for role, value in reading.items() if role in own and value not in ("", (), None)]
    if others and output.verbose:
        line = f"it has {', '.join(others)} of its own, and options that name others do not apply to it"
        say(note_line(f"{entry.name}: {line}"), err=True)
    return {role: value for role, value in reading.items() if role not in own}


def single_metric(metrics: Sequence[Metric], text: object) -> Metric:
    """The one metric that a text names; `OptionError` if it names several."""
    if len(metrics) != 1:
        raise OptionError(f"one metric is needed here, and {text} names {len(metrics)}: name one of them")
    return metrics[0]


def places(local: Sequence[str] | None) -> dict[str, str]:
    """The paths of ``--local NAME=PATH`` by the name in our table.

    Raises
    ------
    OptionError
        If one is not of that form, or a metric is not known or named twice.
    """
    from metricsmith.bank.weighted import place_name

    pairs = [one.partition("=")[::2] for one in local or ()]
    if stray := [one for one, (name, path) in zip(local or (), pairs, strict=True) if not (name.strip() and path)]:
        raise OptionError(f"--local {stray[0]} must be NAME=PATH, such as bertscore=models/roberta-large")
    found: dict[str, str] = {}
    for name, path in pairs:
        if (metric := place_name(name)) in found:
            raise OptionError(f"--local names {metric} twice, {found[metric]} and {path}: give one place")
        found[metric] = path
    return found


def judge_counts(text: str | None) -> dict[str, int] | None:
    """The families of ``--generators NAME=COUNT,...`` in their order, and how many of each; None without it.

    Raises
    ------
    OptionError
        If a part is not of that form, or a family is named twice. An induction knows the families.
    """
    counts: dict[str, int] = {}
    for part in () if text is None else text.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        if not (name and COUNT.fullmatch(number)):
            raise OptionError(
                f"--generators {part.strip()!r} must be NAME=COUNT with a whole number from 0 to 999: write "
                "criterion=10,rubric=5"
            )
        if name in counts:
            raise OptionError(f"--generators names {name} twice, {counts[name]} and {number}: give one number")
        counts[name] = int(number)
    return counts or None


def rows_for(metric: Metric, data: str, named: Mapping[str, Any], *, of: str = "", quiet: bool = False) -> Table:
    """The table, read as an induced metric's training rows were, except for the columns that are named now.

    Notes begin with `of`, where there are several tables; where it is read twice they are told once.
    """
    from metricsmith.datasets.table import read_table

    reading = {**getattr(metric, "reading", {}), **named}
    with _demanding(metric):
        table = read_table(data, require_target=False, **reading)
    for note in () if quiet else table.notes:
        say(f"note: {of}{note}", err=True)
    return table


def stream_for(metrics: Sequence[Metric], data: str, named: Mapping[str, Any], keep: Sequence[str]) -> StreamedTable:
    """The same for a table that is read piece by piece; several metrics have no columns of their own."""
    from metricsmith.datasets.streamed import stream_table

    reading = {**(getattr(metrics[0], "reading", {}) if len(metrics) == 1 else {}), **named}
    known = inspect.signature(stream_table).parameters
    with _demanding(metrics[0]):
        table = stream_table(data, keep=keep, **{role: name for role, name in reading.items() if role in known})
    for note in table.notes:
        say(note_line(note), err=True)
    return table


@contextmanager
def _demanding(metric: Metric) -> Iterator[None]:
    """Say of a column that is not there what the metric needs it for."""
    try:
        yield
    except InputError as problem:
        if "--metric-columns" not in str(problem) or not hasattr(metric, "demands"):
            raise
        raise DataError(f"{' and '.join(metric.demands)}, but {problem}") from problem


def model_for(metric: Metric, model: ModelOptions, *, needed: bool = False) -> AbstractContextManager[Any]:
    """The language model in force, if the metric asks one or one is `needed` otherwise."""
    import dspy

    lm = model.language_model()
    asks = "model" in metric.card.needs
    if lm is None and (asks or needed):
        who = "the metric has components that need" if asks else "this needs"
        raise OptionError(f"{who} a language model: name one with --lm MODEL or in METRICSMITH_LM")
    _compare_models(metric, lm)
    return dspy.context(lm=lm)  # type: ignore[no-any-return]


def auto_metrics(
    candidates: CandidateOptions, table: TableOptions, lm: Any, limits: LimitOptions, *, paper: bool = False,
    **options: Any,
) -> AutoMetrics:  # fmt: skip
    """An `AutoMetrics` as the options say, with the metrics of ``--judge`` among its candidates.

    An option that has its default leaves it to `AutoMetrics.paper`, if that is asked for.

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
            raise OptionError(f"--judge {path} asks a language model: name one with --lm MODEL or in METRICSMITH_LM")
        _compare_models(metric, lm)
    sizes = {name: getattr(candidates, name) for name in ("k", "n", "full", "regression")}
    if paper:
        sizes = {name: value for name, value in sizes.items() if value != getattr(CandidateOptions, name)}
    return (AutoMetrics.paper if paper else AutoMetrics)(
        metrics=own or None, bank_models=models, local=local, lm=lm, bank=candidates.bank,
        generators=judge_counts(candidates.generators), panel=candidates.panel, allow_missing=candidates.allow_missing,
        strict=candidates.strict, allow_columns=tuple(table.allow_column or ()), **sizes, **limits.scoring(), **options,
    )  # fmt: skip


def finetuned(text: str | None, task: Task) -> FinetunedMetric | None:
    """The untrained metric of ``--finetune NAME[=FOLDER]``, None without it; an unknown name is an `OptionError`."""
    from metricsmith.bank.models.finetuned import FinetunedMetric

    if text is None:
        return None
    name, _, folder = text.partition("=")
    return FinetunedMetric(task, encoder=name.strip(), local=folder)


def _compare_models(metric: Any, model: Any) -> None:
    """Say which parts of a metric were made with another model."""
    from metricsmith.programs.state import Saved, other_model

    for _, part in metric.named_sub_modules(Saved) if isinstance(metric, Saved) else ():
        if said := other_model(part, model):
            say(f"note: {said}", err=True)
