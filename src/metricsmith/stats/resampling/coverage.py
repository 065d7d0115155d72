"""How often the intervals of few groups held the truth in simulations, to be printed beside them."""

from __future__ import annotations

import math

from metricsmith.errors import OptionError

__all__ = ["ENOUGH_GROUPS", "MEASURED", "measured_coverage"]

ENOUGH_GROUPS = 30
"""From here on the intervals cover about as often as they say: docs/coverage.md."""

# The lowest coverage over all simulated kinds of data at the 95 % level, by number of groups: the lines "lowest" of
# `python benchmarks/coverage.py --replications 2000 --seed 0`, which remakes them (tau, difference: 400 replications).
# Of differences those intervals count that have ends: it is beside them that the number is printed.
MEASURED = {
    "share": {5: 0.916, 10: 0.904, 18: 0.926},
    "mean": {5: 0.809, 10: 0.905, 18: 0.923},
    "tau": {5: 0.877, 10: 0.94, 18: 0.922},
    "difference": {3: 0.926, 5: 0.746, 10: 0.912, 18: 0.907},
}


def measured_coverage(kind: str, groups: int) -> float | None:
    """The lowest coverage that a 95 % interval of this kind had in simulations with about so few groups.

    Parameters
    ----------
    kind : str
        ``share`` (`share_interval`), ``mean`` (`group_mean_interval`), ``tau`` (`correlation_interval` of tau-b) or
        ``difference`` (`repeated_interval` of the tau-b of one prediction less that of another).
    groups : int
        How many groups the interval stands on.

    Returns
    -------
    float or None
        In (0, 1): of the nearest simulated number of groups that is not above `groups`; NaN below the fewest that
        were simulated, 5 (3 for a difference). None with `ENOUGH_GROUPS` or more, where nothing needs saying.

    Raises
    ------
    OptionError
        If there is no such kind.

    Examples
    --------
    >>> measured_coverage("share", 40) is None
    True
    """
    if kind not in MEASURED:
        raise OptionError(f"no coverage was measured for {kind!r}: choose one of {', '.join(MEASURED)}")
    if groups >= ENOUGH_GROUPS:
        return None
    table = MEASURED[kind]
    return table[max(few)] if (few := [count for count in table if count <= groups]) else math.nan
