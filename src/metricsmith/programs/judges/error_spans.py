"""From the errors that a model lists to spans with a place in the text that they quote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from metricsmith.meta_evaluation.spans import locate_spans
from metricsmith.programs.texts import unfenced
from metricsmith.records import ErrorSpan
from metricsmith.signatures.mqm import TranslationError

__all__ = ["marked"]

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
                severity, error.type, text=error.span, side="source" if error.in_source else "target",
                description=error.description,
            ),
            source if error.in_source else translation,
            error.occurrence,
        )
        for error in errors
    ]  # fmt: skip


def _located(span: ErrorSpan, text: str, occurrence: int) -> ErrorSpan:
    for reading in _readings(span.text):
        found = locate_spans([replace(span, text=reading, side="target")], text, policy="all").spans
        if found:
            return replace(found[min(max(occurrence, 1), len(found)) - 1], side=span.side)
    return span


def _readings(quoted: str) -> Iterator[str]:
    """What a quotation may mean: itself, then with one layer after the other taken off."""
    yield quoted
    text = unfenced(quoted).strip()
    while text:
        yield text
        bare = text[text[0] in QUOTATION_MARKS : len(text) - (text[-1] in QUOTATION_MARKS)].strip()
        if bare == text:
            return
        text = bare
