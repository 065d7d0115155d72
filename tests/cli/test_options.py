"""Options that commands share: the flat command line of groups, and the language model that they name."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from metricsmith.cli.options import (
    LimitOptions,
    ModelOptions,
    OutputOptions,
    TableOptions,
    takes_groups,
)
from metricsmith.cli.saved_metrics import judge_counts


def test_an_address_without_a_model_is_code_2(run, own, tmp_path):
    code, _, err = run("induce", own, "--target", "rating", "--api-base", "http://127.0.0.1:9", "--out", tmp_path / "o")
    assert code == 2
    assert "--api-base needs --lm" in err


def test_the_key_in_the_environment_is_left_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    assert "api_key" not in ModelOptions("openai/x", "http://127.0.0.1:9/v1").language_model().kwargs
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ModelOptions("openai/x", "http://127.0.0.1:9/v1").language_model().kwargs["api_key"] == "none"
    assert "api_key" not in ModelOptions("openai/x").language_model().kwargs
    assert ModelOptions().language_model() is None


@pytest.mark.parametrize(
    ("name", "says"),
    [("", "must be a non-empty string"), (" ", "must be a non-empty string"), ("openai/", "no model id after it")],
)
def test_a_name_that_no_model_has_is_code_2(run, own, tmp_path, name, says):
    code, _, err = run("induce", own, "--target", "rating", "--lm", name, "--out", tmp_path / "o")
    assert code == 2
    assert says in err
    assert "name it as provider/model, say openai/gpt-4o-mini" in err


def test_settings_that_a_model_does_not_take_are_code_2(run, own, tmp_path):
    model = ("--lm", "openai/o3", "--temperature", 0.4)
    code, _, err = run("compare", own, "--target", "rating", *model, "--out", tmp_path / "o")
    assert code == 2
    assert "reasoning models require" in err


@pytest.mark.parametrize("temperature", ["-1", "nan"])
def test_a_temperature_below_zero_is_code_2(run, own, tmp_path, temperature):
    model = ("--lm", "openai/gpt-4o-mini", "--temperature", temperature)
    code, _, err = run("induce", own, "--target", "rating", *model, "--out", tmp_path / "o")
    assert code == 2
    assert "must be a number from 0" in err


def test_generators_are_counts_by_family_in_their_order():
    counts = judge_counts(" rubric=5, criterion = 10,code=0")
    assert list(counts.items()) == [("rubric", 5), ("criterion", 10), ("code", 0)]
    assert judge_counts(None) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' must be NAME=COUNT"),
        ("criterion", "'criterion' must be NAME=COUNT with a whole number from 0 to 999: write criterion=10,rubric=5"),
        ("criterion=-1", "'criterion=-1' must be"),
        ("criterion=1000", "'criterion=1000' must be"),
        ("criterion=\u0663", "must be NAME=COUNT"),
        ("=3", "'=3' must be"),
        ("criterion=1,", "'' must be"),
        ("criterion=1,rubric=2,criterion=3", "names criterion twice, 1 and 3"),
        ("criterion=1,rubrik=2", "no judge family 'rubrik' (did you mean 'rubric'?); there are criterion, rubric,"),
    ],
)
def test_generators_that_cannot_be_read_are_code_2(run, own, tmp_path, text, says):
    code, _, err = run("induce", own, "--target", "rating", "--generators", text, "--out", tmp_path / "o")
    assert code == 2
    assert says in " ".join(err.split())


def command(**options):
    """A command of two groups and an option of its own, and what it was called with."""
    heard = []

    @takes_groups(**options)
    def made(
        model: ModelOptions = ModelOptions(temperature=0.5),  # noqa: B008
        own: Annotated[int, typer.Option(help="Its own.")] = 3,
        output: OutputOptions = OutputOptions(),  # noqa: B008
    ) -> None:
        """Do it."""
        heard.append((model, own, output))

    return made, heard


def page(made):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(made)
    return CliRunner().invoke(app, ["--help"]).output, lambda *given: CliRunner().invoke(app, given)


def test_groups_stand_on_the_command_line_where_they_stand_in_the_signature():
    made, heard = command(without=("raw_csv",), after={"quiet": "lm"}, helps={"own": "Mine.", "out": "There."})
    assert list(inspect.signature(made).parameters) == [
        "lm", "quiet", "api_base", "temperature", "own", "out", "dry_run", "as_json",
    ]  # fmt: skip
    text, call = page(made)
    assert text.index("--lm") < text.index("--quiet") < text.index("--own") < text.index("--dry-run")
    assert "Mine." in text
    assert "There." in text
    assert "Its own." not in text
    assert "Do it." in text
    assert "--raw-csv" not in text
    assert call("--lm", "m", "--quiet", "--own", "4").exit_code == 0
    assert heard == [(ModelOptions("m", None, 0.5), 4, OutputOptions(quiet=True))]


def test_a_help_text_of_one_command_is_not_that_of_the_next():
    text, _ = page(command(helps={"out": "There.", "raw_csv": "As it is."})[0])
    assert "There." in text
    assert "As it is." in text
    text, _ = page(command()[0])
    assert "Where the report goes." in text
    assert "No apostrophes" in text


@pytest.mark.parametrize("options", [{"helps": {"nonsense": ""}}, {"after": {"out": "nonsense"}}])
def test_an_option_that_no_group_has_is_an_error_of_the_programmer(options):
    with pytest.raises((KeyError, ValueError), match="nonsense"):
        command(**options)


def test_groups_are_frozen_and_read_tables_and_limits_by_the_names_of_the_library():
    with pytest.raises(AttributeError):
        ModelOptions().lm = "m"
    reading = TableOptions("data.csv", "rating", input=["question"], lower_is_better=True).reading()
    assert (reading["target"], reading["inputs"], reading["higher_is_better"]) == ("rating", ["question"], False)
    assert set(reading) - {"inputs", "higher_is_better"} < {field.name for field in fields(TableOptions)}
    limits = LimitOptions(bounds="4:64", max_usd=2.0).scoring()
    assert (limits["store"], limits["budget"].usd, limits["concurrency"].high) == (None, 2.0, 64)
    assert LimitOptions().scoring()["budget"] is None


def test_options_that_a_command_leaves_out_keep_the_default_of_its_group():
    heard = []

    @takes_groups(without=("data", "target"))
    def made(table: TableOptions = TableOptions("own.csv", "rating")) -> None:  # noqa: B008
        """Do it."""
        heard.append(table)

    _, call = page(made)
    assert call("--output", "text").exit_code == 0
    assert heard == [TableOptions("own.csv", "rating", output="text")]
