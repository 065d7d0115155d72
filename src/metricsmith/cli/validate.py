"""``metricsmith validate``: judges held against people who may rightly disagree, and the one to take."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from metricsmith.cli.options import OutputOptions, takes_groups
from metricsmith.cli.running import check_apart, check_writable, tell, write_into
from metricsmith.errors import OptionError, nearest

if TYPE_CHECKING:
    from metricsmith.datasets.choices import GivenRatings
    from metricsmith.programs.judges.choice import OptionsJudge

__all__ = ["listed", "named_columns", "number_list", "validate_command"]

ORDINAL = ("linear_kappa", "weighted_kappa")  # measures that depend on the order of options
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="A column: item, rater, judge, sample, rating, set or group."),
]
Options = Annotated[
    str,
    typer.Option(
        "--options", metavar="A,B,...", help='Options in order, such as "a, b",c; by default as people gave them.'
    ),
]


@takes_groups(without=("out", "dry_run", "raw_csv"), helps={"as_json": "Print the result as JSON."})
def validate_command(
    human: Annotated[Path, typer.Argument(help="People's ratings: a table of item, rater, rating.")],
    judges: Annotated[
        Path | None, typer.Argument(help="Judges' ratings: a table of item, judge, sample, rating; or --store.")
    ] = None,
    options: Options = "",
    sets: Annotated[
        str | None,
        typer.Option(metavar="single|all|'A|B,A|C'", help="Response sets to admit; by default those that beta needs."),
    ] = None,
    positive: Annotated[
        str, typer.Option(metavar="A,B,...", help="Options that decide for an item; without any no use is measured.")
    ] = "",
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE,...", help="Share of raters that decides, by default .5; the first is the decision's own."
        ),
    ] = None,
    beta: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH:STEP",
            help="Shares to try of raters who would also have given --added; by default 0:.5:.05.",
        ),
    ] = None,
    at_beta: Annotated[
        float, typer.Option("--at-beta", metavar="SHARE", help="The share that tables and intervals hold for.")
    ] = 0.0,
    added: Annotated[
        str | None, typer.Option(metavar="A", help="What beta adds; by default the first positive option.")
    ] = None,
    rule: Annotated[
        str, typer.Option(metavar="any|max|sum", help="The share: of any positive one, the greatest, or the sum.")
    ] = "any",
    measures: Annotated[
        str, typer.Option(metavar="A,B,...|all", help="Measures of agreement; by default seven of them.")
    ] = "",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="The measure that decides.")] = None,
    raters: Annotated[bool, typer.Option("--raters", help="Draw raters, too, and not items alone.")] = False,
    column: Column = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A store of judgements in place of JUDGES; row ids are items.")
    ] = None,
    judge: Annotated[
        list[Path] | None, typer.Option(metavar="FILE.json", help="A saved judge whose answers are in --store.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws of items.")] = 2000,
    seed: Annotated[int, typer.Option(help="Decides everything that is drawn.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where a report goes; by default none.")] = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Choose among judges where people may rightly disagree, and find out how far the choice holds."""
    from metricsmith.datasets.choices import read_rated_choices
    from metricsmith.rating_model.measures import MEASURES
    from metricsmith.rating_model.vectors import Decision
    from metricsmith.report.validation.document import VALIDATION_FILES, ValidationDocument, write_validation
    from metricsmith.report.validation.record import MEASURES_SHOWN, validate_judges

    if len({judges is None, store is not None, bool(judge)}) > 1:
        raise OptionError("give either JUDGES, a table of their ratings, or --store with one --judge or more")
    if out is not None:
        check_writable(out, "--out", folder=True)
        read = {"people's table": human, "judges' table": judges, "store": store}
        check_apart([out / name for name in VALIDATION_FILES], "--out", read)
    thresholds = number_list(threshold or ".5", "--threshold")
    if not positive and (at_beta or beta or added or threshold or rule != "any"):
        raise OptionError(
            "--threshold, --rule, --beta, --at-beta and --added are about a decision: name the options for it with "
            "--positive"
        )
    saved = _option_judges(judge or [])
    named = listed(options) or (saved[0].options if saved else ())
    found = read_rated_choices(human, judges, named, named_columns(column))
    wanted = None if measures == "all" else listed(measures) or MEASURES_SHOWN
    _check_measures([*(MEASURES if wanted is None else wanted), *([by] if by else [])], found.options, named)
    asked: dict[str, Any] = {
        "sets": sets if sets in (None, "single", "all") else [one.split("|") for one in listed(sets or "")],
        "decision": Decision(tuple(listed(positive)), thresholds[0], rule) if positive else None,  # type: ignore[arg-type]
        "thresholds": thresholds, "beta": at_beta, "betas": None if beta is None else number_list(beta, "--beta"),
        "added": added, "by": by, "raters": raters, "draws": draws, "seed": seed,
        "measures": wanted,
    }  # fmt: skip
    sources, rated = dict(found.sources), found.judges
    if store is not None:
        rated, sources["judges"] = {one.name: _of_store(store, one) for one in saved}, str(store)
    record = validate_judges(found.human, rated, found.options, sources=sources, notes=found.notes, **asked)
    if out is not None:
        write_into(write_validation, record, out)
    tell(ValidationDocument(record), out, output)


