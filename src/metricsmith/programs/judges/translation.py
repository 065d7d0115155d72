"""The base of judges of translations: languages, texts under a translator's names, and errors as spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import pydantic

from metricsmith.errors import OptionError, nearest
from metricsmith.meta_evaluation.spans import locate_spans, occurrence_of
from metricsmith.metric import NOTHING, RowText, content_hash, fence, unfenced
from metricsmith.model_calls.adapters import adapter_name
from metricsmith.mqm import TAXONOMY, severity_name
from metricsmith.programs import schema
from metricsmith.programs.judges.base import Judge
from metricsmith.records import ErrorSpan, MetricCard
from metricsmith.signatures.translation import NamedError, TranslationError

__all__ = [
    "ERROR_TYPES",
    "Context",
    "TranslationJudge",
    "in_words",
    "listed_errors",
    "located_errors",
    "quoted",
    "spans_of",
]

Context = Literal["document", "none"]
CONTEXTS: tuple[str, ...] = get_args(Context)
UNSOURCED = "the row has no source text: give it as input"


class TranslationJudge(Judge):
    """A judge of translations: ``input`` is the source, ``output`` its translation, ``context`` the whole document.

    A row without a source is skipped and costs nothing. An empty translation is judged. Languages have no default: a
    judge that is not told the target language cannot see that a text is in another.

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
        """The two languages, and the types of errors where the model is asked for errors."""
        languages = {name: str(self.settings.values[name]) for name in ("source_language", "target_language")}
        return languages | ({"error_types": ERROR_TYPES} if "error_types" in self.signature.input_fields else {})

    @property
    def standing(self) -> Mapping[str, str]:
        """The question, and that there is no document where none is shown."""
        document = {"document": NOTHING} if self.settings.context == "none" else {}
        return {**self.question(), **document}

    def texts(self, text: RowText) -> Mapping[str, str]:
        """Document, source and translation."""
        return {
            "document": fence(text.context) if self.settings.context == "document" else NOTHING,
            "source": fence(text.input),
            "translation": fence(text.output) if text.output else "(the translation is empty)",
        }

    @property
    def request(self) -> Mapping[str, Any]:
        """Settings that each request carries besides those of the model.

        Raises
        ------
        OptionError
            Where errors are wanted under DSPy's BAMLAdapter, which cannot write down lists of one kind of item.
        """
        if "errors" in self.signature.output_fields and adapter_name() == "baml":
            raise OptionError(
                f"{self.name!r} wants errors in a list for each severity, which dspy.BAMLAdapter takes for a list that "
                "contains itself; put dspy.ChatAdapter(), dspy.JSONAdapter() or dspy.XMLAdapter() in force: "
                "dspy.context(adapter=...)"
            )
        return super().request

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


ERROR_TYPES = "\n".join(f"{name}: {', '.join(kinds)}" if kinds else name for name, kinds in TAXONOMY.items())
NONE: Mapping[str, str] = MappingProxyType({})
QUOTATION_MARKS = frozenset("\"'`´„“”‟‚‘’‛«»‹›「」『』")


def located_errors(
    errors: Sequence[TranslationError | NamedError], severity: str, source: str, translation: str
) -> list[ErrorSpan]:
    """The errors of one severity as spans, in the order given.

    A quotation is looked for letter by letter, case included. Where it does not occur like that, the marks around it
    are taken off, layer by layer: those of a fenced text, white space, quotation marks. Guessing at similar words would
    put errors where the model saw none.

    Parameters
    ----------
    errors : sequence of TranslationError or NamedError
        ``in_source`` says which of the two texts is quoted. An ``occurrence`` beyond the last stands for the last,
        one below 1 for the first; occurrences may overlap. A `NamedError` quotes nothing and has no place.
    severity : str
        Of all of them.
    source, translation : str
        The texts as they are, without marks.

    Returns
    -------
    list of ErrorSpan
        Of the same length. A span that was found has offsets, and its text is the one that stands there. One that was
        not found, or is empty, has none and keeps its text as quoted.
    """
    spans = []
    for error in errors:
        parts = [part.strip().lower() for part in re.split(r"[/,:;>]", error.type)]
        known = len(parts) == 2 and parts[1] in TAXONOMY.get(parts[0], ())  # with another mark than a slash between
        category = "/".join(parts) if known and "/" not in error.type else error.type
        if isinstance(error, NamedError):
            spans.append(ErrorSpan(severity, category, description=error.description))
            continue
        side, whole = ("source", source) if error.in_source else ("target", translation)
        span = ErrorSpan(severity, category, text=error.span, side=side, description=error.description)
        for reading in _readings(span.text):
            found = locate_spans([replace(span, text=reading, side="target")], whole, policy="all").spans
            if found:
                span = replace(found[min(max(error.occurrence, 1), len(found)) - 1], side=side)
                break
        spans.append(span)
    return spans


def spans_of(errors: pydantic.BaseModel, text: RowText) -> tuple[ErrorSpan, ...]:
    """The errors of an answer that has a list of them for each severity, in the order of its lists.

    An entry that says that there is no error makes the answer unusable, since it is neither an error nor an empty list.
    """
    return tuple(
        span
        for severity in type(errors).model_fields
        for span in located_errors(getattr(errors, severity), severity, text.input, text.output)
    )


def listed_errors(
    spans: Sequence[ErrorSpan], text: RowText, lists: type[pydantic.BaseModel], instead: Mapping[str, str] = NONE
) -> dict[str, list[TranslationError]]:
    """Marked errors as a model would have to list them, by severity.

    Parameters
    ----------
    spans : sequence of ErrorSpan
    text : RowText
    lists : pydantic model
        Its fields are the severities; errors of others are left out.
    instead : mapping of str to str
        The severity under which those of another one are listed.
    """
    errors: dict[str, list[TranslationError]] = {severity: [] for severity in lists.model_fields}
    for span in spans:
        severity = severity_name(span.severity)
        listed = errors.get(instead.get(severity, severity))
        if listed is not None:
            listed.append(quoted(span, text))
    return errors


def quoted(span: ErrorSpan, text: RowText) -> TranslationError:
    """A marked error as a model would have to list it; an error without a description has its category instead."""
    whole = text.input if span.side == "source" else text.output
    return TranslationError(
        span=span.text,
        occurrence=1 if span.start is None or not span.text else occurrence_of(span.text, whole, span.start),
        in_source=span.side == "source",
        type=span.category,
        description=span.description or span.category,
    )


def in_words(span: ErrorSpan) -> str:
    """An error in one line: severity, category, the words marked, the description."""
    where = f" «{span.text}»" if span.text else ""
    wrong = f": {span.description.strip().rstrip('.')}" if span.description.strip() else ""
    return f"{span.severity} {span.category}{where}{' in the source' if span.side == 'source' else ''}{wrong}"


def _readings(quotation: str) -> Iterator[str]:
    """The readings of a quotation: itself, then with one layer after the other taken off."""
    yield quotation
    text = unfenced(quotation)
    while text:
        yield text
        bare = text[text[0] in QUOTATION_MARKS : len(text) - (text[-1] in QUOTATION_MARKS)].strip()
        if bare == text:
            return
        text = bare
