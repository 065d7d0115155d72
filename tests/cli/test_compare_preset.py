"""`metricsmith compare --preset table2`: the paper's methods on its data sets, from files of our own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from loopback import scripted, serve
from rated_sets import rows_of, written


def answers(prompt):
    """Answers of `scripted` with scores from 1 to 4, which are on all scales."""
    found = scripted(prompt)
    return {**found, "score": str(min(4, int(found["score"])))} if "score" in found else found


NO_MODEL = ("--methods", "best_existing,metametrics,autometrics", "--seeds", 2)


@pytest.fixture
def files(tmp_path):
    """Twenty sources of SimpEval, and twenty of HelpSteer2, a fifth of which is its validation split."""
    return [f"{name}={written(name, tmp_path, rows_of(name, 40))}" for name in ("simpeval", "helpsteer2")]


@pytest.fixture
def comparing(run, files, tmp_path, monkeypatch):
    """Run the preset on both files: exit code, output, errors."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def call(*options, server=None):
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1"] if server else []
        return run("compare", "--preset", "table2", *files, *model, "--out", tmp_path / "out", *options)

    return call


def test_each_data_set_has_its_folder_and_all_one_table(comparing, run, tmp_path):
    code, out, err = comparing(*NO_MODEL)
    assert code == 0, err
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    kinds = ("html", "md", "json")
    assert names == {f"comparisons.{kind}" for kind in kinds} | {
        f"{name}/compare.{kind}" for name in ("simpeval", "helpsteer2") for kind in kinds
    }
    tau = r" +−?\.\d{3} ± \.\d{3}"
    assert re.search(rf"tau-b ± seeds +simpeval +helpsteer2\n +Best existing metric{tau}{tau}\n", out)
    together = json.loads((tmp_path / "out" / "comparisons.json").read_text("utf-8"))
    alone = {
        name: json.loads((tmp_path / "out" / name / "compare.json").read_text("utf-8")) for name in together["sets"]
    }
    assert together["sets"] == alone
    # HelpSteer2: rows 8 and 9 of each ten are its validation split, 8 of 40; the other 32 go 5/7 to 2/7 by source.
    assert alone["helpsteer2"]["rows"]["test"] == 8
    assert alone["helpsteer2"]["rows"]["train"] + alone["helpsteer2"]["rows"]["validation"] == 32
    assert "tested on helpsteer2.jsonl" in alone["helpsteer2"]["signature"]
    assert alone["simpeval"]["rows"]["test"] == 12
    assert all("TwoStagePLS n 5, bank auto, k 30" in one["signature"] for one in alone.values())
    assert {method["key"] for method in alone["simpeval"]["methods"]} == {"best_existing", "metametrics", "autometrics"}


def test_a_data_set_has_the_figures_of_the_command_without_a_preset(comparing, run, tmp_path):
    assert comparing(*NO_MODEL, "--quiet")[0] == 0
    code, _, err = run(
        "compare", tmp_path / "simpeval.csv", "--target", "score", "--output", "simple", "--input", "original",
        "--reference", "references", "--group", "id", "--system", "system", "--scale", "0:100", "--regression", "pls",
        "--n", 5, *NO_MODEL, "--out", tmp_path / "alone", "--quiet",
    )  # fmt: skip
    assert code == 0, err
    one, other = (
        json.loads((tmp_path / folder / "compare.json").read_text("utf-8"))["methods"]
        for folder in ("out/simpeval", "alone")
    )
    figures = ("key", "taus", "tau", "over_seeds", "over_both", "difference", "p_value", "remarks")
    assert [[line[name] for name in figures] for line in one] == [[line[name] for name in figures] for line in other]


