"""Rated rows that a metric has learned from: hashes that travel with it and change no score.

A metric must not be weighed by the ratings that it was made of. Examples in a prompt, an instruction
that was searched for and a map to the raters' numbers all come from rated rows, and agree with these better than with
any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import dspy

from metricsmith.metric import Metric
from metricsmith.programs.state import Saved, state_parts
from metricsmith.saving import row_hash

__all__ = ["has_learned", "learned_from", "mark_learned", "mark_tuned"]


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
    induced or finetuned metric.
    """
    states = [part for _, part in state_parts(metric.to_state())]
    modules = [part["state"] for part in states if "state" in part]
    # an MQM annotator's worked example, its first, is ours
    shown = any(
        len(module["judge"]["demos"]) > bool(module["settings"].get("worked_example")) or "map" in module["settings"]
        for module in modules
    )
    return bool(shown or metric.card.instruction or any(part["kind"] in ("finetuned", "induced") for part in states))
