"""Suites by name, and from TOML."""

from __future__ import annotations

import pytest

from metricsmith.datasets.suite_files import named_suite
from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.suites import PairRules, SuiteTask
from metricsmith.meta_evaluation.wmt_suites import SUITES

GOOD = """
name = "ours"
test_set = "own24"
gold = "esa"
outliers = ["noise"]
primary = ["Aster"]
baselines = ["BLEU"]
source = "a table"

[pairs.en-de]
reference = "refB"
human = true
outliers = []
[pairs.en-sr_Cyrl_RS]
gold = "esa-human1"

[[measures]]
measure = "spa"
[[measures]]
measure = "system-accuracy"
level = "sys"
weight = 2
pooled = true
[[measures]]
measure = "pearson"
weight = 0.5
bounds = [0, 1]
"""


def written(folder, text):
    path = folder / "ours.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_preset_by_name():
    assert named_suite("wmt24") is SUITES["wmt24"]


@pytest.mark.parametrize(("name", "words"), [("wmt2", "did you mean"), ("x", "unknown suite 'x'"), ("", "unknown")])
def test_an_unknown_name_lists_the_known_ones(name, words):
    with pytest.raises(OptionError, match=words) as caught:
        named_suite(name)
    assert "wmt23, wmt24, wmt24-on-wmt23, wmt25" in str(caught.value)


def test_a_pooled_measure_takes_scores_by_system_unasked(tmp_path):
    suite = named_suite(written(tmp_path, GOOD.replace('level = "sys"\n', "")))
    assert suite == named_suite(written(tmp_path, GOOD))


def test_a_file_says_all_that_a_preset_does(tmp_path):
    suite = named_suite(written(tmp_path, GOOD))
    pairs = ("en-de", "en-sr_Cyrl_RS")
    assert (suite.name, suite.test_set, suite.source) == ("ours", "own24", "a table")
    assert (suite.primary, suite.baselines) == (("Aster",), ("BLEU",))
    assert suite.pairs == {
        "en-de": PairRules("esa", "refB", True, ()),
        "en-sr_Cyrl_RS": PairRules("esa-human1", "refA", False, ("noise",)),
    }
    assert suite.tasks == (
        SuiteTask("system-accuracy", pairs, "sys", 2.0),
        SuiteTask("spa", ("en-de",)), SuiteTask("pearson", ("en-de",), "seg", 0.5, (0, 1)),
        SuiteTask("spa", ("en-sr_Cyrl_RS",)), SuiteTask("pearson", ("en-sr_Cyrl_RS",), "seg", 0.5, (0, 1)),
    )  # fmt: skip


def test_the_shortest_file(tmp_path):
    path = written(tmp_path, 'name="s"\ntest_set="t"\npairs=["ja-zh"]\nmeasures=[{measure="acc-t"}]')
    suite = named_suite(str(path))
    assert suite.pairs == {"ja-zh": PairRules()}
    assert suite.tasks == (SuiteTask("acc-t", ("ja-zh",)),)
    assert suite.source == str(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('gold = "esa"', 'glod = "esa"', "unknown key 'glod' (did you mean 'gold'?)"),
        ('gold = "esa"', "gold = 3", "gold = 3, which must be a text"),
        ('gold = "esa"', 'gold = ""', "gold = '', which must be a text"),
        ('["noise"]', '["noise", 1]', "outliers = ['noise', 1], which must be a list of texts"),
        ('["Aster"]', '"Aster"', "primary = 'Aster', which must be a list of texts"),
        ("human = true", "human = 1", "[pairs.en-de], human = 1, which must be true or false"),
        ("human = true", "humans = true", "[pairs.en-de]: unknown key 'humans' (did you mean 'human'?)"),
        ("human = true", 'name = "x"', "[pairs.en-de]: unknown key 'name'"),
        ('name = "ours"', "", "no key 'name', which is needed"),
        ('test_set = "own24"', "", "no key 'test_set'"),
        ('measure = "spa"', "", "[[measures]] 1: no key 'measure'"),
        ('"spa"', '"sp"', "[[measures]] 1, measure: unknown measure 'sp' (did you mean 'spa'?)"),
        ('"spa"', "[1]", "[[measures]] 1, measure = [1], which must be a text"),
        ('"spa"', '"spa"\nlevels = "seg"', "[[measures]] 1: unknown key 'levels' (did you mean 'level'?)"),
        ('"spa"', '"spa"\nlevel = "sys"', "level = 'sys', which must be seg for spa"),
        ('"spa"', '"spa"\npooled = true', "system-accuracy alone"),
        ('level = "sys"', 'level = "seg"', "sys where language pairs are pooled"),
        ('level = "sys"', 'level = "doc"', "[[measures]] 2, level = 'doc', which must be sys or seg"),
        ("weight = 2", "weight = 0", "weight = 0.0, which must be above 0"),
        ("weight = 2", "weight = -1", "weight = -1.0, which must be above 0"),
        ("weight = 2", "weight = true", "weight = True, which must be a number"),
        ("weight = 2", "weight = inf", "weight = inf, which must be a number"),
        ("[0, 1]", "[1, 0]", "[[measures]] 3, bounds = [1, 0], which must be two numbers, the lower first"),
        ("[0, 1]", "[0]", "bounds = [0]"),
        ("[0, 1]", '["a", 1]', "bounds = ['a', 1]"),
        ("weight = 2", "weight = nan", "weight = nan, which must be a number that is finite"),
        ('"own24"', '"../own24"', "test_set = '../own24', which must be a text without / that names a file"),
        ('"own24"', '".."', "test_set = '..', which must be a text without /"),
        ('gold = "esa"', 'gold = "x/esa"', "gold = 'x/esa', which must be a text without /"),
        ("[pairs.en-de]", '[pairs."../en-de"]', "a pair = '../en-de', which must be a text without /"),
        ('"pearson"', '"spa"', "'en-de spa' stands there twice"),
        ('name = "ours"', "name = ", "cannot be read as TOML"),
    ],
)
def test_a_fault_is_named_with_its_file_and_key(tmp_path, old, new, words):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(DataError) as caught:
        named_suite(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name="s"\ntest_set="t"\npairs=["a-b"]\nmeasures=[]', "measures is empty"),
        ('name="s"\ntest_set="t"\npairs=[]\nmeasures=[{measure="spa"}]', "pairs is empty"),
        ('name="s"\ntest_set="t"\npairs=[1]\nmeasures=[{measure="spa"}]', "pairs = [1], which must be a table"),
        ('name="s"\ntest_set="t"\npairs=["a-b"]\nmeasures=["spa"]', "[[measures]] 1 = 'spa', which must be a table"),
        ('name="s"\ntest_set="t"\nmeasures=3\npairs=["a-b"]', "measures = 3, which must be a list of tables"),
        ('name="s"\ntest_set="t"\nmeasures=[{measure="spa"}]\npairs={a-b=1}', "[pairs.a-b] = 1, which must be a table"),
    ],
)
def test_pieces_that_are_missing_or_of_another_kind(tmp_path, text, words):
    with pytest.raises(DataError) as caught:
        named_suite(written(tmp_path, text))
    assert words in str(caught.value)


def test_a_file_that_is_absent(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        named_suite(tmp_path / "none.toml")
