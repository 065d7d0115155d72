"""MQM judging: a model marks the errors of a translation, several times, and the runs are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import dspy

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import Metric, RowText, row_text
from metricsmith.mqm import MQMWeights, SharedError, mqm_score, shared_errors, span_weight
from metricsmith.programs import schema
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.judges.translation import (
    Context,
    TranslationJudge,
    in_words,
    listed_errors,
    spans_of,
)
from metricsmith.records import Judgement, MetricCard, Output, Scale
from metricsmith.signatures.translation import AnnotateErrors, ErrorsBySeverity, TranslationError
from metricsmith.stats.aggregation import TWO_SIGMA, Aggregate, OutlierRule, rrwa

__all__ = ["MQMAnnotator", "MQMJudge"]

SHARE = 0.5  # of the kept runs that must have found an error for it to be told
MOST_TOLD = 12  # errors in a feedback; all are in the spans

WORKED = RowText(
    input="Keep the valve closed while the tank is being filled. Check the valve again once the tank is full.",
    output=(
        "Halten Sie das Ventil offen, während der Tank gefüllt wird. Prüfen Sie das Ventil wieder , sobald das Ventil "
        "voll ist."
    ),
    context=(
        "Filling the tank\nKeep the valve closed while the tank is being filled. Check the valve again once the tank "
        "is full.\nNever leave the tank unattended."
    ),
)
WORKED_ERRORS = ErrorsBySeverity(
    critical=[
        TranslationError(
            span="offen", type="accuracy/mistranslation", description="Tells to keep the valve open instead of closed."
        )
    ],
    major=[
        TranslationError(
            span="das Ventil",
            occurrence=3,
            type="accuracy/mistranslation",
            description="It is the tank that becomes full, not the valve.",
        )
    ],
    minor=[TranslationError(span=" ,", type="fluency/punctuation", description="Space before the comma.")],
)

WEIGHTS = schema.made(
    schema.keys(
        **dict.fromkeys(("critical", "major", "minor", "neutral"), schema.number(0)),
        **dict.fromkeys(("non_translation", "cap"), schema.maybe(schema.number(0))),
        rules=schema.list_of(
            schema.keys(severity=schema.text(schema.NAME), category=schema.text(schema.NAME), weight=schema.number(0))
        ),
        max_errors=schema.maybe(schema.number(1, schema.NUMBERS, whole=True)),
    ),
    MQMWeights.from_dict,
)


class MQMAnnotator(TranslationJudge):
    """One run of MQM: a model marks errors by severity, and their weights make the number (GEMBA-MQM V2, section 3).

    ``raw`` is the negated sum of the weights, 0 without errors; ``score`` is ``m / (m - raw)`` with m the weight of a
    major error, so that one major error scores .5. ``spans`` holds the errors, with offsets where the words that the
    model quotes stand in the text. An answer without its three lists is a failure, never a text without errors.

    Parameters
    ----------
    source_language, target_language : str
        The languages in plain words, say ``English`` and ``German``.
    weights : MQMWeights
        The cost of each error.
    context : "document" or "none"
        Whether the model is shown the row's context, which is to be the whole source document.
    temperature : float, optional
        Of each request; None leaves the model's own. It is saved, since other runs would give other numbers.
    worked_example : bool
        Whether the prompt begins with a worked example, from English into German whatever the languages are. It is
        left out for the very text that it shows.
    name : str
        Column name.

    Raises
    ------
    OptionError
        If an argument has no meaning.
    """

    kind = "mqm_annotator"
    signature = AnnotateErrors
    saves: ClassVar[schema.Checks] = {
        **TranslationJudge.saves, "weights": WEIGHTS, "temperature": schema.maybe(schema.number(0, 2)),
        "worked_example": schema.FLAG,
    }  # fmt: skip

    def __init__(
        self,
        *,
        source_language: str,
        target_language: str,
        weights: MQMWeights | Mapping[str, Any] | None = None,
        context: Context = "document",
        temperature: float | None = 0.4,
        worked_example: bool = True,
        name: str = "mqm_run",
        meaning: str = "errors in the translation, weighed by how much harm they do",
    ) -> None:
        costs = MQMWeights.from_dict(weights) if isinstance(weights, Mapping) else weights
        if costs is not None and not isinstance(costs, MQMWeights):
            raise OptionError(f"weights={weights!r} are no MQMWeights; say MQMWeights.gemba() or MQMWeights.wmt()")
        if temperature is not None and not 0 <= temperature <= 2:
            raise OptionError(f"temperature={temperature!r} must lie between 0 and 2, or be None for the model's own")
        super().__init__(
            name=name, source_language=source_language, target_language=target_language, context=context,
            weights=(costs or MQMWeights.gemba()).to_dict(), temperature=temperature, worked_example=worked_example,
            meaning=meaning,
        )  # fmt: skip
        if worked_example:
            shown = {**self.question(), **self.texts(WORKED), "source_language": "English", "target_language": "German"}
            self.judge.demos = [dspy.Example(**shown, errors=WORKED_ERRORS)]

    @property
    def weights(self) -> MQMWeights:
        """The cost of each error."""
        return MQMWeights.from_dict(self.settings.weights)

    @property
    def scale(self) -> Scale:
        """From 0, no error, down to the cap, or to four times the gravest error; without a cap MQM itself goes on."""
        weights = self.weights
        return Scale(-(weights.cap or 4 * max(weights.critical, weights.major, weights.minor, 1.0)), 0.0)

    @property
    def output(self) -> Output:
        """0 and below, higher is better."""
        weights = self.weights
        low = None if weights.cap is None else -weights.cap
        return Output(self.name, low, 0.0, half=weights.major or 1.0, description=str(self.settings.meaning))

    @property
    def request(self) -> Mapping[str, Any]:
        """The temperature."""
        temperature = self.settings.temperature
        return super().request if temperature is None else {**super().request, "temperature": float(temperature)}

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Locate the errors and add up their weights."""
        spans = spans_of(answer.errors, text)
        raw = mqm_score(spans, self.weights)
        feedback = "; ".join(map(in_words, spans)) or "No error was found."
        return dspy.Prediction(score=self.output.score(raw), raw=raw, feedback=feedback, spans=spans)

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """A row with marked errors as a demo.

        Parameters
        ----------
        row : dspy.Example
            Its ``spans`` are the errors, as `read_wmt_mqm` gives them; an empty tuple says that there is none. Errors
            of severity neutral are left out.
        rating, reason
            Not shown: the number follows from the errors.

        Raises
        ------
        DataError
            If the row has no ``spans``.
        """
        spans = row.get("spans")
        if spans is None:
            raise DataError(
                f"row {row.get('id', '')!r} has no marked errors under 'spans', from which to learn: give rows "
                "with ErrorSpans, or tune another kind of judge"
            )
        text = row_text(row)
        errors = ErrorsBySeverity(**listed_errors(spans, text, ErrorsBySeverity))
        return dspy.Example(**self.question(), **self.texts(text), errors=errors)  # type: ignore[no-any-return]

    def past_number(self, one: HistoricalRating, history: History) -> float:
        """Nothing: the number follows from the errors."""
        return 0.0

    def past(self, one: HistoricalRating) -> dict[str, Any]:
        """The errors of a rating, those without a description in words without one."""
        demo = super().past(one)
        listed = demo["errors"].model_dump()
        for error in (error for errors in listed.values() for error in errors):
            if error["description"] == error["type"]:  # which `quoted` puts in its place
                del error["description"]
        return {**demo, "errors": listed}

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        weights = self.weights
        costs = f"{weights.critical:g}, {weights.major:g} and {weights.minor:g} for a critical, major and minor error"
        rules = "".join(f", {rule.weight:g} for {rule.severity} {rule.category}" for rule in weights.rules)
        return self.card_with(
            name=f"MQM errors ({self.languages})",
            summary="A language model marks the errors of a translation by severity and type; no reference is needed.",
            formula=f"Minus the sum of the weights of all errors: {costs}{rules}.",
            domains=("machine translation",),
            best_for=("Comparing translations and systems, with the errors to show for it",),
            not_for=("Texts that are no translations",),
            limits=(
                "One run alone varies a lot from the next; take MQMJudge for a number to rely on",
                "Models tend to mark errors that are none",
                "Longer texts have more room for errors: compare the same segments only",
            ),
            failure_cases=("Languages that the model knows little of", "Errors that only the next segment gives away"),
            related=("mqm",),
            papers=("GEMBA-MQM V2 (Junczys-Dowmunt, 2025)", "Experts, Errors, and Context (Freitag et al., 2021)"),
        )


