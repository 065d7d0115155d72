"""Translations judged, and metrics of translations evaluated.

`read_translations`      line-aligned text files or a table as `Translations`
`Translations`           segments of one or several systems
`translation_rows`       one row for each line of a document and its translation
`MQMJudge`               MQM by several runs of a model, combined (GEMBA-MQM V2)
`MQMAnnotator`           one such run
`MQMWeights`             the cost of each error
`ErrorSpan`              one error, as a rater or a judge marked it
`mqm_score`              the negated weights of all errors
`DirectAssessment`       one number for one translation (GEMBA)
`ESAJudge`               errors first, then one number (ESA)
`Parrot`                 copies the errors that people marked in other translations; the baseline of a specialist
`judge_translations`     judges every segment
`TranslationRecord`      the result
`write_translations`     writes its report and tables
`meta_evaluate`          metrics against gold ratings
`MetaEvaluation`         the result
`write_meta_evaluation`  writes its report
`evaluate_suite`         metrics in all tasks of a shared task, and on average
`SuiteEvaluation`        the result
`write_suite`            writes its report and tables
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.datasets.segments import Translations as Translations
    from metricsmith.datasets.segments import read_translations as read_translations
    from metricsmith.datasets.segments import translation_rows as translation_rows
    from metricsmith.mqm import MQMWeights as MQMWeights
    from metricsmith.mqm import mqm_score as mqm_score
    from metricsmith.programs.judges.direct_assessment import DirectAssessment as DirectAssessment
    from metricsmith.programs.judges.direct_assessment import ESAJudge as ESAJudge
    from metricsmith.programs.judges.mqm import MQMAnnotator as MQMAnnotator
    from metricsmith.programs.judges.mqm import MQMJudge as MQMJudge
    from metricsmith.programs.judges.parrot import Parrot as Parrot
    from metricsmith.programs.translations import judge_translations as judge_translations
    from metricsmith.records import ErrorSpan as ErrorSpan
    from metricsmith.report.meta_evaluation.document import write_meta_evaluation as write_meta_evaluation
    from metricsmith.report.meta_evaluation.record import MetaEvaluation as MetaEvaluation
    from metricsmith.report.meta_evaluation.record import meta_evaluate as meta_evaluate
    from metricsmith.report.suite.document import write_suite as write_suite
    from metricsmith.report.suite.record import SuiteEvaluation as SuiteEvaluation
    from metricsmith.report.translations.document import write_translations as write_translations
    from metricsmith.report.translations.record import TranslationRecord as TranslationRecord
    from metricsmith.studies.suite import evaluate_suite as evaluate_suite
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
