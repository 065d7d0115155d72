"""Direct assessment: a model gives a translation one number, on one of the scales that GEMBA has published.

Ranges and the places of described points are the paper's. Questions, descriptions and names of classes are our own, so
that numbers are comparable in kind and not digit for digit.

Error span annotation is the same after the model has marked the errors of the translation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import dspy

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, JudgementFailed, OptionError, StateError, nearest
from metricsmith.metric import NOTHING, RowText, fenced_texts, row_text
from metricsmith.programs import schema
from metricsmith.programs.judges.translation import (
    Context,
    TranslationJudge,
    in_words,
    listed_errors,
    spans_of,
)
from metricsmith.programs.kinds import asker_state
from metricsmith.records import MetricCard, Scale, Status
from metricsmith.signatures.translation import (
    AssessTranslation,
    ClassifyTranslation,
    MajorAndMinor,
    MarkAndAssess,
    QualityName,
)

__all__ = ["AssessmentScale", "DirectAssessment", "ESAJudge"]

AssessmentScale = Literal["da", "sqm", "stars", "classes"]
CLASSES: tuple[str, ...] = get_args(QualityName)
UNREFERENCED = "the row has no reference: give it references, or take a judge with reference=False"


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way to ask: the numbers that there are, their description for the model, and the signature to fill in."""

    title: str
    scale: Scale
    description: str
    signature: type[dspy.Signature] = AssessTranslation


KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "da": _Kind(
            "direct assessment",
            Scale(0, 100),
            "any number from 0 to 100\n"
            "0: nothing of what the source says comes across\n"
            "100: all of it comes across, and the language is without fault",
        ),
        "sqm": _Kind(
            "scalar quality metric",
            Scale(0, 100),
            "any number from 0 to 100; four points are described\n"
            "0: a reader learns nothing of what the source says\n"
            "33: bits of it come through, the rest is missing or wrong\n"
            "66: nearly all of it comes through, with a few slips of language\n"
            "100: content and language leave nothing to correct",
        ),
        "stars": _Kind(
            "stars",
            Scale(1, 5, 1),
            "whole stars from 1 to 5\n"
            "1: of no use to somebody who cannot read the source\n"
            "5: ready to be published as it is",
        ),
        "classes": _Kind(
            "quality classes",
            Scale(0, 4, 1),
            "lost: nothing can be learned from it about the source\n"
            "fragmentary: parts of the content are there, but they make no sense together\n"
            "understandable: the message can be followed in spite of clear errors\n"
            "sound: the content is there but for trifles, and it reads well\n"
            "flawless: content and language leave nothing to correct",
            ClassifyTranslation,
        ),
    }
)


MOST_POINTS = 25  # of MQM, which leave nothing of 100