def listed(text: str) -> list[str]:
    """The names between commas; a name that holds one stands in double quotes."""
    return [name for part in next(csv.reader([text], skipinitialspace=True), []) if (name := part.strip())]


def _check_measures(names: Sequence[str], options: Sequence[str], declared: Sequence[str]) -> None:
    """Raise an `OptionError` for an unknown measure, or one that goes by the order of options which has none."""
    from metricsmith.rating_model.measures import DOWNSTREAM, MEASURES

    for name in names:
        if name not in (known := (*DOWNSTREAM, *MEASURES)):
            raise OptionError(f"unknown measure {name!r}{nearest(name, known)}; known are {', '.join(known)}")
        if name in ORDINAL and len(options) > 2 and not declared:
            raise OptionError(
                f"{name} goes by the order of the options, and {', '.join(options)} is the order in which people gave "
                "them: declare the options in their order with --options"
            )


def number_list(text: str, option: str) -> list[float]:
    """Numbers between commas, or ``LOW:HIGH:STEP`` with both ends.

    Raises
    ------
    OptionError
        If there are none, one is named twice, or a step does not lead upwards.
    """
    try:
        if ":" not in text:
            numbers = [float(number) for number in listed(text)]
        else:
            low, high, step = map(float, text.split(":"))
            numbers = [round(low + place * step, 10) for place in range(int((high - low) / step + 1 + 1e-9))]
    except (ValueError, ZeroDivisionError, OverflowError):
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers):
        raise OptionError(f"{option} {text} must be numbers with commas, each once, or LOW:HIGH:STEP as 0:0.5:0.05")
    return numbers


def named_columns(pairs: list[str] | None) -> dict[str, str]:
    """The columns of ``--column ROLE=NAME`` by role."""
    for pair in pairs or ():
        if "=" not in pair:
            raise OptionError(f"--column {pair} must be ROLE=NAME, such as --column item=notice")
    return {role.strip(): name.strip() for role, _, name in (pair.partition("=") for pair in pairs or ())}


def _option_judges(files: Sequence[Path]) -> list[OptionsJudge]:
    """Saved judges of the same options.

    Raises
    ------
    OptionError
        If one does not choose among options, or among others than the first.
    """
    from metricsmith.cli.saved_metrics import any_metric
    from metricsmith.programs.judges.choice import OptionsJudge

    judges = list[OptionsJudge]()
    for path in files:
        judge = any_metric(path)
        if not isinstance(judge, OptionsJudge) or (judges and judge.options != judges[0].options):
            wanted = f", here {', '.join(judges[0].options)}" if judges else ""
            raise OptionError(f"--judge {path} does not choose among the same options as the others{wanted}")
        judges.append(judge)
    return judges


def _of_store(store: Path, judge: OptionsJudge) -> GivenRatings:
    """The answers of a judge that a store holds: row ids are items, runs are samples.

    Raises
    ------
    OptionError
        If there are none, or those of several models.
    """
    from metricsmith.rating_model.ratings import Ratings
    from metricsmith.store import export

    export(store, text := StringIO(), format="jsonl")
    lines = [line for line in map(json.loads, text.getvalue().splitlines()) if line["metric"] in judge.columns]
    if len({line["fingerprint"] for line in lines}) != len(judge.columns):
        raise OptionError(
            f"{store} holds {len(lines)} judgements of {judge.name}, which are none or of several models: score all of "
            "its members, in a store for each model or under a name for each"
        )
    places = list(dict.fromkeys((line["row_id"], line["run"]) for line in lines))
    row, column = ({name: place for place, name in enumerate(names)} for names in (places, judge.columns))
    values = np.full((len(places), len(column), 1), np.nan)
    for line in lines:
        values[row[line["row_id"], line["run"]], column[line["metric"]]] = (
            line["raw"] if line["status"] == "ok" else np.nan
        )
    answers = judge.answers(values)
    parts = []
    if answers.choices is not None:
        chosen = [judge.options[place] if place >= 0 else None for place in answers.choices[:, 0]]
        parts.append(Ratings.from_rows([(*at, one) for at, one in zip(places, chosen, strict=True)], judge.options))
    if answers.sets is not None:
        held = [
            [name for name, one in zip(judge.options, given, strict=True) if one == 1] for given in answers.sets[:, 0]
        ]
        rows = [(*at, one or None) for at, one in zip(places, held, strict=True)]
        parts.append(Ratings.from_rows(rows, judge.options, sets=True))
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])
