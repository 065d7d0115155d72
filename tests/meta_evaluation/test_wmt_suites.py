"""The presets against the definitions of the tasks, written out by hand from tasks.py and meta_info.py of the tool."""

from __future__ import annotations

import pytest

from metricsmith.meta_evaluation.suites import PairRules, task_bounds
from metricsmith.meta_evaluation.wmt_suites import SUITES

PAIRS_25 = [
    "cs-de_DE", "cs-uk_UA", "en-ar_EG", "en-bho_IN", "en-cs_CZ", "en-et_EE", "en-is_IS", "en-it_IT", "en-ja_JP",
    "en-ko_KR", "en-mas_KE", "en-ru_RU", "en-sr_Cyrl_RS", "en-uk_UA", "en-zh_CN", "ja-zh_CN",
]  # fmt: skip


def rows(name):
    return [(task.name, task.level, task.weight) for task in SUITES[name].tasks]


def test_the_suites_and_their_test_sets():
    assert {name: suite.test_set for name, suite in SUITES.items()} == {
        "wmt23": "wmt23", "wmt24": "wmt24", "wmt24-on-wmt23": "wmt23", "wmt25": "wmt25",
    }  # fmt: skip
    assert all(suite.name == name and "mt-metrics-eval" in suite.source for name, suite in SUITES.items())


def test_wmt23_has_ten_columns_and_pooled_accuracy_counts_three_times():
    assert rows("wmt23") == [
        ("all system-accuracy", "sys", 3.0),
        ("en-de system-pearson", "sys", 1.0), ("en-de pearson", "seg", 1.0), ("en-de acc-t", "seg", 1.0),
        ("he-en system-pearson", "sys", 1.0), ("he-en pearson", "seg", 1.0), ("he-en acc-t", "seg", 1.0),
        ("zh-en system-pearson", "sys", 1.0), ("zh-en pearson", "seg", 1.0), ("zh-en acc-t", "seg", 1.0),
    ]  # fmt: skip
    assert SUITES["wmt23"].tasks[0].pairs == ("en-de", "he-en", "zh-en")
    assert [task_bounds(task) for task in SUITES["wmt23"].tasks[:4]] == [(0, 1), (-1, 1), (-1, 1), (0, 1)]


@pytest.mark.parametrize(
    ("name", "pairs"),
    [("wmt24", ["en-de", "en-es", "ja-zh"]), ("wmt24-on-wmt23", ["en-de", "he-en", "zh-en"]), ("wmt25", PAIRS_25)],
)
def test_the_later_suites_have_spa_and_acc_t_in_each_pair_with_equal_weights(name, pairs):
    assert rows(name) == [(f"{pair} {task}", "seg", 1.0) for pair in pairs for task in ("spa", "acc-t")]
    assert list(SUITES[name].pairs) == pairs
    assert {task_bounds(task) for task in SUITES[name].tasks} == {(0.0, 1.0)}


def test_gold_references_human_translations_and_outliers():
    of_23 = {
        "en-de": PairRules("mqm", "refA", False, ("synthetic_ref",)),
        "he-en": PairRules("mqm", "refB", True, ()),
        "zh-en": PairRules("mqm", "refA", False, ("synthetic_ref",)),
    }
    assert SUITES["wmt23"].pairs == SUITES["wmt24-on-wmt23"].pairs == of_23
    assert SUITES["wmt24"].pairs == {
        "en-de": PairRules("mqm", "refB", True, ("MSLC",)),
        "en-es": PairRules("mqm", "refA", False, ("MSLC",)),
        "ja-zh": PairRules("mqm", "refA", False, ("MSLC",)),
    }
    assert SUITES["wmt25"].pairs == {
        pair: PairRules("mqm" if pair in ("ja-zh_CN", "en-ko_KR") else "esa-human1", "refA", False, ())
        for pair in PAIRS_25
    }


@pytest.mark.parametrize(
    ("name", "primary", "baselines", "some"),
    [
        ("wmt23", 18, 14, {"MaTESe", "GEMBA-MQM", "docWMT22CometKiwiDA", "f200spBLEU", "YiSi-1"}),
        ("wmt24-on-wmt23", 18, 14, {"XLsim", "prismSrc"}),
        ("wmt24", 13, 13, {"metametrics_mt_mqm_qe_kendall.seg.s", "BLCOM_1", "sentinel-src-mqm", "COMET-22"}),
        ("wmt25", 12, 8, {"EnsembleSlick", "mr7_2_1", "rankedCOMET", "COMETKiwi22", "spBLEU"}),
    ],
)
def test_the_lists_of_official_metrics(name, primary, baselines, some):
    suite = SUITES[name]
    assert (len({*suite.primary}), len({*suite.baselines})) == (primary, baselines)
    assert (len(suite.primary), len(suite.baselines)) == (primary, baselines)
    assert some <= {*suite.primary, *suite.baselines}
    assert not {*suite.primary} & {*suite.baselines}
