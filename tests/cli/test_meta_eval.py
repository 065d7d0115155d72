"""`metricsmith meta-eval`: metrics beside gold ratings, from files to a table."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from mqm_files import OLD_FILE
from score_tables import SYSTEMS, outputs, write, write_scores

LABELS = ("system", "doc", "segment")
ROWS = outputs()
FEW = ("--resamples", 50)


@pytest.fixture
def files(tmp_path):
    return (
        write(tmp_path / "scores.csv", ROWS, *LABELS, "near", "far"),
        write(tmp_path / "gold.csv", ROWS, *LABELS, "mark"),
    )


def test_the_table_is_printed_and_nothing_is_written(run, files, tmp_path):
    code, out, err = run("meta-eval", *files, "--target", "mark", *FEW)
    assert (code, err) == (0, "")
    assert out.startswith("near agrees best with mark (average of spa and acc-t ")
    assert "2 metrics against mark: 72 outputs of 4 systems on 18 segments in 6 documents." in out
    assert re.search(r"metric +# +average +# +spa +# +acc-t\n +near +1 +\.\d{3} +1 +\.\d{3} +1 +\.\d{3}\n +far +2", out)
    assert re.search(r"acc-t +cluster +value +95 % +chance +p +ε +on\n +near +1 +\.\d{3} +\.\d{3} to \.\d{3}", out)
    assert re.search(r"better than +far\n +near +\.\d{3}\n", out)
    assert re.search(r"near +[<.\d ]+\n  The clusters of acc-t rest on WMT's test, .*--swap scores.*\n\nwarning: ", out)
    assert "note: segments were matched by document and segment" in out
    sources = r"scores scores.csv sha256:[0-9a-f]{16} \| gold gold.csv sha256:[0-9a-f]{16} \|"
    assert re.search(sources, out.splitlines()[-1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.csv", "scores.csv"]


def test_json_is_the_files_content(run, files, tmp_path):
    options = ("--target", "mark", "--task", "acc", "--out", tmp_path / "new", *FEW)
    code, out, _ = run("meta-eval", *files, "--json", *options)
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "new" / "meta_evaluation.json").read_text("utf-8"))
    assert sorted(path.suffix for path in (tmp_path / "new").iterdir()) == [".html", ".json", ".md"]
    assert [task["task"] for task in json.loads(out)["tasks"]] == ["acc"]


def test_options_reach_the_evaluation(run, files):
    options = ("--metric", "near", "--lower-is-better", "near", "--without", "dog", "--decimals", 0, "--seed", 5)
    code, out, err = run("meta-eval", *files, "--target", "mark", "--task", "acc-t", "--task", "tau-b", *options, *FEW)
    assert code == 0, err
    assert "54 outputs of 3 systems" in out
    assert "warning: near agrees less than chance on tau-b" in out
    assert "systems left out, on request: dog" in out
    assert "tasks acc-t, tau-b | differences rounded to 0 decimals | seed 5, 50 resamples" in out
    assert "far" not in out
    assert "average" not in out


def test_what_tests_exchange_is_an_option(run, files):
    random = np.random.default_rng(1)
    rows = [{**row, "also": row["mark"] + random.normal()} for row in ROWS]
    files = write(files[0].with_name("close.csv"), rows, *LABELS, "near", "also"), files[1]
    found = []
    for options in ((), ("--swap", "scores"), ("--tests", "deciding")):
        content, _ = printed(run, *files, "--target", "mark", "--task", "acc-t", *options, "--resamples", 400)
        found.append((content["tasks"][0]["p_values"][0][1], content["signature"].rpartition("resamples")[2]))
    assert found[0][0] == found[2][0] != found[1][0]
    out = run("meta-eval", *files, "--target", "mark", "--task", "acc-t", "--swap", "scores", *FEW)[1]
    assert "cluster" in out
    assert "The clusters of" not in out
    assert [signed for _, signed in found] == ["", " | tests exchange scores", " | deciding tests only"]


def test_a_file_names_the_documents_of_score_files(run, tmp_path):
    scores = write_scores(tmp_path / "near.seg.score", "near")
    gold = write_scores(tmp_path / "gold.seg.score", "mark")
    (tmp_path / "a.docs").write_text("".join(f"news d{place // 3}\n" for place in range(18)), "utf-8")
    options = ("--task", "acc", *FEW)
    code, out, err = run("meta-eval", scores, gold, "--documents", tmp_path / "a.docs", *options)
    assert code == 0, err
    assert "18 segments in 6 documents." in out
    assert "taken to be independent" not in out
    without = run("meta-eval", scores, gold, *options)[1]
    assert "18 segments." in without
    assert "taken to be independent" in without
    code, _, err = run("meta-eval", scores, gold, "--documents", tmp_path / "none.docs", *options)
    assert (code, "no such file" in err) == (2, True)


def test_all_measures_survive_a_constant_metric(run, tmp_path, files):
    flat = write(tmp_path / "flat.csv", [{**row, "flat": 1} for row in ROWS], *LABELS, "near", "flat")
    code, out, err = run("meta-eval", flat, files[1], "--target", "mark", "--task", "all", "--resamples", 20)
    assert code == 0, err
    assert re.search(r"tau-b +cluster.*\n +near +1 .*\n +flat +– +undefined +– +– +– +–\n", out)
    assert re.search(r"acc-t +cluster.*\n +near +1 .*\n +flat +2 +\.\d{3}", out)
    assert "warning: undefined" in out
    assert (
        run("meta-eval", flat, files[1], "--target", "mark", "--task", "pearson", "--json", *FEW)[1].count("NaN") == 0
    )


def test_other_raters_stand_below_the_metrics(run, tmp_path, files):
    rows = [{**row, "rater": rater, "mark": row["mark"] + (rater == "Bo")} for row in ROWS for rater in ("Ada", "Bo")]
    rated = write(tmp_path / "rated.csv", rows, *LABELS, "rater", "mark")
    code, out, err = run("meta-eval", files[0], rated, "--target", "mark", "--task", "acc", *FEW)
    assert code == 0, err
    assert re.search(r"acc +cluster.*\n.*\n.*\n +another rater \(mean\) +– +1.000", out)
    assert out.count("another rater") == 2  # in the overview and in the task


@pytest.mark.parametrize(("weights", "points"), [((), "critical 5, major 5"), (("--weights", "gemba"), "critical 25")])
def test_mqm_ratings_are_weighed_as_asked(run, tmp_path, weights, points):
    (tmp_path / "mqm.tsv").write_text(OLD_FILE, "utf-8")
    rows = [{"system": system, "segment": number, "m": -ord(system)} for system in "ABC" for number in (7, 8)]
    scores = write(tmp_path / "m.csv", rows)
    code, out, err = run("meta-eval", scores, tmp_path / "mqm.tsv", "--task", "acc", *weights, *FEW)
    assert code == 0, err
    assert f"points taken off: {points}" in out
    assert "1 metric against mqm: 5 outputs of 3 systems on 2 segments in 1 document." in out


def test_quiet_prints_nothing_and_writes(run, files, tmp_path):
    quiet = run("meta-eval", *files, "--target", "mark", "--task", "acc", "--quiet", "--out", tmp_path / "new", *FEW)
    assert quiet == (0, "", "")
    assert (tmp_path / "new" / "meta_evaluation.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "marc"), "did you mean 'mark'"),
        ((), "no column of the ratings"),
        (("--target", "mark", "--task", "acct"), "did you mean 'acc-t'"),
        (("--target", "mark", "--metric", "neer"), "did you mean 'near'"),
        (("--target", "mark", "--weights", "wmd"), "did you mean 'wmt'"),
        (("--target", "mark", "--weights", "wmt"), "are for MQM ratings"),
        (("--target", "mark", "--resamples", 0), "0"),
        (("--target", "mark", "--decimals", -1), "decimals=-1"),
        (("--target", "mark", "--swap", "pair"), "did you mean 'pairs'"),
        (("--target", "mark", "--tests", "al"), "did you mean 'all'"),
        (("--target", "mark", "--documents", "gold.csv"), "is for score files"),
        (("--target", "mark", "--seed", -3), "seed=-3 must be a whole number from 0"),
        (("--target", "mark", "--out", "gold.csv"), "name a folder"),
    ],
)
def test_wrong_options_end_with_2_and_a_hint(run, files, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("meta-eval", *files, *options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err


def test_files_that_do_not_fit_end_with_2(run, files, tmp_path):
    strange = write(tmp_path / "s.csv", [{**row, "system": "x" + row["system"]} for row in ROWS])
    (tmp_path / "empty").mkdir()
    for scores, message in [
        (tmp_path / "none.csv", "no such file"),
        (strange, "name the systems alike"),
        (tmp_path / "empty", "no file *.seg.score"),
        (write_scores(tmp_path / "m.seg.score", "near", **{name: ["1"] for name in SYSTEMS}), "has 18; scores"),
    ]:
        code, _, err = run("meta-eval", scores, files[1], "--target", "mark")
        assert code == 2
        assert message in err


@pytest.fixture(scope="module")
def slots(shared_data, tmp_path_factory):
    """The three ratings of each output of WMT23's side-by-side collection as three columns."""
    cells = {}
    for row in read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz").rows:
        labels = {"system": row.system, "doc": row.doc, "segment": row.segment}
        cells.setdefault((row.system, row.group), labels)[f"slot {row.slot}"] = row.mqm
    return write(tmp_path_factory.mktemp("wmt") / "slots.csv", cells.values())


