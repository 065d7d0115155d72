"""A server that repeats the key: it reaches no file, no terminal and no store."""

from __future__ import annotations

import json

import pytest

from loopback import serve
from panels import panelled
from planted import planted_rows

BARE = "0f9e8d7c6b5a49382716aabbccddeeff"  # made up
KEY = f"sk-proj-{BARE}"
SAID = f"your subscription key {BARE} (or {KEY}) is known"


def leaking(answer):
    """The answers of a model that knows the key, in every text of its own."""

    def talkative(value, name=""):
        if isinstance(value, dict):
            return {part: talkative(inner, part) for part, inner in value.items()}
        if isinstance(value, list):
            return [talkative(inner, name) for inner in value]
        return f"{value} {SAID}" if name in ("reason", "reasoning", "meaning", "levels") else value

    return lambda prompt: talkative(answer(prompt))


def failing(server, every):
    """Let every so manieth request fail in words that hold the key, or be refused in them."""
    good, count = server.respond, iter(range(10**9))

    def respond(body):
        number = next(count)
        if number % every == 3:
            return 500, {"error": {"message": f"broken: {SAID}", "type": "server_error", "code": "500"}}
        status, content = good(body)
        if number % every == 5:
            content["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": f"No, {SAID}"}
        if number % every == 7:
            content["choices"][0]["message"]["content"] = f"No fields: {SAID}"
        return status, content

    server.respond = respond


@pytest.fixture
def everywhere(tmp_path):
    """The files under the folder in which the key stands."""
    return lambda: [path.name for path in tmp_path.rglob("*") if path.is_file() and BARE.encode() in path.read_bytes()]


def test_a_repeated_key_reaches_neither_terminal_nor_csv_nor_report_nor_store(
    run, write_own, tmp_path, monkeypatch, everywhere
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    own = write_own(tmp_path / "own.csv", planted_rows(sources=11))
    with serve(leaking(panelled)) as server:
        failing(server, every=40)
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        texts = ["--output", "rewrite", "--input", "notice"]
        induce = ["--target", "rating", *texts, "--bank", "generated", "--panel", "--store", tmp_path / "s.db"]
        done = [run("induce", own, *induce, *model, "--out", tmp_path / "out")]
        metric = tmp_path / "out" / "metric.json"
        scores = ["--store", tmp_path / "s.db", "--out", tmp_path / "scores.csv"]
        done.append(run("score", metric, own, "--output", "rewrite", *scores, *model))
        done.append(run("store", "export", tmp_path / "s.db", "--out", tmp_path / "export.csv"))
        server.respond = lambda body: (401, {"error": {"message": SAID, "type": "invalid", "code": "401"}})
        done.append(run("explain", metric, own, "--output", "rewrite", "--row", "1", *model))
        assert server.requests > 100
    assert [code for code, _, _ in done] == [0, 0, 0, 3], done[0][2]
    assert not [text for _, *printed in done for text in printed if BARE in text]
    assert everywhere() == []
    assert "subscription key [key]" in (tmp_path / "export.csv").read_text("utf-8")
    assert "[key]" in done[-1][2]
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
