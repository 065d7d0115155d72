"""Columns whose name says text and whose cells say rating: they are never guessed as what a metric may read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, is_blank, reference_list
from metricsmith.datasets.ratings import parse_rating
from metricsmith.datasets.sources import RawTable
from metricsmith.metric import content_hash
from metricsmith.stats.correlation import kendall_tau_b

__all__ = ["Guard"]

_MOST_VALUES, _LEAST_ROWS = 11, 3  # of a categorical column, and of each of its values
_GOES_WITH = 0.8
_SHARE = re.compile(r"\d+(\.\d+)?\s*(%|/\s*\d+(\.\d+)?)")  # 85 %, 4/5


@dataclass(frozen=True, eq=False)
class Guard:
    """Tells texts from numbers, rating words and categories that go with the rating.

    Parameters
    ----------
    raw : RawTable
    ratings : float array, shape (n rows,)
        NaN where there is none.
    """

    raw: RawTable
    ratings: NDArray[np.float64]

    @classmethod
    def of(cls, raw: RawTable, target: str | None) -> Guard:
        """The guard of a table; cells of the rating column that are no ratings count as missing."""
        cells = [None] * len(raw) if target is None else raw.columns[target]
        return cls(raw, np.array([_rating(cell) for cell in cells], dtype=float))

    def objection(self, role: str, column: str, sources: Sequence[str]) -> str:
        """The reason why `column` is not guessed as `role`, empty if there is none.

        Parameters
        ----------
        role : str
            A text (``output``, ``input``, ``reference``, ``context``) or ``rater``; no other role has objections.
        column : str
        sources : sequence of str
            Columns that may group the rows, the likeliest first.
        """
        cells = self.raw.columns[column]
        if role in {"output", "input", "reference", "context"}:
            parts = [reference_list(cell) if role == "reference" else [cell] for cell in cells]
            found = [_kind(part) for own in parts for part in own if not is_blank(part)]
            if found and "text" not in found:
                return "it holds rating words" if "word" in found else "it holds numbers"
        elif role != "rater":
            return ""
        together = self._goes_with(cells, [name for name in sources if name != column])
        return f"its values go with the rating (tau-b {together:+.2f} on rows of other groups)" if together else ""

    def _goes_with(self, cells: Sequence[Any], sources: Sequence[str]) -> float:
        """Tau-b of the ratings with the mean rating that a category has in the other half; 0 where that is weak.

        Both halves must say so, as far as it is defined there.
        """
        values = np.array([cell_text(cell).strip() for cell in cells], dtype=object)
        known = ~np.isnan(self.ratings) & (values != "")
        counts = Counter(values[known].tolist())
        if not 1 < len(counts) <= _MOST_VALUES or min(counts.values()) < _LEAST_ROWS:
            return 0.0
        half, taus = self._half(sources), []
        for side in (half, ~half):
            means = {value: self.ratings[known & side & (values == value)] for value in counts}
            levels = {value: own.mean() for value, own in means.items() if own.size}
            there = known & ~side
            expected = np.array([levels.get(value, np.nan) for value in values[there]], dtype=float)
            taus.append(kendall_tau_b(expected, self.ratings[there]))
        defined = [tau for tau in taus if not np.isnan(tau)]
        weakest = min(defined, key=abs, default=0.0)
        return weakest if abs(weakest) > _GOES_WITH else 0.0

    def _half(self, sources: Sequence[str]) -> NDArray[np.bool_]:
        """Every other group: of the first column with a repeated value, else every other row, by content."""
        names: list[str] = []
        for column in sources:
            names = [cell_text(cell) for cell in self.raw.columns[column]]
            if 1 < len(set(names)) < len(names):
                break
        else:
            rows = zip(*self.raw.columns.values(), strict=True)
            names = [content_hash(list(row)) for row in rows]
        order = sorted(set(names), key=lambda name: content_hash(name))
        even = set(order[::2])
        return np.array([name in even for name in names], dtype=bool)


def _rating(cell: Any) -> float:
    try:
        return parse_rating(cell)
    except ValueError:
        return float("nan")


def _kind(cell: Any) -> str:
    """``number``, ``word`` (of a rating) or ``text``."""
    text = cell_text(cell).strip()
    if _SHARE.fullmatch(text):
        return "number"
    try:
        parse_rating(cell)
    except ValueError:
        return "text"
    return "number" if re.fullmatch(r"[-+\d.,eE]+", text) else "word"
