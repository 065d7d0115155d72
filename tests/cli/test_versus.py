"""`metricsmith versus`: the verdict on two tables, its files, and the exit code that a pipeline goes by."""

from __future__ import annotations

import csv
import json

import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import default_bank
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.state import write_state

SHORT, LONG = "It is shut.", "Kindly be advised that the aforementioned facility is shut."


@pytest.fixture
def write(tmp_path):
    """Write a table of outputs, every other one shorter or longer by a word."""

    def call(name, output, rows=24, **columns):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "question", "answer", "expected", *columns])
            for k in range(rows):
                own = output if k % 2 else output.replace(" shut", " quite shut")
                more = [values[k % len(values)] for values in columns.values()]
                writer.writerow([f"q{k}", f"Is hall {k} open?", f"{own} Hall {k}.", SHORT, *more])
        return tmp_path / name

    return call


@pytest.fixture
def versus(run, tmp_path, write):
    """Run `versus` by ROUGE-L on two tables, by default a worse first and a better second."""
    write_state(default_bank().get("rouge_l_f").to_state(), tmp_path / "metric.json")
    write("a.csv", LONG)
    write("b.csv", SHORT)

    def call(*options, first="a.csv", second="b.csv", metric=tmp_path / "metric.json"):
        return run("versus", metric, tmp_path / first, tmp_path / second, "--out", tmp_path / "out", *options)

    return call


def test_the_first_line_is_the_verdict_and_the_files_are_written(versus, tmp_path):
    code, out, err = versus()
    assert code == 0, err
    assert out.startswith("B is better: mean rouge_l_f 0.")
    assert "rows are paired by the column 'id'" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"versus.html", "versus.md", "versus.json"}
    assert f"page: {tmp_path / 'out' / 'versus.html'}" in out


@pytest.mark.parametrize(
    ("first", "second", "fail_if", "expected"),
    [
        ("a.csv", "b.csv", "worse", 0),
        ("a.csv", "b.csv", "undecided", 0),
        ("b.csv", "a.csv", "worse", 4),
        ("b.csv", "a.csv", "undecided", 4),
        ("a.csv", "a.csv", "worse", 0),
        ("a.csv", "a.csv", "undecided", 4),
    ],
)
def test_the_exit_code_is_4_where_the_verdict_is_unwanted(versus, tmp_path, first, second, fail_if, expected):
    code, out, err = versus("--fail-if", fail_if, first=first, second=second)
    assert code == expected
    assert ("exit code 4: the verdict is" in err) == (expected == 4)
    assert out
    assert (tmp_path / "out" / "versus.html").exists()


def test_a_bank_metric_goes_by_its_name(versus):
    code, out, _ = versus("--json", metric="rouge_l_f")
    assert (code, json.loads(out)["metric"], json.loads(out)["verdict"]) == (0, "rouge_l_f", "better")
    code, _, err = versus(metric="rogue_l_f")
    assert code == 2
    assert "rouge_l_f" in err


def test_without_fail_if_a_worse_version_ends_with_0(versus):
    assert versus(first="b.csv", second="a.csv")[0] == 0


def test_a_quiet_run_still_ends_with_4(versus):
    code, out, _ = versus("--quiet", "--fail-if", "worse", first="b.csv", second="a.csv")
    assert (code, out) == (4, "")


def test_slices_groups_and_conditions(versus, write):
    write("a.csv", LONG, language=["en", "en", "de", "de"], talk=["x", "x", "y", "y", "z", "z"])
    code, out, err = versus("--by", "language", "--group", "talk", "--json")
    assert code == 2
    assert "no column 'talk'" in err  # B lacks it
    write("b.csv", SHORT, talk=["x", "x", "y", "y", "z", "z"])
    code, out, _ = versus("--by", "language", "--group", "talk", "--json")
    record = json.loads(out)
    assert [one["name"] for one in record["slices"]] == ["en", "de"]
    assert (record["whole"]["n"], record["whole"]["groups"], record["verdict"]) == (24, 3, "undecided")


def test_the_pairing_column_may_be_named(versus, write):
    write("a.csv", LONG, ticket=[str(k) for k in range(24)])
    write("b.csv", SHORT, ticket=[str(k) for k in reversed(range(24))])
    _, out, _ = versus("--id", "ticket", "--json")
    record = json.loads(out)
    assert record["paired_by"] == "the column 'ticket'"
    assert record["moved"][0]["first"]["cells"]["input"] == "Is hall 0 open?"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fail-if", "wors"), "must be worse or undecided (did you mean 'worse'?)"),
        (("--by", "langage"), "no column 'langage'"),
        (("--id", "ticket"), "no column 'ticket'"),
        (("--out", "{tmp}/a.csv"), "is a file"),
    ],
)
def test_wrong_options_end_with_2(versus, tmp_path, options, said):
    code, _, err = versus(*(option.replace("{tmp}", str(tmp_path)) for option in options))
    assert code == 2
    assert said in err


def test_an_empty_second_table_ends_with_2(versus, tmp_path):
    (tmp_path / "b.csv").write_text("id,question,answer,expected\n", "utf-8")
    code, _, err = versus()
    assert code == 2
    assert "b.csv" in err


def test_a_saved_judge_is_asked_for_pairs_alone_and_the_dry_run_sends_nothing(versus, write, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    CriterionJudge(criterion="Plain words", meaning="Short.", task="Answer.").save(tmp_path / "metric.json")
    write("a.csv", LONG, rows=8)
    write("b.csv", SHORT, rows=12)
    code, _, err = versus()
    assert code == 2
    assert "--lm" in err
    with serve(scripted) as server:
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, out, err = versus(*model, "--dry-run")
        assert code == 0, err
        assert out.splitlines()[0].startswith("estimated: ")
        assert not (tmp_path / "out").exists()
        code, out, err = versus(*model, "--json")
        assert code == 0, err
    record = json.loads(out)
    assert (record["whole"]["n"], record["model"]) == (8, "openai/m")
    assert record["left_out"] == {"rows of B pair with none": ["q8", "q9", "q10", "q11"]}


def test_an_id_of_the_working_folder_is_no_wish_to_pair_by_it(versus, run, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRICSMITH_LM", "openai/gpt-4o-mini")
    write("a.csv", LONG, number=[f"a{k}" for k in range(24)])
    write("b.csv", SHORT, number=[f"b{k}" for k in range(24)])
    (tmp_path / "metricsmith.toml").write_text('id = "number"\n', "utf-8")
    code, out, err = versus()
    assert code == 0, err
    assert "B is better" in out
    assert "not in people's ratings.\n" in out
    assert "model none" in (tmp_path / "out" / "versus.md").read_text("utf-8")  # ROUGE asks none, whatever is set
    code, _, err = versus("--id", "number")
    assert code == 2
    assert "no row of" in err
