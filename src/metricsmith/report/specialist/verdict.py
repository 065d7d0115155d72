"""The verdict on a specialist: its first policy beside its others, and beside copying its examples."""

from __future__ import annotations

import math

from metricsmith.formats import enumerated, interval_stated, p_stated, single_line, statistic
from metricsmith.report.blocks import Tone, Verdict
from metricsmith.report.specialist.record import BesideCopying, SpecialistEvaluation
from metricsmith.stats.resampling import Interval

__all__ = ["CHARACTER_F1", "FILTERED", "specialist_verdict", "spoken"]

CHARACTER_F1 = "character-f1"
FILTERED = "filtered"  # an analysis that reads the gold, never the best policy
SIGNIFICANT = 0.05
FEWEST = 6  # documents: with fewer no exchange of whole ones has a p below .05


def specialist_verdict(record: SpecialistEvaluation) -> Verdict:
    """The first judge's first policy, told from its other policies, and beside the other judges."""
    first, *others = [line for line in record.results if line.judge == record.results[0].judge]
    if math.isnan(first.value):
        return Verdict("unsure", f"{first.judge}, {first.policy}, has no defined agreement with the raters.")
    over = "document" if record.documents >= FEWEST and math.isfinite(first.by_document.low) else "segment"
    others = [line for line in others if line.policy != FILTERED and math.isfinite(line.value)]
    sure = [line for line in others if getattr(line, f"p_by_{over}") <= SIGNIFICANT]
    groups = {
        "It is ahead of": [line.policy for line in sure if line.difference < 0],
        "It is behind": [line.policy for line in sure if line.difference > 0],
        "It cannot be told from": [line.policy for line in others if line not in sure],
    }
    beside = [one for one in record.beside if math.isfinite(one.value)]  # a baseline that marks nothing has none
    rival = max(beside, key=lambda one: one.value, default=None)
    baselines = [line for line in record.results if line.policy == first.policy]
    bar = max(baselines, key=lambda line: -math.inf if math.isnan(line.value) else line.value)
    beats = rival is not None and rival.difference > 0 and getattr(rival, f"p_by_{over}") <= SIGNIFICANT
    alone = "No baseline stands beside it: evaluate Parrot() or ExampleMean() with it, which ask no model."
    if first.baseline:
        alone = f"No model was asked: {bar.judge}, with {statistic(bar.value, 2)}, is what a specialist has to beat."
    behind = groups["It is behind"] or (rival is not None and not beats)
    tone: Tone = "unsure" if rival is None or groups["It cannot be told from"] else "good"
    known = f"{spoken(record)} {statistic(first.value, 2)} ({_stated(getattr(first, f'by_{over}'))} over {over}s)"
    parts = [
        f"{first.judge} with the policy {first.policy} reaches {known}.",
        *(f"{words} {enumerated(names)}." for words, names in groups.items() if names),
        _beside(rival, over, beats=beats) if rival is not None else alone,
    ]
    return Verdict("bad" if behind and rival is not None else tone, single_line(" ".join(parts)))


def _beside(rival: BesideCopying, over: str, *, beats: bool) -> str:
    """The first judge beside the best baseline that sees the same examples, in a sentence."""
    gap = f"{statistic(rival.difference, 2, signed=True)} ({_stated(getattr(rival, f'by_{over}'))}, "
    gap += f"{p_stated(getattr(rival, f'p_by_{over}'))})"
    if beats:
        return (
            f"It beats copying the same examples: {rival.judge} reaches {statistic(rival.value, 2)}, a lead of {gap}."
        )
    ahead = "does better" if rival.difference < 0 else "could be as good"
    return (
        f"It does not show that it beats copying the same examples, which costs nothing: {rival.judge} {ahead} with "
        f"{statistic(rival.value, 2)}, a difference of {gap}."
    )


def _stated(found: Interval) -> str:
    return interval_stated(found.low, found.high)


def spoken(record: SpecialistEvaluation) -> str:
    """The name of the measure in a sentence."""
    return "character F1" if record.measure == CHARACTER_F1 else record.measure
