"""The metrics shared tasks of WMT 2023 to 2025 as suites.

Source: ``tasks.py`` and ``meta_info.py`` of google-research/mt-metrics-eval, which computed the published tables. As
published, tables hold contrastive submissions too; the lists of official metrics are there to leave these out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from metricsmith.meta_evaluation.evaluation import WMT24
from metricsmith.meta_evaluation.suites import PairRules, ScoreLevel, Suite, SuiteTask

__all__ = ["SUITES"]

SOURCE = "tasks.py and meta_info.py of google-research/mt-metrics-eval"

PRIMARY_23 = (
    "Calibri-COMET22 Calibri-COMET22-QE cometoid22-wmt22 eBLEU embed_llama GEMBA-MQM KG-BERTScore MaTESe MEE4 "
    "MetricX-23 MetricX-23-QE mre-score-labse-regular mbr-metricx-qe sescoreX tokengram_F XCOMET-Ensemble "
    "XCOMET-QE-Ensemble XLsim"
)
BASELINES_23 = (
    "BERTscore BLEU BLEURT-20 chrF COMET CometKiwi docWMT22CometDA docWMT22CometKiwiDA f200spBLEU MS-COMET-QE-22 "
    "prismRef prismSrc Random-sysname YiSi-1"
)
PRIMARY_24 = (
    "BLCOM_1 bright-qe chrfS damonmonli gemba_esa MEE4 metametrics_mt_mqm_hybrid_kendall "
    "metametrics_mt_mqm_qe_kendall.seg.s MetricX-24-Hybrid MetricX-24-Hybrid-QE XCOMET XCOMET-QE XLsimMqm"
)
BASELINES_24 = (
    "BERTScore BLEU BLEURT-20 chrF COMET-22 CometKiwi PrismRefMedium PrismRefSmall spBLEU YiSi-1 sentinel-cand-mqm "
    "sentinel-ref-mqm sentinel-src-mqm"
)
PRIMARY_25 = (
    "EnsembleSlick GEMBA-v2 MetricX-25 Polycand-2 Q_Relative-MQM SEGALE-QE TASER-No-Ref UvA-MT comet-multi hw-tsc "
    "mr7_2_1 rankedCOMET"
)
BASELINES_25 = "BERTScore BLEU COMET22 COMETKiwi22 YiSi-1 chrF sentinel-cand spBLEU"

PAIRS_23 = {
    "en-de": PairRules(outliers=("synthetic_ref",)),
    "he-en": PairRules(reference="refB", human=True),
    "zh-en": PairRules(outliers=("synthetic_ref",)),
}
PAIRS_24 = {
    "en-de": PairRules(reference="refB", human=True, outliers=("MSLC",)),
    "en-es": PairRules(outliers=("MSLC",)),
    "ja-zh": PairRules(outliers=("MSLC",)),
}
MQM_25 = ("en-ko_KR", "ja-zh_CN")
NAMES_25 = (
    "cs-de_DE cs-uk_UA en-ar_EG en-bho_IN en-cs_CZ en-et_EE en-is_IS en-it_IT en-ja_JP en-ko_KR en-mas_KE en-ru_RU "
    "en-sr_Cyrl_RS en-uk_UA en-zh_CN ja-zh_CN"
)
PAIRS_25 = {pair: PairRules("mqm" if pair in MQM_25 else "esa-human1") for pair in NAMES_25.split()}


def _suite(
    name: str, test_set: str, pairs: Mapping[str, PairRules], lists: tuple[str, str], tasks: tuple[SuiteTask, ...] = ()
) -> Suite:
    """A suite, by default with the two tasks by language pair of WMT24."""
    own = tasks or tuple(SuiteTask(measure, (pair,)) for pair in pairs for measure in WMT24)
    primary, baselines = (tuple(names.split()) for names in lists)
    return Suite(name, test_set, MappingProxyType(dict(pairs)), own, primary, baselines, SOURCE)


BY_PAIR_23: tuple[tuple[str, ScoreLevel], ...] = (("system-pearson", "sys"), ("pearson", "seg"), ("acc-t", "seg"))
TASKS_23 = (
    # Pooled accuracy counts as often as there are language pairs.
    SuiteTask("system-accuracy", tuple(PAIRS_23), "sys", float(len(PAIRS_23))),
    *(SuiteTask(measure, (pair,), level) for pair in PAIRS_23 for measure, level in BY_PAIR_23),
)

SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        suite.name: suite
        for suite in (
            _suite("wmt23", "wmt23", PAIRS_23, (PRIMARY_23, BASELINES_23), TASKS_23),
            _suite("wmt24", "wmt24", PAIRS_24, (PRIMARY_24, BASELINES_24)),
            _suite("wmt24-on-wmt23", "wmt23", PAIRS_23, (PRIMARY_23, BASELINES_23)),
            _suite("wmt25", "wmt25", PAIRS_25, (PRIMARY_25, BASELINES_25)),
        )
    }
)
"""By name. ``wmt24-on-wmt23`` has the tasks of WMT24 on the data of WMT23."""
