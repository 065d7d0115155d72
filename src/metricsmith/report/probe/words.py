"""What a probe says, as cells and sentences that HTML, Markdown and terminal share."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from metricsmith.report.formats import MISSING, clean, count, duration, interval, p_value, percent, statistic
from metricsmith.report.probe.record import Attack, ProbeRecord, Strategy, Subject
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.sentences import Verdict
from metricsmith.stats.resampling import measured_coverage
from metricsmith.stats.validity import Change

__all__ = [
    "ATTACKS", "COLUMNS", "GLOSSARY", "STRATEGIES", "Piece", "attack_cells", "attack_words", "ceiling", "cells",
    "cost", "counted", "coverage", "marked", "remark", "strategy_cells", "verdict",
]  # fmt: skip

COLUMNS = ("sensitivity", "95 %", "tied", "mean drop", "95 %", "stability", "95 %", "p sens.", "p stab.")
STRATEGIES = ("changed", "declined", "moves as it should", "95 %", "mean change", "95 %")
ATTACKS = ("pairs", "mean change", "95 %", "verdict")
CHANCE = 0.5
FEWEST_TRIED = 5  # groups in the simulations of docs/coverage.md
LONGEST = 3_000  # characters of a text that is shown with its changes

GLOSSARY = (
    (
        "sensitivity",
        "is the share of outputs made worse on purpose that score strictly lower than their originals. A tie is no "
        "drop. A metric that knows nothing and never ties has .5.",
    ),
    (
        "mean drop",
        "is by how much worse outputs score lower, on the unit named above. A metric under which worse outputs do not "
        "clearly fall more often than they rise is called insensitive, whatever its mean drop.",
    ),
    (
        "stability",
        "is 1 less the mean absolute change on outputs that were changed without loss. It means little by itself: a "
        "metric that never moves would have 1, and is named instead.",
    ),
    (
        "p sens., p stab.",
        "are how often a difference from the metric that is probed would be this large if the two were "
        "interchangeable: they are swapped in whole groups. Holm's correction allows for the number of metrics.",
    ),
)

VERDICTS: dict[tuple[bool, str], str] = {
    (False, "held"): "holds: no rise",
    (False, "deceived"): "deceived: it rises",
    (False, "open"): "not clear: it may rise",
    (True, "held"): "holds: it falls",
    (True, "deceived"): "deceived: it does not fall",
    (True, "open"): "not clear: it may not fall",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `mark` is ``gone``, ``new`` or empty where both sides have it."""

    text: str
    mark: Literal["", "gone", "new"] = ""


def ceiling(record: ProbeRecord) -> list[str]:
    """Lines on the agreement of people on these outputs, and the ceiling that follows for any metric."""
    return ceiling_lines(record.raters, {})


def counted(record: ProbeRecord) -> str:
    """What was probed, in one line."""
    counts = record.counts
    return (
        f"{count(counts['rows'], 'output')} in {count(counts['groups'], 'group')}: {count(counts['worse'])} made "
        f"worse, {count(counts['same'])} changed without loss, {count(counts['attack'])} dressed up; "
        f"{count(counts['declined'])} times a perturber found nothing to change. Sizes of changes are in {record.unit}."
    )


def coverage(record: ProbeRecord) -> str:
    """How far intervals of so few groups can be trusted; empty from 30 groups on (docs/coverage.md)."""
    groups = record.counts["groups"]
    known = [(name, measured_coverage(kind, groups)) for kind, name in (("share", "shares"), ("mean", "means"))]
    said = [f"{percent(math.floor(100 * least) / 100)} for {name}" for name, least in known if least == least and least]
    if said:
        return f"With {count(groups, 'group')}, 95 % intervals covered in simulations at least {', '.join(said)}."
    return f"With {count(groups, 'group')}, intervals were not tried in simulations." if groups < FEWEST_TRIED else ""


