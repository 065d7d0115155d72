"""An induction laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path

from metricsmith.report.blocks import (
    Block,
    Box,
    Code,
    Document,
    Heading,
    Items,
    Markdown,
    Markup,
    Page,
    Paragraph,
    TextTable,
    Verdict,
    element,
    header,
    isolated,
    joined,
    named,
)
from metricsmith.report.formats import count, excerpt, interval, percent, points, rating, single_line, statistic
from metricsmith.report.induction.components import (
    card_section,
    choice_stability,
    cross_validated_components,
    direction,
    kind_words,
    small_model,
    weight_width,
)
from metricsmith.report.induction.costs import (
    STATUSES,
    cost_section,
    local_cost_lines,
    note_section,
    panel_savings,
    run_cost_lines,
    run_costs,
    usage_example,
)
from metricsmith.report.induction.record import Component, RunRecord
from metricsmith.report.induction.rows import (
    disagreement_section,
    disagreements,
    reliability_bins,
    reliability_sentence,
    render_scores,
)
from metricsmith.report.induction.sections import (
    agreement_cells,
    agreement_section,
    component_section,
    figure,
    outlook_section,
    scatter_section,
)
from metricsmith.report.induction.verdict import (
    EVALUATIONS,
    comparison,
    few_groups,
    interval_outlook,
    jackknifed,
    outlook_sentence,
    pairs_in_order,
    run_ceiling,
    run_verdict,
    systems_caution,
    systems_lines,
    undefined_reasons,
)
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.probe.document import ProbeDocument, probe_cost, probe_verdict
from metricsmith.report.render import escape, write_document
from metricsmith.stats.agreement import Agreement

__all__ = ["RunDocument", "write_reports"]

LINKS = {
    "components": "What was induced", "agreement": "Agreement", "scatter": "Row by row", "outlook": "More labels",
    "disagreements": "Disagreements", "cards": "Cards", "costs": "Cost and failures", "notes": "Notes and use",
}  # fmt: skip


def write_reports(record: RunRecord, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
    """Write ``report.html``, ``report.md``, ``report.json`` and ``scores.csv``.

    All four are rendered before the first is written, and each replaces its predecessor in one step, so a
    reader never meets half a file.

    Parameters
    ----------
    record : RunRecord
        The finished run.
    folder : path
        Made if it does not exist.
    raw_csv : bool
        Write texts that a spreadsheet would run as they are.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    write_document(RunDocument(record), folder, {"scores.csv": render_scores(record, raw_csv=raw_csv)})


