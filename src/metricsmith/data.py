"""Public data sets and the files that come with them.

`read_table` and `make_row`, which read your own rows, stand at the root.

`read_taubench`           conversations with rewards (tau-bench), one by row
`read_wmt_mqm`            translations with MQM ratings of WMT
`read_span_ratings`       error spans and numbers of ESA or MQM (mt-metrics-eval, WMT)
`read_hanna`              stories with ratings on six criteria (HANNA)
`read_civil_comments`     single ratings of the toxicity of comments (Civil Comments)
`read_rated_choices`      choices or response sets of people, and those of judges
`read_rated_set`          one of the AutoMetrics paper's data sets, from a file or the hub
`rated_sets`              those that there are: columns, scales, splits, where to get them
`sample_by_disagreement`  equally many rated items of each level of disagreement
`EvalSet`                 the texts of one test set of WMT in one language pair
`read_eval_set`           reads an `EvalSet` (mt-metrics-eval)
`ScoreMatrices`           scores and ratings of the outputs of k systems on n segments
`read_score_matrices`     reads `ScoreMatrices`: a file of scores beside one of ratings
`named_suite`            a metrics shared task of WMT, or one that a TOML file describes
`read_suite`             scores of people and metrics in all language pairs of a suite
"""

from typing import TYPE_CHECKING

from metricsmith.lazy import lazy_names

if TYPE_CHECKING:
    from metricsmith.datasets.choices import read_rated_choices as read_rated_choices
    from metricsmith.datasets.civil_comments import read_civil_comments as read_civil_comments
    from metricsmith.datasets.civil_comments import sample_by_disagreement as sample_by_disagreement
    from metricsmith.datasets.hanna import read_hanna as read_hanna
    from metricsmith.datasets.mt_metrics_eval import EvalSet as EvalSet
    from metricsmith.datasets.mt_metrics_eval import read_eval_set as read_eval_set
    from metricsmith.datasets.rated_sets import rated_sets as rated_sets
    from metricsmith.datasets.rated_sets import read_rated_set as read_rated_set
    from metricsmith.datasets.score_matrices import ScoreMatrices as ScoreMatrices
    from metricsmith.datasets.score_matrices import read_score_matrices as read_score_matrices
    from metricsmith.datasets.span_ratings import read_span_ratings as read_span_ratings
    from metricsmith.datasets.suite_files import named_suite as named_suite
    from metricsmith.datasets.suite_roots import read_suite as read_suite
    from metricsmith.datasets.taubench import read_taubench as read_taubench
    from metricsmith.datasets.wmt_mqm import read_wmt_mqm as read_wmt_mqm
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
