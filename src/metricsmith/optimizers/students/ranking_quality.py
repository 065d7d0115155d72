"""The quality of a ranking, given the worth of each ranked thing: recall@k and NDCG@k."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from metricsmith.errors import DataError, OptionError, nearest

__all__ = ["ndcg_at_k", "recall_at_k"]


def recall_at_k(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Share of the k best that stand among the first k of a ranking.

    With fewer than k positive gains the best are those that have one. Where several tie for the last of the k
    places, any of them may take it, but no tie takes the place of something better.

    Parameters
    ----------
    ranking : sequence of str
        Names in `gains`, best first, without repeats; it may be shorter than the pool. What it leaves out was not
        recommended.
    gains : mapping of str to float
        The pool, with what each name is worth: 0 or more. NaN, where that is unknown, counts as 0.
    k : int
        At least 1; beyond the size of the pool it counts as that size.

    Returns
    -------
    float
        In [0, 1]; NaN where no gain is positive.

    Raises
    ------
    OptionError
        If `k` is below 1.
    DataError
        If a gain is negative or infinite, or a ranked name is repeated or not in the pool.

    Examples
    --------
    >>> recall_at_k(["a", "d"], {"a": 0.5, "b": 0.4, "c": 0.4, "d": 0.1}, 2)
    0.5
    """
    known = _checked(ranking, gains, k)
    best = sorted((gain for gain in known.values() if gain > 0), reverse=True)[:k]
    if not best:
        return math.nan
    named = [known[name] for name in ranking[:k]]
    better = sum(gain > best[-1] for gain in named)
    level = min(named.count(best[-1]), best.count(best[-1]))
    return (better + level) / len(best)


def ndcg_at_k(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Normalised discounted cumulative gain of the first k places.

    ``sum_{i=1..k} g_i / log2(i + 1)`` over the same sum for the pool in falling order of gain (Järvelin and
    Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques", with the gains themselves and the logarithm
    to base 2 from the first place on). Equal gains may change places. A place that the ranking leaves empty adds
    nothing.

    Parameters, errors and unknown gains as in `recall_at_k`.

    Returns
    -------
    float
        In [0, 1]: 1 where no order of the pool has more; NaN where no gain is positive.

    Examples
    --------
    >>> round(ndcg_at_k(["b", "a"], {"a": 0.5, "b": 0.25, "c": 0.0}, 2), 3)
    0.86
    """
    known = _checked(ranking, gains, k)
    ideal = _discounted(sorted(known.values(), reverse=True)[:k])
    return _discounted([known[name] for name in ranking[:k]]) / ideal if ideal > 0 else math.nan


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def _checked(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> dict[str, float]:
    """The gains with 0 for unknown ones."""
    if k < 1:
        raise OptionError(f"k={k} must be 1 or more: it counts places of the ranking")
    known = {name: 0.0 if math.isnan(gain) else float(gain) for name, gain in gains.items()}
    odd = [name for name, gain in known.items() if not 0 <= gain < math.inf]
    if odd:
        raise DataError(
            f"the gain of {odd[0]!r} is {gains[odd[0]]!r}: gains are finite and 0 or more; give absolute values, and "
            f"NaN where a gain is unknown"
        )
    strange = [name for name in ranking if name not in known]
    if strange:
        raise DataError(
            f"{strange[0]!r} is ranked but not in the pool{nearest(strange[0], known)}: leave it out, or give its gain"
        )
    repeated = [name for name, count in Counter(ranking).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]!r} is ranked more than once: name each thing once")
    return known
