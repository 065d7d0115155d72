"""`metricsmith ablate`: a grid from a file or of the paper, killed and resumed, on tables and on named data sets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopback import own_axes, serve
from metricsmith.cli import app
from planted import planted_rows
from rated_sets import rows_of, written

SOURCE = Path(app.__file__).parents[2]
COLUMNS = ("--output", "rewrite", "--input", "notice", "--reference", "gold", "--group", "bundle")
BASICS = ("--target", "rating", *COLUMNS)
SMALL = """
title = "Sizes"
seeds = 2
reference = {n = 2}
[base]
bank = "none"
regression = "pls"
[[parts]]
title = "Components"
vary = {n = [1, 2], rows = [0, 20]}
"""
ASKED = """
title = "Asked"
seeds = 2
reference = {k = 3}
[base]
bank = "generated"
generators = {criterion = 2, rubric = 1}
[[parts]]
title = "Retrieval"
vary = {k = [1, 2, 3]}
"""
FILES = {"ablation.html", "ablation.md", "ablation.json", "cells.jsonl"}


@pytest.fixture
def grid(tmp_path):
    """Write a grid."""

    def write(text=SMALL, name="grid.toml"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
def ablating(run, own, grid, tmp_path):
    """Run the small grid on columns of scores: exit code, output, errors."""

    def call(*options, text=SMALL, out="out"):
        columns = ("--metric-columns", "good", "--metric-columns", "junk")
        return run("ablate", grid(text), own, *BASICS, *columns, "--out", tmp_path / out, *options)

    return call


def test_a_grid_is_run_and_its_files_are_written(ablating, tmp_path):
    code, out, err = ablating()
    assert code == 0, err
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    record = json.loads((tmp_path / "out" / "ablation.json").read_text("utf-8"))
    assert {(one["setting"], one["rows"], one["data"]) for one in record["cells"]} == {
        (setting, rows, "own") for setting in ("n=1", "n=2") for rows in (0, 20)
    }
    assert {one["seed"] for one in record["cells"]} == {0, 1}
    assert "n=1" in out
    code, out, err = ablating("--json", "--seed", 3, out="other")
    assert code == 0, err
    assert json.loads(out) == json.loads((tmp_path / "other" / "ablation.json").read_text("utf-8"))
    assert {one["seed"] for one in json.loads(out)["cells"]} == {3, 4}


def test_a_finished_grid_needs_force_and_another_one_too(ablating, tmp_path):
    assert ablating("--quiet")[0] == 0
    page = (tmp_path / "out" / "ablation.md").read_text("utf-8")
    code, _, err = ablating("--quiet")
    assert (code, "holds this grid, finished" in err, "--force" in err) == (2, True, True)
    other = SMALL.replace("seeds = 2", "seeds = 1")
    code, _, err = ablating(text=other)
    assert (code, "another run, which differs in grid" in err) == (2, True)
    assert (tmp_path / "out" / "ablation.md").read_text("utf-8") == page
    assert ablating("--force", text=other)[0] == 0
    assert (tmp_path / "out" / "cells.jsonl").read_text("utf-8").count("\n") == 1 + 4


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(run, own, grid, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serve(own_axes) as server:
        model = ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")
        code, out, err = run("ablate", grid(ASKED), own, *BASICS, *model, "--out", tmp_path / "out", "--dry-run")
        assert server.requests == 0
    assert code == 0, err
    assert "6 cells: 3 settings, learning rows all, 2 seeds, 1 data set" in out
    union, summed = map(
        int, re.search(r"requests: (\d+) for all cells together, (\d+) if each cell ran alone", out).groups()
    )
    assert 1.5 * union < summed
    assert not (tmp_path / "out").exists()


def command(grid, table, server, out, cache):
    """The command and its surroundings, with a model at this server."""
    words = [
        sys.executable, "-m", "metricsmith", "ablate", grid, table, *BASICS, "--lm", "openai/m", "--api-base",
        f"http://127.0.0.1:{server.port}/v1", "--concurrency", 4, "--out", out, "--quiet",
    ]  # fmt: skip
    settings = {"OPENAI_API_KEY": "none", "PYTHONPATH": str(SOURCE), "DSPY_CACHEDIR": str(cache)}
    return list(map(str, words)), os.environ | settings


def test_a_killed_grid_goes_on_without_a_second_request(write_own, grid, tmp_path):
    table = write_own(tmp_path / "own.csv", planted_rows(sources=8))
    path = grid(ASKED)
    with serve(own_axes) as whole:
        words, settings = command(path, table, whole, tmp_path / "whole", tmp_path / "first")
        subprocess.run(words, env=settings, check=True, timeout=120)
    out = tmp_path / "out"
    with serve(own_axes, delay=0.02) as server:
        words, settings = command(path, table, server, out, tmp_path / "second")
        process = subprocess.Popen(words, env=settings)
        while server.requests < 2 * whole.requests / 3 and process.poll() is None:  # inside the first cell of a seed
            time.sleep(0.005)
        process.kill()
        assert process.wait(60) == -9
        killed, cells = server.requests, (out / "cells.jsonl").read_bytes()
        subprocess.run(words, env=settings, check=True, timeout=120)
    assert cells.count(b"\n") == 1 + 3
    assert 2 * whole.requests / 3 <= killed < whole.requests
    assert whole.requests <= server.requests <= whole.requests + 4  # those in flight
    assert (out / "cells.jsonl").read_bytes().startswith(cells[: cells.rfind(b"\n") + 1])
    first, second = (json.loads((folder / "ablation.json").read_text("utf-8")) for folder in (tmp_path / "whole", out))
    for one, other in zip(first["cells"], second["cells"], strict=True):
        assert {**one, "usage": 0} == {**other, "usage": 0}
    # What the killed run had paid for is in the store, and in no cell.
    assert second["usage"]["requests"] <= first["usage"]["requests"] == whole.requests


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["GRID", "own.csv", "--preset", "table3"], "are two grids"),
        (["own.csv"], "there is no grid: name a file GRID.toml before the data"),
        (["own.csv", "--preset", "table33"], "no preset 'table33' (did you mean 'table3'?)"),
        (["GRID"], "there is no table"),
        (["GRID", "own.csv", "copy/own.csv"], "are both called own: name one of them with NAME=FILE"),
        (["GRID", "=own.csv"], "must be FILE or NAME=FILE"),
        (["GRID", "nowhere.csv"], "nowhere.csv"),
        (["missing.toml", "own.csv"], "the grid missing.toml cannot be read"),
        (["GRID", "own.csv", "--target", ""], "--target is missing"),
        (["GRID", "own.csv", "--out", "own.csv"], "--out own.csv is a file"),
    ],
)
def test_wrong_inputs_are_code_2_before_anything_is_written(run, own, grid, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "own.csv").write_bytes(own.read_bytes())
    grid()
    words = ["grid.toml" if word == "GRID" else word for word in arguments]
    target = () if "--target" in words else ("--target", "rating")
    code, _, err = run("ablate", *words, *target, *COLUMNS, *(() if "--out" in words else ("--out", "out")))
    assert (code, err.startswith("error: ")) == (2, True)
    assert says in err
    assert not (tmp_path / "out").exists()


def test_a_table_in_the_place_of_the_report_is_not_written_over(run, own, grid, tmp_path):
    table = tmp_path / "cells.jsonl"
    table.write_bytes(own.read_bytes())
    code, _, err = run("ablate", grid(), table, *BASICS, "--out", tmp_path)
    assert (code, "which would be lost" in err) == (2, True)
    assert table.read_bytes() == own.read_bytes()


def test_columns_of_a_named_data_set_stand_in_the_grid(run, write_own, grid, own, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(own.read_text("utf-8").replace("rating", "stars", 1), "utf-8")
    text = f'{SMALL}\n[data.second]\ntarget = "stars"\nmetric_columns = ["junk"]\n'
    out = tmp_path / "out"
    words = ("ablate", grid(text), own, f"second={other}", *BASICS, "--metric-columns", "good", "--out", out, "--quiet")
    code, _, err = run(*words)
    assert code == 0, err
    record = json.loads((out / "ablation.json").read_text("utf-8"))
    assert [(one["name"], one["target"]) for one in record["data"]] == [("own", "rating"), ("second", "stars")]
    components = {one["data"]: one["components"] for one in record["cells"] if one["status"] == "done"}
    assert components == {"own": ["good"], "second": ["junk"]}


def test_columns_for_no_table_are_told(run, own, grid):
    code, _, err = run("ablate", grid(f'{SMALL}\n[data.oun]\ntarget = "stars"\n'), own, *BASICS, "--dry-run")
    assert code == 0
    assert "note: the grid names columns of 'oun' (did you mean 'own'?), which is no table here" in err


def test_columns_and_limits_of_the_working_folder_count(run, own, grid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("metricsmith.toml").write_text('target = "rating"\noutput = "rewrite"\ngroup = "bundle"\n', "utf-8")
    code, out, err = run("ablate", grid(), own, "--dry-run")
    assert code == 0, err
    assert "note: metricsmith.toml: --target 'rating', --output 'rewrite', --group 'bundle'" in err
    assert "8 cells" in out


def test_a_named_data_set_has_its_own_columns_and_a_file_of_that_name_those_of_the_command(
    run, own, grid, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    published = written("simpeval", tmp_path, rows_of("simpeval", 40)).rename(tmp_path / "theirs.csv")
    mine = tmp_path / "simpeval.csv"
    mine.write_bytes(own.read_bytes())
    for name in ("SimpEval", "simp-eval"):
        code, out, err = run("ablate", grid(), own, f"{name}={published}", *BASICS, "--dry-run")
        assert code == 0, err
        assert "2 data sets" in out
        assert "note: simpeval: it has target, output, inputs, reference, group of its own" in err
    code, out, err = run("ablate", grid(), mine, *BASICS, "--dry-run")
    assert (code, "of its own" in err) == (0, False), err
    named = f'{SMALL}\n[data.simpeval]\ntarget = "clarity"\n'
    code, _, err = run("ablate", grid(named), f"simpeval={published}", *BASICS, "--dry-run")
    assert (code, "SimpEval has no dimension 'clarity'; it has score" in err) == (2, True)
