"""``metricsmith mqm``: translations judged segment by segment, with the errors to show for it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.endings import tell, write_into
from metricsmith.cli.limits import (
    Bounds,
    MaxRequests,
    MaxSeconds,
    MaxTokens,
    MaxUsd,
    RequestsPerMinute,
    StoreFile,
    TokensPerMinute,
    budget,
    concurrency,
    cost_line,
)
from metricsmith.cli.model import ApiBase, Model, language_model
from metricsmith.cli.paths import check_apart, check_writable
from metricsmith.cli.table import RawCsv
from metricsmith.cli.terminal import say
from metricsmith.errors import Interrupted, MetricsmithError, ModelFailure, NeedsError, OptionError, StoreError

if TYPE_CHECKING:
    from metricsmith.programs.judges.mqm import MQMJudge
    from metricsmith.report.translations.record import TranslationRecord

__all__ = ["mqm", "mqm_text"]


def mqm(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Text file, one segment by line; or a table, and no TARGET.")
    ],
    targets: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[TARGET]...", help="Text files aligned with the source, one for each system."),
    ] = None,
    source_lang: Annotated[str, typer.Option("--source-lang", metavar="NAME", help="Say English.")] = "",
    target_lang: Annotated[str, typer.Option("--target-lang", metavar="NAME", help="Say German.")] = "",
    documents: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names the document of each line; by default all are one.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=NAME", help="A table's column: source, translation, system, document or segment."),
    ] = None,
    context: Annotated[
        str, typer.Option(metavar="document|none", help="Whether the whole source document is shown.")
    ] = "document",
    runs: Annotated[int, typer.Option(help="How many times each segment is judged.")] = 10,
    min_runs: Annotated[int | None, typer.Option(help="How many runs must have a number; by default half.")] = None,
    stop_when: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="Ask no more runs of a segment that is known within so many MQM points."),
    ] = None,
    aggregate: Annotated[str, typer.Option(help="rrwa, mean, median, maximum or geometric.")] = "rrwa",
    weights: Annotated[str, typer.Option(metavar="gemba|wmt", help="What errors cost: 25/5/1 or 5/5/1.")] = "gemba",
    temperature: Annotated[float, typer.Option(help="Of each run; above .15, so that runs differ.")] = 0.4,
    lm: Model = None,
    api_base: ApiBase = None,
    store: StoreFile = None,
    bounds: Bounds = "auto",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("metricsmith-mqm"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it will cost; send nothing, write nothing.")
    ] = False,
    raw_csv: RawCsv = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print means and counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Judge translations by the errors that a model finds in several runs."""
    from metricsmith.datasets.segments import read_translations
    from metricsmith.model_calls.models import LOWEST_TEMPERATURE, using
    from metricsmith.mqm import MQMWeights
    from metricsmith.programs.judges.mqm import MQMJudge
    from metricsmith.report.translations.write import TRANSLATION_FILES, write_translations
    from metricsmith.scoring import estimate

    files: dict[str, Path | str | None] = {"source": source, "documents": documents, "store": store}
    files |= {f"target {number}": target for number, target in enumerate(targets or (), 1)}
    if not dry_run:
        check_writable(out, "--out", folder=True)
        check_apart([out / name for name in TRANSLATION_FILES], "--out", files)
    if store is not None:
        check_writable(store, "--store", folder=False)
    for option, language in (("--source-lang", source_lang), ("--target-lang", target_lang)):
        if not language.strip():
            raise OptionError(f"{option} is needed: name the language, say English")
    if runs > 1 and temperature <= LOWEST_TEMPERATURE:
        raise OptionError(
            f"--temperature {temperature:g} with --runs {runs}: runs are independent samples above "
            f"{LOWEST_TEMPERATURE} alone; raise it, or give --runs 1"
        )
    options: dict[str, Any] = {"aggregate": aggregate, "context": context, "min_runs": min_runs, "stop_when": stop_when}
    judge = MQMJudge(
        source_language=source_lang, target_language=target_lang, weights=MQMWeights.named(weights), runs=runs,
        temperature=temperature, **options,
    )  # fmt: skip
    translations = read_translations(source, targets or (), documents=documents, columns=_columns(column or ()))
    limits = {
        "concurrency": concurrency(bounds, requests_per_minute, tokens_per_minute),
        "budget": budget(max_requests, max_tokens, max_usd, max_seconds),
    }
    model = language_model(lm, api_base)
    if model is None:
        raise NeedsError("judging translations takes a language model: name one with --lm provider/model")
    with using(model):
        expected = estimate([judge], translations.rows, store=store)
        if dry_run:
            say(cost_line("estimated", expected))
            for note in translations.notes:
                say(f"note: {note}")
            say("nothing was sent and nothing was written")
            return
        if not quiet:
            say(cost_line("estimated", expected), err=True)
        record, problem = _judged(judge, translations, expected, store=store, progress=not quiet, **limits)
    write_into(partial(write_translations, raw_csv=raw_csv), record, out)
    tell(record, lambda: mqm_text(record, out), as_json=as_json, quiet=quiet)
    _end(record, problem)


def mqm_text(record: TranslationRecord, out: Path) -> str:
    """The means, what must not be overlooked, costs, and where everything was written."""
    from metricsmith.report.terminal import render_terminal
    from metricsmith.report.translations.write import TranslationDocument

    return render_terminal(TranslationDocument(record), out)


def _judged(
    judge: MQMJudge, translations: Any, expected: Any, **options: Any
) -> tuple[TranslationRecord, MetricsmithError | None]:
    """The record, and the error that cut the run short; what was finished by then is in it."""
    from metricsmith.programs.translations import recorded
    from metricsmith.scoring import score

    problem: MetricsmithError | None = None
    try:
        table = score([judge], translations.rows, **options)
    except (ModelFailure, StoreError, Interrupted) as stop:
        if stop.table is None:
            raise
        table, problem = stop.table, stop
    return recorded(judge, translations, table, expected), problem


def _end(record: TranslationRecord, problem: MetricsmithError | None) -> None:
    """Say how it ended; see `metricsmith.cli.app` for the codes."""
    if isinstance(problem, Interrupted):
        say(f"error: {problem}; the same command with --store goes on from what was kept", err=True)
        raise typer.Exit(130)
    if problem is not None:
        raise problem
    if record.missing == len(record.segments):
        raise ModelFailure(f"no segment has a score; the first: {record.segments[0].error}")


def _columns(pairs: Any) -> dict[str, str]:
    named: dict[str, str] = {}
    for pair in pairs:
        role, sign, name = pair.partition("=")
        if not sign or not role or not name:
            raise OptionError(f"--column {pair} must be ROLE=NAME, say translation=output")
        role = role.strip()
        if role in named:
            raise OptionError(f"--column names the {role} twice, {named[role]!r} and {name!r}: leave one out")
        named[role] = name
    return named
