"""``metricsmith specialist``: judges made and evaluated, files, prices, wrong inputs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from loopback import serve
from metricsmith import load
from metricsmith.cli.specialist import JudgeOptions
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.report.specialist.document import SPECIALIST_FILES
from reviser import Reviser

HISTORY = Path(__file__).resolve().parents[2] / "examples" / "translations" / "history.jsonl"
LANGUAGES = ("--source-language", "English", "--target-language", "German")
COLUMNS = ("--target", "score", "--output", "story", "--input", "prompt", "--system", "author", "--rater", "who")


def model(server):
    return ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")


@pytest.fixture
def stories(tmp_path):
    """A rated table without marked errors: six prompts, three authors, two raters."""
    path = tmp_path / "stories.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "story", "author", "who", "score"])
        for prompt in range(6):
            for place, author in enumerate(("ann", "bob", "cem")):
                for rater in range(2):
                    score = 1 + (prompt + 2 * place + rater) % 5
                    writer.writerow([f"prompt {prompt}", f"{author} on {prompt}", author, f"r{rater}", score])
    alone = [line.rpartition(",r0,")[::2] for line in path.read_text("utf-8").splitlines() if ",r0," in line]
    lines = ["prompt,story,author,score", *(",".join(parts) for parts in alone)]
    path.with_name("alone.csv").write_text("\n".join(lines), "utf-8")
    return path


def test_without_a_model_the_parrots_are_evaluated(run, tmp_path):
    code, out, err = run(
        "specialist", "evaluate", HISTORY, "--policies", "same,filtered", "--curve", "1,3", "--out", tmp_path / "out"
    )
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(SPECIALIST_FILES)
    assert "parrot_all with the policy same reaches character F1 " in out
    assert f"report: {tmp_path / 'out' / 'specialist.html'}" in out
    assert "note: beta, beta-tuned are the same" in out
    assert "note: 60 ratings of 5 systems with 57 errors" in err
    record = json.loads((tmp_path / "out" / "specialist.json").read_text("utf-8"))
    assert [(one["judge"], one["policy"]) for one in record["results"]] == [
        (f"parrot_{occurrences}", policy) for occurrences in ("all", "first") for policy in ("same", "filtered")
    ]
    assert record["results"][0]["candidates"] == 10  # five systems by two raters
    assert set(record["curve"]) == {
        f"parrot_{which}, {source}" for which in ("all", "first") for source in ("same", "shuffled")
    }


def test_json_is_the_file_and_quiet_is_quiet(run, tmp_path):
    basics = ("specialist", "evaluate", HISTORY, "--policies", "same", "--out", tmp_path / "out")
    code, out, err = run(*basics, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "out" / "specialist.json").read_text("utf-8"))
    assert run(*basics, "--quiet") == (0, "", "")


def test_equal_outputs_are_kept_where_that_is_asked_in_the_curve_too(run, tmp_path):
    """Alpha writes in one more segment what another system, no twin of it, wrote, and made the same marked error."""
    rows = [json.loads(line) for line in HISTORY.read_text("utf-8").splitlines()]
    delta = {(row["source"], row["rater"]): row for row in rows if row["system"] == "delta" and row["doc"] == "market"}
    for row in rows:
        same = delta.get((row["source"], row["rater"]))
        if row["system"] == "alpha" and row["doc_seg_id"] == "3" and same:
            row |= {"target": same["target"], "errors": same["errors"]}
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    examples, values = [], []
    for same_output in ("drop", "keep"):
        code, out, _ = run(
            "specialist", "evaluate", history, "--policies", "same", "--same-output", same_output, "--curve", "9",
            "--out", tmp_path / "out", "--json",
        )  # fmt: skip
        assert code == 0
        record = json.loads(out)
        examples.append(record["results"][0]["examples"])
        values.append(record["results"][0]["value"])
        assert record["curve"]["parrot_all, same"] == [[9, values[-1]]]  # 9 examples are all that a row can have
    assert examples[1] - examples[0] == pytest.approx(8 / 60)  # two such segments, two systems, two raters
    assert values[0] != values[1]


def test_a_model_comes_first_and_a_store_answers_the_second_time(run, tmp_path):
    with serve(Reviser()) as server:
        basics = (
            "specialist", "evaluate", HISTORY, *LANGUAGES, "--policies", "same,none", *model(server),
            "--store", tmp_path / "s.db", "--out", tmp_path / "out", "--json",
        )  # fmt: skip
        code, out, err = run(*basics)
        assert code == 0, err
        assert server.requests == 83  # 60 ratings with examples; without any, 23 different texts
        code, again, _ = run(*basics)
        assert (code, server.requests) == (0, 83)
    results = json.loads(out)["results"]
    assert [one["judge"] for one in results[::2]] == ["mqm_run", "parrot_all", "parrot_first"]
    assert [one["value"] for one in json.loads(again)["results"]] == [one["value"] for one in results]
    assert [one["usage"]["requests"] for one in results] == [60, 23, 0, 0, 0, 0]


def test_a_dry_run_sends_and_writes_nothing(run, tmp_path):
    with serve(Reviser()) as server:
        code, out, _ = run(
            "specialist", "evaluate", HISTORY, *LANGUAGES, *model(server), "--store", tmp_path / "s.db",
            "--out", tmp_path / "out", "--dry-run",
        )  # fmt: skip
        assert server.requests == 0
    assert code == 0
    assert out.startswith("estimated: 300 requests, ")  # 60 ratings, five policies
    assert "nothing was sent and nothing was written" in out
    assert list(tmp_path.iterdir()) == []


def test_a_budget_ends_the_run_with_what_there_is(run, tmp_path):
    with serve(Reviser()) as server:
        code, out, err = run(
            "specialist", "evaluate", HISTORY, *LANGUAGES, "--policies", "same,none", *model(server),
            "--max-requests", 5, "--out", tmp_path / "out", "--json",
        )  # fmt: skip
        assert server.requests == 5
    assert code == 3
    assert "the same command with --store asks the rest" in err
    record = json.loads(out)
    assert record["results"][0]["judgements"]["budget"] > 0
    assert "judgements are missing" in record["warnings"][0]


def test_numbers_are_evaluated_against_the_mean_of_the_examples(run, stories, tmp_path):
    code, out, err = run("specialist", "evaluate", stories, *COLUMNS, "--out", tmp_path / "out", "--json")
    assert code == 0, err
    record = json.loads(out)
    assert record["measure"] == "acc-t"
    assert [(one["judge"], one["policy"]) for one in record["results"]] == [
        ("example_mean", policy) for policy in ("same", "other", "merged", "shuffled", "fixed")
    ]  # fmt: skip
    assert record["ratings"] == 36  # each of two raters has a rating of each output


def test_a_judge_is_built_and_shows_its_examples(run, tmp_path):
    path = tmp_path / "judge.json"
    code, out, _ = run(
        "specialist", "build", HISTORY, *LANGUAGES, "--policy", "other", "--same-output", "keep", "--max-examples", 2,
        "--example-tokens", 4000, "--seed", 7, "--out", path,
    )  # fmt: skip
    assert code == 0
    assert out == f"mqm_run, specialised by other: 60 ratings of 5 systems on 6 sources, 2 raters: {path}\n" + (
        f"next, in Python: metricsmith.score([metricsmith.load({str(path)!r})], rows, lm=...)\n"
    )
    examples = load(path).row_examples
    assert examples.policy == ExamplePolicy(
        "same", rater="other", same_output="keep", max_examples=2, max_tokens=4000, seed=7
    )
    row = examples.history.rows()[0]
    assert sum(message["role"] == "assistant" for message in load(path).messages(row)) == 2


@pytest.mark.parametrize("kind", ["da", "examples"])
def test_other_judges_are_built_of_the_same_history(run, tmp_path, kind):
    code, *_ = run("specialist", "build", HISTORY, *LANGUAGES, "--judge", kind, "--out", tmp_path / "judge.json")
    assert code == 0
    kinds = {"da": "direct_assessment", "examples": "example_judge"}
    assert load(tmp_path / "judge.json").kind == kinds[kind]


def test_a_judge_of_a_rated_table_shows_the_rows_rater(run, stories, tmp_path):
    code, out, _ = run("specialist", "build", stories, *COLUMNS, "--out", tmp_path / "judge.json")
    assert code == 0
    assert "specialised by same: 36 ratings of 3 systems on 6 sources, 2 raters" in out


def test_a_new_system_that_equals_an_old_one_is_joined_with_it(run, tmp_path):
    rows = [json.loads(line) for line in HISTORY.read_text("utf-8").splitlines()]
    new = [{**row, "system": "new"} for row in rows if row["system"] == "delta" and row["rater"] == "anna"]
    test = tmp_path / "new.jsonl"
    test.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in new), "utf-8")
    code, _, err = run(
        "specialist", "build", HISTORY, *LANGUAGES, "--test", test, "--out", tmp_path / "judge.json"
    )  # fmt: skip
    assert code == 0
    assert "the same in all segments they share: beta, beta-tuned, delta, new" in err
    assert load(tmp_path / "judge.json").row_examples.joined["new"] == "delta"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "HISTORY"], "--source-language is needed for --judge mqm"),
        (["build", "HISTORY", *LANGUAGES, "--judge", "mqn"], "did you mean 'mqm'?"),
        (
            ["build", "HISTORY", *LANGUAGES, "--policy", "filtered"],
            "filtered reads what people marked in the row itself",
        ),
        (["build", "HISTORY", *LANGUAGES, "--test", "BARE"], "none of the 1 rows of --test"),
        (["build", "HISTORY", *LANGUAGES, "--max-examples", "0"], "max_examples=0 must be a whole number from 1"),
        (["build", "HISTORY", *LANGUAGES, "--same-output", "kept"], "did you mean 'keep'?"),
        (["build", "HISTORY", "--system", "author"], "name its rating, too, with --target"),
        (["build", "STORIES"], "Of a rated table name the rating: --target COLUMN"),
        (["build", "STORIES", *COLUMNS[:6]], "name its column with system"),
        (["build", "ALONE", *COLUMNS[:-2], "--policy", "same"], "does not say who rated"),
        (["build", "HISTORY", *LANGUAGES, "--out", "HISTORY"], "is the history, which would be lost"),
        (["evaluate", "none.tsv"], "none.tsv"),
        (["evaluate", "HISTORY", "--policies", "sane"], "did you mean 'same'?"),
        (["evaluate", "HISTORY", "--policies", ","], "no policy to evaluate"),
        (["evaluate", "HISTORY", "--measure", "acc-tt"], "did you mean 'acc-t'?"),
        (["evaluate", "HISTORY", "--seeds", "0"], "seeds=0 must be a whole number from 1"),
        (["evaluate", "HISTORY", "--curve", "1,few"], "--curve 1,few must be whole numbers"),
        (["evaluate", "HISTORY", "--curve", "0"], "curve=[0] must be"),
        (["evaluate", "STORIES", *COLUMNS, "--measure", "character-f1"], "has no marked errors"),
    ],
)
def test_wrong_input_ends_with_code_2_one_line_and_nothing_written(run, stories, tmp_path, arguments, message):
    places = {"HISTORY": HISTORY, "STORIES": stories, "ALONE": stories.with_name("alone.csv")}
    places["BARE"] = stories.with_name("bare.csv")
    places["BARE"].write_text("src,mt\nOne.,Eins.\n", "utf-8")
    before = HISTORY.read_bytes()
    given = [places.get(argument, argument) for argument in arguments]
    out = () if "--out" in arguments else ("--out", tmp_path / "out")
    code, printed, err = run("specialist", *given, *out, *(("--quiet",) if arguments[0] == "evaluate" else ()))
    assert code == 2
    assert message in err
    assert err.startswith("error: ")
    assert printed == ""
    assert not (tmp_path / "out").exists()
    assert HISTORY.read_bytes() == before


def test_a_model_that_fails_is_code_3(run, tmp_path):
    with serve(Reviser(), always=401) as server:
        code, _, err = run(
            "specialist", "evaluate", HISTORY, *LANGUAGES, *model(server), "--out", tmp_path / "out", "--quiet"
        )
    assert code == 3
    assert "always 401" in err
    assert not (tmp_path / "out").exists()


def test_the_judge_is_asked_at_the_temperature_of_the_command():
    table = read_wmt_mqm(HISTORY)
    options = JudgeOptions(source_language="English", target_language="German")
    assert options.made(table, 0.9).request == {"temperature": 0.9}
    assert options.made(table).request == {"temperature": 0.4}
