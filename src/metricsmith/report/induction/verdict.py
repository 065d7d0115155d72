"""The words on an induced metric: verdict, baselines and new systems, saying no more than the record supports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metricsmith.formats import count, interval_stated, p_stated, percent, single_line, statistic
from metricsmith.report.blocks import Verdict
from metricsmith.report.induction.record import MINIMUM_SYSTEMS, NewSystems, RunRecord
from metricsmith.report.raters import ceiling_lines
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.resampling import measured_coverage

__all__ = [
    "EVALUATIONS", "Outlook", "comparison", "few_groups", "few_groups_apart", "interval_outlook", "jackknifed",
    "not_beaten", "outdone", "outlook_sentence", "pairs_in_order", "run_ceiling", "run_verdict", "same_systems_note",
    "systems_caution", "systems_lines", "undefined_reasons",
]  # fmt: skip

EVALUATIONS = {
    "holdout": "Whole groups were set aside before anything was generated, chosen or fitted.",
    "file": "The test rows came from a set of their own and were never fitted on.",
    "cv": "Grouped cross-validation: each row was predicted by a fit that had not seen its group, and tau-b is the "
    "mean over folds. The saved metric is fitted on all rated rows.",
    "train_only": "No rows were set aside: metric and figures come from the same rows.",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """The interval as it would be with `factor` times as many labelled groups, the estimate unchanged."""

    factor: int
    groups: int
    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2


def run_verdict(record: RunRecord) -> Verdict:
    """Say how far the metric can be trusted, with tau-b, interval and p on held-out rows.

    An undefined tau-b, a p-value above .05 (or undefined), an interval that includes 0 and missing test
    rows each take the verdict down to ``unsure`` and add a caution.
    """
    block = record.headline
    if not math.isfinite(block.kendall_tau_b):
        cautions = (_untested(record), f"{undefined_reason(block)}.")
        sentence = f"No verdict: tau-b is undefined {_where(record, block)}."
        return Verdict("unsure", sentence, tuple(filter(None, cautions)))
    figures = f"tau-b {_estimate(block)} {_where(record, block)}."
    doubts = tuple(filter(None, (_untested(record), *_doubts(block))))
    rivals = tuple(filter(None, (outdone(record), systems_caution(record.new_systems, block))))
    if not record.tested:
        return Verdict("unsure", f"Not tested on unseen outputs: {figures}", doubts + rivals)
    if doubts:
        sentence = f"No clear evidence that it ranks outputs like the raters do: {figures}"
        return Verdict("unsure", sentence, doubts + rivals)
    if block.kendall_tau_b < 0:
        caution = "It reverses the raters' order more often than chance would. Do not use it."
        return Verdict("bad", f"Ranks outputs against the raters: {figures}", (caution, *rivals))
    return Verdict("good", f"Ranks outputs like the raters do more often than chance: {figures}", rivals)


def _estimate(block: Agreement) -> str:
    details = []
    if math.isfinite(block.ci_low) and math.isfinite(block.ci_high):
        details.append(interval_stated(block.ci_low, block.ci_high))
    if math.isfinite(block.p_value):
        details.append(p_stated(block.p_value))
    value = statistic(block.kendall_tau_b, 2)
    return f"{value} ({', '.join(details)})" if details else value


def few_groups(blocks: Iterable[Agreement]) -> list[str]:
    """The simulated coverage of group jackknife intervals that rest on few groups; nothing from 30 groups on."""
    counts: dict[str, set[int]] = {}
    for block in blocks:
        text = _covered("tau", block.groups)
        if text and math.isfinite(block.ci_low):
            counts.setdefault(text, set()).add(block.groups)
    return [
        f"95\u00a0% intervals of tau-b from so few groups ({' and '.join(map(count, sorted(found)))}) {text}."
        for text, found in counts.items()
    ]


def jackknifed(record: RunRecord) -> list[Agreement]:
    """The blocks whose interval is that of the group jackknife; none under cross-validation.

    There only the training block has one, and a remark on it would be read as a remark on all blocks.
    """
    if record.tested and record.evaluation == "cv":
        return []
    return [*([record.test] if record.tested else []), record.train, *record.baselines.values()]


def _where(record: RunRecord, block: Agreement) -> str:
    rows = count(block.n, "row")
    groups = f" of {count(block.groups, 'group')}" if 0 < block.groups < block.n else ""
    if not record.tested:
        return f"on the same {rows}{groups} that it was fitted on"
    if record.evaluation == "cv":
        return f"on {rows}{groups}, each predicted while held out"
    return f"on {count(block.n, 'unseen row')}{groups}"


def _untested(record: RunRecord) -> str:
    if record.tested:
        return ""
    return (
        "Only training rows were available. The figures say how well the metric fits what it has seen, "
        "not how it will do on new outputs: set rated groups aside, or use cross-validation, to find out."
    )


def _doubts(block: Agreement) -> list[str]:
    doubts = []
    if not math.isfinite(block.p_value):
        doubts.append("There is no p-value: too few rows, groups or different ratings for one.")
    elif block.p_value > 0.05:
        doubts.append(f"{p_stated(block.p_value)} is above .05: chance alone gives agreement like this too often.")
    if not (math.isfinite(block.ci_low) and math.isfinite(block.ci_high)):
        doubts.append("There is no interval: too few rows, groups or different ratings, or one group decides alone.")
    elif block.ci_low <= 0 <= block.ci_high:
        doubts.append("The interval includes 0: more rated groups are needed before relying on the metric.")
    return doubts


def undefined_reason(block: Agreement) -> str:
    """The reason for which tau-b of `block` has no value."""
    if block.n < 2:
        return f"{count(block.n, 'row')} with both a rating and a prediction; two are the least"
    return "All ratings or all predictions are equal, so no pair can be ordered"


def undefined_reasons(blocks: Iterable[tuple[str, Agreement]]) -> list[str]:
    """One line per named block whose tau-b is undefined."""
    return [f"{name}: {undefined_reason(block)}." for name, block in blocks if not math.isfinite(block.kendall_tau_b)]


def pairs_in_order(tau: float) -> str:
    """The meaning of tau-b in pairs, were there no ties; empty if undefined."""
    if not math.isfinite(tau):
        return ""
    share = round(50 * (1 + tau))
    return (
        f"Were there no ties, a tau-b of {statistic(tau, 2)} would mean that about {share} of 100 pairs "
        "of outputs stand in the raters' order; tossing a coin gets 50."
    )


def run_ceiling(record: RunRecord) -> list[str]:
    """`ceiling_lines` of an induction: the metric and its baselines beside the ceiling."""
    rivals = {name: block.kendall_tau_b for name, block in record.baselines.items()}
    return ceiling_lines(record.raters, {"the induced metric": record.headline.kendall_tau_b, **rivals})


def interval_outlook(block: Agreement, factors: tuple[int, ...] = (1, 2, 4)) -> list[Outlook]:
    """The interval as it would be with more labelled groups; empty if it is undefined.

    The width of an interval falls with the square root of the number of groups, so each side
    is divided by the root of the factor.
    """
    value = block.kendall_tau_b
    if not all(map(math.isfinite, (value, block.ci_low, block.ci_high))):
        return []
    groups = block.groups or block.n
    return [
        Outlook(
            factor,
            factor * groups,
            value,
            value - (value - block.ci_low) / math.sqrt(factor),
            value + (block.ci_high - value) / math.sqrt(factor),
        )
        for factor in factors
    ]


def outlook_sentence(outlook: Sequence[Outlook]) -> str:
    """A sentence on the interval with more labelled groups; empty if it is undefined."""
    if not outlook:
        return ""
    now, *later = outlook
    hopes = " and ".join(f"about {statistic(item.half_width, 2)} with {count(item.groups)}" for item in later)
    side = statistic(now.half_width, 2)
    return (
        f"The interval now reaches {side} to either side, from {count(now.groups, 'group')}. "
        f"Were tau-b to stay as it is, that would be {hopes} labelled groups in the test. "
        "The estimate itself may move, and more rows to fit on may improve the metric."
    )


def comparison(record: RunRecord) -> str:
    """The strongest baseline beside the metric, and the baselines that it is ahead of; empty if there is none."""
    best = _best(record)
    if best is None or not math.isfinite(record.headline.kendall_tau_b):
        return ""
    name, tau, gap, apart = best
    side = "above" if gap > 0 else "below"
    place = "level with" if statistic(gap, 2) == ".00" else f"{statistic(abs(gap), 2)} {side}"
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
    name, tau, gap, apart = best
    if gap > 0:
        return ""
    text = f"A baseline does at least as well on the same rows: {name}, tau-b {statistic(tau, 2)}"
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
    text = _covered("difference", groups)
    return f"95\u00a0% intervals of a difference of two tau-b from so few groups ({groups}) {text}." if text else ""


def _covered(kind: str, groups: int) -> str:
    """The simulated coverage of intervals on so few groups, in words; empty from 30 groups on."""
    covered = measured_coverage(kind, groups)
    if covered is None:
        return ""
    # Rounded down: it is what the simulations had at least.
    known = math.isfinite(covered)
    least = percent(math.floor(100 * covered) / 100) if known else ""
    return (
        f"held the true value in at least {least} of simulated data sets" if known else "were not tried in simulations"
    )


def _figures(apart: Difference) -> str:
    return f"{statistic(apart.kendall_tau_b, 2, signed=True)}, {interval_stated(apart.ci_low, apart.ci_high)}"


def _certainty(apart: Difference) -> str:
    """The interval of a difference, and what it decides."""
    if not math.isfinite(apart.ci_low):
        return "the difference has no interval, so that it may be luck"
    open_ = apart.ci_low <= 0 <= apart.ci_high
    ends = interval_stated(apart.ci_low, apart.ci_high)
    return f"the difference has the {ends}, so that it {'may be luck' if open_ else 'is more than luck'}"


def _best(record: RunRecord) -> tuple[str, float, float, Difference | None] | None:
    """The strongest baseline, its tau-b, how far the metric's lies above that, and the paired difference.

    Baselines carry the sign that they have on the training rows.
    """
    rivals = {name: block.kendall_tau_b for name, block in record.baselines.items() if name != record.unabridged}
    known = [name for name, tau in rivals.items() if math.isfinite(tau)]
    if not known:
        return None
    label = max(known, key=rivals.__getitem__)
    tau, apart = rivals[label], record.differences.get(label)
    gap = record.headline.kendall_tau_b - tau if apart is None else apart.kendall_tau_b
    return single_line(label), tau, gap, apart


def systems_lines(block: NewSystems | None, rows: Agreement) -> list[str]:
    """The block in sentences, `rows` being the figure for new rows of the same systems; none without a block."""
    if block is None:
        return []
    of = f"these {count(block.systems, 'system')}" if block.systems > 1 else "this one system"
    same = _figure(rows.kendall_tau_b, rows.ci_low, rows.ci_high)
    lines = [f"New rows of {of}: {same}."]
    if block.withheld:
        lines.append(f"New systems: no figure, since {block.withheld}.")
    else:
        figure = _figure(block.kendall_tau_b, block.ci_low, block.ci_high)
        lines.append(
            f"New systems: {figure}, where each pair of rows is ranked by a fit that saw neither of their systems; the "
            "interval is over systems and groups."
        )
        if block.judges:
            lines.append(
                f"{count(block.judges, 'component')} of the metric learned from rated rows of all these systems and "
                "stayed as they are: to that extent the figure for new systems flatters."
            )
    within = _figure(block.within_tau_b, block.within_low, block.within_high)
    lines.append(
        f"Inside systems, over pairs of rows of one system: {within}. Systems that differ in level give agreement "
        "without any signal in rows; this figure is free of it."
    )
    if block.unnamed:
        lines.append(f"{count(block.unnamed, 'held-out row')} without a system left out.")
    return lines


def systems_caution(block: NewSystems | None, rows: Agreement) -> str:
    """A caution where the evidence for new rows of the same systems does not reach to new systems; else empty."""
    if block is None or not rows.ci_low > 0 or not block.ci_low <= 0:
        return ""
    return (
        f"For outputs of systems that were not rated here there is no clear evidence: "
        f"{_figure(block.kendall_tau_b, block.ci_low, block.ci_high)}. Rate outputs of more systems first."
    )


def same_systems_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """A note for figures of held-out rows that name their systems, which hold for these only; else empty."""
    systems = {str(row["system"]) for row in rows if row.get("system")}
    if not systems:
        return ""
    of = f"these {len(systems)} systems" if len(systems) > 1 else "this one system"
    more = f"metricsmith induce gives one for new systems, from {MINIMUM_SYSTEMS} systems on"
    return f"all figures are for new rows of {of}; {more}"


def _figure(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "tau-b undefined"
    return f"tau-b {statistic(value, 2)} ({interval_stated(low, high)})"
