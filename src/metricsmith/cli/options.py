"""The options that several commands share, each declared once, in frozen groups.

A command takes whole groups as parameters: the table of rated outputs or the saved metric with its table (data), the
model and the candidates of an induction (model), the limits, the output. `takes_groups` writes the flat signature that
typer reads, and hands the values on as groups.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from metricsmith.cli.settings import FILE, text_or_file, with_settings
from metricsmith.errors import OptionError

if TYPE_CHECKING:
    from metricsmith.scoring import Concurrency

__all__ = [
    "CandidateOptions", "LimitOptions", "ModelOptions", "OutputOptions", "RawCsv", "SavedMetricOptions", "TableOptions",
    "takes_groups",
]  # fmt: skip

NOTHING: Mapping[str, str] = MappingProxyType({})
LM, API_BASE = "METRICSMITH_LM", "METRICSMITH_API_BASE"  # variables of the environment

# Options of more than one group.
Context = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with what the output should rest on, such as a passage.")
]
System = Annotated[str | None, typer.Option(metavar="COL", help="Column that says which system wrote the output.")]
Rater = Annotated[str | None, typer.Option(metavar="COL", help="Column that says who gave the rating.")]
Id = Annotated[str | None, typer.Option(metavar="COL", help="Column with row ids.")]
Local = Annotated[
    list[str] | None,
    typer.Option("--local", metavar="NAME=PATH", help="Where the weights of a bank metric lie; else the hub's cache."),
]
Ceiling = Annotated[float | None, typer.Option(help="The provider's ceiling.")]
RawCsv = Annotated[
    bool, typer.Option("--raw-csv", help="No apostrophes in CSV before texts that a spreadsheet would run.")
]


def takes_groups(
    *, without: Sequence[str] = (), after: Mapping[str, str] = NOTHING, helps: Mapping[str, str] = NOTHING
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let typer read a command whose parameters are groups of options beside options of its own.

    The options of a group stand on the help page where the group stands among the command's parameters. A default of
    the group's parameter holds the command's own defaults, also of options that the command does not have.

    Parameters
    ----------
    without : sequence of str
        Options of the groups that the command does not have; in a group without a default of its own these are empty.
    after : mapping of str to str
        Options that stand elsewhere on the help page: each directly behind another.
    helps : mapping of str to str
        Help texts of the groups' options in the words of this command.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        flat: dict[str, inspect.Parameter] = {}
        groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
        fillable = set[str]()  # from the working folder's settings
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
            group = parameter.annotation
            if not (isinstance(group, type) and is_dataclass(group)):
                flat[name] = parameter.replace(kind=parameter.KEYWORD_ONLY)
                continue
            defaults = group if parameter.default is parameter.empty else parameter.default
            options = {
                option: inspect.Parameter(
                    option, parameter.KEYWORD_ONLY, annotation=kind, default=getattr(defaults, option, parameter.empty)
                )
                for option, kind in get_type_hints(group, include_extras=True).items()
                if option not in without
            }
            own = parameter.default is not parameter.empty
            empty = {one: "" for one in without if one in group.__annotations__ and not hasattr(group, one)}
            made = partial(replace, parameter.default) if own else partial(group, **empty)
            groups[name] = made, list(options)
            if not own:  # no default of its own: it stands for the table that the command reads
                fillable |= {*options, "group"}
            elif group is LimitOptions:
                fillable |= options.keys()
            flat |= options
        for option, text in helps.items():
            kind, declared = get_args(flat[option].annotation)
            declared = copy(declared)
            declared.help = text
            flat[option] = flat[option].replace(annotation=Annotated[kind, declared])
        order = [option for option in flat if option not in after]
        for option, before in after.items():
            order.insert(order.index(before) + 1, option)

        @wraps(command)
        def flat_command(**given: Any) -> None:
            with with_settings(given, fillable & flat.keys()) as values:
                built = {
                    name: group(**{option: values.pop(option) for option in options})
                    for name, (group, options) in groups.items()
                }
                command(**values, **built)

        flat_command.__signature__ = inspect.Signature([flat[option] for option in order])  # type: ignore[attr-defined]
        flat_command.__annotations__ = {}
        return flat_command

    return decorate


@dataclass(frozen=True)
class TableOptions:
    """A table of rated outputs, and the meaning of its columns."""

    data: Annotated[str, typer.Argument(help="CSV, TSV, JSONL, XLSX or Parquet file, or a Hugging Face data set id.")]
    target: Annotated[
        str, typer.Option(metavar="COL", help=f"Column with the human rating; needed, here or in {FILE}.")
    ] = ""
    task: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What the outputs are for and what makes a good one.")
    ] = ""
    output: Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge.")] = None
    input: Annotated[list[str] | None, typer.Option(metavar="COL", help="Column that the output answers.")] = None
    reference: Annotated[list[str] | None, typer.Option(metavar="COL", help="Column with good outputs.")] = None
    context: Context = None
    system: System = None
    rater: Rater = None
    raters: Annotated[
        str, typer.Option("--raters", metavar="mean|median", help="The average of an output's ratings.")
    ] = "mean"
    rater_effects: Annotated[
        str,
        typer.Option(
            "--rater-effects",
            metavar="none|centre",
            help="centre: take each rater's mean off, put everybody's mean back.",
        ),
    ] = "none"
    id: Id = None
    group: Annotated[
        str | None, typer.Option(metavar="COL", help="Rows of one group never stand on both sides of a split.")
    ] = None
    where: Annotated[
        list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without) a value.")
    ] = None
    metric_columns: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Columns of scores to take as candidates.")
    ] = None
    prior_columns: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Those that measure the target itself.")
    ] = None
    allow_column: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-column", metavar="NAME", help="Candidate to keep though it orders rows as the rating does."
        ),
    ] = None
    levels: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Ratings that are words, from worst to best: poor,okay,good.")
    ] = None
    scale: Annotated[
        str | None,
        typer.Option("--scale", metavar="LOW:HIGH[:STEP]", help="The rating scale; by default inferred."),
    ] = None
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="The rating counts something bad, such as errors.")
    ] = False

    def reading(self) -> dict[str, Any]:
        """The arguments of `read_table` that the options stand for.

        Raises
        ------
        DataError
            If the file of ``--task`` cannot be read.
        OptionError
            If no target is named.
        """
        if not self.target:
            raise OptionError(f"--target is missing: name the column with the human rating, here or in {FILE}")
        return {
            "target": self.target, "task": text_or_file(self.task, "--task"), "output": self.output,
            "inputs": self.input or (), "reference": self.reference or (), "context": self.context,
            "system": self.system, "rater": self.rater, "raters": self.raters, "rater_effects": self.rater_effects,
            "id": self.id, "group": self.group, "where": self.where or (),
            "metric_columns": self.metric_columns or (), "prior_columns": self.prior_columns or (),
            "scale": self.scale, "levels": self.levels or (),
            "higher_is_better": False if self.lower_is_better else None,
        }  # fmt: skip


@dataclass(frozen=True)
class SavedMetricOptions:
    """A saved metric, a table to put it to work on, and the columns that bear another name than in training."""

    metric: Annotated[
        Path,
        typer.Argument(metavar="METRIC", help="A file such as metric.json, or names of bank metrics: bleu,rouge_l_f."),
    ]
    data: Annotated[str, typer.Argument(help="A table; columns are looked for under the names they had in training.")]
    output: Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge, if renamed.")] = None
    input: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Columns that the output answers, if renamed.")
    ] = None
    reference: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Columns with good outputs, if renamed.")
    ] = None
    context: Context = None
    system: System = None
    rater: Rater = None
    id: Id = None
    where: Annotated[
        list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without).")
    ] = None
    local: Local = None

    def reading(self) -> dict[str, Any]:
        """The arguments of `read_table` that are named now."""
        named = {
            "output": self.output, "inputs": self.input, "reference": self.reference, "context": self.context,
            "system": self.system, "rater": self.rater, "id": self.id, "where": self.where,
        }  # fmt: skip
        return {role: column for role, column in named.items() if column}


@dataclass(frozen=True)
class ModelOptions:
    """The language model."""

    lm: Annotated[
        str | None,
        typer.Option(
            "--lm", metavar="MODEL", envvar=LM, help="Language model as provider/name, e.g. openai/gpt-4o-mini."
        ),
    ] = None
    api_base: Annotated[
        str | None,
        typer.Option("--api-base", metavar="URL", envvar=API_BASE, help="Address of an OpenAI-compatible server."),
    ] = None
    temperature: Annotated[
        float | None,
        typer.Option(help="Of the model; repeated runs need more than .15. By default the provider's."),
    ] = None

    def language_model(self) -> Any:
        """A `dspy.LM`, or None without a model name; the key comes from the provider's environment variable.

        Without a temperature the provider's default holds.

        Raises
        ------
        OptionError
            If no model can have such a name, or not with these settings.
        """
        if self.temperature is not None and not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise OptionError(
                f"--temperature {self.temperature:g} must be a number from 0; providers allow up to 1 or 2"
            )
        if self.lm is None:
            if self.api_base not in (None, os.environ.get(API_BASE)):
                raise typer.BadParameter("--api-base needs --lm: name the model that the server offers")
            return None
        import dspy
        from dspy.utils.exceptions import LMConfigurationError

        settings: dict[str, Any] = {} if self.temperature is None else {"temperature": self.temperature}
        if self.api_base is not None:
            settings["api_base"] = self.api_base
            if "OPENAI_API_KEY" not in os.environ:
                settings["api_key"] = "none"  # local servers ask for none, the client insists on one
        try:
            return dspy.LM(self.lm.strip(), **settings)
        except (ValueError, LMConfigurationError) as problem:
            raise OptionError(
                f"--lm {self.lm!r} cannot be used: {problem}; name it as provider/model, say openai/gpt-4o-mini"
            ) from problem


@dataclass(frozen=True)
class CandidateOptions:
    """The candidates of an induction, and the choice among them."""

    bank: Annotated[str, typer.Option(help="auto, all, existing, generated or none.")] = "auto"
    regression: Annotated[str, typer.Option(help="auto (PriorRidge) or pls (the paper's).")] = "auto"
    n: Annotated[int | None, typer.Option("--n", help="How many components; by default 12, fewer with judges.")] = None
    k: Annotated[int, typer.Option("--k", help="How many metrics retrieval keeps.")] = 30
    generators: Annotated[
        str | None, typer.Option(metavar="NAME=COUNT,...", help="Judges to generate, such as criterion=10,rubric=5.")
    ] = None
    judge: Annotated[
        list[Path] | None,
        typer.Option("--judge", metavar="FILE.json", help="A saved judge or metric as a candidate of your own."),
    ] = None
    models: Annotated[
        str | None,
        typer.Option(metavar="small|all|NAME,...", help="Metrics with weights to take; by default those of --local."),
    ] = None
    local: Local = None
    panel: Annotated[
        bool, typer.Option("--panel", help="Ask all generated judges in one request a row, which is cheaper.")
    ] = False
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="Keep candidates without a value on more than 10 % of the training rows."),
    ] = False
    full: Annotated[bool, typer.Option("--full", help="Keep all candidates as components.")] = False
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop where a judge cannot be made or fails too often, instead of a warning."),
    ] = False

    def judge_files(self) -> dict[str, Path]:
        """The files of ``--judge`` by what they are to the caller, none of which is written over."""
        return {f"judge {number}": path for number, path in enumerate(self.judge or (), 1)}


@dataclass(frozen=True)
class LimitOptions:
    """A store and the limits of everything that is asked of a model."""

    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Keep judgements here; what is there is not asked for again."),
    ] = None
    bounds: Annotated[
        str, typer.Option("--concurrency", metavar="auto|N|LOW:HIGH", help="Model requests in flight; auto adapts.")
    ] = "auto"
    requests_per_minute: Ceiling = None
    tokens_per_minute: Ceiling = None
    max_requests: Annotated[int | None, typer.Option(help="Stop after so many model requests.")] = None
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Stop after so many tokens.")] = None
    max_usd: Annotated[float | None, typer.Option("--max-usd", help="Stop after so many US dollars.")] = None
    max_seconds: Annotated[float | None, typer.Option("--max-seconds", help="Stop after so much time.")] = None

    def scoring(self) -> dict[str, Any]:
        """The store, concurrency and budget by the names that `score` and its kin give them.

        Raises
        ------
        OptionError
            If a limit has no meaning.
        """
        from metricsmith.scoring import Budget

        spent = (self.max_requests, self.max_tokens, self.max_usd, self.max_seconds)
        return {
            "store": self.store,
            "concurrency": self._concurrency(),
            "budget": None if all(limit is None for limit in spent) else Budget(*spent),
        }

    def _concurrency(self) -> Concurrency:
        """Read ``auto``, ``16`` or ``4:64``, with the ceilings."""
        from metricsmith.scoring import Concurrency

        ceilings: dict[str, Any] = {
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
        }
        if self.bounds == "auto":
            return Concurrency(**ceilings)
        low, _, high = self.bounds.partition(":")
        try:
            return Concurrency(int(low), int(high or low), **ceilings)
        except OptionError:
            raise
        except ValueError:
            raise OptionError(
                f"--concurrency {self.bounds} must be auto, a whole number, or LOW:HIGH such as 4:64"
            ) from None


@dataclass(frozen=True)
class OutputOptions:
    """The folder of a report, and the lines in the terminal."""

    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("metricsmith-out")
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it will cost; send nothing, write nothing.")
    ] = False
    raw_csv: RawCsv = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False

    @property
    def verbose(self) -> bool:
        """True where notes and progress are shown beside the result."""
        return not self.quiet and not self.as_json
