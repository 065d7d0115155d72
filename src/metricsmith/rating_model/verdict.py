"""The verdict on a choice of judge, with its reasons in sentences."""

from __future__ import annotations

from metricsmith.rating_model.record import JudgeSelection

__all__ = ["verdict"]


def verdict(found: JudgeSelection) -> tuple[str, tuple[str, ...]]:
    """Returns ``"chosen"``, ``"depends"`` or ``"undecided"``, and why."""
    reasons = []
    behind = [rival for rival in found.rivals if not rival.interval.low > 0]
    result = found.result(found.by)
    own = next(figure for figure in result.figures if figure.judge == found.pick)
    reasons.append(
        f"{found.pick} is the best of {len(found.judges)} judges by {found.by.replace('_', ' ')}: {own.value:.3f}, or "
        f"{result.corrected:.3f} once the choice itself is allowed for; it is the best in {own.best:.0%} of redrawn "
        "sets of items"
    )
    if behind:
        names = ", ".join(rival.judge for rival in behind)
        reasons.append(f"its lead over {names} may be chance: the interval of the difference does not lie above 0")
    flips = [cell for cell in found.sweep if cell.best != found.pick]
    holds = [cell for cell in found.sweep if cell.best == found.pick]
    if len(found.sweep) > 1 and not flips:
        reasons.append(f"it stays the best judge downstream for every one of {len(found.sweep)} betas and thresholds")
    elif flips:
        cell = flips[0]
        reasons.append(
            f"it is the best judge downstream in {len(holds)} of {len(found.sweep)} combinations of beta and "
            f"threshold; at beta {cell.beta:g} and threshold {cell.threshold:g} it is {cell.best}"
        )
    bounded = [rival for rival in found.rivals if rival.low < rival.high]
    open_to = [rival for rival in bounded if not rival.robust]
    if bounded and not open_to:
        reasons.append("its lead keeps its sign whatever response sets lie behind the choices")
    elif open_to:
        worst = min(open_to, key=lambda rival: rival.low)
        reasons.append(
            f"forced choices alone do not settle it: depending on the response sets behind them its lead over "
            f"{worst.judge} lies anywhere from {worst.low:+.3f} to {worst.high:+.3f}"
        )
    off = [one for one in found.results if one.pick and one.pick != found.pick and one.regret_interval.low > 0]
    if off:
        worst_off = max(off, key=lambda one: one.regret)
        reasons.append(
            f"choosing by {worst_off.name.replace('_', ' ')} would have taken {worst_off.pick}, whose decision "
            f"consistency is {worst_off.regret:.3f} lower"
        )
    word = "undecided" if behind else "depends" if flips or open_to else "chosen"
    return word, tuple(reasons)
