"""MetricBank: one metric family per file, its card as data. The table of contents is `catalogue`.

`MetricBank`, `default_bank` and `full_bank` stand at the root.

`CodeMetric`       the number that a function of a source text returns, which only a sandbox runs
`FinetunedMetric`  a metric that is trained on rated rows: a ridge regression or adapters on an encoder
`Limits`           the most that the function of a `CodeMetric` may use
`mauve`            how close two sets of texts are; it has no number for a row
`ModelSpec`        the weights of a metric that needs some: which, how used, and where they lie
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.bank.code import CodeMetric as CodeMetric
    from metricsmith.bank.corpus import mauve as mauve
    from metricsmith.bank.models.finetuned import FinetunedMetric as FinetunedMetric
    from metricsmith.bank.models.spec import ModelSpec as ModelSpec
    from metricsmith.sandbox.contract import Limits as Limits
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
