"""`metricsmith meta-eval` with several judges, their runs and the errors that they mark."""

from __future__ import annotations

import json
import re

import pytest

from loopback import serve
from metricsmith.datasets.wmt_mqm import read_marked_ratings
from reviser import DOCUMENTS, FILES, GOLD, Reviser

LANGUAGES = ("--source-lang", "English", "--target-lang", "German")
FEW = ("--resamples", 50, "--quiet")


@pytest.fixture(scope="module")
def judges(tmp_path_factory, exit_code):
    """Two judges of one name that find other errors, in folders `first` and `second`."""
    folder = tmp_path_factory.mktemp("judges")
    for name, seed in (("first", 0), ("second", 4)):
        with serve(Reviser(seed)) as server:
            model = ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1", "--quiet")
            options = ("--documents", DOCUMENTS, "--runs", 3, "--out", folder / name, *LANGUAGES, *model)
            assert exit_code("mqm", *FILES, *options) == 0
    return folder / "first" / "segments.jsonl", folder / "second" / "segments.jsonl"


@pytest.fixture(scope="module")
def compared(judges, tmp_path_factory, exit_code):
    out = tmp_path_factory.mktemp("compared")
    assert exit_code("meta-eval", judges[0], GOLD, "--add", judges[1], "--each-run", *FEW, "--out", out) == 0
    return out


def slow_f1(path):
    """Character F1 counted letter by letter, a rating at a time."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    by_output = {(line["system"], line["doc"], str(line["segment"])): line for line in lines}
    credit = marked = true = 0.0
    for rating in read_marked_ratings(GOLD).ratings:
        line = by_output[rating.system, rating.doc, rating.doc_segment]
        assert line["translation"] == rating.target
        mine = [(e["start"], e["end"], e["severity"]) for e in line["errors"] if e["side"] == "target" and e["text"]]
        gold = [(s.start, s.end, s.severity) for s in rating.spans if s.side == "target"]
        for place in range(len(rating.target) + 1):
            sides = [
                {severity == "minor" for start, end, severity in spans if start <= place < max(end, start + 1)}
                for spans in (mine, gold)
            ]
            marked, true = marked + bool(sides[0]), true + bool(sides[1])
            credit += 1.0 if sides[0] & sides[1] else 0.5 if all(sides) else 0.0
    return 2 * credit / (marked + true), credit / marked, credit / true


def test_judges_of_one_name_are_told_apart_by_their_folders(compared):
    content = json.loads((compared / "meta_evaluation.json").read_text("utf-8"))
    names = {line["name"] for line in content["tasks"][0]["metrics"]}
    own = ("", "-run-1", "-run-2", "-run-3", "-rrwa", "-mean", "-max", "-geo")
    assert names == {f"{folder}-mqm{kind}" for folder in ("first", "second") for kind in own}
    assert "added 1 segments.jsonl sha256:" in content["signature"]


def test_marked_errors_equal_a_slow_count(compared, judges):
    marked = json.loads((compared / "meta_evaluation.json").read_text("utf-8"))["marked"]
    found = {line["name"]: (line["f1"], line["precision"], line["recall"]) for line in marked["judges"]}
    assert found == {
        f"{path.parent.name}-mqm": tuple(pytest.approx(value) for value in slow_f1(path)) for path in judges
    }
    best, other = marked["judges"]
    assert best["f1"] > other["f1"]
    (pair,) = marked["comparisons"]
    assert (pair["best"], pair["other"]) == (best["name"], other["name"])
    assert pair["difference"] == pytest.approx(best["f1"] - other["f1"])
    assert 0 < pair["p_value"] <= 1
    assert pair["interval"]["low"] < pair["difference"] < pair["interval"]["high"]
    assert (marked["missing"], marked["documents"]) == (0, 3)


@pytest.mark.parametrize("name", ["meta_evaluation.md", "meta_evaluation.html"])
def test_marked_errors_stand_in_page_and_markdown(compared, name):
    text = re.sub(r"<[^>]+>|\|", " ", (compared / name).read_text("utf-8"))
    assert re.search(r"-mqm\s+has character F1 \.\d\d", text)
    assert re.search(r"(first|second)-mqm over (first|second)-mqm", text)
    assert "a character that judge and person both mark earns 1" in text


def test_the_terminal_has_both_judges_and_their_marks(run, judges):
    code, out, err = run("meta-eval", judges[0], GOLD, "--add", judges[1], *FEW[:2])
    assert (code, err) == (0, "")
    assert "2 metrics against mqm" in out
    assert re.search(r"marked errors +F1 +95 % +precision +95 % +recall +95 % +not in the text", out)
    assert re.search(r"F1 of +difference +95 % +p\n", out)


def test_one_of_all_names_may_be_chosen(run, judges):
    chosen = ("--each-run", "--metric", "mqm-rrwa", "--metric", "mqm-run-2")
    code, out, err = run("meta-eval", judges[0], GOLD, *chosen, *FEW, "--json")
    assert (code, err) == (0, "")
    assert {line["name"] for line in json.loads(out)["tasks"][0]["metrics"]} == {"mqm-rrwa", "mqm-run-2"}
    assert [line["name"] for line in json.loads(out)["marked"]["judges"]] == ["mqm"]  # whose errors its runs share


def test_one_judge_alone_has_its_marks_and_no_test(run, judges):
    code, out, _ = run("meta-eval", judges[0], GOLD, *FEW, "--json")
    marked = json.loads(out)["marked"]
    assert (code, marked["comparisons"], [line["name"] for line in marked["judges"]]) == (0, [], ["mqm"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("first", "--add", "first"), "two metrics are called 'first-mqm'.*name one of the files once"),
        (("scores.csv", "--each-run"), "is for a judge's own file.*segments.jsonl"),
        (("first", "--add", "second", "--metric", "mqm"), "no metric 'mqm'.*first-mqm, second-mqm"),
        (("first", "--add", "none.jsonl"), "none.jsonl"),
        (("first", "--add", "en-de=none.jsonl"), "--add en-de=none.jsonl: a language pair has a meaning with --suite"),
    ],
)
def test_wrong_files_and_names_are_refused(run, judges, tmp_path, arguments, message):
    (tmp_path / "scores.csv").write_text("system,doc,segment,comet\nalpha,library,1,.5\n", "utf-8")
    known = {"first": judges[0], "second": judges[1], "scores.csv": tmp_path / "scores.csv"}
    scores, *others = (known.get(argument, argument) for argument in arguments)
    code, _, err = run("meta-eval", scores, GOLD, *others, *FEW)
    assert code == 2
    assert re.search(message, err.replace("\n", " "))
