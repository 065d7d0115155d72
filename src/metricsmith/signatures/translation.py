"""A translation in; its errors by severity, a number on a scale, a class, or errors and a number out."""

from __future__ import annotations

from typing import Any, Literal

import dspy
import pydantic

from metricsmith.signatures.base import ReviewedTranslation

__all__ = [
    "AnnotateErrors", "AssessTranslation", "ClassifyTranslation", "ErrorsBySeverity", "MajorAndMinor",
    "MarkAndAssess", "NameErrors", "NamedError", "NamedErrors", "QualityClass", "QualityName", "TranslationError",
]  # fmt: skip

NO_TYPES = frozenset({"none", "no error", "no-error", "no errors", "n/a"})


def _is_error(value: str) -> str:
    """An entry that says that there is no error is neither an error nor an empty list."""
    if value.strip().lower().replace("_", " ") in NO_TYPES:
        raise ValueError("this is no type of error: where there is none, the list is empty")
    return value


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

    checked_type = pydantic.field_validator("type")(_is_error)


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


class NamedError(pydantic.BaseModel):
    """One error in a translation, without its place."""

    type: str = pydantic.Field(description="one of the error types, as category/subcategory")
    description: str = pydantic.Field(description="what is wrong, in a few words")

    checked_type = pydantic.field_validator("type")(_is_error)


class NamedErrors(pydantic.BaseModel):
    """The errors of one translation. All three lists are always there, and no other."""

    model_config = pydantic.ConfigDict(extra="forbid")

    critical: list[NamedError]
    major: list[NamedError]
    minor: list[NamedError]


class NameErrors(ReviewedTranslation):
    """Find the errors in a translation, as a professional reviser who answers for the text would.

    Compare source and translation word by word. An error is what the translation gets wrong: a fault of the source
    that is translated faithfully is none, nor is another good way to say the same. Enter each error once, under the
    gravest severity that is true of it:

    critical: a reader understands something false that matters, or nothing at all.
    major: the text stumbles or part of its meaning is off, but a reader gets what it is about.
    minor: a reader notices it, and understands everything as it is meant.

    Give the type of each error and say in a few words what is wrong; its place in the text is not asked for. A text
    that has nothing to do with its source is one critical error of the type non-translation. Many translations have
    no error: then all three lists are empty.
    """

    error_types: str = dspy.InputField(desc="categories, each with its subcategories")
    errors: NamedErrors = dspy.OutputField(desc="every error, in the list of its severity")


QualityName = Literal["lost", "fragmentary", "understandable", "sound", "flawless"]
"""From worst to best."""


# DSPy takes a plain Literal in its exact case only.
class QualityClass(pydantic.RootModel[QualityName]):
    """The name of one class."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def normalised(cls, value: Any) -> Any:
        """Case does not count, nor do white space and quotation marks around the name; anything else does."""
        return value.strip().strip("\"'`“”‘’").strip().lower() if isinstance(value, str) else value


class MajorAndMinor(pydantic.BaseModel):
    """The errors of one translation. Both lists are always there, and no other."""

    model_config = pydantic.ConfigDict(extra="forbid")

    major: list[TranslationError]
    minor: list[TranslationError]


class _Assessed(ReviewedTranslation):
    """One translation to be assessed as a whole, beside translations by people."""

    references: str = dspy.InputField(desc="translations of the source by people; there may be other good ones")
    reasoning: str = dspy.OutputField(desc="what decides the matter, in one to three sentences")


class AssessTranslation(_Assessed):
    """Rate one translation with a number on the given scale, as somebody would who reads both languages with ease.

    Hold the translation against its source: does it say all that the source says, nothing else, and in language that
    readers of such texts expect? Good translations of one text differ; do not count it against this one that you
    would have put it in other words. Name what decides the matter before you give the number, and use the whole
    scale, also between the points that are described.
    """

    scale: str = dspy.InputField(desc="which numbers there are, and what they stand for")
    score: float = dspy.OutputField(desc="a number on the scale, digits only")


class ClassifyTranslation(_Assessed):
    """Put one translation into one of five classes, as somebody would who reads both languages with ease.

    Hold the translation against its source: does it say all that the source says, nothing else, and in language that
    readers of such texts expect? Good translations of one text differ; do not count it against this one that you
    would have put it in other words. Name what decides the matter before you name the class; between two classes
    take the lower one.
    """

    scale: str = dspy.InputField(desc="the classes, from worst to best")
    quality: QualityClass = dspy.OutputField(desc="the name of the class and nothing else")


class MarkAndAssess(ReviewedTranslation):
    """Mark the errors in a translation, then say with a number from 0 to 100 how good it is as a whole.

    First the errors: compare source and translation word by word and enter each error once. What the translation
    renders faithfully is no error, even where the source itself is at fault, nor is another good way to say the same.

    major: part of the meaning is changed, lost or hard to make out, or the language is badly broken.
    minor: a reader notices the flaw, but the meaning stands.

    Mark as few words as show the error. Where words of the source are left out, mark these. Many translations have no
    error: then both lists are empty.

    Then the number, by what you have marked and how much it weighs in a text of this length: 0 is a translation from
    which nobody learns what the source says, 100 one that leaves nothing to correct.
    """

    error_types: str = dspy.InputField(desc="categories, each with its subcategories")
    errors: MajorAndMinor = dspy.OutputField(desc="every error, in the list of its severity")
    reasoning: str = dspy.OutputField(desc="what the errors do to the text as a whole, in one or two sentences")
    score: float = dspy.OutputField(desc="a number from 0 to 100, digits only")
