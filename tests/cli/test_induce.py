"""`metricsmith induce`: every option does what it says."""

from __future__ import annotations

import json

import pytest

from loopback import serve
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.repeated import Repeated
from panels import panelled
from planted import planted_rows
from saved import criterion


def test_options_of_the_fit_reach_the_report(induced):
    report, _, _ = induced("--n", 1, "--k", 7, "--seed", 5, "--regression", "pls")
    assert len(report["components"]) == 1
    assert "TwoStagePLS n 1 | bank none, k 7 | no model | seed 5" in report["signature"]


def test_options_of_the_table_reach_the_report(induced):
    report, _, err = induced(
        "--where", "kind=odd", "--scale", "0:10", "--group", "bundle", "--prior-columns", "good", "--task", "Be plain.",
        "--split", "holdout",
    )  # fmt: skip
    assert report["rows"]["rated"] == 30
    assert "30 of 60 rows fulfil kind=odd" in err
    assert (report["task"]["scale"]["low"], report["task"]["scale"]["high"]) == (0, 10)
    assert report["task"]["description"] == "Be plain."
    assert report["train"]["groups"] + report["test"]["groups"] == 20
    assert "plain mean of declared judges" in report["baselines"]


def test_a_model_that_is_not_asked_in_the_raters_numbers_is_told_before_the_run(run, write_own, tmp_path):
    rows = [row.copy(rating=round(row.rating / 7 + 0.5, 5)) for row in planted_rows(sources=20)]
    own = write_own(tmp_path / "own.csv", rows)
    asked = ("induce", own, "--target", "rating", "--output", "rewrite", "--lm", "openai/none", "--dry-run")
    said = "judges in the raters' place are asked for 1 to 5, the fifth in which a work stands by rating (5 is best)"
    assert said in run(*asked)[2]
    assert said not in run(*asked, "--bank", "existing")[2]
    for options in (("--quiet",), ("--scale", "0:100")):
        code, _, errors = run(*asked, *options)
        assert (code, said in errors) == (0, False)
    assert said in run("compare", *asked[1:], "--task", "Rewrite.")[2]


def test_a_task_can_stand_in_a_file(induced, tmp_path):
    (tmp_path / "task.txt").write_text("Rewrite für alle.\n", "utf-8")
    report, _, _ = induced("--task", f"@{tmp_path / 'task.txt'}")
    assert report["task"]["description"] == "Rewrite für alle."


def test_cross_validation_and_train_only_are_named_as_such(induced):
    report, _, _ = induced("--cv", 3, "--group", "bundle")
    assert (report["evaluation"], report["rows"]["train"], report["rows"]["test"]) == ("cv", 60, 60)
    report, out, _ = induced("--test", 0)
    assert (report["evaluation"], report["rows"]["test"]) == ("train_only", 0)
    assert "training rows only" in out
    assert "warning: No held-out rows" in out


def test_the_share_held_out_is_the_one_asked_for(induced):
    report, out, _ = induced("--test", "0.5", "--group", "bundle")
    assert report["rows"] == {"rated": 60, "train": 30, "test": 30, "unrated": 0}
    assert "held-out rows" in out


def test_a_test_file_may_have_few_rows_and_is_used_whole(induced, write_own, tmp_path):
    file = write_own(tmp_path / "test.csv", planted_rows(sources=2, seed=9))
    report, _, _ = induced("--test", file)
    assert (report["evaluation"], report["rows"]["train"], report["rows"]["test"]) == ("file", 60, 6)
    assert "test.csv" in report["signature"]


