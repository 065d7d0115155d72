"""The commands: what they print, what they write, and with which code they end."""

from __future__ import annotations

import csv
import json

import pytest

from loopback import scripted, serve
from planted import planted_rows


def write_table(path, rows, rated=True):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "source_id", "notice", "rewrite", "reference", "rating", "mine"])
        for row in rows:
            rating = row["rating"] if rated else ""
            mine = row["columns"]["good"]
            writer.writerow([row.id, row.group, row.input, row.output, row.references[0], rating, mine])
    return path


@pytest.fixture
def data(tmp_path):
    return write_table(tmp_path / "rated.csv", planted_rows(sources=20))


def test_induce_writes_the_five_files_and_prints_what_matters(run, data, tmp_path):
    code, out, err = run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--n", 3)
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "metric.json", "report.html", "report.json", "report.md", "scores.csv",
    ]  # fmt: skip
    assert "tau-b" in out
    assert "sha256:" in out
    assert "note: " in err


def test_json_prints_the_report_and_nothing_else(run, data, tmp_path):
    code, out, _ = run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))


def test_quiet_prints_nothing(run, data, tmp_path):
    assert run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--quiet") == (0, "", "")


def test_a_dry_run_sends_and_writes_nothing(run, data, tmp_path):
    with serve(scripted) as server:
        base = f"http://127.0.0.1:{server.port}/v1"
        code, out, _ = run(
            "induce", data, "--target", "rating", "--lm", "openai/loopback", "--api-base", base,
            "--out", tmp_path / "out", "--dry-run",
        )  # fmt: skip
    assert code == 0
    assert "requests: " in out
    assert server.requests == 0
    assert not (tmp_path / "out").exists()


def test_own_scores_are_enough_without_text_and_model(run, tmp_path):
    path = tmp_path / "scores.csv"
    lines = ["rating,mine,group"] + [
        f"{row['rating']},{row['columns']['good']},{row.group}" for row in planted_rows(sources=20)
    ]
    path.write_text("\n".join(lines))
    code, out, err = run("induce", path, "--target", "rating", "--metric-columns", "mi*", "--out", tmp_path / "out")
    assert code == 0, err
    assert "matches 1 of 3 columns" in err
    assert "mine" in out


def test_score_and_explain_read_new_rows_as_the_old_ones(run, data, tmp_path):
    run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--quiet")
    metric = tmp_path / "out" / "metric.json"
    new = write_table(tmp_path / "new.csv", planted_rows(sources=3, seed=5), rated=False)
    code, out, _ = run("score", metric, new)
    rows = list(csv.DictReader(out.splitlines()))
    assert code == 0
    assert len(rows) == 9
    assert all(row["status"] == "ok" and 0 <= float(row["score"]) <= 1 for row in rows)
    code, out, err = run("score", metric, new, "--json", "--out", tmp_path / "scores.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text("utf-8").splitlines()]
    assert [line["prediction"] for line in lines] == [float(row["prediction"]) for row in rows]
    assert "9 rows scored" in err
    code, out, _ = run("explain", metric, new, "--row", "1-1")
    assert code == 0
    assert out.startswith("row 1-1: ")
    assert "average in every component" in out


def test_scores_of_training_rows_equal_those_in_the_table_of_scores(run, data, tmp_path):
    run("induce", data, "--target", "rating", "--split", "holdout", "--out", tmp_path / "out", "--quiet")
    _, out, _ = run("score", tmp_path / "out" / "metric.json", data)
    now = {row["id"]: row["prediction"] for row in csv.DictReader(out.splitlines())}
    for row in csv.DictReader((tmp_path / "out" / "scores.csv").read_text("utf-8").splitlines()):
        assert float(row["prediction"]) == float(now[row["id"]])


def test_explain_names_the_nearest_row(run, data, tmp_path):
    run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--quiet")
    code, _, err = run("explain", tmp_path / "out" / "metric.json", data, "--row", "1-11")
    assert code == 2
    assert "did you mean" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "ratng"], "did you mean 'rating'"),
        (["--target", "rating", "--where", "colour=red"], "colour"),
        (["--target", "rating", "--bank", "everything"], "must be one of auto, all"),
        (["--target", "rating", "--bank", "generated"], "pass --lm MODEL"),
        (["--target", "rating", "--test", "1.5"], "--test 1.5"),
        (["--target", "rating", "--cv", "500"], "500"),
        (["--target", "rating", "--metric-columns", "nothing*"], "nothing*"),
        (["--target", "rating", "--task", "@none.txt"], "none.txt"),
        (["--target", "rating", "--k", "0"], "k=0"),
    ],
)
def test_wrong_input_ends_with_code_2_one_line_and_nothing_written(run, data, tmp_path, arguments, message):
    code, out, err = run("induce", data, *arguments, "--out", tmp_path / "out", "--quiet")
    assert code == 2
    assert message in err
    assert err.startswith("error: ")
    assert out == ""
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_is_code_2(run, tmp_path):
    code, _, err = run("induce", tmp_path / "none.csv", "--target", "rating")
    assert code == 2
    assert "none.csv" in err


