"""``metricsmith meta-eval``: metrics ranked by their agreement with gold ratings of several systems, or a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.cli.options import OutputOptions, takes_groups
from metricsmith.cli.running import bar_of_tests, check_apart, check_writable, tell, write_into
from metricsmith.cli.suite import SuiteOptions, check_mode, run_suite
from metricsmith.errors import OptionError

__all__ = ["meta_eval_command"]


@takes_groups(without=("out", "dry_run", "raw_csv"), helps={"as_json": "Print the result as JSON."})
def meta_eval_command(
    scores: Annotated[
        Path,
        typer.Argument(help="Metrics' scores: a table, a .seg.score file, a folder of such; with --suite its data."),
    ],
    gold: Annotated[
        Path | None,
        typer.Argument(help="Ratings of the same outputs: a table, MQM ratings, a .seg.score file; not with --suite."),
    ] = None,
    suite: SuiteOptions = SuiteOptions(),
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="[PAIR=]FILE",
            help="One more judge: a segments.jsonl of `metricsmith mqm`; with --suite, of this language pair.",
        ),
    ] = None,
    each_run: Annotated[
        bool, typer.Option("--each-run", help="Judges' single runs, and other means of them, as metrics, too.")
    ] = False,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A measure, or `all`; by default spa and acc-t, the tasks of WMT24."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column of the table, a score file, or a suite's metric; by default all."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COL", help="Column with the rating.")] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="wmt|gemba", help="What errors cost in MQM ratings; by default wmt.")
    ] = None,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A metric, or the rating, that counts something bad.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="SYSTEM", help="A system to leave out, such as a reference.")
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="For score files: the document of each segment, line by line, after its domain."
        ),
    ] = None,
    decimals: Annotated[
        int | None, typer.Option(help="Round differences in acc and acc-t; by default floats are compared as they are.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Of the significance test of each two metrics.")] = 1000,
    swap: Annotated[
        str,
        typer.Option(metavar="pairs|scores", help="What the test of acc-t exchanges: decisions, as in WMT, or scores."),
    ] = "pairs",
    tests: Annotated[
        str | None,
        typer.Option(
            metavar="all|deciding", help="Test every two metrics (default up to 10), or what decides a cluster."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is drawn.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where a report goes; by default none.")] = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Measure how well metrics agree with gold ratings, and rank them."""
    from metricsmith.datasets.score_matrices import read_score_matrices
    from metricsmith.meta_evaluation.evaluation import tasks_by_name
    from metricsmith.meta_evaluation.ranking import check_tests
    from metricsmith.mqm import MQMWeights
    from metricsmith.report.meta_evaluation.document import (
        META_EVALUATION_FILES,
        MetaEvaluationDocument,
        write_meta_evaluation,
    )
    from metricsmith.report.meta_evaluation.record import meta_evaluate

    elsewhere = {"GOLD": gold, "--task": task, "--target": target, "--weights": weights, "--documents": documents}
    check_mode(suite, {**elsewhere, "--tests": tests})
    exchanged, made = check_tests(swap, tests)
    reading: dict[str, Any] = {
        "metrics": metric or (), "without": without or (), "lower_is_better": lower_is_better or (),
        "each_run": each_run,
    }  # fmt: skip
    testing: dict[str, Any] = {"decimals": decimals, "resamples": resamples, "seed": seed, "swap": exchanged}
    if suite.suite is not None:
        run_suite(scores, suite, out, output, added=add or (), reading=reading, testing=testing)
        return
    if gold is None:
        raise OptionError("GOLD is missing: name the file of people's ratings, or a shared task with --suite")
    for one in add or ():
        if "=" in one and not Path(one).exists():
            raise OptionError(f"--add {one}: a language pair has a meaning with --suite only: name the file alone")
    if out is not None:
        check_writable(out, "--out", folder=True)
        given = {"scores": scores, "gold": gold, **({"--documents": documents} if documents else {})}
        given |= {f"--add {path}": Path(path) for path in add or ()}
        check_apart([out / name for name in META_EVALUATION_FILES], "--out", given)
    tasks_by_name(task or (), decimals=decimals)
    read = read_score_matrices(
        scores, gold, target=target, weights=None if weights is None else MQMWeights.named(weights),
        documents=documents, added=add or (), **reading,
    )  # fmt: skip
    with bar_of_tests(output) as tested:
        record = meta_evaluate(
            read.metrics, read.gold, systems=read.systems, raters=read.raters, documents=read.documents,
            tasks=task or (), tests=made, target=read.target, sources=read.sources, notes=read.notes, tested=tested,
            marked=read.marked, **testing,
        )  # fmt: skip
    if out is not None:
        write_into(write_meta_evaluation, record, out)
    tell(MetaEvaluationDocument(record), out, output)
