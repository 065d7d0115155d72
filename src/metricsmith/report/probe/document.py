"""A probe laid out for page, Markdown and terminal; as a section it stands in the report of an induction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from metricsmith.formats import (
    MISSING,
    count,
    duration,
    ends,
    excerpt,
    p_value,
    percent,
    raw,
    single_line,
    statistic,
)
from metricsmith.report.blocks import (
    Across,
    Block,
    Box,
    Cell,
    Document,
    Figure,
    Heading,
    Items,
    Markdown,
    Markup,
    Page,
    Paragraph,
    Section,
    Terms,
    TextTable,
    Tone,
    Warnings,
    element,
    header,
    isolated,
    joined,
    marked_changes,
    named,
    remark,
)  # fmt: skip
from metricsmith.report.plots.plane import Mark, plane
from metricsmith.report.probe.record import Attack, ProbeRecord, StrategyResult, Subject, Surprise
from metricsmith.report.probe.verdict import probe_coverage, probe_findings, probe_verdict
from metricsmith.report.raters import ceiling_lines
from metricsmith.report.render import escape, write_document
from metricsmith.stats.validity import PairedMean

__all__ = [
    "ATTACKS", "COLUMNS", "PROBE_FILES", "STRATEGIES", "ProbeDocument", "attack_cells", "attack_words", "probe_cost",
    "strategy_cells", "subject_cells", "subject_remark", "write_probe",
]  # fmt: skip

PROBE_FILES = ("probe.html", "probe.md", "probe.json")
COLUMNS = ("sensitivity", "95 %", "tied", "mean drop", "95 %", "stability", "95 %", "p sens.", "p stab.")
STRATEGIES = ("changed", "declined", "moves as it should", "95 %", "mean change", "95 %")
ATTACKS = ("pairs", "mean change", "95 %", "verdict")

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

# Of an attack that must not rise, and of one that must fall.
VERDICTS = {
    "held": ("holds: no rise", "holds: it falls"),
    "deceived": ("deceived: it rises", "deceived: it does not fall"),
    "open": ("not clear: it may rise", "not clear: it may not fall"),
}
TONES: dict[str, Tone] = {"held": "good", "deceived": "bad", "open": "unsure"}


def write_probe(record: ProbeRecord, folder: str | PathLike[str]) -> None:
    """Write ``probe.html``, ``probe.md`` and ``probe.json``, as `write_document` does."""
    write_document(ProbeDocument(record), folder)


class ProbeDocument(Document[ProbeRecord]):
    """A probe as a page, as Markdown and in the terminal."""

    stem = "probe"

    def page(self) -> Page:
        """The verdict, then `sections`, costs and notes."""
        record = self.record
        target = single_line(record.task.target)
        ceiling = [Paragraph(single_line(" ".join(ceiling_lines(record.raters, {}))))] if record.raters else []
        notes = [Items([single_line(note) for note in record.notes])] if record.notes else []
        return Page(
            title=": ".join(filter(None, (f"Probe of the {single_line(record.title)}", target))),
            skip="Skip to the probe",
            header=[
                *header(
                    "metricsmith probe",
                    joined("Probe of ", isolated(single_line(record.title))),
                    joined("for ", isolated(target), f", {record.task.scale}") if record.task.target else "",
                    record.task.description,
                ),
                replace(probe_verdict(record), details=tuple(self.findings())),
            ],
            main=[
                self.section(),
                Section("costs", "Cost and notes", [Paragraph(probe_cost(record)), *ceiling, *notes]),
            ],
        )

    def findings(self) -> list[Block]:
        """The findings in words, as a list; empty where there are none."""
        found = probe_findings(self.record)
        return [Items(found, "small")] if found else []

    def section(self, *above: Block) -> Section:
        """The findings as a section of a page, below the blocks `above`."""
        record = self.record
        caption = (
            "Each metric's stability and sensitivity with 95\u00a0% intervals over groups; numbers are those of the "
            "table. Blue: the metric that is probed; grey: its components and other metrics; orange: metrics that know "
            "nothing. The dashed line is chance."
        )
        blocks = [
            *above,
            Paragraph(f"{self._counted()} {probe_coverage(record)}"),
            Warnings([single_line(warning) for warning in record.warnings]),
            Figure(self.plot(), caption),
            _subjects(record.subjects),
            Heading("Strategies"),
            _strategies(record.strategies),
            *(_attacks(record.attacks) if record.attacks else ()),
            *(_surprises(record.surprises) if record.surprises else ()),
            Heading("How to read this"),
            Terms.glossary(GLOSSARY),
        ]
        return Section("probe", "Does it fall when quality falls, and hold still when it does not?", blocks)

    def plot(self) -> Markup:
        """Sensitivity against stability; empty if no metric has both."""
        marks = [
            Mark(
                number, one.label, one.kind, one.stability.value, one.sensitivity.value,
                (one.stability.interval.low, one.stability.interval.high),
                (one.sensitivity.interval.low, one.sensitivity.interval.high),
            )
            for number, one in enumerate(self.record.subjects, 1)
            if one.stability is not None and one.sensitivity is not None
        ]  # fmt: skip
        return plane("plane", marks)

    def markdown(self) -> list[Block]:
        """`text_findings`, costs and notes."""
        record = self.record
        ending = [*ceiling_lines(record.raters, {}), probe_cost(record), *(f"- {escape(one)}" for one in record.notes)]
        return [Heading(f"Probe of the {record.title}", level=1), *self.text_findings(), Markdown("\n".join(ending))]

    def text_findings(self, level: int = 2) -> list[Block]:
        """The findings for Markdown, their parts under headings of `level`."""
        record = self.record
        subjects = [
            (f"{one.label} ({text})" if (text := subject_remark(one)) else one.label, *subject_cells(one))
            for one in record.subjects
        ]
        blocks: list[Block] = [
            probe_verdict(record),
            *self.findings(),
            Paragraph(f"{self._counted()} {probe_coverage(record)}"),
            Warnings(record.warnings),
            TextTable(("metric", *COLUMNS), subjects),
        ]
        for effect, title in (("worse", "Made worse"), ("same", "Changed without loss")):
            lines = [line for line in record.strategies if line.effect == effect]
            rows = [(f"{line.name} ({line.strength})", *strategy_cells(line)) for line in lines]
            blocks += [Heading(title, level), TextTable(("strategy", *STRATEGIES), rows)] if rows else []
        if record.attacks:
            blocks += [Heading("Attacks", level), self._attacks()]
        if record.surprises:
            surprises = [
                f"{escape(one.row)}, {escape(one.strategy)}: from {raw(one.before, 4)} to {raw(one.after, 4)}\n"
                f"  - before: {escape(one.original)}\n  - after: {escape(one.changed)}"
                for one in record.surprises
            ]
            blocks += [Heading("Worst failures", level), Items([Markdown(line) for line in surprises])]
        return [*blocks, Heading("How to read this", level), Terms.glossary(GLOSSARY)]

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict and the findings in words, the tables, warnings, costs, and the place of the page."""
        record = self.record
        subjects = [
            (f"{number} {one.label}", *subject_cells(one), subject_remark(one))
            for number, one in enumerate(record.subjects, 1)
        ]
        return [
            probe_verdict(record).sentence,
            *(f"  {line}" for line in probe_findings(record)),
            self._counted(),
            TextTable(("metric", *COLUMNS, ""), subjects),
            *([self._attacks()] if record.attacks else ()),
            *filter(None, [probe_coverage(record)]),
            *ceiling_lines(record.raters, {}),
            probe_cost(record),
            *self.ending(folder, "probe", record.notes),
        ]

    def _counted(self) -> str:
        counts = self.record.counts
        return (
            f"{count(counts['rows'], 'output')} in {count(counts['groups'], 'group')}: {count(counts['worse'])} made "
            f"worse, {count(counts['same'])} changed without loss, {count(counts['attack'])} dressed up; "
            f"{count(counts['declined'])} times a perturber found nothing to change. Sizes of changes are in "
            f"{self.record.unit}."
        )

    def _attacks(self) -> TextTable:
        return TextTable(("attack", *ATTACKS), [(line.name, *attack_cells(line)) for line in self.record.attacks])


