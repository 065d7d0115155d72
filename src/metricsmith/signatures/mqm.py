"""A translation in, its errors by severity out."""

from __future__ import annotations

import dspy
import pydantic

from metricsmith.signatures.base import ReviewedTranslation

__all__ = ["AnnotateErrors", "ErrorsBySeverity", "TranslationError"]

NO_TYPES = frozenset({"none", "no error", "no-error", "no errors", "n/a"})


class TranslationError(pydantic.BaseModel):
    """One error in a translation."""

    span: str = pydantic.Field(
        default="", description="the wrong words, copied letter by letter; empty where words are missing"
    )
    occurrence: int = pydantic.Field(
        default=1, description="where these words stand several times: which of them, counted from 1"
    )
    in_source: bool = pydantic.Field(
        default=False, description="true where the span is copied from the source, because nothing stands for it"
    )
    type: str = pydantic.Field(description="one of the error types, as category/subcategory")
    description: str = pydantic.Field(description="what is wrong, in one short sentence")

    @pydantic.field_validator("type")
    @classmethod
    def error(cls, value: str) -> str:
        """An entry that says that there is no error is neither an error nor an empty list."""
        if value.strip().lower().replace("_", " ") in NO_TYPES:
            raise ValueError("this is no type of error: where there is none, the list is empty")
        return value


class ErrorsBySeverity(pydantic.BaseModel):
    """The errors of one translation. All three lists are always there, and no other."""

    model_config = pydantic.ConfigDict(extra="forbid")  # errors in a list of another name would be lost

    critical: list[TranslationError]
    major: list[TranslationError]
    minor: list[TranslationError]


class AnnotateErrors(ReviewedTranslation):
    """Find the errors in a translation, as a professional reviser who answers for the text would.

    Compare source and translation word by word. An error is what the translation gets wrong: a fault of the source
    that is translated faithfully is none, nor is another good way to say the same. Enter each error once, under the
    gravest severity that is true of it:

    critical: a reader understands something false that matters, or nothing at all.
    major: the text stumbles or part of its meaning is off, but a reader gets what it is about.
    minor: a reader notices it, and understands everything as it is meant.

    Mark as few words as show the error. Where words of the source are left out, mark these. A text that has nothing
    to do with its source is one critical error of the type non-translation. Many translations have no error: then
    all three lists are empty.
    """

    error_types: str = dspy.InputField(desc="categories, each with its subcategories")
    errors: ErrorsBySeverity = dspy.OutputField(desc="every error, in the list of its severity")
