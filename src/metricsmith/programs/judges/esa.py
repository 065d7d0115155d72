"""Error span annotation: a model marks the errors of a translation, then rates it as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dspy

from metricsmith.errors import DataError
from metricsmith.metric import RowText, row_text
from metricsmith.programs.judges.translation import (
    ERROR_TYPES,
    Context,
    TranslationJudge,
    in_words,
    listed_errors,
    spans_of,
)
from metricsmith.records import MetricCard, Scale
from metricsmith.signatures.direct_assessment import MajorAndMinor, MarkAndAssess

__all__ = ["ESAJudge"]


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

    def question(self) -> Mapping[str, str]:
        """Languages and error types."""
        return {**super().question(), "error_types": ERROR_TYPES}

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
