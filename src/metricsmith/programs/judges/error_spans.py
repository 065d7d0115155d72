"""Errors as a model lists them, and as spans with a place in the text that they quote: there, back, and in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from metricsmith.meta_evaluation.spans import locate_spans, occurrence_of
from metricsmith.metric import RowText
from metricsmith.mqm import TAXONOMY
from metricsmith.programs.texts import unfenced
from metricsmith.records import ErrorSpan
from metricsmith.signatures.mqm import TranslationError

__all__ = ["ERROR_TYPES", "in_words", "marked", "quoted"]

ERROR_TYPES = "\n".join(f"{name}: {', '.join(kinds)}" if kinds else name for name, kinds in TAXONOMY.items())
QUOTATION_MARKS = frozenset("\"'`´„“”‟‚‘’‛«»‹›「」『』")


def marked(errors: Sequence[TranslationError], severity: str, source: str, translation: str) -> list[ErrorSpan]:
    """The errors of one severity as spans, in the order given.

    A quotation is looked for letter by letter, case included. Where it does not occur like that, what a model puts
    around a quotation is taken off, layer by layer: the marks of a fenced text, white space, quotation marks.

    Parameters
    ----------
    errors : sequence of TranslationError
        ``in_source`` says which of the two texts is quoted. An ``occurrence`` beyond the last stands for the last,
        one below 1 for the first; occurrences may overlap.
    severity : str
        Of all of them.
    source, translation : str
        The texts as they are, without marks.

    Returns
    -------
    list of ErrorSpan
        Of the same length. A span that was found has offsets, and its text is what stands there. One that was not
        found, or is empty, has none and keeps its text as quoted.
    """
    return [
        _located(
            ErrorSpan(
                severity, _category(error.type), text=error.span, side="source" if error.in_source else "target",
                description=error.description,
            ),
            source if error.in_source else translation,
            error.occurrence,
        )
        for error in errors
    ]  # fmt: skip


def quoted(span: ErrorSpan, text: RowText) -> TranslationError:
    """A marked error as a model would have to list it; an error that nobody described has its category instead."""
    whole = text.input if span.side == "source" else text.output
    return TranslationError(
        span=span.text,
        occurrence=1 if span.start is None or not span.text else occurrence_of(span.text, whole, span.start),
        in_source=span.side == "source",
        type=span.category,
        description=span.description or span.category,
    )


def in_words(span: ErrorSpan) -> str:
    """An error in one line: severity, category, the words marked, what is wrong."""
    where = f" «{span.text}»" if span.text else ""
    said = f": {span.description.strip().rstrip('.')}" if span.description.strip() else ""
    return f"{span.severity} {span.category}{where}{' in the source' if span.side == 'source' else ''}{said}"


def _category(kind: str) -> str:
    """A type with a slash between category and sub-category, whatever a model has put there, if both are known."""
    parts = [part.strip().lower() for part in re.split(r"[/,:;>]", kind)]
    known = len(parts) == 2 and parts[1] in TAXONOMY.get(parts[0], ())
    return "/".join(parts) if known and "/" not in kind else kind


def _located(span: ErrorSpan, text: str, occurrence: int) -> ErrorSpan:
    for reading in _readings(span.text):
        found = locate_spans([replace(span, text=reading, side="target")], text, policy="all").spans
        if found:
            return replace(found[min(max(occurrence, 1), len(found)) - 1], side=span.side)
    return span


def _readings(quotation: str) -> Iterator[str]:
    """What a quotation may mean: itself, then with one layer after the other taken off."""
    yield quotation
    text = unfenced(quotation)
    while text:
        yield text
        bare = text[text[0] in QUOTATION_MARKS : len(text) - (text[-1] in QUOTATION_MARKS)].strip()
        if bare == text:
            return
        text = bare