def test_an_unknown_option_is_code_2(run):
    assert run("induce", "x.csv", "--targt", "rating")[0] == 2


def test_a_failing_model_is_code_3(run, data, tmp_path):
    with serve(scripted, always=401) as server:
        base = f"http://127.0.0.1:{server.port}/v1"
        code, _, err = run(
            "induce", data, "--target", "rating", "--lm", "openai/loopback", "--api-base", base,
            "--out", tmp_path / "out", "--quiet",
        )  # fmt: skip
    assert code == 3
    assert "always 401" in err


def test_a_metric_file_that_is_none_is_code_2(run, data, tmp_path):
    (tmp_path / "metric.json").write_text("{}")
    code, _, err = run("score", tmp_path / "metric.json", data)
    assert code == 2
    assert "not a metric file" in err


def test_the_bank_can_be_listed_and_shown(run):
    code, out, _ = run("bank", "list")
    assert code == 0
    assert "rouge1_r" in out
    code, out, _ = run("bank", "list", "--json")
    assert {"name", "outputs", "needs"} <= set(json.loads(out)[0])
    code, out, _ = run("bank", "show", "bleu")
    assert out.startswith("## BLEU")
    code, _, err = run("bank", "show", "blue")
    assert code == 2
    assert "did you mean" in err


@pytest.fixture(scope="module")
def judged(exit_code, tmp_path_factory):
    """The file of a metric whose judges were induced by the command."""
    folder = tmp_path_factory.mktemp("judged")
    rated = write_table(folder / "rated.csv", planted_rows(sources=8))
    with serve(scripted) as server:
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        assert exit_code("induce", rated, "--target", "rating", *model, "--out", folder / "out", "--quiet") == 0
    return folder / "out" / "metric.json"


def test_a_judged_metric_asks_for_a_model_when_scoring(run, data, judged):
    with serve(scripted) as server:
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, _, err = run("score", judged, data)
        assert code == 2
        assert "--lm MODEL" in err
        code, out, err = run("score", judged, data, *model)
        assert code == 0, err
    assert len(list(csv.DictReader(out.splitlines()))) == 60


def test_a_place_that_cannot_be_written_is_code_2_before_any_work(run, data, tmp_path):
    (tmp_path / "taken").write_text("")
    code, out, err = run("induce", data, "--target", "rating", "--out", tmp_path / "taken")
    assert (code, out) == (2, "")
    assert err == f"error: --out {tmp_path / 'taken'} is a file; name a folder\n"


def test_a_test_file_that_repeats_the_training_rows_is_code_2(run, data, tmp_path):
    code, _, err = run("induce", data, "--target", "rating", "--test", data, "--out", tmp_path / "out", "--quiet")
    assert code == 2
    assert "stands in the training rows too" in err


def test_cross_validation_and_a_test_share_exclude_each_other(run, data, tmp_path):
    code, _, err = run("induce", data, "--target", "rating", "--cv", 3, "--test", 0.2, "--out", tmp_path / "out")
    assert code == 2
    assert "exclude each other" in err


def test_scoring_asks_only_for_what_the_components_look_at(run, data, tmp_path):
    out = tmp_path / "out"
    run("induce", data, "--target", "rating", "--metric-columns", "mine", "--bank", "none", "--out", out, "--quiet")
    (tmp_path / "new.csv").write_text("mine\n3.0\n1.0\n")
    code, printed, err = run("score", out / "metric.json", tmp_path / "new.csv")
    assert code == 0, err
    assert len(printed.splitlines()) == 3


