"""A bank whose families keep what they computed, for runs that score the same rows again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metricsmith.bank.base import Compute, FloatArray, TextBatch
from metricsmith.bank.catalogue import MetricBank
from metricsmith.metric import content_hash

__all__ = ["remembered"]


def remembered(bank: MetricBank) -> MetricBank:
    """The same metrics with the same numbers; a batch of texts is computed once for as long as the bank lives.

    Parameters
    ----------
    bank : MetricBank
        Stays as it is.
    """
    return MetricBank(tuple(replace(family, compute=_kept(family.compute)) for family in bank.families))


def _kept(compute: Compute) -> Compute:
    known: dict[str, Mapping[str, FloatArray]] = {}

    def recall(batch: TextBatch, names: Sequence[str]) -> Mapping[str, FloatArray]:
        references = [list(texts) for texts in batch.references]
        key = content_hash(list(batch.outputs), list(batch.inputs), references, batch.statistics, list(names))
        if key not in known:
            known[key] = compute(batch, names)
        return known[key]

    return recall
