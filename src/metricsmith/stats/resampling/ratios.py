"""The interval of a ratio of two statistics that were measured on the same groups."""

from __future__ import annotations

import math

from metricsmith.errors import OptionError
from metricsmith.stats.resampling.draws import check_level
from metricsmith.stats.resampling.intervals import Interval

__all__ = ["ratio_interval"]


def ratio_interval(
    top: float, bottom: float, variances: tuple[float, float, float], freedom: int, *, level: float = 0.95
) -> Interval:
    """Fieller's interval of ``top / bottom``: the ratios r for which ``top - r bottom`` cannot be told from 0.

    Parameters
    ----------
    top, bottom : float
        Two statistics.
    variances : (float, float, float)
        The variances of `top` and of `bottom`, and their covariance.
    freedom : int
        Degrees of freedom of Student's t, at least 1.
    level : float

    Returns
    -------
    Interval
        Not symmetric, and on no bounded scale. NaN ends where Student's interval of `bottom` holds 0: then no bounded
        set of ratios is left. NaN ends also where a number is undefined or `freedom` is below 1.

    Raises
    ------
    OptionError
        If `level` is out of range or a variance is negative.

    References
    ----------
    Fieller (1954), "Some problems in interval estimation".

    Examples
    --------
    >>> found = ratio_interval(1.0, 2.0, (0.01, 0.01, 0.0), 30)
    >>> round(found.low, 3), round(found.high, 3)
    (0.39, 0.62)
    """
    from scipy.special import stdtrit

    check_level(level)
    of_top, of_bottom, common = variances
    if of_top < 0 or of_bottom < 0:
        raise OptionError(f"variances {of_top:g} and {of_bottom:g} must not be negative")
    none = Interval(math.nan, math.nan, level)
    if freedom < 1 or not all(map(math.isfinite, (top, bottom, *variances))):
        return none
    square = float(stdtrit(freedom, (1 + level) / 2)) ** 2
    # bottom^2 r^2 - 2 top bottom r + top^2 <= t^2 (V_top - 2 r C + r^2 V_bottom)
    leading = bottom**2 - square * of_bottom
    if leading <= 0:
        return none
    middle, last = top * bottom - square * common, top**2 - square * of_top
    reach = math.sqrt(max(0.0, middle**2 - leading * last))
    return Interval((middle - reach) / leading, (middle + reach) / leading, level)
