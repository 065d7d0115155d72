"""`metricsmith validate`: two tables to a choice of judge, its report, and clear errors."""

from __future__ import annotations

import json
import re

import pytest

from judged_choices import write_tables
from metricsmith import make_row, score
from metricsmith.judges import ResponseSetJudge
from metricsmith.testing import GivenModel

FEW = ("--draws", 200)


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


def test_the_tables_the_verdict_and_the_notes_are_printed(run, files, tmp_path):
    code, out, err = run("validate", *files, "--positive", "rude", "--threshold", ".5,.3", *FEW)
    assert (code, err) == (0, "")
    assert "3 judges on 60 items, options fine, rude; an item is positive from 0.5 of rude; beta adds rude." in out
    assert re.search(r"judge +decision consistency +95 % +best in +lead of the pick +95 % +over all response sets", out)
    assert re.search(r"hit rate +\w+ +[.\d]+ +[.\d]+ +[.\d]+ +[.\d]+ +\.\d+ to \.\d+", out)
    assert re.search(r"Best in use at threshold 0.5: \w+ for beta 0", out)
    assert "thresholds 0.5, 0.3" in out.splitlines()[-1]
    assert re.search(r"people \S*people.csv sha256:[0-9a-f]{16} \| judges \S*judges.csv sha256:", out.splitlines()[-1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["judges.csv", "people.csv"]


def test_json_is_the_files_content(run, files, tmp_path):
    options = ("--positive", "rude", "--beta", "0:.2:.1", "--out", tmp_path / "new", "--json", *FEW)
    code, out, err = run("validate", *files, *options)
    assert code == 0, err
    content = json.loads((tmp_path / "new" / "validate.json").read_text("utf-8"))
    assert json.loads(out) == content
    assert sorted(path.suffix for path in (tmp_path / "new").iterdir()) == [".html", ".json", ".md"]
    assert [cell["beta"] for cell in content["selection"]["sweep"]] == [0, 0.1, 0.2]
    assert content["response_sets"] == {"options": ["fine", "rude"], "sets": [["fine"], ["rude"], ["fine", "rude"]]}
    assert set(content["replacing"]) == {"atlas", "birch", "cedar"}
    assert {case["kind"] for case in content["clinic"]["cases"]} <= {"judge error", "rater noise", "unstated policy"}


def printed(run, *arguments):
    code, out, err = run("validate", *arguments, "--json", *FEW)
    assert code == 0, err
    return json.loads(out)


def test_options_reach_the_selection(run, files):
    asked = ("--positive", "rude", "--at-beta", ".2", "--by", "js_distance", "--measures", "js_distance", "--seed", 4)
    content = printed(run, *files, *asked, "--raters", "--rule", "max", "--threshold", ".4")
    found = content["selection"]
    assert [one["name"] for one in found["results"]] == ["js_distance", "decision_consistency", "prevalence_bias"]
    assert found["by"] == "js_distance"
    assert {name: found["settings"][name] for name in ("beta", "raters", "seed", "draws")} == {
        "beta": 0.2, "raters": True, "seed": 4, "draws": 200,
    }  # fmt: skip
    assert (found["settings"]["decision"]["rule"], found["settings"]["decision"]["threshold"]) == ("max", 0.4)


def test_without_positive_options_there_is_no_use_and_no_sweep(run, files):
    content = printed(run, *files)
    assert content["selection"]["by"] == "squared_error_sets"
    assert content["selection"]["sweep"] == []
    assert content["response_sets"]["sets"] == [["fine"], ["rude"]]
    out = run("validate", *files, *FEW)[1]
    assert "regret" not in out


def test_rated_sets_need_a_declaration_and_leave_nothing_open(run, tmp_path):
    files = write_tables(tmp_path, sets=True)
    code, _, err = run("validate", *files, "--positive", "rude", *FEW)
    assert code == 2
    assert "--sets all" in err
    content = printed(run, *files, "--positive", "rude", "--sets", "rude|fine")
    assert len(content["selection"]["sweep"]) == 11  # people gave choices alone
    code, _, err = run("validate", *files, "--positive", "rude", "--sets", "single", *FEW)
    assert (code, "no admissible response set" in err) == (2, True)


def test_a_judge_with_invalid_answers_only_is_left_out_and_named(run, files):
    text = files[1].read_text("utf-8")
    files[1].write_text(text + "".join(f"n{i:02},dumb,0,\n" for i in range(60)), "utf-8")
    code, out, err = run("validate", *files, "--positive", "rude", *FEW)
    assert code == 0, err
    assert "warning: dumb is not compared: valid ratings of 0 of people's 60 items" in out
    files[1].write_text("item,judge,rating\nn00,dumb,\n", "utf-8")
    code, _, err = run("validate", *files, *FEW)
    assert (code, "1 judges: give at least two" in err) == (2, True)


def test_the_answers_of_saved_judges_come_out_of_a_store(run, files, tmp_path):
    """The store knows numbers alone: options, and what is a set, come from the judge's file."""
    rows = [make_row(f"Notice {i}.", id=f"n{i:02}") for i in range(60)]
    judges = [ResponseSetJudge(["rude", "fine"], "Is it rude?", "Write.", name=name) for name in ("one", "two")]
    stored = ["--store", tmp_path / "s.db"]
    with GivenModel(answered) as model:
        lm = model.lm(temperature=1.0)
        score(judges, rows, lm=lm, store=tmp_path / "s.db", runs=2, max_failure_rate=1.0, progress=False)
    for judge in judges:
        judge.save(tmp_path / f"{judge.name}.json")
        stored += ["--judge", tmp_path / f"{judge.name}.json"]
    asked = (files[0], *stored, "--positive", "rude", "--sets", "all")
    content = printed(run, *asked)
    found = content["selection"]
    assert "judge one: 2 of 120 ratings have no valid answer" in content["notes"]
    assert (found["judges"], found["items"]) == (["one", "two"], 59)  # there is no valid answer for the tenth row
    hits = next(one for one in found["results"] if one["name"] == "hit_rate")["figures"]
    people = [line.split(",") for line in files[0].read_text("utf-8").splitlines()[1:]]
    assert hits[0]["value"] == pytest.approx(expected_hits(people))
    code, _, err = run("validate", *files, *stored)
    assert (code, "give either JUDGES" in err) == (2, True)
    code, _, err = run("validate", files[0], "--options", "fine,polite,rude", *stored[:4], "--sets", "all", *FEW)
    assert code == 2


def answered(prompt):
    """Rude for even rows, fine for odd ones, both in the set; nothing of use for the tenth."""
    number = int(re.findall(r"Notice (\d+)", prompt)[-1])
    choice = "perhaps" if number == 10 else ("rude", "fine")[number % 2]
    return {"reasoning": "because", "possible": json.dumps(["rude", "fine"]), "choice": choice}


def expected_hits(people):
    """The share of items whose most frequent option is the judge's, five raters without ties."""
    hits = []
    for number in (n for n in range(60) if n != 10):
        rude = sum(rating == "rude" for item, _, rating in people if item == f"n{number:02}")
        hits.append((rude > 2) == (number % 2 == 0))
    return sum(hits) / len(hits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--beta", "0:1:.5"), "name the options for it with --positive"),
        (("--positive", "rud"), "did you mean 'rude'"),
        (("--positive", "rude", "--beta", "a:b"), "--beta a:b must be numbers"),
        (("--positive", "rude", "--beta", "0:.5:0"), "must be numbers"),
        (("--positive", "rude", "--threshold", "2"), "threshold 2"),
        (("--positive", "rude", "--rule", "most"), "choose any, max or sum"),
        (("--positive", "rude", "--beta", ".2", "--sets", "single"), "beta needs the response set"),
        (("--measures", "hit_rat"), "did you mean 'hit_rate'"),
        (("--by", "hit_rat"), "did you mean 'hit_rate'"),
        (("--sets", "rude|odd"), "'odd' is no option"),
        (("--options", "rude,polite"), "'fine' was not declared"),
        (("--column", "item"), "must be ROLE=NAME"),
        (("--draws", "0"), "0"),
        (("--store", "s.db"), "give either JUDGES"),
        (("--out", "people.csv"), "name a folder"),
    ],
)
def test_wrong_options_end_with_2_and_a_hint(run, files, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("validate", *files, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