class DirectAssessment(TranslationJudge):
    """One number for one translation (GEMBA; Kocmi and Federmann, 2023, section 2).

    A row's ``input`` is the source, its ``output`` the translation, its ``context`` the whole document. A row without a
    source is skipped, and so is one without a reference if references are to be shown. An answer that is not on the
    scale is a failure: nothing is rounded, cut or guessed out of words. Reading the first or last digits would make 5
    of ``3.5 stars`` and of ``-5`` alike.

    Parameters
    ----------
    source_language, target_language : str
        The languages in plain words, say ``English`` and ``German``.
    scale : "da", "sqm", "stars" or "classes"
        ``da``: 0 to 100, the ends described. ``sqm``: 0 to 100, four points described. ``stars``: 1 to 5, whole ones.
        ``classes``: five described classes, whose ``raw`` is 0 for the worst to 4 for the best.
    reference : bool
        Whether the model is shown the row's references, all of them in the order given.
    context : "document" or "none"
        Whether the model is shown the row's context.
    name : str, optional
        Column name; by default the scale, with ``_ref`` where references are shown.
    meaning : str, optional
        The meaning of the number, in a sentence; by default made from the scale.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    Examples
    --------
    >>> judge = DirectAssessment(source_language="English", target_language="German", scale="sqm", reference=True)
    >>> judge.name, judge.output.high
    ('sqm_ref', 100)
    """

    kind = "direct_assessment"

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result; the answer's fields follow from the scale."""
        return schema.by_value(
            "state.settings.scale",
            {
                name: asker_state(one.signature, **cls.saves, scale=schema.one_of(name), reference=schema.FLAG)
                for name, one in KINDS.items()
            },
        )

    def __init__(
        self,
        *,
        source_language: str,
        target_language: str,
        scale: AssessmentScale = "da",
        reference: bool = False,
        context: Context = "document",
        name: str = "",
        meaning: str = "",
    ) -> None:
        if scale not in KINDS:
            raise OptionError(f"unknown scale={scale!r}{nearest(str(scale), KINDS)}; allowed are {', '.join(KINDS)}")
        if not isinstance(reference, bool):
            raise OptionError(f"reference={reference!r} must be True or False; references themselves belong to the row")
        self.signature = KINDS[scale].signature
        sight = "with" if reference else "without"
        super().__init__(
            name=name or (f"{scale}_ref" if reference else scale), source_language=source_language,
            target_language=target_language, context=context, scale=scale, reference=reference,
            meaning=meaning or f"quality of the translation by {KINDS[scale].title}, {sight} a reference",
        )  # fmt: skip

    @property
    def scale(self) -> Scale:
        """The numbers that there are; of the classes their places, from 0."""
        return self._kind.scale

    @property
    def _kind(self) -> _Kind:
        return KINDS[str(self.settings.scale)]

    def question(self) -> Mapping[str, str]:
        """Languages and scale.

        Raises
        ------
        StateError
            If DSPy loaded the settings of a judge that is asked for something else.
        """
        if self.judge.signature.output_fields.keys() != self._kind.signature.output_fields.keys():
            raise StateError(
                f"the loaded settings have scale={self.settings.scale!r}, but this judge was built for another answer: "
                "build it with that scale before its state is loaded, or use metricsmith.load"
            )
        return {**super().question(), "scale": self._kind.description}

    def texts(self, text: RowText) -> Mapping[str, str]:
        """Document, source, translation, and the references if they are to be shown."""
        references = fenced_texts(text)["references"] if self.settings.reference else NOTHING
        return {**super().texts(text), "references": references}

    def lacking(self, text: RowText) -> str:
        """The text that a row lacks: a source, and where references are to be shown one that is not blank."""
        unreferenced = self.settings.reference and not any(reference.strip() for reference in text.references)
        return super().lacking(text) or (UNREFERENCED if unreferenced else "")

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Read the model's answer; of a class, ``feedback`` begins with its name."""
        scale = self.scale
        if self._kind.signature is ClassifyTranslation:
            name = answer.quality.root
            raw = CLASSES.index(name)
            return dspy.Prediction(score=scale.unit(raw), raw=raw, feedback=f"{name}: {answer.reasoning}")
        prediction = super().read(answer, text)
        if scale.step is not None and (prediction.raw - scale.low) % scale.step:
            raise JudgementFailed(
                f"score {prediction.raw!r} is not on the scale {scale} in steps of {scale.step:g}", Status.OUT_OF_RANGE
            )
        return prediction

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """A rated row as a demo.

        Parameters
        ----------
        row, reason
            As for every judge.
        rating : float
            On the scale; of a class its place from 0. Between two stars or classes the nearer one is shown, of two
            equally near ones the lower.

        Raises
        ------
        DataError
            If the rating is not on the scale.
        """
        demo = super().example(row, rating, reason)
        if self.scale.step is None:
            return demo
        level = math.ceil(rating - 0.5)
        answer = {"quality": CLASSES[level]} if self._kind.signature is ClassifyTranslation else {"score": level}
        return dspy.Example(**{name: demo[name] for name in demo if name != "score"}, **answer)  # type: ignore[no-any-return]

    def past_number(self, one: HistoricalRating, history: History) -> float:
        """The rating; of an MQM score, 0 or below, from 0 to 100 what is left of 100 after four times its points.

        ``100 - 4 min(25, points)``, rounded: our own rule, with 25 points the weight of a text that is no translation.
        """
        points = history.scale is not None and history.scale.high == 0 and self.settings.scale in ("da", "sqm")
        if points and one.rating is not None:
            return round(100 - 4 * min(MOST_POINTS, -one.rating))
        return super().past_number(one, history)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        kind, reference = self._kind, self.settings.reference
        points = kind.description.replace("\n", "; ")
        needs = {"needs": ("input", "references", "model")} if reference else {}
        return self.card_with(
            name=f"{kind.title.capitalize()} ({self.languages}, {'with' if reference else 'without'} a reference)",
            summary=f"A language model gives a translation one number: {kind.title}, {kind.scale}.",
            formula=f"What the model gives after its reasons. {points}.",
            multi_reference="All references are shown, in the order given." if reference else "",
            domains=("machine translation",),
            best_for=("Ranking systems at the cost of one request a segment",),
            not_for=("Texts that are no translations", "Saying where a translation is wrong: ESAJudge marks errors"),
            limits=(
                "Models use few of the numbers that there are, so that many segments tie",
                "Numbers of different models, scales or languages cannot be compared with each other",
            ),
            failure_cases=("Languages that the model knows little of", "Texts beyond the model's context"),
            related=("esa", "mqm"),
            papers=(
                "Large language models are state-of-the-art evaluators of translation quality "
                "(Kocmi and Federmann, 2023), section 2",
            ),
            **needs,
        )