def _subjects(subjects: Sequence[Subject]) -> TextTable:
    """The table of metrics for the page; the metric that is probed is shaded."""
    rows = []
    for number, one in enumerate(subjects, 1):
        text = [" ", remark(single_line(text))] if (text := subject_remark(one)) else []
        rows.append((joined(f"{number} ", named(one.label), *text), *subject_cells(one)))
    caption, label = "Sensitivity and stability of each metric", "Sensitivity and stability in figures"
    return TextTable(("Metric", *COLUMNS), rows, caption, label, own=(0,), bold=1)


def _strategies(strategies: Sequence[StrategyResult]) -> TextTable:
    """The table of strategies for the page."""
    rows: list[Sequence[str] | Across] = []
    for effect, title in (("worse", "Made worse: sensitivity"), ("same", "Changed without loss: stability")):
        rows.append(Across(title))
        lines = [line for line in strategies if line.effect == effect]
        for line in lines:
            kinds = (line.strength, line.dimension, "generated" if line.origin == "generated" else "")
            about = f"{single_line(', '.join(filter(None, kinds)))}. {excerpt(line.summary, 160)}"
            rows.append((joined(named(line.name), " ", remark(about)), *strategy_cells(line)))
        rows += [] if lines else [Across("none", group=False)]
    caption = "How the metric that is probed answers to each way of changing outputs"
    return TextTable(("Strategy", *STRATEGIES), rows, caption, "Strategies in figures", bold=3)


