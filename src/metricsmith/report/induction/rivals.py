"""The metric beside its baselines in words: by the paired difference on the same rows and its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping

from metricsmith.records import Difference
from metricsmith.report.formats import count, interval, percent, single_line, statistic
from metricsmith.report.induction.record import RunRecord
from metricsmith.stats.resampling import measured_coverage

__all__ = ["comparison", "few_groups_apart", "not_beaten", "outdone"]


def comparison(record: RunRecord) -> str:
    """The strongest baseline beside the metric, and the baselines that it is ahead of; empty if there is none."""
    own, best = record.headline.kendall_tau_b, _best(record)
    if best is None or not math.isfinite(own):
        return ""
    label, tau = best
    name, apart = single_line(label), record.differences.get(label)
    gap = own - tau if apart is None else apart.kendall_tau_b
    side = "above" if gap > 0 else "below"
    place = "level with" if f"{abs(gap):.2f}" == "0.00" else f"{statistic(abs(gap), 2)} {side}"
    text = f"On the same rows the induced metric stands {place} the strongest baseline ({name}, {statistic(tau, 2)})"
    if apart is None:
        return f"{text}. A gap smaller than the intervals may be luck."
    few = "" if record.evaluation == "cv" else few_groups_apart(apart.groups)
    return " ".join(filter(None, (f"{text}; {_certainty(apart)}.", few)))


def outdone(record: RunRecord) -> str:
    """The strongest baseline where the metric is not ahead of it; otherwise empty."""
    best = _best(record)
    if best is None:
        return ""
    label, tau = best
    apart = record.differences.get(label)
    gap = record.headline.kendall_tau_b - tau if apart is None else apart.kendall_tau_b
    if gap > 0:
        return ""
    text = f"A baseline does at least as well on the same rows: {single_line(label)}, tau-b {statistic(tau, 2)}"
    return f"{text}." if apart is None else f"{text}; {_certainty(apart)}."


def not_beaten(differences: Mapping[str, Difference]) -> list[str]:
    """Warnings on baselines that are better than the metric, and on those that it is not shown to beat."""
    known = {name: apart for name, apart in differences.items() if math.isfinite(apart.kendall_tau_b)}
    better = [f"{name} ({_figures(apart)})" for name, apart in known.items() if apart.ci_high < 0]
    open_ = [name for name, apart in known.items() if not (apart.ci_low > 0 or apart.ci_high < 0)]
    level = [f"{name} ({_figures(known[name])})" for name in open_]
    lines = [f"On these held-out rows the metric does worse than: {', '.join(better)}."] if better else []
    return lines + ([f"These held-out rows do not show that the metric beats: {', '.join(level)}."] if level else [])


def few_groups_apart(groups: int) -> str:
    """A caution on an interval of a difference on so few groups; empty from 30 groups on."""
    covered = measured_coverage("difference", groups)
    if covered is None:
        return ""
    known = math.isfinite(covered)
    text = f"covered at least {percent(math.floor(100 * covered) / 100)}" if known else "were not tried"
    return f"With {count(groups, 'group')}, intervals of a difference {text} in simulations."


def _figures(apart: Difference) -> str:
    ends = f"95 % {interval(apart.ci_low, apart.ci_high, 2)}" if math.isfinite(apart.ci_low) else "no interval"
    return f"{statistic(apart.kendall_tau_b, 2, signed=True)}, {ends}"


def _certainty(apart: Difference) -> str:
    """The interval of a difference, and what it decides."""
    if not math.isfinite(apart.ci_low):
        return "the difference has no interval, so that it may be luck"
    open_ = apart.ci_low <= 0 <= apart.ci_high
    ends = f"the difference has the 95\u00a0% interval {interval(apart.ci_low, apart.ci_high, 2)}"
    return f"{ends}, so that it {'may be luck' if open_ else 'is more than luck'}"


def _best(record: RunRecord) -> tuple[str, float] | None:
    """The strongest; baselines carry the sign that they have on the training rows."""
    rivals = {name: block.kendall_tau_b for name, block in record.baselines.items() if name != record.unabridged}
    known = [(name, tau) for name, tau in rivals.items() if math.isfinite(tau)]
    return max(known, key=lambda item: item[1], default=None)
