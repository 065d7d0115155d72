"""An induction laid out for page, Markdown and terminal."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from metricsmith.formats import count, excerpt, interval, percent, points, rating, single_line, statistic
from metricsmith.report.blocks import (
    Block,
    Box,
    Code,
    Document,
    Heading,
    Items,
    Markdown,
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
from metricsmith.report.induction.components import (
    card_section,
    choice_stability,
    cross_fitted_components,
    cross_validated_components,
    direction,
    kind_words,
    small_model,
    sources,
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
    run_facts,
    usage_example,
)
from metricsmith.report.induction.record import RunRecord
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
    systems_lines,
    undefined_reasons,
)
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.probe.document import ProbeDocument, probe_cost
from metricsmith.report.probe.verdict import probe_findings, probe_verdict
from metricsmith.report.render import escape, write_document

__all__ = ["RunDocument", "write_reports"]

AGREEMENT = ("rows", "groups", "tau-b", "95 % interval", "p", "Pearson", "Spearman")  # as `agreement_cells` has them
MOST_LINES = 30  # of a component's source in the terminal
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
        said = [] if probe is None else [Paragraph(probe_verdict(probe).sentence, "strong")]
        return Page(
            title=f"{single_line(record.title)}: {single_line(record.task.target)}",
            skip="Skip to the report",
            header=self._header(),
            main=[
                component_section(record),
                agreement_section(record),
                scatter_section(record),
                *([] if probe is None else [ProbeDocument(probe).section(*said, *ProbeDocument(probe).findings())]),
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
            *(Paragraph(caution, "caution") for caution in verdict.cautions),
            *([Paragraph(record.split, "reading")] if record.split else ()),
            *(Paragraph(line, "reading") for line in self._covered()),
            *([Paragraph(pairs_in_order(block.kendall_tau_b), "reading")] if verdict.tone == "good" else ()),
        ]
        if record.warnings:
            link = element("a", f"{count(len(record.warnings), 'warning')} from the run", href="#notes")
            details.append(Paragraph(joined(link, " below."), "reading"))
        seen = "unseen" if record.tested else "training"
        own = Estimate(f"Kendall tau-b on {seen} rows", block.kendall_tau_b, block.ci_low, block.ci_high, main=True)
        plot = forest("verdict", [own], "The verdict", to_one=True)
        caption = f"Estimate and 95\u00a0% interval. {EVALUATIONS.get(record.evaluation, '')}"
        links = [element("li", element("a", text, href=f"#{key}")) for key, text in LINKS.items()]
        return [
            *self._banner(),
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
            run_facts(record),
            element("nav", element("ul", *links), aria_label="Sections"),
        ]

    def _covered(self) -> list[str]:
        """The coverage of the verdict's interval; under cross-validation that is another one, nowhere simulated."""
        return few_groups(jackknifed(self.record)[:1])

    def facts(self) -> list[Block]:
        """Rows, components, requests, cost and time in a line; above it the word on synthetic data, if they are."""
        return [*self._banner(), run_facts(self.record)]

    def _banner(self) -> list[Block]:
        synthetic = self.record.synthetic
        marked = [] if synthetic.startswith("Synthetic data") else [element("strong", "Synthetic data."), " "]
        return [element("p", *marked, isolated(synthetic), class_="banner", role="note")] if synthetic else []

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
            *map(Paragraph, self._covered()),
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
            escape(cross_fitted_components(record)),
        ]
        return [
            title,
            TextTable(head, rows, left=4),
            Paragraph(
                "Weight: rating points that one standard deviation of the component adds. "
                "Again: share of refits on resampled rows that choose it."
            ),
            Markdown(" ".join(filter(None, prose))),
            *(block for said, code in sources(record) for block in (Paragraph(said), code)),
        ]

    def _markdown_agreement(self) -> list[Block]:
        record = self.record
        blocks = [("induced metric, held-out rows", record.test)] if record.tested else []
        blocks += [("induced metric, training rows", record.train), *record.baselines.items()]
        head = ("predictor", *AGREEMENT)
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
        """The verdict with its cautions, components and agreement, costs, warnings, and where page and metric are."""
        record, verdict, probe = self.record, run_verdict(self.record), self.record.probe
        places = [] if folder is None else [f"report: {folder / 'report.html'}", f"metric: {folder / 'metric.json'}"]
        side = "held-out rows" if record.tested else "training rows only"
        blocks = {f"induced metric, {side}": record.headline, **record.baselines}
        lines: list[str | TextTable] = [
            verdict.sentence,
            *verdict.cautions,
            record.synthetic,
            record.split,
            f"{record.title}: {count(len(record.components), 'component')}, each with its weight (rating points that "
            "one standard deviation adds) and its own tau-b",
            self._component_table(),
            *(line for said, code in sources(record) for line in (said, *_listing(code.text))),
            TextTable(
                ("agreement", *AGREEMENT[:5]), [(name, *agreement_cells(block)[:5]) for name, block in blocks.items()]
            ),
            *undefined_reasons(blocks.items()),
            *few_groups(jackknifed(record)),
            *run_ceiling(record),
            *systems_lines(record.new_systems, record.headline),
            *run_cost_lines(record.usage),
            *local_cost_lines(record.components),
            *([] if probe is None else [f"probe: {probe_verdict(probe).sentence}", *probe_findings(probe)]),
            "" if probe is None else f"probe: {probe_cost(probe)}",
            *(f"warning: {warning}" for warning in record.warnings),
            *places,
            record.signature,
        ]
        return [line for line in lines if line]

    def _component_table(self) -> TextTable:
        width = weight_width(self.record)
        rows = [
            (
                item.name,
                points(item.weight, width, signed=True),
                statistic(item.tau_train),
                statistic(item.tau_test),
            )
            for item in self.record.components
        ]
        return TextTable(("component", "weight", "tau-b train", "tau-b test"), rows)


def _listing(source: str) -> list[str]:
    """The lines of a source for the terminal, the first `MOST_LINES` of them."""
    lines = source.split("\n")
    more = [f"… {count(len(lines) - MOST_LINES, 'more line')} in the report"] if len(lines) > MOST_LINES else []
    return [f"  | {line}" for line in [*lines[:MOST_LINES], *more]]
