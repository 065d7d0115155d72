"""What the numbers of a run mean, in plain sentences that HTML and Markdown share.

Every sentence is a function of the record and says no more than the record supports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from metricsmith.records import Agreement, Scale
from metricsmith.report import components
from metricsmith.report.digest import Outlook
from metricsmith.report.formats import MISSING, count, interval, p_value, percent, points, statistic
from metricsmith.report.plots.reliability import Bin
from metricsmith.report.record import Component, RunRecord
from metricsmith.report.rivals import comparison, outdone
from metricsmith.report.systems import systems_caution
from metricsmith.stats.resampling import measured_coverage

__all__ = [
    "EVALUATIONS",
    "GLOSSARY",
    "KINDS",
    "STATUSES",
    "Verdict",
    "alone",
    "comparison",
    "direction",
    "few_groups",
    "fidelity",
    "panel",
    "prospect",
    "reliability",
    "stability",
    "undefined_reasons",
    "usage_example",
    "verdict",
]

GLOSSARY = (
    (
        "Kendall tau-b",
        "compares two rankings pair by pair: 1 means that the metric puts every pair in the raters' order, "
        "0 is what chance gives, −1 is the reverse order. Ties are allowed for.",
    ),
    (
        "95\u00a0% interval",
        "holds the values of tau-b that fit these rows: from leaving out whole groups in turn, or under "
        "cross-validation from how far the groups of each fold move it, widened since the fits of the folds learned "
        "from each other's ratings. If it includes 0, these rows cannot tell the metric from chance. "
        "It speaks of new sources of the same systems; outputs of systems that were not rated here have a figure of "
        "their own where rows name their system, and otherwise expect less.",
    ),
    (
        "p",
        "is how often chance alone would take the agreement this far from 0, either way: shuffled ratings, kept "
        "together by group, or under cross-validation the t-test that goes with the interval. Small is good, .05 is "
        "the usual bar.",
    ),
    (
        "Group",
        "is a set of rows that share a source or prompt. Rows of one group are alike, "
        "so they count together and never sit on both sides of a split.",
    ),
    (
        "Pearson and Spearman",
        "are two other correlations from −1 to 1: Pearson looks at distances, Spearman at ranks.",
    ),
)

EVALUATIONS = {
    "holdout": "Whole groups were set aside before anything was generated, chosen or fitted.",
    "file": "The test rows came from a set of their own and were never fitted on.",
    "cv": "Grouped cross-validation: each row was predicted by a fit that had not seen its group, and tau-b is the "
    "mean over folds. The saved metric is fitted on all rated rows.",
    "train_only": "No rows were set aside: metric and figures come from the same rows.",
}

KINDS = {
    "bank": "bank metric",
    "criterion_judge": "single-criterion judge",
    "rubric_judge": "rubric judge",
    "geval_judge": "G-Eval judge",
    "example_judge": "judge by examples",
    "guideline_judge": "judge of the rating as a whole",
    "direct_assessment": "direct assessment of a translation",
    "dna_eval": "judge by weighted dimensions",
    "esa_judge": "error span annotation of a translation",
    "mqm_annotator": "MQM errors of one run",
    "mqm_judge": "MQM errors of several runs",
    "callable": "function",
    "panel_member": "criterion of a panel",
    "column": "column of the data",
    "induced": "induced metric",
}

STATUSES = {
    "requested": "requested",
    "ok": "gave a number",
    "unparsable": "answer could not be read",
    "out_of_range": "number outside the allowed range",
    "refused": "the model refused",
    "transport": "the call failed on its way",
    "budget": "not asked: the budget was spent",
    "skipped": "not asked: the row lacks what it needs, the number is undefined, or the judge was dropped",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one sentence.

    Parameters
    ----------
    tone : str
        ``good`` (better than chance on unseen rows), ``unsure`` or ``bad`` (against the raters).
    sentence : str
    cautions : tuple of str
        Plain warnings that belong to it.
    """

    tone: str
    sentence: str
    cautions: tuple[str, ...] = ()


