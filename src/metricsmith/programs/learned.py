"""Rated rows that a metric has learned from: hashes that travel with it and change no score.

A metric must not be weighed by the ratings that it was made of. Examples in a prompt, an instruction
that was searched for and a map to the raters' numbers all come from rated rows, and agree with these better than with
any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import dspy

from metricsmith.metric import Metric, content_hash, row_text
from metricsmith.programs.state import Saved, state_parts

__all__ = ["has_learned", "learned_from", "mark_learned", "mark_tuned", "row_hash"]

LONG = 8  # words from which an output is known by itself; a shorter one may answer many inputs


def row_hash(row: dspy.Example) -> str:
    """16 hex digits by which a row is known again: of its output, of a short one with its input; blanks do not count.

    References, context and the names of columns play no part: a judge may have been tuned on another table. Empty for a
    row without output.
    """
    if not row.get("output"):
        return ""
    text = row_text(row)
    words = text.output.split()
    return content_hash("learned", words, [] if len(words) >= LONG else text.input.split())


def mark_learned(metric: Saved, rows: Iterable[dspy.Example]) -> None:
    """Add rows to those that `metric` is known to have learned from."""
    known = {*metric.made_with.get("learned_from", ()), *map(row_hash, rows)} - {""}
    metric.made_with = {**metric.made_with, "learned_from": sorted(known)}


def mark_tuned(module: dspy.Module, rows: Iterable[dspy.Example]) -> None:
    """`mark_learned` for a judge that came out of a search; one that nothing was done to has not learned."""
    if isinstance(module, Saved) and isinstance(module, Metric) and has_learned(module):
        mark_learned(module, rows)


def learned_from(metric: Metric) -> frozenset[str]:
    """Hashes of the rows that a metric or any part of it is known to have learned from."""
    stated = (part.get("made_with", {}).get("learned_from", ()) for _, part in state_parts(metric.to_state()))
    return frozenset(row for rows in stated for row in rows)


def has_learned(metric: Metric) -> bool:
    """True if a metric shows that it learned from rated rows, named in its state or not.

    Examples in its prompt, another instruction than its family's, and a map to ratings show it, and so does every
    induced metric.
    """
    states = [part for _, part in state_parts(metric.to_state())]
    modules = [part["state"] for part in states if "state" in part]
    # an MQM annotator's worked example, its first, is ours
    shown = any(
        len(module["judge"]["demos"]) > bool(module["settings"].get("worked_example")) or "map" in module["settings"]
        for module in modules
    )
    return bool(shown or metric.card.instruction or any(part["kind"] == "induced" for part in states))
