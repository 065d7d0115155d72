"""Position bias: the preference of a judge of pairs for the place in which an output stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dspy

from metricsmith.errors import DataError, JudgementFailed
from metricsmith.model_calls.models import using
from metricsmith.optimizers.splits import group_of
from metricsmith.stats.validity import Lean, position_lean
from metricsmith.threads import in_threads

__all__ = ["probe_position"]

Pair = tuple[dspy.Example, dspy.Example]


def probe_position(
    prefer: Callable[[dspy.Example, dspy.Example], float], pairs: Sequence[Pair], *, lm: Any = None, threads: int = 8
) -> Lean:
    """Ask a judge of pairs twice, with the two outputs exchanged.

    Parameters
    ----------
    prefer : callable
        ``prefer(first, second)`` gives the degree to which the judge prefers the first, in [0, 1]. A pair where it
        raises `JudgementFailed` is missing; any other error is raised.
    pairs : sequence of (row, row)
        Two outputs to one input; the group is the first row's.
    lm : dspy.LM, optional
        None takes the one in force.
    threads : int

    Returns
    -------
    Lean
        See `metricsmith.stats.validity.position_lean`.

    Raises
    ------
    DataError
        If there are no pairs, or a preference is not in [0, 1].
    """
    if not pairs:
        raise DataError("there are no pairs to show in both orders")

    def ask(first: dspy.Example, second: dspy.Example) -> float:
        try:
            return float(prefer(first, second))
        except JudgementFailed:
            return math.nan

    orders = [order for one, other in pairs for order in ((one, other), (other, one))]
    with using(lm):
        preferences = in_threads([partial(ask, *order) for order in orders], threads, "metricsmith asking")
    groups = [group_of(one, place) for place, (one, _) in enumerate(pairs)]
    return position_lean(preferences[::2], [1 - value for value in preferences[1::2]], groups)