def verdict(record: RunRecord) -> Verdict:
    """Say how far the metric can be trusted, with tau-b, interval and p on held-out rows.

    An undefined tau-b, a p-value above .05 (or undefined), an interval that includes 0 and missing test
    rows each take the verdict down to ``unsure`` and add a caution.
    """
    block = record.headline
    if not math.isfinite(block.kendall_tau_b):
        cautions = (_untested(record), f"{undefined_reason(block)}.")
        sentence = f"No verdict: tau-b is undefined {_where(record, block)}."
        return Verdict("unsure", sentence, tuple(filter(None, cautions)))
    figures = f"tau-b {_estimate(block)} {_where(record, block)}.{_coverage(record, block)}"
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
        details.append(f"95\u00a0% interval {interval(block.ci_low, block.ci_high, 2)}")
    if math.isfinite(block.p_value):
        details.append(_p(block.p_value))
    value = statistic(block.kendall_tau_b, 2)
    return f"{value} ({', '.join(details)})" if details else value


def _coverage(record: RunRecord, block: Agreement) -> str:
    """How far the interval that was just given can be trusted; empty from 30 groups on."""
    if record.tested and record.evaluation == "cv":
        return ""
    return "".join(f" {line}" for line in few_groups([block]))


def few_groups(blocks: Iterable[Agreement]) -> list[str]:
    """What simulations say of group jackknife intervals that stand on few groups; nothing from 30 groups on."""
    counts: dict[str, set[int]] = {}
    for block in blocks:
        covered = measured_coverage("tau", block.groups)
        if covered is not None and math.isfinite(block.ci_low):
            # Rounded down: it is what the simulations had at least.
            known = math.isfinite(covered)
            said = f"covered at least {percent(math.floor(100 * covered) / 100)}" if known else "were not tried"
            counts.setdefault(said, set()).add(block.groups)
    return [
        f"Intervals on so few groups ({' and '.join(map(count, sorted(found)))}) {said} in simulations."
        for said, found in counts.items()
    ]


def _p(value: float) -> str:
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


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
        doubts.append(f"{_p(block.p_value)} is above .05: chance alone gives agreement like this too often.")
    if not (math.isfinite(block.ci_low) and math.isfinite(block.ci_high)):
        doubts.append("There is no interval: too few rows, groups or different ratings, or one group decides alone.")
    elif block.ci_low <= 0 <= block.ci_high:
        doubts.append("The interval includes 0: more rated groups are needed before relying on the metric.")
    return doubts


def undefined_reason(block: Agreement) -> str:
    """Why tau-b of `block` has no value."""
    if block.n < 2:
        return f"{count(block.n, 'row')} with both a rating and a prediction; two are the least"
    return "All ratings or all predictions are equal, so no pair can be ordered"


def undefined_reasons(blocks: Iterable[tuple[str, Agreement]]) -> list[str]:
    """One line per named block whose tau-b is undefined."""
    return [f"{name}: {undefined_reason(block)}." for name, block in blocks if not math.isfinite(block.kendall_tau_b)]


def pairs_in_order(tau: float) -> str:
    """What tau-b would mean in pairs, were there no ties; empty if undefined."""
    if not math.isfinite(tau):
        return ""
    share = round(50 * (1 + tau))
    return (
        f"Were there no ties, a tau-b of {statistic(tau, 2)} would mean that about {share} of 100 pairs "
        "of outputs stand in the raters' order; tossing a coin gets 50."
    )


def direction(component: Component) -> str:
    """What more of the component does to the prediction."""
    return f"more of it {'lowers' if component.direction == '-' else 'raises'} the prediction"


def stability(components: Iterable[Component]) -> str:
    """How far the choice of components would survive other rows: never sells them as *the* criteria."""
    shares = [item.selected_share for item in components if math.isfinite(item.selected_share)]
    caveat = "Read them as one workable set, not as the criteria that the raters apply."
    if not shares:
        return f"How stable the choice of components is under resampling was not measured. {caveat}"
    kept = (
        f"Refitted on resampled rows, the typical component is chosen again in {percent(median(shares))} of "
        f"refits, the rarest in {percent(min(shares))}."
    )
    if min(shares) < 0.8:
        return f"{kept} To that extent the choice is an accident of these rows. {caveat}"
    return (
        f"{kept} The choice is steady on these rows; "
        "that a component goes along with the ratings still does not show that raters look at it."
    )


