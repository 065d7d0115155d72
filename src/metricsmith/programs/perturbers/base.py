"""The values of perturbers: the row that they see, the perturbation that they make, and their card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = ["EFFECTS", "STRENGTHS", "Effect", "Perturbation", "Perturber", "Source", "Strength"]

Effect = Literal["worse", "same", "attack"]
Strength = Literal["subtle", "obvious"]
EFFECTS: tuple[Effect, ...] = ("worse", "same", "attack")
STRENGTHS: tuple[Strength, ...] = ("subtle", "obvious")


@dataclass(frozen=True, slots=True)
class Source:
    """A row as a perturber sees it.

    Parameters
    ----------
    output : str
        The text to perturb.
    input, context : str
    references : tuple of str
    others : tuple of str
        Outputs to other inputs, the best rated first; none where the data have no other input.
    """

    output: str
    input: str = ""
    context: str = ""
    references: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One output changed on purpose, or the reason why it was not.

    Parameters
    ----------
    row : int
        Place of the original among the rows.
    strategy : str
        Name of the change.
    effect : str
        ``worse``: quality falls; ``same``: it does not change; ``attack``: it does not rise, however the output
        is dressed up.
    strength : str
        ``subtle`` or ``obvious``.
    output : str or None
        The changed output, never equal to the original; None if the perturber declined.
    declined : str
        The reason for which there is none; empty if there is one.
    dimension : str
        The quality that was aimed at; empty for the output as a whole.
    origin : str
        ``builtin`` or ``generated``.
    """

    row: int
    strategy: str
    effect: Effect
    strength: Strength
    output: str | None
    declined: str = ""
    dimension: str = ""
    origin: Literal["builtin", "generated"] = "builtin"


@dataclass(frozen=True, slots=True)
class Perturber:
    """A perturber that needs no model, with its card.

    Parameters
    ----------
    name : str
        Snake case, unique.
    effect : str
    summary : str
        Its change of an output, in one sentence.
    because : str
        The reason for which quality falls, stays or does not rise, in one sentence.
    change : callable
        ``(source, strength, random) -> str``, the new output; where it finds nothing to change it gives the output
        back, which is recorded as declined.
    strengths : tuple of str
        Those at which it can work.
    needs : tuple of str
        Fields of `Source` without which it declines, besides the output.
    limits : str
        Cases in which `because` may not hold; empty if no such place is known.
    """

    name: str
    effect: Effect
    summary: str
    because: str
    change: Callable[[Source, Strength, np.random.Generator], str]
    strengths: tuple[Strength, ...] = STRENGTHS
    needs: tuple[str, ...] = ()
    limits: str = ""
