"""The perturbers that need no model, and their perturbations of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dspy
import numpy as np

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import content_hash, row_text
from metricsmith.programs.perturbers.base import (
    EFFECTS,
    STRENGTHS,
    Effect,
    Perturbation,
    Perturber,
    Source,
    Strength,
)
from metricsmith.programs.perturbers.builtin.attacks import ATTACKS
from metricsmith.programs.perturbers.builtin.same import LAYOUT
from metricsmith.programs.perturbers.builtin.same_words import WORDING
from metricsmith.programs.perturbers.builtin.worse import STRUCTURE
from metricsmith.programs.perturbers.builtin.worse_words import WORDS

__all__ = ["BUILTIN", "perturb", "sources_of"]

OTHERS = 20

BUILTIN: Mapping[str, Perturber] = {
    perturber.name: perturber for perturber in (*STRUCTURE, *WORDS, *LAYOUT, *WORDING, *ATTACKS)
}
"""All of them by name: first those that make worse, then those that change nothing, then the attacks."""


def perturb(
    sources: Sequence[Source],
    *,
    perturbers: Sequence[str | Perturber] | None = None,
    effects: Sequence[Effect] = ("worse", "same"),
    strengths: Sequence[Strength] = ("obvious",),
    seed: int = 0,
) -> list[Perturbation]:
    """Changes every output on purpose, in every way asked for.

    The perturbation of a row depends on the seed, the perturber, the strength and the row alone: neither its place nor
    the other rows or perturbers matter, except through `Source.others`.

    Parameters
    ----------
    sources : sequence of Source, shape (n,)
    perturbers : sequence of str or Perturber, optional
        Names of `BUILTIN`, or perturbers of your own, of any effect. None: the built-in ones of `effects`.
    effects : sequence of str
        Out of ``worse``, ``same``, ``attack``; without meaning where `perturbers` are given.
    strengths : sequence of str
        Out of ``subtle``, ``obvious``; a perturber is left out at those that it does not have.
    seed : int
        At least 0.

    Returns
    -------
    list of Perturbation
        One per row, perturber and strength, rows outermost. Where a perturber found nothing to change or lacks a
        text, there is no output but the reason.

    Raises
    ------
    OptionError
        For an unknown perturber, effect or strength, two perturbers of one name, or a negative seed.
    """
    if seed < 0:
        raise OptionError(f"seed is {seed}: give a whole number from 0 on")
    _known("effect", effects, EFFECTS)
    _known("strength", strengths, STRENGTHS)
    found = _found(perturbers, effects)
    return [
        _perturbation(row, source, perturber, strength, seed)
        for row, source in enumerate(sources)
        for perturber in found
        for strength in strengths
        if strength in perturber.strengths
    ]


def _found(wanted: Sequence[str | Perturber] | None, effects: Sequence[Effect]) -> list[Perturber]:
    if wanted is None:
        return [perturber for perturber in BUILTIN.values() if perturber.effect in effects]
    _known("perturber", wanted, BUILTIN)
    found = [one if isinstance(one, Perturber) else BUILTIN[one] for one in wanted]
    names = [perturber.name for perturber in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(
            f"two perturbers are called {twice[0]!r}: name each once, and give your own a name of its own"
        )
    return found


def _known(what: str, names: Iterable[Any], known: Iterable[str]) -> None:
    if isinstance(names, str):
        raise OptionError(f"{what} {names!r} is a string: write [{names!r}]")
    for name in names:
        if not isinstance(name, Perturber) and name not in known:
            raise OptionError(f"no {what} {name!r}{nearest(str(name), known)}; there are: {', '.join(known)}")


def _perturbation(row: int, source: Source, perturber: Perturber, strength: Strength, seed: int) -> Perturbation:
    lacking = [name for name in perturber.needs if not getattr(source, name)]
    output: str | None = None
    declined = ""
    if lacking:
        declined = f"the row has no {' and no '.join(lacking)}"
    else:
        own = [source.output, source.input, source.context, list(source.references)]
        drawn_by = [seed, int(content_hash(perturber.name, strength, *own), 16)]
        output = perturber.change(source, strength, np.random.default_rng(drawn_by))
        if output == source.output:
            output = None
            declined = "nothing to change was found" if source.output.strip() else "the output is empty"
    return Perturbation(row, perturber.name, perturber.effect, strength, output, declined)


def sources_of(rows: Sequence[dspy.Example], target: str | None = None, higher_is_better: bool = True) -> list[Source]:
    """Makes sources out of rows, as perturbers see them.

    Parameters
    ----------
    rows : sequence of dspy.Example, shape (n,)
        With ``output``; ``input``, ``context``, ``references`` and ``group`` where they have them.
    target : str, optional
        Name of the rating by which `Source.others` are sorted; rows without one come last. None: the rows' order.
    higher_is_better : bool
        The rating's direction.

    Returns
    -------
    list of Source
        ``others`` are up to 20 different outputs of rows whose input differs, and whose group does where both have
        one. If no row has an input, groups alone tell; rows that have neither have no others, since nothing says
        that their outputs answer something else.

    Raises
    ------
    DataError
        If a row has no output, or a rating that is no number; if no row has the target.
    """
    texts = [row_text(row) for row in rows]
    groups = [row.get("group") for row in rows]
    order = _best_first(rows, target, higher_is_better)
    with_inputs = any(text.input for text in texts)

    def apart(one: int, two: int) -> bool:
        grouped = groups[one] is not None and groups[two] is not None
        if not with_inputs:
            return grouped and groups[one] != groups[two]
        differ = bool(texts[one].input and texts[two].input) and texts[one].input != texts[two].input
        return differ and not (grouped and groups[one] == groups[two])

    def others(row: int) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for other in order:
            output = texts[other].output
            if output.strip() and output != texts[row].output and apart(row, other):
                found[output] = None
            if len(found) == OTHERS:
                break
        return tuple(found)

    return [
        Source(text.output, text.input, text.context, text.references, others(row)) for row, text in enumerate(texts)
    ]


def _best_first(rows: Sequence[dspy.Example], target: str | None, higher_is_better: bool) -> list[int]:
    if target is None:
        return list(range(len(rows)))
    if rows and all(row.get(target) is None for row in rows):
        known = sorted({name for row in rows for name in row.keys()})  # noqa: SIM118
        raise DataError(f"no row has a rating {target!r}{nearest(target, known)}: name one of {', '.join(known)}")
    sign = -1.0 if higher_is_better else 1.0
    keys = [sign * _rating(row.get(target), target) for row in rows]
    return sorted(
        range(len(rows)), key=lambda row: (math.isnan(keys[row]), 0.0 if math.isnan(keys[row]) else keys[row])
    )


def _rating(value: Any, target: str) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise DataError(f"rating {target!r} has the value {value!r}, which is no number: clean the column") from None
