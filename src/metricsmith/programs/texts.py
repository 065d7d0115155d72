"""How texts are shown to a model: fenced, so that what they say is data and never instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metricsmith.metric import RowText, content_hash

__all__ = ["fence", "shown"]

NOTHING = "(none)"


def fence(text: str) -> str:
    """Put `text` between marks that it cannot close itself: their code is a hash of the text.

    DSPy's own field marker is taken apart, so that a text cannot pose as another field. Empty text
    becomes a plain «(none)», which an actual text never shows without marks.
    """
    if not text:
        return NOTHING
    code = content_hash("fence", text)[:8]
    return f"«begin {code}»\n{text.replace('[[ ##', '[ [##')}\n«end {code}»"


def shown(text: RowText) -> Mapping[str, str]:
    """The four text fields of a judge's signature, all references in the order given."""
    return {
        "input": fence(text.input),
        "references": _fence_all(text.references),
        "context": fence(text.context),
        "output": fence(text.output) if text.output else "(the output is empty)",
    }


def _fence_all(references: Sequence[str]) -> str:
    return "\n".join(fence(reference) for reference in references) if references else NOTHING
