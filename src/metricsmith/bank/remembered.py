"""Numbers of bank metrics that are kept during a run which scores the same rows again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.metric import content_hash

__all__ = ["computed", "numbers_kept"]

Row = tuple[str, str, tuple[str, ...]]
_KEPT: ContextVar[dict[tuple[int, str], tuple[Any, dict[str, dict[Row, float]]]] | None] = ContextVar(
    "metricsmith_bank_numbers", default=None
)


@contextmanager
def numbers_kept() -> Iterator[None]:
    """Compute each bank metric once for every text that occurs inside, also in threads that copy the context.

    A row has the same number alone and in a batch, since a family sees other rows only through its statistics; other
    statistics are another number. All is forgotten at the end.
    """
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def computed(family: Any, batch: Any, names: Sequence[str]) -> Mapping[str, NDArray[np.float64]]:
    """The outputs of a `Family` for a `TextBatch`, ``{name: float array (n,)}``; `numbers_kept` keeps them.

    A family that would make its statistics out of the batch itself is always computed.
    """
    kept = _KEPT.get()
    if kept is None or (family.statistics is not None and batch.statistics is None):
        plain: Mapping[str, NDArray[np.float64]] = family.compute(batch, names)
        return plain
    statistics = "" if batch.statistics is None else content_hash(batch.statistics)
    known = kept.setdefault((id(family), statistics), (family, {}))[1]  # with the family: its number stays its own
    rows = list(zip(batch.outputs, batch.inputs, map(tuple, batch.references), strict=True))
    columns = [known.setdefault(name, {}) for name in names]
    new = list(dict.fromkeys(row for row in rows if any(row not in column for column in columns)))
    if new:
        outputs, inputs, references = zip(*new, strict=True)
        values = family.compute(replace(batch, outputs=outputs, inputs=inputs, references=references), names)
        for name, column in zip(names, columns, strict=True):
            column.update(zip(new, np.asarray(values[name], dtype=float).tolist(), strict=True))
    return {name: np.array([column[row] for row in rows]) for name, column in zip(names, columns, strict=True)}