def test_the_dry_run_sums_and_the_budget_is_one(comparing, tmp_path):
    options = ("--methods", "guideline_judge,dna_eval", "--seeds", 2)
    with serve(answers) as server:
        code, planned, err = comparing(*options, "--dry-run", server=server)
        assert (code, server.requests, (tmp_path / "out").exists()) == (0, 0, False), err
        each = [int(found.replace(",", "")) for found in re.findall(r"requests: at most ([\d,]+), ", planned)]
        bound = int(re.search(r"all 2 data sets: at most ([\d,]+) requests", planned)[1].replace(",", ""))
        assert (len(each), sum(each)) == (2, bound)
        code, _, err = comparing(*options, "--max-requests", each[0] + 3, server=server)
        assert code == 3, err
        assert server.requests <= each[0] + 3
        assert (tmp_path / "out" / "simpeval" / "compare.json").exists()  # the first was finished by then
        assert not (tmp_path / "out" / "comparisons.json").exists()
        before = server.requests
        code, out, err = comparing(*options, server=server)
        assert code == 0, err
        assert 0 < server.requests - before <= bound
        assert re.search(r"DnA-Eval +−?\.\d{3} ± \.\d{3} +−?\.\d{3} ± \.\d{3}", out)
        assert any("An assistant answers" in prompt for prompt in server.prompts)  # each set has its own task


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simpeval", "--preset", "tabel2"], r"--preset 'tabel2' \(did you mean 'table2'\?\).*there is table2"),
        (["simpevl=x.csv", "--preset", "table2"], r"no data set 'simpevl' \(did you mean 'simpeval'\?\)"),
        (["evalgen", "--preset", "table2"], r"not on the hub.*evalgen=FILE"),
        (["helpsteer2", "--preset", "table2"], r"allow it with --download.*nvidia/HelpSteer2"),
        (["cogym=nowhere.jsonl", "--preset", "table2"], "nowhere.jsonl"),
        (["simpeval=a.csv", "SimpEval=b.csv", "--preset", "table2"], "names simpeval twice"),
        (["a.csv", "b.csv"], r"one table is compared on, and 2 are named \(a.csv, b.csv\)"),
        (["a.csv", "--download"], "--download is for --preset table2"),
    ],
)
def test_wrong_uses_are_code_2_and_write_nothing(run, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("compare", *arguments)
    assert code == 2
    assert re.search(says, err), err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("METRICSMITH_DATA" not in os.environ, reason="needs the public data: METRICSMITH_DATA")
def test_the_published_simpeval_without_a_key(run, tmp_path):
    file = Path(os.environ["METRICSMITH_DATA"]) / "simpeval.csv"
    code, out, err = run(
        "compare", "--preset", "table2", f"simpeval={file}", "--methods", "best_existing,metametrics", "--out", tmp_path
    )
    assert code == 0, err
    # The figures of the same split in docs/compare.md; the paper prints .246 for the best existing metric.
    assert re.search(r"Best existing metric +\.328 ± \.000", out)
    assert re.search(r"MetaMetrics \(boosting\) +\.157 ± \.000", out)
    assert re.search(r"Best existing metric +\.240 to \.411", out)


def test_columns_for_other_tables_are_not_those_of_a_data_set(comparing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("metricsmith.toml").write_text('target = "stars"\noutput = "answer"\ngroup = "bundle"\n', "utf-8")
    code, out, err = comparing(*NO_MODEL, "--scale", "1:5", "--lower-is-better", "--dry-run")
    assert code == 0, err
    assert "12 test in" in out
    for name in ("simpeval", "helpsteer2"):
        assert f"note: {name}: it has target, output, group, scale, higher_is_better of its own" in err
    code, _, err = comparing(*NO_MODEL, "--target", "verbosity", "--out", tmp_path / "out", "--quiet")
    assert code == 0, err
    tasks = {name: saved(tmp_path, name)["task"]["target"] for name in ("simpeval", "helpsteer2")}
    assert tasks == {"simpeval": "score", "helpsteer2": "verbosity"}


def test_columns_of_a_format_that_is_not_verified_are_taken_by_option(run, tmp_path):
    rows = [
        {("Text" if name == "Response" else name): cell for name, cell in row.items()} for row in rows_of("evalgen", 40)
    ]
    words = ("compare", "--preset", "table2", f"evalgen={written('evalgen', tmp_path, rows)}", *NO_MODEL, "--dry-run")
    code, _, err = run(*words)
    assert (code, "no column 'Response'" in err, "--output" in err) == (2, True, True)
    code, _, err = run(*words, "--output", "Text")
    assert code == 0, err
    assert "format not verified" in err


def saved(tmp_path, name):
    return json.loads((tmp_path / "out" / name / "compare.json").read_text("utf-8"))


def test_sizes_that_are_given_go_before_the_papers(comparing, tmp_path):
    code, _, err = comparing(*NO_MODEL, "--n", 0)
    assert (code, "n=0 must be at least 1" in err) == (2, True)
    code, _, err = comparing(*NO_MODEL, "--full", "--k", 10, "--quiet")
    assert code == 0, err
    assert "bank auto, k 10" in saved(tmp_path, "simpeval")["signature"]
    assert "TwoStagePLS" not in saved(tmp_path, "simpeval")["signature"]


def test_each_data_set_is_planned_once(comparing, monkeypatch):
    from metricsmith.studies.comparison import run, sets

    planned = []
    for module in (sets, run):

        def counted(table, *rest, plan=module.plan_comparison, **options):
            planned.append(table.source)
            return plan(table, *rest, **options)

        monkeypatch.setattr(module, "plan_comparison", counted)
    assert comparing(*NO_MODEL, "--dry-run")[0] == 0
    assert comparing(*NO_MODEL)[0] == 0
    assert len(planned) == 4
