"""Numbers that others published for these metrics and weights, and the comparison with ours. Our own runs are none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

import dspy

from metricsmith.bank.weighted import model_family

__all__ = ["ComparedNumber", "PublishedNumbers", "compared_with_published", "published_numbers"]


@dataclass(frozen=True)
class PublishedNumbers:
    """The numbers that one source gives for some texts.

    Parameters
    ----------
    metric : str
        A name of our table.
    expected : mapping of str to list of float
        By output, a number for each row.
    tolerance : float
        The most that a number may differ: the source's rounding, and its numeric type.
    source : str
        The card, paper, or run of a named package that the numbers come from.
    rows : list of mapping
        ``output``, and as needed ``input`` and ``references``; a corpus (idf) is made of them all.
    settings : mapping
        Those of the metric that the source used.
    id : str
        The weights that the numbers belong to where they are not those of our table; empty where they are.
    """

    metric: str
    expected: Mapping[str, list[float]]
    tolerance: float
    source: str
    rows: list[Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class ComparedNumber:
    """One published number beside ours; `found` is NaN where we have none, and `reason` says why."""

    output: str
    row: int
    expected: float
    found: float
    tolerance: float
    reason: str

    @property
    def agrees(self) -> bool:
        """True where the two differ by no more than the tolerance."""
        return abs(self.found - self.expected) <= self.tolerance


@lru_cache(maxsize=1)
def published_numbers() -> tuple[PublishedNumbers, ...]:
    """All that we know of, from the file beside this one."""
    data = json.loads((files(__package__) / "published.json").read_text("utf-8"))
    return tuple(PublishedNumbers(**{**one, "rows": data["texts"][one["rows"]]}) for one in data["numbers"])


def compared_with_published(numbers: PublishedNumbers, **place: str) -> Iterator[ComparedNumber]:
    """Compute what `numbers` states, row by row.

    Parameters
    ----------
    numbers : PublishedNumbers
    **place : str
        Fields of the `ModelSpec` that say where the weights lie and run: ``path``, ``device``.

    Raises
    ------
    NeedsError
        If the weights are not here or cannot be read, or the extra is not installed.
    """
    family = model_family(numbers.metric, settings=numbers.settings, **place)
    if family.model is not None:
        family.model.check()
    rows = [dspy.Example(**{"input": "", "references": [], **row}) for row in numbers.rows]
    for metric in family.metrics():
        expected = numbers.expected.get(metric.name, ())
        for number, (wanted, judged) in enumerate(zip(expected, metric.fit(rows).judge_batch(rows), strict=False), 1):
            found = math.nan if judged.raw is None else judged.raw
            yield ComparedNumber(metric.name, number, wanted, found, numbers.tolerance, judged.error)