def alone(record: RunRecord) -> str:
    """The meaning of a component's own tau-b under cross-validation; empty otherwise."""
    if record.evaluation != "cv" or not record.tested:
        return ""
    told = "The tau-b of a component alone, on held-out rows, is its mean within folds."
    if not any("model" in component.card.cost for component in record.components):
        return told
    return f"{told} Judges made from ratings had seen those of all rows here, so theirs may be too high."


def fidelity(record: RunRecord) -> str:
    """How close the small model is to the full one, and how many predictions leave the scale."""
    sentences = []
    if math.isfinite(record.fidelity):
        sentences.append(
            f"These few components stand in for all candidates: their predictions correlate "
            f"{statistic(record.fidelity)} with those of the full model on the rows they were chosen on."
        )
    sentences += [
        components.loss(record.differences.get(record.unabridged) if record.tested else None),
        components.suppressors(record.components, record.rows.get("train", 0)),
    ]
    if record.clipped_share > 0:
        sentences.append(
            f"{percent(record.clipped_share)} of the predictions lie outside the scale; "
            "they are held at its end when used as a score."
        )
    return " ".join(filter(None, sentences))


def panel(record: RunRecord) -> str:
    """What asking all judges together saves in prompt tokens; empty without a panel."""
    tokens = record.panel
    if tokens is None:
        return ""
    if not (math.isfinite(tokens.joint) and tokens.joint > 0 and math.isfinite(tokens.single)):
        return f"One request a row asked for all {count(tokens.criteria)} criteria of the panel."
    return (
        f"One request a row asked for all {count(tokens.criteria)} criteria of the panel: about "
        f"{count(round(tokens.joint))} prompt tokens a row, where the same judges one by one take about "
        f"{count(round(tokens.single))} ({tokens.single / tokens.joint:.1f} times as many). Both are estimates at "
        "four characters a token, answers not counted."
    )


def prospect(outlook: Sequence[Outlook]) -> str:
    """What more labelled groups would do to the interval; empty if it is undefined."""
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


def reliability(parts: Sequence[Bin], scale: Scale) -> str:
    """Where the metric is too generous or too strict, bin by bin; empty without bins that have an interval."""
    judged = [part for part in parts if math.isfinite(part.ci_low)]
    if not judged:
        return ""
    off = [part for part in judged if part.side]
    some = f"{len(off)} of" if off else "all"
    where = "In the only bin" if len(judged) == 1 else f"In {some} {len(judged)} bins"
    place = (
        f"{where} the mean prediction lies {'outside' if off else 'inside'} the 95\u00a0% interval of the mean rating"
    )
    if not off:
        return f"{place}: these rows show no place where the metric is too generous or too strict."
    better = 1 if scale.higher_is_better else -1
    words = {better: "too generous", -better: "too strict"}
    places = "; ".join(f"{words[part.side]} {_place(part, scale)}" for part in off)
    return f"{place}; the metric is {places}. One bin in twenty lies outside by chance alone."


def _place(part: Bin, scale: Scale) -> str:
    lowest, highest, guess, given = (
        points(number, scale.width) for number in (part.lowest, part.highest, part.prediction, part.rating)
    )
    if lowest == highest:
        return f"where it predicts {guess} (the raters gave {given} on average)"
    return f"where it predicts {lowest} to {highest} ({guess} on average, and the raters gave {given})"


def usage_example(record: RunRecord) -> str:
    """Three lines of Python that put the saved metric to work."""
    lines = ["import metricsmith", 'metric = metricsmith.load("metric.json")']
    if any(component.kind == "column" for component in record.components):
        return "\n".join([*lines, "judgements = metric.judge_batch(rows)  # rows that bring the same columns along"])
    needs = {need for component in record.components for need in component.card.needs}
    judged = any(component.kind.endswith("_judge") for component in record.components)
    texts = ["output=text"]
    texts += ["input=source"] if judged or "input" in needs else []
    texts += ["references=[gold]"] if "references" in needs else []
    return "\n".join([*lines, f"print(metric({', '.join(texts)}).score)  # 0 to 1, higher is better"])


def share_of(part: int, whole: int) -> str:
    """`part` of `whole` in per cent; an en dash if there is nothing to share."""
    return percent(part / whole) if whole else MISSING
