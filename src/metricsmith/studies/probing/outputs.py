"""The rows of a probe: originals drawn over the groups, and their changed outputs beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import dspy
import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row, row_text
from metricsmith.optimizers.rated import group_of
from metricsmith.programs.perturbers.base import Perturbation

__all__ = ["Changed", "drawn"]


@dataclass(frozen=True)
class Changed:
    """Originals, and what was made of them.

    Parameters
    ----------
    originals : list of dspy.Example, length n
        Texts, id and group alone: numbers that came with the data belong to the original output and say nothing of
        a changed one.
    groups : list of str, length n
    perturbations : list of Perturbation
        ``row`` is the place among the originals.
    """

    originals: list[dspy.Example]
    groups: list[str]
    perturbations: list[Perturbation] = field(default_factory=list)

    @property
    def made(self) -> list[Perturbation]:
        """Those that have an output."""
        return [one for one in self.perturbations if one.output is not None]

    @property
    def rows(self) -> list[dspy.Example]:
        """The originals, then one row for each of `made`, in order."""
        return [*self.originals, *(self._changed(one) for one in self.made)]

    def _changed(self, one: Perturbation) -> dspy.Example:
        row = self.originals[one.row]
        name = "~".join(part for part in (row["id"], one.strategy, one.strength, one.dimension) if part)
        return row.copy(output=one.output, id=name)


def drawn(rows: Sequence[dspy.Example], n: int, seed: int) -> tuple[Changed, list[int]]:
    """At most `n` rows: one of each group in turn, groups and rows in an order that `seed` decides.

    Parameters
    ----------
    rows : sequence of dspy.Example
        As `make_row` builds them; rows with an empty output are left out.
    n : int
        At least 1.
    seed : int

    Returns
    -------
    Changed
        Without perturbations.
    list of int
        The places of its originals among `rows`.

    Raises
    ------
    OptionError, DataError
        If `n` is below 1, or there is no row with an output.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise OptionError(f"n={n!r} must be a whole number from 1: how many outputs to probe with")
    waiting: dict[str, list[int]] = defaultdict(list)
    for place in np.random.default_rng(seed).permutation(len(rows)).tolist():
        if row_text(rows[place]).output.strip():
            waiting[group_of(rows[place], place)].append(place)
    if not waiting:
        raise DataError(f"none of {len(rows)} rows has an output to change")
    turns = sorted(
        (turn, order, place) for order, places in enumerate(waiting.values()) for turn, place in enumerate(places)
    )
    places = sorted(place for _, _, place in turns[:n])
    return Changed(
        [_plain(rows[place], place) for place in places], [group_of(rows[place], place) for place in places]
    ), places


def _plain(row: dspy.Example, place: int) -> dspy.Example:
    text = row_text(row)
    return make_row(
        text.output, input=text.input, references=text.references, context=text.context,
        id=str(row.get("id", place)), group=group_of(row, place),
    )  # fmt: skip
