"""``metricsmith bank``: the metrics of the bank and their cards."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from metricsmith.cli.terminal import say
from metricsmith.cli.weights import check_weights, fetch_weights

__all__ = ["bank_app"]

bank_app = typer.Typer(help="Look at the bank of metrics.", no_args_is_help=True)
bank_app.command("fetch")(fetch_weights)
bank_app.command("check")(check_weights)


@bank_app.command("list")
def list_bank(
    as_json: Annotated[bool, typer.Option("--json", help="Print the cards as JSON.")] = False,
) -> None:
    """List every metric with its outputs and needs."""
    from metricsmith.bank.catalogue import default_bank

    cards = [family.card for family in default_bank().families]
    if as_json:
        say(json.dumps([card.as_dict() for card in cards], ensure_ascii=False, indent=1))
        return
    width = max(len(card.name) for card in cards)
    for card in cards:
        outputs = ", ".join(output.name for output in card.outputs)
        needs = f" (needs {', '.join(card.needs)})" if card.needs else ""
        say(f"{card.name:{width}}  {outputs}{needs}")


@bank_app.command("show")
def show(name: Annotated[str, typer.Argument(help="A metric or one of its outputs.")]) -> None:
    """Print a metric's card."""
    from metricsmith.bank.catalogue import default_bank

    say(default_bank().card(name).to_markdown())
