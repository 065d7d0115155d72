"""From names as a model writes them to names of cards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from unicodedata import category

from metricsmith.records import MetricCard

__all__ = ["MatchedNames", "match_names"]

ORNAMENT = re.compile(r"^\s*(?:\d+\s*[.):]\s+|[-*•]\s+)?|\s+$")
QUOTES = "\"'`*“”‘’«» "


@dataclass(frozen=True, slots=True)
class MatchedNames:
    """`names` are cards, in the order given and without repeats; `unknown` is the rest, as written."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]


def match_names(given: Iterable[str], cards: Sequence[MetricCard]) -> MatchedNames:
    """Find the card that each name means.

    A name is looked up exactly, then without regard to case, then without punctuation and spaces too; list
    numbers, bullets and quotes around it are taken off first. Symbols count (chrF++ is not chrF). Card names
    go before names of outputs (``rouge1_f`` means the card that yields it). A spelling that fits several
    cards equally well fits none and is unknown.

    Examples
    --------
    >>> from metricsmith.records import Output
    >>> cards = [MetricCard("BLEU", "bank", "", "", (Output("bleu"),))]
    >>> match_names(["1. `Bleu`", "BLEURT", "bleu"], cards)
    MatchedNames(names=('BLEU',), unknown=('BLEURT',))
    """
    tables = [
        (key, _index(cards, labels, key))
        for labels in (_card_name, _output_names)
        for key in (str, str.casefold, _loose)
    ]
    names: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for written in given:
        name = _find(_bare(written), tables)
        if name is None:
            unknown[written] = None
        else:
            names[name] = None
    return MatchedNames(tuple(names), tuple(unknown))


Key = Callable[[str], str]
Table = dict[str, set[str]]


def _index(cards: Sequence[MetricCard], labels: Callable[[MetricCard], Iterable[str]], key: Key) -> Table:
    table: Table = {}
    for card in cards:
        for label in labels(card):
            table.setdefault(key(label), set()).add(card.name)
    return table


def _find(name: str, tables: Iterable[tuple[Key, Table]]) -> str | None:
    for key, table in tables:
        found = table.get(key(name), set())
        if found:
            return next(iter(found)) if len(found) == 1 else None
    return None


def _bare(written: str) -> str:
    return ORNAMENT.sub("", written).strip(QUOTES)


def _card_name(card: MetricCard) -> list[str]:
    return [card.name]


def _output_names(card: MetricCard) -> list[str]:
    return [output.name for output in card.outputs]


def _loose(name: str) -> str:
    return "".join(character for character in name.casefold() if category(character)[0] not in "PZC")
