"""``metricsmith specialist``: a judge for a test set that people rated for older systems, made and evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import LimitOptions, ModelOptions, OutputOptions, TableOptions, takes_groups
from metricsmith.cli.running import (
    check_apart,
    check_places,
    check_writable,
    interruptible,
    tell,
    tell_notes,
    write_into,
)
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, ModelFailure, OptionError, nearest
from metricsmith.report.render import cost_line

if TYPE_CHECKING:
    from metricsmith.datasets.table import Table

__all__ = ["specialist_app"]

specialist_app = typer.Typer(
    help="Specialise a judge to a test set that people rated for older systems.", no_args_is_help=True
)

JUDGES = ("mqm", "da", "examples")
NO_TABLE = TableOptions("", "")
LEFT_OUT = (
    "data", "reference", "context", "raters", "rater_effects", "id", "group", "metric_columns", "prior_columns",
    "allow_column",
)  # fmt: skip
HELPS = {"target": "Column with the rating, where HISTORY is a rated table and no file of MQM ratings."}

HistoryFile = Annotated[
    Path, typer.Argument(metavar="HISTORY", help="Ratings of older systems: an MQM file, or a table with --target.")
]


@dataclass(frozen=True)
class JudgeOptions:
    """The judge to be specialised, and what holds for all policies."""

    judge: Annotated[
        str | None,
        typer.Option(metavar="mqm|da|examples", help="By default mqm, and examples for a table of numbers."),
    ] = None
    source_language: Annotated[
        str, typer.Option("--source-language", metavar="NAME", help="Say English; not for examples.")
    ] = ""
    target_language: Annotated[
        str, typer.Option("--target-language", metavar="NAME", help="Say German; not for examples.")
    ] = ""
    same_output: Annotated[
        str,
        typer.Option("--same-output", metavar="drop|keep", help="Examples of others that equal the row's output."),
    ] = "drop"
    seed: Annotated[int, typer.Option(help="Decides the order of examples, and everything that is drawn.")] = 0

    def made(self, table: Table, temperature: float | None = None) -> Any:
        """The judge, without examples; with a temperature that is asked for."""
        from metricsmith.programs.judges.direct_assessment import DirectAssessment
        from metricsmith.programs.judges.mqm import MQMAnnotator
        from metricsmith.programs.judges.raters import ExampleJudge

        kind = self.judge or ("mqm" if all("spans" in row for row in table.rows) else "examples")
        if kind not in JUDGES:
            raise OptionError(f"unknown --judge {kind}{nearest(kind, JUDGES)}; known are {', '.join(JUDGES)}")
        if kind == "examples":
            return ExampleJudge(measure=table.task.target, task=table.task.description, scale=table.task.scale)
        for option, language in (("source", self.source_language), ("target", self.target_language)):
            if not language.strip():
                raise OptionError(f"--{option}-language is needed for --judge {kind}: name the language in plain words")
        named: dict[str, Any] = {"source_language": self.source_language, "target_language": self.target_language}
        if kind == "da":
            return DirectAssessment(**named, context="none")
        named |= {} if temperature is None else {"temperature": temperature}
        return MQMAnnotator(**named, context="none", worked_example=False)


@specialist_app.command("build")
@takes_groups(without=LEFT_OUT, helps=HELPS)
def build_specialist(
    history: HistoryFile,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the judge goes.")] = Path("judge.json"),
    judge: JudgeOptions = JudgeOptions(),
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="same, other, merged, any, shuffled, fixed, augmented or none; by default same, without raters any.",
        ),
    ] = None,
    max_examples: Annotated[int | None, typer.Option("--max-examples", help="At most so many in a prompt.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--example-tokens", help="At most so many tokens of examples in a prompt.")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of outputs to be judged: joins systems that equal one of the history."
        ),
    ] = None,
    columns: TableOptions = NO_TABLE,
) -> None:
    """Make a judge that is shown, for each row, what people said about other outputs of the same source."""
    from metricsmith.datasets.history import History
    from metricsmith.datasets.segments import read_translations
    from metricsmith.optimizers.specialist import Specialist, examples_of
    from metricsmith.studies.specialist.evaluation import FILTERED, POLICIES, policies_by_name

    check_writable(out, "--out", folder=False)
    check_apart([out], "--out", {"history": history, "table of --test": test})
    table = _table(history, columns)
    past = History.from_table(table, by_rater=True)
    name = policy or ("same" if past.raters else "any")
    if name == FILTERED:
        raise OptionError("filtered reads what people marked in the row itself: an analysis of evaluate, no policy")
    if name not in POLICIES:
        raise OptionError(f"unknown --policy {name}{nearest(name, POLICIES)}; known are {', '.join(POLICIES)}")
    bounds: dict[str, Any] = {"max_examples": max_examples, "max_tokens": max_tokens}
    chosen = replace(policies_by_name([name], judge.same_output)[name], seed=judge.seed, **bounds)
    rows = [] if test is None else read_translations(test).rows
    known = [row for row in rows if row.get("system") and row.get("input") in past.of_source]
    if test is not None and not known:
        raise OptionError(
            f"none of the {len(rows)} rows of --test {test} names a system and has a source of the history: give the "
            "columns source, translation and system, with the sources that people rated"
        )
    made = Specialist(chosen).compile(judge.made(table), past, rows)
    made.save(out)
    joined = ", ".join(sorted(examples_of(made).joined))
    say(
        f"{made.name}, specialised by {name}: {len(past)} ratings of {len(past.systems)} systems on "
        f"{len(past.of_source)} sources, {len(past.raters)} raters: {out}"
    )
    if test is not None:
        tested = dict.fromkeys(str(row["system"]) for row in known)
        say(f"{test}: {len(known)} of {len(rows)} rows on rated sources, systems compared: {', '.join(tested)}")
    say(f"next, in Python: metricsmith.score([metricsmith.load({str(out)!r})], rows, lm=...)")
    if joined:
        say(f"note: not shown to one another, since they are the same in all segments they share: {joined}", err=True)


@specialist_app.command("evaluate")
@takes_groups(
    without=(*LEFT_OUT, "raw_csv"),
    helps={**HELPS, "lm": "Language model as provider/name; without one only baselines that copy."},
)
def evaluate_specialists(
    history: HistoryFile,
    judge: JudgeOptions = JudgeOptions(),
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="As for build, and filtered; others are compared with the first. By default most of them.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often policies that draw are evaluated.")] = 1,
    curve: Annotated[
        str, typer.Option(metavar="1,3,7", help="Numbers of examples for a learning curve; by default none.")
    ] = "",
    measure: Annotated[
        str | None, typer.Option(metavar="NAME", help="character-f1, or a measure of meta-eval, such as acc-t.")
    ] = None,
    columns: TableOptions = NO_TABLE,
    model: ModelOptions = ModelOptions(),
    limits: LimitOptions = LimitOptions(),
    output: OutputOptions = OutputOptions(Path("metricsmith-specialist")),
) -> None:
    """Hold out one system of the history after the other, and compare a judge with the people."""
    from metricsmith.datasets.history import History
    from metricsmith.programs.judges.parrot import ExampleMean, Parrot
    from metricsmith.report.specialist.document import SPECIALIST_FILES, SpecialistDocument, write_specialist
    from metricsmith.studies.specialist.evaluation import (
        CHARACTER_F1,
        evaluate_specialist,
        policies_by_name,
        specialist_requests,
    )

    lm = model.language_model()
    check_places(output, SPECIALIST_FILES, {"history": history, "store": limits.store})
    table = _table(history, columns)
    past = History.from_table(table, by_rater=True)
    marked = all(one.spans is not None for one in past.ratings)
    f1 = marked and (lm is None or judge.judge in (None, "mqm"))
    measured = measure or (CHARACTER_F1 if f1 else "acc-t")
    judges: list[Any] = [] if lm is None else [judge.made(table, model.temperature)]
    judges += [Parrot(occurrences="all"), Parrot(occurrences="first")] if marked else []
    judges += [] if measured == CHARACTER_F1 else [ExampleMean()]
    named = policies or ("same,other,merged,shuffled,fixed" if past.raters else "any,shuffled")
    asked: dict[str, Any] = {
        "policies": policies_by_name([name.strip() for name in named.split(",") if name.strip()], judge.same_output),
        "measure": measured, "seeds": seeds, "seed": judge.seed,
        "curve": _counts(curve), "lm": lm, **limits.scoring(),
    }  # fmt: skip
    tell_notes(table, output, asks=False)
    if output.dry_run:
        say(cost_line("estimated", specialist_requests(judges, past, **asked)))
        say("nothing was sent and nothing was written")
        return
    with interruptible(limits.store, output):
        record = evaluate_specialist(judges, past, progress=output.verbose, **asked)
    write_into(write_specialist, record, output.out)
    tell(SpecialistDocument(record), output.out, output)
    if any(line.judgements.get("budget") for line in record.results):
        raise ModelFailure("the budget was spent before all was judged; the same command with --store asks the rest")


def _table(history: Path, columns: TableOptions) -> Table:
    """The history as a table: MQM ratings, or with ``--target`` any rated table."""
    from metricsmith.datasets.formats import table_suffix
    from metricsmith.datasets.table import read_table
    from metricsmith.datasets.wmt_mqm import read_wmt_mqm

    if columns.target:
        return read_table(str(history), **columns.reading())
    if columns != NO_TABLE:
        raise OptionError("columns of HISTORY are named where it is a rated table: name its rating, too, with --target")
    try:
        return read_wmt_mqm(history)
    except DataError as problem:
        if table_suffix(history) not in (".csv", ".tsv", ".parquet", ".xlsx"):
            raise
        raise DataError(f"{problem}. Of a rated table name the rating: --target COLUMN") from problem


def _counts(curve: str) -> list[int]:
    """The numbers of ``--curve``."""
    try:
        return [int(number) for number in curve.split(",") if number.strip()]
    except ValueError:
        raise OptionError(f"--curve {curve} must be whole numbers with commas between them, say 1,3,7") from None
