"""The components of an induced metric: sentences on their weights and on how they were chosen, and their cards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from metricsmith.formats import count, interval, percent, raw, single_line, statistic
from metricsmith.records import MetricCard
from metricsmith.report.blocks import (
    Block,
    Cell,
    Code,
    Details,
    Paragraph,
    Section,
    Terms,
    TextTable,
    element,
    joined,
    named,
)
from metricsmith.report.induction.record import Component, RunRecord
from metricsmith.report.plots.induction import MOST_BARS
from metricsmith.stats.agreement import Difference

__all__ = [
    "KINDS", "card_section", "cards", "choice_stability", "cross_fitted_components", "cross_validated_components",
    "direction", "kind_words", "loss", "small_model", "sources", "suppressors", "weight_width",
]  # fmt: skip

KINDS = {
    "bank": "bank metric",
    "choice_judge": "judge that chooses one option",
    "criterion_judge": "single-criterion judge",
    "rubric_judge": "rubric judge",
    "geval_judge": "G-Eval judge",
    "example_judge": "judge by examples",
    "example_mean": "mean rating of a source's other outputs",
    "guideline_judge": "judge of the rating as a whole",
    "direct_assessment": "direct assessment of a translation",
    "dna_eval": "judge by weighted dimensions",
    "esa_judge": "error span annotation of a translation",
    "mqm_annotator": "MQM errors of one run",
    "mqm_judge": "MQM errors of several runs",
    "callable": "function",
    "code": "function that the sandbox runs",
    "option_member": "option of a judge",
    "parrot": "errors marked in a source's other outputs",
    "panel_member": "criterion of a panel",
    "prometheus_judge": "rubric judge on the form of Prometheus 2",
    "response_set_judge": "judge that names every possible option",
    "column": "column of the data",
    "finetuned": "trained on the rated rows",
    "induced": "induced metric",
}


COST_WORDS = {
    "local": "local: weights on this machine, a pass of a network for each text",
    "code": "nothing: the sandbox runs it on this machine, and no model is asked",  # by the kind, not the class of cost
}


def kind_words(component: Component) -> str:
    """The kind of a component, and its weights where it has some."""
    words = single_line(KINDS.get(component.kind, component.kind))
    return f"{words} with weights: {single_line(component.weights)}" if component.weights else words


def loss(found: Difference | None) -> str:
    """The difference of the small metric from the full model on held-out rows; empty where none was measured."""
    if found is None or not math.isfinite(found.kendall_tau_b):
        return ""
    gap = statistic(abs(found.kendall_tau_b))
    same = gap == statistic(0.0)
    lost = same or found.kendall_tau_b < 0
    low, high = (-found.ci_high, -found.ci_low) if lost else (found.ci_low, found.ci_high)
    ends = f" (95\u00a0% interval {interval(low, high)})" if math.isfinite(low) and math.isfinite(high) else ""
    rows = f"On the same {count(found.n, 'held-out row')} the small metric"
    if same:
        return f"{rows}'s tau-b is within .0005 of the full model's{ends.replace('interval', 'interval of the loss')}."
    return f"{rows} {'loses' if lost else 'gains'} {gap} of tau-b against the full model{ends}."


def suppressors(components: Sequence[Component], rows: int) -> str:
    """The components whose weight has another sign than their own tau-b on the training rows; empty without any.

    Correlated columns correct one another, and a reader takes a weight for an effect.

    Parameters
    ----------
    components : sequence
    rows : int
        The training rows. A tau-b within two standard errors of 0, as unrelated rankings of so many rows have them,
        may have either sign by chance, which the sentence notes.
    """
    found = [item for item in components if item.weight * item.tau_train < 0]
    if not found or rows < 2:
        return ""
    chance = 2 * math.sqrt(2 * (2 * rows + 5) / (9 * rows * (rows - 1)))
    named = ", ".join(
        f"{single_line(item.name)} (alone tau-b {statistic(item.tau_train, 2, signed=True)}"
        f"{', near enough to 0 for either sign by chance' if abs(item.tau_train) < chance else ''})"
        for item in found
    )
    return (
        f"The weight has another sign than the component's own agreement with the training ratings in {named}: such a "
        "component corrects the others (a suppressor), and its weight is no effect of that quality."
    )


def direction(component: Component) -> str:
    """The direction in which more of the component moves the prediction."""
    return f"more of it {'lowers' if component.direction == '-' else 'raises'} the prediction"


def choice_stability(components: Iterable[Component]) -> str:
    """The share of refits on other rows that choose the components again; never sells them as *the* criteria."""
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


def cross_validated_components(record: RunRecord) -> str:
    """The meaning of a component's own tau-b under cross-validation; empty otherwise."""
    if record.evaluation != "cv" or not record.tested:
        return ""
    told = "The tau-b of a component alone, on held-out rows, is its mean within folds."
    if not any("model" in component.card.cost for component in record.components):
        return told
    return f"{told} Judges made from ratings had seen those of all rows here, so theirs may be too high."


