"""Outputs changed on purpose, and the answer of a metric to each change.

`Prober`                 probes a metric: sensitivity, stability, attacks
`probe_position`         asks a judge of pairs twice, with the two outputs exchanged
`perturb`                changes every output in every way asked for
`BUILTIN`                the perturbers that need no model, by name
`Perturber`              one of these, with its card
`Perturbation`           one changed output, or the reason why there is none
`DegradationStrategies`  a model's ways to make outputs worse in one quality
`Worsen`                 a model makes an output worse
`Preserve`               a model changes an output without loss or gain
`write_sheet`            changes for a rater to look at, as a file
`read_sheet`             reads such a file when it is filled in
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.programs.perturbers.base import Perturbation as Perturbation
    from metricsmith.programs.perturbers.base import Perturber as Perturber
    from metricsmith.programs.perturbers.catalogue import BUILTIN as BUILTIN
    from metricsmith.programs.perturbers.catalogue import perturb as perturb
    from metricsmith.programs.perturbers.generated import DegradationStrategies as DegradationStrategies
    from metricsmith.programs.perturbers.generated import Preserve as Preserve
    from metricsmith.programs.perturbers.generated import Worsen as Worsen
    from metricsmith.programs.perturbers.sheet import read_sheet as read_sheet
    from metricsmith.programs.perturbers.sheet import write_sheet as write_sheet
    from metricsmith.studies.probing.run import Prober as Prober
    from metricsmith.studies.probing.run import probe_position as probe_position
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
