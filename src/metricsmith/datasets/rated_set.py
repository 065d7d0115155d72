"""A published data set with ratings: its columns, scales and splits, and where it is to be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from metricsmith.datasets.sources import RawTable
from metricsmith.records import Scale

__all__ = ["LICENCE", "PAPER_SHARES", "RatedSet"]

LICENCE = "check at the source"

PAPER_SHARES = "by group: .5 to train, .2 to validate, .3 to test"
"""The split of most data sets (`get_splits` in ``autometrics/dataset/Dataset.py`` of SALT-NLP/autometrics)."""


@dataclass(frozen=True)
class RatedSet:
    """A data set of the AutoMetrics paper, without its rows, which are not part of this package.

    Parameters
    ----------
    name : str
        Lower case, as commands know it.
    title, citation : str
        The paper's name for it, and who made it.
    page : str
        Where to get it.
    task : str
        What the outputs are for, in words of our own.
    dimensions : mapping of str to Scale or None
        The rating columns, that of the paper's main tables first; None where a scale is inferred.
    columns : mapping of str to object
        The other columns, as options of `read_table`.
    splits : str
        The paper's.
    rows : tuple of int
        Numbers of rows that are known: Table 1's, then others that the source has; empty where Table 1 leaves it out.
    held : tuple of str
        Column and value that mark the paper's own test rows; empty where it draws them.
    hub : str
        Hugging Face id; empty where it is not on the hub in this form.
    load : callable, optional
        Loads it from the hub, in place of ``datasets.load_dataset``.
    form : callable, optional
        Brings a table as it is published into columns as above.
    unverified : str
        What could not be read in a named source; empty where columns, scale and splits all were.
    licence : str
    """

    name: str
    title: str
    citation: str
    page: str
    task: str
    dimensions: Mapping[str, Scale | None]
    columns: Mapping[str, Any]
    splits: str = PAPER_SHARES
    rows: tuple[int, ...] = ()
    held: tuple[str, ...] = ()
    hub: str = ""
    load: Callable[[str], Any] | None = field(default=None, repr=False)
    form: Callable[[RawTable], RawTable] | None = field(default=None, repr=False)
    unverified: str = ""
    licence: str = LICENCE

    @property
    def verified(self) -> str:
        """``format verified``, or ``format not verified`` with what was not."""
        return f"format not verified: {self.unverified}" if self.unverified else "format verified"
