"""One-line counts of a conversation, which any metric has to beat, and the agreement of a number with the reward."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import correlation_interval


def characters(output):
    """Length of the transcript."""
    return len(output)


def transfers(output):
    """Calls that hand the customer to a person."""
    return output.count('{"name": "transfer_to_human')


def writing_calls(output):
    """Calls of tau-bench's tools that change the database."""
    names = ("book_reservation", "cancel_reservation", "send_certificate", "update_reservation_")
    return sum(output.count('{"name": "' + name) for name in names)


def calls(output):
    """Calls of tools."""
    return output.count('{"name": "')


def turns(output):
    """Turns of the agent, calls included."""
    return output.count("\nassistant:")


@dataclass(frozen=True)
class Measure:
    """A number of a conversation beside its reward: tau-b, and its 95 % interval by leaving out one task at a time.

    NaN where the number is constant; the interval also where one task alone decides it.
    """

    name: str
    kendall_tau_b: float
    low: float
    high: float


def measured(name: str, numbers: Sequence[float], rewards: Sequence[float], tasks: Sequence[Hashable]) -> Measure:
    """The agreement of `numbers` with the rewards of the same conversations."""
    ends = correlation_interval(batch_kendall_tau_b, numbers, rewards, tasks, batched=True)
    return Measure(name, float(batch_kendall_tau_b(numbers, rewards)), ends.low, ends.high)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """A table as lines: the first `texts` columns to the left, numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    sides = [str.ljust if place < texts else str.rjust for place in range(len(columns))]
    for row in zip(*columns, strict=True):
        yield "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