class RunDocument(Document[RunRecord]):
    """An induction as a page, as Markdown and in the terminal."""

    stem = "report"

    def page(self) -> Page:
        """The verdict, then from what was induced to what it cost."""
        record = self.record
        probe = record.probe
        sentence = [] if probe is None else [Paragraph(probe_verdict(probe).sentence, "strong")]
        return Page(
            title=f"{single_line(record.title)}: {single_line(record.task.target)}",
            skip="Skip to the report",
            header=self._header(),
            main=[
                component_section(record),
                agreement_section(record),
                scatter_section(record),
                *([] if probe is None else [ProbeDocument(probe).section(*sentence)]),
                outlook_section(record),
                disagreement_section(record),
                card_section(record),
                cost_section(record),
                note_section(record),
            ],
        )

    def _header(self) -> list[Block]:
        record = self.record
        verdict, block = run_verdict(record), record.headline
        details = [
            *([Paragraph(record.split, "reading")] if record.split else ()),
            *(Paragraph(caution, "caution") for caution in verdict.cautions),
            *([Paragraph(pairs_in_order(block.kendall_tau_b), "reading")] if verdict.tone == "good" else ()),
        ]
        if record.warnings:
            link = element("a", f"{count(len(record.warnings), 'warning')} from the run", href="#notes")
            details.append(Paragraph(joined(link, " below."), "reading"))
        seen = "unseen" if record.tested else "training"
        own = Estimate(f"Kendall tau-b on {seen} rows", block.kendall_tau_b, block.ci_low, block.ci_high, main=True)
        plot = forest("verdict", [own], "The verdict", to_one=True)
        caption = f"Estimate and 95\u00a0% interval. {EVALUATIONS.get(record.evaluation, '')}"
        marked = [] if record.synthetic.startswith("Synthetic data") else [element("strong", "Synthetic data."), " "]
        banner = element("p", *marked, isolated(record.synthetic), class_="banner", role="note")
        links = [element("li", element("a", text, href=f"#{key}")) for key, text in LINKS.items()]
        return [
            *([banner] if record.synthetic else ()),
            *header(
                "metricsmith report",
                named(record.title),
                joined("for ", named(record.task.target), f", {record.task.scale}"),
                record.task.description,
            ),
            Box(
                "hero",
                [
                    Verdict(verdict.tone, verdict.sentence, details=tuple(details)),
                    figure(record, plot, caption),
                ],
            ),
            self._facts(),
            element("nav", element("ul", *links), aria_label="Sections"),
        ]

    def _facts(self) -> Markup:
        record = self.record
        requests, _, _, cost, time = (line.actual for line in run_costs(record))
        facts = {
            "Rated rows": count(record.rows.get("rated")),
            "Fitted on": count(record.rows.get("train")),
            "Tested on": count(record.test.n if record.tested else 0),
            "Without a rating": count(record.rows.get("unrated")),
            "Components": count(len(record.components)),
            "Model requests": requests,
            "Cost": cost,
            "Time": time,
        }
        pairs = [element("div", element("dt", term), element("dd", text)) for term, text in facts.items()]
        return element("dl", *pairs, class_="facts")

    def markdown(self) -> list[Block]:
        """The page's content, shortened and without plots."""
        record = self.record
        probe: list[Block] = []
        if record.probe is not None:
            found = ProbeDocument(record.probe).text_findings(3)
            probe = [Heading("Outputs changed on purpose", level=2), *found, Items(())]
        return [
            *self._markdown_head(),
            *self._markdown_components(),
            *self._markdown_agreement(),
            *probe,
            *self._markdown_outlook(),
            *self._markdown_disagreements(),
            *self._markdown_costs(),
            Heading("Warnings, notes and use", level=2),
            Items([*(Markdown(f"**Warning:** {escape(line)}") for line in record.warnings), *record.notes]),
            Code(usage_example(record)),
        ]

    def _markdown_head(self) -> list[Block]:
        record = self.record
        mark = "" if record.synthetic.startswith("Synthetic data") else "**Synthetic data.** "
        kinds = {"rated": "rated", "train": "train", "test": "test", "unrated": "without a rating"}
        counts = ", ".join(f"{count(record.rows.get(key))} {kind}" for key, kind in kinds.items())
        division = f"{escape(record.split)} " if record.split else ""
        title = f"{escape(record.title)} for {escape(record.task.target)} ({record.task.scale})"
        return [
            Heading(Markdown(title), level=1),
            *([Markdown(f"> {mark}{escape(record.synthetic)}")] if record.synthetic else ()),
            *([Paragraph(record.task.description)] if record.task.description else ()),
            run_verdict(record),
            Markdown(f"{division}{EVALUATIONS.get(record.evaluation, '')} Rows: {counts}."),
        ]

    def _markdown_components(self) -> list[Block]:
        record = self.record
        title = Heading("What was induced", level=2)
        if not record.components:
            return [title, Paragraph("No component was selected.")]
        width = weight_width(record)
        rows = [
            (
                item.name,
                kind_words(item),
                Markdown(points(item.weight, width, signed=True)),
                direction(item),
                statistic(item.tau_train),
                statistic(item.tau_test),
                count(item.missing),
                percent(item.selected_share),
            )
            for item in record.components
        ]
        head = ("component", "kind", "weight", "direction", "tau-b train", "tau-b test", "missing", "again")
        prose = [
            escape(record.combiner),
            escape(small_model(record)),
            choice_stability(record.components),
            cross_validated_components(record),
        ]
        return [
            title,
            TextTable(head, rows, left=4),
            Paragraph(
                "Weight: rating points that one standard deviation of the component adds. "
                "Again: share of refits on resampled rows that choose it."
            ),
            Markdown(" ".join(filter(None, prose))),
        ]

    def _markdown_agreement(self) -> list[Block]:
        record = self.record
        blocks = [("induced metric, held-out rows", record.test)] if record.tested else []
        blocks += [("induced metric, training rows", record.train), *record.baselines.items()]
        head = ("predictor", "rows", "groups", "tau-b", "95 % interval", "p", "Pearson", "Spearman")
        remarks = [*undefined_reasons(blocks), *few_groups(jackknifed(record))]
        reliability = reliability_sentence(reliability_bins(record), record.task.scale)
        systems = systems_lines(record.new_systems, record.headline)
        return [
            Heading("Agreement with the raters", level=2),
            TextTable(head, [(name, *agreement_cells(block)) for name, block in blocks]),
            *([Items(remarks)] if remarks else ()),
            *(Paragraph(text) for text in (*run_ceiling(record), comparison(record), reliability) if text),
            *([Heading("New systems"), Items(systems)] if systems else ()),
        ]

    def _markdown_outlook(self) -> list[Block]:
        record = self.record
        prospects = interval_outlook(record.headline) if record.tested else []
        curve = [
            Markdown(
                f"fitted on {count(point.rows, 'row')}: tau-b {statistic(point.kendall_tau_b, 2)} "
                f"({interval(point.low, point.high, 2)} over draws)"
            )
            for point in record.learning
        ]
        if not prospects and not curve:
            return []
        text = [Markdown(outlook_sentence(prospects))] if prospects else []
        return [Heading("What more labels would buy", level=2), *text, Items(curve)]

    def _markdown_disagreements(self) -> list[Block]:
        width = self.record.task.scale.width
        cases = []
        for case in disagreements(self.record):
            where = "" if case.held_out else " (training row)"
            reasons = [
                f"\n  - {escape(name)} says: {escape(excerpt(reason, 160))}"
                for name, reason in case.row.feedback.items()
                if reason.strip()
            ]
            cases.append(
                f"**{escape(excerpt(case.row.id, 60))}**{where}: raters {rating(case.rating, width)}, "
                f"metric {points(case.prediction, width)}. {escape(excerpt(case.row.output, 160))}{''.join(reasons)}"
            )
        title = Heading("Where metric and raters disagree most", level=2)
        return [title, Items(list(map(Markdown, cases)))] if cases else []

    def _markdown_costs(self) -> list[Block]:
        record = self.record
        used = [(line.name, line.estimated, line.actual) for line in run_costs(record)]
        ended = [
            f"{count(number)} {escape(STATUSES.get(status, status))}"
            for status, number in record.judgements.items()
            if number
        ]
        return [
            Heading("Cost and failures", level=2),
            TextTable(("", "estimated", "actual"), used),
            Markdown(f"Judgements: {'; '.join(ended) or 'none'}."),
            *([Markdown(panel_savings(record))] if record.panel is not None else ()),
            Items([excerpt(line, 300) for line in record.failures]),
        ]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """Components, agreement beside the baselines, costs, warnings, and the places of page and metric."""
        record = self.record
        places = [] if folder is None else [f"report: {folder / 'report.html'}", f"metric: {folder / 'metric.json'}"]
        probe = record.probe
        lines = [
            self._title_line(),
            *_component_lines(record.components),
            *self._agreement_lines(),
            *few_groups(jackknifed(record)),
            *run_ceiling(record),
            *systems_lines(record.new_systems, record.headline),
            systems_caution(record.new_systems, record.headline),
            *run_cost_lines(record.usage),
            *local_cost_lines(record.components),
            "" if probe is None else f"probe: {probe_verdict(probe).sentence} {probe_cost(probe)}",
            *(f"warning: {warning}" for warning in record.warnings),
            record.synthetic,
            *places,
            record.signature,
        ]
        return [line for line in lines if line]

    def _title_line(self) -> str:
        record = self.record
        tests = {
            "holdout": "held-out rows", "file": "rows of their own",
            "cv": "rows held out in turn (cross-validation)",
        }  # fmt: skip
        tested = (
            f"tested on {record.test.n} {tests[record.evaluation]} of {record.test.groups} groups"
            if record.tested
            else "not tested"
        )
        split = f". {record.split}" if record.split else ""
        return f"{record.title}: {len(record.components)} components, {tested}{split}"

    def _agreement_lines(self) -> list[str]:
        side = "held-out rows" if self.record.tested else "training rows only"
        blocks = {f"induced metric, {side}": self.record.headline, **self.record.baselines}
        width = max(map(len, blocks))
        return [
            f"{name:{width}}  tau-b {_signed(block.kendall_tau_b)}  {_spread(block)}  "
            f"({block.n} rows, {block.groups} groups)"
            for name, block in blocks.items()
        ]


def _component_lines(components: tuple[Component, ...]) -> list[str]:
    width = max((len(component.name) for component in components), default=0)
    return [
        f"  {component.weight:+8.3f}  {component.name:{width}}  (alone: tau-b {_signed(component.tau_train)} train, "
        f"{_signed(component.tau_test)} test)"
        for component in components
    ]


def _spread(block: Agreement) -> str:
    """Interval and p-value of a tau-b."""
    if math.isnan(block.ci_low) and math.isnan(block.p_value):
        return "no interval, no p"
    ends = f"95 % {_signed(block.ci_low)} to {_signed(block.ci_high)}" if math.isfinite(block.ci_low) else "no interval"
    small = "<.001" if block.p_value < 0.001 else f"{block.p_value:.3f}"
    return f"{ends}  p {'undefined' if math.isnan(block.p_value) else small}"


def _signed(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.3f}"
