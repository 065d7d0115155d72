"""How texts are shown to a model: fenced, so that what they say is data and never instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from metricsmith.metric import RowText, content_hash

__all__ = ["NOTHING", "fence", "shown", "unfenced"]

NOTHING = "(none)"
FENCED = re.compile(r"\s*«begin ([0-9a-f]{8})»\n(.*)\n«end \1»\s*", re.DOTALL)


def fence(text: str) -> str:
    """Put `text` between marks that it cannot close itself: their code is a hash of the text.

    DSPy's own field marker is taken apart, so that a text cannot pose as another field. Empty text
    becomes a plain «(none)», which an actual text never shows without marks.
    """
    if not text:
        return NOTHING
    code = content_hash("fence", text)[:8]
    return f"«begin {code}»\n{text.replace('[[ ##', '[ [##')}\n«end {code}»"


def unfenced(text: str) -> str:
    """What a model wrote after a fenced text, without the marks if it wrote these too."""
    found = FENCED.fullmatch(text)
    return (found[2] if found else text).replace("[ [##", "[[ ##")


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
