"""A finished distillation as data: the free metric beside the paid one, on rows that its fit has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.records import Usage
from metricsmith.report.induction.record import Component
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.kept_share import KeptShare

__all__ = ["Distillation", "Divergence"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """A held-out row on which both metrics differ much.

    `free` and `paid` are on the paid metric's scale, `rating` is people's, None without one. `gap` is the free number
    less the paid one, each in standard deviations of the held-out rows.
    """

    id: str
    output: str
    input: str
    free: float
    paid: float
    gap: float
    rating: float | None = None


@dataclass(frozen=True)
class Distillation(NotebookRecord):
    """A free metric that imitates a paid one.

    Parameters
    ----------
    paid, fingerprint : str
        The name of the metric that is imitated, and its fingerprint.
    width : float
        Of its scale, or of the numbers seen where that has no ends; it decides on decimals.
    evaluation : str
        The way in which rows were held out: ``holdout``, ``cv`` or ``train_only``.
    learned : int
        Rows whose paid scores the free metric was fitted to.
    components : tuple of Component
        Of the free metric, by falling absolute weight.
    imitation : Agreement
        Of the free metric with the paid one, on held-out rows.
    target : str
        The rating by people; empty where no row has one.
    free_people, paid_people : Agreement
        Of either with people on the same held-out rows; n is 0 without any. More is better in both.
    difference : Difference
        Of the two: free less paid.
    share : KeptShare
        Of the two: free over paid.
    apart : tuple of Divergence
        The held-out rows with the largest gaps, largest first.
    judgements : mapping of str to int
        Of the paid metric: ``requested`` and by status.
    usage : Usage
        Of the paid metric in this run, and of what was written by a model.
    signature : str
        The line that makes every number reproducible.
    split : str
        How rows were held out, and why so, in a sentence.
    notes, warnings : tuple of str
    """

    paid: str
    fingerprint: str
    width: float
    evaluation: str
    learned: int
    components: tuple[Component, ...]
    imitation: Agreement
    target: str
    free_people: Agreement
    paid_people: Agreement
    difference: Difference
    share: KeptShare
    apart: tuple[Divergence, ...]
    judgements: Mapping[str, int]
    usage: Usage
    signature: str
    split: str = ""
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The content of ``distillation.json``: JSON-ready, undefined numbers as None."""
        shown = [{key: getattr(one, key) for key in ("name", "kind", "weight")} for one in self.components]
        return dict(jsonable({"schema_version": 1, **asdict(self), "components": shown}))