def printed(run, *arguments):
    code, out, err = run("meta-eval", *arguments, "--json")
    assert code == 0, err
    content = json.loads(out)
    return content, {
        (task["task"], one["name"]): one for task in content["tasks"] for one in [*task["metrics"], *task["raters"]]
    }


def test_raters_of_wmt23_beside_each_other_as_the_public_tool_has_them(run, slots):
    tasks = [part for name in ("spa", "acc-t", "acc", "tau-b", "pearson", "pearson-item") for part in ("--task", name)]
    content, found = printed(run, slots, slots, "--target", "slot 0", *tasks, "--resamples", 20)
    counts = [content["outputs"], content["segments"], content["documents"], len(content["systems"])]
    assert counts == [1040, 104, 30, 10]
    # What mt-metrics-eval gives for slots 1 and 2 against slot 0, with a sample rate of 1.
    for task, expected in {
        "acc-t": (0.5848, 0.5991),
        "acc": (0.5848, 0.5991),
        "tau-b": (0.3834, 0.4723),
        "pearson": (0.5317, 0.6979),
        "pearson-item": (0.5197, 0.4999),
    }.items():
        assert [found[task, name]["value"] for name in ("slot 1", "slot 2")] == pytest.approx(expected, abs=5e-5)
    # SPA: ties count half here, and draws differ; what another seed changes is about .001.
    assert [found["spa", name]["value"] for name in ("slot 1", "slot 2")] == pytest.approx((0.9579, 0.9358), abs=0.004)
    assert found["acc-t", "slot 2"]["epsilon"] == 0
    # Segments with scores all alike have no correlation: 97 of 104 remain, as in mt-metrics-eval.
    assert (found["pearson-item", "slot 1"]["used"], found["pearson-item", "slot 1"]["dropped"]) == (97, 7)
    for one in found.values():
        assert one["interval"]["low"] < one["value"] < one["interval"]["high"]
        assert one["chance"]["low"] < one["chance"]["mean"] < one["chance"]["high"] < one["value"]


def test_other_raters_of_wmt23_are_the_baseline(run, slots, shared_data):
    gold = shared_data / "wmt23_sxs_ende.jsonl.gz"
    content, _ = printed(run, slots, gold, "--metric", "slot 0", "--task", "acc-t", "--resamples", 20)
    assert "segments were matched by segment" in content["notes"]
    assert [one["name"] for one in content["tasks"][0]["raters"]] == ["slot 0", "slot 1", "slot 2"]
    # A rater agrees better with a mean that includes the rater than with the mean of the two others.
    rater, metric = content["tasks"][0]["raters"][0], content["tasks"][0]["metrics"][0]
    assert rater["value"] < metric["value"]
    assert rater["rank"] is None
    assert 0.55 < rater["value"] < 0.65