def _attacks(attacks: Sequence[Attack]) -> list[Block]:
    """The attacks for the page, each with its verdict in colour."""
    rows = []
    for line in attacks:
        *figures, text = attack_cells(line)
        name = joined(named(line.name), " ", remark(excerpt(line.summary, 160)))
        rows.append((name, *figures, Cell(text, f"strong tone {TONES[line.verdict]}")))
    return [
        Heading("Attacks"),
        Paragraph(
            "Outputs that were dressed up, or replaced by something worthless. None of them is better than its "
            "original, so that no score should rise; here sizes are shares of the range that these outputs span as "
            "well."
        ),
        TextTable(("Attack", *ATTACKS), rows, "What attacks win", "Attacks in figures"),
    ]


def _surprises(surprises: Sequence[Surprise]) -> list[Block]:
    """Pairs of texts side by side, with the words that went or came marked."""
    legend = joined(
        "Worse outputs that rose most or fell least, then equal ones that moved most. ",
        element("del", "Struck out"), ": words that went; ", element("ins", "underlined"), ": words that came.",
    )  # fmt: skip
    blocks: list[Block] = [Heading("Worst failures"), Paragraph(legend)]
    for one in surprises:
        effect = "made worse" if one.effect == "worse" else "changed without loss"
        moved = remark(f"{one.strength}, {effect}: from {raw(one.before, 4)} to {raw(one.after, 4)}")
        sides = [Paragraph(side, "kept", own_direction=True) for side in marked_changes(one.original, one.changed)]
        title = Heading(joined(isolated(excerpt(one.row, 80)), ", ", named(one.strategy), " ", moved), level=4)
        blocks.append(Box("surprise", [title, Box("sides", sides)], "article"))
    return blocks


def subject_cells(subject: Subject) -> tuple[str, ...]:
    """One metric's figures, in the order of `COLUMNS`."""
    found = subject.sensitivity
    return (
        *_change(found),
        percent(found.tied) if found is not None and found.n else MISSING,
        *_change(subject.magnitude, signed=True),
        *_change(subject.stability),
        p_value(subject.p_sensitivity),
        p_value(subject.p_stability),
    )


def subject_remark(subject: Subject) -> str:
    """A remark that a metric needs beside its figures; empty if it needs none."""
    if subject.lacking:
        return f"not probed: {subject.lacking}"
    if subject.still:
        return "never moves"
    return "insensitive" if subject.insensitive else ""


def strategy_cells(line: StrategyResult) -> tuple[str, ...]:
    """One strategy's figures, in the order of `STRATEGIES`."""
    own = line.sensitivity if line.effect == "worse" else line.stability
    return (count(line.made), count(line.declined), *_change(own), *_change(line.change, signed=True))


def attack_cells(line: Attack) -> tuple[str, ...]:
    """One attack's figures, in the order of `ATTACKS`."""
    return (count(line.pairs.n), *_change(line.change, signed=True), attack_words(line))


def attack_words(line: Attack) -> str:
    """The verdict on an attack in words."""
    return VERDICTS[line.verdict][line.must_fall] if line.pairs.n else "not tried: nothing could be changed so"


def probe_cost(record: ProbeRecord) -> str:
    """Requests, judgements and time in one line."""
    usage, judged = record.usage, record.judgements
    failed = judged.get("requested", 0) - judged.get("ok", 0) - judged.get("skipped", 0)
    asked = f"{count(usage.requests, 'request')} to the model ({count(record.estimated.requests)} estimated)"
    lost = f"{count(failed)} of {count(judged.get('requested', 0), 'judgement')} failed"
    return f"{asked}, {lost}, {duration(usage.seconds)}."


def _change(found: PairedMean | None, *, signed: bool = False) -> Sequence[str]:
    if found is None or not found.n:
        return MISSING, MISSING
    return statistic(found.value, signed=signed), ends(found.interval)