class ESAJudge(TranslationJudge):
    """Errors first, then a number from 0 to 100, in one answer (ESA; Kocmi et al., 2024).

    ``spans`` holds the errors, major ones first, with offsets where the words that the model quotes stand in the
    text; see `metricsmith.programs.judges.translation.located_errors`. The number is the model's own and does not
    follow from the errors. An answer without its two lists is a failure, never a text without errors.

    GEMBA asks for the number in a second request that repeats the first: one answer keeps that order at half the cost,
    and no number can be paired with the errors of another run. Errors have types, though the method's raters gave none:
    a type makes an error readable, and no number rests on it.

    Parameters
    ----------
    source_language, target_language : str
        The languages in plain words, say ``English`` and ``German``.
    context : "document" or "none"
        Whether the model is shown the row's context.
    name : str
        Column name.
    meaning : str
        The meaning of the number, in a sentence.

    Raises
    ------
    OptionError
        If an argument has no meaning.

    Examples
    --------
    >>> ESAJudge(source_language="English", target_language="German").output.high
    100
    """

    kind = "esa_judge"
    signature = MarkAndAssess

    def __init__(
        self,
        *,
        source_language: str,
        target_language: str,
        context: Context = "document",
        name: str = "esa",
        meaning: str = "quality of the translation, after its errors have been marked",
    ) -> None:
        super().__init__(
            name=name, source_language=source_language, target_language=target_language, context=context,
            meaning=meaning,
        )  # fmt: skip

    @property
    def scale(self) -> Scale:
        """0 to 100."""
        return Scale(0, 100)

    def read(self, answer: Any, text: RowText) -> dspy.Prediction:
        """Check the number and locate the errors; the feedback names them after the reasons."""
        prediction = super().read(answer, text)
        prediction.spans = spans_of(answer.errors, text)
        errors = "; ".join(map(in_words, prediction.spans))
        prediction.feedback = f"{prediction.feedback} Errors: {errors or 'none'}."
        return prediction

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """A rated row with marked errors as a demo.

        Parameters
        ----------
        row : dspy.Example
            Its ``spans`` are the errors, as `read_wmt_mqm` gives them; an empty tuple says that there is none. Critical
            ones are shown as major, neutral ones are left out.
        rating, reason
            As for every judge.

        Raises
        ------
        DataError
            If the rating is not on the scale, or the row has no ``spans``: an empty list would teach that there were no
            errors.
        """
        demo = super().example(row, rating, reason)
        spans = row.get("spans")
        if spans is None:
            raise DataError(
                f"row {row.get('id', '')!r} has no marked errors under 'spans', and an example without them would say "
                "that there are none: give ErrorSpans, or take DirectAssessment, which needs no errors"
            )
        listed = listed_errors(spans, row_text(row), MajorAndMinor, {"critical": "major"})  # ESA knows two severities
        errors = {severity: [error.model_dump() for error in own] for severity, own in listed.items()}
        return dspy.Example(**demo, errors=errors)  # type: ignore[no-any-return]

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        return self.card_with(
            name=f"Error span annotation ({self.languages})",
            summary="A language model marks the major and minor errors of a translation and then rates it from 0 to "
            "100; no reference is needed.",
            formula="The number from 0 to 100 that the model gives after it has marked the errors.",
            domains=("machine translation",),
            best_for=("Ranking translations by one request a segment, with the errors to show for it",),
            not_for=("Texts that are no translations", "Counting errors: the number need not agree with them"),
            limits=(
                "Models tend to mark errors that are none",
                "Numbers of different models or languages cannot be compared with each other",
            ),
            failure_cases=("Languages that the model knows little of", "Errors that only the next segment gives away"),
            related=("da", "mqm"),
            papers=(
                "Error span annotation (Kocmi et al., 2024)",
                "Large language models are state-of-the-art evaluators of translation quality "
                "(Kocmi and Federmann, 2023): its repository asks for errors and number one after the other",
            ),
        )
