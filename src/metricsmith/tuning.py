"""The result of a tuned judge, free metrics in place of paid ones, and the limits and dangers of optimisation.

`JudgeTuner` and `Reward` stand at the root.

`Tuning`         the result of `JudgeTuner`, with the evidence for it
`distil`         fits a free metric to a paid metric's own scores
`Distilled`      the free metric, with the share of the agreement with people that it keeps
`GEPABound`      the most that one `dspy.GEPA.compile` does
`gepa_bound`     computes it beforehand
`RewardMonitor`  follows a reward against a reference, on rows that no optimiser sees
`ablate`         runs a grid of inductions, to find out what each option is worth
`read_grid`      reads such a grid from a TOML file, or one of the paper's by its name
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.optimizers.distillation import Distilled as Distilled
    from metricsmith.optimizers.distillation import distil as distil
    from metricsmith.optimizers.gepa_bound import GEPABound as GEPABound
    from metricsmith.optimizers.gepa_bound import gepa_bound as gepa_bound
    from metricsmith.report.tuning.record import Tuning as Tuning
    from metricsmith.studies.ablation.grid import read_grid as read_grid
    from metricsmith.studies.ablation.run import ablate as ablate
    from metricsmith.studies.monitoring import RewardMonitor as RewardMonitor
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
