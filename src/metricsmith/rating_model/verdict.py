"""The verdict on a choice of judge, with its reasons in sentences."""

from __future__ import annotations

from metricsmith.formats import percent, raw, statistic
from metricsmith.rating_model.record import JudgeSelection

__all__ = ["verdict"]


def verdict(found: JudgeSelection) -> tuple[str, tuple[str, ...]]:
    """Returns ``"chosen"``, ``"depends"`` or ``"undecided"``, and why."""
    reasons = []
    behind = [rival for rival in found.rivals if not rival.interval.low > 0]
    result = found.result(found.by)
    own = next(figure for figure in result.figures if figure.judge == found.pick)
    reasons.append(
        f"{found.pick} is the best of {len(found.judges)} judges by {_words(found.by)}: {statistic(own.value)}, or "
        f"{statistic(result.corrected)} without the luck of having been picked; it is the best in {percent(own.best)} "
        "of redrawn sets of items"
    )
    if behind:
        names = ", ".join(rival.judge for rival in behind)
        reasons.append(f"its lead over {names} may be chance: the interval of the difference does not lie above 0")
    telling = [cell for cell in found.sweep if cell.best]
    flips = [cell for cell in telling if cell.best != found.pick]
    alike = len(found.sweep) - len(telling)
    apart = f", besides {alike} in which all judges are alike" * bool(alike)
    if len(telling) > 1 and not flips:
        reasons.append(f"it stays the best judge in use for all {len(telling)} pairs of beta and threshold{apart}")
    elif flips:
        cell = flips[0]
        reasons.append(
            f"it is the best judge in use for {len(telling) - len(flips)} of {len(telling)} pairs of beta and "
            f"threshold{apart}; at beta {raw(cell.beta)} and threshold {raw(cell.threshold)} it is {cell.best}"
        )
    assumed = not found.declared and not found.sets_known
    if assumed:
        reasons.append(
            "choices were taken for whole opinions, which nobody declared: say which response sets are admissible"
        )
    bounded = [rival for rival in found.rivals if rival.low < rival.high]
    open_to = [rival for rival in bounded if not rival.robust]
    if bounded and not open_to:
        reasons.append("its lead keeps its sign whatever response sets lie behind the choices")
    elif open_to:
        worst = min(open_to, key=lambda rival: rival.low)
        reasons.append(
            f"forced choices alone do not settle it: depending on the response sets behind them its lead over "
            f"{worst.judge} lies anywhere from {statistic(worst.low, signed=True)} to "
            f"{statistic(worst.high, signed=True)}"
        )
    off = [one for one in found.results if one.pick and one.pick != found.pick and one.regret_interval.low > 0]
    if off:
        worst_off = max(off, key=lambda one: one.regret)
        reasons.append(
            f"choosing by {_words(worst_off.name)} would have taken {worst_off.pick}, whose decision "
            f"consistency is {statistic(worst_off.regret)} lower"
        )
    word = "undecided" if behind else "depends" if flips or open_to or assumed else "chosen"
    return word, tuple(reasons)


def _words(name: str) -> str:
    return name.replace("_", " ")
