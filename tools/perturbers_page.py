"""The page on perturbers, written from their cards: ``python tools/perturbers_page.py [FILE]``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from metricsmith.programs.perturbers.base import EFFECTS, Effect, Perturber
from metricsmith.programs.perturbers.catalogue import BUILTIN

__all__ = ["main", "perturbers_page"]

DEFAULT_PAGE = Path("docs/perturbers.md")

_INTRODUCTION = """\
# Perturbers

{count} small functions that change an output on purpose, without a model, by a seed. A metric that measures what it
claims falls where an output was made worse, stays where it was only rewritten, and does not rise where it was
dressed up. `perturb` applies them to rows; what becomes of a row depends on the seed, the perturber, the strength
and the row, never on its place or on other rows, except where the output of another row is used.

A perturber that finds nothing to change, or lacks a text that it needs, declines, and says why. Those that are to
change nothing decline often: what they do touch is safe by construction, and code, addresses, tables and quoted
strings stay as they are. Read the column «may not hold» before you trust a verdict, and give outputs that were
rated well to those that make worse: a wrong figure can hardly become worse.

This page is written from the cards by `python tools/perturbers_page.py`; change the card, not
the page.
"""
_HEADINGS: dict[Effect, str] = {
    "worse": "Worse: quality falls",
    "same": "Same: quality stays",
    "attack": "Attack: quality does not rise",
}
_COLUMNS = ("name", "what it does", "because", "may not hold", "strengths", "needs")


def perturbers_page(perturbers: Iterable[Perturber]) -> str:
    """The page as Markdown: one table per effect.

    Parameters
    ----------
    perturbers : iterable of Perturber
        Effects that none of them has are left out.

    Returns
    -------
    str
        Ends with one line break; depends on the cards only.
    """
    every = list(perturbers)
    parts = [_INTRODUCTION.format(count=len(every))]
    for effect in EFFECTS:
        if lines := [_line(perturber) for perturber in every if perturber.effect == effect]:
            head = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
            parts.append("\n".join([f"## {_HEADINGS[effect]}", "", *head, *lines]) + "\n")
    return "\n".join(parts)


def _line(perturber: Perturber) -> str:
    needs = ", ".join(("output", *perturber.needs))
    strengths = ", ".join(perturber.strengths)
    cells = [f"`{perturber.name}`", perturber.summary, perturber.because, perturber.limits, strengths, needs]
    return _row([cell.replace("|", "\\|").replace("*", "\\*") for cell in cells])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page of the built-in perturbers to the file named, ``docs/perturbers.md`` if none is."""
    parser = argparse.ArgumentParser(prog="python tools/perturbers_page.py", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_PAGE, help="default: %(default)s")
    path: Path = parser.parse_args(arguments).file
    if not path.parent.is_dir():
        parser.error(f"there is no folder {path.parent}: run this in the project's root, or name another file")
    path.write_text(perturbers_page(BUILTIN.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
