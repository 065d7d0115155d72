"""``metricsmith store``: look into a store of judgements, save what is in it, check it, make it smaller."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metricsmith.cli.options import RawCsv
from metricsmith.cli.running import check_writable
from metricsmith.cli.terminal import say
from metricsmith.errors import OptionError, StoreError
from metricsmith.formats import cost_stated

if TYPE_CHECKING:
    from metricsmith.store import StoreInfo

__all__ = ["store_app"]

store_app = typer.Typer(help="Look after a store of judgements.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A store, as `score --store FILE` writes it.")]


@store_app.command("info")
def show_info(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say what a store holds: metrics, rows, failures, cost."""
    from metricsmith.store import info

    found = info(file)
    say(json.dumps(found.as_dict(), ensure_ascii=False, indent=1) if as_json else "\n".join(_lines(found)))


@store_app.command("export")
def export_table(
    file: File,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write; by default printed.")] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, jsonl or parquet; by default as --out ends, csv without it.")
    ] = None,
    raw_csv: RawCsv = False,
) -> None:
    """Write one line for each judgement."""
    from metricsmith.store import export

    if out is None:
        if format == "parquet":
            raise OptionError("--format parquet is no text: name a file with --out")
        done = export(file, typer.get_text_stream("stdout"), format=format, raw_csv=raw_csv)
    else:
        check_writable(out, "--out", folder=False)
        done = export(file, out, format=format, raw_csv=raw_csv)
        say(f"{done.judgements} judgements: {out}", err=True)
    if done.left_out or done.unreadable:
        raise StoreError(
            f"{file} is damaged: {done.left_out} damaged judgements were left out, and {done.unreadable} rows could "
            f"not be read in full; {done.judgements} judgements were exported. `metricsmith store verify {file}` "
            "names the damage"
        )


@store_app.command("verify")
def verify_store(
    file: File,
    limit: Annotated[int, typer.Option(min=1, help="How many damaged entries are named; all are counted.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check every page and every judgement; nothing is changed."""
    from metricsmith.store import verify

    report = verify(file, limit=limit)
    if as_json:
        say(json.dumps({**asdict(report), "ok": report.ok}, ensure_ascii=False, indent=1))
    else:
        say("\n".join([str(report), *map(str, report.damages)]))
    if not report.ok:
        raise StoreError(
            f"{file} is damaged; nothing was changed. `metricsmith store export {file} --out saved.csv` saves the rest"
        )


@store_app.command("prune")
def prune_store(
    file: File,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A metric's name, or how its fingerprint begins.")
    ] = None,
    failures: Annotated[bool, typer.Option("--failures", help="Only judgements that failed.")] = False,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what was written before, e.g. 2026-01-31 or 2026-01-31T12:00."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the count as JSON.")] = False,
) -> None:
    """Delete judgements that meet all of the conditions, of which there must be one."""
    from metricsmith.store import prune

    if not metric and not failures and before is None:
        raise OptionError("prune deletes nothing without a condition: give --metric, --failures or --before")
    count = prune(file, metrics=metric or (), failures=failures, before=_time(before), dry_run=dry_run)
    if as_json:
        say(json.dumps({"judgements": count, "deleted": not dry_run}))
    else:
        say(f"{count} judgements {'would be' if dry_run else 'were'} deleted")


def _time(text: str | None) -> datetime | None:
    """The time of ``--before``; without a time zone that of this machine."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"--before {text} is no date or time; write it like 2026-01-31 or 2026-01-31T12:00+00:00"
        ) from None


def _lines(found: StoreInfo) -> list[str]:
    """The lines of ``store info``: the file, its cost and age, each metric with its counts by status."""
    usage = found.usage
    cost = cost_stated(usage.cost)
    lines = [
        f"{found.path}: {found.judgements} judgements of {found.rows} rows, {found.bytes / 1e6:.1f} MB, "
        f"schema version {found.schema_version}",
        f"what these cost: {usage.requests} requests, {usage.prompt_tokens} prompt and {usage.completion_tokens} "
        f"completion tokens, {cost}",
    ]
    if found.first is not None and found.last is not None:
        lines.append(f"written: {found.first:%Y-%m-%d %H:%M:%S} to {found.last:%Y-%m-%d %H:%M:%S} UTC")
    width = max((len(metric.name) for metric in found.metrics), default=0)
    for metric in found.metrics:
        counts = ", ".join(f"{count} {status}" for status, count in metric.counts.items())
        runs = "1 run" if metric.runs == 1 else f"{metric.runs} runs"
        lines.append(f"{metric.name:{width}}  {metric.fingerprint[:12]}  {runs}: {counts}")
    return lines
