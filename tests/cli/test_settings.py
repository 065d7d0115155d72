"""``metricsmith.toml`` names columns and lowers limits, says so, and can do nothing else."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest

from loopback import scripted, serve
from metricsmith.cli.options import LimitOptions, SavedMetricOptions, TableOptions, takes_groups
from metricsmith.cli.settings import COLUMNS, FILE, LARGEST, LIMITS, folder_settings, with_settings
from metricsmith.errors import DataError

NO_TABLE = TableOptions("", "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, and its settings written from lines."""
    monkeypatch.chdir(tmp_path)

    def write(*lines):
        (tmp_path / FILE).write_text("\n".join(lines), "utf-8")
        return tmp_path

    return write


def filled(given, fillable):
    with with_settings(given, fillable) as values:
        return values


def test_columns_stand_in_for_options_that_were_not_given(run, own, folder):
    out = folder('target = "rating"', 'output = "rewrite"', 'input = ["notice"]', 'group = "bundle"') / "out"
    basics = ("--bank", "none", "--metric-columns", "good", "--metric-columns", "junk", "--out", out)
    code, _, err = run("induce", own, *basics)
    assert code == 0, err
    told = f"note: {FILE}: --target 'rating', --output 'rewrite', --input 'notice', --group 'bundle'\n"
    assert err.startswith(told)
    by_file = json.loads((out / "report.json").read_text("utf-8"))["signature"]
    assert "target rating, output rewrite, input notice" in by_file
    code, _, err = run("induce", own, *basics, "--output", "gold", "--force")
    assert code == 0
    assert "--output" not in err.splitlines()[0]
    assert ", output gold, input notice" in json.loads((out / "report.json").read_text("utf-8"))["signature"]


def test_a_rating_that_is_named_nowhere_is_code_2(run, own, folder):
    folder('output = "rewrite"')
    code, _, err = run("induce", own)
    assert code == 2
    assert f"--target is missing: name the column with the human rating, here or in {FILE}" in err


def test_a_column_that_the_table_lacks_is_an_error_that_names_the_file(run, own, folder):
    out = folder('target = "rating"') / "out"
    basics = ("--bank", "none", "--metric-columns", "good", "--out", out, "--quiet")
    assert run("induce", own, *basics)[0] == 0
    folder('target = "rating"', 'context = "facts"')
    for command in (("induce", own, *basics), ("score", out / "metric.json", own)):
        code, _, err = run(*command)
        assert code == 2
        assert "no column 'facts'" in err
        assert err.endswith(f"(--context), or correct {FILE}, which named it\n")
        code, _, err = run(*command, "--context", "elsewhere")
        assert code == 2
        assert "no column 'elsewhere'" in err
        assert f"correct {FILE}" not in err


@pytest.mark.parametrize(
    ("given", "effective", "told"),
    [
        ({"max_requests": None}, {"max_requests": 10}, "--max-requests 10"),
        ({"max_requests": 50}, {"max_requests": 10}, "--max-requests 10 (lower than 50)"),
        ({"max_requests": 3}, {"max_requests": 3}, ""),
        ({"max_usd": None, "max_requests": 3}, {"max_usd": 1.5, "max_requests": 3}, "--max-usd 1.5"),
        ({"requests_per_minute": 90.0}, {"requests_per_minute": 60}, "--requests-per-minute 60 (lower than 90.0)"),
        ({"bounds": "auto"}, {"bounds": "1:8"}, "--concurrency '1:8' (lower than auto)"),
        ({"bounds": "16"}, {"bounds": "8:8"}, "--concurrency '8:8' (lower than 16)"),
        ({"bounds": "4:64"}, {"bounds": "4:8"}, "--concurrency '4:8' (lower than 4:64)"),
        ({"bounds": "2:4"}, {"bounds": "2:4"}, ""),
        ({"bounds": "many"}, {"bounds": "many"}, ""),
    ],
)
def test_a_limit_counts_only_where_it_is_lower(folder, capsys, given, effective, told):
    folder("max_requests = 10", "max_usd = 1.5", "requests_per_minute = 60", "concurrency = 8")
    assert filled(given, given.keys()) == effective
    assert capsys.readouterr().err == (f"note: {FILE}: {told}\n" if told else "")


def test_an_option_cannot_exceed_the_limit_of_the_file(run, own, folder):
    folder("max_requests = 1", 'target = "rating"')
    with serve(scripted) as server:
        model = ("--lm", "openai/settings", "--api-base", f"http://127.0.0.1:{server.port}/v1")
        _, _, err = run("induce", own, *model, "--bank", "generated", "--max-requests", 500, "--out", "out")
        assert server.requests <= 1
    assert "--max-requests 1 (lower than 500)" in err


def test_options_that_a_command_lacks_are_left_alone_and_nothing_is_said_of_them(run, own, folder):
    folder('target = "rating"', "max_requests = 5")
    assert filled({"output": None}, {"output"}) == {"output": None}
    code, out, err = run("bank", "list")
    assert (code, err) == (0, "")
    assert out
    code, _, err = run("score", "none.json", own)  # its own --target is that of a second table
    assert code == 2
    assert "--labelled" not in err
    assert f"note: {FILE}: --max-requests 5\n" in err


