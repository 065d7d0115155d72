"""The bank's manual, written from its cards: ``python tools/bank_page.py [FILE]``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from metricsmith.bank.catalogue import MetricBank, full_bank
from metricsmith.records import MetricCard

__all__ = ["bank_page", "main"]

DEFAULT_PAGE = Path("docs/bank.md")

_INTRODUCTION = """\
# The bank

{families} families of metrics with {outputs} outputs. All but {weighted} need neither a model nor a download; these
are in `full_bank(...)` alone, need the extra `models`, and `metricsmith bank list --models` says which of them this
machine can compute. Each output is a candidate of its own; a family's outputs share their work.
`metricsmith bank show NAME` prints one card.

Raw numbers keep the range of the metric's own definition. Beside it, every output has a score in [0, 1],
higher is better: bounded outputs map linearly; open-ended ones by x / (x + half), x counted from the lower
end. A row that lacks what a metric needs, or for which it is undefined, has no number, never a zero.

This page is written from the cards by `python tools/bank_page.py`; change the card, not the page.
"""


def bank_page(bank: MetricBank) -> str:
    """The manual of `bank` as Markdown: an overview with one line per family, then every card.

    Parameters
    ----------
    bank : MetricBank
        May be empty.

    Returns
    -------
    str
        Ends with one line break; depends on the cards only.
    """
    cards = [family.card for family in bank.families]
    outputs = sum(len(card.outputs) for card in cards)
    overview = ["| family | outputs | needs | better |", "| --- | --- | --- | --- |", *map(_line, cards)]
    head = _INTRODUCTION.format(
        families=len(cards), outputs=outputs, weighted=sum(card.cost == "local" for card in cards)
    )
    return "\n".join([head, "\n".join(overview) + "\n", *(card.to_markdown() for card in cards)])


def _line(card: MetricCard) -> str:
    names = ", ".join(f"`{output.name}`" for output in card.outputs)
    better = " or ".join(dict.fromkeys("higher" if output.higher_is_better else "lower" for output in card.outputs))
    needs = " and ".join(card.needs) or "the output only"
    return f"| [{card.name}](#{_anchor(card.name)}) | {names} | {needs} | {better} |"


def _anchor(heading: str) -> str:
    """The fragment that GitHub gives a heading: letters, digits, spaces as hyphens."""
    kept = (character for character in heading.lower() if character.isalnum() or character in " -_")
    return "".join(kept).replace(" ", "-")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the manual of the whole bank to the file named, ``docs/bank.md`` if none is."""
    parser = argparse.ArgumentParser(prog="python tools/bank_page.py", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_PAGE, help="default: %(default)s")
    path: Path = parser.parse_args(arguments).file
    if not path.parent.is_dir():
        parser.error(f"there is no folder {path.parent}: run this in the project's root, or name another file")
    path.write_text(bank_page(full_bank("all")), encoding="utf-8")


if __name__ == "__main__":
    main()
