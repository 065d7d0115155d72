"""The sections of an induction's page."""

from __future__ import annotations

from collections.abc import Sequence

from metricsmith.formats import (
    count,
    interval,
    p_value,
    percent,
    points,
    single_line,
    statistic,
)
from metricsmith.report.blocks import (
    Block,
    Box,
    Details,
    Figure,
    Heading,
    Items,
    Markup,
    Paragraph,
    Section,
    Terms,
    TextTable,
    element,
    isolated,
    joined,
    named,
    remark,
)
from metricsmith.report.induction.components import (
    choice_stability,
    cross_fitted_components,
    cross_validated_components,
    direction,
    kind_words,
    small_model,
    weight_width,
)
from metricsmith.report.induction.record import Component, NewSystems, RunRecord
from metricsmith.report.induction.rows import (
    rated_rows,
    reliability_bins,
    reliability_sentence,
)
from metricsmith.report.induction.verdict import (
    EVALUATIONS,
    comparison,
    few_groups,
    interval_outlook,
    jackknifed,
    outlook_sentence,
    run_ceiling,
    systems_lines,
    undefined_reasons,
)
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.plots.induction import MOST_BARS, learning_plot, weights
from metricsmith.report.plots.reliability import MOST_POINTS, Point, beyond, reliability_plot, scatter, thin
from metricsmith.stats.agreement import Agreement

__all__ = [
    "GLOSSARY", "agreement_cells", "agreement_section", "component_section", "figure", "outlook_section",
    "scatter_section", "systems_plot",
]  # fmt: skip

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
LEGEND = {
    "held-out rows": Markup('<circle cx="7" cy="7" r="5" class="point test"/>'),
    "training rows": Markup('<rect x="3" y="3" width="8" height="8" class="point train"/>'),
}


def figure(record: RunRecord, plot: Markup, caption: str) -> Figure:
    """A plot with its caption; results on synthetic data are marked as such."""
    mark = [element("span", "synthetic data", class_="tag synthetic"), " "] if record.synthetic else []
    return Figure(plot, joined(*mark, caption))


def component_section(record: RunRecord) -> Section:
    """The components with their weights; many are listed behind a line."""
    if not record.components:
        return Section("components", "What was induced", [Paragraph("No component was selected.")])
    width, more = weight_width(record), len(record.components) - MOST_BARS
    caption = "Rating points that one standard deviation of the transformed component adds."
    drawn = f"{caption} The {MOST_BARS} largest are drawn." if more > 0 else caption
    blocks: list[Block] = [
        Paragraph(joined(isolated(record.combiner), " ", small_model(record))),
        Paragraph(f"{choice_stability(record.components)} {cross_validated_components(record)}"),
        *([Paragraph(cross_fitted)] if (cross_fitted := cross_fitted_components(record)) else []),
        Box(
            "pair",
            [
                figure(record, weights("weights", record.components, width), drawn),
                _component_table(record.components[:MOST_BARS], width, "Components"),
            ],
        ),
        Paragraph(
            "Missing: rows on which the component had no value. Chosen again: share of refits on resampled rows that "
            "pick it. An en dash means undefined: fewer than two rows, equal values throughout, or not computed.",
            "muted small",
        ),
    ]
    if more > 0:
        table = _component_table(record.components[MOST_BARS:], width, "More components")
        blocks.insert(3, Details(count(more, "more component"), [table]))
    return Section("components", "What was induced", blocks)


def _component_table(components: Sequence[Component], width: float, label: str) -> TextTable:
    rows = [
        (
            joined(named(one.name), remark(f"{kind_words(one)}; {direction(one)}")),
            points(one.weight, width, signed=True),
            statistic(one.tau_train),
            statistic(one.tau_test),
            count(one.missing),
            percent(one.selected_share),
        )
        for one in components
    ]
    head = ("Component", "Weight", "tau-b train", "tau-b test", "Missing", "Chosen again")
    return TextTable(head, rows, "tau-b is each component's own agreement with the raters", label, bold=1)


def agreement_section(record: RunRecord) -> Section:
    """The agreement of the metric beside its baselines."""
    ceiling, tested = run_ceiling(record), record.tested
    own = Estimate("Induced metric" if tested else "Induced metric (training rows)", *_ends(record.headline), main=True)
    rivals = [Estimate(name, *_ends(block)) for name, block in record.baselines.items()]
    plot = forest("forest", [own, *rivals], "Agreement of the metric and of the baselines")
    seen = "." if tested else ", on the rows that were fitted on."
    own_blocks = [("Induced metric, test", record.test)] if tested else []
    named_blocks = [*own_blocks, ("Induced metric, training rows", record.train), *record.baselines.items()]
    remarks = [single_line(line) for line in (*undefined_reasons(named_blocks), *few_groups(jackknifed(record)))]
    systems = systems_lines(record.new_systems, record.headline)
    drawn = systems_plot(record.new_systems, record.headline)
    new_systems: list[Block] = [
        Heading("New systems"),
        Box(
            "pair",
            [
                figure(record, drawn, "Kendall tau-b with 95\u00a0% intervals, on held-out rows."),
                Items(systems, "small"),
            ],
        ),
    ]
    blocks = [
        Paragraph(f"{EVALUATIONS.get(record.evaluation, '')} {comparison(record)}"),
        *([Paragraph(single_line(" ".join(ceiling)))] if ceiling else ()),
        Box(
            "pair",
            [figure(record, plot, f"Kendall tau-b with 95\u00a0% intervals{seen}"), Terms.glossary(GLOSSARY)],
        ),
        _agreement_table(record),
        *([Items(remarks, "muted small")] if remarks else ()),
        *(new_systems if systems else ()),
    ]
    return Section("agreement", "Agreement with the raters", blocks)


