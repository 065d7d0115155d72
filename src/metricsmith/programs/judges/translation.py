"""The base of judges of translations: languages, and the texts of a row under a translator's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from metricsmith.errors import OptionError, nearest
from metricsmith.metric import RowText, content_hash
from metricsmith.programs import schema
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.texts import NOTHING, fence
from metricsmith.records import MetricCard

__all__ = ["Context", "TranslationJudge"]

Context = Literal["document", "none"]
CONTEXTS: tuple[str, ...] = get_args(Context)
UNSOURCED = "the row has no source text: give it as input"


class TranslationJudge(Judge):
    """A judge of translations: ``input`` is the source, ``output`` its translation, ``context`` the whole document.

    A row without a source is skipped and costs nothing. An empty translation is judged.

    Parameters
    ----------
    name : str
        Column name.
    source_language, target_language : str
        The languages in plain words, say ``English`` and ``German``.
    context : "document" or "none"
        Whether the model is shown the row's context.
    **settings
        The settings of the subclass; ``meaning`` gives the meaning of its number in a sentence.

    Raises
    ------
    OptionError
        If a language is empty or `context` has no meaning.
    """

    judged: ClassVar[tuple[str, ...]] = ("source", "translation")
    saves: ClassVar[schema.Checks] = {
        **dict.fromkeys(("name", "source_language", "target_language"), schema.text(schema.NAME, 1)),
        "context": schema.one_of("document", "none"),
        "meaning": schema.text(),
    }

    def __init__(
        self, *, name: str, source_language: str, target_language: str, context: Context, **settings: Any
    ) -> None:
        for option, language in (("source_language", source_language), ("target_language", target_language)):
            if not isinstance(language, str) or not language.strip():
                raise OptionError(f"{option}={language!r} must name a language, say 'English'")
        if context not in CONTEXTS:
            raise OptionError(
                f"unknown context={context!r}{nearest(str(context), CONTEXTS)}; allowed are document, none"
            )
        super().__init__(
            name=name, source_language=source_language, target_language=target_language, context=context, **settings
        )

    @property
    def languages(self) -> str:
        """``English-German``, for names and cards."""
        return f"{self.settings.source_language}-{self.settings.target_language}"

    def question(self) -> Mapping[str, str]:
        """The two languages."""
        return {
            "source_language": str(self.settings.source_language),
            "target_language": str(self.settings.target_language),
        }

    def texts(self, text: RowText) -> Mapping[str, str]:
        """Document, source and translation."""
        return {
            "document": fence(text.context) if self.settings.context == "document" else NOTHING,
            "source": fence(text.input),
            "translation": fence(text.output) if text.output else "(the translation is empty)",
        }

    def fingerprint(self) -> str:
        """A hash as for every judge, with the texts that settings stand for by name alone, such as a scale's."""
        return content_hash(super().fingerprint(), dict(self.question()))

    def card_with(self, **own: Any) -> MetricCard:
        """A card with the fields that are equal for every judge of translations."""
        given = {"needs": ("input", "model"), "tasks": (f"translation, {self.languages}",), "multi_reference": ""}
        return super().card_with(**(given | own))

    def lacking(self, text: RowText) -> str:
        """The text that a row lacks to be judged; empty if it has all."""
        return "" if text.input.strip() else UNSOURCED