def test_references_and_inputs_can_be_named(run, own, tmp_path):
    code, _, err = run(
        "induce", own, "--target", "rating", "--bank", "existing", "--output", "rewrite", "--input", "notice",
        "--reference", "gold", "--group", "bundle", "--id", "case", "--n", 2, "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "guessed" not in err
    assert "left out because" not in (tmp_path / "out" / "report.md").read_text("utf-8")
    first = (tmp_path / "out" / "scores.csv").read_text("utf-8").splitlines()[1]
    assert first.startswith(("0-", "1-"))


def test_rows_are_grouped_by_the_column_named(induced):
    report, _, err = induced("--group", "bundle", "--test", 0)
    assert report["train"]["groups"] == 20
    # Each notice has rewrites of both kinds: rows with the same input stay together also where a group is named.
    report, _, err = induced("--group", "kind", "--test", 0)
    assert report["train"]["groups"] == 1
    assert "the 2 groups of 'kind' count as 1: rows with the same input stay together" in err


@pytest.mark.parametrize("share", ["1", "1.0", "-0.1", "nan", "inf"])
def test_a_share_that_leaves_nothing_to_learn_from_is_code_2(run, own, tmp_path, share):
    code, _, err = run("induce", own, "--target", "rating", f"--test={share}", "--out", tmp_path / "out", "--quiet")
    assert (code, (tmp_path / "out").exists()) == (2, False)
    assert "share from 0" in err


def test_a_column_of_message_lists_is_read_as_conversations(run, tmp_path):
    lines = ["task_id,messages,turns,rating"]
    for number in range(24):
        talk = [{"role": "user", "content": f"Hello {number}"}, {"role": "assistant", "content": "Hi."}]
        lines.append(f'{number // 4},"{talk}",{number % 4},{number % 3}')
    (tmp_path / "runs.csv").write_text("\n".join(lines), "utf-8")
    code, _, err = run(
        "induce", tmp_path / "runs.csv", "--target", "rating", "--bank", "none", "--metric-columns", "turns",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "column 'messages' holds conversations" in err
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "assistant: Hi." in page
    assert "&#39;role&#39;" not in page


def speechless(_):
    """A model that answers everything with small talk."""
    return "Nice weather."


def test_judges_that_cannot_be_made_are_a_warning_and_with_strict_the_end(run, own, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    arguments = ["--target", "rating", "--output", "rewrite", "--input", "notice", "--bank", "all"]
    arguments += ["--metric-columns", "good", "--out", tmp_path / "out", "--split", "holdout"]
    with serve(speechless) as server:
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, out, err = run("induce", own, *arguments, *model)
        assert code == 0, err
        first, *_ = [line for line in out.splitlines() if line.startswith("warning: ")]
        assert first.startswith("warning: 17 of 17 judges fell away (17 could not be made, 0 failed too often)")
        (line,) = [line for line in out.splitlines() if "Judges that could not be made: " in line]
        assert line.count(" of the family ") == 4
        assert "10 of the family 'criterion' (the request for criteria to judge by failed" in line
        assert "1 of the family 'tuned' (100% of the judge's own judgements failed" in line
        report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
        assert report["usage"]["requests"] == server.requests
        code, out, err = run("induce", own, *arguments, *model, "--strict")
    assert code == 3
    assert "error: not all judges could be made, which strict does not allow: the request for criteria" in err


def test_candidates_with_gaps_stay_where_that_is_allowed(run, write_own, tmp_path):
    rows = planted_rows(sources=20)
    for row in rows[::4]:
        row["columns"]["good"] = ""
    own = write_own(tmp_path / "own.csv", rows)
    basics = [
        "induce",
        own,
        "--target",
        "rating",
        "--bank",
        "none",
        "--metric-columns",
        "[gj]*[dk]",
        "--force",
        "--out",
    ]
    for options, said in (((), True), (("--allow-missing",), False)):
        code, _, err = run(*basics, tmp_path / "out", *options)
        assert code == 0, err
        report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
        assert any("so left out (--allow-missing keeps them): good (" in note for note in report["notes"]) is said
        assert ("good" in [component["name"] for component in report["components"]]) is not said


def test_saved_judges_are_candidates_whatever_the_number_of_rows(run, own, tmp_path):
    judge, other = criterion(), criterion("Order")
    judge.save(tmp_path / "judge.json")
    Panel([judge, other]).save(tmp_path / "panel.json")
    with serve(panelled) as server:
        model = ("--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1")
        asked = ("induce", own, "--target", "rating", "--output", "rewrite", "--input", "notice", "--bank", "none")
        files = ("--judge", tmp_path / "judge.json", "--judge", tmp_path / "panel.json")
        code, out, err = run(*asked, *files, *model, "--dry-run")
        assert code == 0, err
        assert "3 of your own" in out
        # by the judge and by the panel; rows with equal texts are judged once
        requests = 2 * len({row.output for row in planted_rows(sources=20)})
        assert f"requests: {requests:,}," in out
        code, out, err = run(*asked, *files, *model, "--out", tmp_path / "out")
        assert (code, server.requests) == (0, requests), err
    record = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert {component["name"] for component in record["components"]} <= {"plain_words", "plain_words_2", "order"}


def test_a_judge_without_a_model_or_without_sense_ends_the_command_before_the_table_is_read(run, tmp_path):
    criterion().save(tmp_path / "judge.json")
    asked = ("induce", tmp_path / "none.csv", "--target", "rating", "--judge", tmp_path / "judge.json")
    code, _, err = run(*asked)
    assert code == 2
    assert f"--judge {tmp_path / 'judge.json'} asks a language model: name one with --lm MODEL" in err
    (tmp_path / "judge.json").write_text("{}")
    assert "is not a metric file" in run(*asked, "--lm", "openai/none")[2]


def test_no_judge_is_written_over(run, own, tmp_path):
    (tmp_path / "out").mkdir()
    criterion().save(tmp_path / "out" / "metric.json")
    code, _, err = run("induce", own, "--target", "rating", "--judge", tmp_path / "out", "--judge",
                       tmp_path / "out" / "metric.json", "--lm", "openai/none", "--out", tmp_path / "out")  # fmt: skip
    assert code == 2
    assert "judge 2" in err


def test_a_metric_that_reads_columns_says_so_when_it_is_saved_and_when_they_are_lacking(run, own, induced, tmp_path):
    said = "the metric reads good from its table: new rows must bring that too"
    assert f"note: {said}" in induced("--n", 1)[2]
    bare = tmp_path / "bare.csv"
    bare.write_text("notice,rewrite,gold\na,b,c\n", "utf-8")
    code, _, err = run("score", tmp_path / "out" / "metric.json", bare)
    assert code == 2
    assert f"error: {said}, but " in err
    assert "'good'" in err


def test_a_saved_repeated_judge_is_a_candidate_with_a_temperature_of_its_own_or_the_models(run, own, tmp_path):
    model = ("--lm", "openai/loopback", "--api-base", "http://127.0.0.1:9/v1", "--dry-run")
    asked = ("induce", own, "--target", "rating", "--output", "rewrite", "--input", "notice", "--bank", "none")
    annotator = MQMAnnotator(source_language="English", target_language="German", temperature=0.4)
    for judge, needs in ((criterion(), True), (annotator, False)):
        Repeated(judge, 2).save(tmp_path / "judge.json")
        code, out, err = run(*asked, "--judge", tmp_path / "judge.json", *model)
        assert code == (2 if needs else 0), err
        assert ("the temperature of openai/loopback is not set" in err and "--temperature 1" in err) == needs
        code, out, err = run(*asked, "--judge", tmp_path / "judge.json", *model, "--temperature", 1)
        assert code == 0, err
        assert "1 of your own" in out
