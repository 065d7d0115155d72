"""The language model that the options name."""

from __future__ import annotations

import pytest

from metricsmith.cli.model import language_model


def test_an_address_without_a_model_is_code_2(run, own, tmp_path):
    code, _, err = run("induce", own, "--target", "rating", "--api-base", "http://127.0.0.1:9", "--out", tmp_path / "o")
    assert code == 2
    assert "--api-base needs --lm" in err


def test_the_key_in_the_environment_is_left_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    assert "api_key" not in language_model("openai/x", "http://127.0.0.1:9/v1").kwargs
    monkeypatch.delenv("OPENAI_API_KEY")
    assert language_model("openai/x", "http://127.0.0.1:9/v1").kwargs["api_key"] == "none"
    assert "api_key" not in language_model("openai/x", None).kwargs
    assert language_model(None, None) is None


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
