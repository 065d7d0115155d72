"""Conditions on rows: ``COL=VALUE`` and ``COL!=VALUE``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from metricsmith.datasets.cells import cell_number, cell_text
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, OptionError, nearest

__all__ = ["Condition", "filter_rows", "parse_condition"]


@dataclass(frozen=True, slots=True)
class Condition:
    """Keeps the rows whose cell in `column` equals `value` (or differs, where `equal` is False)."""

    column: str
    value: str
    equal: bool

    def __str__(self) -> str:
        return f"{self.column}{'=' if self.equal else '!='}{self.value}"

    def holds(self, cell: Any) -> bool:
        """True if a plain cell fulfils the condition.

        Texts are compared without white space at the ends; numbers as numbers (1 equals 1.0); booleans
        in any case; a missing cell equals the empty value.
        """
        text, value = cell_text(cell).strip(), self.value.strip()
        same = text == value or (isinstance(cell, bool) and text.lower() == value.lower())
        if not same:
            with suppress(ValueError):  # NaN equals nothing
                same = cell_number(text) == cell_number(value)
        return same == self.equal


def parse_condition(text: str, columns: Iterable[str]) -> Condition:
    """Read ``COL=VALUE`` or ``COL!=VALUE``.

    Column names may contain ``=``, ``!`` and spaces: the longest existing name that an operator follows
    is meant. White space around the operator is allowed.

    Raises
    ------
    OptionError
        If there is no operator, or no column of that name (the nearest is suggested).
    """
    known = list(columns)
    for column in sorted(known, key=len, reverse=True):
        rest = text[len(column) :].lstrip() if text.startswith(column) else ""
        for operator in ("!=", "="):
            if rest.startswith(operator):
                return Condition(column, rest[len(operator) :].strip(), operator == "=")
    if "=" not in text:
        raise OptionError(
            f"condition {text!r} has no '='; allowed are COL=VALUE and COL!=VALUE: write for example "
            f"where={(known or ['COL'])[0] + '=VALUE'!r} (--where)"
        )
    name = text.partition("=")[0].removesuffix("!").strip()
    raise OptionError(
        f"condition {text!r}: no column {name!r}{nearest(name, known)}; the columns are "
        f"{', '.join(known[:20])}"
        f"{', ...' if len(known) > 20 else ''}: name an existing one in where=... (--where)"
    )


def filter_rows(raw: RawTable, where: Sequence[str]) -> RawTable:
    """Keep the rows of `raw` that fulfil every condition of `where`, in order.

    Raises
    ------
    OptionError
        If a condition cannot be read.
    DataError
        If no row is left; some values that the column has are shown.
    """
    for text in where:
        condition = parse_condition(text, raw.columns)
        cells = raw.columns[condition.column]
        keep = [index for index, cell in enumerate(cells) if condition.holds(cell)]
        if not keep:
            seen = list(dict.fromkeys(cell_text(cell)[:30] for cell in cells))
            raise DataError(
                f"{raw.name}: no row is left by the condition {str(condition)!r} (column "
                f"{condition.column!r}, "
                f"value {condition.value!r}); of {len(raw)} rows the column holds "
                f"{', '.join(map(repr, seen[:6]))}"
                f"{', ...' if len(seen) > 6 else ''}{nearest(condition.value, seen)}: change or drop the "
                f"condition"
            )
        raw = raw.take(keep)
    return raw