def cross_fitted_components(record: RunRecord) -> str:
    """The origin of the numbers that trained components have on training rows; empty without such components."""
    trained = [component for component in record.components if component.copies]
    if not trained:
        return ""
    names = ", ".join(single_line(component.name) for component in trained)
    return (
        f"The column of {names} on training rows was cross-fitted by group: each number comes from one of "
        f"{max(component.copies for component in trained)} copies, the one that was trained without the row's group. "
        "What is saved was trained on all training rows: it knows their ratings, gives these rows other numbers than "
        "stand here, and shows only on other rows how good it is."
    )


def small_model(record: RunRecord) -> str:
    """The small model beside the full one, components that correct others, and predictions outside the scale."""
    sentences = []
    if math.isfinite(record.fidelity):
        sentences.append(
            f"These few components stand in for all candidates: their predictions correlate "
            f"{statistic(record.fidelity)} with those of the full model on the rows they were chosen on."
        )
    sentences += [
        loss(record.differences.get(record.unabridged) if record.tested else None),
        suppressors(record.components, record.rows.get("train", 0)),
    ]
    if record.clipped_share > 0:
        sentences.append(
            f"{percent(record.clipped_share)} of the predictions lie outside the scale; "
            "they are held at its end when used as a score."
        )
    return " ".join(filter(None, sentences))


def weight_width(record: RunRecord) -> float:
    """The width that weights are written for: the scale's, or less where every weight is small."""
    sizes = [abs(component.weight) for component in record.components if math.isfinite(component.weight)]
    largest = max(sizes, default=0.0)
    return min(record.task.scale.width, 10 * largest) if largest else record.task.scale.width


def cards(record: RunRecord) -> list[tuple[MetricCard, list[Component]]]:
    """Each distinct card with the components that it describes, in the components' order."""
    described: list[tuple[MetricCard, list[Component]]] = []
    for component in record.components:
        for card, components in described:
            if card == component.card:
                components.append(component)
                break
        else:
            described.append((component.card, [component]))
    return described


def card_section(record: RunRecord) -> Section:
    """The cards of the components; many are listed behind a line."""
    found = [_card(card, components) for card, components in cards(record)]
    shown: list[Block] = [*found[:MOST_BARS]] or [Paragraph("No component, no card.")]
    if len(found) > MOST_BARS:
        shown.append(Details(count(len(found) - MOST_BARS, "more card"), found[MOST_BARS:]))
    return Section("cards", "The components' cards", shown)


def sources(record: RunRecord) -> list[tuple[str, Code]]:
    """The components that are code, each with a sentence on its cost."""
    return [
        (f"{single_line(card.name)} is this function. It costs {COST_WORDS['code']}.", Code(card.formula))
        for card, _ in cards(record)
        if card.kind == "code"
    ]


def _card(card: MetricCard, components: Sequence[Component]) -> Details:
    used = [part for one in components for part in (", ", named(one.name))]
    in_use = [", in use as ", *used[1:]] if components[0].name != card.name else []
    kind = element("span", single_line(KINDS.get(card.kind, card.kind)), *in_use, class_="sub")
    rows = [
        (
            named(output.name),
            f"{'−∞' if output.low is None else raw(output.low)} to {'∞' if output.high is None else raw(output.high)}",
            {True: "higher", False: "lower", None: "neither"}[output.higher_is_better],
            Cell(single_line(output.description) or "–", "prose"),
        )
        for output in card.outputs
    ]
    head = ("Output", "Range", "Better", Cell("Meaning", "prose"))
    is_code = card.kind == "code"
    about = {
        "Formula": "" if is_code else card.formula,
        "Needs": ", ".join(card.needs) or "the output only",
        "Cost": COST_WORDS.get("code" if is_code else card.cost, card.cost),
        "Weights": str(card.checkpoint or ""),
        "Several references": card.multi_reference,
        "Backend": f"{card.backend} ({card.backend_license})",
        "Asked on": card.asked,
        "In the raters' numbers": card.rating_map_words,
        "Instruction before tuning": card.instruction_before,
        "Instruction after tuning": card.instruction,
        "Domains": "; ".join(card.domains),
        "Tasks": "; ".join(card.tasks),
        "Best for": "; ".join(card.best_for),
        "Not for": "; ".join(card.not_for),
        "Known limits": "; ".join(card.limits),
        "Failure cases": "; ".join(card.failure_cases),
        "Related": "; ".join(card.related),
        "Papers": "; ".join(card.papers),
    }
    blocks: list[Block] = [
        Paragraph(card.summary, own_direction=True),
        TextTable(head, rows, label=f"Outputs of {single_line(card.name)}"),
        *([Code(card.formula)] if is_code else ()),
        Terms([(term, [text]) for term, text in about.items() if text]),
    ]
    return Details(joined(element("strong", named(card.name)), " ", kind), blocks, "card")
