"""``metricsmith meta-eval --suite``: a whole shared task of metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import OutputOptions
from metricsmith.cli.running import bar_of_tests, check_apart, check_writable, tell, write_into
from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.formats import enumerated, excerpt

if TYPE_CHECKING:
    from metricsmith.meta_evaluation.suites import Suite

__all__ = ["SuiteOptions", "check_mode", "run_suite"]

FORMS = ("markdown", "tsv", "latex")
KEPT = "suite_kept.jsonl"


@dataclass(frozen=True)
class SuiteOptions:
    """A shared task, and the choices that only it has."""

    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            metavar="NAME|FILE.toml",
            help="A shared task, wmt23, wmt24, wmt24-on-wmt23, wmt25 or your own: SCORES is its folder, GOLD in it.",
        ),
    ] = None
    primary: Annotated[
        bool, typer.Option("--primary", help="With --suite: its primary metrics and baselines alone.")
    ] = False
    gold_name: Annotated[
        str | None, typer.Option("--gold", metavar="NAME", help="With --suite: other scores of people, such as esa.")
    ] = None
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="With --suite: leave out metrics whose files are broken, and say so.")
    ] = False
    join: Annotated[
        Path | None,
        typer.Option("--join", metavar="SUITE_JSON", help="With --suite: take what an earlier run has computed."),
    ] = None
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMS), help="With --suite: print the table in this form."),
    ] = None


def check_mode(options: SuiteOptions, elsewhere: Mapping[str, object]) -> None:
    """Refuse options of a suite without one, and beside a suite those of scores and one gold file (`elsewhere`).

    Raises
    ------
    OptionError
        If one that is given has no meaning.
    """
    own = {
        "--primary": options.primary, "--gold": options.gold_name, "--skip-broken": options.skip_broken,
        "--join": options.join, "--format": options.form,
    }  # fmt: skip
    wrong = [name for name, value in (own if options.suite is None else elsewhere).items() if value]
    if wrong and options.suite is None:
        raise OptionError(f"{wrong[0]} has a meaning with --suite only: name a suite, or leave it out")
    if wrong:
        raise OptionError(
            f"{wrong[0]} has no meaning beside --suite {options.suite}, which says what is measured: leave it out"
        )
    if options.form not in (None, *FORMS):
        raise OptionError(f"--format {options.form}{nearest(options.form, FORMS)}: allowed are {enumerated(FORMS)}")


def run_suite(
    root: Path, options: SuiteOptions, out: Path | None, output: OutputOptions, *,
    added: Sequence[str], reading: Mapping[str, Any], testing: Mapping[str, Any],
) -> None:  # fmt: skip
    """Evaluate a suite, print its table and write its report; what is computed is kept in the report's folder.

    `reading` are further options of `read_suite`, `testing` of `evaluate_suite`.

    Raises
    ------
    DataError
        If a file of the suite is missing or broken.
    OptionError
        If an option has no meaning, or a place cannot be written to.
    """
    from metricsmith.datasets.suite_files import named_suite
    from metricsmith.datasets.suite_roots import read_suite
    from metricsmith.report.render import render_markdown
    from metricsmith.report.suite.document import SUITE_FILES, SuiteDocument, write_suite
    from metricsmith.report.suite.tables import suite_latex, suite_tsv
    from metricsmith.studies.kept_file import KeptFile
    from metricsmith.studies.suite import evaluate_suite

    if options.form is not None and (output.as_json or output.quiet):
        raise OptionError("--format has no meaning beside --json or --quiet: leave one out")
    suite = named_suite(options.suite or "")
    judges = _by_pair(added, suite)
    if reading["each_run"] and not judges:
        raise OptionError("--each-run has a meaning with --add PAIR=FILE only, beside --suite: name a judge's file")
    if out is not None:
        check_writable(out, "--out", folder=True)
        read = {f"--add {path}": path for paths in judges.values() for path in paths}
        check_apart([out / name for name in (*SUITE_FILES, KEPT)], "--out", {**read, "--join": options.join})
    earlier = [] if options.join is None else [_kept_beside(options.join, suite.name)]
    pairs = read_suite(
        root, suite, added=judges, primary=options.primary, gold=options.gold_name, skip_broken=options.skip_broken,
        **reading,
    )  # fmt: skip
    with TemporaryDirectory() as scratch, KeptFile((out or Path(scratch)) / KEPT, earlier) as kept:
        try:
            with bar_of_tests(output) as tested:
                record = evaluate_suite(suite, pairs, kept=kept, tested=tested, **testing)
        except KeyboardInterrupt:
            if out is not None:
                say(f"what was computed stands in {out / KEPT}, from which the same command goes on", err=True)
            raise
    if out is not None:
        write_into(write_suite, record, out)
    document = SuiteDocument(record)
    if options.form is None:
        tell(document, out, output)
    else:
        made = {"markdown": render_markdown(document), "tsv": suite_tsv(record), "latex": suite_latex(record)}
        say(made[options.form].rstrip("\n"))


def _by_pair(added: Sequence[str], suite: Suite) -> dict[str, list[Path]]:
    """The files of ``--add PAIR=FILE`` by language pair."""
    found: dict[str, list[Path]] = {}
    for given in added:
        pair, parted, path = given.partition("=")
        if not parted or not path or pair not in suite.pairs:
            raise OptionError(
                f"--add {given} must be PAIR=FILE with a language pair of {suite.name}{nearest(pair, suite.pairs)}: "
                f"{enumerated(list(suite.pairs))}"
            )
        found.setdefault(pair, []).append(Path(path))
    return found


def _kept_beside(result: Path, suite: str) -> Path:
    """The numbers that the run which wrote this ``suite.json`` has kept."""
    try:
        content = json.loads(result.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise DataError(
            f"--join {result} cannot be read: {problem}; name the suite.json of an earlier run"
        ) from problem
    joined = content.get("suite") if isinstance(content, dict) else None
    if joined != suite:
        of = excerpt(joined, 60) if isinstance(joined, str) and joined else "no suite"
        raise OptionError(f"--join {result} is a result of {of}, not of {suite}: name another")
    kept = result.with_name(KEPT)
    if not kept.is_file():
        raise DataError(f"--join {result}: there is no {KEPT} beside it, with the numbers of that run; run it anew")
    return kept
