"""Examples for perturbers: what is shown, and what is kept to try strategies on."""

from __future__ import annotations

import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.students.perturber_episodes import perturbation_episodes, strategy_episodes
from metricsmith.programs.perturbers.base import Source
from metricsmith.signatures.generation import Axis, Strategy
from perturbed import FACTS, TASK, sources

TONE = Axis(name="Tone", meaning="It is polite.")
PLAN = Strategy(name="Cut", description="Cut.")


def test_there_is_an_example_for_each_source_and_strength():
    given = [*sources(2), Source(" "), Source("x", "i", "c", ("r", "s"))]
    episodes = perturbation_episodes(given, TASK, FACTS, ["subtle", "obvious"], [PLAN])
    assert [(episode.output, episode.strength) for episode in episodes] == [
        (source.output, strength) for source in (given[0], given[1], given[3]) for strength in ("subtle", "obvious")
    ]
    last = dict(episodes[-1].inputs().items())
    assert last.pop("strategies") == [PLAN]  # as the student is to get them
    assert last == {
        "task": TASK, "dimension": "Facts: All facts are there.", "strength": "obvious", "output": "x", "input": "i",
        "references": ["r", "s"], "context": "c",
    }  # fmt: skip
    assert episodes[-1].label.rows[0].toDict() == {
        "output": "x",
        "input": "i",
        "references": ["r", "s"],
        "context": "c",
    }
    assert "strategies" not in perturbation_episodes(given, TASK, FACTS, ["subtle"])[0]


def test_strategies_are_never_tried_on_the_groups_that_were_shown():
    given = sources(12)
    groups = [f"g{n % 4}" for n in range(12)]
    of = {source.output: group for source, group in zip(given, groups, strict=True)}
    episodes = strategy_episodes(given, TASK, [FACTS, TONE], groups=groups, tried=9, splits=3, strength="subtle")
    assert len(episodes) == 6
    assert {episode.dimension for episode in episodes} == {"Facts: All facts are there.", "Tone: It is polite."}
    for episode in episodes:
        shown = {of[source.output] for source in given if source.output in episode.examples}
        tried = [of[source.output] for source in episode.label.sources]
        assert len(shown) == len(tried) == len(set(tried)) == 2  # two of four groups stay to be shown
        assert not shown & set(tried)
        assert (episode.label.axis.name, episode.label.strength) == (episode.dimension.split(":")[0], "subtle")


def test_the_seed_decides_and_each_split_has_its_own():
    def tried(seed, splits):
        found = strategy_episodes(sources(8), TASK, [FACTS], tried=3, splits=splits, seed=seed)
        return [[source.output for source in episode.label.sources] for episode in found]

    assert tried(0, 4) == tried(0, 4)
    assert tried(0, 4)[1:] == tried(1, 3)
    assert len({tuple(outputs) for outputs in tried(0, 4)}) > 1
    assert {len(outputs) for outputs in tried(0, 4)} == {3}


def test_too_few_groups_and_numbers_are_refused():
    with pytest.raises(DataError, match="outputs of 2 groups; at least 3"):
        strategy_episodes([*sources(2), Source("")], TASK, [FACTS])
    for options in ({"tried": 0}, {"splits": 0}):
        with pytest.raises(OptionError, match="must be 1 or more"):
            strategy_episodes(sources(4), TASK, [FACTS], **options)
