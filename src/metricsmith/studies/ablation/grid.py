"""A grid of settings: what differs between its cells, which tables they form, and what all are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MEASURES", "Grid", "Part", "Setting"]

MEASURES = ("metric", "candidates", "retrieval")


@dataclass(frozen=True)
class Setting:
    """The options of an induction that a grid may vary; None leaves what the optimizer has.

    Parameters
    ----------
    label : str
        By default what differs from the grid's base, such as ``k=5, cards=brief``.
    bank : str, optional
        ``existing``, ``generated``, ``full`` (both; ``all`` for an induction) or ``none``.
    k, n : int, optional
    regression : str, optional
        ``auto`` or ``pls``.
    cards : str, optional
        What retrieval sees of a metric: ``whole``, or ``brief``, its name and one sentence.
    retrieval : str, optional
        The ways to rank cards, first to last: ``bm25``, ``colbert``, ``model``, ``bm25 model``, ``colbert model``.
    generators : mapping of str to int, optional
    panel : bool, optional
    rows : int
        Learning rows; 0 for all that the test set leaves.
    """

    label: str = ""
    bank: str | None = None
    k: int | None = None
    n: int | None = None
    regression: str | None = None
    cards: str | None = None
    retrieval: str | None = None
    generators: Mapping[str, int] | None = None
    panel: bool | None = None
    rows: int = 0


@dataclass(frozen=True)
class Part:
    """One table of a grid."""

    title: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Grid:
    """Settings in tables, repeated with several seeds on every data set.

    Parameters
    ----------
    title : str
    parts : tuple of Part
        The same setting may stand in several; it is run once.
    reference : Setting
        Each cell is held against the cell of this setting with the same data, number of learning rows and seed.
    measure : str
        One of `MEASURES`.
    seeds : int
    test : float
        Share of the rated rows in each test set, by group.
    data : mapping of str to mapping
        By the name of a data set: the options of `read_table` for its columns, which go before those of the caller.
    """

    title: str
    parts: tuple[Part, ...]
    reference: Setting
    measure: str = "metric"
    seeds: int = 5
    test: float = 0.3
    data: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
