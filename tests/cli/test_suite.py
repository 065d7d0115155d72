"""`metricsmith meta-eval --suite`: a shared task from a folder to a table, once, again, and with one's own judge."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from metricsmith.meta_evaluation import significance
from metricsmith.report.suite.document import SUITE_FILES
from metricsmith.studies import suite as studies
from suite_roots import write_root

TOML = """
name = "own24"
test_set = "own24"
source = "the tests"
primary = ["Aster", "x.seg.s"]
baselines = ["Elder"]
[pairs.en-de]
reference = "refB"
human = true
outliers = ["noise"]
[pairs.en-sr_Cyrl_RS]
gold = "esa-human1"
[pairs.ja-zh]
outliers = ["noise"]
[[measures]]
measure = "spa"
[[measures]]
measure = "acc-t"
"""
FEW = ("--resamples", 50)
KEPT = "suite_kept.jsonl"


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    (folder / "own24.toml").write_text(TOML, encoding="utf-8")
    return write_root(folder, systems=5, segments=25)


@pytest.fixture
def call(run, planted):
    def called(*options, root=planted.root):
        return run("meta-eval", "--suite", planted.root / "own24.toml", root, *FEW, *options)

    return called


@pytest.fixture(scope="module")
def finished(planted, exit_code, tmp_path_factory):
    """The folder of a run with all files."""
    folder = tmp_path_factory.mktemp("run")
    suite = planted.root / "own24.toml"
    assert exit_code("meta-eval", "--suite", suite, planted.root, *FEW, "--quiet", "--out", folder) == 0
    return folder


def judge(path, planted, noise=0.0, pair="en-de"):
    """One's own judge as a table: the planted gold of a language pair, with noise."""
    rng = np.random.default_rng(3)
    gold = np.nan_to_num(planted.gold[pair], nan=-1.0)
    scores = gold + noise * rng.normal(size=gold.shape)
    lines = [
        json.dumps({"system": system, "segment": segment + 1, "mine": scores[row, segment]})
        for row, system in enumerate(planted.systems[pair])
        for segment in range(gold.shape[1])
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def no_test(*_, **__):
    raise AssertionError("a test was made anew")


def test_the_table_stands_in_planted_order_and_nothing_is_written(call, planted):
    before = sorted(planted.root.rglob("*"))
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out.startswith("Aster comes first on average over 6 tasks of own24 (.9")
    rows = [line.split()[0] for line in out.split("  metric")[1].splitlines()[1:7]]
    assert rows == ["Aster", "x.seg.s[noref]", "Briar-2*", "Clover_q*", "Elder†", "Dahlia*"]
    assert "Dahlia*         –        –" in out  # it has no files in ja-zh
    # 3 systems by pair; three variants of the best metric with other references in each of two pairs.
    assert "left out: 4 metrics (Aster-all, Aster-refA.refB, Aster-refA and 1 more), 9 systems and " in out
    assert "segments in 3 language pairs; the report" in out
    assert sorted(planted.root.rglob("*")) == before


def test_the_files_are_written_and_json_is_one_of_them(call, finished):
    assert sorted(path.name for path in finished.iterdir()) == sorted((*SUITE_FILES, KEPT))
    code, out, _ = call("--json")
    assert code == 0
    assert json.loads(out) == json.loads((finished / "suite.json").read_text("utf-8"))


@pytest.mark.parametrize(("form", "file"), [("markdown", "suite.md"), ("tsv", "suite.tsv"), ("latex", "suite.tex")])
def test_a_form_prints_what_stands_in_its_file(call, finished, form, file):
    code, out, _ = call("--format", form, "--join", finished / "suite.json")
    assert code == 0
    assert out.strip() == (finished / file).read_text("utf-8").strip()


def test_a_run_that_was_killed_goes_on_to_the_same_table(call, finished, tmp_path, monkeypatch):
    whole = (finished / KEPT).read_bytes()
    (tmp_path / KEPT).write_bytes(whole[: 2 * len(whole) // 3])  # the last line is torn
    made = []
    plain = significance.better_draws
    monkeypatch.setattr(significance, "better_draws", lambda *a, **k: made.append(1) or plain(*a, **k))
    assert call("--out", tmp_path, "--quiet") == (0, "", "")
    assert 0 < len(made) < whole.count(b"\n") / 2
    for name in SUITE_FILES:
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes()


def test_a_finished_run_makes_no_test_again(call, finished, tmp_path, monkeypatch):
    folder = shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.setattr(significance, "better_draws", no_test)
    monkeypatch.setattr("metricsmith.meta_evaluation.evaluation.chance_floors", no_test)
    assert call("--out", folder, "--quiet")[0] == 0
    assert (folder / KEPT).read_bytes() == (finished / KEPT).read_bytes()


def test_ctrl_c_says_where_the_numbers_stand(call, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "evaluate_suite", interrupted)
    code, out, err = call("--out", tmp_path)
    assert (code, out) == (130, "")
    assert f"what was computed stands in {tmp_path / KEPT}" in err


def test_an_added_judge_joins_its_language_pair_and_computes_nothing_old(
    call, planted, finished, tmp_path, monkeypatch
):
    made = []
    plain = significance.better_draws
    monkeypatch.setattr(significance, "better_draws", lambda *a, **k: made.append(a[1:3]) or plain(*a, **k))
    path = judge(tmp_path / "mine.jsonl", planted)
    code, out, err = call("--add", f"en-de={path}", "--join", finished / "suite.json", "--out", tmp_path / "new")
    assert (code, err) == (0, "")
    assert "mine, which was added, has no average: it lacks en-sr_Cyrl_RS spa, en-sr_Cyrl_RS acc-t, ja-zh spa" in out
    row = next(line.split() for line in out.splitlines() if line.startswith("  mine‡"))
    assert row[:7] == ["mine‡", "–", "–", "1", "1.000", "1", "1.000"]
    gold = np.nan_to_num(planted.gold["en-de"], nan=-1.0)
    present = ~np.isnan(planted.gold["en-de"])
    mine = [np.array_equal(side[present], gold[present]) for pair in made for side in pair if side.shape == gold.shape]
    assert len(made) > 0
    assert sum(mine) == len(made)  # the new metric is one side of each test that is made


def test_a_joined_result_alone_answers_without_a_test(call, finished, monkeypatch):
    monkeypatch.setattr(significance, "better_draws", no_test)
    code, out, _ = call("--join", finished / "suite.json", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((finished / "suite.json").read_text("utf-8"))


def test_judges_in_every_pair_have_an_average_and_a_place(call, planted, tmp_path):
    options = []
    for pair in planted.systems:
        (tmp_path / pair).mkdir()
        options += ["--add", f"{pair}={judge(tmp_path / pair / 'mine.jsonl', planted, 0.5, pair)}"]
    code, out, _ = call(*options)
    assert code == 0
    assert " mine, which was added, has place 1 of 6, in cluster 1 (" in out.splitlines()[0]


def test_options_reach_the_evaluation(call):
    options = ("--metric", "Aster", "--metric", "Elder", "--without", "System-1.v1", "--lower-is-better", "Elder")
    code, out, _ = call(*options, "--seed", 7, "--swap", "scores", "--decimals", 2, "--json")
    assert code == 0
    content = json.loads(out)
    assert {one["name"] for one in content["metrics"]} == {"Aster", "Elder"}
    assert all("System-1.v1" not in column["systems"] for column in content["columns"])
    assert (content["seed"], content["swap"]) == (7, "scores")
    assert "rounded to 2 decimals" in content["signature"]
    assert next(one["value"] for one in content["averages"] if one["name"] == "Elder") < 0.5


def test_primary_leaves_contrastive_metrics_out(call):
    content = json.loads(call("--primary", "--json")[1])
    assert {one["base"] for one in content["metrics"]} == {"Aster", "x.seg.s", "Elder"}


def test_other_scores_of_people_are_gold_on_request(call, planted, tmp_path):
    root = shutil.copytree(planted.root, tmp_path / "root")
    for pair in planted.systems:
        for path in (root / "own24" / "human-scores").glob(f"{pair}.*.score"):
            level = path.name.split(".")[-2]
            shutil.copy(path, path.with_name(f"{pair}.other.{level}.score"))
    code, out, _ = call("--gold", "other", root=root)
    assert code == 0
    assert "metrics against other in 6 tasks" in out


def test_a_broken_metric_is_an_error_or_left_out_and_listed(call, planted, tmp_path):
    root = shutil.copytree(planted.root, tmp_path / "root")
    path = root / "own24" / "metric-scores" / "en-de" / "Elder-refB.seg.score"
    path.write_text(path.read_text("utf-8").replace("\t", "\tx", 3), encoding="utf-8")
    code, _, err = call(root=root)
    assert code == 2
    assert f"{path.name}, line 1" in err or f"{path.name}:1:" in err
    code, out, _ = call("--skip-broken", "--json", root=root)
    assert code == 0
    (left_out,) = (one for one in json.loads(out)["left_out"] if one["name"].startswith("Elder"))
    assert (left_out["pair"], left_out["kind"]) == ("en-de", "metric")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (("gold.tsv",), "GOLD"), (("--task", "acc"), "--task"), (("--target", "x"), "--target"),
        (("--weights", "wmt"), "--weights"), (("--documents", "x"), "--documents"), (("--tests", "all"), "--tests"),
    ],
)  # fmt: skip
def test_options_of_one_gold_file_are_refused_beside_a_suite(call, option, named):
    code, out, err = call(*option)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{named} has no meaning beside --suite" in err


@pytest.mark.parametrize(
    "option",
    [("--primary",), ("--gold", "mqm"), ("--skip-broken",), ("--join", "suite.json"), ("--format", "tsv")],
    ids=lambda option: option[0],
)
def test_options_of_a_suite_are_refused_without_one(run, option):
    code, out, err = run("meta-eval", "scores.csv", "gold.csv", *option)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{option[0]} has a meaning with --suite only" in err


def test_gold_is_needed_without_a_suite(run):
    assert run("meta-eval", "scores.csv") == (
        2, "", "error: GOLD is missing: name the file of people's ratings, or a shared task with --suite\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--add", "en-d=x.jsonl"), "(did you mean 'en-de'?): en-de, en-sr_Cyrl_RS and ja-zh"),
        (("--add", "x.jsonl"), "must be PAIR=FILE"),
        (("--add", "en-de="), "must be PAIR=FILE"),
        (("--each-run",), "--each-run has a meaning with --add PAIR=FILE only"),
        (("--format", "tex"), "(did you mean 'latex'?): allowed are markdown, tsv and latex"),
        (("--swap", "all"), "--swap"),
        (("--join", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(call, options, said):
    code, out, err = call(*options)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_only_results_of_the_same_suite_with_their_numbers_are_joined(call, finished, tmp_path):
    path = tmp_path / "suite.json"
    for content, said in (
        ('{"suite": "wmt24"}', "a result of wmt24, not of own24"), ("[]", "a result of no suite"),
        ('{"suite": [1]}', "a result of no suite"), ('{"suite": "' + "x" * 10**6 + '"}', "a result of xxx"),
        ("[" * 10**5, "cannot be read"), ('{"suite": ' + "9" * 10**5 + "}", "cannot be read"),
    ):  # fmt: skip
        path.write_text(content, encoding="utf-8")
        code, _, err = call("--join", path)
        assert code == 2
        assert said in err
        assert len(err) < 600
    shutil.copy(finished / "suite.json", path)
    code, _, err = call("--join", path)
    assert code == 2
    assert f"there is no {KEPT} beside it" in err


def test_what_is_read_is_not_written_over(call, finished, planted):
    path = judge(finished.parent / "suite.tsv", planted)
    code, _, err = call("--add", f"en-de={path}", "--out", finished.parent)
    assert code == 2
    assert "would be lost" in err
