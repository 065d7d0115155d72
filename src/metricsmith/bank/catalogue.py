"""The bank's table of contents, and the search for a family or an output by its name.

A new family is a file like its neighbours, with a `CARD` and a `compute`, and one line in `MODULES`. Importing this
module, or any family, loads no backend; those load when something is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from os import PathLike
from typing import Any, NamedTuple

import dspy

from metricsmith.bank.base import BankMetric, Family, missing_needs
from metricsmith.bank.weighted import (
    CORPUS_MODELS,
    MODELS,
    POOLS,
    SMALL,
    disk_size,
    lacking,
    model_family,
    model_name,
    of_any,
    plain_metric_name,
    refuse_sets,
    weighted_names,
)
from metricsmith.errors import OptionError, nearest
from metricsmith.metric import row_text
from metricsmith.records import MetricCard

__all__ = ["MODULES", "MetricBank", "Unusable", "default_bank", "family", "full_bank", "whole_table"]

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

DEVICES = ("auto", "cpu", "cuda", "mps")


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

    def __repr__(self) -> str:
        weighted = sum(family.model is not None for family in self.families)
        return f"<MetricBank: {len(self.families)} families, {len(self.metrics())} outputs, {weighted} with weights>"

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
            If there is none, with the nearest name, or with the bank that has it where it needs weights; or if the
            family has several outputs, with their names.
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
            if lack := lacking(family):
                unusable += [Unusable(output.name, of_any(lack, family)) for output in family.card.outputs]
                continue
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
        found = self._index().get(plain_metric_name(name))
        if found is None and (weighted := weighted_names().get(plain_metric_name(name))):
            refuse_sets([weighted])
            raise OptionError(f"{name!r} needs weights: full_bank([{weighted!r}]) has it")
        if found is None:
            known = [metric.name for metric in self.metrics()] + self.names()
            raise OptionError(
                f"no metric {name!r} in the bank{nearest(name, known)}; `metricsmith bank list` shows all without "
                "weights, with --models those that need some"
            )
        return found

    def _index(self) -> dict[str, BankMetric | Family]:
        """Plain names to outputs and families; an output goes before a family of the same name."""
        index: dict[str, BankMetric | Family] = {}
        for family in self.families:
            own: dict[str, BankMetric | Family] = {plain_metric_name(family.card.name): family}
            own |= {} if family.model is None else {plain_metric_name(family.model.name): family}
            own |= {plain_metric_name(metric.name): metric for metric in family.metrics()}
            taken = sorted(own.keys() & index.keys())
            if taken:
                raise OptionError(f"two families of the bank share the name {taken[0]!r}: rename one of them")
            index |= own
        return index


def family(module: str) -> Family:
    """The family of a file of this folder: its `CARD`, its `compute`, and its `statistics` where it has them."""
    file = import_module(f"metricsmith.bank.{module}")
    return Family(file.CARD, file.compute, getattr(file, "statistics", None))


@lru_cache(maxsize=1)
def default_bank() -> MetricBank:
    """The families that need neither model nor download, always the same object; `full_bank` has all."""
    return MetricBank(tuple(map(family, MODULES)))


def full_bank(
    models: str | Sequence[str] = "small",
    *,
    device: str = "auto",
    cache_dir: str | PathLike[str] | None = None,
    local: Mapping[str, str | PathLike[str]] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    entities: Callable[[str], Iterable[tuple[int, int]]] | None = None,
) -> MetricBank:
    """The default bank and metrics with weights; loads nothing, asks no hub, and needs no weights to be there.

    Parameters
    ----------
    models : "small", "all" or names
        Metrics of at most 1 GB on disk each, all 26 (less MAUVE, which compares sets), or those that are named.
    device : str
        ``auto`` (the best there is), ``cpu``, ``cuda`` or ``mps``.
    cache_dir : path, optional
        The hub's cache; None stands for its usual place.
    local : mapping of str to path, optional
        Where the weights of a metric lie, by its name: a folder, or fastText's file.
    settings : mapping of str to mapping, optional
        Settings of metrics, by name: `metricsmith.bank.models.spec.ModelSpec.using`.
    entities : callable, optional
        SummaQA's finder of entities, from a sentence to (start, end) of each; None stands for spaCy's en_core_web_sm.

    Raises
    ------
    OptionError
        If a name, device or setting is not known, or MAUVE is named.
    """
    if device not in DEVICES:
        raise OptionError(f"device={device!r} must be one of {', '.join(DEVICES)}")
    places = _by_model("local", local, (str, PathLike))
    changed = _by_model("settings", settings, Mapping)
    if isinstance(models, str) and models in POOLS:
        chosen = [name for name in MODELS if models == "all" or disk_size(name) <= SMALL]
    elif isinstance(models, str) or not isinstance(models, Sequence):
        near = nearest(str(models), POOLS)
        raise OptionError(f"models={models!r}{near} must be 'small', 'all' or a list of names: write [{models!r}]")
    elif stray := next((name for name in models if name in POOLS), ""):
        raise OptionError(f"{stray!r} stands alone: give small, or all, or names of metrics with weights")
    else:
        chosen = list(dict.fromkeys(model_name(name, *POOLS) for name in models))
        refuse_sets(chosen)
    if left_out := changed.keys() - set(chosen):
        raise OptionError(
            f"settings are given for {min(left_out)}, which models={models!r:.60} leaves out: name it there"
        )
    cache = "" if cache_dir is None else str(cache_dir)
    families = [
        model_family(
            name,
            device=device,
            cache_dir=cache,
            path=str(places.get(name, "")),
            settings=changed.get(name, {}),
            entities=entities,
        )
        for name in chosen
    ]
    return MetricBank((*default_bank().families, *families))


def whole_table(local: Mapping[str, str | PathLike[str]] | None = None) -> MetricBank:
    """All families with their cards, those that compare sets and judge no row included; `local` as for `full_bank`."""
    places = _by_model("local", local, (str, PathLike))
    sets = [model_family(name, path=str(places.get(name, ""))) for name in CORPUS_MODELS]
    return MetricBank((*full_bank("all", local=local).families, *sets))


def _by_model(option: str, given: Mapping[str, Any] | None, kinds: Any) -> dict[str, Any]:
    """The values given for metrics, by their names in our table."""
    if not isinstance(given or {}, Mapping) or not all(isinstance(value, kinds) for value in (given or {}).values()):
        form = "settings" if option == "settings" else "path"
        raise OptionError(f"{option}={given!r:.80} must be a mapping from the names of metrics to their {form}")
    return {model_name(name): value for name, value in (given or {}).items()}
