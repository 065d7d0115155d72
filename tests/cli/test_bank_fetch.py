"""The command that fetches weights: it says the size, asks, and fetches for names of the table alone."""

from __future__ import annotations

import io
import sys

import pytest

from hub import COMMIT, client_of, hub

WEIGHTS = bytes(20_000)


@pytest.fixture
def server():
    with hub() as running:
        running.repositories["roberta-large"] = {"config.json": b"{}", "model.safetensors": WEIGHTS}
        yield running


@pytest.fixture(autouse=True)
def cache(server, tmp_path, monkeypatch):
    with client_of(server.address, tmp_path / "cache", monkeypatch):
        yield tmp_path / "cache"


def at_a_terminal(monkeypatch, answer):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)


def test_it_shows_id_revision_files_and_size_and_fetches_when_confirmed(run, monkeypatch, cache):
    at_a_terminal(monkeypatch, "y\n")
    code, out, _ = run("bank", "fetch", "BERTScore", "bertscore_f")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"bertscore: roberta-large, revision {COMMIT}"
    assert [line.split() for line in lines[1:3]] == [["20.0kB", "model.safetensors"], ["2.00B", "config.json"]]
    assert lines[3].startswith(f"Fetch 20.0kB? [y/N]: bertscore is at {cache}")
    code, out, _ = run("bank", "fetch", "bertscore")
    assert code == 0
    assert "model.safetensors  is here" in out


def test_a_no_fetches_nothing(run, monkeypatch, server, cache):
    at_a_terminal(monkeypatch, "n\n")
    code, out, _ = run("bank", "fetch", "bertscore")
    assert code == 0
    assert out.endswith("nothing was fetched\n")
    assert server.sent["model.safetensors"] == 0
    assert not cache.exists()


def test_without_a_terminal_it_refuses_with_the_size_unless_told_yes(run, monkeypatch, server, cache):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    code, _, err = run("bank", "fetch", "bertscore")
    assert code == 2
    assert "nothing was fetched: it takes 20.0kB, and nobody can be asked here; add --yes" in err
    assert not cache.exists()
    assert run("bank", "fetch", "bertscore", "--yes")[0] == 0
    assert server.sent["model.safetensors"] == len(WEIGHTS)


def test_only_names_of_the_table_are_fetched(run, server):
    assert run("bank", "fetch", "mauve")[2].startswith("error: mauve: gpt2-large")  # which this hub does not have
    asked = [*server.asked]
    code, _, err = run("bank", "fetch", "bertscor", "--yes")
    assert code == 2
    assert "no metric 'bertscor' with weights (did you mean 'bertscore'?)" in err
    assert run("bank", "fetch", "someone/else", "--yes")[0] == 2
    assert server.asked == asked


def test_a_hub_that_cannot_be_reached_is_an_error_in_plain_words(run, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, _, err = run("bank", "fetch", "bertscore", "--yes")
    assert code == 3
    assert err.startswith("error: bertscore: roberta-large at http://127.0.0.1:9 could not be fetched: no connection")
    assert "Traceback" not in err
