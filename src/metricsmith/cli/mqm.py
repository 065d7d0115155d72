"""``metricsmith mqm``: translations judged segment by segment, with the errors to show for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, OutputOptions, takes_groups
from metricsmith.cli.running import check_places, end_with, scored, tell, write_into
from metricsmith.cli.terminal import say
from metricsmith.errors import ModelFailure, NeedsError, OptionError
from metricsmith.report.render import cost_line
from metricsmith.stats.aggregation.runs import AGGREGATES

__all__ = ["mqm_command"]

*OTHERS, LAST = AGGREGATES


@takes_groups(without=("temperature",), helps={"as_json": "Print means and counts as JSON."})
def mqm_command(
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
    aggregate: Annotated[str, typer.Option(help=f"{', '.join(OTHERS)} or {LAST}.")] = "rrwa",
    weights: Annotated[str, typer.Option(metavar="gemba|wmt", help="What errors cost: 25/5/1 or 5/5/1.")] = "gemba",
    temperature: Annotated[float, typer.Option(help="Of each run; above .15, so that runs differ.")] = 0.4,
    no_spans: Annotated[bool, typer.Option("--no-spans", help="Ask for errors without the words they are in.")] = False,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    output: OutputOptions = OutputOptions(Path("metricsmith-mqm")),
) -> None:
    """Judge translations by the errors that a model finds in several runs."""
    from metricsmith.datasets.segments import read_translations
    from metricsmith.model_calls.models import LOWEST_TEMPERATURE, using
    from metricsmith.mqm import MQMWeights
    from metricsmith.programs.judges.mqm import MQMJudge
    from metricsmith.programs.translations import recorded
    from metricsmith.report.translations.document import TRANSLATION_FILES, TranslationDocument, write_translations
    from metricsmith.scoring import estimate

    read: dict[str, Path | str | None] = {"source": source, "documents": documents, "store": limits.store}
    read |= {f"target {number}": target for number, target in enumerate(targets or (), 1)}
    check_places(output, TRANSLATION_FILES, read)
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
        temperature=temperature, spans=not no_spans, **options,
    )  # fmt: skip
    translations = read_translations(source, targets or (), documents=documents, columns=_columns(column or ()))
    scoring = limits.scoring()
    lm = model.language_model()
    if lm is None:
        raise NeedsError(
            "judging translations takes a language model: name one with --lm provider/model or in METRICSMITH_LM"
        )
    with using(lm):
        expected = estimate([judge], translations.rows, store=limits.store)
        if output.dry_run:
            say(cost_line("estimated", expected))
            for note in translations.notes:
                say(f"note: {note}")
            say("nothing was sent and nothing was written")
            return
        if not output.quiet:
            say(cost_line("estimated", expected), err=True)
        judged, problem = scored([judge], translations.rows, progress=not output.quiet, **scoring)
        record = recorded(judge, translations, judged, expected)
    write_into(partial(write_translations, raw_csv=output.raw_csv), record, output.out)
    tell(TranslationDocument(record), output.out, output)
    end_with(problem, "; the same command with --store goes on from what was kept")
    if record.missing == len(record.segments):
        raise ModelFailure(f"no segment has a score; the first: {record.segments[0].error}")


def _columns(pairs: Sequence[str]) -> dict[str, str]:
    """The name of each role's column, out of ``ROLE=NAME``."""
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
