"""Records of finished runs, and the pages made from them.

Those of translations stand in `metricsmith.translation`.

`RunRecord`             a finished induction
`write_reports`         writes its report as HTML, Markdown, JSON and CSV
`Ablation`              a finished `metricsmith.tuning.ablate`: a grid of settings
`write_ablation`        writes its report as HTML, Markdown and JSON
`Comparison`            a finished `compare`: methods side by side on one split
`write_comparison`      writes its report as HTML, Markdown and JSON
`Distillation`          the record of a `metricsmith.tuning.distil`: a free metric beside a paid one
`write_distillation`    writes its report as HTML, Markdown and JSON
`SpecialistEvaluation`  a finished `evaluate_specialist`: judges and policies by system held out
`write_specialist`      writes its report as HTML, Markdown and JSON
`write_tuning`          writes the report of a `metricsmith.tuning.Tuning` as HTML, Markdown and JSON
`Versus`                a second version of outputs beside a first, under one metric
`versus`                makes one out of two tables
`write_versus`          writes its report as HTML, Markdown and JSON
`Validation`            judges held against people who may rightly disagree
`validate_judges`       makes one out of ratings
`write_validation`      writes its report as HTML, Markdown and JSON
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.report.ablation.document import write_ablation as write_ablation
    from metricsmith.report.ablation.record import Ablation as Ablation
    from metricsmith.report.comparison.document import write_comparison as write_comparison
    from metricsmith.report.comparison.record import Comparison as Comparison
    from metricsmith.report.distillation.document import write_distillation as write_distillation
    from metricsmith.report.distillation.record import Distillation as Distillation
    from metricsmith.report.induction.document import write_reports as write_reports
    from metricsmith.report.induction.record import RunRecord as RunRecord
    from metricsmith.report.specialist.document import write_specialist as write_specialist
    from metricsmith.report.specialist.record import SpecialistEvaluation as SpecialistEvaluation
    from metricsmith.report.tuning.document import write_tuning as write_tuning
    from metricsmith.report.validation.document import write_validation as write_validation
    from metricsmith.report.validation.record import Validation as Validation
    from metricsmith.report.validation.record import validate_judges as validate_judges
    from metricsmith.report.versus.document import write_versus as write_versus
    from metricsmith.report.versus.record import Versus as Versus
    from metricsmith.studies.versus import versus as versus
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
