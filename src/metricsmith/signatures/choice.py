"""One text in; one of several declared options out, or every option that can be defended, and the one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import dspy

from metricsmith.signatures.base import ReviewedWork

__all__ = ["ChooseOption", "ListAndChoose", "ListOptions", "with_options"]


class _Asked(ReviewedWork):
    """One piece of work about which one question is asked that has a fixed list of answers."""

    question: str = dspy.InputField(desc="what is asked about the output")
    options: str = dspy.InputField(desc="the answers that there are, one to a line")
    reasoning: str = dspy.OutputField(desc="what in the output decides between the options, in one to three sentences")


class ChooseOption(_Asked):
    """Answer one question about one piece of work with exactly one of the options.

    Read the question as it is put and hold every option against the output before you settle on one. If more than one
    could be defended, take the one for which more speaks in the output. Name what decides the matter first; then give
    the option as it stands in the list, letter by letter, and nothing beside it.
    """

    choice: str = dspy.OutputField(desc="the one option that you settle on")


class ListOptions(_Asked):
    """Name every option with which a reasonable rater could answer one question about one piece of work.

    Careful people read the same question and the same output and may still answer differently, because the question
    leaves something open. Go through the options one by one. Keep an option if a careful rater could give it and defend
    it by the output, even where you would not give it yourself; drop it if it would take a slip or ill will to give it.
    One option is enough where only one can be defended, and at least one always can. Name what decides the matter
    first; then list the options as they stand, letter by letter, none twice.
    """

    possible: list[str] = dspy.OutputField(desc="every option that a reasonable rater could give")


class ListAndChoose(ListOptions):
    """Name every option with which a reasonable rater could answer one question about one piece of work, then choose.

    Careful people read the same question and the same output and may still answer differently, because the question
    leaves something open. Go through the options one by one. Keep an option if a careful rater could give it and defend
    it by the output, even where you would not give it yourself; drop it if it would take a slip or ill will to give it.
    One option is enough where only one can be defended, and at least one always can. Then say which one you would give
    if you had to give exactly one: it must be among those that you have kept. Name what decides the matter first; then
    give options as they stand in the list, letter by letter, none twice.
    """

    choice: str = dspy.OutputField(desc="the one among these that you would give if you had to settle on one")


@lru_cache(maxsize=64)
def with_options(signature: type[dspy.Signature], options: tuple[str, ...]) -> type[dspy.Signature]:
    """The signature with its answers typed: ``choice`` a Literal of these options, ``possible`` a list of one."""
    one: Any = Literal.__getitem__(options)
    for name, kind in (("possible", list[one]), ("choice", one)):
        if name in signature.output_fields:
            signature = signature.with_updated_fields(name, type_=kind)
    return signature
