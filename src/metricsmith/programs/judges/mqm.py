"""MQM judging: a model marks the errors of a translation, several times, and the runs are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import dspy

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, OptionError, StateError
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
from metricsmith.programs.judges.worked_translation import WORKED, WORKED_ERRORS
from metricsmith.programs.kinds import asker_state
from metricsmith.records import ErrorSpan, Judgement, MetricCard, Output, Scale
from metricsmith.signatures.translation import (
    AnnotateErrors,
    ErrorsBySeverity,
    NamedErrors,
    NameErrors,
)
from metricsmith.stats.aggregation import TWO_SIGMA, Aggregate, OutlierRule, rrwa

__all__ = ["MQMAnnotator", "MQMJudge"]

SHARE = 0.5  # of the kept runs that must have found an error for it to be told
NO_SPANS = "No spans were asked for: error marks, errors that runs share, and character F1 are left out"
MOST_TOLD = 12  # errors in a feedback; all are in the spans

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
    spans : bool
        Whether the model quotes the words of each error. The paper asks for none: False asks for type, severity and
        description alone, in fewer tokens, and errors have no place in the text. Weights go by type and severity
        either way.
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
        spans: bool = True,
        name: str = "mqm_run",
        meaning: str = "errors in the translation, weighed by how much harm they do",
    ) -> None:
        costs = MQMWeights.from_dict(weights) if isinstance(weights, Mapping) else weights
        if costs is not None and not isinstance(costs, MQMWeights):
            raise OptionError(f"weights={weights!r} are no MQMWeights; say MQMWeights.gemba() or MQMWeights.wmt()")
        if temperature is not None and not 0 <= temperature <= 2:
            raise OptionError(f"temperature={temperature!r} must lie between 0 and 2, or be None for the model's own")
        self.signature = AnnotateErrors if spans else NameErrors
        super().__init__(
            name=name, source_language=source_language, target_language=target_language, context=context,
            weights=(costs or MQMWeights.gemba()).to_dict(), temperature=temperature, worked_example=worked_example,
            meaning=meaning, **({} if spans else {"spans": False}),
        )  # fmt: skip
        if worked_example:
            shown = {**self.question(), **self.texts(WORKED), "source_language": "English", "target_language": "German"}
            self.judge.demos = [dspy.Example(**shown, errors=self._listed(WORKED_ERRORS.model_dump()))]

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result; the answer's fields follow from `spans`, which stands there if False."""
        marked = asker_state(AnnotateErrors, **cls.saves)
        named = asker_state(NameErrors, **cls.saves, spans=schema.one_of(False))
        return lambda value, path: (marked if schema.inside(value, "state.settings.spans") is None else named)(
            value, path
        )

    @property
    def has_spans(self) -> bool:
        """True if errors are quoted and so have a place in the text; False for a judge made with ``spans=False``."""
        return bool(self.settings.values.get("spans", True))

    def question(self) -> Mapping[str, str]:
        """The two languages and the types of errors.

        Raises
        ------
        StateError
            If DSPy loaded the settings of a judge that was made with another `spans`.
        """
        if self.has_spans != (self.judge.signature.output_fields["errors"].annotation is ErrorsBySeverity):
            raise StateError(
                f"the loaded settings are those of a judge with spans={self.has_spans}, but this one was built with "
                "another: build it with that before its state is loaded, or use metricsmith.load"
            )
        return super().question()

    def _listed(self, errors: Mapping[str, Any]) -> ErrorsBySeverity | NamedErrors:
        """Errors as the model has to list them; without spans only type and description are left of each."""
        return (ErrorsBySeverity if self.has_spans else NamedErrors).model_validate(errors)

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
            of severity neutral are left out. Where the model quotes nothing, the words that an error without a
            description marks stand in the description.
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
        if not self.has_spans:
            spans = [replace(span, description=span.description or _marked_words(span)) for span in spans]
        listed = listed_errors(spans, text, ErrorsBySeverity)
        errors = self._listed({name: [error.model_dump() for error in own] for name, own in listed.items()})
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
            summary=f"A language model {'marks' if self.has_spans else 'names'} the errors of a translation by "
            "severity and type; no reference is needed.",
            formula=f"Minus the sum of the weights of all errors: {costs}{rules}.",
            domains=("machine translation",),
            best_for=("Comparing translations and systems, with the errors to show for it",),
            not_for=("Texts that are no translations",),
            limits=(
                "One run alone varies a lot from the next; take MQMJudge for a number to rely on",
                "Models tend to mark errors that are none",
                "Longer texts have more room for errors: compare the same segments only",
                *(() if self.has_spans else (NO_SPANS,)),
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

    Without spans errors have no place by which runs could share them: ``spans`` is empty and left out of the
    prediction, and the feedback tells the errors of the run nearest to the aggregate instead.

    The annotator is a student that optimisers can tune; the judge sends nothing itself. So a store keeps runs, and
    other aggregates of the same runs cost nothing.

    Parameters
    ----------
    source_language, target_language, weights, context, temperature, spans
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
        spans: bool = True,
        outliers: OutlierRule | None = TWO_SIGMA,
        min_runs: int | None = None,
        stop_when: float | None = None,
        name: str = "mqm",
    ) -> None:
        annotator = MQMAnnotator(
            source_language=source_language, target_language=target_language, weights=weights, context=context,
            temperature=temperature, spans=spans,
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

    @property
    def tells_nearest(self) -> bool:
        """False where the errors that several runs share are told instead."""
        return not self.judge.has_spans

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """The judgement as of `Repeated`, with the errors that the kept runs share as its spans and reasons."""
        judgement = super().verdict(parts, run)
        if not judgement.ok or not self.judge.has_spans:
            return judgement
        shared, runs = self.shared(parts), int(self.kept(parts).sum())
        told = "; ".join(f"{in_words(error.span)} ({error.found} of {runs} runs)" for error in shared[:MOST_TOLD])
        told += f"; {len(shared) - MOST_TOLD} more" if len(shared) > MOST_TOLD else ""
        found = f"at least half of them found: {told}" if shared else "at least half of them share no error"
        feedback = f"{judgement.feedback.removesuffix('.')}; {found}"
        return replace(judgement, feedback=feedback, spans=tuple(error.span for error in shared))

    def shared(self, parts: Sequence[Judgement]) -> tuple[SharedError, ...]:
        """The errors that at least half of the kept runs found, worst first by their weights.

        Raises
        ------
        OptionError
            If the runs were not asked for spans, by which errors are matched.
        """
        if not self.judge.has_spans:
            raise OptionError(f"{self.name}: spans=False: errors without a place are not matched; take spans=True")
        runs = [part.spans for part, stays in zip(self.needed(parts), self.kept(parts), strict=True) if stays]
        found = shared_errors(runs, share=SHARE)
        return tuple(sorted(found, key=lambda error: -span_weight(error.span, self.judge.weights)))

    def prediction(self, judgement: Judgement) -> dspy.Prediction:
        """The prediction as of `Repeated`, with the shared errors as ``spans`` where there are spans."""
        prediction = super().prediction(judgement)
        if self.judge.has_spans:
            prediction.spans = judgement.spans
        return prediction


def _marked_words(span: ErrorSpan) -> str:
    """The words that an error marks, as a description; empty if it marks none."""
    return f"«{span.text}»{' in the source' if span.side == 'source' else ''}" if span.text else ""
