"""A second look at the finished examples of a row: none may come from what is to be judged.

It knows nothing of how they were chosen. Each example is looked for in the history by what the prompt shows of it, its
texts and marks; if every rating that it can be is one that the row must not see, it has leaked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

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
    same = _one_with(row.system, history, joined)
    raters = _wanted_raters(row, policy, history, same)
    before: list[tuple[str, str, Any]] = []
    for one_shown in shown:
        source, output, seen = one_shown
        meant = [
            history.ratings[place]
            for place in history.of_source.get(source, ())
            if history.ratings[place].output == output and marks(place) == seen
        ]
        faults = [_fault(one, row, policy, same, raters) for one in meant] or ["it stands nowhere in the history"]
        if faults.count("") <= before.count(one_shown):
            why = next(filter(None, faults), "it is shown more often than it stands in the history")
            raise LeakedExample(
                f"an example must not be shown for {row.system!r} by {row.rater!r} on {row.source[:40]!r}: "
                f"{why}; nothing was sent. This is a fault of metricsmith: please report it with the policy"
            )
        before.append(one_shown)


def _fault(
    one: HistoricalRating, row: Judged, policy: ExamplePolicy, same: frozenset[str], raters: frozenset[str] | None
) -> str:
    """The reason why a rating must not be seen; empty if it may."""
    if one.system in same:
        return f"it rates {one.system!r}, which is the row's system or equals it"
    if _dropped(one, row, policy):
        return "it rates an equal output"
    if policy.source in ("shuffled", "fixed") and one.source == row.source:
        return "it is of the row's source"
    if policy.source == "same" and one.source != row.source:
        return "it is of another source"
    return f"its rater is {one.rater!r}" if raters is not None and one.rater not in raters else ""


def _dropped(one: HistoricalRating, row: Judged, policy: ExamplePolicy) -> bool:
    """True if a rating is of the very text that is judged, where such are left out."""
    equal = one.source == row.source and one.output.strip() == row.output.strip()
    return equal and (policy.same_output == "drop" or not row.system)


def _wanted_raters(row: Judged, policy: ExamplePolicy, history: History, same: frozenset[str]) -> frozenset[str] | None:
    """The raters that the policy wants; None for any, also where none of theirs may be shown on the row's source."""
    if policy.rater == "any" or not row.rater:
        return None
    own = [history.ratings[place] for place in history.of_source.get(row.source, ())]
    order = list(dict.fromkeys(one.rater for one in own))
    if policy.rater == "same":
        wanted = frozenset({row.rater})
    elif policy.rater == "merged":
        wanted = frozenset(history.raters) - {row.rater}
    elif row.rater in order:
        wanted = frozenset({(order * 2)[order.index(row.rater) + 1]}) - {row.rater}
    else:
        wanted = frozenset(order)
    shown = any(one.rater in wanted and one.system not in same and not _dropped(one, row, policy) for one in own)
    return wanted if shown else None


def _one_with(system: str, history: History, joined: Mapping[str, str]) -> frozenset[str]:
    """The systems of the history that are one with a system: itself, its equals, and theirs in turn."""
    if not system:
        return frozenset()
    name, found = joined.get(system, system), set[str]()
    more = {system, *(other for other in history.systems if joined.get(other, other) == name)}
    while more - found:
        found |= more
        more = {equal for other in found for equal in _equals(history).get(other, ())}
    return frozenset(found)


def _equals(history: History) -> Mapping[str, frozenset[str]]:
    """For each system those that have its output on every segment that both have, two at the least."""
    if history not in _EQUALS:
        _EQUALS[history] = {
            one: frozenset(
                other
                for other, theirs in history.outputs.items()
                if len(shared := own.keys() & theirs.keys()) > 1
                and all(own[place] == theirs[place] for place in shared)
            )
            for one, own in history.outputs.items()
        }
    return _EQUALS[history]


_EQUALS: WeakKeyDictionary[History, Mapping[str, frozenset[str]]] = WeakKeyDictionary()
