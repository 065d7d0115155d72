"""Judges beside those at the root, and the texts that a judge reads.

`CriterionJudge`, `RubricJudge`, `Panel` and `Repeated` stand at the root, judges of translations in
`metricsmith.translation`.

`ChoiceJudge`          one of several options in answer to a question
`DnAEval`              one judge for each dimension, weighted
`ExampleJudge`         the number that the raters would give, learned from rated examples
`ExampleMean`          the mean rating of other outputs of the same source: a specialist's baseline
`ExamplePolicy`        the rule by which a specialist's row gets its examples
`GEval`                one criterion by evaluation steps, with a graded number
`GuidelineJudge`       the guideline that the raters were given
`History`              ratings of older systems' outputs, from which a specialist takes its examples
`PrometheusJudge`      five levels on the form that Prometheus 2 was trained on
`render_messages`      a conversation as a judge reads it
`render_output`        any output as a judge reads it
`ResponseSetJudge`     every option that a reasonable rater could give
`Specialist`           specialises a judge to a test set that people rated for older systems
`evaluate_specialist`  holds out one system of a history after the other
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.datasets.history import History as History
    from metricsmith.optimizers.specialist import Specialist as Specialist
    from metricsmith.programs.judges.choice import ChoiceJudge as ChoiceJudge
    from metricsmith.programs.judges.choice import ResponseSetJudge as ResponseSetJudge
    from metricsmith.programs.judges.dna import DnAEval as DnAEval
    from metricsmith.programs.judges.geval import GEval as GEval
    from metricsmith.programs.judges.parrot import ExampleMean as ExampleMean
    from metricsmith.programs.judges.prometheus import PrometheusJudge as PrometheusJudge
    from metricsmith.programs.judges.raters import ExampleJudge as ExampleJudge
    from metricsmith.programs.judges.raters import GuidelineJudge as GuidelineJudge
    from metricsmith.programs.specialist.choosing import ExamplePolicy as ExamplePolicy
    from metricsmith.rendering import render_messages as render_messages
    from metricsmith.rendering import render_output as render_output
    from metricsmith.studies.specialist.evaluation import evaluate_specialist as evaluate_specialist
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
