"""``metricsmith bank fetch`` and ``bank check``: the weights of the bank's metrics on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from metricsmith.cli.options import Local
from metricsmith.cli.saved_metrics import places
from metricsmith.cli.terminal import say
from metricsmith.errors import ModelFailure, OptionError

__all__ = ["check_weights", "fetch_weights"]


def fetch_weights(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Metrics with weights, or their outputs.")],
    yes: Annotated[bool, typer.Option("--yes", help="Fetch without being asked.")] = False,
) -> None:
    """Fetch the published weights of metrics into the hub's cache, once the size is confirmed."""
    from tqdm import tqdm

    from metricsmith.bank.models.fetch import fetch, find_files
    from metricsmith.bank.weighted import named_model, place_name

    specs = [named_model(name) for name in dict.fromkeys(map(place_name, names))]
    downloads = [find_files(spec) for spec in specs if spec is not None]
    for download in downloads:
        say(f"{download.spec.name}: {download.spec.id}, revision {download.revision}")
        for file in download.files:
            there = "" if file in download.missing else "  is here"
            say(f"  {tqdm.format_sizeof(file.size, 'B'):>8}  {file.name}{there}")
    missing = {file for download in downloads for file in download.missing}
    size = tqdm.format_sizeof(sum(file.size for file in missing), "B")
    if missing and not yes:
        if not sys.stdin.isatty():
            raise OptionError(f"nothing was fetched: it takes {size}, and nobody can be asked here; add --yes")
        if not typer.confirm(f"Fetch {size}?"):
            say("nothing was fetched")
            return
    for download in downloads:
        say(f"{download.spec.name} is at {fetch(download)}")


def check_weights(
    name: Annotated[str, typer.Argument(help="A metric with weights, or one of its outputs.")],
    local: Local = None,
) -> None:
    """Compare numbers that others published with those that the weights on this machine give; 3 if they differ."""
    from metricsmith.bank.models.published import compared_with_published, published_numbers
    from metricsmith.bank.weighted import model_name

    metric = model_name(name)
    place = places(local).get(metric, "")
    known = [numbers for numbers in published_numbers() if numbers.metric == metric]
    others = sorted({numbers.id for numbers in known if numbers.id})
    if not place:
        known = [numbers for numbers in known if not numbers.id]
    if not known:
        hint = f"; those for {', '.join(others)} are compared with --local {metric}=PATH" if others else ""
        say(f"{metric}: no published number known{hint}")
        return
    differ = total = 0
    for numbers in known:
        settings = ", ".join(f"{key}={value}" for key, value in numbers.settings.items())
        say(f"{metric} ({settings or 'default settings'}{f'; {numbers.id}' if numbers.id else ''}): {numbers.source}")
        for one in compared_with_published(numbers, path=place):
            difference = f"{one.found - one.expected:+.6f}" + ("" if one.agrees else f" {one.reason}".rstrip())
            verdict = "ok" if one.agrees else "differs"
            say(
                f"  {one.output} {one.row}: expected {one.expected:.6g}, found {one.found:.6g}, {difference}  {verdict}"
            )
            differ, total = differ + (not one.agrees), total + 1
    if differ:
        raise ModelFailure(f"{differ} of {total} numbers differ from those published")
