"""Rows whose runs are told, and which of them a repeated judge needs that may stop early."""

from __future__ import annotations

import numpy as np

from metricsmith.metric import make_row
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Status
from metricsmith.scoring import score
from metricsmith.stats.aggregation import half_width, mean
from stubs import Scripted

BOUND, LEAST, MOST = 0.7, 3, 8
ROWS = [make_row(f"text {number}", id=str(number)) for number in range(40)]
_draw = np.random.default_rng(11)
NUMBERS = {row.id: np.round(_draw.normal(3, 0.5 + 0.05 * place, MOST)).tolist() for place, row in enumerate(ROWS)}
for place in range(0, 40, 3):  # failures, also one after the other
    NUMBERS[str(place)][place % 5 : place % 5 + 1 + place % 2] = [Status.UNPARSABLE] * (1 + place % 2)


def told(row, run):
    return NUMBERS[row.id][run % MOST]


def repeated(judge, **options):
    return Repeated(judge, **{"runs": MOST, "aggregate": "mean", "min_runs": LEAST, "stop_when": BOUND, **options})


def needed(numbers):
    """The number of runs a row takes, by the rule itself."""
    for runs in range(1, len(numbers) + 1):
        present = [number for number in numbers[:runs] if not isinstance(number, Status)]
        if len(present) >= LEAST and half_width(present, mean) <= BOUND:
            return runs
    return len(numbers)


EXPECTED = {(row.id, run) for row in ROWS for run in range(needed(NUMBERS[row.id]))}


def scored(**options):
    judge = Scripted(told)
    table = score([repeated(judge)], ROWS, progress=False, max_failure_rate=1.0, **options)
    return judge, table


class Peeking(Repeated):
    """Keeps the judgements that its verdicts rest on."""

    def verdict(self, parts, run):
        self.seen = list(parts)
        return super().verdict(parts, run)
