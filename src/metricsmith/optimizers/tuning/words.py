"""Feedback for a model that writes instructions: what the raters gave, what the judge gave, and where they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np

from metricsmith.optimizers.objectives import Objective
from metricsmith.programs.texts import fence

__all__ = ["Peer", "Said", "advice"]

LONGEST_REASON = 400  # characters of a judge's or a rater's reasons
LONGEST_TEXT = 600  # characters of each text of the other row
Peer = tuple[dspy.Example, float, float]  # row, rating, value


@dataclass(frozen=True)
class Said:
    """A row with what raters and judge said of it; `sign` is -1 where the judge counts the other way round."""

    row: dspy.Example
    rating: float
    value: float
    prediction: Any
    sign: float = 1.0


def advice(said: Said, peers: Sequence[Peer], objective: Objective) -> str:
    """Feedback on one verdict.

    Parameters
    ----------
    said : Said
    peers : sequence of (row, rating, value)
        Other rows as the same judge rates them; of those in the wrong order the one with the most different rating
        is shown.
    objective : Objective
    """
    reason = str(said.row.get("reason") or "")
    lines = [f"The raters gave {said.rating:g}{f' and said: {_cut(reason, LONGEST_REASON)}' if reason else ''}."]
    why = str(said.prediction.get("feedback") or said.prediction.get("reasoning") or "")
    lines.append(
        f"The judge gave {said.sign * said.value:g}{f', because: {_cut(why, LONGEST_REASON)}' if why else '.'}"
    )
    if objective.labels:
        lines.append(_label(said))
    ordered = [peer for peer in peers if peer[1] != said.rating]
    wrong = [peer for peer in ordered if np.sign(said.value - peer[2]) != np.sign(said.rating - peer[1])]
    if ordered:
        lines.append(f"Of {len(ordered)} other works with another rating, {len(wrong)} stand on the wrong side of it.")
    if wrong:
        lines.append(_other(said, max(wrong, key=lambda peer: abs(peer[1] - said.rating))))
    return "\n".join(lines)


def _label(said: Said) -> str:
    if said.value == said.rating:
        return "That is the raters' number."
    return f"That is {abs(said.value - said.rating):g} too {'high' if said.value > said.rating else 'low'}."


def _other(said: Said, peer: Peer) -> str:
    row, rating, value = peer
    place = (
        "the same number"
        if value == said.value
        else f"{'more' if value > said.value else 'less'} ({said.sign * value:g})"
    )
    texts = "\n".join(f"{name}: {fence(_cut(str(text), LONGEST_TEXT))}" for name, text in row.inputs().items())
    better = "higher" if rating > said.rating else "lower"
    return f"The raters gave the following work {rating:g}, which is {better}; the judge gave it {place}.\n{texts}"


def _cut(text: str, longest: int) -> str:
    text = text.strip().rstrip(".")
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0] + " [...]"