def _ends(block: Agreement) -> tuple[float, float, float]:
    """A tau-b and the ends of its interval."""
    return block.kendall_tau_b, block.ci_low, block.ci_high


def _agreement_table(record: RunRecord) -> TextTable:
    lines = []
    if record.tested:
        held_out = "held-out rows" if record.evaluation != "cv" else "each row while held out"
        lines.append((joined("Induced metric", remark(held_out)), record.test))
    flatters = remark("the rows it was fitted on, which flatters most fits")
    lines.append((joined("Induced metric", flatters), record.train))
    for name, block in record.baselines.items():
        kind = remark("the full model that the metric abridges" if name == record.unabridged else "baseline")
        lines.append((joined(named(name), kind), block))
    rows = [(name, *agreement_cells(block)) for name, block in lines]
    head = ("Predictor", "Rows", "Groups", "tau-b", "95\u00a0% interval", "p", "Pearson", "Spearman")
    return TextTable(head, rows, "The same in figures", "Agreement in figures", own=(0,), bold=3)


def agreement_cells(block: Agreement) -> tuple[str, ...]:
    """Rows, groups, tau-b, its interval and p-value, and the other two correlations."""
    return (
        count(block.n),
        count(block.groups),
        statistic(block.kendall_tau_b),
        interval(block.ci_low, block.ci_high),
        p_value(block.p_value),
        statistic(block.pearson),
        statistic(block.spearman),
    )


def scatter_section(record: RunRecord) -> Section:
    """Predictions against ratings, row by row and in bins."""
    scale, rows = record.task.scale, rated_rows(record)
    title = "Prediction against rating"
    if not rows:
        return Section("scatter", title, [Paragraph("No row has both a rating and a prediction.")])
    drawn = [Point(row.id, given, predicted, record.held_out(row)) for row, given, predicted in rows]
    thinned, outside, parts = len(rows) - MOST_POINTS, beyond(drawn, scale), reliability_bins(record)
    shown = {"held-out rows": record.tested, "training rows": record.evaluation != "cv"}
    legend = [
        joined(element("svg", LEGEND[name], viewBox="0 0 14 14", aria_hidden="true"), f" {name}")
        for name, there in shown.items()
        if there
    ]
    left_out = (
        f"{count(thinned, 'row')} left out at random (seed 0) to keep the page light; every figure uses all rows."
    )
    beside: list[Block] = [
        Paragraph(
            "Each mark is one output: across, what the raters gave; upwards, what the metric predicts. On the dashed "
            "line both are equal. A cloud that rises from left to right orders outputs like the raters do, even if it "
            "is flatter than the line: a careful prediction stays near the middle."
        ),
        Items(legend, "legend"),
        *([Paragraph(left_out, "muted small")] if thinned > 0 else ()),
        *(
            [Paragraph(f"{count(outside, 'prediction')} far outside the scale, drawn on the frame.", "muted small")]
            if outside
            else ()
        ),
    ]
    plot = scatter("scatter", thin(drawn), scale)
    caption = "One mark per rated row; darker where several lie on one spot."
    bins_caption = (
        f"Held-out rows in {count(len(parts), 'bin')} by prediction, the number of rows of each below; lines are "
        "95\u00a0% intervals of the mean rating, a diamond marks one that leaves out the prediction."
    )
    at_their_word: list[Block] = [
        Heading("Can its numbers be taken at their word?"),
        Paragraph(
            "Each mark stands for held-out rows with neighbouring predictions: across, what the metric predicts on "
            "average; upwards, what the raters gave on average. Below the dashed line the metric predicts more than "
            "the raters gave, above it less."
        ),
        Paragraph(reliability_sentence(parts, scale)),
    ]
    binned = [figure(record, reliability_plot("reliability", parts, scale), bins_caption), Box("", at_their_word)]
    blocks = [figure(record, plot, caption), Box("", beside), *(binned if parts else ())]
    return Section("scatter", title, [Box("pair", blocks)])


def outlook_section(record: RunRecord) -> Section:
    """The interval with more labelled groups, and the learning curve."""
    prospects = interval_outlook(record.headline) if record.tested else []
    if prospects:
        text = outlook_sentence(prospects)
    elif not record.tested:
        text = (
            "Nothing was held out, so there is no interval for unseen outputs yet. The first labels to add are test "
            "rows: whole groups that the fit never sees."
        )
    else:
        text = "These rows are too few for an interval, so there is nothing to extrapolate from yet."
    estimates = [
        Estimate(
            f"{count(item.groups, 'group')} ({'now' if item.factor == 1 else f'{item.factor} times as many'})",
            item.value, item.low, item.high, main=item.factor == 1,
        )
        for item in prospects
    ]  # fmt: skip
    plot = forest("outlook", estimates, "The interval with more labelled groups")
    more = "The same estimate with more labelled groups in the test: the width falls with their square root."
    fewer = (
        "Held-out agreement when fitted on fewer rows: mean and range over seeded draws. Still rising at the right end "
        "means that more labels would help."
    )
    pair = Box("pair", [figure(record, plot, more), figure(record, learning_plot("learning", record.learning), fewer)])
    return Section("outlook", "What more labels would buy", [Paragraph(text), pair])


def systems_plot(block: NewSystems | None, rows: Agreement) -> Markup:
    """The figures side by side; empty where there is none for new systems."""
    if block is None or block.withheld:
        return Markup("")
    estimates = [
        Estimate(f"New rows of these {block.systems} systems", rows.kendall_tau_b, rows.ci_low, rows.ci_high),
        Estimate("New systems", block.kendall_tau_b, block.ci_low, block.ci_high, main=True),
        Estimate("Inside systems", block.within_tau_b, block.within_low, block.within_high),
    ]
    return forest("systems", estimates, "Agreement on rows of known and of new systems")
