"""The words on a probe: the changes that a metric notices, those that it misses, and if it holds still."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metricsmith.formats import count, enumerated, interval_stated, percent, single_line, statistic
from metricsmith.report.blocks import Tone, Verdict
from metricsmith.report.probe.record import CHANCE, Attack, ProbeRecord, StrategyResult
from metricsmith.stats.resampling import measured_coverage

__all__ = ["WORDS", "probe_coverage", "probe_findings", "probe_verdict"]

FEWEST_TRIED = 5  # groups in the simulations of docs/coverage.md
WORDS = {
    "drop_sentence": "sentences left out", "shuffle_sentences": "sentences out of order",
    "truncate": "texts broken off", "repeat": "sentences repeated", "insert_unrelated": "sentences about other things",
    "wrong_language": "sentences in another language", "shuffle_words": "words out of order",
    "corrupt_numbers": "wrong numbers", "corrupt_names": "wrong names", "negate": "claims turned into their contrary",
    "typos": "misspelt words", "wrong_casing": "wrong capitals", "whitespace": "other spacing",
    "markup": "other quotation marks and bullets", "reorder": "list items in another order",
    "contractions": "contractions or full forms", "number_format": "numbers written otherwise",
    "synonyms": "words of the same meaning", "pad_idle": "idle sentences", "formatting": "bold type and bullets",
    "self_praise": "praise of itself", "order_to_rate": "orders to rate it well", "empty_output": "an empty output",
    "copy_input": "the input as output", "other_good_output": "a good answer to another input",
}  # fmt: skip
"""The built-in changes in words; a generated one is called by its name."""


def probe_verdict(record: ProbeRecord) -> Verdict:
    """One or two sentences that say if the metric falls when quality falls, and holds still when it does not."""
    metric = record.metric
    if metric.lacking:
        return Verdict("bad", f"It could not be probed: {metric.lacking}.")
    if metric.still:
        return Verdict("bad", "It never moves: every output, however it was changed, gets the same number.")
    found, sentences = metric.sensitivity, []
    tone: Tone = "unsure"
    if found is not None and found.n:
        sure = found.interval.low > CHANCE
        overlooks = any(line.answer == "missed" for line in record.strategies)
        falls_for = any(attack.verdict == "deceived" for attack in record.attacks)
        tone = "bad" if metric.insensitive else "unsure" if not sure or overlooks or falls_for else "good"
        claim = {
            "bad": "It does not notice when outputs get worse",
            "good": "It notices when outputs get worse",
            "unsure": "It notices some of what makes outputs worse" if sure else "It may not notice what gets worse",
        }[tone]
        ends = interval_stated(found.interval.low, found.interval.high, percent)
        sentences.append(f"{claim}: {percent(found.value)} of worse outputs score lower ({ends}), by chance 50\u00a0%.")
    stable = metric.stability
    if stable is not None and stable.n:
        moved = [line for line in record.strategies if line.stability is not None and line.stability.n]
        most = min(moved, key=lambda line: line.stability.value if line.stability else math.inf, default=None)
        by = f", most by {_words([most])}" if most is not None and len(moved) > 1 else ""
        of = " of its range" if record.unit.startswith("share of the range") else ""
        sentences.append(
            f"Where nothing is lost it moves by {statistic(1 - stable.value, 2)}{of} on average{by} (stability "
            f"{statistic(stable.value, 2)}; 1 is to stand still)."
        )
    return Verdict(tone, single_line(" ".join(sentences)) or "Nothing could be changed, so nothing is known.")


def probe_findings(record: ProbeRecord) -> list[str]:
    """The changes that the metric notices, misses or falls for, in words, a sentence for each kind of answer."""
    if record.metric.lacking or record.metric.still:
        return []
    attacks = [one for one in record.attacks if one.pairs.n]
    answers: dict[str, Sequence[StrategyResult | Attack]] = {
        "Noticed": [line for line in record.strategies if line.answer == "noticed"],
        "Missed": [line for line in record.strategies if line.answer == "missed"],
        "Not clear if noticed": [line for line in record.strategies if line.answer == "open"],
        "Falls for": [one for one in attacks if one.verdict == "deceived"],
        "Does not fall for": [one for one in attacks if one.verdict == "held"],
        "Not clear if it falls for": [one for one in attacks if one.verdict == "open"],
    }
    return [single_line(f"{answer}: {_words(those)}.") for answer, those in answers.items() if those]


def _words(those: Sequence[StrategyResult | Attack]) -> str:
    """The changes in words; a subtle one says so."""
    return enumerated(
        [
            WORDS.get(one.name, one.name.replace("_", " "))
            + (" (subtle)" if isinstance(one, StrategyResult) and one.strength == "subtle" else "")
            for one in those
        ]
    )


def probe_coverage(record: ProbeRecord) -> str:
    """The measured coverage of intervals of so few groups; empty from 30 groups on (docs/coverage.md)."""
    groups = record.counts["groups"]
    known = [(name, measured_coverage(kind, groups)) for kind, name in (("share", "shares"), ("mean", "means"))]
    text = [f"{percent(math.floor(100 * least) / 100)} for {name}" for name, least in known if least == least and least]
    if text:
        held = f"held the true value in at least {', '.join(text)} of simulated data sets"
        return f"95\u00a0% intervals of shares and means from so few groups ({count(groups)}) {held}."
    untried = f"95\u00a0% intervals from so few groups ({count(groups)}) were not tried in simulations."
    return untried if groups < FEWEST_TRIED else ""
