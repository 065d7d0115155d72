"""The bank's table of contents, and the search for a family or an output by its name.

A new family is a file like its neighbours, with a `CARD` and a `compute`, and one line in `MODULES`. Importing this
module, or any family, loads no backend; those load when something is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

import dspy

from metricsmith.bank.base import BankMetric, Family, missing_needs
from metricsmith.errors import OptionError, nearest
from metricsmith.metric import row_text
from metricsmith.records import MetricCard

__all__ = ["MODULES", "MetricBank", "Unusable", "default_bank", "family"]

MODULES: tuple[str, ...] = (
    # strings
    "levenshtein", "hamming", "jaro", "jaro_winkler", "jaccard", "charcut",
    # n-grams and words against references
    "bleu", "gleu", "nist", "chrf", "ter", "meteor", "rouge", "cider",
    # references and input
    "ibleu", "sari", "update_rouge", "pseudo_parent",
    # the output alone
    "self_bleu", "distinct", "fkgl", "length", "length_ratio",
)  # fmt: skip


class Unusable(NamedTuple):
    """An output that the given rows cannot feed, and why, as a clause after "because"."""

    name: str
    reason: str


@dataclass(frozen=True)
class MetricBank:
    """A sequence of metric families.

    Parameters
    ----------
    families : tuple of Family
        Output names and card names must be unique in the bank; case does not count.

    Raises
    ------
    OptionError
        If two families share a name.
    """

    families: tuple[Family, ...]

    def __post_init__(self) -> None:
        self._index()

    def names(self) -> list[str]:
        """The families' names, as their cards give them, in order."""
        return [family.card.name for family in self.families]

    def metrics(self) -> list[BankMetric]:
        """Every output of every family as a metric, in order."""
        return [metric for family in self.families for metric in family.metrics()]

    def get(self, name: str) -> BankMetric:
        """The metric called `name`: an output's name, or the name of a family that has one output.

        Case, spaces and marks do not count: ``ROUGE-1 f`` finds ``rouge1_f``.

        Raises
        ------
        OptionError
            If there is none, with the nearest name, or if the family has several outputs, with their names.
        """
        found = self._find(name)
        if isinstance(found, BankMetric):
            return found
        outputs = [output.name for output in found.card.outputs]
        if len(outputs) == 1:
            return BankMetric(found, outputs[0])
        raise OptionError(
            f"{name!r} is a family of {len(outputs)} metrics: name one of its outputs, {', '.join(outputs)}"
        )

    def only(self, *names: str) -> MetricBank:
        """A bank of the named outputs alone; a family that keeps some of its outputs keeps its card otherwise.

        Raises
        ------
        OptionError
            If there is no such output, with the nearest name.
        """
        wanted = {self.get(name).name for name in names}
        kept = []
        for family in self.families:
            outputs = tuple(output for output in family.card.outputs if output.name in wanted)
            if outputs:
                kept.append(replace(family, card=replace(family.card, outputs=outputs)))
        return MetricBank(tuple(kept))

    def card(self, name: str) -> MetricCard:
        """The card of a family, found by its name or by that of one of its outputs.

        Raises
        ------
        OptionError
            If there is none, with the nearest name.
        """
        return self._find(name).card

    def usable(self, rows: Sequence[dspy.Example], *, coverage: float = 0.5) -> tuple[list[BankMetric], list[Unusable]]:
        """Split the metrics into those that `rows` can feed and those that lack texts they need.

        Parameters
        ----------
        rows : sequence of dspy.Example
            The rows to be scored. No rows: everything is usable.
        coverage : float
            Share of rows, in [0, 1], that must meet a metric's needs. Rows that lack it are skipped when
            scoring, with a reason.

        Returns
        -------
        metrics : list of BankMetric
        unusable : list of Unusable
            Both in the bank's order.
        """
        if not 0.0 <= coverage <= 1.0:
            raise OptionError(f"coverage is {coverage!r}: it is a share of rows, so give a number from 0 to 1")
        texts = [row_text(row) for row in rows]
        usable: list[BankMetric] = []
        unusable: list[Unusable] = []
        for family in self.families:
            gaps = [missing for text in texts if (missing := missing_needs(family.card, text))]
            fed = len(texts) - len(gaps)
            if gaps and fed < max(coverage * len(texts), 1):
                count = f"only {fed} of {len(texts)} rows have" if fed else "no row has"
                names = " and ".join(dict.fromkeys(name for missing in gaps for name in missing))
                unusable += [Unusable(output.name, f"{count} {names}") for output in family.card.outputs]
            else:
                usable += family.metrics()
        return usable, unusable

    def _find(self, name: str) -> BankMetric | Family:
        found = self._index().get(_plain(name))
        if found is None:
            known = [metric.name for metric in self.metrics()] + self.names()
            raise OptionError(
                f"no metric {name!r} in the bank{nearest(name, known)}; `metricsmith bank list` shows all "
                f"{len(self.families)} families"
            )
        return found

    def _index(self) -> dict[str, BankMetric | Family]:
        """Plain names to outputs and families; an output goes before a family of the same name."""
        index: dict[str, BankMetric | Family] = {}
        for family in self.families:
            own: dict[str, BankMetric | Family] = {_plain(family.card.name): family}
            own |= {_plain(metric.name): metric for metric in family.metrics()}
            taken = sorted(own.keys() & index.keys())
            if taken:
                raise OptionError(f"two families of the bank share the name {taken[0]!r}: rename one of them")
            index |= own
        return index


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold().replace("+", "p") if character.isalnum())


def family(module: str) -> Family:
    """The family of a file of this folder: its `CARD`, its `compute`, and its `statistics` where it has them."""
    file = import_module(f"metricsmith.bank.{module}")
    return Family(file.CARD, file.compute, getattr(file, "statistics", None))


@lru_cache(maxsize=1)
def default_bank() -> MetricBank:
    """The families that need neither model nor download, always the same object."""
    return MetricBank(tuple(map(family, MODULES)))
