"""The language model that the options name."""

from __future__ import annotations

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