def verdict(record: ProbeRecord) -> Verdict:
    """Whether the metric does what a metric should, in one sentence."""
    metric = record.metric
    if metric.lacking:
        return Verdict("bad", f"It could not be probed: {metric.lacking}.")
    if metric.still:
        return Verdict("bad", "It never moves: every output, however it was changed, gets the same number.")
    found, stable = metric.sensitivity, metric.stability
    parts = []
    tone: Literal["good", "unsure", "bad"] = "unsure"
    if found is not None and found.n:
        parts.append(f"{percent(found.value)} of worse outputs score lower ({_shares(found)})")
        tone = "bad" if metric.insensitive else "good" if found.interval.low > CHANCE else "unsure"
    if stable is not None and stable.n:
        parts.append(f"its stability on equal ones is {statistic(stable.value, 2)}")
    missed = [
        line.name for line in record.strategies if line.sensitivity is not None and line.sensitivity.value < CHANCE
    ]
    if missed:
        tone = "bad" if tone == "bad" else "unsure"
        parts.append(f"it misses most of {', '.join(dict.fromkeys(missed))}")
    deceived = [attack.name for attack in record.attacks if attack.verdict == "deceived"]
    if deceived:
        tone = "bad" if tone == "bad" else "unsure"
        parts.append(f"it is deceived by {', '.join(deceived)}")
    if not parts:
        return Verdict("unsure", "Nothing could be changed, so nothing is known.")
    sentence = "; ".join(parts)
    return Verdict(tone, f"{sentence[0].upper()}{sentence[1:]}.")


def _shares(change: Change) -> str:
    low, high = change.interval.low, change.interval.high
    return f"95 % {percent(low)} to {percent(high)}" if math.isfinite(low) else "no interval"


def cells(subject: Subject) -> tuple[str, ...]:
    """One metric's figures, in the order of `COLUMNS`."""
    found, drop, stable = subject.sensitivity, subject.magnitude, subject.stability
    return (
        *_change(found, 2),
        percent(found.tied) if found is not None and found.n else MISSING,
        *_change(drop, 3, signed=True),
        *_change(stable, 3),
        p_value(subject.p_sensitivity),
        p_value(subject.p_stability),
    )


def remark(subject: Subject) -> str:
    """What must be said of a metric besides its figures; empty if nothing."""
    if subject.lacking:
        return f"not probed: {subject.lacking}"
    if subject.still:
        return "never moves"
    return "insensitive" if subject.insensitive else ""


def strategy_cells(line: Strategy) -> tuple[str, ...]:
    """One strategy's figures, in the order of `STRATEGIES`."""
    own = line.sensitivity if line.effect == "worse" else line.stability
    return (
        count(line.made),
        count(line.declined),
        *_change(own, 2),
        *_change(line.change, 3, signed=True),
    )


def attack_cells(line: Attack) -> tuple[str, ...]:
    """One attack's figures, in the order of `ATTACKS`."""
    return (count(line.pairs.n), *_change(line.change, 3, signed=True), attack_words(line))


def attack_words(line: Attack) -> str:
    """The verdict on an attack in words."""
    return VERDICTS[line.must_fall, line.verdict] if line.pairs.n else "not tried: nothing could be changed so"


def cost(record: ProbeRecord) -> str:
    """Requests, judgements and time in one line."""
    usage, judged = record.usage, record.judgements
    failed = judged.get("requested", 0) - judged.get("ok", 0) - judged.get("skipped", 0)
    asked = f"{count(usage.requests, 'request')} to the model ({count(record.estimated.requests)} estimated)"
    lost = f"{count(failed)} of {count(judged.get('requested', 0), 'judgement')} failed"
    return f"{asked}, {lost}, {duration(usage.seconds)}."


def marked(original: str, changed: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, with the words that only one of them has marked; long texts are cut."""
    cut = [clean(text[:LONGEST]) + (" […]" if len(text) > LONGEST else "") for text in (original, changed)]
    before, after = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in cut)
    left: list[Piece] = []
    right: list[Piece] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        same = what == "equal"
        _append(left, "".join(before[i:j]), "" if same else "gone")
        _append(right, "".join(after[k:m]), "" if same else "new")
    return left, right


def _append(pieces: list[Piece], text: str, mark: Literal["", "gone", "new"]) -> None:
    if text:
        pieces.append(Piece(text, mark))


def _change(found: Change | None, digits: int, *, signed: bool = False) -> Sequence[str]:
    if found is None or not found.n:
        return MISSING, MISSING
    return statistic(found.value, digits, signed=signed), interval(found.interval.low, found.interval.high)
