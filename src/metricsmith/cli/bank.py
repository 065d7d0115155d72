"""``metricsmith bank``: the metrics of the bank and their cards."""

from __future__ import annotations

import json
from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.options import Local
from metricsmith.cli.saved_metrics import places
from metricsmith.cli.terminal import say
from metricsmith.cli.weights import check_weights, fetch_weights
from metricsmith.errors import OptionError

if TYPE_CHECKING:
    from metricsmith.bank.base import Family

__all__ = ["bank_app"]

WIDTH = 120  # characters of a line of the table

bank_app = typer.Typer(help="Look at the bank of metrics.", no_args_is_help=True)
bank_app.command("fetch")(fetch_weights)
bank_app.command("check")(check_weights)


@bank_app.command("list")
def list_bank(
    models: Annotated[
        bool, typer.Option("--models", help="Those with weights: their size, and whether they are on this machine.")
    ] = False,
    local: Local = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the cards as JSON.")] = False,
) -> None:
    """List every metric with its outputs and needs."""
    from metricsmith.bank.catalogue import default_bank, whole_table
    from metricsmith.bank.weighted import CORPUS_MODELS, MODELS

    if local and not models:
        raise OptionError("--local says where weights lie: give --models, too")
    bank = whole_table(places(local)) if models else default_bank()
    families = [family for family in bank.families if family.model is not None or not models]
    cards = [family.card for family in families]
    if as_json:
        listed = [{**family.card.as_dict(), **_on_this_machine(family)} for family in families]
        say(json.dumps(listed, ensure_ascii=False, indent=1))
        return
    if models:
        say(_weights_table(families))
        return
    width = max(len(card.name) for card in cards)
    for card in cards:
        outputs = ", ".join(output.name for output in card.outputs)
        needs = f" (needs {', '.join(card.needs)})" if card.needs else ""
        say(f"{card.name:{width}}  {outputs}{needs}")
    say(f"{len((*MODELS, *CORPUS_MODELS))} more with weights are listed by `metricsmith bank list --models`")


@bank_app.command("show")
def show(name: Annotated[str, typer.Argument(help="A metric or one of its outputs.")]) -> None:
    """Print a metric's card."""
    from metricsmith.bank.catalogue import whole_table

    say(whole_table().card(name).to_markdown())


def _on_this_machine(family: Family) -> dict[str, Any]:
    """The weights' name, device and presence; nothing for a family without weights. Hashes nothing."""
    from metricsmith.bank.models.engine.loader import device_for
    from metricsmith.bank.weighted import CORPUS_MODELS, lacking

    if family.model is None:
        return {}
    alone = family.model.head == "fasttext"  # which knows no device
    device = "cpu" if alone else device_for(family.model) if find_spec("torch") else ""
    reason = lacking(family)
    name, here = family.model.name, not reason
    return {"weights": name, "device": device, "here": here, "lacking": reason, "sets": name in CORPUS_MODELS}


def _weights_table(families: list[Family]) -> str:
    """A line for each family, then the reasons why some cannot be computed here, and the encoders of ``--finetune``."""
    from metricsmith.bank.models.finetuned import CHECKPOINTS, ENCODERS
    from metricsmith.bank.weighted import uncomputable
    from metricsmith.report.blocks import TextTable
    from metricsmith.report.render import aligned

    rows, licences = [], set()
    for family in families:
        found, checkpoint, (first, *others) = _on_this_machine(family), family.card.checkpoint, family.card.outputs
        if checkpoint is None:
            continue
        size = (f"{checkpoint.disk:.2f}", f"{checkpoint.memory:.2f}")
        outputs = f"{len(others) + 1}: {first.name}, ..." if others else first.name
        outputs += " (compares sets)" if found["sets"] else ""
        here, device = ("yes", found["device"] or "–") if found["here"] else ("no", "–")
        rows.append((found["weights"], *size, here, device, checkpoint.languages.partition(",")[0], outputs))
        licences.add(checkpoint.licence)
    head = ("name", "GB on disk", "GB in memory", "usable", "device", "languages", "outputs")
    lines = [
        f"not usable, since {reason}:\n" + fill(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")
        for reason, names in uncomputable(families).items()
    ]
    encoders = [
        (name, f"{CHECKPOINTS[name].disk:.2f}", f"{CHECKPOINTS[name].memory:.2f}", "no" if spec.lacking() else "yes")
        for name, spec in ENCODERS.items()
    ]
    trained = aligned(TextTable(("encoder for --finetune", *head[1:4]), encoders))
    return "\n".join([*aligned(TextTable(head, rows)), f"licence: {', '.join(sorted(licences))}", *lines, *trained])
