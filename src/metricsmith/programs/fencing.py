"""Texts as a model is shown them: between marks, so that their content is data and never instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from metricsmith.metric import RowText, content_hash

__all__ = ["EMPTY", "MARKER", "NOTHING", "fence", "marked_anew", "fenced_texts", "unfenced"]

NOTHING = "(none)"
EMPTY = ("(the output is empty)", "(the translation is empty)")
MARKER = "<<CUSTOM-TYPE-"  # DSPy makes pictures and files, by their addresses, of what follows it in a prompt
FENCED = re.compile(r"«begin ([0-9a-f]{16}|[0-9a-f]{8})»\n(.*?)\n«end \1»", re.DOTALL)  # 8 digits: prompt version 1


def fence(text: str) -> str:
    """Put `text` between marks that it cannot close itself: their code is a hash of the text between them.

    DSPy's own markers are taken apart, so that a text cannot pose as another field, nor have a picture fetched.
    Empty text becomes a plain «(none)», which an actual text never shows without marks.
    """
    return _marked(text.replace("[[ ##", "[ [##").replace(MARKER, f"< {MARKER[1:]}")) if text else NOTHING


def unfenced(text: str) -> str:
    """A model's copy of a fenced text, without the marks if it copied these too."""
    found = FENCED.fullmatch(text.strip())
    return (found[2] if found else text).replace("[ [##", "[[ ##").replace(f"< {MARKER[1:]}", MARKER)


def marked_anew(value: Any, *, as_before: bool = False) -> Any:
    """A saved prompt's field with today's marks around each of its texts; anything but fenced texts as it is.

    Parameters
    ----------
    value : object
        Texts that `fence` put between marks, in this or an earlier version, one to a line.
    as_before : bool
        Give them the marks of prompt version 1 instead, by which judgements of that time are known again.
    """
    if not isinstance(value, str) or not value.startswith("«begin "):
        return value
    texts, end = [], -1
    while found := FENCED.match(value, end + 1):
        texts.append(found[2])
        end = found.end()
        if end == len(value):
            return "\n".join(_marked(text, as_before=as_before) for text in texts)
        if value[end] != "\n":
            break
    return value


def _marked(body: str, *, as_before: bool = False) -> str:
    code = content_hash("fence", body.replace("[ [##", "[[ ##"))[:8] if as_before else content_hash("fence", body)
    return f"«begin {code}»\n{body}\n«end {code}»"


def fenced_texts(text: RowText) -> Mapping[str, str]:
    """The four text fields of a judge's signature, all references in the order given."""
    return {
        "input": fence(text.input),
        "references": "\n".join(map(fence, text.references)) if text.references else NOTHING,
        "context": fence(text.context),
        "output": fence(text.output) if text.output else "(the output is empty)",
    }