def test_renamed_columns_can_be_named_when_scoring(run, data, tmp_path):
    run("induce", data, "--target", "rating", "--out", tmp_path / "out", "--quiet")
    renamed = tmp_path / "renamed.csv"
    text = data.read_text("utf-8")
    renamed.write_text(text.replace("rewrite", "fresh", 1).replace("reference", "gold_text", 1), "utf-8")
    metric = tmp_path / "out" / "metric.json"
    assert run("score", metric, renamed)[0] == 2
    code, printed, err = run("score", metric, renamed, "--output", "fresh", "--reference", "gold_text")
    assert code == 0, err
    assert len(printed.splitlines()) == 61


def test_a_rating_of_faults_counts_down(run, data, tmp_path):
    arguments = ["induce", data, "--target", "rating", "--metric-columns", "mine", "--bank", "none", "--json"]
    _, out, _ = run(*arguments, "--lower-is-better", "--out", tmp_path / "out")
    assert json.loads(out)["task"]["scale"]["higher_is_better"] is False


def test_the_version_is_printed(run):
    assert run("--version")[:2] == (0, "metricsmith 0.1.0\n")


def test_scoring_with_a_broken_model_writes_what_there_is_and_is_code_3(run, data, judged, tmp_path):
    with serve(scripted, always=400) as server:
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, _, err = run("score", judged, data, *model, "--out", tmp_path / "scores.csv")
    assert code == 3
    assert "refuses to work: [openai/loopback] always 400" in err
    assert len((tmp_path / "scores.csv").read_text("utf-8").splitlines()) == 61


def test_context_system_and_rater_are_named_where_no_one_would_guess_them(run, tmp_path):
    """`--context`, `--system` and `--rater` of induce, compare, probe and score reach the reader of the table."""
    path, out = tmp_path / "own.csv", tmp_path / "out"
    lines = [f"q{n // 3},answer {n} {'well' * (n % 5)},{n % 5 + 1},{n % 7},p{n},s{n % 3},r{n % 2}" for n in range(60)]
    path.write_text("\n".join(["prompt,answer,rating,len,facts,bot,who", *lines]) + "\n")
    named = ["--context", "facts", "--system", "bot", "--rater", "who"]
    basics = ["--target", "rating", "--bank", "none", "--metric-columns", "len"]
    assert run("induce", path, *basics, *named, "--out", out)[0] == 0
    signature = json.loads((out / "report.json").read_text("utf-8"))["signature"]
    roles = "target rating, output answer, input prompt, context facts, system bot, rater who"
    assert f", columns {roles}, scale " in signature
    for command in (
        ("compare", path, *basics),
        ("probe", out / "metric.json", path),
        ("score", out / "metric.json", path),
    ):
        for option in named[::2]:
            code, _, err = run(*command, option, "missing")
            assert code == 2
            assert "no column 'missing'" in err
            assert f"({option})" in err


def test_ratings_of_several_people_are_averaged_by_every_command_that_reads_them(run, tmp_path):
    """`--raters` and `--rater-effects` of induce and compare; the ceiling in induce, compare and probe."""
    path, out = tmp_path / "own.csv", tmp_path / "out"
    lines = [
        f"q{n // 3},answer {n},{min(5, (n * 7 + n // 9) % 5 + 1 + (who == 'bob' and n % 4 == 0))},{n * 7 % 5},{who}"
        for n in range(60)
        for who in ("ann", "bob", "cem")
    ]
    path.write_text("\n".join(["prompt,answer,rating,len,who", *lines]) + "\n")
    basics = [path, "--target", "rating", "--metric-columns", "len", "--bank", "none", "--rater", "who"]
    asked = ["--raters", "median", "--rater-effects", "centre"]
    sentence = "Two people agree"
    for command in ("induce", "compare"):
        code, said, err = run(command, *basics, *asked, "--out", out)
        assert code == 0, err
        assert sentence in said
        assert "an output counts once, with the median of its ratings" in err
        assert "is taken off" in err
        code, _, err = run(command, *basics, "--raters", "mode", "--out", out)
        assert code == 2
        assert "raters='mode' is unknown; allowed are mean and median" in err
        code, _, err = run(command, *basics, "--rater-effects", "center", "--out", out)
        assert code == 2
        assert "(--rater-effects)" in err
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["raters"]["twice"] == 60
    assert report["rows"]["rated"] == 60
    code, said, err = run("probe", out / "metric.json", path, "--rater", "who", "--n", 5, "--out", tmp_path / "probe")
    assert code == 0, err
    assert sentence in said
    assert json.loads((tmp_path / "probe" / "probe.json").read_text("utf-8"))["raters"]["twice"] == 60
    assert all(sentence in (tmp_path / "probe" / name).read_text("utf-8") for name in ("probe.html", "probe.md"))
