"""Examples on which perturbers can be tuned like any other DSPy program; `PerturberMetric` measures the answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.students.episodes import Episode, Originals
from metricsmith.programs.perturbers.base import Source, Strength
from metricsmith.programs.perturbers.generation import groups_of, pick_examples, shown_examples, worded
from metricsmith.signatures.generation import Axis, Strategy

__all__ = ["perturbation_episodes", "strategy_episodes"]


def perturbation_episodes(
    sources: Sequence[Source],
    task: str,
    dimension: Axis,
    strengths: Sequence[Strength],
    strategies: Sequence[Strategy] = (),
) -> list[Episode]:
    """Examples for `Worsen`, or for `Preserve` if there are no strategies: one for each source and strength.

    Sources without an output are left out.
    """
    plans = {"strategies": list(strategies)} if strategies else {}
    return [
        Episode(
            label=Originals((source,), task, dimension, strength),
            task=task,
            dimension=worded(dimension),
            strength=strength,
            output=source.output,
            input=source.input,
            references=list(source.references),
            context=source.context,
            **plans,
        )
        for source, strength in product(sources, strengths)
        if source.output.strip()
    ]


def strategy_episodes(
    sources: Sequence[Source],
    task: str,
    dimensions: Sequence[Axis],
    *,
    strength: Strength = "obvious",
    groups: Sequence[str] | None = None,
    tried: int = 4,
    splits: int = 1,
    seed: int = 0,
) -> list[Episode]:
    """Examples for `DegradationStrategies`: one for each dimension and split.

    The strategies are drawn from the outputs of some groups, and tried on outputs of others.

    Parameters
    ----------
    sources : sequence of Source
        n rows; those without an output are left out.
    task : str
    dimensions : sequence of Axis
    strength : str
    groups : sequence of str, optional
        As for `generate`.
    tried : int
        On how many outputs the strategies are tried at most, each of another group.
    splits : int
        Seeds `seed`, `seed` + 1 ...

    Raises
    ------
    OptionError
        If `tried` or `splits` is below 1.
    DataError
        If there are fewer than three groups: two to show, one to try on.
    """
    if tried < 1 or splits < 1:
        raise OptionError(f"tried={tried} and splits={splits} must be 1 or more")
    named = [
        (source, group)
        for source, group in zip(sources, groups_of(sources) if groups is None else groups, strict=True)
        if source.output.strip()
    ]
    names = sorted({group for _, group in named})
    if len(names) < 3:
        raise DataError(f"there are outputs of {len(names)} groups; at least 3 are needed: two to show, one to try on")
    episodes = []
    for draw, axis in product(range(seed, seed + splits), dimensions):
        random = np.random.default_rng(draw)
        kept = [names[place] for place in random.permutation(len(names))[: min(tried, len(names) - 2)]]
        there = [[source for source, group in named if group == name] for name in kept]
        tested = tuple(members[int(random.integers(len(members)))] for members in there)
        rest = [(source, group) for source, group in named if group not in kept]
        places = pick_examples([source for source, _ in rest], [group for _, group in rest], draw)
        examples = shown_examples([rest[place][0] for place in places])
        label = Originals(tested, task, axis, strength)
        episodes.append(Episode(label=label, task=task, dimension=worded(axis), examples=examples))
    return episodes