def test_a_table_that_a_command_need_not_read_takes_no_columns_but_limits_and_a_group_beside_a_table_is_named(folder):
    folder('output = "text"', 'group = "case"', 'target = "rating"', "max_tokens = 9")
    heard = []

    @takes_groups(without=("data", "target"))
    def perhaps(table: TableOptions = NO_TABLE, limits: LimitOptions = LimitOptions()) -> None:  # noqa: B008
        heard.append((table.output, limits.max_tokens))

    @takes_groups()
    def paired(saved: SavedMetricOptions, group: str | None = None, target: str | None = None) -> None:
        heard.append((saved.output, group, target))

    for command in (perhaps, paired):
        command(**dict.fromkeys(inspect.signature(command).parameters))
    assert heard == [(None, 9), ("text", "case", None)]


def test_quiet_says_nothing_and_json_stays_json(run, own, folder):
    folder('target = "rating"')
    basics = ("induce", own, "--bank", "none", "--metric-columns", "good", "--out", "out")
    assert run(*basics, "--quiet") == (0, "", "")
    code, out, err = run(*basics, "--json")
    assert code == 0
    assert json.loads(out)["task"]["target"] == "rating"
    assert err.splitlines()[0] == f"note: {FILE}: --target 'rating'"


@pytest.mark.parametrize(
    "line", ["lm", "api_base", "api_key", "store", "out", "task", "local", "judge", "where", "data"]
)
def test_no_model_address_key_or_path_can_be_named(run, own, folder, line):
    folder(f'{line} = "elsewhere"')
    code, _, err = run("induce", own, "--target", "rating", "--out", "out")
    assert code == 2
    assert f"{FILE} has '{line}', which is not allowed" in err
    assert "no model, address, key or path" in err
    assert err.count("\n") == 1


def test_an_unknown_key_is_refused_with_the_nearest_allowed(folder):
    folder("max_request = 5")
    with pytest.raises(DataError, match=r"has 'max_request', which is not allowed \(did you mean 'max_requests'\?\)"):
        folder_settings()
    folder("[columns]", 'target = "rating"')
    with pytest.raises(DataError, match="has 'columns', which is not allowed"):
        folder_settings()


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("value", ["3", '""', "[]", '["a", 3]', "true", "{a = 1}", "1979-05-27"])
def test_a_column_that_is_no_text_is_refused(folder, name, value):
    folder(f"{name} = {value}")
    with pytest.raises(DataError, match=f"has {name} = .*, which must be a column's name"):
        folder_settings()


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "true", '"5"', "[5]", "1e999", "1e16"])
def test_a_limit_that_is_no_number_above_zero_is_refused(folder, name, value):
    folder(f"{name} = {value}")
    with pytest.raises(DataError, match=f"has {name} = .*, which must be a .*number above 0"):
        folder_settings()


def test_several_inputs_and_references_may_be_named_and_one_column_of_the_others(folder):
    folder('input = ["a", "b"]', 'reference = "c"', 'output = "d"')
    assert folder_settings() == {"input": ["a", "b"], "reference": ["c"], "output": "d"}
    folder('output = ["d"]')
    with pytest.raises(DataError, match="has output = "):
        folder_settings()


def linked(path):
    (path.parent / "real.toml").write_text('target = "rating"')
    path.symlink_to(path.parent / "real.toml")


HOSTILE = {
    "a link": linked,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "10 MB": lambda path: path.write_text("#" * 10_000_000),
    "not UTF-8": lambda path: path.write_bytes(b'target = "\xff"'),
    "not TOML": lambda path: path.write_text("target: rating"),
    "deep nesting": lambda path: path.write_text("target = " + "[" * (LARGEST - 100)),
    "deep keys": lambda path: path.write_text(".".join("a" * 20_000) + " = 1"),
    "many digits": lambda path: path.write_text("max_requests = " + "9" * 5000),
    "a large number": lambda path: path.write_text("max_usd = " + "9" * 4000),
    "a key of 60 kB": lambda path: path.write_text("k" * 60_000 + " = 1"),
    "two of a key": lambda path: path.write_text('target = "a"\ntarget = "b"'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_in_one_short_line(run, own, folder, tmp_path, name):
    folder()
    (tmp_path / FILE).unlink()
    HOSTILE[name](tmp_path / FILE)
    code, out, err = run("induce", own, "--target", "rating", "--out", "out")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {FILE} ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert not (tmp_path / "out").exists()


def test_a_file_beside_the_data_or_in_a_parent_folder_does_not_count(run, own, folder, tmp_path, monkeypatch):
    assert own.parent == folder('target = "junk"')
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    code, _, err = run("induce", own, "--bank", "none", "--metric-columns", "good", "--out", "out")
    assert code == 2
    assert "--target is missing" in err


def test_the_page_shows_a_file_that_counts_and_what_is_said_of_it(folder, capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "command_line.md").read_text("utf-8")
    folder(*re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1].splitlines())
    given = {**dict.fromkeys(COLUMNS), **dict.fromkeys(LIMITS), "bounds": "auto"}
    filled(given, given.keys() - {"concurrency"})
    assert capsys.readouterr().err.strip() == re.search(r"`(note: .*?)`", page)[1]
    listed = re.search(r"- Columns are (.*?);", page)[1], re.search(r"- Limits are (.*?), in every", page)[1]
    assert [set(re.findall(r"`(\w+)`", one)) for one in listed] == [set(COLUMNS), set(LIMITS)]


def test_help_needs_no_settings(run, folder):
    folder("nonsense")
    assert run("induce", "--help")[0] == 0
    assert run("--help")[0] == 0
