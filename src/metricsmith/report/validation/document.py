"""Judges beside people, laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from metricsmith.formats import count, ends, interval, p_stated, percent, raw, single_line, statistic
from metricsmith.rating_model.clinic import Clinic, DisagreementCase, RaterSplit
from metricsmith.rating_model.measures import DOWNSTREAM
from metricsmith.rating_model.record import MeasureResult
from metricsmith.report.blocks import (
    Block,
    Box,
    Cell,
    Figure,
    Items,
    Paragraph,
    Terms,
    TextTable,
    Tone,
    Verdict,
    Warnings,
    strong,
)
from metricsmith.report.parted import Opening, PartedDocument
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.render import write_document
from metricsmith.report.validation.record import Validation
from metricsmith.report.validation.use import MOST_DRAWN, curves, holds, plain_name, ranked, slopes

__all__ = ["VALIDATION_FILES", "ValidationDocument", "validation_verdict", "write_validation"]

VALIDATION_FILES = ("validate.html", "validate.md", "validate.json")
MOST_CASES = 20  # disagreements in the table
PLAIN = {
    "chosen": "{pick} is the judge to take: nothing that was looked at changes the choice.",
    "depends": "{pick} leads on these items, but the choice depends on what is assumed.",
    "undecided": "The choice is open: {pick} is ahead, but its lead may be chance.",
}
NEXT = {
    "chosen": "keep some ratings of people beside this judge's: they take its error off a share (score --labelled).",
    "depends": "ask some raters and the judges for response sets, or agree on beta and the threshold first.",
    "undecided": "gather more items; metricsmith plan says how many.",
}
KINDS = {
    "unstated policy": "groups of raters decide the item differently: say in the instruction which is right",
    "judge error": "few of the raters or none said what the judge says",
    "rater noise": "raters are split: more said something else, but enough said what the judge says",
    "one rating": "the judge says something else than the one rater, and it cannot be told who errs",
}
GLOSSARY = (
    ("choice, response set", "The option that a rater gave, and all options that this rater finds right. Raters who "
        "agree on the set may choose differently out of it."),
    ("95 %", "is where a value may lie for other items, in whole groups; leads and regrets are paired."),
    ("best in", "is the share of joint draws of items in which the judge is the best. Corrected is the pick's value "
        "less what being the best of several adds by chance."),
    ("over all response sets", "are bounds of the lead over every way in which admissible sets can lie behind the "
        "choices (linear programming, item by item). A lead that keeps its sign there needs no beta."),
    ("squared errors of choices and sets, Brier score", "are freed of what a judge's few answers add to them by "
        "chance, and may lie below 0. Other measures are not: more answers an item help a judge there."),
    ("KL, cross-entropy, log score", "count an option that no answer of the judge gave as 1e-10. With few answers an "
        "item, this number makes most of their value and of its interval."),
)  # fmt: skip
IN_USE = (
    ("beta", "is the share of those who chose no positive option and would also have given the one that beta adds, "
        "among people and judges alike. Choices do not tell it. The tables hold for the beta of the signature."),
    ("decision consistency, prevalence bias", "measure the judge in use: an item is positive where the share of "
        "response sets with a positive option reaches the threshold. The first is the share of items that judge and "
        "people decide alike, the second the judge's share of positive items less that of people."),
    ("regret", "is how far a measure's pick stays behind the best judge in use; expected is its mean over the draws."),
    ("rank correlation", "is Spearman's, over judges, between a measure and the consistency in use."),
)  # fmt: skip


def write_validation(record: Validation, folder: str | PathLike[str]) -> None:
    """Write ``validate.html``, ``validate.md`` and ``validate.json``, as `write_document` does."""
    write_document(ValidationDocument(record), folder)


def validation_verdict(record: Validation) -> Verdict:
    """The judge to take, or why there is none to take yet, with the reasons."""
    found = record.selection
    reasons = [single_line(f"{reason[:1].upper()}{reason[1:]}.") for reason in (*found.reasons, *found.notes)]
    reasons[0] = found.reasons[0] + "."  # it begins with the judge's name
    tone: Tone = "good" if found.verdict == "chosen" else "unsure"
    return Verdict(
        tone,
        PLAIN[found.verdict].format(pick=single_line(found.pick)),
        details=(
            *(Paragraph(text, "small") for text in reasons),
            Paragraph(f"Next: {next_step(record)}", "small strong"),
        ),
    )


def next_step(record: Validation) -> str:
    """The one thing to do after the verdict."""
    if record.decision is None and record.selection.verdict != "undecided":
        return "say what the judge is for, the positive options and the threshold (--positive, --threshold)."
    return NEXT[record.selection.verdict]


class ValidationDocument(PartedDocument[Validation]):
    """Judges beside people as a page, as Markdown and in the terminal."""

    stem = "validate"

    def opening(self) -> Opening:
        """The verdict beside the judges."""
        record, compared = self.record, self._compared()
        return Opening(
            record.title, validation_verdict(record), compared, plot=self._forest(), below=compared,
            tab=f"{record.title}: {record.selection.pick}",
        )  # fmt: skip

    def terminal(self, folder: Path | None) -> list[str | TextTable]:
        """The verdict with its reasons, the judges, the pick of each measure, notes, and the place of the page."""
        record = self.record
        return [
            validation_verdict(record).sentence,
            *(f"  {line}" for line in (*record.selection.reasons, *record.selection.notes)),
            f"  next: {next_step(record)}",
            self._compared(),
            self._judges(),
            self._picks(),
            *holds(record.selection.sweep),
            *self.ending(folder, notes=self._sources),
        ]

    def parts(self, *, page: bool) -> list[tuple[str, str, Sequence[Block]]]:
        """A part for each question; one without figures is left out."""
        record = self.record
        found, used = record.selection, record.decision is not None
        plots, swept = curves(found.sweep), len(found.sweep) > 1
        return [
            (
                "judges",
                "Judges by every measure",
                [Warnings(record.warnings), self._judges(), self._matrix(), self._best()],
            ),
            (
                "use",
                "What each measure picks" + ", and how its pick does in use" * used,
                [Box("pair", slopes(found)), self._picks()],
            ),
            (
                "sensitivity",
                "What the choice rests on",
                [Box("pair", plots), Items(holds(found.sweep))] if swept else [],
            ),
            ("violations", "Where the hit rate and the deciding measure contradict each other", self._violations()),
            ("disagreements", f"Where {single_line(found.pick)} and people differ", self._disagreements()),
            ("replacing", "In place of one of the raters", self._replacing()),
            ("reading", "How to read this", [Terms.glossary((*GLOSSARY, *(IN_USE if used else ())))]),
            ("notes", "Notes", [Items(self._sources)] if self._sources else []),
        ]

    @property
    def _decider(self) -> MeasureResult:
        return self.record.selection.result(self.record.selection.by)

    @property
    def _order(self) -> list[str]:
        """The judges, the best by the measure that decides first."""
        return [own.judge for own in ranked(self._decider)]

    @property
    def _sources(self) -> list[str]:
        """The notes on the tables; those on their ratings stand under the verdict."""
        return [note for note in self.record.notes if note not in self.record.selection.notes]

    def _compared(self) -> str:
        found, decision = self.record.selection, self.record.decision
        groups = f" in {count(found.groups, 'group')}" if found.groups < found.items else ""
        use = (
            f"; an item is positive from {raw(decision.threshold)} of {', '.join(decision.positive)}"
            if decision
            else ""
        )
        swept = decision and any(cell.beta for cell in found.sweep)
        use += f"; beta adds {found.settings['added'] or decision.positive[0]}" if decision and swept else ""
        return single_line(
            f"{count(len(found.judges), 'judge')} on {count(found.items, 'item')}{groups}, options "
            f"{', '.join(self.record.response_sets.options)}{use}."
        )

    def _forest(self) -> Figure:
        own, pick = self._decider, self.record.selection.pick
        every = ranked(own)
        lines = [
            Estimate(one.judge, one.value, one.interval.low, one.interval.high, main=one.judge == pick)
            for place, one in enumerate(every)
            if place < MOST_DRAWN or one.judge == pick
        ]
        name = plain_name(own.name)
        rest = f"; {len(lines)} of {len(every)} judges, all are in the tables" if len(lines) < len(every) else ""
        plot = forest("judges", lines, f"{name} of each judge", measure=name, from_zero=False)
        return Figure(plot, f"{name[:1].upper()}{name[1:]} with its 95\u00a0% interval{rest}.")

    def _judges(self) -> TextTable:
        """The judges by the measure that decides, each beside the pick."""
        found, own = self.record.selection, self._decider
        rivals = {rival.judge: rival for rival in found.rivals}
        rows = [
            (
                one.judge, statistic(one.value), ends(one.interval), percent(one.best),
                *(("", "", "") if (rival := rivals.get(one.judge)) is None else (
                    statistic(rival.lead, signed=True), ends(rival.interval),
                    "sets known" if found.sets_known else interval(rival.low, rival.high))),
            )
            for one in ranked(own)
        ]  # fmt: skip
        head = ("judge", plain_name(own.name), "95 %", "best in", "lead of the pick", "95 %", "over all response sets")
        return TextTable(head, rows, f"Judges by {plain_name(own.name)}, which decides", own=[0])

    def _matrix(self) -> TextTable:
        """Every measure of every judge with its interval, the best judge first; the pick in bold."""
        results = self.record.selection.results
        rows = []
        for name in self._order:
            figures = [(one, next(own for own in one.figures if own.judge == name)) for one in results]
            spans = [ends(own.interval, 2).replace(" ", "\u00a0") for _, own in figures]  # a line breaks before it
            cells = [f"{statistic(own.value)} ({span})" for span, (_, own) in zip(spans, figures, strict=True)]
            kept = [strong(cell) if one.pick == name else cell for cell, (one, _) in zip(cells, figures, strict=True)]
            rows.append((name, *kept))
        head = [f"{plain_name(one.name)} {'↑' if one.higher_is_better else '↓'} {one.sides}" for one in results]
        caption = (
            "Every measure with its 95 % interval, its pick in bold; ↑ higher is better, ↓ lower is. It compares judge/"
            "people by mode (h), shares of choices (s), options above the threshold (hrs) or shares of sets (srs)"
        )
        return TextTable(("judge", *head), rows, caption, style="wrapped", own=[0])

    def _best(self) -> TextTable:
        """The share of draws in which each judge is the best by each measure."""
        results = self.record.selection.results
        shares = [{own.judge: percent(own.best) for own in one.figures} for one in results]
        rows = [(name, *(own[name] for own in shares)) for name in self._order]
        head = ("best by", *(plain_name(one.name) for one in results))
        return TextTable(head, rows, "Share of draws in which each judge is the best", own=[0])

    def _picks(self) -> TextTable:
        """The pick of each measure, its corrected value, and its value downstream."""
        used = self.record.decision is not None
        more = ("in use", "regret", "95 %", "expected", "rank correlation", "95 %") if used else ()
        rows = []
        for one in self.record.selection.results:
            value = next((own.value for own in one.figures if own.judge == one.pick), math.nan)
            name, pick = plain_name(one.name), Cell(single_line(one.pick) or "none", "prose")
            if one.name == DOWNSTREAM[1]:  # the correction is one of its size
                name, value = f"size of {name}", abs(value)
            figures = (
                statistic(one.downstream), statistic(one.regret), ends(one.regret_interval),
                statistic(one.expected_regret), statistic(one.rank_correlation, 2), ends(one.rank_interval, 2),
            )  # fmt: skip
            rows.append((name, pick, statistic(value), statistic(one.corrected), *(figures if used else ())))
        caption = "Choosing by each measure" + (
            ": the pick's decision consistency in use, and its regret" if used else ""
        )
        return TextTable(("measure", Cell("pick", "prose"), "value", "corrected", *more), rows, caption, left=2)

    def _violations(self) -> list[Block]:
        by = plain_name(self.record.selection.by)
        lines = [
            f"By hit rate {one.better[0]} judges item {one.better[1]} better ({statistic(one.first[0], 2)}) than "
            f"{f'{one.worse[0]} judges ' * (one.worse[0] != one.better[0])}item {one.worse[1]} "
            f"({statistic(one.first[1], 2)}); by {by} it is the other way "
            f"round ({statistic(one.second[0], 2)} and {statistic(one.second[1], 2)})."
            for one in self.record.selection.violations
        ]
        return [Items(list(map(single_line, lines)))] if lines else []

    def _disagreements(self) -> list[Block]:
        clinic = self.record.clinic
        if clinic is None or not clinic.cases:
            return []
        kinds = Counter[str](case.kind for case in clinic.cases)
        named = clinic.split is not None
        rows = [
            (str(case.item), case.kind, case.judge, *(Cell(t, "prose") for t in (said_by(case, named), case.reason)))
            for case in clinic.cases[:MOST_CASES]
        ]
        shown = f", the first {MOST_CASES}" if len(clinic.cases) > MOST_CASES else ""
        caption = f"{count(len(clinic.cases))} of {count(clinic.items, 'item')}{shown}"
        return [
            Paragraph(single_line(" ".join((*self._asked(clinic), policies(clinic.split))))),
            Terms([(f"{kind} ({kinds[kind]})", [KINDS[kind]]) for kind in KINDS if kinds[kind]], "glossary"),
            TextTable(
                ("item", "likely reason", "judge", Cell("people", "prose"), Cell("why", "prose")), rows, caption, left=5
            ),
        ]

    def _asked(self, clinic: Clinic) -> Iterator[str]:
        """The question that the clinic puts to each item, in sentences."""
        if self.record.decision is None:
            yield "Compared is what each side chose most often; raters may find the judge's choice right all the same."
        else:
            positive = " or ".join(self.record.decision.positive)
            yield (
                f"Compared is what each side says most often, {positive}, or not, whatever the threshold and beta. A "
                f"choice counts as it was given, a response set as {positive} if it holds that."
            )
        if clinic.ties:
            tied = count(clinic.ties, "item")
            yield f"On {tied} a side is tied between answers, one of which the other gives too: no difference."

    def _replacing(self) -> list[Block]:
        rows = [
            (name, percent(test.winning_rate), percent(test.advantage_probability), "yes" if test.passed else "no")
            for name, test in self.record.replacing.items()
        ]
        text = (
            "The alternative-annotator test: each rater is left out in turn, and the judge may replace the rater if it "
            "is nearer to the others, with .2 (epsilon) allowed for what people cost. A judge passes with half of the "
            "raters. It asks if the judge does as well as a rater does, not how good it is: where raters are few and "
            "disagree, a weak judge passes too. So it ranks no judges."
        )
        head = ("judge", "raters it may replace", "at least as near as a rater", "passes")
        return [Paragraph(text), TextTable(head, rows, "In place of a rater", style="narrow")] if rows else []


def policies(split: RaterSplit | None) -> str:
    """The test for two policies of raters, and its result, in a sentence."""
    if split is None:
        return "Raters were not tested for two policies: counts do not say who rated."
    if not math.isfinite(split.p_value):
        return "Raters were not tested for two policies: that takes four who disagree."
    tested = p_stated(split.p_value)
    if not split.found:
        return f"Raters were tested for two policies, which were not found ({tested})."
    groups = " and ".join(", ".join(map(str, names)) for names in split.groups)
    return f"Raters follow two policies ({tested}): {groups}."


def said_by(case: DisagreementCase, named: bool) -> str:
    """Each option that people gave, with the first of those who did, or with their number where they have no names."""
    if not named:
        return "; ".join(f"{option}: {len(names)}" for option, names in case.raters)
    several = ((option, list(map(str, names))) for option, names in case.raters)
    return "; ".join(f"{option}: {', '.join(names[:4])}{', …' * (len(names) > 4)}" for option, names in several)
