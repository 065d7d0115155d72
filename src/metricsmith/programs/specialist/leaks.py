"""A second look at the finished examples of a row: none may come from what is to be judged.

It knows nothing of how they were chosen. Each example is looked for in the history by what the prompt shows of it, its
texts and marks; if every rating that it can be is one that the row must not see, it has leaked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import LeakedExample
from metricsmith.programs.specialist.choosing import ExamplePolicy, Judged

__all__ = ["check_examples"]


def check_examples(
    shown: Sequence[tuple[str, str, Any]],
    row: Judged,
    policy: ExamplePolicy,
    history: History,
    marks: Callable[[int], Any],
    joined: Mapping[str, str],
) -> None:
    """Make sure that a row sees no rating that it must not see.

    Parameters
    ----------
    shown : sequence of (source, output, marks)
        The examples as the prompt has them.
    row : Judged
    policy : ExamplePolicy
    history : History
    marks : callable
        The marks of the rating at a place of the history, as a prompt would show them.
    joined : mapping of str to str
        For systems that are not in the history: the name they share with one that is.

    Raises
    ------
    LeakedExample
        If an example stands nowhere in the history, or each rating that it can be is of the row's own system or one
        that equals it, by a rater whom the policy does not allow, of a source that it does not allow, or of an equal
        output where these are to be dropped. It is a fault of this package: please report it.
    """
    for source, output, seen in shown:
        meant = [
            history.ratings[place]
            for place in history.of_source.get(source, ())
            if history.ratings[place].output == output and marks(place) == seen
        ]
        faults = [_fault(one, row, policy, history, joined) for one in meant] or ["it stands nowhere in the history"]
        if all(faults):
            raise LeakedExample(
                f"an example must not be shown for {row.system!r} by {row.rater!r} on {row.source[:40]!r}: "
                f"{faults[0]}; nothing was sent. This is a fault of metricsmith: please report it with the policy"
            )


def _fault(
    one: HistoricalRating, row: Judged, policy: ExamplePolicy, history: History, joined: Mapping[str, str]
) -> str:
    """The reason why a rating must not be seen; empty if it may."""
    if row.system and _same_system(one.system, row.system, history, joined):
        return f"it rates {one.system!r}, which is the row's system or equals it"
    if one.source == row.source and one.output == row.output and (policy.same_output == "drop" or not row.system):
        return "it rates an equal output"
    if policy.source in ("shuffled", "fixed") and one.source == row.source:
        return "it is of the row's source"
    if policy.source == "same" and one.source != row.source:
        return "it is of another source"
    wrong = {"same": one.rater != row.rater, "any": False}.get(policy.rater, one.rater == row.rater)
    if row.rater and wrong and _by_wanted_rater(row, policy, history, joined):
        return f"its rater is {one.rater!r}"
    return ""


def _by_wanted_rater(row: Judged, policy: ExamplePolicy, history: History, joined: Mapping[str, str]) -> bool:
    """True if the row's source has a rating that the policy wants, so that no other rater's need be shown."""
    return any(
        (one.rater == row.rater) is (policy.rater == "same")
        and not (row.system and _same_system(one.system, row.system, history, joined))
        and not (one.output == row.output and (policy.same_output == "drop" or not row.system))
        for one in (history.ratings[place] for place in history.of_source.get(row.source, ()))
    )


def _same_system(one: str, other: str, history: History, joined: Mapping[str, str]) -> bool:
    if one == other:
        return True
    if one not in history.outputs or other not in history.outputs:
        return joined.get(one, one) == joined.get(other, other)
    first, second = history.outputs[one], history.outputs[other]
    shared = [segment for segment in first if segment in second]
    return len(shared) > 1 and all(first[segment] == second[segment] for segment in shared)
