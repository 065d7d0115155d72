"""Two versions of outputs under one metric, as data: their difference, by component and by slice, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.records import Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.report.scored.record import ScoredRow
from metricsmith.stats.mean_difference import MeanDifference

__all__ = ["MovedPair", "Versus"]


@dataclass(frozen=True, slots=True)
class MovedPair:
    """A pair with a large difference: the row in both versions, with input and output among its cells.

    `change` is the second's value less the first's.
    """

    first: ScoredRow
    second: ScoredRow
    change: float


@dataclass(frozen=True)
class Versus(NotebookRecord):
    """A second version of outputs, B, held against a first, A, under one metric.

    Parameters
    ----------
    target, metric : str
        The rating that the metric predicts, or its name; and its name.
    versions : (str, str)
        Where A and B came from.
    width : float
        Of the metric's scale, or of the numbers seen where that has no ends; it decides on decimals.
    whole : MeanDifference
        B less A over all pairs, in the metric's raw numbers.
    components : tuple of MeanDifference
        Of what each adds to the value, together `whole`; empty for a metric that is not made of components.
    by : str
        The column of the slices; empty without one.
    slices : tuple of MeanDifference
        Of the pairs with one value of that column each. As those of the components their p-values are Holm's.
    moved : tuple of MovedPair
        The pairs that gained most, then those that lost most, the largest changes first.
    paired_by : str
    left_out : mapping of str to tuple of str
        The ids of rows or pairs that do not count, by reason.
    signature : str
    model : str
        The language model that the metric asks; empty where it asks none.
    usage : Usage
    notes, warnings : tuple of str
    """

    target: str
    metric: str
    versions: tuple[str, str]
    width: float
    whole: MeanDifference
    components: tuple[MeanDifference, ...]
    by: str
    slices: tuple[MeanDifference, ...]
    moved: tuple[MovedPair, ...]
    paired_by: str
    left_out: Mapping[str, tuple[str, ...]]
    signature: str
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The content of ``versus.json``: JSON-ready, undefined numbers as None."""
        return dict(jsonable({"schema_version": 1, "verdict": self.whole.verdict, **asdict(self)}))
