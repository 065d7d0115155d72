"""Training examples and metrics for the programs that make judges and changes.

`axes_episodes`            examples for an `AxesGenerator`
`rubric_episodes`          examples for a `RubricGenerator`
`code_episodes`            examples for a `CodeGenerator`
`recommendation_episodes`  examples for an `LMRecommender`
`perturbation_episodes`    examples for `Worsen` or `Preserve`
`strategy_episodes`        examples for `DegradationStrategies`
`YieldMetric`              the quality of a generator's answer: that of the judges made from it
`yield_of`                 those judges' yield on held-out rows
`CodeYieldMetric`          the quality of a function that a `CodeGenerator` wrote
`RankingMetric`            the quality of a recommender's order
`PerturberMetric`          the quality of a change, by another metric
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.optimizers.students.code import CodeYieldMetric as CodeYieldMetric
    from metricsmith.optimizers.students.code import code_episodes as code_episodes
    from metricsmith.optimizers.students.episodes import axes_episodes as axes_episodes
    from metricsmith.optimizers.students.episodes import recommendation_episodes as recommendation_episodes
    from metricsmith.optimizers.students.episodes import rubric_episodes as rubric_episodes
    from metricsmith.optimizers.students.metrics import RankingMetric as RankingMetric
    from metricsmith.optimizers.students.metrics import YieldMetric as YieldMetric
    from metricsmith.optimizers.students.perturbers import PerturberMetric as PerturberMetric
    from metricsmith.optimizers.students.perturbers import perturbation_episodes as perturbation_episodes
    from metricsmith.optimizers.students.perturbers import strategy_episodes as strategy_episodes
    from metricsmith.optimizers.students.yields import yield_of as yield_of
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