class MQMJudge(Repeated):
    """MQM by several runs, combined (GEMBA-MQM V2): by default ten, by a reciprocal-rank weighted average.

    A row's ``input`` is one segment of the source, its ``output`` the translation, its ``context`` the whole source
    document; `metricsmith.datasets.segments` makes rows out of documents. ``raw`` is the aggregate of the runs'
    negated MQM sums. ``spans`` holds the errors that at least half of the kept runs found; the feedback tells them,
    worst first, after how many runs the number rests on. A run that cannot be read is missing, and below `min_runs`
    there is no number.

    The annotator is a student that optimisers can tune; the judge sends nothing itself. So a store keeps runs, and
    other aggregates of the same runs cost nothing.

    Parameters
    ----------
    source_language, target_language, weights, context, temperature
        As for `MQMAnnotator`, of which the runs are. The temperature must be above .15, so that runs differ.
    runs, aggregate, outliers, min_runs, stop_when
        As for `Repeated`.
    name : str
        Column name.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    Examples
    --------
    >>> MQMJudge(source_language="English", target_language="German").card.name
    'MQM (English-German, rrwa of 10 runs)'
    """

    kind = "mqm_judge"
    repeats = ("mqm_annotator",)
    tells_nearest = False  # the errors that several runs share are told instead
    judge: MQMAnnotator

    def __init__(
        self,
        *,
        source_language: str,
        target_language: str,
        weights: MQMWeights | None = None,
        runs: int = 10,
        aggregate: Aggregate | str = rrwa,
        temperature: float | None = 0.4,
        context: Context = "document",
        outliers: OutlierRule | None = TWO_SIGMA,
        min_runs: int | None = None,
        stop_when: float | None = None,
        name: str = "mqm",
    ) -> None:
        annotator = MQMAnnotator(
            source_language=source_language, target_language=target_language, weights=weights, context=context,
            temperature=temperature,
        )  # fmt: skip
        super().__init__(annotator, runs, aggregate, name, outliers=outliers, min_runs=min_runs, stop_when=stop_when)

    @classmethod
    def of(
        cls,
        judge: Metric,
        runs: int = 10,
        aggregate: Aggregate | str = rrwa,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Runs of an annotator of one's own, such as a tuned one; the other arguments as for `Repeated`.

        Raises
        ------
        OptionError
            If `judge` is no annotator, or another argument has no meaning.
        """
        if not isinstance(judge, MQMAnnotator):
            raise OptionError(f"{judge!r} is no MQMAnnotator; for another judge take Repeated")
        made = cls.__new__(cls)  # the annotator has the languages that the constructor asks for
        Repeated.__init__(made, judge, runs, aggregate, name or "mqm", **options)
        return made

    @property
    def card(self) -> MetricCard:
        """The annotator's card, with the changes that repeating makes."""
        return replace(super().card, kind=self.kind, name=f"MQM ({self.judge.languages}, {self._manner})")

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """The judgement as of `Repeated`, with the errors that the kept runs share as its spans and reasons."""
        judgement = super().verdict(parts, run)
        if not judgement.ok:
            return judgement
        shared, runs = self.shared(parts), int(self.kept(parts).sum())
        told = "; ".join(f"{in_words(error.span)} ({error.found} of {runs} runs)" for error in shared[:MOST_TOLD])
        told += f"; {len(shared) - MOST_TOLD} more" if len(shared) > MOST_TOLD else ""
        found = f"at least half of them found: {told}" if shared else "at least half of them share no error"
        feedback = f"{judgement.feedback.removesuffix('.')}; {found}"
        return replace(judgement, feedback=feedback, spans=tuple(error.span for error in shared))

    def shared(self, parts: Sequence[Judgement]) -> tuple[SharedError, ...]:
        """The errors that at least half of the kept runs found, worst first by their weights."""
        runs = [part.spans for part, stays in zip(self.needed(parts), self.kept(parts), strict=True) if stays]
        found = shared_errors(runs, share=SHARE)
        return tuple(sorted(found, key=lambda error: -span_weight(error.span, self.judge.weights)))

    def prediction(self, judgement: Judgement) -> dspy.Prediction:
        """The prediction as of `Repeated`, with the errors as ``spans``."""
        prediction = super().prediction(judgement)
        prediction.spans = judgement.spans
        return prediction
