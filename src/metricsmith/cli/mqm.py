"""``metricsmith mqm``: translations judged segment by segment, by their errors or on another scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, OutputOptions, takes_groups
from metricsmith.cli.running import check_places, end_with, scored, tell, write_into
from metricsmith.cli.terminal import say
from metricsmith.errors import ModelFailure, NeedsError, OptionError, nearest
from metricsmith.report.render import cost_line
from metricsmith.stats.aggregation.runs import AGGREGATES

if TYPE_CHECKING:
    from metricsmith.programs.judges.repeated import Repeated
    from metricsmith.programs.judges.translation import TranslationJudge

__all__ = ["mqm_command"]

*OTHERS, LAST = AGGREGATES
ASSESSED = ("da", "sqm", "stars", "classes")  # scales of `DirectAssessment`, with a reference or without
JUDGES = ("mqm", *ASSESSED, "esa")
RUNS, TEMPERATURE = 10, 0.4  # of the paper on MQM; other judges are asked once, as GEMBA does


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
        typer.Option(
            metavar="ROLE=NAME", help="A table's column: source, translation, system, document, segment or reference."
        ),
    ] = None,
    judge: Annotated[
        str, typer.Option(metavar="|".join(JUDGES), help="What is asked for: errors, a number, a class, or both.")
    ] = "mqm",
    references: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help=f"Translations by people, line by line, for {', '.join(ASSESSED)}."),
    ] = None,
    context: Annotated[
        str, typer.Option(metavar="document|none", help="Whether the whole source document is shown.")
    ] = "document",
    runs: Annotated[
        int | None, typer.Option(help=f"How many times each segment is judged; by default {RUNS} for mqm, else once.")
    ] = None,
    min_runs: Annotated[int | None, typer.Option(help="How many runs must have a number; by default half.")] = None,
    stop_when: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="Ask no more runs of a segment that is known within so many points."),
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(help=f"Of runs: {', '.join(OTHERS)} or {LAST}; by default rrwa for mqm, else mean."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="gemba|wmt", help="What errors cost in mqm: 25/5/1, the default, or 5/5/1."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help=f"Of each run, above .15, so that runs differ; by default {TEMPERATURE:g} for several runs."),
    ] = None,
    no_spans: Annotated[
        bool, typer.Option("--no-spans", help="Ask mqm for errors without the words they are in.")
    ] = False,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    output: OutputOptions = OutputOptions(Path("metricsmith-mqm")),
) -> None:
    """Judge translations by the errors that a model finds in several runs, or on another scale."""
    from metricsmith.datasets.segments import read_translations
    from metricsmith.model_calls.models import LOWEST_TEMPERATURE, using
    from metricsmith.mqm import MQMWeights
    from metricsmith.programs.judges.mqm import MQMJudge
    from metricsmith.programs.translations import recorded
    from metricsmith.report.translations.document import TRANSLATION_FILES, TranslationDocument, write_translations
    from metricsmith.scoring import estimate

    read: dict[str, Path | str | None] = {"source": source, "documents": documents, "store": limits.store}
    read |= {f"target {number}": target for number, target in enumerate(targets or (), 1)}
    read |= {f"reference {number}": path for number, path in enumerate(references or (), 1)}
    check_places(output, TRANSLATION_FILES, read)
    for option, language in (("--source-lang", source_lang), ("--target-lang", target_lang)):
        if not language.strip():
            raise OptionError(f"{option} is needed: name the language, say English")
    columns = _columns(column or ())
    of_mqm, of_scales = ("mqm",), ASSESSED
    _check_judge(judge, {
        "--references": (of_scales, references), "--column reference=...": (of_scales, "reference" in columns),
        "--weights": (of_mqm, weights is not None), "--no-spans": (of_mqm, no_spans),
    })  # fmt: skip
    runs = (RUNS if judge == "mqm" else 1) if runs is None else runs
    if temperature is None and (judge == "mqm" or runs > 1):
        temperature = TEMPERATURE
    if runs > 1 and temperature is not None and temperature <= LOWEST_TEMPERATURE:
        raise OptionError(
            f"--temperature {temperature:g} with --runs {runs}: runs are independent samples above "
            f"{LOWEST_TEMPERATURE} alone; raise it, or give --runs 1"
        )
    asked: dict[str, Any] = {"source_language": source_lang, "target_language": target_lang, "context": context}
    combined: dict[str, Any] = {"aggregate": aggregate, "min_runs": min_runs, "stop_when": stop_when}
    if judge == "mqm":
        costs = MQMWeights.named(weights or "gemba")
        asked |= {"spans": not no_spans, "weights": costs, "runs": runs, "temperature": temperature}
        made: TranslationJudge | Repeated = MQMJudge(**asked, **{**combined, "aggregate": aggregate or "rrwa"})
    else:
        made = _on_scale(judge, asked, bool(references) or "reference" in columns, runs, combined)
        model = replace(model, temperature=temperature)
    translations = read_translations(
        source, targets or (), documents=documents, columns=columns, references=references or ()
    )
    scoring = limits.scoring()
    lm = model.language_model()
    if lm is None:
        raise NeedsError(
            "judging translations takes a language model: name one with --lm provider/model or in METRICSMITH_LM"
        )
    with using(lm):
        expected = estimate([made], translations.rows, store=limits.store)
        if output.dry_run:
            say(cost_line("estimated", expected))
            for note in translations.notes:
                say(f"note: {note}")
            say("nothing was sent and nothing was written")
            return
        if not output.quiet:
            say(cost_line("estimated", expected), err=True)
        judged, problem = scored([made], translations.rows, progress=not output.quiet, **scoring)
        record = recorded(made, translations, judged, expected)
    write_into(partial(write_translations, raw_csv=output.raw_csv), record, output.out)
    tell(TranslationDocument(record), output.out, output)
    end_with(problem, "; the same command with --store goes on from what was kept")
    if record.missing == len(record.segments):
        raise ModelFailure(f"no segment has a score; the first: {record.segments[0].error}")


def _check_judge(judge: str, given: Mapping[str, tuple[Sequence[str], object]]) -> None:
    """Refuse an unknown judge, and options that belong to other judges: those it belongs to, and a true value."""
    if judge not in JUDGES:
        raise OptionError(f"--judge {judge!r} is unknown{nearest(judge, JUDGES)}; allowed are {', '.join(JUDGES)}")
    for option, (belongs, there) in given.items():
        if there and judge not in belongs:
            raise OptionError(
                f"{option} belongs to --judge {', '.join(belongs)}, and --judge {judge} takes none: leave it out, or "
                "name another judge"
            )


def _on_scale(
    kind: str, asked: Mapping[str, Any], referenced: bool, runs: int, combined: Mapping[str, Any]
) -> TranslationJudge | Repeated:
    """The judge of a scale, repeated where it is asked several times."""
    from metricsmith.programs.judges.direct_assessment import DirectAssessment, ESAJudge
    from metricsmith.programs.judges.repeated import Repeated

    judge: TranslationJudge = (
        ESAJudge(**asked) if kind == "esa" else DirectAssessment(**asked, scale=kind, reference=referenced)  # type: ignore[arg-type]
    )
    if runs != 1:
        return Repeated(judge, runs, name=judge.name, **{**combined, "aggregate": combined["aggregate"] or "mean"})
    for option, value in combined.items():
        if value is not None:
            raise OptionError(
                f"--{option.replace('_', '-')} {value} is about several runs, and --judge {kind} is asked once: give "
                "--runs 2 or more, or leave it out"
            )
    return judge


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
