"""Pairs of judgements that two measures order in opposite ways (Theorem 5.3's necessary condition)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metricsmith.errors import OptionError
from metricsmith.rating_model.measures import RatingMeasure, Sides, as_loss
from metricsmith.rating_model.record import Violation
from metricsmith.stats.correlation import midranks

__all__ = ["rank_violations"]

MOST_CELLS = 1500  # judgements that are compared with each other


def rank_violations(
    first: RatingMeasure,
    second: RatingMeasure,
    sides: Sides,
    judges: Sequence[str],
    items: Sequence[str],
    *,
    most: int = 5,
) -> list[Violation]:
    """Concrete pairs that show two measures not to be rank consistent.

    Parameters
    ----------
    first, second : RatingMeasure
        Measures with one number per item; others have no order of items.
    sides : Sides
    judges, items : sequence of str
        Their names.
    most : int
        The pairs with the widest gaps in both orders, by product; no judgement stands in two of them.

    Returns
    -------
    list of Violation
        Empty where the two agree on all pairs, or a measure has no number per item. Of more than 1,500 judgements
        evenly spaced ones are compared.

    References
    ----------
    Guerdan et al. (2025), Definition 5.2 and Theorem 5.3.
    """
    if len(judges) != len(sides.judges.choices) or len(items) != len(sides.human.choices):
        raise OptionError(f"{len(judges)} judges and {len(items)} items do not fit the vectors: name each of them")
    terms = [measure.terms(sides) for measure in (first, second)]
    if any(array.ndim != 2 for array in terms):
        return []
    places = np.argwhere(~np.isnan(terms[0] + terms[1]))
    places = places[:: max(1, -(-len(places) // MOST_CELLS))]
    raw = [array[tuple(places.T)] for array in terms]
    lost = [as_loss(measure, values) for measure, values in zip((first, second), raw, strict=True)]
    ranks = [midranks(values) for values in lost]
    gaps = [rank[:, None] - rank for rank in ranks]  # below 0 where the row is better
    score = np.where((gaps[0] < 0) & (gaps[1] > 0), -gaps[0] * gaps[1], 0.0)
    found: list[Violation] = []
    while len(found) < most and score.size and score.max() > 0:
        one, other = np.unravel_index(int(score.argmax()), score.shape)
        cells = [(judges[places[row][0]], items[places[row][1]]) for row in (one, other)]
        values = [(float(array[one]), float(array[other])) for array in raw]
        found.append(Violation(cells[0], cells[1], values[0], values[1]))
        for row in (one, other):
            score[row], score[:, row] = 0.0, 0.0
    return found
