"""A shared task's folder: the rules on systems and metrics, and every fault of a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metricsmith.datasets.suite_roots import read_suite
from metricsmith.errors import DataError, OptionError
from suite_roots import RULES, own_suite, write_root

SR = "en-sr_Cyrl_RS"


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return write_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def root(tmp_path):
    return write_root(tmp_path)


def by_pair(root, **options):
    return {one.pair: one for one in read_suite(root.root, root.suite, **options)}


def left_out(one, kind):
    return {name: why for what, name, why in one.left_out if what == kind}


def edited(path, change):
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(change(lines)), encoding="utf-8")
    return path


def metric(root, pair, name):
    return root.folder / "metric-scores" / pair / f"{name}.score"


def test_every_number_is_the_planted_one(planted):
    found = read_suite(planted.root, planted.suite)
    assert [one.pair for one in found] == ["en-de", SR, "ja-zh"]
    assert [one.gold_name for one in found] == ["mqm", "esa-human1", "mqm"]
    for one in found:
        assert one.systems == planted.systems[one.pair]
        assert one.documents == planted.documents[one.pair]
        np.testing.assert_array_equal(one.segments, planted.gold[one.pair])
        np.testing.assert_array_equal(one.system_scores, planted.system_gold[one.pair])
        assert list(one.metrics) == sorted(planted.metrics[one.pair])
        for name, side in one.metrics.items():
            np.testing.assert_array_equal(side.segments, planted.metrics[one.pair][name])
            np.testing.assert_array_equal(side.systems, planted.system_metrics[one.pair][name])


def test_the_rules_on_systems_are_told_by_name(planted):
    found = by_pair(planted)
    assert left_out(found["en-de"], "system") == {
        "refB": "the standard reference", "noise": "an outlier", "silent": "no gold score (mqm)",
    }  # fmt: skip
    assert left_out(found[SR], "system") == {
        "refA": "the standard reference", "refB": "a human translation", "silent": "no gold score (esa-human1)",
    }  # fmt: skip
    assert left_out(found["ja-zh"], "system") == {
        "refA": "the standard reference", "noise": "an outlier", "silent": "no gold score (mqm)",
    }  # fmt: skip
    assert [len(one.systems) for one in found.values()] == [7, 7, 6]
    assert "refA" in found["en-de"].systems
    assert "noise" in found[SR].systems


def test_a_variant_counts_if_it_used_nothing_but_the_standard_reference(planted):
    found = by_pair(planted)
    assert left_out(found["en-de"], "metric") == {
        "Aster-refA": "used refA, not refB",
        "Aster-all": "used refA, refB, not refB",
        "Aster-refA.refB": "used refA, refB, not refB",
    }
    assert {*left_out(found[SR], "metric")} == {"Aster-refB", "Aster-all", "Aster-refA.refB"}
    assert left_out(found["ja-zh"], "metric") == {}  # Briar-2-all is Briar-2-refA where there is one reference


def test_names_of_metrics_with_dots_dashes_and_underscores(planted):
    found = by_pair(planted)["ja-zh"].metrics
    assert {(one.name, one.base, one.reference_free) for one in found.values()} == {
        ("Aster", "Aster", False), ("Briar-2", "Briar-2", False), ("Clover_q", "Clover_q", False),
        ("Elder", "Elder", False), ("x.seg.s[noref]", "x.seg.s", True),
    }  # fmt: skip
    assert not any(one.added for one in found.values())


def test_a_metric_may_lack_in_a_pair_and_at_one_level(root):
    metric(root, "en-de", "Aster-refB.sys").unlink()
    metric(root, "en-de", "Elder-refB.seg").unlink()
    found = by_pair(root)
    assert "Dahlia" in found[SR].metrics
    assert "Dahlia" not in found["ja-zh"].metrics
    assert found["en-de"].metrics["Aster"].systems is None
    assert found["en-de"].metrics["Elder"].segments is None
    assert found["en-de"].metrics["Elder"].systems.shape == (7, 1)


def test_scores_by_document_are_not_read(root):
    metric(root, "en-de", "Aster-refB.doc").write_text("garbage", encoding="utf-8")
    assert by_pair(root)["en-de"].metrics["Aster"].segments is not None


def test_without_scores_by_system_gold_has_none_and_one_that_lacks_is_nan(root):
    (root.folder / "human-scores" / "ja-zh.mqm.sys.score").unlink()
    path = root.folder / "human-scores" / "en-de.mqm.sys.score"
    edited(path, lambda lines: [line for line in lines if not line.startswith("System-6.v1")])
    found = by_pair(root)
    assert found["ja-zh"].system_scores is None
    assert np.isnan(found["en-de"].system_scores[:, 0]).tolist() == [True] + [False] * 6


def test_the_folder_of_the_test_set_will_do_too(planted):
    first, second = (read_suite(folder, planted.suite) for folder in (planted.root, planted.folder))
    assert [one.checksums for one in first] == [one.checksums for one in second]


def test_checksums_cover_every_file_that_decides_a_number(root):
    found = by_pair(root)["ja-zh"]
    assert {
        "own24/sources/ja-zh.txt", "own24/documents/ja-zh.docs", "own24/references/ja-zh.refA.txt",
        "own24/system-outputs/ja-zh/noise.txt", "own24/human-scores/ja-zh.mqm.seg.score",
        "own24/human-scores/ja-zh.mqm.sys.score", "own24/metric-scores/ja-zh/Briar-2-all.seg.score",
        "own24/metric-scores/ja-zh/x.seg.s-src.sys.score",
    } <= found.checksums.keys()  # fmt: skip
    path = edited(metric(root, "ja-zh", "Elder-refA.seg"), lambda lines: ["System-1.v1 7\n", *lines[1:]])
    changed = by_pair(root)["ja-zh"].checksums
    name = f"own24/metric-scores/ja-zh/{path.name}"
    assert {key for key in changed if changed[key] != found.checksums[key]} == {name}


def test_primary_keeps_official_metrics_by_base_name(planted):
    suite = replace(planted.suite, primary=("x.seg.s",), baselines=("Elder", "NotThere"))
    found = read_suite(planted.root, suite, primary=True)
    assert [list(one.metrics) for one in found] == [["Elder", "x.seg.s[noref]"]] * 3
    assert left_out(found[0], "metric")["Aster"] == "contrastive: neither primary nor a baseline"
    assert list(read_suite(planted.root, suite)[2].metrics) == sorted(planted.metrics["ja-zh"])
    with pytest.raises(OptionError, match="names no primary metrics"):
        read_suite(planted.root, planted.suite, primary=True)


def test_metrics_are_asked_for_by_either_name(planted):
    found = by_pair(planted, metrics=["x.seg.s", "Elder"])
    assert list(found["en-de"].metrics) == ["Elder", "x.seg.s[noref]"]
    assert left_out(found["en-de"], "metric")["Briar-2"] == "not asked for"
    assert list(by_pair(planted, metrics=["x.seg.s[noref]"])["en-de"].metrics) == ["x.seg.s[noref]"]
    with pytest.raises(DataError, match="ja-zh: none of its 5 metrics counts: leave --primary"):
        by_pair(planted, metrics=["Dahlia"])


def test_a_sign_is_turned_round_on_both_levels(planted):
    plain, turned = (by_pair(planted, lower_is_better=names)["en-de"].metrics for names in ((), ["x.seg.s"]))
    for level in ("segments", "systems"):
        one, other = (getattr(side["x.seg.s[noref]"], level) for side in (plain, turned))
        np.testing.assert_array_equal(one, -other)
        np.testing.assert_array_equal(getattr(plain["Aster"], level), getattr(turned["Aster"], level))


def test_systems_left_out_on_request(planted):
    found = by_pair(planted, without=["System-3.v1", "refB"])
    assert [len(one.systems) for one in found.values()] == [6, 6, 5]
    assert left_out(found["en-de"], "system")["System-3.v1"] == "on request"
    assert found["en-de"].segments.shape == (6, 60)
    np.testing.assert_array_equal(found["en-de"].segments[2], planted.gold["en-de"][2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"without": ["System-9.v1"]}, "without='System-9.v1': there is none of this name (did you mean 'System-"),
        ({"metrics": ["Astr"]}, "metrics='Astr': there is none of this name (did you mean 'Aster'?)"),
        ({"lower_is_better": ["Eldr"]}, "lower_is_better='Eldr': there is none of this name (did you mean 'Elder'?)"),
        ({"added": {"en-dd": []}}, "'en-dd' (did you mean 'en-de'?)"),
    ],
)
def test_an_unknown_name_gets_the_nearest(planted, options, words):
    with pytest.raises(OptionError) as caught:
        by_pair(planted, **options)
    assert words in str(caught.value)


def test_a_pair_without_gold_names_the_gold_scores_that_are_there(planted):
    with pytest.raises(DataError) as caught:
        by_pair(planted, gold="esa-human2")
    path = planted.folder / "human-scores" / "en-de.esa-human2.seg.score"
    assert f"{path}: no such file, so en-de has no gold scores 'esa-human2'" in str(caught.value)
    assert "there are mqm" in str(caught.value)
    only = replace(planted.suite, pairs={SR: RULES[SR]})
    with pytest.raises(DataError, match=r"did you mean 'esa-human1'\?"):
        read_suite(planted.root, only, gold="esa-human2")


def test_gold_by_name_takes_the_place_of_the_suites(root):
    human = root.folder / "human-scores"
    for level in ("seg", "sys"):
        (human / f"{SR}.mqm.{level}.score").write_bytes((human / f"{SR}.esa-human1.{level}.score").read_bytes())
    assert by_pair(root, gold="mqm")[SR].gold_name == "mqm"


def test_a_root_of_something_else(tmp_path):
    with pytest.raises(DataError, match="neither own24/sources nor sources is there"):
        read_suite(tmp_path, own_suite())


def test_two_systems_are_needed(planted):
    with pytest.raises(DataError, match="ja-zh has 1 systems that count, and two are needed"):
        by_pair(planted, without=[f"System-{number}.v1" for number in range(2, 7)])


def test_a_standard_reference_that_is_not_there(planted):
    suite = replace(planted.suite, pairs={"ja-zh": replace(RULES["ja-zh"], reference="refB")})
    with pytest.raises(DataError, match="ja-zh has no reference 'refB'"):
        read_suite(planted.root, suite)


TEXTS = ["sources/en-de.txt", "documents/en-de.docs", "references/en-de.refA.txt", "system-outputs/en-de/noise.txt"]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("skip", [False, True])
def test_mixed_line_counts_are_never_skipped(root, name, skip):
    edited(root.folder / name, lambda lines: lines[:-1])
    with pytest.raises(DataError, match="lines, the source has") as caught:
        by_pair(root, skip_broken=skip)
    assert str(root.folder / name).removesuffix("sources/en-de.txt") in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [*lines[:3], "System-6.v1 1 2\n", *lines[4:]], ", line 4: 3 fields"),
        (lambda lines: ["Sistem-6.v1 1\n", *lines], ", line 1: no system 'Sistem-6.v1' (did you mean 'System-6.v1'?)"),
        (lambda lines: lines[1:], "has 59 scores, 60 are needed"),
        (lambda lines: [], "is empty"),
    ],
)
def test_faults_of_gold_are_never_skipped(root, change, words):
    path = edited(root.folder / "human-scores" / "en-de.mqm.seg.score", change)
    for skip in (False, True):
        with pytest.raises(DataError) as caught:
            by_pair(root, skip_broken=skip)
        assert str(path) in str(caught.value)
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [*lines[:3], "System-1.v1\n", *lines[4:]], ", line 4: 1 fields"),
        (lambda lines: [*lines[:3], "System-1.v1 x\n", *lines[4:]], ", line 4: the score 'x' is no finite number"),
        (lambda lines: [*lines[:3], "System-1.v1 None\n", *lines[4:]], ", line 4: the score is None"),
        (lambda lines: [*lines, "other 1\n"], f", line {60 * 9 + 1}: no system 'other'"),
        (lambda lines: [line for line in lines if "noise" not in line], "no scores of 1 of the 9 systems needed"),
        (lambda lines: lines[::2], "'System-1.v1' has 30 scores, 60 are needed"),
    ],
)
def test_faults_of_a_metrics_file_end_in_an_error_or_leave_it_out(root, change, words):
    path = edited(metric(root, "en-de", "Aster-refB.seg"), change)
    with pytest.raises(DataError) as caught:
        by_pair(root)
    for part in (str(path), words, "--skip-broken"):
        assert part in str(caught.value)
    found = by_pair(root, skip_broken=True)
    assert "Aster" not in found["en-de"].metrics
    assert "Aster" in found[SR].metrics
    assert len(found["en-de"].metrics) == 5
    assert words in left_out(found["en-de"], "metric")["Aster"]


def test_two_variants_of_one_name_are_both_named(root):
    for level in ("seg", "sys"):
        first = metric(root, "ja-zh", f"Briar-2-all.{level}")
        metric(root, "ja-zh", f"Briar-2-refA.{level}").write_bytes(first.read_bytes())
    with pytest.raises(
        DataError, match=r"Briar-2-all.seg.score and .*Briar-2-refA.seg.score are both metric 'Briar-2'"
    ):
        by_pair(root)
    found = by_pair(root, skip_broken=True)["ja-zh"]
    assert "Briar-2" not in found.metrics
    assert "are both" in left_out(found, "metric")["Briar-2"]


def test_a_file_that_names_no_reference(root):
    metric(root, "ja-zh", "BLEU.seg").write_text("noise 1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"BLEU.seg.score: no dash and references behind"):
        by_pair(root)
    assert "no dash" in left_out(by_pair(root, skip_broken=True)["ja-zh"], "metric")["BLEU"]
