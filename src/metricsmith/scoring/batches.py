"""What this machine computes itself, in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metricsmith.bank.base import BankMetric, judge_family
from metricsmith.records import Judgement
from metricsmith.scoring.results import PENDING, Results

__all__ = ["batches"]

ROWS_AT_A_TIME = 1_000


def batches(results: Results) -> Iterator[list[tuple[int, int, Judgement]]]:
    """Compute what nothing is known of yet; a bank family with one set of statistics is computed once.

    Yields
    ------
    list of (int, int, Judgement)
        Slot, row and judgement.
    """
    for places in results.plan.families:
        left = np.flatnonzero((results.codes[list(places)] == PENDING).any(axis=0)).tolist()
        for start in range(0, len(left), ROWS_AT_A_TIME):
            numbers = left[start : start + ROWS_AT_A_TIME]
            rows = [results.rows[number] for number in numbers]
            metrics = [results.plan.slots[place].metric for place in places]
            if isinstance(metrics[0], BankMetric):
                columns = judge_family([metric for metric in metrics if isinstance(metric, BankMetric)], rows)
            else:
                columns = [metric.judge_batch(rows) for metric in metrics]
            yield [
                (place, number, judgement)
                for place, column in zip(places, columns, strict=True)
                for number, judgement in zip(numbers, column, strict=True)
                if results.codes[place, number] == PENDING
            ]
